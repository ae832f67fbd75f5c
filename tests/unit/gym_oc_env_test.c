/* ${oc.env:…} as OmegaConf reads it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "agent/base/secrets.h"
#include "agent/gym/oc_env.h"

static char *const environment[] = {"A=one",  "B=two words", "EMPTY=",         "REF=${oc.env:A}",
                                    "NAME=A", "A_LONGER=x",  "TOKEN=tok-1234", NULL};

static const struct {
    const char *text, *want; /* want NULL = null */
} cases[] = {
    {"", ""},
    {"plain", "plain"},
    {"a\\b $A $(A) {A}", "a\\b $A $(A) {A}"},
    {"${oc.env:A}", "one"},
    {"${oc.env:B}", "two words"},
    {"${oc.env:EMPTY}", ""},
    {"${oc.env:EMPTY,default}", ""},
    {"${ oc.env : A }", "one"},
    {"x-${oc.env:A}-${oc.env:B}-y", "x-one-two words-y"},
    {"${oc.env:REF}", "${oc.env:A}"}, /* a value is not looked at again */
    /* defaults */
    {"${oc.env:NO,x}", "x"},
    {"${oc.env:A,x}", "one"},
    {"${oc.env:NO,}", ""},
    {"${oc.env:NO, two words }", "two words"},
    {"${oc.env:NO,http://host:4317/a-b_c?d=%20&e}", "http://host:4317/a-b_c?d=%20&e"},
    {"${oc.env:NO,'a, b}'}", "a, b}"},
    {"${oc.env:NO,\" a \"}", " a "},
    {"${oc.env:NO,\"it's \\\"so\\\"\"}", "it's \"so\""},
    {"${oc.env:NO,a\\,b\\}c}", "a,b}c"},
    {"${oc.env:NO,0.50}", "0.50"},
    {"${oc.env:NO,null}", NULL},
    {"${oc.env:NO,NULL}", NULL},
    {"${oc.env:NO,'null'}", "null"},
    {"${oc.env:NO,nullify}", "nullify"},
    {"x${oc.env:NO,null}", "x"},
    {"${oc.env:NO,null}${oc.env:A}", "one"},
    {"${oc.env:NO,${oc.env:A}}", "one"},
    {"${oc.env:NO,x-${oc.env:NO,${oc.env:B}}-y}", "x-two words-y"},
    {"${oc.env:NO,'<${oc.env:A}>'}", "<one>"},
    {"${oc.env:${oc.env:NAME}}", "one"},
    {"${oc.env:'A'}", "one"},
    /* escapes */
    {"\\${oc.env:A}", "${oc.env:A}"},
    {"\\\\${oc.env:A}", "\\one"},
    {"\\\\\\${oc.env:A}", "\\${oc.env:A}"},
    {"a\\b${oc.env:A}\\", "a\\bone\\"},
};

static void test_values(void **state)
{
    (void)state;
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    const struct oc_env o = {a, environment, false};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *got = "unset";
        struct err e = {.text = ""};
        if (oc_env_resolve(&o, cases[i].text, &got, &e) < 0)
            fail_msg("%s: %s", cases[i].text, e.text);
        if (!got != !cases[i].want || (got && strcmp(got, cases[i].want) != 0))
            fail_msg("%s: got %s, want %s", cases[i].text, got ? got : "null",
                     cases[i].want ? cases[i].want : "null");
    }
}

static const struct {
    const char *text, *word; /* in the error */
} mistakes[] = {
    {"${oc.env:NO}", "\"NO\" is not set"},
    {"${oc.env:NO,${oc.env:NO2}}", "\"NO2\" is not set"},
    {"${oc.env:}", "names no environment variable"},
    {"${oc.env:A", "not closed"},
    {"${oc.env:NO,'x}", "quote (') of an interpolation is not closed"},
    {"${oc.env:A,b,c}", "too much"},
    {"${oc.env:A,b,}", "too much"},
    {"${oc.env:A,'b' c}", "too much"},
    {"${policy.api_key}", "\"${policy.api_key}\" is not resolved here"},
    {"x ${oc.decode:A} y", "\"${oc.decode:A}\" is not resolved here"},
    {"${env:A}", "\"${env:A}\" is not resolved here"},
    {"${oc.env}", "is not resolved here"},
    {"${oc.envy:A}", "is not resolved here"},
    {"${", "is not resolved here"},
    {"${oc.env:NO,${x}}", "\"${x}\" is not resolved here"},
};

static void test_mistakes(void **state)
{
    (void)state;
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    const struct oc_env o = {a, environment, false};
    for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
        const char *got;
        struct err e = {.text = ""};
        assert_int_equal(oc_env_resolve(&o, mistakes[i].text, &got, &e), -EINVAL);
        if (!strstr(e.text, mistakes[i].word))
            fail_msg("%s: %s", mistakes[i].text, e.text);
    }
}

static void test_nesting(void **state)
{
    (void)state;
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    const struct oc_env o = {a, environment, false};
    char text[100 * 12 + 200] = "";
    size_t n = 0;
    const char *got;
    struct err e = {.text = ""};
    for (int i = 0; i < 100; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "${oc.env:NO,");
    for (int i = 0; i < 100; i++)
        text[n++] = '}';
    assert_int_equal(oc_env_resolve(&o, text, &got, &e), -EINVAL);
    assert_non_null(strstr(e.text, "nested too deeply"));
}

/* What is read for a credential is a secret, whatever stands around it. */
static void test_secrets(void **state)
{
    (void)state;
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    const char *got;
    secrets_clear();
    assert_int_equal(
        oc_env_resolve(&(struct oc_env){a, environment, false}, "${oc.env:TOKEN}", &got, NULL), 0);
    assert_false(secrets_found(bytes_str("x tok-1234 y")));
    assert_int_equal(oc_env_resolve(&(struct oc_env){a, environment, true},
                                    "key=user:${oc.env:TOKEN}", &got, NULL),
                     0);
    assert_true(secrets_found(bytes_str("x tok-1234 y")));
    secrets_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
