/* The byte form of exports: equal to the reference's, and the same message. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/check.h"
#include "proto/wire_order.h"
#include "tests/laws/laws.h"
#include "tests/unit/wire_text.h"

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

/* Fields of an attribute, in the order of `key_first`. */
static void put_attribute(struct buf *out, bool key_first, size_t key_len, struct bytes any)
{
    static uint8_t key[300];
    size_t mark;
    memset(key, 'k', sizeof(key));
    assert_int_equal(wire_begin(out, 6, &mark), 0);
    if (key_first && key_len)
        wire_put_bytes(out, 1, bytes_of(key, key_len));
    wire_put_bytes(out, 2, any);
    if (!key_first && key_len)
        wire_put_bytes(out, 1, bytes_of(key, key_len));
    assert_int_equal(wire_end(out, mark), 0);
}

/* A request with one log record of `n` attributes, and how it is sent. */
static void check_attributes(bool key_first, unsigned n, size_t key_len, struct bytes any)
{
    _cleanup_buf_ struct buf *in = buf_new(0), *want = buf_new(0);
    size_t a, b, c;
    wire_begin(in, 1, &a), wire_begin(in, 2, &b), wire_begin(in, 2, &c);
    for (unsigned i = 0; i < n; i++)
        put_attribute(in, key_first, key_len, any);
    wire_end(in, c), wire_end(in, b), wire_end(in, a);
    wire_begin(want, 1, &a), wire_begin(want, 2, &b), wire_begin(want, 2, &c);
    buf_append(want, "\x52\x00\x4a\x00", 4);
    for (unsigned i = 0; i < n; i++)
        put_attribute(want, false, key_len, any);
    buf_append(want, "\x2a\x00", 2);
    wire_end(want, c), buf_append(want, "\x0a\x00", 2), wire_end(want, b);
    buf_append(want, "\x0a\x00", 2), wire_end(want, a);
    check_bytes((char *)in->data, in->len, (char *)want->data, want->len);
}

/* Values of all kinds and lengths, whichever of key and value comes first. */
static void test_attributes(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
    } values[] = {
        {"", 0},
        {"\x0a\x00", 2},
        {"\x3a\x02\xff\x00", 4},
        {"\x10\x01", 2},
        {"\x10\x00", 2},
        {"\x18\x05", 2},
        {"\x18\x80\x01", 3},
        {"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},
        {"\x21\x00\x00\x00\x00\x00\x00\x00\x00", 9},
        {"\x2a\x06\x0a\x04\x0a\x02xy", 8}, /* an array */
    };
    for (unsigned n = 1; n < 4; n++)
        for (size_t key_len = 0; key_len < 200; key_len++)
            for (size_t i = 0; i < ARRAY_SIZE(values); i++)
                for (int first = 0; first < 2; first++)
                    check_attributes(first, n, key_len, bytes_of(values[i].bytes, values[i].len));
}

static void test_long_attributes(void **state)
{
    (void)state;
    static const size_t around[] = {0, 8, 32, 64, 128, 256, 16384};
    static uint8_t text[17000];
    memset(text, 't', sizeof(text));
    for (size_t i = 0; i < ARRAY_SIZE(around); i++)
        for (size_t len = around[i] > 20 ? around[i] - 20 : 0; len < around[i] + 4; len++) {
            _cleanup_buf_ struct buf *any = buf_new(0);
            wire_put_bytes(any, 1, bytes_of(text, len));
            for (unsigned n = 1; n < 4; n++)
                for (int first = 0; first < 2; first++)
                    check_attributes(first, n, 7, buf_bytes(any));
        }
}

/* Forms that are longer than they need to be, and fields that are not next to each other. */
static void test_odd_forms(void **state)
{
    (void)state;
    static const char *const texts[] = {
        /* tag and length of a key; an int of two bytes that is one; a severity between attributes
         */
        "0a{12{12{32{8a00 8100 6b 12{188500}} 1009 32{0a{6b} 12{1005}}}}}",
        "0a{12{12{32{0a{61} 12{1001}} 1009 32{0a{62} 12{0a{62}}} 2a{} 32{0a{63} 12{3a{ff}}}}}}",
        /* one attribute in a wrong tag form among plain ones */
        "0a{12{12{32{0a{61} 12{1001}} b20007 0a0162 12021001 32{0a{63} 12{1001}}}}}",
        /* enums that are negative; flags */
        "0a{12{12{10ffffffffffffffffff01 10ffffffff0f 4503000000}}}",
        /* unknown fields between known ones */
        "0a{f87f01 12{12{32{0a{61} 12{1001}} f87f05 f87f06 1009 c23e{61}}}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct otlp_checked c;
        _cleanup_buf_ struct buf *b = wire_text(texts[i]);
        assert_int_equal(otlp_check(SIGNAL_LOGS, buf_bytes(b), &c, NULL), 0);
        _cleanup_buf_ struct buf *fixed = c.fixed;
        law_order(SIGNAL_LOGS, c.canonical ? buf_bytes(b) : buf_bytes(fixed));
    }
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
                                       cmocka_unit_test(test_attributes),
                                       cmocka_unit_test(test_long_attributes),
                                       cmocka_unit_test(test_odd_forms),
                                       cmocka_unit_test(test_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
