/* The OTLP receiver's keys, its addresses, and a reload. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "otlp_world.h"

static void test_configuration(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *error; /* NULL = good */
    } rows[] = {
        {BOTH, NULL},
        {"protocols: {grpc: }", NULL},
        {"protocols: {grpc: {transport: unix, endpoint: /tmp/x.sock}}", NULL},
        {"protocols: {grpc: {keepalive: {server_parameters: {max_connection_age: 1m}, "
         "enforcement_policy: {min_time: 10s, permit_without_stream: true}}}}",
         NULL},
        {"protocols: {http: {keepalive: {idle_timeout: 10s}, tls: , auth: , middlewares: []}}",
         NULL},
        {"protocols: {http: {response_headers: [{name: a, value: b}]}}", NULL},
        {"", "must specify at least one protocol when using the OTLP receiver"},
        {"protocols: ", "must specify at least one protocol when using the OTLP receiver"},
        {"protocols: {grpc: {enabled: false}}",
         "must specify at least one protocol when using the OTLP receiver"},
        {"protocols: {grpc: {endpoint: foo}}", "address foo: missing port in address"},
        {"protocols: {http: {transport: udp}}", "expected tcp, tcp4, tcp6 or unix, got \"udp\""},
        {"protocols: {http: {idle_timeout: 1s, keepalive: {}}}", "deprecated keepalive fields"},
        {"protocols: {http: {keep_alives_enabled: false, keepalive: {idle_timeout: 1s}}}",
         "deprecated keepalive fields"},
        {"protocols: {http: {traces_url_path: /x, logs_url_path: /x}}", "are the same"},
        {"protocols: {http: {response_headers: {a: \"b\\r\\nc: d\"}}}", "cannot be sent"},
        {"protocols: {grpc: {tls: {cert_file: x, key_pem: y, client_ca_file: z}}}", NULL},
        {"protocols: {grpc: {tls: {cert_file: x}}}",
         "must include both certificate and key (CertFile"},
        {"protocols: {http: {tls: {}}}", "both certificate and key for server connections"},
        {"protocols: {http: {tls: {cert_file: x, cert_pem: x, key_file: y}}}",
         "provide either certificate file or PEM, but not both"},
        {"protocols: {http: {tls: {cert_file: x, key_file: y, min_version: \"1.4\"}}}",
         "invalid TLS min_version: unsupported TLS version: \"1.4\""},
        {"protocols: {http: {tls: {cert_file: x, key_file: y, min_version: \"1.3\", max_version: "
         "\"1.2\"}}}",
         "min_version cannot be greater than max_version"},
        {"protocols: {http: {tls: {cert_file: x, key_file: y, cipher_suites: [RC4]}}}",
         "invalid TLS cipher suite: \"RC4\""},
        {"protocols: {http: {tls: {cert_file: x, key_file: y, curve_preferences: [P128]}}}",
         "invalid curve type: P128"},
        {"protocols: {http: {auth: {authenticator: x}, endpoint: \":0\"}, grpc: {auth: "
         "{authenticator: x/y}}}",
         NULL},
        {"protocols: {http: {auth: {authenticator: x, request_params: [t]}}}",
         "credentials in the query string are not read"},
        {"protocols: {grpc: {auth: {authenticator: x, request_params: [t]}}}",
         "unknown key \"request_params\""},
        {"protocols: {http: {auth: {authenticator: \"a b\"}}}", "in \"a b\" id"},
        {"protocols: {http: {middlewares: [x]}}", "not supported"},
        {"protocols: {htttp: {}}", "htttp"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct rig r = {0};
        struct err e = {.text = ""};
        void *bound = NULL;
        int rc = rig_bind(&r, &receiver_otlp, rows[i].yaml, &bound, &e);
        if ((rc == 0) != !rows[i].error || (rows[i].error && !strstr(e.text, rows[i].error)))
            fail_msg("%s: %d %s", rows[i].yaml, rc, e.text);
        config_free(r.config);
    }
}

static void test_defaults(void **state)
{
    (void)state;
    struct rig r = {0};
    struct err e = {.text = ""};
    void *bound = NULL;
    struct server_settings s;
    assert_int_equal(rig_bind(&r, &receiver_otlp, "protocols: {grpc: , http: }", &bound, &e), 0);
    const struct otlp_config *c = bound;
    assert_string_equal(c->protocols.grpc->endpoint, "localhost:4317");
    assert_string_equal(c->protocols.http->endpoint, "localhost:4318");
    otlp_grpc_settings(c->protocols.grpc, &s);
    assert_int_equal(s.keepalive_time_ns, 7200 * (int64_t)NS_PER_S);
    assert_int_equal(s.keepalive_min_time_ns, 300 * (int64_t)NS_PER_S);
    config_free(r.config);
    assert_int_equal(rig_bind(&r, &receiver_otlp,
                              "protocols: {http: {keepalive: {enabled: false}, read_timeout: 3s}}",
                              &bound, &e),
                     0);
    otlp_http_settings(((const struct otlp_config *)bound)->protocols.http, &s);
    assert_true(s.no_keepalive);
    assert_int_equal(s.read_header_timeout_ns, 3 * (int64_t)NS_PER_S);
    config_free(r.config);
}

/* A second receiver cannot have the address of the first, but the same one of a new configuration
 * takes it over. */
static void test_addresses_and_reload(void **state)
{
    (void)state;
    struct world w;
    struct err e = {.text = ""};
    char yaml[200];
    open_world(&w, "protocols: {http: {endpoint: '127.0.0.1:0'}}", ALL);
    close_world(&w);
    int port = atoi(strrchr(w.http, ':') + 1);
    snprintf(yaml, sizeof(yaml), "protocols: {http: {endpoint: '127.0.0.1:%d'}}", port);
    open_world(&w, yaml, ALL);
    struct rig other = {.host = w.r.host}, next = {.host = w.r.host};
    rig_make(&other, &receiver_otlp, "otlp/2", SIGNAL_TRACES, 1, yaml);
    assert_int_equal(receiver_otlp.start(other.c, &e), -EADDRINUSE);
    assert_non_null(strstr(e.text, "address already in use (by receiver otlp http)"));
    rig_make(&next, &receiver_otlp, "otlp", SIGNAL_TRACES, 1, yaml);
    assert_int_equal(receiver_otlp.start(next.c, &e), 0);
    receiver_otlp.stop(w.r.c, clock_now_ns() + NS_PER_S);
    assert_int_equal(status_of(w.http, (struct request){.type = JSON, .body = bytes_str(SPAN)}),
                     200);
    assert_int_equal(sink_taken(&next.sinks[0]), 1);
    receiver_otlp.stop(next.c, clock_now_ns() + NS_PER_S);
    assert_int_equal(raw_connect(w.http), -1);
    for (int i = 0; i < 2; i++) {
        struct rig *r = i ? &other : &next;
        r->host = NULL;
        rig_done(r);
    }
    rig_done(&w.r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configuration),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_addresses_and_reload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
