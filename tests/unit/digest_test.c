/* MD5, SHA-1 and SHA-512 of texts of lengths around the borders of blocks, against Python's
 * hashlib; SHA-256 of the examples of FIPS 180-4 and of every length around a block, against a
 * second library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <gnutls/crypto.h>

#include "agent/base/digest.h"
#include "agent/base/encode.h"

/* The text has the bytes (7 i + length) mod 251. */
static const struct {
    size_t length;
    const char *md5, *sha1, *sha512;
} cases[] = {
    {0, "d41d8cd98f00b204e9800998ecf8427e", "da39a3ee5e6b4b0d3255bfef95601890afd80709",
     "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877ee"
     "c2f63b931bd47417a81a538327af927da3e"},
    {1, "55a54008ad1ba589aa210d2629c1df41", "bf8b4530d8d246dd74ac53a13471bba17941dff7",
     "7b54b66836c1fbdd13d2441d9e1434dc62ca677fb68f5fe66a464baadecdbd00576f8d6b5ac3bcc80844b7d50b1cc"
     "6603444bbe7cfcf8fc0aa1ee3c636d9e339"},
    {3, "c9aee4810523ef8658121b8d492c6b41", "4201de9f98cb0a9b8cf52398be7802b55d45266a",
     "8853167ab14c043919981a6409307ef68b5b726f4b80dcab259daa24b7cabcb8b4bbfd3e2e36ed98465059661f672"
     "e6529cdcc673e7eabfa78dd3186745b112a"},
    {55, "c4f7a596fd044675728399e605766107", "04f893eac3e6c3714b48ab7525103f7327b45271",
     "df3185830724d08f9e09b9fdf9d3d10a9e87dd98eb54c43609eaaacdfe51c7d999beeb21d24bd98a65788b11e2e53"
     "ce50688b24a04931649040103b3d2dc3f67"},
    {56, "870790e1df8b8ea4beb3e002d45cf18d", "5b05376842a5618186792e2ba9882a47ab8a8f61",
     "d0f1aed94332efa5639957d97d9a8e322180779a58d64f00c0127f72c6bf7913c7d41194e17313c20dab21e85c0f6"
     "7dbe80db84099f97ec690e2136484d21a05"},
    {63, "87d902f847f4e841f5ff6061bd6d6e33", "bc8885075e915702462e23b6c0f2c099b9d721ca",
     "5b77430c315188a0972b7c7f4bb062a59a561e727f12ee034701a50432009076ce223dd8e22bd23e293598b368c42"
     "776f33b116d877e4ee123d25d3fee181fec"},
    {64, "d53d88b9c478672e5fb200324158f02e", "6304fccb5005d7307678d2013e0e243c3054db5c",
     "61fe5b07f18f84c99cdc1c47a35b06e5832d7b1bf3849b70574314a6ec7964b139f5cc364df1aedc57a6da4ede88e"
     "5e4ffc56e57e07dab51e93704b558d73ce5"},
    {65, "f86b3cccf8ef12ea82a505632db0e9b4", "044772bb5a735b181623d9a5b4d4e55dcda6e0b4",
     "d8f076835f32073a6b30a53fa77391ed3a1777a7329f460330180727521a88878c2504589bf9391ce45d5fe2f1599"
     "a24397170ba99c679b28c33c30f3de61f7d"},
    {111, "985f5a5db77bd557502a67b4ffe6bf77", "6db1c586c085b702459022039fb7569c681c7f9b",
     "a1954c0d7783ec96f5c6c98500f3b1c77e759f19858e57744a8f20f80d16eb6ac08033eb24932e2f17bddcc9eeaff"
     "9054dd5c37674aa1334f798fc5fb153581d"},
    {112, "32dc60559b81610c8e3740cc0fe93349", "39304f048c4106860960e7d97335a829864b9db2",
     "8b86de42105c9f404d924fd0d6586c05d41a5819fa94d464719c35f8bacad9765f1d27ec066534dfead6c82fadf2f"
     "fb6fb291b5b6330dec050fc7238cce92a1d"},
    {119, "5a74003039c1d72a88148184ab24559a", "cd5b017eba674e96bddd0b78cbbada2dfe731030",
     "62637cd985654b95ca6f5034aa70b5bedcf8f867b23235df6197670b427829e169d91a0b73f79319a3d3b818fadfd"
     "401845114b5ef3f5ce15c2c071abe1521d9"},
    {120, "f9b7a40763fc0331e10dacd92aa5c3ce", "8d376d7d411a376cb262704eb6cdfb956839ac8f",
     "db4fa2fea1f8137eccb6a4d40c3b9946d352a67777d3a8d20360c88f84132adafb7634688a4d9f2510f55fc298458"
     "a073e34d23e9d0d8dad757238a7f39438c6"},
    {127, "0ab050c8e2b460f20997f92fcba5a874", "1b79872c0b6075124af20b6a3cff7d2ee37b4171",
     "ce36abda2e8f4351e53158bae652968d524210b35ef2896bddc1cd5884409548e38100b4f60640e45a7a0719ab4b9"
     "de1e716d222752681fd783bee460422e319"},
    {128, "921f0558bc42b9779a5f0b62c383f1cb", "def0a6760ecba9b705b0eb5b458c81af717db1f9",
     "75c0103fe76fbddfe44f5ddbfd09beedb619570de00e1b1ee43ef688986e89fcc408b32bd4543c6b08287c88c2b54"
     "3a81cede0f85b37cd1527f0d74977d28142"},
    {129, "7cdeee8a019e07346948acf5cdf67226", "c906373caba36b1d29b181203a5fd4ed0e0d10e5",
     "84dc1ebf8f8cec5e5f0e0f93ac5751b52588e0b0f650b5b799852f701a76be74a7accecc6d867f0fa8494843210f7"
     "d86fb7d10936150700027b0c73a70ef6115"},
    {1000, "05057e6e220d85a40445833ab84fa26b", "7f9bb0e12f465c85f91c9d1d61070d1af6e7182c",
     "4ef789652c0eab8b3094e82315fb3bc2f66c6b0b0d51611ad327a915dc6e15a6cae15e2ce75e72ee77454e2e0a9a0"
     "1de2606984ac5e1977ac19e2ff06851e6cc"},
};

