/* Wire format: what is written reads back; malformed bytes are told apart from the end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/wire.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_varints), cmocka_unit_test(test_all_types), cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_malformed), cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
