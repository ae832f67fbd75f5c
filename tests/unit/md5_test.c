/* MD5 against RFC 1321, A.5, and lengths around the block. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/encode.h"
#include "agent/base/md5.h"

static void expect(struct bytes text, const char *want)
{
    uint8_t sum[MD5_BYTES];
    char hex[2 * MD5_BYTES + 1] = "";
    md5(text, sum);
    encode_hex(bytes_of(sum, sizeof(sum)), hex);
    assert_string_equal(hex, want);
}

static void test_rfc(void **state)
{
    (void)state;
    expect(bytes_str(""), "d41d8cd98f00b204e9800998ecf8427e");
    expect(bytes_str("a"), "0cc175b9c0f1b6a831c399e269772661");
    expect(bytes_str("abc"), "900150983cd24fb0d6963f7d28e17f72");
    expect(bytes_str("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
    expect(bytes_str("abcdefghijklmnopqrstuvwxyz"), "c3fcd3d76192e4007dfb496cca67e13b");
    expect(bytes_str("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"),
           "d174ab98d277d9f5a5611c2c9f419d9f");
    expect(bytes_str("1234567890123456789012345678901234567890123456789012345678901234567890123456"
                     "7890"),
           "57edf4a22be3c955ac49da2e2107b67a");
}

static void test_block_ends(void **state)
{
    (void)state;
    char x[130];
    memset(x, 'x', sizeof(x));
    expect(bytes_of(x, 55), "04364420e25c512fd958a70738aa8f72");
    expect(bytes_of(x, 56), "668a72d5ba17f08e62dabcafad6db14b");
    expect(bytes_of(x, 57), "693037871c4a9d3d8685018905cb530a");
    expect(bytes_of(x, 63), "7dc2ca208106a2f703567bdff99d8981");
    expect(bytes_of(x, 64), "c1bb4f81d892b2d57947682aeb252456");
    expect(bytes_of(x, 65), "1bc932052302d074bdec39795fe00cf6");
    expect(bytes_of(x, 119), "ab347a5f68c8a443cfcddc633f12c24f");
    expect(bytes_of(x, 120), "fb98667f98096de92620b64f46e1c5b5");
    expect(bytes_of(x, 128), "d69cb61a6ee87200676eb0d4b90edbcb");
    expect(bytes_of(x, 130), "cfc92f41305ca00c9f9584bf67ae1b54");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rfc),
                                       cmocka_unit_test(test_block_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
