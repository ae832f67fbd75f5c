/* The deep check: what it takes, what it refuses and why, and the canonical form of odd bytes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/check.h"
#include "tests/unit/wire_text.h"

static const struct {
    const char *what;
    enum signal signal;
    const char *bytes;
    uint32_t records;
} good[] = {
    {"nothing", SIGNAL_TRACES, "", 0},
    {"empty entry", SIGNAL_LOGS, "0a{}", 0},
    {"key without a value in a map", SIGNAL_LOGS, "0a1a121812160900002a36fe9c97172a0b32090a070a056b65795f31", 1},
    {"empty record", SIGNAL_LOGS, "0a{12{12{}}}", 1},
    {"empty AnyValue", SIGNAL_LOGS, "0a{12{12{32{0a{'a'}12{}}}}}", 1},
    {"span with empty ids", SIGNAL_TRACES, "0a{12{12{0a{}12{}22{}}}}", 1},
    {"span with ids", SIGNAL_TRACES, "0a{12{12{0a{'0123456789abcdef'}12{'01234567'}}}}", 1},
    {"span with flags", SIGNAL_TRACES, "0a{12{12{8501 00010000}}}", 1},
    {"unknown fields of every type", SIGNAL_TRACES,
     "0a{12{12{f80101 f1010102030405060708 fa01{'abc'} fd0101020304 0a{}}}}", 1},
    {"unknown field with a large number", SIGNAL_TRACES, "0a{c83e01 fa3e{} faffffff0f{}}", 0},
    {"field 1000 where it means nothing", SIGNAL_TRACES, "c23e{ff} 0a{12{c23e{ff} c03e05}}", 0},
    {"field 1000 that is no message", SIGNAL_TRACES, "0a{c03e05}", 0},
    {"tag in two bytes", SIGNAL_TRACES, "8a00{}", 0},
    {"varint of ten bytes", SIGNAL_TRACES, "0a{12{12{30ffffffffffffffffff01}}}", 1},
    {"attributes of all kinds", SIGNAL_TRACES,
     "0a{12{12{4a{0a{'k'}12{0a{'v'}}}4a{0a{}12{18ffffffffffffffffff01}}4a{0a{'k'}12{1000}}4a{0a{'k'}12{10ff00}}"
     "4a{0a{'k'}12{210000000000000000}}4a{0a{'k'}12{2a{0a{}}}}4a{12{0a{'v'}}0a{'k'}}4a{0a{'k'}12{0a{}}1800}}}}", 1},
    {"embedded NUL", SIGNAL_TRACES, "0a{12{12{2a{61 00 62}}}}", 1},
    {"three points of two kinds", SIGNAL_METRICS, "0a{12{12{2a{0a{}0a{}}}12{4a{0a{}}}}}", 3},
    {"packed buckets", SIGNAL_METRICS, "0a{12{12{4a{0a{32{0100000000000000}}}}}}", 1},
    {"text of 2, 3 and 4 bytes", SIGNAL_TRACES, "0a{1a{c3a9 e282ac f09f9880 ed9fbf ee8080 f48fbfbf}}", 0},
};

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        _cleanup_buf_ struct buf *b = wire_text(good[i].bytes);
        struct otlp_checked c;
        struct err err = {0};
        if (otlp_check(good[i].signal, buf_bytes(b), &c, &err) != 0)
            fail_msg("%s: %s", good[i].what, err.text);
        assert_int_equal(c.records, good[i].records);
        assert_true(c.canonical);
        assert_null(c.fixed);
        assert_int_equal(otlp_count(good[i].signal, buf_bytes(b)), good[i].records);
    }
}

static const struct {
    enum signal signal;
    const char *bytes, *text;
} bad[] = {
    {SIGNAL_TRACES, "0a", "length expected, end of the message found"},
    {SIGNAL_TRACES, "0a05 1200", "length 5 with 2 bytes left"},
    {SIGNAL_TRACES, "0a{12 03 12 00}", "length 3 with 2 bytes left"},
    {SIGNAL_TRACES, "0800", "wire type 0 in field resource_spans, expected 2"},
    {SIGNAL_TRACES, "0a{12{12{32{}}}}", "wire type 2 in field kind, expected 0"},
    {SIGNAL_METRICS, "0a{12{12{4a{0a{3001}}}}}", "wire type 0 in field bucket_counts, expected 2"},
    {SIGNAL_TRACES, "0001", "field number 0"},
    {SIGNAL_TRACES, "0b0c", "wire type 3 in field resource_spans, expected 2"},
    {SIGNAL_TRACES, "7b7c", "group in field 15"},
    {SIGNAL_TRACES, "7c", "group in field 15"},
    {SIGNAL_TRACES, "7e00", "wire type 6 in field 15"},
    {SIGNAL_TRACES, "7f00", "wire type 7 in field 15"},
    {SIGNAL_TRACES, "78ffffffffffffffffffff01", "varint of more than 10 bytes"},
    {SIGNAL_TRACES, "78ff", "varint beyond the end"},
    {SIGNAL_TRACES, "0a{12{12{4a{0a{'k'}12{18ffffffffffffffffffff01}}}}}", "varint of more than 10 bytes"},
    {SIGNAL_TRACES, "0a{12{12{4a{0a{'k'}12{18ff}}}}}", "varint beyond the end"},
    {SIGNAL_TRACES, "0a{12{12{4a{0a{'k'}12{0a03'ab'}}}}}", "length 3 with 2 bytes left"},
    {SIGNAL_TRACES, "0a{12{12{4a{0a{'k'}12{2100}}}}}", "8 bytes of a fixed number expected, 1 left"},
    {SIGNAL_TRACES, "0a{12{12{4a{0a{'k'}12030a00}}}}", "length 3 with 2 bytes left"},
    /* the value before the key */
    {SIGNAL_TRACES, "0a{12{12{4a{12{0a03'ab'}0a{'k'}}}}}", "length 3 with 2 bytes left"},
    {SIGNAL_TRACES, "0a{12{12{4a{12{0a{'ab'}}0a02'k'}}}}", "length 2 with 1 bytes left"},
    {SIGNAL_TRACES, "0a{12{12{4a{12{18ff}0a{'k'}}}}}", "varint beyond the end"},
    {SIGNAL_TRACES, "0a{12{12{4a{12{2100}0a{'k'}}}}}", "8 bytes of a fixed number expected, 1 left"},
    /* a length of two bytes, of which the first alone would make a sound attribute */
    {SIGNAL_TRACES,
     "0a{12{12{4a{0a{'k'}12{1001}} 4a860a 7d"
     "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'"
     "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'"
     "12050a03'abc'}}}",
     "length 1286 with 133 bytes left"},
    {SIGNAL_TRACES, "7901020304050607", "8 bytes of a fixed number expected, 7 left"},
    {SIGNAL_TRACES, "7d010203", "4 bytes of a fixed number expected, 3 left"},
    {SIGNAL_TRACES, "0affffffffff01", "tag or length of more than 32 bits"},
    {SIGNAL_TRACES, "ffffffff1f", "tag or length of more than 32 bits"},
    {SIGNAL_TRACES, "ff", "tag or length beyond the end"},
    {SIGNAL_TRACES, "0a{12{12{0a{'abc'}}}}", "id of 3 bytes, expected 0 or 16"},
    {SIGNAL_TRACES, "0a{12{12{0a{'01234567'}}}}", "id of 8 bytes, expected 0 or 16"},
    {SIGNAL_TRACES, "0a{12{12{22{'abc'}}}}", "id of 3 bytes, expected 0 or 8"},
    {SIGNAL_TRACES, "0a{12{12{6a{12{'abc'}}}}}", "id of 3 bytes, expected 0 or 8"},
    {SIGNAL_LOGS, "0a{12{12{52{'abc'}}}}", "id of 3 bytes, expected 0 or 8"},
    {SIGNAL_METRICS, "0a{12{12{2a{0a{2a{2a{'abc'}}}}}}}", "id of 3 bytes, expected 0 or 16"},
    {SIGNAL_METRICS, "0a{12{12{4a{0a{32{010203}}}}}}", "packed 64-bit numbers in 3 bytes"},
    {SIGNAL_METRICS, "0a{12{12{52{0a{42{12{01ff}}}}}}}", "varint beyond the end"},
    {SIGNAL_TRACES, "0a{c23e{0a05}}", "length 5 with 0 bytes left"},
};

