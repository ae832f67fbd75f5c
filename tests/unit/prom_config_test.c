/* The configuration of the prometheus receiver: durations, sizes, what a job takes from global,
 * mistakes. */
#include "prom_rules.h"

#include "agent/base/clock.h"

static void test_durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms; /* -1 = refused */
        const char *printed;
    } cases[] = {{"0", 0, "0s"},
                 {"15s", 15000, "15s"},
                 {"1m30s", 90000, "1m30s"},
                 {"1h", 3600000, "1h"},
                 {"90s", 90000, "1m30s"},
                 {"1d12h", 129600000, "36h"},
                 {"2d", 172800000, "2d"},
                 {"1w", 604800000, "1w"},
                 {"1y", 31536000000, "1y"},
                 {"500ms", 500, "500ms"},
                 {"1s500ms", 1500, "1s500ms"},
                 {"", -1, ""},
                 {"5", -1, ""},
                 {"s", -1, ""},
                 {"1.5s", -1, ""},
                 {"-1s", -1, ""},
                 {"1s1m", -1, ""},
                 {"1s1s", -1, ""},
                 {"1us", -1, ""},
                 {" 1s", -1, ""},
                 {"400y", -1, ""},
                 {"99999999999999999999s", -1, ""}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {.text = ""};
        uint64_t ns = 1;
        char printed[40];
        const int r = prom_parse_duration(cases[i].text, &ns, &e);
        if ((r == 0) != (cases[i].ms >= 0))
            fail_msg("\"%s\": %d %s", cases[i].text, r, e.text);
        if (r < 0)
            continue;
        assert_int_equal(ns, (uint64_t)cases[i].ms * NS_PER_MS);
        prom_format_duration(ns, printed);
        assert_string_equal(printed, cases[i].printed);
    }
}

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } cases[] = {{"0", 0},           {"10B", 10},     {"1KB", 1024},       {"1KiB", 1024},
                 {"10MB", 10 << 20}, {"1.5KB", 1536}, {"1MB2KB", 1050624}, {"10", -1},
                 {"", -1},           {"KB", -1},      {"1kb", -1},         {"1X", -1},
                 {"-1B", -1},        {"99999EB", -1}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {.text = ""};
        uint64_t bytes = 0;
        const int r = prom_parse_size(cases[i].text, &bytes, &e);
        if ((r == 0) != (cases[i].bytes >= 0))
            fail_msg("\"%s\": %d %s", cases[i].text, r, e.text);
        if (r == 0)
            assert_int_equal(bytes, (uint64_t)cases[i].bytes);
    }
}

static void expect_times(const char *global, const char *job, uint64_t interval_ms,
                         uint64_t timeout_ms)
{
    struct prom_world w;
    struct job_settings j;
    char yaml[500];
    snprintf(yaml, sizeof(yaml), "config: {global: {%s}, scrape_configs: [{job_name: j%s%s}]}",
             global, *job ? ", " : "", job);
    if (world_read(&w, yaml) < 0)
        fail_msg("%s: %s", yaml, w.err.text);
    assert_int_equal(prom_job_settings(&w.bound.file, world_job(&w, 0), &j, NULL), 0);
    assert_int_equal(j.interval_ns, interval_ms * NS_PER_MS);
    assert_int_equal(j.timeout_ns, timeout_ms * NS_PER_MS);
    world_done(&w);
}

static void test_times(void **state)
{
    (void)state;
    expect_times("", "", 60000, 10000);
    expect_times("scrape_interval: 5s", "", 5000, 5000);
    expect_times("scrape_interval: 30s, scrape_timeout: 20s", "", 30000, 20000);
    expect_times("scrape_timeout: 20s", "scrape_interval: 15s", 15000, 15000);
    expect_times("", "scrape_interval: 1s, scrape_timeout: 300ms", 1000, 300);
    expect_times("scrape_interval: 0", "scrape_interval: 0s", 60000, 10000);
}

