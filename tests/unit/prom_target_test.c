/* What labels make of a target: URL, labels of its samples, times, identity; files of targets;
 * request heads. */
#include "prom_rules.h"

#include <errno.h>

#include "agent/base/clock.h"
#include "receivers/prometheus/sd_file.h"

struct made {
    struct prom_world w;
    struct job job;
    struct label_builder b;
    struct target_spec spec;
    struct err err;
    int result;
};

static void make(struct made *m, const char *keys, const char *discovered)
{
    char yaml[1000];
    snprintf(yaml, sizeof(yaml), "config: {scrape_configs: [{job_name: j%s%s}]}", *keys ? ", " : "",
             keys);
    memset(m, 0, sizeof(*m));
    if (world_read(&m->w, yaml) < 0)
        fail_msg("%s: %s", yaml, m->w.err.text);
    assert_int_equal(prom_job_init(&m->job, &m->w.bound.file, world_job(&m->w, 0), &m->err), 0);
    assert_int_equal(prom_builder_init(&m->b), 0);
    builder_read(&m->b, discovered);
    m->result = prom_target_spec_make(&m->job, &m->b, &m->spec, &m->err);
}

static void unmake(struct made *m)
{
    prom_target_spec_done(&m->spec);
    prom_builder_done(&m->b);
    prom_job_done(&m->job);
    world_done(&m->w);
}

static void test_specs(void **state)
{
    (void)state;
    static const struct {
        const char *keys, *discovered, *url, *labels;
    } cases[] = {
        {"", "__address__=h:1", "http://h:1/metrics", "{instance=\"h:1\", job=\"j\"}"},
        {"", "__address__=h:1,job=own,x=1,__meta_y=2,__tmp=3", "http://h:1/metrics",
         "{instance=\"h:1\", job=\"own\", x=\"1\"}"},
        {"scheme: https, metrics_path: /a b/ü?", "__address__=[::1]:9",
         "https://[::1]:9/a%20b/%C3%BC%3F", "{instance=\"[::1]:9\", job=\"j\"}"},
        {"metrics_path: m", "__address__=h", "http://h/m", "{instance=\"h\", job=\"j\"}"},
        {"params: {b: [x, 'y z'], a: ['1&2']}", "__address__=h:1",
         "http://h:1/metrics?a=1%262&b=x&b=y+z", "{instance=\"h:1\", job=\"j\"}"},
        {"params: {a: [x, y]}, relabel_configs: [{target_label: __param_a, replacement: new}, "
         "{target_label: __param_z, replacement: q}]",
         "__address__=h:1", "http://h:1/metrics?a=new&a=y&z=q", "{instance=\"h:1\", job=\"j\"}"},
        {"relabel_configs: [{source_labels: [__address__], target_label: instance}, "
         "{target_label: __address__, replacement: 'proxy:8'}, {target_label: __scheme__, "
         "replacement: https}, {target_label: __metrics_path__, replacement: /p}]",
         "__address__=h:1", "https://proxy:8/p", "{instance=\"h:1\", job=\"j\"}"},
        {"relabel_configs: [{source_labels: [__scrape_interval__], target_label: i}, "
         "{target_label: __scrape_interval__, replacement: 5s}, {target_label: __scrape_timeout__, "
         "replacement: 1s}]",
         "__address__=h:1", "http://h:1/metrics", "{i=\"1m\", instance=\"h:1\", job=\"j\"}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct made m;
        char labels[300];
        make(&m, cases[i].keys, cases[i].discovered);
        if (m.result != 1)
            fail_msg("%s: %d %s", cases[i].keys, m.result, m.err.text);
        assert_string_equal(m.spec.url, cases[i].url);
        prom_labels_format(m.spec.labels, labels, sizeof(labels));
        assert_string_equal(labels, cases[i].labels);
        assert_int_equal(m.spec.interval_ns, (strstr(cases[i].keys, "5s") ? 5 : 60) * NS_PER_S);
        assert_int_equal(m.spec.timeout_ns, (strstr(cases[i].keys, "5s") ? 1 : 10) * NS_PER_S);
        unmake(&m);
    }
}

#define SET(label, value) "relabel_configs: [{target_label: " label ", replacement: '" value "'}]"

static void test_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *keys, *discovered;
        int result;
        const char *text;
    } cases[] = {
        {"relabel_configs: [{source_labels: [x], regex: '1', action: drop}]", "__address__=h,x=1",
         0, ""},
        {"", "x=1", -EINVAL, "no address"},
        {"", "__address__=h/x", -EINVAL, "not a valid hostname"},
        {SET("__scheme__", "ftp"), "__address__=h", -EINVAL, "http or https, got \"ftp\""},
        {SET("__scrape_interval__", "x"), "__address__=h", -EINVAL,
         "error parsing scrape interval"},
        {SET("__scrape_interval__", "0"), "__address__=h", -EINVAL, "scrape interval cannot be 0"},
        {SET("__scrape_timeout__", "2m"), "__address__=h", -EINVAL, "cannot be greater"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct made m;
        make(&m, cases[i].keys, cases[i].discovered);
        assert_int_equal(m.result, cases[i].result);
        if (!strstr(m.err.text, cases[i].text))
            fail_msg("%s: \"%s\", not \"%s\"", cases[i].keys, m.err.text, cases[i].text);
        unmake(&m);
    }
}