static void test_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        _cleanup_buf_ struct buf *b = wire_text(bad[i].bytes);
        struct otlp_checked c;
        struct err err = {0};
        assert_int_equal(otlp_check(bad[i].signal, buf_bytes(b), &c, &err), -EBADMSG);
        if (!strstr(err.text, bad[i].text) || !strstr(err.text, "at byte"))
            fail_msg("%s: \"%s\" expected, got \"%s\"", bad[i].bytes, bad[i].text, err.text);
    }
}

static const struct {
    const char *what;
    enum signal signal;
    const char *bytes, *fixed;
    uint32_t records;
} odd[] = {
    {"resource given twice is merged", SIGNAL_TRACES, "0a{0a{1001 1a{}}0a{1002 1a{}}}", "0a{0a{1a{}1002 1a{}}}", 0},
    {"scalar given twice: last wins", SIGNAL_TRACES, "0a{12{12{3001 3002 3003}}}", "0a{12{12{3003}}}", 1},
    {"string given twice: last wins", SIGNAL_TRACES, "0a{1a{'a'}1a{'b'}}", "0a{1a{'b'}}", 0},
    {"oneof given twice: last wins", SIGNAL_LOGS, "0a{12{12{2a{0a{'a'}1001}}}}", "0a{12{12{2a{1001}}}}", 1},
    {"oneof of one message twice is not merged", SIGNAL_METRICS, "0a{12{12{2a{0a{}}2a{0a{}0a{}}}}}",
     "0a{12{12{2a{0a{}0a{}}}}}", 2},
    {"gauge and sum", SIGNAL_METRICS, "0a{12{12{2a{0a{}}3a{0a{}}}}}", "0a{12{12{3a{0a{}}}}}", 1},
    {"merged message with a oneof of each", SIGNAL_LOGS, "0a{12{12{2a{0a{'a'}}2a{1001}}}}", "0a{12{12{2a{1001}}}}", 1},
    {"optional numbers twice", SIGNAL_METRICS, "0a{12{12{4a{0a{29 0000000000000040 29 0000000000000080}}}}}",
     "0a{12{12{4a{0a{29 0000000000000080}}}}}", 1},
    {"bad UTF-8", SIGNAL_TRACES, "0a{1a{61ff62}}", "0a{1a{61efbfbd62}}", 0},
    {"surrogate, overlong, cut", SIGNAL_TRACES, "0a{1a{eda080}1a{c080}1a{e282}}", "0a{1a{efbfbd}}", 0},
    {"attribute with two values", SIGNAL_TRACES, "0a{12{12{4a{0a{'k'}12{1801 1802}}}}}", "0a{12{12{4a{0a{'k'}12{1802}}}}}", 1},
    {"bad UTF-8 in an attribute", SIGNAL_TRACES, "0a{12{12{4a{0a{'k'ff}12{0a{'v'fe}}}}}}",
     "0a{12{12{4a{0a{'k'efbfbd}12{0a{'v'efbfbd}}}}}}", 1},
    {"bad key far down", SIGNAL_LOGS, "0a{12{12{2a{32{0a{0a{ff}12{0a{'v'}}}}}}}}",
     "0a{12{12{2a{32{0a{0a{efbfbd}12{0a{'v'}}}}}}}}", 1},
    {"bytes need not be UTF-8; bad neighbour", SIGNAL_LOGS, "0a{12{12{2a{3a{ff}}1a{ff}}}}",
     "0a{12{12{2a{3a{ff}}1a{efbfbd}}}}", 1},
    {"old scopes", SIGNAL_LOGS, "0a{c23e{12{}12{}}}", "0a{12{12{}12{}}}", 2},
    {"old scopes beside new ones are dropped", SIGNAL_LOGS, "0a{c23e{12{}12{}}12{12{}}}", "0a{12{12{}}}", 1},
    {"old scopes twice", SIGNAL_METRICS, "0a{c23e{12{}}c23e{12{2a{0a{}}}}}", "0a{12{12{}}12{12{2a{0a{}}}}}", 1},
    {"unpacked buckets are packed", SIGNAL_METRICS,
     "0a{12{12{4a{0a{31 0100000000000000 32{0200000000000000} 31 0300000000000000}1001}}}}",
     "0a{12{12{4a{0a{32{0100000000000000 0200000000000000 0300000000000000}}1001}}}}", 1},
    {"unpacked counts are packed", SIGNAL_METRICS, "0a{12{12{52{0a{42{1001 12{0203} 0805 1004}}}}}}",
     "0a{12{12{52{0a{42{12{01020304}0805}}}}}}", 1},
    {"unknown fields stay", SIGNAL_TRACES, "0a{1a{'a'}f80101 1a{'b'}}", "0a{f80101 1a{'b'}}", 0},
};

