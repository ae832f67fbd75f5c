/* The bearertokenauth extension: keys, who may pass, what clients send, files that change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/secrets.h"
#include "agent/pipeline/auth.h"
#include "fake_exchange.h"
#include "rig.h"
#include "temp_dir.h"

extern const struct component_type extension_bearertokenauth;

static void make(struct rig *r, const char *yaml)
{
    struct err e = {""};
    memset(r, 0, sizeof(*r));
    rig_make(r, &extension_bearertokenauth, "bearertokenauth", SIGNAL_TRACES, 0, yaml);
    assert_int_equal(r->c->type->start(r->c, &e), 0);
}

/* "pass", or the reason. */
static const char *knock(struct rig *r, const char *name, const char *value)
{
    const struct server_auth *a = r->c->type->capability(r->c, CAP_SERVER_AUTH);
    struct fake_exchange f = fake_request(name, value);
    const char *reason = NULL;
    struct auth_check *check = NULL;
    enum admission got = a->admit(a, &f.x, &reason, &check);
    assert_null(check);
    assert_true(got == ADMIT_PASS || got == ADMIT_REFUSE);
    return got == ADMIT_PASS ? "pass" : reason;
}

/* "Name: value", or the error. */
static const char *sent(struct rig *r, bool lower)
{
    static char line[1100];
    struct auth_headers h;
    struct err e = {""};
    const struct client_auth *a = r->c->type->capability(r->c, CAP_CLIENT_AUTH);
    if (auth_headers_get(a, lower, &h, &e) < 0) {
        snprintf(line, sizeof(line), "%s", e.text);
        return line;
    }
    assert_int_equal(h.n, 1);
    assert_true(auth_headers_have(&h, "X-TOKEN") == (strcasecmp(h.items[0].name, "x-token") == 0));
    snprintf(line, sizeof(line), "%s: %s", h.items[0].name, h.items[0].value);
    auth_headers_done(&h);
    return line;
}

#define MISSING "missing or empty authorization header: Authorization"
#define MISMATCH "provided authorization does not match expected scheme or token"

static void test_servers(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *name, *value, *answer;
    } rows[] = {
        {"token: tok-one", NULL, NULL, MISSING},
        {"token: tok-one", "X", "Bearer tok-one", MISSING},
        {"token: tok-one", "authorization", "Bearer tok-one", "pass"},
        {"token: tok-one", "Authorization", "Bearer tok-one", "pass"},
        {"token: tok-one", "authorization", "bearer tok-one", MISMATCH},
        {"token: tok-one", "authorization", "Bearer tok-on", MISMATCH},
        {"token: tok-one", "authorization", "Bearer tok-one \t", "pass"},
        {"token: tok-one", "authorization", "Bearer tok-two", MISMATCH},
        {"token: tok-one", "authorization", "tok-one", MISMATCH},
        {"token: tok-one", "authorization", "", MISMATCH},
        {"tokens: [tok-one, tok-two]", "authorization", "Bearer tok-one", "pass"},
        {"tokens: [tok-one, tok-two]", "authorization", "Bearer tok-two", "pass"},
        {"tokens: [tok-one, tok-two]", "authorization", "Bearer tok-three", MISMATCH},
        {"{token: t, scheme: Token}", "authorization", "Token t", "pass"},
        {"{token: t, scheme: \"\"}", "authorization", "t", "pass"},
        {"{token: t, scheme: \"\"}", "authorization", " t", MISMATCH},
        {"{token: t, header: X-Key, scheme: \"\"}", "x-key", "t", "pass"},
        {"{token: t, header: X-Key, scheme: \"\"}", "authorization", "t",
         "missing or empty authorization header: X-Key"},
        {"filename: /nowhere/token", "authorization", "Bearer ", MISMATCH},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct rig r;
        make(&r, rows[i].yaml);
        assert_string_equal(knock(&r, rows[i].name, rows[i].value), rows[i].answer);
        rig_done(&r);
    }
}

