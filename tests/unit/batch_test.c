/* Batches: references, sizes, flattening. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/batch.h"

static struct buf *text(const char *s)
{
    struct buf *b = buf_new(0);
    assert_int_equal(buf_append_str(b, s), 0);
    return b;
}

static void test_life(void **state)
{
    (void)state;
    size_t before = mem_used();
    struct buf *segs[] = {text("ab"), text("cde")};
    struct batch *b = batch_new(SIGNAL_LOGS, segs, 2, 7);
    assert_int_equal(b->bytes, 5);
    assert_int_equal(b->records, 7);
    assert_ptr_equal(batch_ref(b), b);
    assert_null(batch_unref(b));
    struct buf *flat = batch_flatten(b);
    assert_true(bytes_eq_str(buf_bytes(flat), "abcde"));
    buf_unref(flat);
    batch_unref(b);
    assert_int_equal(mem_used(), before);
    assert_null(batch_unref(NULL));
}

static void test_flatten_shares_a_single_segment(void **state)
{
    (void)state;
    struct buf *seg = text("x");
    struct batch *b = batch_new(SIGNAL_TRACES, &seg, 1, 1);
    struct buf *flat = batch_flatten(b);
    assert_ptr_equal(flat, seg);
    buf_unref(flat);
    batch_unref(b);
    b = batch_new(SIGNAL_TRACES, NULL, 0, 0);
    flat = batch_flatten(b);
    assert_int_equal(flat->len, 0);
    buf_unref(flat);
    batch_unref(b);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(signal_name(SIGNAL_METRICS), "metrics");
    assert_string_equal(signal_records_name(SIGNAL_METRICS), "metric_points");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life), cmocka_unit_test(test_flatten_shares_a_single_segment), cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