static void test_odd(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
        _cleanup_buf_ struct buf *b = wire_text(odd[i].bytes);
        struct otlp_checked c, again;
        struct err err = {0};
        if (otlp_check(odd[i].signal, buf_bytes(b), &c, &err) != 0)
            fail_msg("%s: %s", odd[i].what, err.text);
        if (c.canonical)
            fail_msg("%s: taken for canonical", odd[i].what);
        assert_wire(c.fixed, odd[i].fixed);
        assert_int_equal(c.records, odd[i].records);
        assert_int_equal(otlp_check(odd[i].signal, buf_bytes(c.fixed), &again, &err), 0);
        assert_true(again.canonical);
        assert_int_equal(again.records, c.records);
        buf_unref(c.fixed);
    }
}

/* A log record whose body is `levels` lists or maps around a text. */
static struct buf *nested(unsigned levels, bool map)
{
    struct buf *b = wire_text("0a{'x'}");
    for (unsigned i = 0; i < levels + 1; i++) {
        static const uint32_t map_path[] = {2, 1, 6}, list_path[] = {1, 5}, record_path[] = {5, 2, 2, 1};
        const uint32_t *path = i == levels ? record_path : map ? map_path : list_path;
        size_t n = i == levels ? 4 : map ? 3 : 2;
        for (size_t k = 0; k < n; k++) {
            struct buf *outer = buf_new(0);
            assert_int_equal(wire_put_bytes(outer, path[k], buf_bytes(b)), 0);
            buf_unref(b);
            b = outer;
        }
    }
    return b;
}