/* Targets are spread over the interval, and the same one has its place in every process. */
static void test_identity(void **state)
{
    (void)state;
    uint64_t first = 0;
    unsigned halves[2] = {0, 0};
    for (int i = 0; i < 200; i++) {
        struct made m;
        char address[40];
        snprintf(address, sizeof(address), "__address__=node%d:9100", i);
        make(&m, "", address);
        assert_int_equal(m.result, 1);
        first = i ? first : m.spec.hash;
        assert_true(i == 0 || m.spec.hash != first);
        halves[m.spec.hash % m.spec.interval_ns < m.spec.interval_ns / 2]++;
        unmake(&m);
    }
    assert_in_range(halves[0], 60, 140);
    struct made again;
    make(&again, "", "__address__=node0:9100");
    assert_int_equal(again.spec.hash, first);
    unmake(&again);
}

/* ---- request heads ---- */

static void expect_head(const char *keys, const char *want)
{
    struct made m;
    struct arena *a = arena_new(0);
    char got[1000] = "";
    make(&m, keys, "__address__=h:1");
    const char *const *lines = prom_job_request_headers(&m.job, 1500 * NS_PER_MS, a, &m.err);
    for (size_t i = 1; lines && lines[i]; i++) /* without Accept */
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s\n", lines[i]);
    assert_string_equal(lines ? got : m.err.text, want);
    arena_free(a);
    unmake(&m);
}

static void test_heads(void **state)
{
    (void)state;
    static const char scrape[] = "X-Prometheus-Scrape-Timeout-Seconds: 1.5\n";
    char want[500], path[] = "/tmp/motel-prom-XXXXXX", keys[200];
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, " from-a-file\n", 13) == 13);
    close(fd);
    snprintf(want, sizeof(want), "Accept-Encoding: gzip\n%s", scrape);
    expect_head("", want);
    snprintf(want, sizeof(want), "Accept-Encoding: identity\n%sAuthorization: Basic bWU6cHc=\n",
             scrape);
    expect_head("enable_compression: false, basic_auth: {username: me, password: pw}", want);
    snprintf(want, sizeof(want),
             "Accept-Encoding: gzip\n%sAuthorization: Token abc\nX-A: 1\nX-A: 2\n", scrape);
    expect_head("authorization: {type: Token, credentials: abc}, http_headers: {X-A: {values: [1], "
                "secrets: [2]}}",
                want);
    snprintf(keys, sizeof(keys), "bearer_token_file: %s", path);
    snprintf(want, sizeof(want), "Accept-Encoding: gzip\n%sAuthorization: Bearer from-a-file\n",
             scrape);
    expect_head(keys, want);
    unlink(path);
    snprintf(want, sizeof(want), "open %s: No such file or directory", path);
    expect_head(keys, want);
}

/* ---- files ---- */

static void expect_file(const char *suffix, const char *text, const char *want)
{
    char path[] = "/tmp/motel-sd-XXXXXX.json", got[500] = "";
    const int n = (int)strlen(suffix);
    snprintf(path + strlen(path) - 5, 6, "%s", suffix);
    const int fd = mkstemps(path, n);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    struct sd_groups *g = NULL;
    struct err e = {.text = ""};
    const int r = prom_sd_file_read(path, &g, &e);
    unlink(path);
    for (size_t i = 0; g && i < g->n; i++) {
        size_t at = strlen(got);
        for (size_t k = 0; k < g->items[i].ntargets; k++)
            at += (size_t)snprintf(got + at, sizeof(got) - at, "%s ", g->items[i].targets[k]);
        prom_labels_format(g->items[i].labels, got + at, sizeof(got) - at);
    }
    prom_sd_groups_free(g);
    if (r == 0)
        assert_string_equal(got, want);
    else if (!strstr(e.text, want))
        fail_msg("%s: \"%s\", not \"%s\"", text, e.text, want);
}

static void test_files(void **state)
{
    (void)state;
    expect_file(".json",
                "[{\"targets\": [\"a:1\", \"b:2\"], \"labels\": {\"x\": \"\\ud83d\\ude00\"}}, "
                "{\"targets\":[]}]",
                "a:1 b:2 {x=\"\xf0\x9f\x98\x80\"}{}");
    expect_file(".yml", "- targets: [a:1]\n  labels: {p: 80, \"y\": \"s\"}\n- {targets: ['b:2']}\n",
                "a:1 {p=\"80\", y=\"s\"}b:2 {}");
    expect_file(".yaml", "", "");
    expect_file(".json", "[]", "");
    expect_file(".json", "[{\"targets\": [1]}]", "expected targets to be strings");
    expect_file(".json", "[{\"targets\": [\"a:1\"], \"labels\": {\"x\": 1}}]", "values of labels");
    expect_file(".json", "[{\"source\": \"x\"}]", "no other keys");
    expect_file(".json", "{\"targets\": []}", "expected a list of groups");
    expect_file(".json", "[{\"targets\": ", ".json:1:");
    expect_file(".yml", "- targets: [a\n", ".yml:");
    expect_file(".yml", "- 5\n", "expected a map");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_specs),
                                       cmocka_unit_test(test_left_out),
                                       cmocka_unit_test(test_identity),
                                       cmocka_unit_test(test_heads), cmocka_unit_test(test_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
