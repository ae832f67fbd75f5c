/* The configuration that the telemetry settings make: exporters, merging with files, and motel
 * never sending to itself. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "agent/base/secrets.h"
#include "agent/gym/source.h"
#include "config_show.h"

struct made {
    struct config *c; /* NULL after mistakes */
    struct gym_source source;
    char path[64];
    const char *file;
    char errors[2048];
};

static void make(struct made *m, const char *gym_yaml, char *const *environment, const char *over)
{
    struct cfg_errors errs = {0};
    *m = (struct made){.path = "/tmp/gym-pipeline-test-XXXXXX", .file = m->path};
    _cleanup_close_ int fd = mkstemp(m->path);
    assert_int_equal(write(fd, gym_yaml, strlen(gym_yaml)), (ssize_t)strlen(gym_yaml));
    m->source = (struct gym_source){&m->file, 1, environment, NULL, NULL};
    const struct config_source sources[] = {{.make = gym_source_make, .ctx = &m->source},
                                            {.uri = over}};
    m->c = config_load(sources, over ? 2 : 1, &errs);
    if (m->c && gym_source_finish(&m->source, m->c, &errs) < 0)
        m->c = config_free(m->c);
    show_errors(&errs, m->errors, sizeof(m->errors));
    cfg_errors_done(&errs);
    unlink(m->path);
}

static const struct cfg_value *at(const struct made *m, const char *path)
{
    bool exact;
    const struct cfg_value *v = cfg_find(m->c->root, path, &exact);
    return exact ? v : NULL;
}

static void check_tree(const struct made *m, const char *path, const char *want)
{
    _cleanup_buf_ struct buf *got = buf_new(0);
    if (!m->c)
        fail_msg("%s", m->errors);
    const struct cfg_value *v = at(m, path);
    if (v)
        show_value(got, v);
    else
        buf_append_str(got, "absent");
    assert_string_equal(buf_str(got), want);
}

#define ON "telemetry: {enabled: true}"
#define BASE "\"compression\":\"none\",\"endpoint\":"