static void test_limits(void **state)
{
    (void)state;
    static const char yaml[] =
        "config: {global: {sample_limit: 10, label_limit: 20, body_size_limit: 1KB, "
        "extra_scrape_metrics: "
        "true}, scrape_configs: [{job_name: a, label_limit: 5, body_size_limit: 2KB, "
        "extra_scrape_metrics: false}, {job_name: b, body_size_limit: 0}]}";
    struct prom_world w;
    struct job_settings a, b;
    assert_int_equal(world_read(&w, yaml), 0);
    assert_int_equal(prom_job_settings(&w.bound.file, world_job(&w, 0), &a, NULL), 0);
    assert_int_equal(prom_job_settings(&w.bound.file, world_job(&w, 1), &b, NULL), 0);
    assert_int_equal(a.sample_limit, 10);
    assert_int_equal(a.label_limit, 5);
    assert_int_equal(a.body_size_limit, 2048);
    assert_false(a.extra_metrics);
    assert_int_equal(b.label_limit, 20);
    assert_int_equal(b.body_size_limit, 1024);
    assert_true(b.extra_metrics);
    world_done(&w);
}

static void expect_accept(const char *job, const char *want)
{
    struct prom_world w;
    struct job_settings j;
    char yaml[500];
    snprintf(yaml, sizeof(yaml), "config: {scrape_configs: [{job_name: j, %s}]}", job);
    assert_int_equal(world_read(&w, yaml), 0);
    assert_int_equal(prom_job_settings(&w.bound.file, world_job(&w, 0), &j, NULL), 0);
    assert_string_equal(j.accept, want);
    world_done(&w);
}

static void test_accept(void **state)
{
    (void)state;
    expect_accept(
        "scrape_protocols: []",
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
        "application/openmetrics-text;version=0.0.1;q=0.5,"
        "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,"
        "*/*;q=0.2");
    expect_accept("scrape_protocols: [PrometheusProto, PrometheusText0.0.4]",
                  "text/plain;version=0.0.4;q=0.6,*/*;q=0.5");
    expect_accept("scrape_protocols: [OpenMetricsText1.0.0], metric_name_escaping_scheme: dots",
                  "application/openmetrics-text;version=1.0.0;escaping=dots;q=0.6,*/*;q=0.5");
}

static void expect_mistake(const char *yaml, const char *path, const char *text)
{
    struct prom_world w;
    assert_true(world_read(&w, yaml) < 0);
    if (!strstr(w.err.path, path) || !strstr(w.err.text, text))
        fail_msg("%s:\n\"%s\": \"%s\", not\n\"%s\": \"%s\"", yaml, w.err.path, w.err.text, path,
                 text);
    world_done(&w);
}
#define JOB(keys) "config: {scrape_configs: [{job_name: a, " keys "}]}"

