/* The summary of a run: from counters to lines and JSON, and to a file. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <jansson.h>

#include "agent/base/clock.h"
#include "agent/base/secrets.h"
#include "agent/pipeline/graph.h"
#include "agent/pipeline/queue.h"
#include "agent/summary.h"

static const char page[] =
    "# HELP otelcol_receiver_accepted_spans Number of spans.\n"
    "# TYPE otelcol_receiver_accepted_spans counter\n"
    "otelcol_receiver_accepted_spans{receiver=\"otlp\",transport=\"grpc\"} 12\n"
    "otelcol_receiver_accepted_spans{receiver=\"a b\",transport=\"http\"} 30\n"
    "otelcol_receiver_accepted_log_records{receiver=\"otlp\"} 1000000\n"
    "otelcol_exporter_sent_spans{exporter=\"file\"} 7";

static void test_totals(void **state)
{
    (void)state;
    const struct bytes text = bytes_str(page);
    assert_int_equal(summary_total(text, "otelcol_receiver_accepted_"), 1000042);
    assert_int_equal(summary_total(text, "otelcol_receiver_accepted_spans"), 42);
    assert_int_equal(summary_total(text, "otelcol_exporter_sent_"), 7); /* no newline at the end */
    assert_int_equal(summary_total(text, "otelcol_exporter_send_failed_"), 0);
    assert_int_equal(summary_total(bytes_str(""), "x"), 0);
}

/* ---- from counters ---- */

static struct host *make_host(void)
{
    struct host *h = host_new(NULL);
    assert_non_null(h);
    return h;
}

static void count_exporter(struct host *h, const char *id, enum signal s, int64_t sent,
                           int64_t failed, int64_t rejected, int64_t left_out)
{
    struct exporter_metrics m;
    exporter_metrics_get(h, id, s, &m);
    metric_add(m.sent, sent);
    metric_add(m.send_failed, failed);
    metric_add(m.rejected, rejected);
    metric_add(m.partly_refused, left_out);
}

static void set_queue(struct host *h, const char *id, const char *data_type, int64_t peak,
                      int64_t size, int64_t retries)
{
    char labels[METRIC_LABELS_MAX] = "";
    metric_label(labels, "data_type", data_type);
    metric_label(labels, "exporter", id);
    metric_set(metric_gauge(h, "motel_exporter_queue_peak", "", labels), peak);
    metric_set(metric_gauge(h, "otelcol_exporter_queue_capacity", "", labels), size);
    metric_add(metric_counter(h, "motel_exporter_retried_requests", "", labels), retries);
}

static void count_received(struct host *h, const char *transport, enum signal s, int64_t accepted,
                           int64_t refused)
{
    struct receiver_metrics m;
    receiver_metrics_get(h, "otlp", transport, s, &m);
    metric_add(m.accepted, accepted);
    metric_add(m.refused, refused);
}

static void count_scrapes(struct host *h, const char *job, const char *instance, int64_t good,
                          int64_t bad)
{
    struct scrape_metrics m;
    scrape_metrics_get(h, "prometheus", job, instance, &m);
    metric_add(m.succeeded, good);
    metric_add(m.failed, bad);
}

static char *text_of(const struct summary *s, const char *path)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    assert_non_null(b);
    assert_int_equal(summary_text(s, path, b), 0);
    return strdup(buf_str(b));
}

static unsigned lines_in(const char *text)
{
    unsigned n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static json_t *json_of(const struct summary *s)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    assert_non_null(b);
    assert_int_equal(summary_json(s, b), 0);
    json_error_t e;
    json_t *j = json_loadb((const char *)b->data, b->len, JSON_REJECT_DUPLICATES, &e);
    if (!j)
        fail_msg("%s in %s", e.text, buf_str(b));
    return j;
}

static void collect(struct host *h, struct summary *s)
{
    assert_int_equal(summary_collect(h, s), 0);
    s->start_ns = 1700000000 * NS_PER_S;
    s->end_ns = s->start_ns + 83 * NS_PER_S + 456 * NS_PER_MS + 7;
    s->rss_peak = 12 << 20;
    s->telemetry_peak = 1 << 19;
}

