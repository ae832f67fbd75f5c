/*
 * Whole operations with every allocation failing once, those of the libraries underneath, too: no
 * crash, no leak, and a result or an error with words. The oom tests say more of single parts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <unistd.h>

#include "agent/base/outlet.h"
#include "agent/base/regex_replace.h"
#include "agent/base/secrets.h"
#include "agent/config/value_json.h"
#include "agent/gym/embed.h"
#include "agent/gym/feed.h"
#include "agent/gym/report.h"
#include "agent/gym/telemetry.h"
#include "agent/load.h"
#include "agent/net/server.h"
#include "agent/pipeline/store.h"
#include "agent/report.h"
#include "agent/summary.h"
#include "alloc_failure.h"
#include "proto/any_value.h"
#include "proto/redact.h"
#include "rig.h"

static char folder[] = "/tmp/motel-alloc-XXXXXX";

/* ---- texts and logs ---- */

static int search_and_replace(const void *arg)
{
    _cleanup_(regex_freep) struct regex *re = NULL;
    _cleanup_buf_ struct buf *out = buf_new(0);
    struct err e = {.text = ""};
    int r = out ? regex_new(bytes_str(arg), &re, &e) : -ENOMEM;
    if (r == 0)
        r = regex_replace_text(re, bytes_str("aa-bb\xc3\xa9 12"), bytes_str("<$1${n}$$>"), out);
    else if (out)
        assert_int_not_equal(*e.text, 0);
    return r;
}

static int redact_text(const void *arg)
{
    _cleanup_buf_ struct buf *out = buf_new(0);
    secrets_add(arg);
    const bool known = !secrets_lost();
    int r =
        out ? secrets_redact(bytes_str("{\"a\": \"se\\\"cret-12\", \"b\": \"x\"}"), out) : -ENOMEM;
    if (r == 0 && known)
        assert_null(strstr(buf_str(out), "cret-12"));
    secrets_clear();
    return r;
}

static int write_log(const void *arg)
{
    char path[64];
    struct err e = {.text = ""};
    snprintf(path, sizeof(path), "%s/log", folder);
    const char *const paths[] = {path, NULL};
    const struct log_options o = {.level = LOG_INFO,
                                  .encoding = *(const enum log_encoding *)arg,
                                  .output_paths = paths,
                                  .sampling = true,
                                  .sampling_tick_ns = NS_PER_S,
                                  .sampling_initial = 10,
                                  .sampling_thereafter = 10,
                                  .resource_json = "{\"a\": \"b\"}",
                                  .initial_fields_json = "\"c\":1"};
    const struct logger lg = {"otlp", "receiver", "traces", NULL};
    int r = log_configure(&o, &e);
    if (r < 0)
        assert_int_not_equal(*e.text, 0);
    else
        log_info(&lg, "It happened", LOG_STR("s", "\"\n"), LOG_DBL("d", 1.5), LOG_BOOL("b", true));
    const unsigned left = alloc_pause();
    log_configure(&(struct log_options){.level = LOG_OFF}, NULL);
    alloc_go_on(left);
    return r;
}

static int put_out(const void *arg)
{
    (void)arg;
    const int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct outlet *o = outlet_new(fd, 1000);
    int r = o ? 0 : -ENOMEM;
    for (int i = 0; i < 3 && r == 0; i++) {
        struct buf *text = buf_new(0);
        r = text ? buf_append_str(text, "line\n") : -ENOMEM;
        if (r == 0)
            r = outlet_put(o, text, (struct outlet_note){0});
        if (r < 0)
            buf_unref(text);
    }
    if (o)
        outlet_flush(o, NULL, clock_now_ns() + 10 * NS_PER_S);
    outlet_free(o);
    close(fd);
    return r;
}

/* ---- telemetry ---- */

static struct batch *spans, *points;

static int redact_batch(const void *arg)
{
    (void)arg;
    struct batch *out = NULL;
    secrets_add("string");
    int r = otlp_redact_batch(spans, &out);
    batch_unref(out);
    secrets_clear();
    return r;
}

