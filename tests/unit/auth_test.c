/* What servers and clients share of authentication. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/pipeline/auth.h"
#include "fake_exchange.h"
#include "rig.h"

static void test_unknown_authenticator(void **state)
{
    (void)state;
    struct host *h = host_new(NULL);
    struct err e = {""};
    const struct server_auth *server = (const void *)1;
    const struct client_auth *client = (const void *)1;
    assert_int_equal(server_auth_find(h, NULL, &server, &e), 0);
    assert_int_equal(client_auth_find(h, NULL, "HTTP", &client, &e), 0);
    assert_null(server);
    assert_null(client);
    struct auth_settings s = {.authenticator.id = "x/y"};
    assert_int_equal(server_auth_find(h, &s, &server, &e), -EINVAL);
    assert_non_null(strstr(
        e.text, "failed to resolve authenticator \"x/y\": authenticator not found (auth::auth"));
    s.authenticator.id = NULL; /* `auth: {}` does not open the door */
    assert_int_equal(server_auth_find(h, &s, &server, &e), -EINVAL);
    assert_int_equal(client_auth_find(h, &s, "HTTP", &client, &e), -EINVAL);
    host_free(h);
}

static void test_digests(void **state)
{
    (void)state;
    struct auth_key k = {{1}}, other = {{2}};
    uint8_t a[AUTH_DIGEST_BYTES], b[AUTH_DIGEST_BYTES];
    auth_digest(&k, bytes_str("user"), bytes_str("word"), a);
    auth_digest(&k, bytes_str("user"), bytes_str("word"), b);
    assert_true(auth_digest_equal(a, b));
    auth_digest(&k, bytes_str("use"), bytes_str("rword"), b);
    assert_false(auth_digest_equal(a, b));
    auth_digest(&other, bytes_str("user"), bytes_str("word"), b);
    assert_false(auth_digest_equal(a, b));
    memcpy(b, a, sizeof(b));
    b[AUTH_DIGEST_BYTES - 1] ^= 1;
    assert_false(auth_digest_equal(a, b));
    assert_int_equal(auth_key_make(&k), 0);
    assert_int_equal(auth_key_make(&other), 0);
    assert_memory_not_equal(&k, &other, sizeof(k));
}

static int too_many(const struct client_auth *self,
                    int (*each)(void *ctx, const char *name, const char *value), void *ctx,
                    struct err *reterr)
{
    (void)self;
    (void)reterr;
    int r = 0;
    for (int i = 0; i <= AUTH_HEADERS_MAX && r == 0; i++)
        r = each(ctx, "A", "b");
    return r;
}

static void test_headers(void **state)
{
    (void)state;
    struct auth_headers h;
    struct err e = {""};
    assert_int_equal(auth_headers_get(NULL, true, &h, &e), 0);
    assert_int_equal(h.n, 0);
    assert_false(auth_headers_have(&h, "a"));
    const struct client_auth a = {too_many};
    assert_int_equal(auth_headers_get(&a, true, &h, &e), -E2BIG);
    assert_string_equal(e.text, "too many headers");
    assert_int_equal(h.n, 0);
}

static enum admission refuse(const struct server_auth *self, struct http_exchange *x,
                             const char **ret_reason, struct auth_check **ret_check)
{
    (void)self;
    (void)x;
    (void)ret_check;
    *ret_reason = "no";
    return ADMIT_REFUSE;
}

static void test_guard(void **state)
{
    (void)state;
    struct host *h = host_new(NULL);
    const struct component_type type = {.kind = KIND_RECEIVER};
    struct component c = {.type = &type, .id = "otlp/x", .host = h};
    struct auth_guard g = {0};
    struct err e = {""};
    const char *reason;
    struct fake_exchange f = fake_request(NULL, NULL);
    assert_int_equal(auth_guard_start(&g, &c, "http", NULL, &e), 0);
    assert_int_equal(auth_guard_admit(&g, &f.x, &reason), ADMIT_PASS);
    const struct server_auth a = {.admit = refuse};
    g.auth = &a;
    g.refused = metric_counter(h, "motel_server_unauthenticated_requests", "", "");
    assert_int_equal(auth_guard_admit(&g, &f.x, &reason), ADMIT_REFUSE);
    assert_int_equal(auth_guard_admit(&g, &f.x, &reason), ADMIT_REFUSE);
    assert_string_equal(reason, "no");
    assert_int_equal(metric_value(g.refused), 2);
    assert_int_equal(atomic_load(&g.untold), 1); /* the first was told */
    host_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_authenticator),
        cmocka_unit_test(test_digests),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_guard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