static void test_words(void **state)
{
    (void)state;
    struct host *h = make_host();
    struct summary s;
    count_received(h, "http", SIGNAL_TRACES, 11000, 0);
    count_received(h, "grpc", SIGNAL_TRACES, 1000, 7);
    count_received(h, "grpc", SIGNAL_LOGS, 5, 0);
    count_exporter(h, "otlp_http/backend", SIGNAL_TRACES, 11992, 8, 8, 2);
    count_exporter(h, "otlp_http/backend", SIGNAL_LOGS, 0, 5, 0, 0);
    set_queue(h, "otlp_http/backend", "traces", 14, 1000, 3);
    set_queue(h, "otlp_http/backend", "logs", 1, 1000, 1);
    count_exporter(h, "file/all", SIGNAL_TRACES, 12000, 0, 0, 0);
    count_exporter(h, "file/none", SIGNAL_TRACES, 0, 0, 0, 0);
    count_exporter(h, "file/none", SIGNAL_LOGS, 0, 0, 0, 0);
    count_scrapes(h, "vllm", "localhost:8000", 119, 1);
    count_scrapes(h, "dcgm", "localhost:9400", 0, 120);
    count_scrapes(h, "node", "localhost:9100", 120, 0);
    host_note_times(h, SIGNAL_TRACES,
                    &(struct time_range){1600000001 * NS_PER_S, 1600000002 * NS_PER_S});
    host_note_times(h, SIGNAL_LOGS,
                    &(struct time_range){1600000000 * NS_PER_S, 1600000001 * NS_PER_S});
    host_note_times(h, SIGNAL_LOGS, &(struct time_range){0, 0});
    collect(h, &s);
    _cleanup_free_ char *text = text_of(&s, "/a/summary.json");
    assert_string_equal(
        text,
        " Summary: 12,000 spans, 0 metric points, 5 log records received in 1m23.456s, 7 refused "
        "for the time being; their times are from 2020-09-13T12:26:40.000Z to "
        "2020-09-13T12:26:42.000Z\n"
        "!Summary: otlp_http/backend: traces 12,000 in, 11,990 sent, 10 rejected by the backend, "
        "3 retries, queue peak 14 of 1,000\n"
        "!Summary: otlp_http/backend: logs 5 in, none sent, 5 dropped after the last try, 1 retry, "
        "queue peak 1 of 1,000\n"
        " Summary: file/all: traces 12,000 in, all sent\n"
        " Summary: file/none: nothing came in\n"
        " Summary: good scrapes: dcgm localhost:9400 0 % of 120; vllm localhost:8000 99.1 % of "
        "120; node localhost:9100 100 % of 120\n"
        " Summary: memory peak 12.0 MiB, telemetry in it 0.5 MiB; all of this is in "
        "/a/summary.json\n");
    assert_int_equal(summary_lost(&s), 15);
    summary_done(&s);
    host_free(h);
}

/* Whoever waited for an answer was told and has it still: not in, not lost. */
static void test_returned(void **state)
{
    (void)state;
    struct host *h = make_host();
    struct exporter_metrics m;
    struct summary s;
    count_received(h, "http", SIGNAL_LOGS, 7, 5);
    count_exporter(h, "e", SIGNAL_LOGS, 7, 6, 1, 0);
    count_exporter(h, "f", SIGNAL_LOGS, 0, 5, 0, 0);
    exporter_metrics_get(h, "e", SIGNAL_LOGS, &m);
    metric_add(m.returned, 5);
    exporter_metrics_get(h, "f", SIGNAL_LOGS, &m);
    metric_add(m.returned, 5);
    collect(h, &s);
    _cleanup_free_ char *text = text_of(&s, NULL);
    assert_non_null(strstr(
        text, "!Summary: e: logs 8 in, 7 sent, 1 rejected by the backend, 5 given back to their "
              "senders\n Summary: f: logs 0 in, 5 given back to their senders\n"));
    assert_int_equal(summary_lost(&s), 1);
    summary_done(&s);
    host_free(h);
}

