/* Samples to OTLP: what recorded pages do not show, and where the mapping is kinder than the
 * reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "prom_page.h"

#define RESOURCE                                                                                   \
    "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{"   \
    "\"stringValue\":\"job\"}},{\"key\":\"service.instance.id\",\"value\":{\"stringValue\":"       \
    "\"127.0.0.1:9100\"}},{\"key\":\"server.port\",\"value\":{\"stringValue\":\"9100\"}},{"        \
    "\"key\":\"url.scheme\",\"value\":{\"stringValue\":\"http\"}}]},"
#define SCOPE                                                                                      \
    "\"scopeMetrics\":[{\"scope\":{\"name\":\"github.com/open-telemetry/"                          \
    "opentelemetry-collector-contrib/receiver/prometheusreceiver\",\"version\":\"0.161.0\"},"      \
    "\"metrics\":["
#define END "]}]}]}"
#define TIME "\"timeUnixNano\":\"1700000000000000000\""
#define OF(type)                                                                                   \
    ",\"metadata\":[{\"key\":\"prometheus.type\",\"value\":{\"stringValue\":\"" type "\"}}]}"
#define GAUGE(name, type, points)                                                                  \
    "{\"name\":\"" name "\",\"gauge\":{\"dataPoints\":[" points "]}" OF(type)
#define SUM(name, points)                                                                          \
    "{\"name\":\"" name "\",\"sum\":{\"dataPoints\":[" points                                      \
    "],\"aggregationTemporality\":2,\"isMonotonic\":true}" OF("counter")
#define HISTOGRAM(name, points)                                                                    \
    "{\"name\":\"" name "\",\"histogram\":{\"dataPoints\":[" points                                \
    "],\"aggregationTemporality\":2}" OF("histogram")
#define LABEL(k, v) "{\"key\":\"" k "\",\"value\":{\"stringValue\":\"" v "\"}}"

static void assert_json(struct prom_page *p, const char *what, const char *expected)
{
    struct buf *got = prom_page_json(p);
    if (strcmp(buf_str(got), expected) != 0)
        fail_msg("%s\n got %s\nwant %s", what, buf_str(got), expected);
    buf_unref(got);
}

struct page {
    enum prom_format format;
    const char *text, *json;
    unsigned left_out;
};

static const struct page pages[] = {
    {PROM_TEXT, "", "", 0},
    {PROM_TEXT, "# TYPE a gauge\n", "", 0},
    {PROM_TEXT, "a{z=\"1\",b=\"\"} 0",
     RESOURCE SCOPE GAUGE("a", "unknown",
                          "{\"attributes\":[" LABEL("z", "1") "]," TIME ",\"asDouble\":0}") END,
     0},
    /* two names, one counter: the last one counts */
    {PROM_TEXT, "# TYPE a counter\na{x=\"1\"} 5\na_total{x=\"1\"} 6\n",
     RESOURCE SCOPE SUM("a", "{\"attributes\":[" LABEL("x", "1") "]," TIME ",\"asDouble\":6}") END,
     0},
    /* counts that fall, above the count, no numbers */
    {PROM_TEXT,
     "# TYPE h histogram\nh_bucket{le=\"1\"} 5\nh_bucket{le=\"2\"} 3\nh_bucket{le=\"3\"} 7.5\n"
     "h_bucket{le=\"4\"} NaN\nh_bucket{le=\"5\"} 99\nh_count 9\n",
     RESOURCE SCOPE HISTOGRAM("h", "{" TIME ",\"count\":\"9\",\"bucketCounts\":[\"5\",\"0\",\"2\","
                                   "\"0\",\"2\",\"0\"],\"explicitBounds\":[1,2,3,4,5]}") END,
     0},
    {PROM_TEXT, "# TYPE h histogram\nh_bucket{le=\"1\"} 5\nh_count -1\n",
     RESOURCE SCOPE HISTOGRAM("h", "{" TIME
                                   ",\"bucketCounts\":[\"0\",\"0\"],\"explicitBounds\":[1]}") END,
     0},
    {PROM_TEXT, "# TYPE h histogram\nh_bucket{le=\"-Inf\"} 1\nh_count 1e300\nh_sum -0\n",
     RESOURCE SCOPE HISTOGRAM("h", "{" TIME ",\"count\":\"18446744073709551615\",\"sum\":-0,"
                                   "\"bucketCounts\":[\"1\",\"18446744073709551614\"],"
                                   "\"explicitBounds\":[\"-Infinity\"]}") END,
     0},
    /* the same bound twice */
    {PROM_TEXT,
     "# TYPE h histogram\nh_bucket{le=\"1.0\"} 2\nh_bucket{le=\"1\"} 3\nh_bucket{le=\"0.5\"} 1\n"
     "h_bucket{le=\"+Inf\"} 4\nh_count 4\n",
     RESOURCE SCOPE HISTOGRAM("h", "{" TIME ",\"count\":\"4\",\"bucketCounts\":[\"1\",\"2\",\"1\"]"
                                   ",\"explicitBounds\":[0.5,1]}") END,
     0},
    {PROM_TEXT,
     "# TYPE h histogram\nh_bucket{le=\"x\"} 2\nh_bucket 3\nh_bucket{le=\"NaN\"} 3\nh_count 4\n",
     RESOURCE SCOPE HISTOGRAM("h", "{" TIME ",\"count\":\"4\",\"bucketCounts\":[\"4\"]}") END, 3},
    /* no count: no point */
    {PROM_TEXT, "# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_sum 3\n# TYPE s summary\ns_sum 1\n",
     "", 2},
    /* a name that extends that of a gauge */
    {PROM_TEXT, "# TYPE a gauge\na 1\na_count 2\na_count 3\n",
     RESOURCE SCOPE GAUGE("a", "gauge", "{" TIME ",\"asDouble\":1}") "," GAUGE(
         "a_count", "gauge", "{" TIME ",\"asDouble\":3}") END,
     0},
    /* a type that comes too late */
    {PROM_TEXT, "h 1\n# TYPE h histogram\nh_count 2\n",
     RESOURCE SCOPE GAUGE("h", "unknown", "{" TIME ",\"asDouble\":1}") "," GAUGE(
         "h_count", "unknown", "{" TIME ",\"asDouble\":2}") END,
     0},
    /* one time for all samples of a point */
    {PROM_TEXT, "# TYPE h histogram\nh_count 1 5\nh_sum 1 6\n",
     RESOURCE SCOPE HISTOGRAM("h", "{\"timeUnixNano\":\"5000000\",\"count\":\"1\","
                                   "\"bucketCounts\":[\"1\"]}") END,
     1},
    {PROM_OPENMETRICS, "# TYPE c counter\nc_total 1\nc_created -5\nc_total{x=\"1\"} 1\n# EOF",
     RESOURCE SCOPE SUM("c_total", "{" TIME ",\"asDouble\":1},{\"attributes\":[" LABEL(
                                       "x", "1") "]," TIME ",\"asDouble\":1}") END,
     0},
    {PROM_OPENMETRICS, "# TYPE c counter\nc_created 0.5\nc_total 1\n# EOF",
     RESOURCE SCOPE SUM("c_total", "{\"startTimeUnixNano\":\"500000000\"," TIME ",\"asDouble\":1}")
         END,
     0},
    {PROM_TEXT, "a{__scheme__=\"x\",__metrics_path__=\"y\",__z=\"1\"} 1\n",
     RESOURCE SCOPE GAUGE("a", "unknown",
                          "{\"attributes\":[" LABEL("__z", "1") "]," TIME ",\"asDouble\":1}") END,
     0},
    {PROM_TEXT, "target_info{a=\"1\",url=\"x\"} 1\n", "", 0},
};