static void test_depth(void **state)
{
    (void)state;
    static const unsigned levels[] = {0, 1, 63, 64, 65, 66, 1000, 20000};
    for (size_t i = 0; i < 2 * ARRAY_SIZE(levels); i++) {
        unsigned n = levels[i / 2];
        _cleanup_buf_ struct buf *b = nested(n, i % 2);
        struct otlp_checked c;
        struct err err = {0};
        int r = otlp_check(SIGNAL_LOGS, buf_bytes(b), &c, &err);
        assert_int_equal(r, n <= OTLP_MAX_DEPTH ? 0 : -EBADMSG);
        if (r < 0)
            assert_non_null(strstr(err.text, "nested deeper than 64"));
    }
}

static void test_lower_depth(void **state)
{
    (void)state;
    otlp_limits_set(10, 0);
    for (unsigned n = 9; n <= 11; n++) {
        _cleanup_buf_ struct buf *b = nested(n, n % 2);
        struct otlp_checked c;
        struct err err = {0};
        assert_int_equal(otlp_check(SIGNAL_LOGS, buf_bytes(b), &c, &err), n <= 10 ? 0 : -EBADMSG);
        if (n > 10)
            assert_non_null(strstr(err.text, "nested deeper than 10"));
    }
    otlp_limits_set(1000, 0); /* no more than the code stands */
    _cleanup_buf_ struct buf *b = nested(65, true);
    struct otlp_checked c;
    assert_int_equal(otlp_check(SIGNAL_LOGS, buf_bytes(b), &c, NULL), -EBADMSG);
    otlp_limits_set(0, 0);
}