static int json_there_and_back(const void *arg)
{
    struct batch *const *b = arg;
    _cleanup_buf_ struct buf *text = buf_new(0), *wire = buf_new(0);
    struct err e = {.text = ""};
    int r = text && wire ? json_write_batch(*b, 0, text) : -ENOMEM;
    return r < 0 ? r : json_read(schema_request((*b)->signal), buf_bytes(text), wire, &e);
}

static int report_spans(const void *arg)
{
    const struct report_options o = {.all = *(const bool *)arg, .files = 1};
    _cleanup_(report_freep) struct report *r = report_new(0);
    _cleanup_buf_ struct buf *out = buf_new(0);
    int code = r && out ? report_add(r, spans) : -ENOMEM;
    if (code < 0)
        return code;
    report_judge(r);
    code = report_text(r, &o, out);
    if (code == 0)
        code = report_json(r, &o, out);
    return code < 0 ? code : report_sentence(r, out);
}

/* What the sink of a file gets: all of it, once, also after "out of memory". */
static int count_telemetry(void *ctx, struct batch *b)
{
    *(uint64_t *)ctx += b->records;
    batch_unref(b);
    return 0;
}

static int read_file(const void *arg)
{
    static uint64_t whole;
    uint64_t records = 0;
    const struct console_sink sink = {.telemetry = count_telemetry, .ctx = &records};
    struct feed f;
    struct err e = {.text = ""};
    int r = feed_open(&f, arg, &sink, &e), again = 0;
    while (r == 0 && (r = feed_step(&f, &e)) != 0)
        r = r > 0 ? 0 : r;
    if (r == -ENOMEM && f.reader && f.input)
        again = r; /* the caller's end */
    feed_done(&f);
    if (again == 0 && r == 0 && whole == 0)
        whole = records;
    if (r < 0)
        assert_int_not_equal(*e.text, 0);
    return r;
}

/* ---- queues on disk ---- */

static unsigned kept_ids; /* bits */

static bool see_entry(void *ctx, const struct store_entry *e)
{
    (void)ctx;
    kept_ids |= 1u << e->id;
    return true;
}

/* Puts the numbers 1 and 2, takes 1 away and puts 3, reads all; *ret: what must be there
 * afterwards. */
static int fill_store(struct store *st, unsigned *ret, struct err *e)
{
    const struct store_put first[] = {{1, spans}, {2, points}}, last = {3, spans};
    const uint64_t gone = 1;
    struct batch *b = NULL;
    int r = store_write(st, first, 2, NULL, 0, e);
    if (r < 0)
        return r;
    *ret = 1u << 1 | 1u << 2;
    r = store_write(st, &last, 1, &gone, 1, e);
    if (r < 0)
        return r;
    *ret = 1u << 2 | 1u << 3;
    r = store_read(st, 3, &b, e);
    if (r == 0)
        assert_int_equal(b->records, spans->records);
    batch_unref(b);
    return r;
}

static void assert_kept(struct host *h, const struct store_settings *s, unsigned want)
{
    struct err e = {.text = ""};
    struct store *st = NULL;
    struct batch *b = NULL;
    if (store_open(h, s, "queue", &st, &e) < 0)
        fail_msg("allocation %u failed: %s", fail_number, e.text);
    kept_ids = 0;
    assert_int_equal(store_each(st, see_entry, NULL, &e), 0);
    assert_int_equal(kept_ids, want);
    for (uint64_t id = 1; id <= 3; id++)
        if (want >> id & 1) {
            assert_int_equal(store_read(st, id, &b, &e), 0);
            batch_unref(b);
        }
    const uint64_t all[] = {1, 2, 3};
    assert_int_equal(store_write(st, NULL, 0, all, 3, &e), 0);
    store_close(st);
}

