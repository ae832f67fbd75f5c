/* SHA-256: the examples of FIPS 180-4 and every length around a block, against a second
 * implementation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <gnutls/crypto.h>

#include "agent/base/sha256.h"

static void test_examples(void **state)
{
    (void)state;
    char hex[65] = "";
    sha256_hex(bytes_of(NULL, 0), hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sha256_hex(bytes_str("abc"), hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void test_lengths(void **state)
{
    (void)state;
    uint8_t text[300], got[32], want[32];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (uint8_t)(i * 7);
    for (size_t n = 0; n <= sizeof(text); n++) {
        sha256(bytes_of(text, n), got);
        assert_int_equal(gnutls_hash_fast(GNUTLS_DIG_SHA256, text, n, want), 0);
        assert_memory_equal(got, want, sizeof(got));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples),
                                       cmocka_unit_test(test_lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
