/* Wire format: what is written reads back; malformed bytes are told apart from the end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/any_value.h"
#include "proto/wire_skip.h"

static const uint64_t numbers[] = {0, 1, 127, 128, 300, 16383, 16384, UINT32_MAX, INT64_MAX, UINT64_MAX};

static void test_varints(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        _cleanup_buf_ struct buf *b = buf_new(0);
        struct wire_field f;
        assert_int_equal(wire_put_varint(b, numbers[i]), 0);
        assert_int_equal(b->len, wire_varint_size(numbers[i]));
        buf_truncate(b, 0);
        assert_int_equal(wire_put_uint(b, 16, numbers[i]), 0);
        struct wire_reader r = wire_reader(buf_bytes(b));
        assert_int_equal(wire_next(&r, &f), 1);
        assert_int_equal(f.number, 16);
        assert_int_equal(f.type, WIRE_VARINT);
        assert_true(f.value == numbers[i]);
        assert_int_equal(f.whole.len, b->len);
        assert_int_equal(wire_next(&r, &f), 0);
    }
}

static void test_all_types(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *b = buf_new(0);
    wire_put_fixed64(b, 1, 0x1122334455667788);
    wire_put_fixed32(b, 2, 0x11223344);
    wire_put_double(b, 3, -2.5);
    wire_put_str(b, 4, "first");
    wire_put_bytes(b, 4, bytes_of("a\0b", 3));
    struct wire_field f;
    assert_true(wire_find(buf_bytes(b), 1, &f) && f.value == 0x1122334455667788);
    assert_true(wire_find(buf_bytes(b), 2, &f) && f.value == 0x11223344 && f.type == WIRE_I32);
    assert_true(wire_find(buf_bytes(b), 3, &f) && wire_double(f.value) == -2.5);
    assert_true(wire_find(buf_bytes(b), 4, &f) && bytes_eq(f.bytes, bytes_of("a\0b", 3)));
    assert_false(wire_find(buf_bytes(b), 5, &f));
}

static void test_nesting(void **state)
{
    (void)state;
    for (size_t len = 0; len < 70000; len = len * 3 + 1) {
        _cleanup_buf_ struct buf *b = buf_new(0);
        _cleanup_free_ char *text = calloc(1, len + 1);
        struct wire_field f;
        size_t outer, inner;
        assert_int_equal(wire_begin(b, 2, &outer), 0);
        assert_int_equal(wire_begin(b, 31, &inner), 0);
        assert_int_equal(buf_append(b, text, len), 0);
        assert_int_equal(wire_end(b, inner), 0);
        assert_int_equal(wire_put_uint(b, 1, 7), 0);
        assert_int_equal(wire_end(b, outer), 0);
        assert_true(wire_find(buf_bytes(b), 2, &f));
        assert_int_equal(f.whole.len, b->len);
        struct bytes in = f.bytes;
        assert_true(wire_find(in, 31, &f));
        assert_int_equal(f.bytes.len, len);
        assert_true(wire_find(in, 1, &f) && f.value == 7);
    }
}

static void test_malformed(void **state)
{
    (void)state;
    static const struct {
        const char *data;
        size_t len;
    } bad[] = {
        {"\x00\x01", 2},                                             /* field number 0 */
        {"\x0b", 1},                                                 /* group */
        {"\x0e\x01", 2},                                             /* wire type 6 */
        {"\x08", 1},                                                 /* no value */
        {"\x09\1\2\3\4\5\6\7", 8},                                   /* 7 of 8 bytes */
        {"\x0d\1\2\3", 4},                                           /* 3 of 4 bytes */
        {"\x0a\x05"
         "abcd", 6},                                                 /* longer than the rest */
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},        /* length beyond memory */
        {"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12},    /* varint of 11 bytes */
        {"\x88\x80\x80\x80\x10\x01", 6},                             /* tag above 32 bits */
        {"\x88", 1},                                                 /* cut in the tag */
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct wire_reader r = wire_reader(bytes_of(bad[i].data, bad[i].len));
        struct wire_field f;
        assert_int_equal(wire_next(&r, &f), -EBADMSG);
    }
}