static void test_json(void **state)
{
    (void)state;
    struct host *h = make_host();
    struct summary s;
    const char *id = NULL, *job = NULL, *first = NULL;
    json_int_t in, sent, rejected, dropped, refused, retries, peak, size, accepted, good, bad, lost;
    double percent;
    count_received(h, "http", SIGNAL_METRICS, 20, 0);
    count_received(h, "grpc", SIGNAL_METRICS, 1, 0);
    count_exporter(h, "otlp_http/\"odd\"", SIGNAL_METRICS, 15, 6, 4, 1);
    set_queue(h, "otlp_http/\"odd\"", "metrics", 2, 50, 9);
    count_scrapes(h, "a\\b\nc", "x:1", 2, 1);
    host_note_times(h, SIGNAL_METRICS,
                    &(struct time_range){1600000000 * NS_PER_S, 1600000000 * NS_PER_S});
    collect(h, &s);
    json_t *j = json_of(&s);
    assert_int_equal(
        json_unpack(j,
                    "{s:{s:{s:I, s:s}}, s:[{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}],"
                    " s:[{s:s, s:I, s:I, s:f}], s:{s:I}}",
                    "signals", "metrics", "accepted", &accepted, "first_time", &first, "exporters",
                    "exporter", &id, "in", &in, "sent", &sent, "rejected", &rejected, "dropped",
                    &dropped, "refused", &refused, "retries", &retries, "queue_peak", &peak,
                    "queue_size", &size, "scrapes", "job", &job, "succeeded", &good, "failed", &bad,
                    "percent", &percent, "run", "lost", &lost),
        0);
    assert_string_equal(id, "otlp_http/\"odd\"");
    assert_string_equal(job, "a\\b\nc");
    assert_string_equal(first, "2020-09-13T12:26:40.000Z");
    assert_true(accepted == 21 && in == 21 && sent == 14 && rejected == 5 && dropped == 2);
    assert_true(refused == 0 && retries == 9 && peak == 2 && size == 50 && lost == 7);
    assert_true(good == 2 && bad == 1 && percent > 66.5 && percent < 66.7);
    json_decref(j);
    summary_done(&s);
    host_free(h);
}

/* However many exporters and targets: ten lines, and no loss is left out. */
static void test_ten_lines(void **state)
{
    (void)state;
    for (int n = 0; n < 40; n++) {
        struct host *h = make_host();
        struct summary s;
        char id[32];
        for (int i = 0; i < n; i++) {
            snprintf(id, sizeof(id), "file/%02d", i);
            count_exporter(h, id, SIGNAL_TRACES, 5, i == n - 1, 0, 0);
            count_exporter(h, id, SIGNAL_LOGS, 5, 0, 0, 0);
            count_scrapes(h, id, "x:1", i, 1);
        }
        collect(h, &s);
        _cleanup_free_ char *text = text_of(&s, NULL);
        char want[64];
        snprintf(want, sizeof(want), "file/%02d: traces 6 in, 5 sent, 1 dropped", n - 1);
        assert_true(lines_in(text) <= SUMMARY_LINES);
        assert_true(n == 0 || strstr(text, want));
        summary_done(&s);
        host_free(h);
    }
}

static void test_no_secrets(void **state)
{
    (void)state;
    struct host *h = make_host();
    struct summary s;
    const char *job = NULL;
    assert_true(secrets_add("tok\"en-1"));
    count_scrapes(h, "tok\"en-1", "x:1", 1, 0);
    collect(h, &s);
    json_t *j = json_of(&s);
    assert_int_equal(json_unpack(j, "{s:[{s:s}]}", "scrapes", "job", &job), 0);
    assert_string_equal(job, SECRET_PLACEHOLDER);
    json_decref(j);
    secrets_clear();
    summary_done(&s);
    host_free(h);
}

/* ---- the file ---- */

static char folder[] = "/tmp/summary_test.XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static int write_now(const char *path, const char *text, int64_t mode, struct err *e)
{
    const struct summary_place place = {.path = (char *)(uintptr_t)path};
    return summary_write(&place, bytes_str(text), mode, clock_now_ns() + 60 * NS_PER_S, e);
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 0777;
}

