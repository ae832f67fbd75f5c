/* Blocks that are used again: sizes, what is kept and for how long, and what it counts as. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/base/block.h"
#include "agent/base/buf.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static int notified;
static void count_notes(void)
{
    notified++;
}

static int off(void **state)
{
    (void)state;
    block_on_keep(NULL);
    block_set_limit(0);
    block_age();
    return 0;
}

static int on(void **state)
{
    off(state);
    notified = 0;
    block_set_limit(16 * MIB);
    block_on_keep(count_notes);
    return 0;
}

/* Filled to the last byte: a sanitizer sees a block that is too small. */
static uint8_t *filled(size_t bytes, int with)
{
    uint8_t *p = block_alloc(bytes);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 16, 0);
    return memset(p, with, bytes);
}

static void assert_filled(const uint8_t *p, size_t bytes, int with)
{
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(p[i], with);
}

static void test_nothing_is_kept_at_first(void **state)
{
    (void)state;
    block_free(filled(100 * KIB, 1), 100 * KIB);
    assert_int_equal(block_kept(), 0);
    assert_false(block_drop());
    assert_false(block_age());
    assert_null(block_alloc(SIZE_MAX - 8));
    assert_null(block_free(NULL, 100 * KIB));
}

/* Every size gives a block that can be filled, whatever was kept before. */
static void test_sizes(void **state)
{
    (void)state;
    for (size_t n = 1; n < 40 * MIB; n += 1 + n / 5) {
        uint8_t *a = filled(n, 1), *b = filled(n, 2);
        assert_filled(a, n, 1);
        block_free(a, n);
        assert_true(block_kept() <= 16 * MIB);
        block_free(b, n);
        assert_true(block_kept() <= 16 * MIB);
    }
    assert_true(block_kept() > 0);
}

static void test_small_ones_are_not_kept(void **state)
{
    (void)state;
    block_free(filled(BLOCK_MIN_BYTES - 1, 1), BLOCK_MIN_BYTES - 1);
    assert_int_equal(block_kept(), 0);
    block_free(filled(BLOCK_MIN_BYTES, 1), BLOCK_MIN_BYTES);
    assert_true(block_kept() >= BLOCK_MIN_BYTES);
}

static void test_used_again(void **state)
{
    (void)state;
    uint8_t *p = filled(60 * KIB, 1);
    block_free(p, 60 * KIB);
    const size_t kept = block_kept();
    assert_true(kept >= 60 * KIB && kept < 75 * KIB);
    assert_ptr_equal(block_alloc(58 * KIB), p); /* the same class */
    assert_int_equal(block_kept(), 0);
    block_free(p, 58 * KIB);
    assert_int_equal(block_kept(), kept);
    assert_ptr_equal(block_alloc(40 * KIB), p); /* near enough */
    block_free(p, 40 * KIB);
    assert_int_equal(block_kept(), kept);
    uint8_t *small = block_alloc(20 * KIB), *large = block_alloc(70 * KIB);
    assert_ptr_not_equal(small, p);
    assert_ptr_not_equal(large, p);
    block_free(small, 20 * KIB);
    block_free(large, 70 * KIB);
}

static void test_limit(void **state)
{
    (void)state;
    void *p[40];
    for (int i = 0; i < 40; i++)
        p[i] = filled(MIB, i);
    for (int i = 0; i < 40; i++)
        block_free(p[i], MIB);
    assert_true(block_kept() > 12 * MIB && block_kept() <= 16 * MIB);
    block_set_limit(MIB);
    assert_int_equal(block_kept(), 0);
}

/* What is wanted every second stays, what is too much goes, and all when nothing happens. */
static void test_age(void **state)
{
    (void)state;
    void *p[4];
    for (int i = 0; i < 4; i++)
        p[i] = filled(2 * MIB, i);
    for (int i = 0; i < 4; i++)
        block_free(p[i], 2 * MIB);
    assert_int_equal(notified, 1);
    const size_t all = block_kept();
    assert_true(block_age()); /* none of them lay there before */
    assert_int_equal(block_kept(), all);
    p[0] = block_alloc(2 * MIB);
    p[1] = block_alloc(2 * MIB);
    block_free(p[0], 2 * MIB);
    block_free(p[1], 2 * MIB);
    assert_true(block_age());
    assert_int_equal(block_kept(), all / 2);
    assert_false(block_age());
    assert_int_equal(block_kept(), 0);
    assert_int_equal(notified, 1);
    block_free(filled(MIB, 1), MIB);
    assert_int_equal(notified, 2);
}

/* A little stays as long as anything is used. */
static void test_age_leaves_a_little(void **state)
{
    (void)state;
    void *p[4];
    for (int i = 0; i < 4; i++)
        p[i] = filled(100 * KIB, i);
    for (int i = 0; i < 4; i++)
        block_free(p[i], 100 * KIB);
    const size_t all = block_kept();
    for (int i = 0; i < 5; i++) {
        assert_true(block_age());
        assert_int_equal(block_kept(), all);
        block_free(block_alloc(100 * KIB), 100 * KIB);
    }
    assert_true(block_age());
    assert_false(block_age());
    assert_int_equal(block_kept(), 0);
}