/* What was taken is there at the next start, and nothing else. */
static int keep_on_disk(const void *arg)
{
    (void)arg;
    const unsigned left = alloc_pause();
    struct host *h = host_new(NULL);
    alloc_go_on(left);
    const struct store_settings s = {.directory = folder};
    struct err e = {.text = ""};
    struct store *st = NULL;
    unsigned want = 0;
    int r = store_open(h, &s, "queue", &st, &e);
    if (r == 0)
        r = fill_store(st, &want, &e);
    store_close(st);
    if (r < 0)
        assert_int_not_equal(*e.text, 0);
    const unsigned rest = alloc_pause();
    assert_kept(h, &s, want);
    host_free(h);
    alloc_go_on(rest);
    return r;
}

/* ---- from the command line to running pipelines ---- */

struct invocation {
    const char *const *argv;
    bool runs; /* its pipelines are started, too */
};

static int start_graph(const struct loaded *l)
{
    struct cfg_errors errs = {0};
    struct err e = {.text = ""};
    struct graph *g = NULL;
    const unsigned left = alloc_pause();
    struct host *h = host_new(&l->motel);
    alloc_go_on(left);
    int r = graph_build(h, l->service, &errs, &g);
    if (r == 0) {
        host_set_graph(h, g);
        r = graph_start(g, &e);
        if (r < 0)
            assert_int_not_equal(*e.text, 0);
        graph_stop(g, clock_now_ns() + 10 * NS_PER_S);
        host_set_graph(h, NULL);
    } else if (fail_number == 0 || errs.n + errs.dropped == 0) {
        fail_msg("graph: %s", errs.n ? errs.items[0].text : "no words");
    }
    graph_free(g);
    cfg_errors_done(&errs);
    const unsigned rest = alloc_pause();
    host_free(h);
    alloc_go_on(rest);
    return r;
}

static int print(const struct loaded *l)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return -ENOMEM;
    service_settings_print(f, l->service);
    int r = fclose(f) == 0 ? 0 : -ENOMEM;
    free(text);
    return r;
}

static int invoke(const void *arg)
{
    const struct invocation *v = arg;
    struct command_line cl;
    struct err e = {.text = ""};
    struct cfg_errors errs = {0};
    struct loaded l = {0};
    int argc = 0;
    while (v->argv[argc])
        argc++;
    int r = command_line_parse(argc, (char *const *)v->argv, &cl, &e);
    if (r == 0) {
        r = load(&cl, &l, &errs);
        if (r < 0 && fail_number == 0)
            fail_msg("%s: %s", errs.items[0].path, errs.items[0].text);
        if (r == 0)
            r = print(&l);
        if (r == 0 && v->runs)
            r = start_graph(&l);
        loaded_done(&l);
    } else {
        assert_int_not_equal(*e.text, 0);
    }
    command_line_done(&cl);
    cfg_errors_done(&errs);
    secrets_clear();
    return r;
}

static int end_of_run(const void *arg)
{
    (void)arg;
    const unsigned left = alloc_pause();
    struct host *h = host_new(NULL);
    struct receiver_metrics m;
    receiver_metrics_get(h, "otlp", "http", SIGNAL_TRACES, &m);
    metric_add(m.accepted, 5);
    alloc_go_on(left);
    struct summary s;
    char path[64];
    struct err e = {.text = ""};
    _cleanup_buf_ struct buf *out = buf_new(0), *page = buf_new(0);
    snprintf(path, sizeof(path), "%s/summary.json", folder);
    const struct summary_place place = {.path = path};
    int r = summary_collect(h, &s);
    if (r == 0)
        r = out && page ? summary_text(&s, "x", out) : -ENOMEM;
    if (r == 0)
        r = summary_json(&s, out);
    if (r == 0)
        r = metrics_render(h, page);
    if (r == 0)
        r = summary_write(&place, buf_bytes(out), -1, clock_now_ns() + 100 * NS_PER_S, &e);
    summary_done(&s);
    host_free(h);
    return r;
}

static int serve(const void *arg)
{
    struct listener *l = NULL;
    struct err e = {.text = ""};
    const struct server_settings s = {.endpoint = arg};
    const struct http_service service = {0};
    int r = listener_open(&s, &l, &e);
    if (r == 0)
        r = listener_serve(l, &service, &e);
    if (r < 0)
        assert_int_not_equal(*e.text, 0);
    listener_free(l);
    return r;
}

