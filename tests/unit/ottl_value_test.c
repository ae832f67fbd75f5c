/* Values: lists and maps, bytes of AnyValue there and back, texts and comparison as the reference
 * has them. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ottl/civil.h"
#include "ottl/value.h"

static struct ottl_value str(const char *s)
{
    return ottl_string(bytes_str(s));
}

static struct ottl_value of_kind(enum ottl_kind kind, const char *data, size_t len)
{
    return (struct ottl_value){.kind = kind, .bytes = bytes_of(data, len)};
}

static struct ottl_value of_time(enum ottl_kind kind, int64_t ns)
{
    return (struct ottl_value){.kind = kind, .i = ns};
}

static struct ottl_value list(struct arena *a, size_t n, const struct ottl_value *items)
{
    struct ottl_list *l = ottl_list_new(a);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(ottl_list_append(a, l, items[i]), 0);
    return (struct ottl_value){.kind = OTTL_LIST, .list = l};
}

/* Keys a, b, c …, in their order or backwards. */
static struct ottl_value map(struct arena *a, size_t n, const struct ottl_value *items, bool back)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    struct ottl_map *m = ottl_map_new(a);
    for (size_t i = 0; i < n; i++) {
        size_t at = back ? n - 1 - i : i;
        assert_int_equal(ottl_map_put(a, m, bytes_str(keys[at]), items[at]), 0);
    }
    return (struct ottl_value){.kind = OTTL_MAP, .map = m};
}

static void test_map(void **state)
{
    (void)state;
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    struct ottl_value v[] = {ottl_int(0), ottl_int(1), ottl_int(2), ottl_int(3), ottl_int(4)};
    struct ottl_map *m = map(a, 5, v, false).map;
    assert_int_equal(m->n, 5);
    assert_int_equal(ottl_map_put(a, m, bytes_str("c"), str("new")), 0);
    assert_int_equal(m->n, 5);
    assert_int_equal(ottl_map_find(m, bytes_str("c"))->kind, OTTL_STRING);
    assert_null(ottl_map_find(m, bytes_str("z")));
    assert_true(ottl_map_remove(m, bytes_str("b")));
    assert_false(ottl_map_remove(m, bytes_str("b")));
    assert_int_equal(m->n, 4);
    assert_true(bytes_eq_str(m->items[1].key, "e")); /* the last one took its place */
    assert_true(ottl_map_remove(m, bytes_str("d")));
    assert_int_equal(m->n, 3);
}

/* ---- texts ---- */

static void assert_text(struct arena *a, struct ottl_value v, const char *want)
{
    struct bytes text;
    bool nil;
    assert_int_equal(ottl_value_text(a, &v, &text, &nil), 0);
    assert_false(nil);
    if (!bytes_eq_str(text, want))
        fail_msg("got %.*s, want %s", (int)text.len, text.data, want);
}

/* More keys than the first table holds, with doubles as they come on the wire. */
static void test_index(void **state)
{
    (void)state;
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    struct ottl_map *m = ottl_map_new(a);
    struct ottl_index x;
    assert_int_equal(ottl_map_append(a, m, bytes_str("k7"), ottl_int(-1)), 0);
    assert_int_equal(ottl_map_append(a, m, bytes_str("k7"), ottl_int(-2)), 0);
    assert_int_equal(ottl_map_append(a, m, bytes_str(""), ottl_int(-3)), 0);
    assert_int_equal(ottl_index_init(&x, a, m), 0);
    for (int i = 0; i < 2000; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%d", i);
        const char *kept = arena_strndup(a, key, strlen(key));
        const struct ottl_value *there = ottl_index_find(&x, bytes_str(key));
        assert_int_equal(there != NULL, i == 7);
        if (!there)
            assert_int_equal(ottl_index_append(&x, bytes_str(kept), ottl_int(i)), 0);
    }
    assert_int_equal(m->n, 2002);
    for (size_t i = 3; i < m->n; i++)
        assert_ptr_equal(ottl_index_find(&x, m->items[i].key), &m->items[i].value);
    assert_int_equal(ottl_index_find(&x, bytes_str("k7"))->i, -1);
    assert_int_equal(ottl_index_find(&x, bytes_str(""))->i, -3);
    assert_null(ottl_index_find(&x, bytes_str("k2000")));
}

