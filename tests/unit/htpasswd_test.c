/* htpasswd lines: codes made by other programs (openssl passwd, crypt(3), htpasswd), which line
 * counts, which is left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "extensions/basicauth/htpasswd.h"

#define LONG                                                                                       \
    "LLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLL"                                           \
    "LLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLL"

static void test_codes(void **state)
{
    (void)state;
    static const struct {
        const char *code, *password;
        bool slow;
    } rows[] = {
        {"$apr1$salt1234$gRgknBuRRKAbxBhHT9pVt/", "correct horse", true},
        {"$apr1$salt1234$5H34QiH40LY95k4Ru.Rsw0", "", true},
        {"$apr1$salt1234$qJ8NZ7jNNCAurSLUEhmRD1", "x", true},
        {"$apr1$salt1234$URYkWM6cZNXLFpuH2M3R40", "0123456789abcdef0", true},
        {"$apr1$salt1234$OvEIQHVus2lm1vXzACB.00", LONG, true},
        {"$apr1$ab$O47jKq3Dn3SureQLnYY140", "sekret", true},
        {"$1$salt1234$.ZUnNlw470TrxylqTCoiC1", "correct horse", true},
        {"$5$salt$VceWD7himthAFDjAznpLECWSsOgDma/ItrVvf6K05b4", "correct horse", true},
        {"$6$salt$pfWEh40/"
         "jW3sybE9zOQ9fIpZ9F6fyy/jogzYisHAyINpuc9icJd187oNK8pukepHV.QSHFtNVGUeWCRJCE9G4/",
         "correct horse", true},
        {"$2y$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e", "correct horse", true},
        {"$2b$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2", "correct horse", true},
        {"{SHA}L55TUjtiq8FBorTWAZ0jy6g129A=", "correct horse", false},
        {"{SSHA}LhKrkM9Fy+zlstjdD7Kv2s6QvhBzYWx0", "correct horse", false},
        {"correct horse", "correct horse", false},
        {"with:colons:in", "with:colons:in", false},
        {"{PLAIN}correct horse", "correct horse", false},
        {"{PLAIN}correct horse", "{PLAIN}correct horse", false},
    };
    char wrong[HTPASSWD_PASSWORD_MAX + 2];
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (htpasswd_is_slow(rows[i].code) != rows[i].slow ||
            !htpasswd_match(rows[i].code, rows[i].password))
            fail_msg("%s", rows[i].code);
        snprintf(wrong, sizeof(wrong), "%s!", rows[i].password);
        if (htpasswd_match(rows[i].code, wrong) || htpasswd_match(rows[i].code, "Correct horse"))
            fail_msg("%s takes a wrong password", rows[i].code);
    }
    memset(wrong, 'a', sizeof(wrong) - 1);
    wrong[sizeof(wrong) - 1] = 0;
    assert_false(htpasswd_match(wrong, wrong)); /* longer than any password */
    assert_false(htpasswd_match("$apr1$nodollar", "x"));
    assert_false(htpasswd_match("$2y$04$tooshort", "x"));
    assert_false(htpasswd_match("{SHA}AAAA", "x"));
}

static void test_lines(void **state)
{
    (void)state;
    char text[] = "\n  alice:first  \r\n"
                  "no colon\n"
                  "bob:$2y$31$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e\n" /* years */
                  "bob:$6$rounds=999999999$salt$x\n"
                  "carol:{SHA}nonsense\n"
                  "dave:a:b:c\n"
                  "alice:second\n"
                  ":empty name\n";
    struct htpasswd h = {0};
    assert_int_equal(htpasswd_parse(&h, text), 0);
    assert_int_equal(h.bad, 4);
    assert_int_equal(h.n, 4);
    assert_string_equal(htpasswd_find(&h, bytes_str("alice"))->code, "second");
    assert_string_equal(htpasswd_find(&h, bytes_str("dave"))->code, "a:b:c");
    assert_string_equal(htpasswd_find(&h, bytes_str(""))->code, "empty name");
    assert_null(htpasswd_find(&h, bytes_str("bob")));
    assert_null(htpasswd_find(&h, bytes_str("alic")));
    htpasswd_done(&h);
    assert_null(htpasswd_find(&h, bytes_str("alice")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