/* After a drop nothing is kept for a while, and somebody sees to the end of that. */
static void test_drop(void **state)
{
    (void)state;
    block_free(filled(100 * KIB, 1), 100 * KIB);
    assert_false(block_age() && block_age());
    assert_int_equal(notified, 1);
    block_free(filled(100 * KIB, 1), 100 * KIB);
    assert_int_equal(notified, 2);
    assert_true(block_drop());
    assert_int_equal(block_kept(), 0);
    block_free(filled(100 * KIB, 1), 100 * KIB);
    assert_int_equal(block_kept(), 0);
    assert_false(block_age());
    block_free(filled(100 * KIB, 1), 100 * KIB);
    assert_true(block_kept() > 0);
    assert_int_equal(notified, 3);
}

static void test_resize(void **state)
{
    (void)state;
    static const size_t sizes[] = {100,      8 * KIB,  17 * KIB,  18 * KIB,  300 * KIB, 310 * KIB,
                                   20 * KIB, 10 * KIB, 900 * KIB, 800 * KIB, 30,        9 * MIB};
    block_free(filled(400 * KIB, 9), 400 * KIB); /* to grow into */
    size_t bytes = 50;
    uint8_t *p = block_resize(NULL, 0, 0, bytes);
    memset(p, 3, bytes);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        const size_t used = bytes < sizes[i] ? bytes : sizes[i];
        p = block_resize(p, bytes, used, sizes[i]);
        assert_non_null(p);
        assert_filled(p, used, 3);
        bytes = sizes[i];
        memset(p, 3, bytes);
    }
    assert_null(block_resize(p, bytes, bytes, SIZE_MAX - 8));
    assert_filled(p, bytes, 3);
    block_free(p, bytes);
}

/* Turned off or on while there are blocks: they are freed, and their sizes known. */
static void test_turned_on_and_off(void **state)
{
    (void)state;
    uint8_t *kept = filled(100 * KIB, 1);
    block_set_limit(0);
    uint8_t *exact = filled(101 * KIB, 1), *tiny = filled(BLOCK_MIN_BYTES, 1);
    block_free(kept, 100 * KIB);
    assert_int_equal(block_kept(), 0);
    block_set_limit(MIB);
    block_free(exact, 101 * KIB);
    const size_t now = block_kept();
    assert_true(now > 0 && now <= 101 * KIB + 64);
    uint8_t *again = filled(now - 64, 2);
    assert_ptr_equal(again, exact);
    block_free(again, now - 64);
    block_free(tiny, BLOCK_MIN_BYTES);
}

/* Buffers use blocks; what is kept counts as memory in use, and makes room when it is in the way.
 */
static void test_accounting(void **state)
{
    (void)state;
    const size_t used = mem_used();
    struct buf *b = buf_new(0);
    assert_int_equal(buf_reserve(b, 10 * MIB), 0);
    mem_look();
    assert_true(mem_in_use() >= 10 * MIB);
    buf_unref(b);
    assert_int_equal(mem_used(), used);
    assert_true(block_kept() >= 10 * MIB);
    assert_true(mem_in_use() >= block_kept());
    const size_t limit = (size_t)1 << 40; /* far more than is ever resident */
    mem_charge(limit - block_kept() + 1);
    assert_true(mem_room(MEM_NO_LIMIT, SIZE_MAX));
    assert_true(block_kept() > 0);
    mem_room(limit, 0);
    assert_int_equal(block_kept(), 0);
    mem_release(mem_used() - used);
}

static void *hammer(void *seed)
{
    unsigned r = (unsigned)(uintptr_t)seed;
    uint8_t *slots[8] = {NULL};
    size_t sizes[8] = {0};
    for (int i = 0; i < 4000; i++) {
        r = r * 1664525u + 1013904223u;
        const unsigned k = r >> 29;
        const size_t n = 1 + (r >> 8) % (200 * KIB);
        if (slots[k] && slots[k][0] != (uint8_t)k)
            return seed;
        if (r & 64) {
            slots[k] = block_resize(slots[k], sizes[k], sizes[k] && n ? 1 : 0, n);
        } else {
            block_free(slots[k], sizes[k]);
            slots[k] = block_alloc(n);
        }
        sizes[k] = n;
        slots[k][0] = (uint8_t)k;
        slots[k][n - 1] = (uint8_t)k;
        if (i % 500 == 499 && (uintptr_t)seed == 1)
            block_age();
        if (i % 1000 == 999 && (uintptr_t)seed == 2)
            block_drop();
    }
    for (int k = 0; k < 8; k++)
        block_free(slots[k], sizes[k]);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t t[4];
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, hammer, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++) {
        void *bad;
        pthread_join(t[i], &bad);
        assert_null(bad);
    }
    assert_true(block_kept() <= 16 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_kept_at_first),
        cmocka_unit_test_setup_teardown(test_sizes, on, off),
        cmocka_unit_test_setup_teardown(test_small_ones_are_not_kept, on, off),
        cmocka_unit_test_setup_teardown(test_used_again, on, off),
        cmocka_unit_test_setup_teardown(test_limit, on, off),
        cmocka_unit_test_setup_teardown(test_age, on, off),
        cmocka_unit_test_setup_teardown(test_age_leaves_a_little, on, off),
        cmocka_unit_test_setup_teardown(test_drop, on, off),
        cmocka_unit_test_setup_teardown(test_resize, on, off),
        cmocka_unit_test_setup_teardown(test_turned_on_and_off, on, off),
        cmocka_unit_test_setup_teardown(test_accounting, on, off),
        cmocka_unit_test_setup_teardown(test_threads, on, off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
