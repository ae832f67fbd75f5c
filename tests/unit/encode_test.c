/* Decimal, hex and base64 text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/cleanup.h"
#include "agent/base/encode.h"

static void test_decimal(void **state)
{
    (void)state;
    static const int64_t numbers[] = {0,   1,   9,    10,        11,        99,
                                      100, 101, 999,  1000,      9999,      10000,
                                      -1,  -10, -100, INT64_MAX, INT64_MIN, INT32_MIN};
    char got[24], want[24];
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        got[encode_int(numbers[i], got)] = 0;
        snprintf(want, sizeof(want), "%lld", (long long)numbers[i]);
        assert_string_equal(got, want);
        got[encode_uint((uint64_t)numbers[i], got)] = 0;
        snprintf(want, sizeof(want), "%llu", (unsigned long long)numbers[i]);
        assert_string_equal(got, want);
    }
}

/* Around every power of ten. */
static void test_lengths(void **state)
{
    (void)state;
    char got[24], want[24];
    for (uint64_t power = 1, last = 0; power > last; last = power, power *= 10)
        for (uint64_t v = power - 1; v <= power + 1; v++) {
            snprintf(want, sizeof(want), "%llu", (unsigned long long)v);
            assert_int_equal(encode_uint(v, got), strlen(want));
            assert_memory_equal(got, want, strlen(want));
        }
    for (uint64_t v = 1, i = 0; i < 100000;
         i++, v = v * 6364136223846793005 + 1442695040888963407) {
        snprintf(want, sizeof(want), "%llu", (unsigned long long)(v >> i % 64));
        assert_int_equal(encode_uint(v >> i % 64, got), strlen(want));
        assert_memory_equal(got, want, strlen(want));
    }
}

static void test_hex_lengths(void **state)
{
    (void)state;
    uint8_t bytes[21];
    char got[44], want[44];
    for (unsigned first = 0; first < 256; first++)
        for (size_t n = 0; n <= sizeof(bytes); n++) {
            for (size_t i = 0; i < n; i++) {
                bytes[i] = (uint8_t)(first + 37 * i);
                snprintf(want + 2 * i, 3, "%02x", bytes[i]);
            }
            encode_hex(bytes_of(bytes, n), got);
            assert_memory_equal(got, want, 2 * n);
        }
}

static void test_hex(void **state)
{
    (void)state;
    const uint8_t bytes[] = {0x00, 0x01, 0x7f, 0x80, 0xab, 0xff};
    char text[12];
    uint8_t back[6];
    encode_hex(bytes_of(bytes, 6), text);
    assert_memory_equal(text, "00017f80abff", 12);
    assert_true(decode_hex(bytes_str("00017F80AbfF"), back));
    assert_memory_equal(back, bytes, 6);
    assert_false(decode_hex(bytes_str("0g"), back));
    assert_false(decode_hex(bytes_str("012"), back));
    assert_false(decode_hex(bytes_str("@0"), back));
    assert_true(decode_hex(bytes_str(""), back));
}

static void test_base64(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"},
                                           {"\xff\xfe\xfd", "//79"}};
    static const char *const bad[] = {
        "Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Z g=", "_-79", "Zm9v\n", "Zm=v"};
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        char text[16];
        uint8_t back[16];
        size_t n;
        encode_base64(bytes_str(pairs[i][0]), text);
        assert_int_equal(base64_size(strlen(pairs[i][0])), strlen(pairs[i][1]));
        assert_memory_equal(text, pairs[i][1], strlen(pairs[i][1]));
        assert_true(decode_base64(bytes_str(pairs[i][1]), back, &n));
        assert_true(bytes_eq(bytes_of(back, n), bytes_str(pairs[i][0])));
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        uint8_t back[16];
        size_t n;
        assert_false(decode_base64(bytes_str(bad[i]), back, &n));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decimal),     cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_hex_lengths), cmocka_unit_test(test_hex),
        cmocka_unit_test(test_base64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
