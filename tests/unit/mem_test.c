/* Limits of memory: what is let in, what buffers may grow to, and when memory is asked back from
 * the allocator. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"

#define MIB ((size_t)1 << 20)
#define MUCH ((size_t)1 << 40) /* charged, and far more than is ever resident */

static int pressed;
static void count_pressure(void)
{
    pressed++;
}

static void test_no_limit(void **state)
{
    (void)state;
    assert_true(mem_limit() == MEM_NO_LIMIT);
    assert_true(mem_soft_limit() == MEM_NO_LIMIT);
    assert_true(mem_room(MEM_NO_LIMIT, SIZE_MAX));
    assert_true(mem_try_charge(MEM_NO_LIMIT, MUCH));
    assert_true(mem_used() >= MUCH);
    mem_release(MUCH);
}

/* The lower of the two limits counts, and all is undone when there is no room. */
static void test_limits(void **state)
{
    (void)state;
    const size_t before = mem_used();
    mem_set_limit(10 * MUCH);
    assert_true(mem_soft_limit() == 8 * MUCH);
    assert_true(mem_room(MEM_NO_LIMIT, 7 * MUCH));
    assert_false(mem_room(MEM_NO_LIMIT, 8 * MUCH + 1));
    assert_true(mem_room(2 * MUCH, MUCH));
    assert_false(mem_room(2 * MUCH, 2 * MUCH + 1));
    assert_true(mem_try_charge(MEM_NO_LIMIT, 7 * MUCH));
    assert_false(mem_try_charge(MEM_NO_LIMIT, 2 * MUCH));
    assert_true(mem_used() == before + 7 * MUCH);
    mem_release(7 * MUCH);
    mem_set_limit(MEM_NO_LIMIT);
    assert_true(mem_used() == before);
}

static void test_lowest_limit(void **state)
{
    (void)state;
    assert_true(mem_lowest_limit() == MEM_NO_LIMIT);
    mem_set_limit(100);
    mem_limit_add(50);
    mem_limit_add(50);
    mem_limit_add(200);
    assert_int_equal(mem_lowest_limit(), 50);
    mem_limit_remove(50);
    assert_int_equal(mem_lowest_limit(), 50);
    mem_limit_remove(50);
    assert_int_equal(mem_lowest_limit(), 100);
    mem_set_limit(MEM_NO_LIMIT);
    assert_int_equal(mem_lowest_limit(), 200);
    mem_limit_remove(200);
}

/* A buffer that is bounded grows while there is room, others always. */
static void test_bounded_buffer(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *b = buf_new(0), *other = buf_new(0);
    mem_charge(MUCH);
    buf_bound(b, 2 * MUCH);
    assert_int_equal(buf_reserve(b, 1000), 0);
    mem_charge(MUCH);
    const size_t used = mem_used();
    assert_int_equal(buf_append(b, "x", 1), 0); /* is there already */
    assert_int_equal(buf_reserve(b, MIB), -ENOMEM);
    assert_int_equal(b->len, 1);
    assert_true(mem_used() == used);
    assert_int_equal(buf_reserve(other, MIB), 0);
    buf_bound(b, 0);
    assert_int_equal(buf_reserve(b, MIB), 0);
    mem_release(2 * MUCH);
}

/* Memory that is resident and not charged counts, and is asked back when it stands in the way. */
static void test_resident(void **state)
{
    (void)state;
    const size_t size = 64 * MIB;
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    for (size_t i = 0; i < size; i += 4096)
        p[i] = 1;
    mem_look();
    if (mem_resident() < size || mem_in_use() < size)
        skip(); /* no /proc, or a sanitizer that keeps memory of its own */
    mem_on_pressure(count_pressure);
    assert_false(mem_room(size, 0));
    assert_int_equal(pressed, 1); /* what is live would fit */
    assert_false(mem_room(0, 1));
    assert_int_equal(pressed, 1); /* not even that */
    munmap(p, size);
    mem_look();
    assert_true(mem_room(size, 0));
    mem_on_pressure(NULL);
}

static void test_arena_limit(void **state)
{
    (void)state;
    _cleanup_(arena_freep) struct arena *a = arena_new(4096);
    assert_true(arena_room(a) == SIZE_MAX);
    arena_set_limit(a, 100000);
    assert_non_null(arena_alloc(a, 60000));
    assert_int_equal(arena_room(a), 40000);
    assert_false(arena_refused(a));
    assert_null(arena_alloc(a, 50000));
    assert_true(arena_refused(a));
    assert_non_null(arena_alloc(a, 30000));
    arena_reset(a);
    assert_false(arena_refused(a));
    assert_int_equal(arena_room(a), 70000); /* the last block is kept */
    arena_set_limit(a, 0);
    assert_non_null(arena_alloc(a, 200000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_limit),     cmocka_unit_test(test_limits),
        cmocka_unit_test(test_lowest_limit), cmocka_unit_test(test_bounded_buffer),
        cmocka_unit_test(test_resident),     cmocka_unit_test(test_arena_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