static void test_limit(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *b = buf_new(4);
    size_t mark;
    assert_int_equal(wire_put_str(b, 1, "abc"), -EMSGSIZE);
    assert_int_equal(b->len, 0);
    assert_int_equal(wire_begin(b, 1, &mark), 0);
    assert_int_equal(buf_append(b, "ab", 2), 0);
    assert_int_equal(wire_put_varint(b, 1), -EMSGSIZE);
}

/* ---- against a reader that knows no short ways ---- */

static bool plain_varint(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
    *ret = 0;
    for (unsigned i = 0; i < 10 && *p < end; i++) {
        uint8_t byte = *(*p)++;
        *ret |= (uint64_t)(byte & 0x7f) << 7 * i;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool plain_fixed(const uint8_t **p, const uint8_t *end, size_t n, uint64_t *ret)
{
    *ret = 0;
    if ((size_t)(end - *p) < n)
        return false;
    for (size_t i = 0; i < n; i++)
        *ret |= (uint64_t)*(*p)++ << 8 * i;
    return true;
}

/* What wire_next() should say. */
static int plain_next(struct bytes msg, struct wire_field *ret)
{
    const uint8_t *p = msg.data, *end = msg.data + msg.len;
    uint64_t tag, len;
    if (msg.len == 0)
        return 0;
    if (!plain_varint(&p, end, &tag) || tag < 8 || tag > UINT32_MAX)
        return -EBADMSG;
    *ret = (struct wire_field){.number = (uint32_t)(tag >> 3), .type = (enum wire_type)(tag & 7)};
    bool good = false;
    switch (tag & 7) {
    case WIRE_VARINT: good = plain_varint(&p, end, &ret->value); break;
    case WIRE_I64: good = plain_fixed(&p, end, 8, &ret->value); break;
    case WIRE_I32: good = plain_fixed(&p, end, 4, &ret->value); break;
    case WIRE_LEN:
        good = plain_varint(&p, end, &len) && len <= (uint64_t)(end - p);
        ret->bytes = bytes_of(p, good ? (size_t)len : 0);
        p += ret->bytes.len;
        break;
    default: break;
    }
    ret->whole = bytes_of(msg.data, (size_t)(p - msg.data));
    return good ? 1 : -EBADMSG;
}

static bool same_field(const struct wire_field *a, const struct wire_field *b)
{
    return a->number == b->number && a->type == b->type && a->whole.data == b->whole.data && a->whole.len == b->whole.len &&
           (a->type == WIRE_LEN ? a->bytes.data == b->bytes.data && a->bytes.len == b->bytes.len : a->value == b->value);
}

/* The first field `number`, and how many stand before it; false when there is none before the end or a mistake. */
static bool plain_seek(struct bytes msg, uint32_t number, struct wire_field *ret, uint32_t *ret_passed)
{
    for (*ret_passed = 0; plain_next(msg, ret) > 0; ++*ret_passed) {
        if (ret->number == number)
            return true;
        msg = bytes_of(msg.data + ret->whole.len, msg.len - ret->whole.len);
    }
    return false;
}

static void compare_all(struct bytes msg)
{
    struct wire_reader r = wire_reader(msg), again = r;
    for (int n = 1; n > 0;) {
        struct wire_field want = {0}, got = {0};
        const struct bytes rest = bytes_of(r.p, (size_t)(r.end - r.p));
        n = plain_next(rest, &want);
        const uint8_t *skipped = rest.len ? wire_skip(r.p, r.end) : NULL;
        assert_ptr_equal(skipped, n > 0 ? want.whole.data + want.whole.len : NULL);
        assert_int_equal(wire_next(&r, &got), n);
        assert_true(n <= 0 || same_field(&want, &got));
        assert_true(n <= 0 || r.p == skipped);
    }
    for (uint32_t number = 0; number < 20; number++) {
        struct wire_field want, got;
        uint32_t before, passed;
        const bool there = plain_seek(msg, number, &want, &before);
        r = again;
        assert_int_equal(wire_seek(&r, number, &got, &passed), there);
        assert_true(!there || (same_field(&want, &got) && passed == before && r.p == got.whole.data + got.whole.len));
    }
}

static void test_random(void **state)
{
    (void)state;
    /* tags, lengths, and what makes varints long */
    static const uint8_t likely[] = {0x0a, 0x08, 0x09, 0x0d, 0x12, 0x4a, 0x7a, 0x82, 0x80, 0x01, 0x00, 0x02, 0x05, 0xff, 0x0b, 0x7f};
    uint64_t seed = 1;
    for (int i = 0; i < 200000; i++) {
        uint8_t text[40];
        const size_t len = (size_t)(i % (int)sizeof(text));
        for (size_t k = 0; k < len; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[k] = seed >> 62 ? likely[seed >> 33 & 15] : (uint8_t)(seed >> 40);
        }
        _cleanup_free_ uint8_t *exact = malloc(len + 1); /* for ASan */
        memcpy(exact + 1, text, len);
        compare_all(bytes_of(exact + 1, len));
    }
    compare_all(bytes_of(NULL, 0));
}

/* ---- KeyValues by their key ---- */

static void put_kv(struct buf *b, uint32_t number, const char *key, size_t value_len, bool value_first)
{
    static const char text[300];
    size_t mark;
    wire_begin(b, number, &mark);
    if (value_first)
        wire_put_bytes(b, 2, bytes_of(text, value_len));
    if (key)
        wire_put_str(b, 1, key);
    if (!value_first)
        wire_put_bytes(b, 2, bytes_of(text, value_len));
    wire_end(b, mark);
}

static void test_keys(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *b = buf_new(0);
    char long_key[200];
    memset(long_key, 'k', sizeof(long_key) - 1);
    long_key[sizeof(long_key) - 1] = 0;
    wire_put_uint(b, 1, 5);
    wire_put_fixed64(b, 7, 5);
    put_kv(b, 9, "ab", 1, false);
    put_kv(b, 3, "same.key", 2, false); /* of another number */
    put_kv(b, 9, "some.key", 3, false);
    put_kv(b, 9, "same.kez", 4, false);
    put_kv(b, 9, "same.key", 5, false);
    put_kv(b, 9, "same.key", 6, false); /* not seen: the first one counts */
    put_kv(b, 9, "big", 200, false);
    put_kv(b, 9, "late", 7, true);
    put_kv(b, 9, NULL, 8, false);
    put_kv(b, 9, long_key, 9, false);
    wire_put_bytes(b, 9, bytes_str(""));
    const struct {
        const char *key;
        uint32_t passed;
        size_t value_len;
    } cases[] = {{"ab", 2, 1}, {"some.key", 4, 3}, {"same.kez", 5, 4}, {"same.key", 6, 5}, {"big", 8, 200}, {"late", 9, 7},
                 {"", 10, 8}, {long_key, 11, 9}, {"same.kex", 0, 0}, {"a", 0, 0}, {"abc", 0, 0}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct wire_reader r = wire_reader(buf_bytes(b));
        struct key_value kv = {.value.len = 0};
        uint32_t passed = 0;
        const bool found = key_value_seek(&r, 9, bytes_str(cases[i].key), &kv, &passed);
        assert_int_equal(found, cases[i].value_len > 0);
        assert_int_equal(passed, cases[i].passed);
        assert_int_equal(kv.value.len, cases[i].value_len);
        assert_true(found ? bytes_eq_str(kv.key, cases[i].key) : r.p == r.end);
    }
    struct wire_reader none = wire_reader(bytes_of(NULL, 0));
    struct key_value kv;
    uint32_t passed;
    assert_false(key_value_seek(&none, 9, bytes_str("ab"), &kv, &passed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_varints), cmocka_unit_test(test_all_types), cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_malformed), cmocka_unit_test(test_limit),
        cmocka_unit_test(test_random),  cmocka_unit_test(test_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
