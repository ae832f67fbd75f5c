/* What motel health asks: addresses in words, and those of a configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "agent/health.h"

/* The address as "URL", "URL insecure" or "SOCKET URL"; the error text when there is none. */
static const char *shown(const struct health_target *t, int r, const struct err *e)
{
    static char text[1200];
    if (r < 0)
        return e->text;
    snprintf(text, sizeof(text), "%s%s%s%s", t->socket ? t->socket : "", t->socket ? " " : "",
             t->url, t->insecure ? " insecure" : "");
    return text;
}

static void test_words(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"http://127.0.0.1:13133/", "http://127.0.0.1:13133/"},
        {"https://probe.example:8443/live?x=1", "https://probe.example:8443/live?x=1"},
        {"localhost:24133", "http://localhost:24133/"},
        {"localhost", "http://localhost:13133/"},
        {"localhost/health", "http://localhost:13133/health"},
        {"24133", "http://127.0.0.1:24133/"},
        {":24133", "http://127.0.0.1:24133/"},
        {"0.0.0.0:24133/x", "http://127.0.0.1:24133/x"},
        {"[::]:24133", "http://[::1]:24133/"},
        {"[::1]", "http://[::1]:13133/"},
        {"[fe80::1]:80", "http://[fe80::1]:80/"},
        {"unix:/run/h.sock", "/run/h.sock http://localhost/"},
        {"unix:///run/h.sock", "/run/h.sock http://localhost/"},
        {"unix:h.sock", "h.sock http://localhost/"},
        {"unix:", "expected the path of a socket, as in unix:/run/motel/health.sock"},
        {"::1", "expected an address such as 127.0.0.1:13133, got \"::1\""},
        {"localhost:", "expected an address such as 127.0.0.1:13133, got \"localhost:\""},
        {"localhost:http", "expected an address such as 127.0.0.1:13133, got \"localhost:http\""},
        {"localhost:123456",
         "expected an address such as 127.0.0.1:13133, got \"localhost:123456\""},
        {"/run/h.sock", "expected http://HOST:PORT/PATH, https://..., HOST:PORT or unix:PATH, got "
                        "\"/run/h.sock\""},
        {"ftp://x", "expected http://HOST:PORT/PATH, https://..., HOST:PORT or unix:PATH, got "
                    "\"ftp://x\""},
        {"", "expected http://HOST:PORT/PATH, https://..., HOST:PORT or unix:PATH, got \"\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct health_target t = {0};
        struct err e = {0};
        int r = health_target_parse(cases[i][0], &t, &e);
        assert_string_equal(shown(&t, r, &e), cases[i][1]);
        health_target_done(&t);
    }
}

extern const struct component_type *const component_types[];

/* `keys` of health_check; NULL = it is not used. */
static void expect_of(const char *keys, const char *want)
{
    char yaml[600];
    struct cfg_errors errs = {0};
    struct service_settings *s = NULL;
    struct health_target t = {0};
    struct err e = {0};
    snprintf(yaml, sizeof(yaml),
             "receivers: {nop: }\nexporters: {nop: }\nextensions: {health_check/a: {%s}}\n"
             "service: {extensions: [%s], telemetry: {metrics: {level: none}},\n"
             "  pipelines: {traces: {receivers: [nop], exporters: [nop]}}}\n",
             keys ? keys : "", keys ? "health_check/a" : "");
    struct config *c = config_load_text("test", yaml, &errs);
    assert_non_null(c);
    assert_int_equal(service_settings_bind(c, component_types, &errs, &s), 0);
    int r = health_target_of(s, &t, &e);
    assert_string_equal(shown(&t, r, &e), want);
    health_target_done(&t);
    config_free(c);
    cfg_errors_done(&errs);
}

static void test_configurations(void **state)
{
    (void)state;
    expect_of("", "http://localhost:13133/");
    expect_of("endpoint: '0.0.0.0:24133', path: /live", "http://127.0.0.1:24133/live");
    expect_of("endpoint: ':24133', transport: tcp6", "http://[::1]:24133/");
    expect_of("endpoint: ':24133', tls: {cert_file: a, key_file: b}",
              "https://127.0.0.1:24133/ insecure");
    expect_of("endpoint: /run/h.sock, transport: unix, path: /a", "/run/h.sock http://localhost/a");
    expect_of("endpoint: 'localhost:0'",
              "extension \"health_check/a\" listens on any free port (localhost:0), which only its "
              "collector knows");
    expect_of(NULL, "the configuration has no health_check in service::extensions");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_configurations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
