/* The byte form of exports: equal to the reference's, and the same message. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/check.h"
#include "proto/wire_order.h"

static struct buf *read_file(const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), TEST_DATA "/golden/%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    struct buf *b = buf_new(0);
    char block[4096];
    for (size_t n; (n = fread(block, 1, sizeof(block), f)) > 0;)
        assert_int_equal(buf_append(b, block, n), 0);
    fclose(f);
    return b;
}

static enum signal signal_of(const char *name)
{
    return strstr(name, "traces")    ? SIGNAL_TRACES
           : strstr(name, "metrics") ? SIGNAL_METRICS
                                     : SIGNAL_LOGS;
}

static struct buf *ordered(enum signal s, struct bytes in)
{
    struct buf *out = buf_new(0);
    assert_int_equal(otlp_wire_order(schema_request(s), in, out), 0);
    return out;
}

static void check_file(const char *name)
{
    enum signal s = signal_of(name);
    _cleanup_buf_ struct buf *in = read_file("otlp", name);
    _cleanup_buf_ struct buf *want = read_file("wire_order", name);
    struct otlp_checked c;
    assert_int_equal(otlp_check(s, buf_bytes(in), &c, NULL), 0);
    struct bytes clean = c.canonical ? buf_bytes(in) : buf_bytes(c.fixed);
    _cleanup_buf_ struct buf *got = ordered(s, clean);
    if (!bytes_eq(buf_bytes(got), buf_bytes(want)))
        fail_msg("%s: %zu bytes, want %zu", name, got->len, want->len);
    /* What is in order already stays as it is, and it is still a good request with the same
     * records. */
    _cleanup_buf_ struct buf *again = ordered(s, buf_bytes(got));
    assert_true(bytes_eq(buf_bytes(again), buf_bytes(got)));
    struct otlp_checked d;
    assert_int_equal(otlp_check(s, buf_bytes(got), &d, NULL), 0);
    assert_int_equal(d.records, c.records);
    /* Step by step, from the last to the first. */
    _cleanup_(wire_order_freep) struct wire_order *o = wire_order_new();
    for (int round = 0; round < 2; round++) {
        wire_order_reset(o);
        for (int i = 0; i < 2; i++)
            assert_int_equal(wire_order_put(o, schema_request(s), clean), 0);
        struct bytes both = wire_order_bytes(o);
        assert_int_equal(both.len, 2 * want->len);
        assert_memory_equal(both.data, want->data, want->len);
        assert_memory_equal(both.data + want->len, want->data, want->len);
    }
    buf_unref(c.fixed);
    buf_unref(d.fixed);
}

static void test_equals_the_reference(void **state)
{
    (void)state;
    DIR *d = opendir(TEST_DATA "/golden/wire_order");
    assert_non_null(d);
    int n = 0;
    for (struct dirent *e; (e = readdir(d));)
        if (strstr(e->d_name, ".pb")) {
            check_file(e->d_name);
            n++;
        }
    closedir(d);
    assert_true(n >= 14);
}

static void check_bytes(const char *in, size_t in_len, const char *want, size_t want_len)
{
    _cleanup_buf_ struct buf *got = ordered(SIGNAL_LOGS, bytes_of(in, in_len));
    if (!bytes_eq(buf_bytes(got), bytes_of(want, want_len))) {
        for (size_t i = 0; i < got->len; i++)
            print_message("%02x ", got->data[i]);
        fail_msg("not as wanted");
    }
}
#define CHECK(in, want) check_bytes(in, sizeof(in) - 1, want, sizeof(want) - 1)

static void test_small_cases(void **state)
{
    (void)state;
    CHECK("", "");
    CHECK("\x0a\x00", "\x0a\x02\x0a\x00"); /* the resource is always there */
    /* A record with nothing in it: ids and body appear. */
    CHECK("\x0a\x04\x12\x02\x12\x00",
          "\x0a\x0e\x12\x0a\x12\x06\x52\x00\x4a\x00\x2a\x00\x0a\x00\x0a\x00");
    /* Unknown fields stay, before the others. */
    CHECK("\x0a\x03\x50\x96\x01", "\x0a\x05\x50\x96\x01\x0a\x00");
    /* Zero scalars go; a zero with presence stays. */
    CHECK("\x0a\x0c\x12\x0a\x12\x08\x10\x00\x2a\x02\x10\x00\x38\x00",
          "\x0a\x10\x12\x0c\x12\x08\x52\x00\x4a\x00\x2a\x02\x10\x00\x0a\x00\x0a\x00");
    /* An id of zeros only is none. */
    CHECK("\x0a\x0e\x12\x0c\x12\x0a\x52\x08\x00\x00\x00\x00\x00\x00\x00\x00",
          "\x0a\x0e\x12\x0a\x12\x06\x52\x00\x4a\x00\x2a\x00\x0a\x00\x0a\x00");
}

static void test_limit(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *out = buf_new(2);
    assert_int_equal(otlp_wire_order(schema_request(SIGNAL_LOGS), bytes_of("\x0a\x00", 2), out),
                     -EMSGSIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_equals_the_reference),
                                       cmocka_unit_test(test_small_cases),
                                       cmocka_unit_test(test_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