static const struct {
    const char *gym, *environment[5], *path, *want;
} trees[] = {
    /* one exporter for all signals */
    {ON,
     {"OTEL_EXPORTER_OTLP_ENDPOINT=http://backend:4317"},
     "exporters",
     "{\"otlp_grpc/gym\":{" BASE "\"http://backend:4317\",\"timeout\":\"10000ms\"}}"},
    {ON,
     {"OTEL_EXPORTER_OTLP_ENDPOINT=http://backend:4318/x",
      "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"},
     "exporters",
     "{\"otlp_http/gym\":{" BASE "\"http://backend:4318/x\",\"timeout\":\"10000ms\"}}"},
    {ON,
     {"OTEL_EXPORTER_OTLP_ENDPOINT=http://backend:4318", "OTEL_EXPORTER_OTLP_PROTOCOL=http/json",
      "OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_EXPORTER_OTLP_TIMEOUT=2500"},
     "exporters",
     "{\"otlp_http/gym\":{\"compression\":\"gzip\",\"encoding\":\"json\",\"endpoint\":\"http://"
     "backend:4318\","
     "\"timeout\":\"2500ms\"}}"},
    {"telemetry: {enabled: true, exporter: console}", {0}, "exporters", "{\"console\":null}"},
    {"telemetry: {enabled: true, exporter: console}",
     {0},
     "service::pipelines::traces",
     "{\"exporters\":[\"console\"],\"processors\":[\"gym\"],\"receivers\":[\"otlp\"]}"},
    /* gRPC: scheme, host and port of a URL count */
    {ON,
     {"OTEL_EXPORTER_OTLP_ENDPOINT=https://api.example.com/v1"},
     "exporters::otlp_grpc/gym::endpoint",
     "\"https://api.example.com:443\""},
    {ON,
     {"OTEL_EXPORTER_OTLP_ENDPOINT=http://[fd00::1]"},
     "exporters::otlp_grpc/gym::endpoint",
     "\"http://[fd00::1]:443\""},
    {ON,
     {"OTEL_EXPORTER_OTLP_ENDPOINT=http://[fd00::1]:99/"},
     "exporters::otlp_grpc/gym::endpoint",
     "\"http://[fd00::1]:99\""},
    {ON,
     {"OTEL_EXPORTER_OTLP_ENDPOINT=backend:4317"},
     "exporters::otlp_grpc/gym::endpoint",
     "\"backend:4317\""},
    {ON,
     {"OTEL_EXPORTER_OTLP_ENDPOINT=unix:///run/x"},
     "exporters::otlp_grpc/gym::endpoint",
     "\"unix:///run/x\""},
    /* TLS */
    {ON,
     {"OTEL_EXPORTER_OTLP_ENDPOINT=backend:1", "OTEL_EXPORTER_OTLP_INSECURE=true"},
     "exporters::otlp_grpc/gym::tls",
     "{\"insecure\":true}"},
    {ON,
     {"OTEL_EXPORTER_OTLP_ENDPOINT=https://b:1", "OTEL_EXPORTER_OTLP_CERTIFICATE=/ca",
      "OTEL_EXPORTER_OTLP_CLIENT_KEY=/key", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=/cert"},
     "exporters::otlp_grpc/gym::tls",
     "{\"ca_file\":\"/ca\",\"cert_file\":\"/cert\",\"key_file\":\"/key\"}"},
    {ON,
     {"OTEL_EXPORTER_OTLP_ENDPOINT=http://b:1", "OTEL_EXPORTER_OTLP_INSECURE=true",
      "OTEL_EXPORTER_OTLP_PROTOCOL=http/json"},
     "exporters::otlp_http/gym::tls",
     "absent"},
    /* headers */
    {ON,
     {"OTEL_EXPORTER_OTLP_ENDPOINT=http://b:1",
      "OTEL_EXPORTER_OTLP_HEADERS= a = 1 ,b=x=y==, c=%41%2C%zz%4,,d=,A=2,e=$a$${env:HOME}"},
     "exporters::otlp_grpc/gym::headers",
     "{\"A\":\"2\",\"b\":\"x=y==\",\"c\":\"A,%zz%4\",\"d\":\"\",\"e\":\"$a$${env:HOME}\"}"},
    /* signals of their own */
    {"telemetry: {enabled: true, logs_enabled: true}",
     {"OTEL_EXPORTER_OTLP_ENDPOINT=http://b:4318", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
      "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=http://b:4317"},
     "exporters",
     "{\"otlp_grpc/gym_logs\":{" BASE "\"http://b:4317\",\"timeout\":\"10000ms\"},"
     "\"otlp_http/gym\":{" BASE "\"http://b:4318\",\"timeout\":\"10000ms\"}}"},
    {ON,
     {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://b:1/in",
      "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://c:2", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
      "OTEL_EXPORTER_OTLP_METRICS_HEADERS=k=v"},
     "exporters",
     "{\"otlp_http/"
     "gym_metrics\":{\"compression\":\"none\",\"headers\":{\"k\":\"v\"},\"metrics_endpoint\":"
     "\"http://c:2\","
     "\"timeout\":\"10000ms\"},"
     "\"otlp_http/"
     "gym_traces\":{\"compression\":\"none\",\"timeout\":\"10000ms\",\"traces_endpoint\":\"http://"
     "b:1/in\"}}"},
    {ON,
     {"OTEL_EXPORTER_OTLP_ENDPOINT=http://b:1", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=5000"},
     "service::pipelines",
     "{\"metrics\":{\"exporters\":[\"otlp_grpc/"
     "gym\"],\"processors\":[\"gym\",\"batch\"],\"receivers\":[\"otlp\"]},"
     "\"traces\":{\"exporters\":[\"otlp_grpc/"
     "gym_traces\"],\"processors\":[\"gym\",\"batch\"],\"receivers\":[\"otlp\"]}}"},
    /* the signals that are on, and what the processor gets */
    {"telemetry: {enabled: true, exporter: console, traces_enabled: false, metrics_enabled: no, "
     "logs_enabled: 1}",
     {0},
     "service::pipelines",
     "{\"logs\":{\"exporters\":[\"console\"],\"processors\":[\"gym\"],\"receivers\":[\"otlp\"]}}"},
    {"telemetry: {enabled: true, exporter: console, run_id: r$x, service_name_per_server: false}",
     {"OTEL_SERVICE_NAME=s"},
     "processors::gym",
     "{\"run_id\":\"r$x\",\"service_name\":\"s\",\"service_name_per_server\":false}"},
    {"telemetry: {enabled: true, exporter: console}",
     {0},
     "processors::gym",
     "{\"service_name\":\"nemo-gym\",\"service_name_per_server\":true}"},
};

static void test_trees(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
        struct made m;
        make(&m, trees[i].gym, (char *const *)trees[i].environment, NULL);
        check_tree(&m, trees[i].path, trees[i].want);
        assert_string_equal(m.errors, "");
        config_free(m.c);
    }
}

/* A file lies over it, key by key. */
static void test_merge(void **state)
{
    (void)state;
    static char *const environment[] = {"OTEL_EXPORTER_OTLP_HEADERS=a=b", NULL};
    struct made m;
    make(&m, ON, environment,
         "yaml:{exporters: {otlp_grpc/gym: {endpoint: 'x:1', timeout: 1s}}, receivers: {otlp: "
         "{protocols: {grpc: {endpoint: "
         "'0.0.0.0:14317'}}}}, service: {pipelines: {logs: {receivers: [otlp], exporters: "
         "[otlp_grpc/gym]}}}}");
    check_tree(&m, "exporters",
               "{\"otlp_grpc/"
               "gym\":{\"compression\":\"none\",\"endpoint\":\"x:1\",\"headers\":{\"a\":\"b\"},"
               "\"timeout\":\"1s\"}}");
    check_tree(
        &m, "receivers::otlp::protocols",
        "{\"grpc\":{\"endpoint\":\"0.0.0.0:14317\"},\"http\":{\"endpoint\":\"127.0.0.1:4318\"}}");
    check_tree(&m, "service::pipelines::logs",
               "{\"exporters\":[\"otlp_grpc/gym\"],\"receivers\":[\"otlp\"]}");
    config_free(m.c);
}

/* An exporter that a file has put out of use need not have an endpoint. */
static void test_replaced(void **state)
{
    (void)state;
    static char *const environment[] = {NULL};
    struct made m;
    make(&m, ON, environment,
         "yaml:{exporters: {debug: null}, service: {pipelines: {traces: {exporters: [debug]}, "
         "metrics: {exporters: [debug]}}}}");
    check_tree(&m, "exporters", "{\"debug\":null}");
    config_free(m.c);
}

#define DESTINATION                                                                                \
    "the exporter \"otlp\" of the telemetry settings needs a destination: set "                    \
    "OTEL_EXPORTER_OTLP_ENDPOINT, or "                                                             \
    "otlp_endpoint in the telemetry block. The default of OpenTelemetry, localhost:4317, is "      \
    "motel itself\n"
#define SELF(url, listener)                                                                        \
    "exporters::otlp_grpc/gym::endpoint: \"" url                                                   \
    "\" is motel itself: the receiver otlp listens on " listener                                   \
    ", and what it gets would come back to it. Give motel another endpoint than the programs "     \
    "that send to it\n"

static const struct {
    const char *environment, *over, *want;
} checks[] = {
    {NULL, NULL, DESTINATION},
    {"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=http://b:1", NULL, DESTINATION}, /* logs are off */
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317", NULL,
     "OTEL_EXPORTER_OTLP_ENDPOINT: " SELF("http://localhost:4317", "127.0.0.1:4317")},
    {"OTEL_EXPORTER_OTLP_ENDPOINT=127.0.0.2:4318", NULL,
     "OTEL_EXPORTER_OTLP_ENDPOINT: " SELF("127.0.0.2:4318", "127.0.0.1:4318")},
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://user:pw@LOCALHOST:4317/x", NULL,
     "OTEL_EXPORTER_OTLP_ENDPOINT: " SELF("http://***@LOCALHOST:4317", "127.0.0.1:4317")},
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://[::1]:4317", NULL,
     "OTEL_EXPORTER_OTLP_ENDPOINT: " SELF("http://[::1]:4317", "127.0.0.1:4317")},
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://0.0.0.0:4317", NULL,
     "OTEL_EXPORTER_OTLP_ENDPOINT: " SELF("http://0.0.0.0:4317", "127.0.0.1:4317")},
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://10.1.2.3:5000",
     "yaml:receivers: {otlp: {protocols: {grpc: {endpoint: '10.1.2.3:5000'}}}}",
     "OTEL_EXPORTER_OTLP_ENDPOINT: " SELF("http://10.1.2.3:5000", "10.1.2.3:5000")},
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:5000",
     "yaml:receivers: {otlp: {protocols: {grpc: {endpoint: '0.0.0.0:5000'}}}}",
     "OTEL_EXPORTER_OTLP_ENDPOINT: " SELF("http://localhost:5000", "0.0.0.0:5000")},
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317",
     "yaml:receivers: {otlp: {protocols: {grpc: null}}}",
     "OTEL_EXPORTER_OTLP_ENDPOINT: " SELF("http://localhost:4317", "localhost:4317")},
    /* not motel */
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:14317", NULL, ""},
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://backend:4317", NULL, ""},
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost", NULL, ""},
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317",
     "yaml:receivers: {otlp: {protocols: {grpc: {endpoint: '127.0.0.1:5000'}}}}", ""},
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317",
     "yaml:receivers: {otlp: {protocols: {grpc: {endpoint: '/run/4317', transport: unix}}}}", ""},
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317",
     "yaml:{receivers: {nop: null}, service: {pipelines: {traces: {receivers: [nop]}, metrics: "
     "{receivers: [nop]}}}}",
     ""},
    /* headers that cannot be read are not shown */
    {"OTEL_EXPORTER_OTLP_HEADERS=token-1234", NULL,
     "OTEL_EXPORTER_OTLP_HEADERS: expected headers as name=value,name=value, but number 1 has no "
     "\"=\"\n"},
    {"OTEL_EXPORTER_OTLP_HEADERS=a=b, =token-1234", NULL,
     "OTEL_EXPORTER_OTLP_HEADERS: expected headers as name=value,name=value, but number 2 has no "
     "name\n"},
};

