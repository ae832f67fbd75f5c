/* Recorded outputs: what is found in each, and that it is the same as what OTLP carried. */
#include "console_rig.h"

#include <math.h>

#include <dirent.h>

#include "agent/base/encode.h"
#include "exporters/console/lines.h"
#include "proto/otlp/logs_service.pb-c.h"
#include "proto/otlp/metrics_service.pb-c.h"
#include "proto/otlp/trace_service.pb-c.h"
#include "proto/schema_pbc.h"

#define FOLDER TEST_DATA "/golden/console/"

static struct buf *load(const char *name)
{
    _cleanup_buf_ struct buf *path = buf_new(0);
    buf_printf(path, FOLDER "%s", name);
    _cleanup_fclose_ FILE *f = fopen(buf_str(path), "r");
    struct buf *b = buf_new(0);
    if (!f)
        fail_msg("cannot open %s", buf_str(path));
    for (size_t n = 1; n > 0; buf_commit(b, n)) {
        assert_int_equal(buf_reserve(b, 65536), 0);
        n = fread(buf_tail(b), 1, 65536, f);
    }
    return b;
}

/* ---- what is found ---- */

static const struct {
    const char *name;
    uint64_t spans, points, logs, plain, malformed;
} files[] = {
    {"paired.line.log", 13, 34, 17, 0, 0},
    {"paired.indent.log", 13, 34, 17, 0, 0},
    {"sdk-1.45.1.line.log", 5, 19, 10, 9, 0},
    {"sdk-1.45.1.indent.log", 5, 19, 10, 9, 0},
    {"two-servers.lens-0.1.0.agent.log", 5, 20, 10, 17, 0},
    {"two-servers.lens-0.1.0.model.log", 3, 20, 9, 11, 0},
    {"two-servers.lens-0.2.0-b85578f.agent.log", 5, 40, 11, 18, 0},
    {"two-servers.lens-0.2.0-b85578f.model.log", 3, 40, 10, 12, 0},
    {"gym-run/env-start.stdout.log", 233, 356, 1, 129, 0},
    {"gym-run/eval-run.stdout.log", 0, 0, 0, 52, 0},
    /* these end in the middle of a record */
    {"gym-run-indent/example_single_tool_call.log", 22, 0, 0, 18, 1},
    {"gym-run-indent/example_single_tool_call_environment_server.log", 10, 3, 0, 51, 1},
    {"gym-run-indent/example_single_tool_call_simple_agent.log", 18, 0, 0, 32, 1},
    {"gym-run-indent/policy_model.log", 28, 0, 0, 23, 1},
};

static void read_file(const char *name, size_t step, struct notes *n, struct console_stats *ret)
{
    _cleanup_buf_ struct buf *text = load(name);
    struct console_reader *r = notes_reader(n, 0);
    feed_all(r, buf_bytes(text), step);
    assert_int_equal(console_flush(r, false), 0);
    *ret = *console_reader_stats(r);
    console_reader_free(r);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of `b`, sorted; each ends with a NUL in place of its line end. */
static char **sorted_lines(struct buf *b, size_t *ret_n)
{
    char **lines = calloc(b->len + 1, sizeof(*lines));
    buf_str(b);
    *ret_n = 0;
    for (char *p = (char *)b->data, *end = p + b->len; p < end; p += strlen(p) + 1) {
        *strchr(p, '\n') = 0;
        lines[(*ret_n)++] = p;
    }
    qsort(lines, *ret_n, sizeof(*lines), by_text);
    return lines;
}

static void assert_same_records(const char *name, struct buf *got, struct buf *want)
{
    size_t ngot, nwant;
    char **g = sorted_lines(got, &ngot), **w = sorted_lines(want, &nwant);
    for (size_t i = 0; i < ngot && i < nwant; i++)
        if (strcmp(g[i], w[i]) != 0)
            fail_msg("%s:\n got %s\nwant %s", name, g[i], w[i]);
    assert_int_equal(ngot, nwant);
    assert_true(ngot > 0);
    free(g);
    free(w);
}

static void test_files(void **state)
{
    static const size_t steps[] = {SIZE_MAX, 4096, 777, 1};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(steps); k++) {
            struct notes n;
            struct console_stats s;
            notes_init(&n);
            read_file(files[i].name, steps[k], &n, &s);
            if (s.records[SIGNAL_TRACES] != files[i].spans ||
                s.records[SIGNAL_METRICS] != files[i].points ||
                s.records[SIGNAL_LOGS] != files[i].logs || s.plain_lines != files[i].plain ||
                s.malformed != files[i].malformed || s.oversized)
                fail_msg("%s: %lu spans, %lu points, %lu logs, %lu plain, %lu malformed",
                         files[i].name, s.records[SIGNAL_TRACES], s.records[SIGNAL_METRICS],
                         s.records[SIGNAL_LOGS], s.plain_lines, s.malformed);
            notes_done(&n);
        }
    }
}

