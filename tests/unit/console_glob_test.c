/* Patterns of files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "receivers/console/console.h"

static char folder[] = "/tmp/motel-glob-XXXXXX";

static const char *const files[] = {"a.log",      "b.log",      "b.txt",     ".hidden.log",
                                    "x/a.log",    "x/c.log",    "x/y/d.log", "x/y/z/e.log",
                                    ".git/f.log", "we[i]rd.log"};

static const struct {
    const char *include, *exclude, *want;
} cases[] = {
    {"*.log", "", "a.log b.log we[i]rd.log"},
    {".*.log", "", ".hidden.log"},
    {"?.*", "", "a.log b.log b.txt"},
    {"[ab].log", "", "a.log b.log"},
    {"[!a].log", "", "b.log"},
    {"we\\[i\\]rd.log", "", "we[i]rd.log"},
    {"nothing.log", "", ""},
    {"x/*.log", "", "x/a.log x/c.log"},
    {"*/?.log", "", "x/a.log x/c.log"},
    {"**/?.log", "", "a.log b.log x/a.log x/c.log x/y/d.log x/y/z/e.log"},
    {"x/**/?.log", "", "x/a.log x/c.log x/y/d.log x/y/z/e.log"},
    {"**/y/**/*.log", "", "x/y/d.log x/y/z/e.log"},
    {"x/**", "", "x/a.log x/c.log x/y/d.log x/y/z/e.log"},
    {"./x//a.log", "", "x/a.log"},
    {"**/?.log", "x/**", "a.log b.log"},
    {"**/?.log", "**/y/**", "a.log b.log x/a.log x/c.log"},
    {"*.log", "b*", "a.log we[i]rd.log"},
    {"*.log", "**/a.log", "b.log we[i]rd.log"},
    {"x", "", ""},
    {"x/a.log/*", "", ""},
};

static char found[2000];

static void on_found(void *ctx, const char *path, const struct stat *st)
{
    (void)ctx;
    assert_true(S_ISREG(st->st_mode));
    assert_int_equal(strncmp(path, folder, strlen(folder)), 0);
    snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s\n",
             path + strlen(folder) + 1);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of `found`, sorted, one space between them. */
static void sort_found(char *out)
{
    char *lines[64], *save = NULL;
    size_t n = 0;
    for (char *p = strtok_r(found, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
        lines[n++] = p;
    qsort(lines, n, sizeof(*lines), by_text);
    out[0] = 0;
    for (size_t i = 0; i < n; i++) {
        if (i && strcmp(lines[i], lines[i - 1]) == 0)
            continue;
        snprintf(out + strlen(out), 2000 - strlen(out), "%s%s", *out ? " " : "", lines[i]);
    }
}

static void make(struct patterns *p, const char *pattern, bool relative)
{
    char path[300];
    const char *items[] = {path};
    snprintf(path, sizeof(path), "%s/%s", folder, pattern);
    if (relative)
        items[0] = pattern;
    const struct cfg_list list = {.items = items, .n = *pattern ? 1 : 0};
    assert_int_equal(patterns_init(p, &list), 0);
}

static void test_patterns(void **state)
{
    (void)state;
    assert_int_equal(chdir(folder), 0);
    for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
        struct patterns include, exclude;
        char got[2000];
        const char *want = cases[i / 2].want;
        make(&include, cases[i / 2].include, i % 2);
        make(&exclude, cases[i / 2].exclude, i % 2);
        found[0] = 0;
        patterns_walk(&include, &exclude, on_found, NULL);
        sort_found(got);
        if (strcmp(got, want) != 0)
            fail_msg("%s without %s: %s, not %s", cases[i / 2].include, cases[i / 2].exclude, got,
                     want);
        patterns_done(&include);
        patterns_done(&exclude);
    }
}

static void test_file_that_goes(void **state)
{
    (void)state;
    struct patterns include, none = {0};
    make(&include, "a.log/../b.log", false); /* through a file: nothing */
    found[0] = 0;
    patterns_walk(&include, &none, on_found, NULL);
    assert_string_equal(found, "");
    patterns_done(&include);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_file_that_goes),
    };
    char command[500];
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        snprintf(command, sizeof(command), "mkdir -p '%s/%s' && rmdir '%s/%s' && echo > '%s/%s'",
                 folder, files[i], folder, files[i], folder, files[i]);
        assert_int_equal(system(command), 0);
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    return failed || system(command) != 0;
}