static const enum log_encoding console = LOG_CONSOLE, json = LOG_JSON;
static const bool yes = true, no = false;
static const char big_config[] =
    "yaml:{receivers: {otlp: {protocols: {grpc: {endpoint: '127.0.0.1:0'}, http: {endpoint: "
    "'127.0.0.1:0'}}}, nop: }, processors: {batch: , resource: {attributes: [{key: a, value: "
    "'${env:HOME}', action: upsert}]}}, connectors: {forward: }, exporters: {nop: , 'debug/1': "
    "{verbosity: normal}, otlp_http: {endpoint: 'http://127.0.0.1:1', headers: {a: "
    "'${env:ALLOC_TOKEN}'}, "
    "sending_queue: {queue_size: 3}}}, extensions: {health_check: {endpoint: '127.0.0.1:0'}}, "
    "service: {extensions: [health_check], telemetry: {logs: {level: error}, metrics: {level: "
    "none}}, pipelines: {traces: {receivers: [otlp], processors: [resource, batch], exporters: "
    "[forward]}, traces/2: {receivers: [forward], exporters: [nop, otlp_http]}, logs: {receivers: "
    "[otlp, nop], exporters: [nop]}}}}";
static const char *const collector[] = {"motel",
                                        "--config",
                                        big_config,
                                        "--set",
                                        "exporters.otlp_http.timeout=1s",
                                        "--shutdown-timeout",
                                        "5s",
                                        NULL};
static const char *const gym[] = {"motel", "--gym-config", TEST_DATA "/golden/gym/block.yaml",
                                  NULL};
static const char *const nothing[] = {"motel", NULL};
static const struct invocation as_collector = {collector, true}, with_gym = {gym, false},
                               plain = {nothing, false};

static const struct alloc_case cases[] = {
    {"regular expression", search_and_replace, "(?P<n>[a-z]+)|\\s*(\\d{1,3})?$", 0},
    {"regular expression of characters", search_and_replace, "(?i)([\\pL]+?)(?:x|y)*", 0},
    {"redaction of text", redact_text, "Bearer se\"cret-12", 0},
    {"console log", write_log, &console, 0},
    {"JSON log", write_log, &json, 0},
    {"outlet", put_out, NULL, 0},
    {"redaction of a batch", redact_batch, NULL, 0},
    {"JSON of spans", json_there_and_back, &spans, 0},
    {"JSON of points", json_there_and_back, &points, 0},
    {"report", report_spans, &no, 0},
    {"whole report", report_spans, &yes, 0},
    {"console log file", read_file, TEST_DATA "/golden/console/sdk-1.45.1.indent.log", 0},
    {"file of a file exporter", read_file,
     TEST_DATA "/golden/otlp-file/go-http-gzip-002-traces.http.jsonl", 0},
    {"queue on disk", keep_on_disk, NULL, 0},
    {"collector", invoke, &as_collector, 7},
    {"Gym's collector", invoke, &with_gym, 0},
    {"collector without a configuration", invoke, &plain, 0},
    {"summary", end_of_run, NULL, 0},
    {"listener", serve, "127.0.0.1:0", 0},
};

static void test_operations(void **state)
{
    (void)state;
    const char *only = getenv("ALLOC_FAILURE_CASE");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (!only || strcmp(cases[i].name, only) == 0)
            alloc_case_check(&cases[i]);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    setenv("ALLOC_TOKEN", "Bearer token-123", 1);
    setenv("NEMO_GYM_OTEL_ENABLED", "true", 1);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", 1);
    spans = rig_all_fields(SIGNAL_TRACES);
    points = rig_all_fields(SIGNAL_METRICS);
    return 0;
}

static int clean_up(void **state)
{
    (void)state;
    batch_unref(spans);
    batch_unref(points);
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
    log_configure(&(struct log_options){.level = LOG_OFF}, NULL);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_operations)};
    return cmocka_run_group_tests(tests, set_up, clean_up);
}
