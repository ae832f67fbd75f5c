/* Pages that hold nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/base/pages.h"

#define PAGES 8

static size_t page;

/* Private memory whose pages are in use: full of 'x' where `pattern` says so, else of zeros. */
static uint8_t *make(const char *pattern)
{
    uint8_t *m =
        mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(m != MAP_FAILED);
    memset(m, 'x', PAGES * page);
    for (size_t i = 0; i < PAGES; i++)
        if (pattern[i] == '0')
            memset(m + i * page, 0, page);
    return m;
}

/* Which pages are resident: 'r' or '-'. */
static void resident(uint8_t *m, char *ret)
{
    unsigned char in[PAGES];
    assert_int_equal(mincore(m, PAGES * page, in), 0);
    for (size_t i = 0; i < PAGES; i++)
        ret[i] = in[i] & 1 ? 'r' : '-';
    ret[PAGES] = 0;
}

static void check(const char *pattern, size_t from, size_t to, const char *want)
{
    uint8_t *m = make(pattern);
    char got[PAGES + 1];
    size_t gone = 0;
    const size_t given = pages_give_back(m + from, to - from);
    resident(m, got);
    if (strcmp(got, want) != 0)
        fail_msg("%s from %zu to %zu: %s, not %s", pattern, from, to, got, want);
    for (size_t i = 0; i < PAGES; i++)
        gone += got[i] == '-' ? page : 0;
    assert_int_equal(given, gone);
    for (size_t i = 0; i < PAGES * page; i++)
        if (m[i] != (pattern[i / page] == '0' ? 0 : 'x'))
            fail_msg("%s: byte %zu changed", pattern, i);
    munmap(m, PAGES * page);
}

static void test_zeros(void **state)
{
    (void)state;
    const size_t end = PAGES * page;
    check("00000000", 0, end, "--------");
    check("xxxxxxxx", 0, end, "rrrrrrrr");
    check("x00xx000", 0, end, "r--rr---");
    check("000xx00x", 0, end, "---rr--r");
    check("0x0x0x0x", 0, end, "-r-r-r-r");
}

/* Only pages that are inside as a whole. */
static void test_bounds(void **state)
{
    (void)state;
    const size_t end = PAGES * page;
    check("00000000", 1, end, "r-------");
    check("00000000", 0, end - 1, "-------r");
    check("00000000", page, 2 * page, "r-rrrrrr");
    check("00000000", page + 1, 3 * page - 1, "rrrrrrrr");
    check("00000000", 10, 20, "rrrrrrrr");
    check("00000000", page, page, "rrrrrrrr");
}

/* One byte at either end of a page keeps it. */
static void test_one_byte(void **state)
{
    (void)state;
    uint8_t *m = make("00000000");
    char got[PAGES + 1];
    m[page] = 1;
    m[4 * page - 1] = 1;
    assert_int_equal(pages_give_back(m, PAGES * page), (PAGES - 2) * page);
    resident(m, got);
    assert_string_equal(got, "-r-r----");
    assert_true(m[page] == 1 && m[4 * page - 1] == 1);
    munmap(m, PAGES * page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_one_byte),
    };
    page = (size_t)sysconf(_SC_PAGESIZE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