static void test_pages(void **state)
{
    struct err err = {0};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        struct prom_page p;
        prom_page_open(&p);
        const int r = prom_page_read(&p, pages[i].format, bytes_str(pages[i].text), false, &err);
        if (r < 0)
            fail_msg("%s: %s", pages[i].text, err.text);
        assert_json(&p, pages[i].text, pages[i].json);
        if (p.left_out.samples != pages[i].left_out || !*p.left_out.first != !pages[i].left_out)
            fail_msg("%s: %d left out, %s", pages[i].text, (int)p.left_out.samples,
                     p.left_out.first);
        prom_page_close(&p);
    }
}

/* ---- resources ---- */

static void assert_address(const char *instance, const char *address, const char *port)
{
    char start[700], expected[200] = "";
    struct prom_page p;
    prom_page_open(&p);
    p.origin.instance = bytes_str(instance);
    assert_int_equal(prom_page_read(&p, PROM_TEXT, bytes_str("a 1"), false, NULL), 0);
    struct buf *got = prom_page_json(&p);
    if (address)
        snprintf(expected, sizeof(expected),
                 "{\"key\":\"server.address\",\"value\":{\"stringValue\":\"%s\"}},", address);
    snprintf(start, sizeof(start),
             "%s" LABEL("service.instance.id", "%s") "," LABEL("server.port", "%s") ",", expected,
             instance, port);
    if (!strstr(buf_str(got), start) || (!address && strstr(buf_str(got), "server.address")))
        fail_msg("%s: %s", instance, buf_str(got));
    buf_unref(got);
    prom_page_close(&p);
}