static void assert_digest(const uint8_t *got, size_t n, const char *want)
{
    char hex[2 * SHA512_BYTES + 1] = "";
    encode_hex(bytes_of(got, n), hex);
    hex[2 * n] = 0;
    assert_string_equal(hex, want);
}

static void test_lengths(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint8_t text[1000], got[SHA512_BYTES];
        struct bytes b = bytes_of(text, cases[i].length);
        for (size_t k = 0; k < b.len; k++)
            text[k] = (uint8_t)((k * 7 + b.len) % 251);
        digest_md5(b, got);
        assert_digest(got, MD5_BYTES, cases[i].md5);
        digest_sha1(b, got);
        assert_digest(got, SHA1_BYTES, cases[i].sha1);
        digest_sha512(b, got);
        assert_digest(got, SHA512_BYTES, cases[i].sha512);
    }
}

static void test_sha256_examples(void **state)
{
    (void)state;
    char hex[65] = "";
    digest_sha256_hex(bytes_of(NULL, 0), hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    digest_sha256_hex(bytes_str("abc"), hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void test_sha256_lengths(void **state)
{
    (void)state;
    uint8_t text[300], got[SHA256_BYTES], want[SHA256_BYTES];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (uint8_t)(i * 7);
    for (size_t n = 0; n <= sizeof(text); n++) {
        digest_sha256(bytes_of(text, n), got);
        assert_int_equal(gnutls_hash_fast(GNUTLS_DIG_SHA256, text, n, want), 0);
        assert_memory_equal(got, want, sizeof(got));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lengths),
                                       cmocka_unit_test(test_sha256_examples),
                                       cmocka_unit_test(test_sha256_lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