static void test_texts(void **state)
{
    (void)state;
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    static const struct {
        struct ottl_value v;
        const char *want;
    } cases[] = {
        {{.kind = OTTL_BOOL, .b = true}, "true"},
        {{.kind = OTTL_INT, .i = INT64_MIN}, "-9223372036854775808"},
        {{.kind = OTTL_DOUBLE, .d = 5}, "5"},
        {{.kind = OTTL_DOUBLE, .d = 1e-7}, "1e-07"},
        {{.kind = OTTL_DOUBLE, .d = 1e21}, "1e+21"},
        {{.kind = OTTL_DOUBLE, .d = 123456789}, "123456789"},
        {{.kind = OTTL_TIME, .i = 0}, "\"1970-01-01T00:00:00Z\""},
        {{.kind = OTTL_TIME, .i = 1786000000123450000}, "\"2026-08-06T07:06:40.12345Z\""},
        {{.kind = OTTL_TIME, .i = -1}, "\"1969-12-31T23:59:59.999999999Z\""},
        {{.kind = OTTL_DURATION, .i = 65000000000}, "65000000000"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_text(a, cases[i].v, cases[i].want);
    assert_text(a, str("a\n<"), "a\n<");
    assert_text(a, of_kind(OTTL_BYTES, "\x01\x02\xff", 3), "0102ff");
    assert_text(a, of_kind(OTTL_BYTES, "", 0), "");
    assert_text(a, of_kind(OTTL_SPAN_ID, "\x01\x02\x03\x04\x05\x06\x07\xff", 8),
                "[1,2,3,4,5,6,7,255]");
}

static void test_json_texts(void **state)
{
    (void)state;
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    struct ottl_value odd = str("a\b\f\n\r\t\x01\x7f/<>&\"\\\xe2\x80\xa8\xff\xc3\xa9");
    struct ottl_value inner[] = {ottl_int(3), ottl_nil(), str("x"), ottl_double(2),
                                 ottl_bool(false)};
    assert_text(a, list(a, 1, &odd),
                "[\"a\\u0008\\u000c\\n\\r\\t\\u0001\x7f/\\u003c\\u003e\\u0026\\\"\\\\\\u2028"
                "\\ufffd\xc3\xa9\"]");
    struct ottl_value entries[] = {of_kind(OTTL_BYTES, "\x01\x02\xff", 3),
                                   of_kind(OTTL_BYTES, "", 0), list(a, 5, inner),
                                   map(a, 2, inner, true)};
    assert_text(a, map(a, 4, entries, true),
                "{\"a\":\"AQL/\",\"b\":null,\"c\":[3,null,\"x\",2,false],\"d\":{\"a\":3,\"b\":"
                "null}}");
    assert_text(a, map(a, 0, NULL, false), "{}");
    struct ottl_value twice = map(a, 1, inner, false);
    ottl_map_append(a, twice.map, bytes_str("a"), str("last"));
    assert_text(a, twice, "{\"a\":\"last\"}");
}

static void test_no_text(void **state)
{
    (void)state;
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    struct bytes text;
    bool nil;
    struct ottl_value v = ottl_nil();
    assert_int_equal(ottl_value_text(a, &v, &text, &nil), 0);
    assert_true(nil);
    v = ottl_double(NAN);
    assert_int_equal(ottl_value_text(a, &v, &text, &nil), -EINVAL);
    v = list(a, 1, &v);
    assert_int_equal(ottl_value_text(a, &v, &text, &nil), -EINVAL);
}

/* ---- comparison ---- */

/* The answers for == != < <= > >= as a string of 0 and 1. */
static void assert_compare(struct ottl_value x, struct ottl_value y, const char *want)
{
    char got[7] = "";
    for (int op = OTTL_EQ; op <= OTTL_GE; op++)
        got[op] = ottl_compare(&x, (enum ottl_compare_op)op, &y) ? '1' : '0';
    assert_string_equal(got, want);
}

static void test_compare(void **state)
{
    (void)state;
    static const char equal[] = "100101", less[] = "011100", more[] = "010011", none[] = "010000";
    assert_compare(ottl_int(1), ottl_int(1), equal);
    assert_compare(ottl_int(1), ottl_double(1.5), less);
    assert_compare(ottl_double(2), ottl_int(2), equal);
    assert_compare(ottl_double(NAN), ottl_double(NAN), none);
    assert_compare(str("b"), str("abc"), more);
    assert_compare(str("ab"), str("abc"), less);
    assert_compare(str(""), str(""), equal);
    assert_compare(ottl_bool(false), ottl_bool(true), less);
    assert_compare(of_kind(OTTL_BYTES, "\x80", 1), of_kind(OTTL_BYTES, "\x7f", 1), more);
    assert_compare(of_time(OTTL_TIME, -5), of_time(OTTL_TIME, 5), less);
    assert_compare(of_time(OTTL_DURATION, 5), of_time(OTTL_DURATION, 5), equal);
    assert_compare(of_time(OTTL_TIME, 5), of_time(OTTL_DURATION, 5), none);
    assert_compare(ottl_int(1), str("1"), none);
    assert_compare(ottl_bool(true), ottl_int(1), none);
    assert_compare(str("0102"), of_kind(OTTL_BYTES, "\x01\x02", 2), none);
    assert_compare(of_kind(OTTL_SPAN_ID, "12345678", 8), of_kind(OTTL_SPAN_ID, "12345678", 8),
                   "100000");
    assert_compare(of_kind(OTTL_SPAN_ID, "12345678", 8), of_kind(OTTL_BYTES, "12345678", 8), none);
}

static void test_compare_nil(void **state)
{
    (void)state;
    struct ottl_value empty = of_kind(OTTL_BYTES, "", 0);
    assert_compare(ottl_nil(), ottl_nil(), "100101");
    assert_compare(ottl_nil(), str(""), "010000");
    assert_compare(ottl_int(0), ottl_nil(), "010000");
    assert_compare(empty, ottl_nil(), "100101");
    assert_compare(ottl_nil(), empty, "100101");
    assert_compare(empty, of_kind(OTTL_BYTES, "x", 1), "010000");
}

static void test_compare_trees(void **state)
{
    (void)state;
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    struct ottl_value v[] = {ottl_int(1), str("x"), ottl_nil(), ottl_double(1)};
    assert_compare(list(a, 4, v), list(a, 4, v), "100000");
    assert_compare(list(a, 4, v), list(a, 3, v), "010000");
    assert_compare(list(a, 1, v), list(a, 1, v + 3), "010000"); /* 1 is not 1.0 in there */
    assert_compare(map(a, 4, v, false), map(a, 4, v, true), "100000");
    assert_compare(map(a, 4, v, false), map(a, 3, v, false), "010000");
    assert_compare(map(a, 1, v, false), list(a, 1, v), "010000");
}

/* ---- bytes ---- */

static void test_wire(void **state)
{
    (void)state;
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    _cleanup_buf_ struct buf *b = buf_new(0), *again = buf_new(0);
    struct ottl_value inner[] = {ottl_int(-1),     str(""),        ottl_nil(),
                                 ottl_bool(false), ottl_double(0), of_kind(OTTL_BYTES, "\0\1", 2)};
    struct ottl_value both[] = {list(a, 6, inner), map(a, 6, inner, true), list(a, 0, inner)};
    struct ottl_value v = map(a, 3, both, false), back;
    assert_int_equal(ottl_value_encode(&v, b), 0);
    assert_int_equal(ottl_value_decode(a, buf_bytes(b), &back), 0);
    assert_true(ottl_compare(&v, OTTL_EQ, &back));
    assert_int_equal(ottl_value_encode(&back, again), 0);
    assert_true(bytes_eq(buf_bytes(b), buf_bytes(again)));
    /* as attributes of a record, beside other fields */
    buf_truncate(b, 0);
    assert_int_equal(buf_append(b, "\x08\x05", 2), 0);
    assert_int_equal(ottl_map_encode(v.map, 7, b), 0);
    struct ottl_map *m;
    assert_int_equal(ottl_map_decode(a, buf_bytes(b), 7, &m), 0);
    struct ottl_value attributes = {.kind = OTTL_MAP, .map = m};
    assert_true(ottl_compare(&v, OTTL_EQ, &attributes));
}

static void test_wire_refused(void **state)
{
    (void)state;
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    _cleanup_buf_ struct buf *b = buf_new(0);
    struct ottl_value v = of_time(OTTL_TIME, 5);
    assert_int_equal(ottl_value_encode(&v, b), -EINVAL);
    v = of_kind(OTTL_SPAN_ID, "12345678", 8);
    v = list(a, 1, &v);
    assert_int_equal(ottl_value_encode(&v, b), -EINVAL);
    v = ottl_nil();
    for (int i = 0; i < 64; i++)
        v = list(a, 1, &v);
    assert_int_equal(ottl_value_encode(&v, b), 0);
    v = map(a, 1, &v, false);
    assert_int_equal(ottl_value_encode(&v, b), -EINVAL);
}

static void test_copy(void **state)
{
    (void)state;
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    char text[] = "text";
    struct ottl_value inner[] = {str(text), ottl_int(1)};
    struct ottl_value both[] = {list(a, 2, inner), map(a, 2, inner, false)};
    struct ottl_value v = list(a, 2, both), copy;
    assert_int_equal(ottl_value_copy(a, &v, &copy), 0);
    assert_true(ottl_compare(&v, OTTL_EQ, &copy));
    text[0] = 'n';
    assert_false(ottl_compare(&v, OTTL_EQ, &copy));
    both[0].list->n = 0;
    assert_int_equal(copy.list->items[0].list->n, 2);
}

static void test_civil(void **state)
{
    (void)state;
    assert_int_equal(civil_days(1970, 1, 1), 0);
    assert_int_equal(civil_days(2000, 2, 30), civil_days(2000, 3, 1));
    assert_int_equal(civil_days(2026, 14, 1), civil_days(2027, 2, 1));
    assert_int_equal(civil_days(1, 1, 1), -719162);
    assert_int_equal(civil_days_in_month(1900, 2), 28);
    assert_int_equal(civil_days_in_month(2000, 2), 29);
    assert_int_equal(civil_days_in_month(2026, 12), 31);
    int64_t last = civil_days(1677, 9, 22);
    for (int64_t day = last; day < civil_days(2262, 4, 11); day++) {
        struct civil c = civil_from_ns(day * 86400000000000);
        assert_int_equal(civil_days(c.year, c.month, c.day), day);
        assert_int_equal(c.yearday - 1, day - civil_days(c.year, 1, 1));
    }
    struct civil c = civil_from_ns(-1);
    assert_int_equal(c.weekday, 3);
    assert_int_equal(c.nanosecond, 999999999);
    int64_t ns;
    assert_true(civil_to_ns(9223372036, 854775807, &ns));
    assert_false(civil_to_ns(9223372036, 854775808, &ns));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map),         cmocka_unit_test(test_texts),
        cmocka_unit_test(test_index),       cmocka_unit_test(test_json_texts),
        cmocka_unit_test(test_no_text),     cmocka_unit_test(test_compare),
        cmocka_unit_test(test_compare_nil), cmocka_unit_test(test_compare_trees),
        cmocka_unit_test(test_wire),        cmocka_unit_test(test_wire_refused),
        cmocka_unit_test(test_copy),        cmocka_unit_test(test_civil),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