static void test_addresses(void **state)
{
    (void)state;
    assert_address("node-1:9100", "node-1", "9100");
    assert_address("10.0.0.1:80", "10.0.0.1", "80");
    assert_address("[fe80::1]:80", "fe80::1", "80");
    assert_address("::1:80", "::1:80", "");
    assert_address("node", "node", "");
    assert_address("node:", "node", "");
    assert_address("[::1:80", "[::1:80", "");
    assert_address("a[b]:80", "a[b]:80", "");
    assert_address("localhost:80", NULL, "80");
    assert_address("localhost", NULL, "");
    assert_address("LOCALHOST:1", "LOCALHOST", "1");
    assert_address("127.1.2.3:80", NULL, "80");
    assert_address("0.0.0.0:80", NULL, "80");
    assert_address("[::1]:80", NULL, "80");
    assert_address("[::]:80", NULL, "80");
    assert_address("[::ffff:127.0.0.1]:80", NULL, "80");
    assert_address("[::ffff:10.0.0.1]:80", "::ffff:10.0.0.1", "80");
}

static void test_resources(void **state)
{
    struct prom_page p;
    const struct prom_label pod = {bytes_str("k8s.pod.name"), bytes_str("p")};
    (void)state;
    prom_page_open(&p);
    p.origin.resource = (struct prom_labels){&pod, 1};
    assert_int_equal(
        prom_page_read(&p, PROM_TEXT,
                       bytes_str("a{job=\"j2\"} 1\n"
                                 "target_info{job=\"j2\",k=\"v\",url.scheme=\"x\"} 1\n"),
                       false, NULL),
        -EINVAL); /* no such label name */
    prom_mapper_begin(p.mapper, &p.origin);
    assert_int_equal(
        prom_page_read(&p, PROM_TEXT,
                       bytes_str("a{job=\"j2\"} 1\n"
                                 "target_info{job=\"j2\",k=\"v\",\"url.scheme\"=\"x\"} 1\n"),
                       false, NULL),
        0);
    assert_json(
        &p, "two resources",
        "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[" LABEL("service.name", "j2") "," LABEL(
            "service.instance.id",
            "127.0.0.1:9100") "," LABEL("server.port",
                                        "9100") "," LABEL("url.scheme",
                                                          "x") "," LABEL("k8s.pod.name",
                                                                         "p") "," LABEL("k", "v") "]}," SCOPE
            GAUGE("a", "unknown", "{" TIME ",\"asDouble\":1}") END);
    prom_page_close(&p);
}

/* ---- stale points ---- */

static void test_stale(void **state)
{
    static const char page[] =
        "# TYPE c counter\nc_total 1\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\n"
        "h_bucket{le=\"+Inf\"} 2\nh_count 2\nh_sum 3\n# TYPE s summary\ns{quantile=\"0.5\"} 1\n"
        "s_sum 1\ns_count 1\n";
    struct prom_page p;
    (void)state;
    prom_page_open(&p);
    assert_int_equal(prom_page_read(&p, PROM_TEXT, bytes_str(page), false, NULL), 0);
    buf_unref(prom_page_json(&p));
    assert_int_equal(p.points, 3);
    assert_int_equal(prom_page_read(&p, PROM_TEXT, bytes_str(page), true, NULL), 0);
    assert_json(&p, "stale",
                RESOURCE SCOPE
                    SUM("c_total", "{" TIME ",\"flags\":1}") "," HISTOGRAM(
                        "h",
                        "{" TIME ",\"bucketCounts\":[\"0\",\"0\"],\"explicitBounds\":[1],\"flags\":"
                                 "1}") ",{\"name\":\"s\",\"summary\":{\"dataPoints\":[{" TIME
                                       ",\"quantileValues\":[{\"quantile\":"
                                       "0.5}],\"flags\":1}]}" OF("summary") END);
    prom_page_close(&p);
}