/* The two forms of the same data are the same data. */
static void test_line_and_indent(void **state)
{
    (void)state;
    struct notes line, indent;
    struct console_stats s;
    notes_init(&line);
    notes_init(&indent);
    read_file("paired.line.log", SIZE_MAX, &line, &s);
    read_file("paired.indent.log", 1000, &indent, &s);
    assert_same_records("paired", line.json, indent.json);
    notes_done(&line);
    notes_done(&indent);
}

/* ---- against OTLP, less what the console does not carry ---- */

/* What Python makes of nanoseconds: a float of seconds, rounded to microseconds, half to even. */
static uint64_t printed(uint64_t ns)
{
    double whole, fraction = modf((double)ns / 1e9, &whole);
    return (uint64_t)whole * 1000000000 + (uint64_t)nearbyint(fraction * 1e6) * 1000;
}

static void reduce_span(Opentelemetry__Proto__Trace__V1__Span *s)
{
    s->flags = s->dropped_attributes_count = s->dropped_events_count = s->dropped_links_count = 0;
    s->start_time_unix_nano = printed(s->start_time_unix_nano);
    s->end_time_unix_nano = printed(s->end_time_unix_nano);
    for (size_t i = 0; i < s->n_events; i++) {
        s->events[i]->time_unix_nano = printed(s->events[i]->time_unix_nano);
        s->events[i]->dropped_attributes_count = 0;
    }
    for (size_t i = 0; i < s->n_links; i++)
        s->links[i]->flags = s->links[i]->dropped_attributes_count = 0;
}

static void reduce_spans(Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest *q)
{
    for (size_t i = 0; i < q->n_resource_spans; i++) {
        for (size_t k = 0; k < q->resource_spans[i]->n_scope_spans; k++) {
            Opentelemetry__Proto__Trace__V1__ScopeSpans *e = q->resource_spans[i]->scope_spans[k];
            opentelemetry__proto__common__v1__instrumentation_scope__free_unpacked(e->scope, NULL);
            e->scope = NULL;
            e->schema_url.len = 0;
            for (size_t j = 0; j < e->n_spans; j++)
                reduce_span(e->spans[j]);
        }
    }
}

/* Bytes are printed as base64. */
static void reduce_body(Opentelemetry__Proto__Common__V1__AnyValue *v)
{
    if (v->value_case != OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_BYTES_VALUE)
        return;
    ProtobufCBinaryData in = v->bytes_value,
                        out = {base64_size(in.len), malloc(base64_size(in.len))};
    encode_base64(bytes_of(in.data, in.len), out.data);
    free(in.data);
    v->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
    v->string_value = out;
}

static void reduce_logs(Opentelemetry__Proto__Collector__Logs__V1__ExportLogsServiceRequest *q)
{
    for (size_t i = 0; i < q->n_resource_logs; i++) {
        for (size_t k = 0; k < q->resource_logs[i]->n_scope_logs; k++) {
            Opentelemetry__Proto__Logs__V1__ScopeLogs *e = q->resource_logs[i]->scope_logs[k];
            opentelemetry__proto__common__v1__instrumentation_scope__free_unpacked(e->scope, NULL);
            e->scope = NULL;
            e->schema_url.len = 0;
            for (size_t j = 0; j < e->n_log_records; j++) {
                e->log_records[j]->time_unix_nano = printed(e->log_records[j]->time_unix_nano);
                e->log_records[j]->observed_time_unix_nano =
                    printed(e->log_records[j]->observed_time_unix_nano);
                reduce_body(e->log_records[j]->body);
            }
        }
    }
}

/* Notes what a recorded request holds. */
static void note_request(struct notes *n, const char *name)
{
    enum signal s = strstr(name, "traces") ? SIGNAL_TRACES
                    : strstr(name, "logs") ? SIGNAL_LOGS
                                           : SIGNAL_METRICS;
    _cleanup_buf_ struct buf *wire = load(name);
    struct buf *out = buf_new(0);
    struct batch *b = NULL;
    ProtobufCMessage *m =
        protobuf_c_message_unpack(schema_descriptor(schema_request(s)), NULL, wire->len, wire->data);
    assert_non_null(m);
    if (s == SIGNAL_TRACES)
        reduce_spans((void *)m);
    if (s == SIGNAL_LOGS)
        reduce_logs((void *)m);
    assert_int_equal(buf_reserve(out, protobuf_c_message_get_packed_size(m)), 0);
    buf_commit(out, protobuf_c_message_pack(m, buf_tail(out)));
    protobuf_c_message_free_unpacked(m, NULL);
    assert_int_equal(batch_from_wire(s, out, &b, NULL), 0);
    note_telemetry(n, b);
}

static void test_paired(void **state)
{
    static const char *const requests[] = {
        "paired-001-metrics.http.pb", "paired-002-metrics.http.pb", "paired-003-metrics.http.pb",
        "paired-004-metrics.http.pb", "paired-005-logs.http.pb",    "paired-006-traces.http.pb",
    };
    (void)state;
    struct notes got, want;
    struct console_stats s;
    notes_init(&got);
    notes_init(&want);
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
        note_request(&want, requests[i]);
    read_file("paired.line.log", SIZE_MAX, &got, &s);
    assert_same_records("paired", got.json, want.json);
    notes_done(&got);
    notes_done(&want);
}