static void test_modes(void **state)
{
    (void)state;
    static const struct {
        mode_t mask;
        int64_t mode;
        mode_t want;
    } cases[] = {{022, -1, 0644}, {077, -1, 0600}, {0, 0640, 0640}, {027, 0666, 0640}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *path = in_folder("modes");
        const mode_t before = umask(cases[i].mask);
        assert_int_equal(write_now(path, "x", cases[i].mode, NULL), 0);
        umask(before);
        assert_int_equal(mode_of(path), cases[i].want);
        assert_int_equal(unlink(path), 0);
    }
}

/* The file that was there stays, whole, and nothing else is left. */
static void test_full_disk(void **state)
{
    (void)state;
    struct err e = {0};
    struct rlimit limit, small;
    char large[5000], was[16] = "";
    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    const char *path = in_folder("full");
    assert_int_equal(write_now(path, "before", -1, NULL), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 1000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const int r = write_now(path, large, -1, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(r, -EFBIG);
    assert_non_null(strstr(e.text, "/full\": File too large"));
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    assert_non_null(fgets(was, sizeof(was), f));
    fclose(f);
    assert_string_equal(was, "before");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else is there */
    assert_int_equal(mkdir(folder, 0700), 0);
}

static void test_no_folder(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(write_now(in_folder("none/x.json"), "x", -1, &e), -ENOENT);
    assert_non_null(strstr(e.text, "none/x.json\": No such file or directory"));
}

static void put_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int write_beside(const char *beside, struct err *e)
{
    char path[128], file[128];
    snprintf(path, sizeof(path), "%s/summary.json", folder);
    snprintf(file, sizeof(file), "%s/%s", folder, beside);
    const struct summary_place place = {.path = path, .beside = file};
    return summary_write(&place, bytes_str("{\"motel_summary\": 1}"), -1,
                         clock_now_ns() + 60 * NS_PER_S, e);
}

/* What nobody asked for must not harm: beside files only, and never in place of another file. */
static void test_beside(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(write_beside("t.jsonl", &e), 1);
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    assert_int_equal(write_beside("fifo", &e), 1);
    put_file(in_folder("t.jsonl"), "");
    assert_int_equal(write_beside("t.jsonl", &e), 0);
    assert_int_equal(write_beside("t.jsonl", &e), 0); /* of an earlier run */
    put_file(in_folder("summary.json"), "{\"mine\": 1}");
    assert_int_equal(write_beside("t.jsonl", &e), -EEXIST);
    assert_non_null(strstr(e.text, "is not a summary, so it stays"));
    unlink(in_folder("summary.json"));
    assert_int_equal(mkdir(in_folder("summary.json"), 0700), 0);
    assert_int_equal(write_beside("t.jsonl", &e), -EEXIST);
    assert_int_equal(rmdir(in_folder("summary.json")), 0);
    assert_int_equal(unlink(in_folder("t.jsonl")), 0);
    assert_int_equal(unlink(in_folder("fifo")), 0);
}

static void test_links_and_devices(void **state)
{
    (void)state;
    struct stat st;
    struct err e = {0};
    char link[128];
    snprintf(link, sizeof(link), "%s/link", folder);
    put_file(in_folder("file"), "");
    assert_int_equal(symlink("file", link), 0);
    assert_int_equal(write_now(link, "1234567", -1, &e), 0);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(lstat(in_folder("file"), &st), 0);
    assert_int_equal(st.st_size, 7);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("/dev/full", link), 0);
    assert_int_equal(write_now(link, "1234567", -1, &e), -ENOSPC);
    assert_non_null(strstr(e.text, "No space left on device"));
    assert_int_equal(lstat(link, &st), 0);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(unlink(in_folder("file")), 0);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_totals),    cmocka_unit_test(test_words),
        cmocka_unit_test(test_returned),  cmocka_unit_test(test_json),
        cmocka_unit_test(test_ten_lines), cmocka_unit_test(test_no_secrets),
        cmocka_unit_test(test_modes),     cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_beside),    cmocka_unit_test(test_links_and_devices),
        cmocka_unit_test(test_no_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