static void test_checks(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
        char *const environment[] = {(char *)checks[i].environment, NULL};
        struct made m;
        make(&m, ON, environment, checks[i].over);
        assert_string_equal(m.errors, checks[i].want);
        assert_int_equal(!m.c, *checks[i].want != 0);
        config_free(m.c);
    }
}

/* The values of headers are secrets, however they were given. */
static void test_secrets(void **state)
{
    (void)state;
    static char *const environment[] = {
        "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20tok%2D1234", "T=team-5678", NULL};
    struct made m;
    secrets_clear();
    make(&m, ON "\n", environment, "yaml:exporters: {otlp_grpc/gym: {endpoint: 'b:1'}}");
    assert_non_null(m.c);
    assert_true(secrets_found(bytes_str("got tok-1234")));
    config_free(m.c);
    make(&m,
         "telemetry: {enabled: true, otlp_endpoint: 'b:1', otlp_headers: 'x=a "
         "${oc.env:T},y=plain-9'}",
         environment + 1, NULL);
    assert_non_null(m.c);
    assert_true(secrets_found(bytes_str("got team-5678")));
    assert_true(secrets_found(bytes_str("got plain-9")));
    config_free(m.c);
    secrets_clear();
}

/* ---- several files, off, files that are no configs ---- */

static void test_off(void **state)
{
    (void)state;
    static const struct {
        const char *gym, *environment, *why;
    } cases[] = {
        {"policy_model: {x: '${y}'}", NULL, "enabled is false (default)"},
        {"telemetry: {enabled: no, exporter: 5}", NULL, "enabled is false (/tmp/"},
        {ON, "NEMO_GYM_OTEL_ENABLED=0", "enabled is false (NEMO_GYM_OTEL_ENABLED)"},
        {"telemetry: {enabled: on, traces_enabled: off, metrics_enabled: off}", NULL,
         "traces, metrics and logs are switched off"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *const environment[] = {(char *)cases[i].environment, NULL};
        struct made m;
        make(&m, cases[i].gym, environment, "yaml:exporters: {debug: null}");
        check_tree(&m, "exporters", "{\"debug\":null}");
        check_tree(&m, "receivers", "absent");
        assert_non_null(m.source.off);
        assert_non_null(strstr(m.source.off, cases[i].why));
        assert_int_equal(m.c->nwarnings, 1);
        config_free(m.c);
    }
}

static void test_bad_files(void **state)
{
    (void)state;
    static const struct {
        const char *gym, *want;
    } cases[] = {
        {"[1]", ":1:1: expected a NeMo Gym config, which is a map, got list\n"},
        {"telemetry: on", ":1:12: telemetry: expected a map of settings, got string\n"},
        {"a: {\n", "did not find expected"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct made m;
        make(&m, cases[i].gym, (char *const[]){NULL}, NULL);
        assert_null(m.c);
        if (!strstr(m.errors, cases[i].want) ||
            strncmp(m.errors, "/tmp/gym-pipeline-test-", 23) != 0)
            fail_msg("%s", m.errors);
    }
}

static void test_files(void **state)
{
    (void)state;
    char paths[3][40] = {"/tmp/gym-files-test-XXXXXX", "/tmp/gym-files-test-XXXXXX",
                         "/tmp/gym-files-test-none"};
    static const char *const texts[] = {
        "telemetry: {enabled: true, service_name: a, memory_profiling: {enabled: true}}",
        "{telemetry: {service_name: b, memory_profiling: {interval_seconds: 2}}, x: 1}"};
    const char *files[3];
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    struct cfg_errors errs = {0};
    for (int i = 0; i < 2; i++) {
        _cleanup_close_ int fd = mkstemp(paths[i]);
        assert_int_equal(write(fd, texts[i], strlen(texts[i])), (ssize_t)strlen(texts[i]));
    }
    for (int i = 0; i < 3; i++)
        files[i] = paths[i];
    _cleanup_buf_ struct buf *got = buf_new(0);
    show_value(got, gym_block_read(a, files, 2, &errs));
    assert_string_equal(
        buf_str(got),
        "{\"enabled\":true,\"memory_profiling\":{\"enabled\":true,\"interval_seconds\":i:2},"
        "\"service_name\":\"b\"}");
    assert_null(gym_block_read(a, files, 3, &errs));
    char text[300];
    show_errors(&errs, text, sizeof(text));
    assert_string_equal(
        text, "cannot read the file \"/tmp/gym-files-test-none\": No such file or directory\n");
    cfg_errors_done(&errs);
    unlink(paths[0]);
    unlink(paths[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trees),     cmocka_unit_test(test_merge),
        cmocka_unit_test(test_replaced),  cmocka_unit_test(test_checks),
        cmocka_unit_test(test_secrets),   cmocka_unit_test(test_off),
        cmocka_unit_test(test_bad_files), cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