static void test_clients(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *sent;
    } rows[] = {
        {"token: tok-one", "Authorization: Bearer tok-one"},
        {"tokens: [tok-one, tok-two]", "Authorization: Bearer tok-one"},
        {"{token: t, scheme: \"\", header: X-Token}", "X-Token: t"},
        {"filename: /nowhere/token",
         "no bearer token: the file \"/nowhere/token\" could not be read"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct rig r;
        make(&r, rows[i].yaml);
        assert_string_equal(sent(&r, false), rows[i].sent);
        rig_done(&r);
    }
    struct rig r;
    make(&r, "token: tok-one");
    assert_string_equal(sent(&r, true), "authorization: Bearer tok-one");
    assert_null(r.c->type->capability(r.c, CAP_STORAGE));
    rig_done(&r);
}

static void test_file(void **state)
{
    (void)state;
    char dir[TEMP_DIR_BYTES], path[TEMP_DIR_BYTES + 16], yaml[2 * TEMP_DIR_BYTES];
    struct rig r;
    temp_dir_make(dir);
    snprintf(path, sizeof(path), "%s/tokens", dir);
    snprintf(yaml, sizeof(yaml), "{filename: %s, token: never-used}", path);
    secrets_clear();
    make(&r, yaml);
    assert_string_equal(knock(&r, "authorization", "Bearer never-used"), MISMATCH);
    temp_file_put(path, "first-token # of the gateway\n\n  second-token\r\n#third comment\n");
    assert_string_equal(knock(&r, "authorization", "Bearer first-token"), "pass");
    assert_string_equal(knock(&r, "authorization", "Bearer second-token"), "pass");
    assert_string_equal(knock(&r, "authorization", "Bearer #third"), "pass");
    assert_string_equal(knock(&r, "authorization", "Bearer comment"), MISMATCH);
    assert_string_equal(sent(&r, false), "Authorization: Bearer first-token");
    temp_file_put(path, "rotated-token");
    assert_string_equal(sent(&r, false), "Authorization: Bearer rotated-token");
    assert_string_equal(knock(&r, "authorization", "Bearer first-token"), MISMATCH);
    temp_file_put(path, "bad\x01token");
    assert_string_equal(sent(&r, false), "Authorization: Bearer rotated-token");
    assert_int_equal(remove(path), 0);
    assert_string_equal(sent(&r, false), "Authorization: Bearer rotated-token");
    assert_true(secrets_found(bytes_str("x first-token x")));
    assert_true(secrets_found(bytes_str("x rotated-token x")));
    rig_done(&r);
    secrets_clear();
    temp_dir_remove(dir);
}

static void test_config(void **state)
{
    (void)state;
    static const struct rig_config rows[] = {
        {"token: a", NULL},
        {"{filename: /x, retry_on_failure: {enabled: true, interval: 1s}}", NULL},
        {"{filename: /x, wait_for_token_file: false}", NULL},
        {"{}", "no bearer token provided"},
        {"token: \"\"", "no bearer token provided"},
        {"{token: a, tokens: [b]}", "either tokens or token should be provided, not both"},
        {"tokens: [a, \"\"]", "expected a token, got \"\""},
        {"token: \"SEKRET\\r\\nX: y\"", "a token holds a line break"},
        {"{token: a, header: \"\"}", "\"\" is not a header name"},
        {"{token: a, header: \"a b\"}", "\"a b\" is not a header name"},
        {"{token: a, scheme: \"a\\nb\"}", "holds a control character"},
        {"{token: a, retry_on_failure: {enabled: true}}", "requires filename to be set"},
        {"{filename: /x, retry_on_failure: {enabled: true}}",
         "retry_on_failure.interval must be greater than 0"},
        {"{filename: /x, retry_on_failure: {enabled: true, interval: 1s, max_retries: -1}}",
         "retry_on_failure.max_retries must be greater or equal to 0"},
        {"{filename: /x, wait_for_token_file: true}", "the start does not wait for the file"},
        {"{tok: a}", "unknown key \"tok\""},
    };
    rig_check_configs(&extension_bearertokenauth, rows, ARRAY_SIZE(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_servers),
        cmocka_unit_test(test_clients),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_config),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