/* A log record with `n` attributes that have nothing but their tag and length, or a map of n entries as body. */
static struct buf *crowd(unsigned n, bool map)
{
    static const uint32_t paths[2][6] = {{2, 2, 1}, {6, 5, 2, 2, 1}};
    struct buf *b = buf_new(0);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(buf_append(b, map ? "\x0a\0" : "\x32\0", 2), 0);
    for (size_t k = 0; paths[map][k]; k++) {
        struct buf *outer = buf_new(0);
        assert_int_equal(wire_put_bytes(outer, paths[map][k], buf_bytes(b)), 0);
        buf_unref(b);
        b = outer;
    }
    return b;
}

static void test_attributes(void **state)
{
    (void)state;
    static const struct {
        unsigned limit, n;
        bool good;
    } rows[] = {{0, 0, true},     {0, OTLP_MAX_ATTRIBUTES, true}, {0, OTLP_MAX_ATTRIBUTES + 1, false},
                {0, 1000000, false}, {3, 3, true},                 {3, 4, false},
                {100000, 100000, true}};
    for (size_t i = 0; i < 2 * ARRAY_SIZE(rows); i++) {
        _cleanup_buf_ struct buf *b = crowd(rows[i / 2].n, i % 2);
        struct otlp_checked c;
        struct err err = {0};
        otlp_limits_set(0, rows[i / 2].limit);
        int r = otlp_check(SIGNAL_LOGS, buf_bytes(b), &c, &err);
        if (r != (rows[i / 2].good ? 0 : -EBADMSG))
            fail_msg("row %zu: %d, %s", i, r, err.text);
        assert_true(r == 0 || strstr(err.text, "attributes, expected at most"));
    }
    otlp_limits_set(0, 0);
}

static void test_repair_at_full_depth(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *b = nested(OTLP_MAX_DEPTH, true);
    struct otlp_checked c, again;
    for (size_t i = 0; i < b->len; i++)
        if (b->data[i] == 'x')
            b->data[i] = 0xff;
    assert_int_equal(otlp_check(SIGNAL_LOGS, buf_bytes(b), &c, NULL), 0);
    assert_false(c.canonical);
    assert_int_equal(otlp_check(SIGNAL_LOGS, buf_bytes(c.fixed), &again, NULL), 0);
    assert_true(again.canonical);
    buf_unref(c.fixed);
}

static void test_batch_from_wire(void **state)
{
    (void)state;
    size_t before = mem_used();
    struct batch *b;
    struct err err;
    struct buf *wire = wire_text("0a{12{12{}12{}}}");
    assert_int_equal(batch_from_wire(SIGNAL_LOGS, wire, &b, &err), 0);
    assert_ptr_equal(b->segs[0], wire);
    assert_int_equal(b->records, 2);
    batch_unref(b);
    assert_int_equal(batch_from_wire(SIGNAL_LOGS, wire_text("0a{12{12{1a{ff}}12{}}}"), &b, &err), 0);
    assert_wire(b->segs[0], "0a{12{12{1a{efbfbd}}12{}}}");
    assert_int_equal(b->records, 2);
    assert_int_equal(b->bytes, b->segs[0]->len);
    batch_unref(b);
    assert_int_equal(batch_from_wire(SIGNAL_LOGS, wire_text("ff"), &b, &err), -EBADMSG);
    assert_int_equal(mem_used(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_odd),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_lower_depth),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_repair_at_full_depth),
        cmocka_unit_test(test_batch_from_wire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