/* ---- against the console exporter ---- */

static int add_lines(void *ctx, struct batch *b)
{
    int r = console_lines(b, ctx);
    batch_unref(b);
    return r;
}

/* The exporter's lines, read and written again, are the same lines. */
static void check_round(const char *name)
{
    enum signal s = strstr(name, "traces") ? SIGNAL_TRACES
                    : strstr(name, "logs") ? SIGNAL_LOGS
                                           : SIGNAL_METRICS;
    _cleanup_buf_ struct buf *once = buf_new(0), *twice = buf_new(0), *path = buf_new(0);
    struct batch *b = NULL;
    size_t used;
    buf_printf(path, "../otlp/%s", name);
    assert_int_equal(batch_from_wire(s, load(buf_str(path)), &b, NULL), 0);
    uint32_t records = b->records;
    add_lines(once, b);
    const struct console_sink sink = {.telemetry = add_lines, .ctx = twice};
    struct console_reader *r = console_reader_new(&sink, 0);
    assert_int_equal(console_feed(r, buf_bytes(once), &used), 0);
    assert_int_equal(console_reader_stats(r)->records[s], records);
    console_reader_free(r);
    if (strcmp(buf_str(once), buf_str(twice)) != 0)
        fail_msg("%s:\n%s\n%s", name, buf_str(once), buf_str(twice));
}

static void test_exporter(void **state)
{
    (void)state;
    DIR *dir = opendir(TEST_DATA "/golden/otlp");
    unsigned n = 0;
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        /* That one has times in far centuries, where each float of seconds rounds once more. */
        if (!strstr(e->d_name, ".pb") || strcmp(e->d_name, "all-fields-traces.pb") == 0)
            continue;
        check_round(e->d_name);
        n++;
    }
    closedir(dir);
    assert_true(n > 5);
}

/* ---- laws on real streams ---- */

/* Two servers that write to the same place, a line each in turn: their prefixes keep them apart. */
static void test_interleaved(void **state)
{
    static const char *const names[] = {"gym-run-indent/policy_model.log",
                                        "gym-run-indent/example_single_tool_call_simple_agent.log"};
    (void)state;
    struct notes alone, mixed;
    struct console_stats s;
    struct buf *text[2];
    size_t at[2] = {0, 0};
    notes_init(&alone);
    notes_init(&mixed);
    _cleanup_buf_ struct buf *both = buf_new(0);
    for (int i = 0; i < 2; i++) {
        text[i] = load(names[i]);
        read_file(names[i], SIZE_MAX, &alone, &s);
        buf_truncate(
            text[i],
            (size_t)((uint8_t *)memrchr(text[i]->data, '\n', text[i]->len) - text[i]->data) + 1);
    }
    for (int i = 0; at[0] < text[0]->len || at[1] < text[1]->len; i = !i) {
        const uint8_t *from = text[i]->data + at[i],
                      *end = memchr(from, '\n', text[i]->len - at[i]);
        size_t n = at[i] < text[i]->len ? (size_t)(end - from) + 1 : 0;
        buf_append(both, from, n);
        at[i] += n;
    }
    struct console_reader *r = notes_reader(&mixed, 0);
    feed_all(r, buf_bytes(both), 5000);
    assert_int_equal(console_reader_stats(r)->records[SIGNAL_TRACES], 28 + 18);
    assert_int_equal(console_reader_stats(r)->malformed, 0);
    console_reader_free(r);
    assert_same_records("mixed", mixed.json, alone.json);
    buf_unref(text[0]);
    buf_unref(text[1]);
    notes_done(&alone);
    notes_done(&mixed);
}

/* A reader that is replaced every few bytes finds the same. */
static void test_restarts(void **state)
{
    static const char *const names[] = {"gym-run-indent/policy_model.log",
                                        "two-servers.lens-0.1.0.agent.log"};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        _cleanup_buf_ struct buf *text = load(names[i]);
        struct notes once, often;
        struct console_stats s;
        struct console_range held[64];
        size_t nheld = 0;
        notes_init(&once);
        notes_init(&often);
        read_file(names[i], SIZE_MAX, &once, &s);
        for (size_t at = 0, step = 1; at < text->len; at += step, step = step % 500 + 37) {
            struct console_reader *r = notes_reader(&often, 0);
            if (step > text->len - at)
                step = text->len - at;
            for (size_t k = 0; k < nheld; k++) {
                console_reader_seek(r, held[k].offset);
                feed_all(r, bytes_of(text->data + held[k].offset, held[k].len), SIZE_MAX);
            }
            console_reader_seek(r, at);
            feed_all(r, bytes_of(text->data + at, step), SIZE_MAX);
            nheld = console_held(r, held, ARRAY_SIZE(held));
            assert_true(nheld <= ARRAY_SIZE(held));
            console_reader_free(r);
        }
        assert_same_records(names[i], often.json, once.json);
        notes_done(&once);
        notes_done(&often);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),       cmocka_unit_test(test_line_and_indent),
        cmocka_unit_test(test_paired),      cmocka_unit_test(test_exporter),
        cmocka_unit_test(test_interleaved), cmocka_unit_test(test_restarts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