/* A bucket that went away leaves the others, and a series that came back under another name is no
 * stale one. */
static void test_partly_stale(void **state)
{
    struct prom_page p;
    (void)state;
    prom_page_open(&p);
    assert_int_equal(prom_page_read(&p, PROM_TEXT,
                                    bytes_str("# TYPE c counter\nc_total 1\n# TYPE h histogram\n"
                                              "h_bucket{le=\"1\"} 1\nh_count 2\nh_sum 3\n"),
                                    false, NULL),
                     0);
    assert_int_equal(prom_page_read(&p, PROM_TEXT,
                                    bytes_str("c 1\nh_bucket{le=\"0.5\"} 0\nh_sum 3\n"), true,
                                    NULL),
                     0);
    assert_json(&p, "partly stale",
                RESOURCE SCOPE SUM("c_total", "{" TIME ",\"asDouble\":1}") "," HISTOGRAM(
                    "h", "{" TIME ",\"count\":\"2\",\"bucketCounts\":[\"1\",\"1\"],"
                         "\"explicitBounds\":[1]}") "," SUM("c", "{" TIME ",\"flags\":1}") END);
    prom_page_close(&p);
}

/* ---- samples that make a scrape bad ---- */

static void test_bad_samples(void **state)
{
    static const struct {
        const char *page, *error;
    } bad[] = {
        {"ok 1\na{x=\"1\",x=\"2\"} 1\n", "expected each label once, got twice \"x\""},
        {"a{__name__=\"b\"} 1\n", "got twice \"__name__\""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct prom_page p;
        struct err err = {0};
        prom_page_open(&p);
        assert_int_equal(prom_page_read(&p, PROM_TEXT, bytes_str(bad[i].page), false, &err),
                         -EINVAL);
        if (!strstr(err.text, bad[i].error))
            fail_msg("%s: %s", bad[i].page, err.text);
        /* nothing of that scrape is left */
        prom_mapper_begin(p.mapper, &p.origin);
        assert_json(&p, bad[i].page, "");
        prom_page_close(&p);
    }
}

static void test_nameless(void **state)
{
    const struct prom_label labels[] = {{bytes_str("__name__"), {0}},
                                        {bytes_str("x"), bytes_str("1")}};
    const struct prom_label up[] = {{bytes_str("__name__"), bytes_str("up")}};
    const struct prom_label unnamed[] = {{{0}, bytes_str("x")}};
    struct prom_sample s = {.labels = {labels, 2}};
    struct prom_page p;
    struct err err = {0};
    (void)state;
    prom_page_open(&p);
    assert_int_equal(prom_mapper_add(p.mapper, &s, &err), -EINVAL);
    assert_non_null(strstr(err.text, "without __name__"));
    s.labels = (struct prom_labels){unnamed, 1};
    assert_int_equal(prom_mapper_add(p.mapper, &s, &err), -EINVAL);
    s.labels = (struct prom_labels){up, 1};
    assert_int_equal(prom_mapper_add(p.mapper, &s, &err), 1);
    p.origin.job = (struct bytes){0};
    assert_int_equal(prom_mapper_add(p.mapper, &s, &err), -EINVAL);
    assert_non_null(strstr(err.text, "expected a job and an instance, got none for \"up\""));
    prom_page_close(&p);
}

/* ---- the scraper's own samples, options ---- */

static void test_own(void **state)
{
    struct prom_page p;
    (void)state;
    prom_page_open(&p);
    assert_int_equal(
        prom_page_read(&p, PROM_TEXT,
                       bytes_str("# TYPE up counter\nup 0\n"
                                 "scrape_duration_seconds 2\nscrape_timeout_seconds 3"),
                       false, NULL),
        0);
    assert_json(&p, "up",
                RESOURCE SCOPE
                "{\"name\":\"up\",\"description\":\"The scraping was successful\",\"gauge\":{"
                "\"dataPoints\":[{" TIME
                ",\"asDouble\":0}]}" OF("gauge") ",{\"name\":\"scrape_duration_seconds\","
                                                 "\"description\":\"Duration of the scrape\","
                                                 "\"unit\":\"s\",\"gauge\":{\"dataPoints\":[{" TIME
                                                 ",\"asDouble\":2}]}" OF("gauge") "," GAUGE(
                                                     "scrape_timeout_seconds", "unknown",
                                                     "{" TIME ",\"asDouble\":3}") END);
    prom_page_close(&p);
}

static void test_trimmed_names(void **state)
{
    struct prom_page p;
    (void)state;
    prom_page_open(&p);
    p.origin.trim_suffixes = true;
    assert_int_equal(prom_page_read(&p, PROM_OPENMETRICS,
                                    bytes_str("# TYPE a_seconds counter\n# UNIT a_seconds seconds\n"
                                              "a_seconds_total 1\nb_total 2\n# EOF"),
                                    false, NULL),
                     0);
    assert_json(&p, "trimmed",
                RESOURCE SCOPE "{\"name\":\"a\",\"unit\":\"s\",\"sum\":{\"dataPoints\":[{" TIME
                               ",\"asDouble\":1}],\"aggregationTemporality\":2,\"isMonotonic\":"
                               "true}" OF("counter") "," GAUGE("b_total", "unknown",
                                                               "{" TIME ",\"asDouble\":2}") END);
    prom_page_close(&p);
}

/* A time of creation that the format gives besides, and answers of prom_mapper_add(). */
static void test_created(void **state)
{
    const struct prom_label labels[] = {{bytes_str("__name__"), bytes_str("c_total")}};
    const struct prom_label info[] = {{bytes_str("__name__"), bytes_str("target_info")}};
    const struct prom_entry type = {
        .kind = PROM_TYPE, .family = bytes_str("c"), .type = PROM_COUNTER};
    struct prom_sample s = {
        .labels = {labels, 1}, .value = 2, .time_ms = PAGE_TIME_MS, .created_ms = 1500};
    struct prom_page p;
    (void)state;
    prom_page_open(&p);
    assert_int_equal(prom_metadata_note(p.metadata, &type), 0);
    assert_int_equal(prom_mapper_add(p.mapper, &s, NULL), 1);
    s.time_ms++;
    assert_int_equal(prom_mapper_add(p.mapper, &s, NULL), 0); /* left out: two times */
    s.labels.items = info;
    assert_int_equal(prom_mapper_add(p.mapper, &s, NULL), 0);
    assert_json(&p, "created",
                RESOURCE SCOPE SUM("c_total", "{\"startTimeUnixNano\":\"1500000000\"," TIME
                                              ",\"asDouble\":2}") END);
    assert_non_null(strstr(p.left_out.first, "\"c_total\""));
    prom_page_close(&p);
}

/* Many of everything: tables grow, nothing is mixed up, and all memory comes back. */
static void test_many(void **state)
{
    const size_t before = mem_used();
    struct buf *text = buf_new(0);
    struct prom_page p;
    (void)state;
    for (unsigned i = 0; i < 3000; i++)
        buf_printf(text, "m%u{job=\"j%u\",otel_scope_name=\"s%u\",x=\"%u\"} %u\n", i % 700, i % 11,
                   i % 5, i, i);
    prom_page_open(&p);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(prom_page_read(&p, PROM_TEXT, buf_bytes(text), false, NULL), 0);
        buf_unref(prom_page_json(&p));
        assert_int_equal(p.points, 3000);
    }
    prom_page_close(&p);
    buf_unref(text);
    assert_int_equal(mem_used(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),         cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_resources),     cmocka_unit_test(test_stale),
        cmocka_unit_test(test_partly_stale),  cmocka_unit_test(test_bad_samples),
        cmocka_unit_test(test_nameless),      cmocka_unit_test(test_own),
        cmocka_unit_test(test_trimmed_names), cmocka_unit_test(test_created),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