static void test_mistakes(void **state)
{
    (void)state;
    expect_mistake("{}", "config", "no Prometheus scrape_configs or target_allocator set");
    expect_mistake("config: {scrape_configs: []}", "config", "no Prometheus scrape_configs");
    expect_mistake("config: {scrape_configs: [{scheme: http}]}", "scrape_configs[0]::job_name",
                   "required");
    expect_mistake("config: {scrape_configs: [{job_name: a}, {job_name: a}]}",
                   "scrape_configs[1]::job_name", "multiple scrape configs with job name \"a\"");
    expect_mistake(JOB("scrape_interval: 5"), "scrape_configs[0]::scrape_interval",
                   "not a valid duration string: \"5\"");
    expect_mistake(JOB("scrape_interval: 1s, scrape_timeout: 2s"), "scrape_configs[0]",
                   "scrape timeout greater than scrape interval");
    expect_mistake("config: {global: {scrape_timeout: 2m}, scrape_configs: [{job_name: a}]}",
                   "scrape_configs[0]", "global scrape timeout greater than scrape interval");
    expect_mistake(JOB("body_size_limit: 10"), "body_size_limit", "not a valid size");
    expect_mistake(JOB("static_configs: [{targets: ['http://h:1/x']}]"), "targets[0]",
                   "not a valid hostname");
    expect_mistake(JOB("file_sd_configs: [{files: [x.txt]}]"), "files[0]", "file discovery");
    expect_mistake(JOB("scrape_intervall: 1s"), "scrape_configs[0]", "did you mean");
    expect_mistake(JOB("basic_auth: {username: a}, authorization: {credentials: b}"),
                   "authorization", "at most one of");
    expect_mistake(JOB("basic_auth: {username: a, password: b, password_file: c}"), "password_file",
                   "at most one of");
    expect_mistake(JOB("authorization: {type: Basic, credentials: b}"), "authorization::type",
                   "basic_auth");
    expect_mistake(JOB("bearer_token: a, bearer_token_file: b"), "bearer_token_file",
                   "at most one");
    expect_mistake(JOB("tls_config: {cert_file: a}"), "tls_config::cert_file", "key");
    expect_mistake(JOB("http_headers: {Authorization: {values: [x]}}"), "http_headers",
                   "not allowed");
    expect_mistake(JOB("http_headers: {'a b': {values: [x]}}"), "http_headers", "not a name");
    expect_mistake(JOB("scrape_protocols: [PrometheusProto]"), "scrape_protocols", "not supported");
    expect_mistake(JOB("scrape_protocols: [OpenMetricsText1.0.0, OpenMetricsText1.0.0]"),
                   "scrape_protocols", "twice");
    expect_mistake(JOB("extra_scrape_metrics: 7"), "extra_scrape_metrics", "true or false");
    expect_mistake(JOB("scrape_native_histograms: true"), "scrape_native_histograms",
                   "not supported");
}

static void test_refused_by_name(void **state)
{
    (void)state;
    static const char *const top[] = {"api_server: {enabled: true}",
                                      "target_allocator: {endpoint: x}"};
    static const char *const file[] = {"remote_read: [{url: x}]", "remote_write: [{url: x}]",
                                       "rule_files: [x]", "alerting: {alertmanagers: []}",
                                       "scrape_config_files: [x]"};
    static const char *const job[] = {
        "kubernetes_sd_configs: [{role: pod}]", "http_sd_configs: [{url: x}]",
        "dns_sd_configs: [{names: [x]}]", "consul_sd_configs: [{}]", "oauth2: {client_id: x}"};
    char yaml[300];
    for (size_t i = 0; i < ARRAY_SIZE(top); i++) {
        snprintf(yaml, sizeof(yaml), "%s\nconfig: {scrape_configs: [{job_name: a}]}", top[i]);
        expect_mistake(yaml, "x::", "not supported: ");
    }
    for (size_t i = 0; i < ARRAY_SIZE(file); i++) {
        snprintf(yaml, sizeof(yaml), "config: {%s, scrape_configs: [{job_name: a}]}", file[i]);
        expect_mistake(yaml, "x::config::", "not supported: ");
    }
    for (size_t i = 0; i < ARRAY_SIZE(job); i++) {
        snprintf(yaml, sizeof(yaml), "config: {scrape_configs: [{job_name: a, %s}]}", job[i]);
        expect_mistake(yaml, "x::config::scrape_configs[0]::", "not supported: ");
    }
}

/* Prometheus' own loader takes numbers and bools for texts. */
static void test_scalars(void **state)
{
    (void)state;
    static const char yaml[] =
        "config: {global: {external_labels: {n: 7, t: true}}, scrape_configs: [{job_name: 5, "
        "static_configs: [{targets: ['a:1'], labels: {port: 8080, f: 1.50}}]}]}";
    struct prom_world w;
    assert_int_equal(world_read(&w, yaml), 0);
    const struct static_config *s = world_job(&w, 0)->static_configs.items;
    assert_string_equal(world_job(&w, 0)->job_name, "5");
    assert_string_equal(((const char *const *)s->labels.values)[0], "8080");
    assert_string_equal(((const char *const *)s->labels.values)[1], "1.50");
    assert_string_equal(((const char *const *)w.bound.file.global.external_labels.values)[1],
                        "true");
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_durations),       cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_times),           cmocka_unit_test(test_limits),
        cmocka_unit_test(test_accept),          cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_refused_by_name), cmocka_unit_test(test_scalars)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
