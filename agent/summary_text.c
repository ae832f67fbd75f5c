/* The summary of a run in words: few lines, for a person who looks at the end of a log. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/summary.h"

#define EXPORTER_LINES 6 /* with those of the receivers, processors, targets and memory: ten */
#define TARGETS_SHOWN 6

struct words {
    struct buf *out;
    int error;
};

static _printf_(2, 3) void say(struct words *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (w->error == 0)
        w->error = buf_vprintf(w->out, fmt, ap);
    va_end(ap);
}

/* 12000 → "12,000". */
static void say_count(struct words *w, int64_t n)
{
    char digits[24];
    const int len = snprintf(digits, sizeof(digits), "%lld", (long long)n);
    for (int i = 0; i < len; i++)
        say(w, "%c%s", digits[i],
            digits[i] != '-' && i + 1 < len && (len - i - 1) % 3 == 0 ? "," : "");
}

static void begin_line(struct words *w, bool loss)
{
    say(w, "%cSummary: ", loss ? '!' : ' ');
}

/* ---- what came in ---- */

static void say_received(struct words *w, const struct summary *s)
{
    static const char *const names[SIGNAL_COUNT] = {"spans", "metric points", "log records"};
    for (enum signal i = 0; i < SIGNAL_COUNT; i++) {
        say_count(w, summary_sum(s, SUMMARY_RECEIVERS, RECEIVER_ACCEPTED, i));
        say(w, " %s%s", names[i], i + 1 < SIGNAL_COUNT ? ", " : " received in ");
    }
}

static struct time_range all_times(const struct summary *s)
{
    struct time_range all = {0};
    for (enum signal i = 0; i < SIGNAL_COUNT; i++) {
        const struct time_range *t = &s->times[i];
        if (t->last_ns && (!all.last_ns || t->first_ns < all.first_ns))
            all.first_ns = t->first_ns;
        if (t->last_ns > all.last_ns)
            all.last_ns = t->last_ns;
    }
    return all;
}

static void receiver_line(struct words *w, const struct summary *s)
{
    const int64_t refused = summary_sum(s, SUMMARY_RECEIVERS, RECEIVER_REFUSED, SIGNAL_COUNT);
    const int64_t failed = summary_sum(s, SUMMARY_RECEIVERS, RECEIVER_FAILED, SIGNAL_COUNT);
    const struct time_range times = all_times(s);
    char text[32], first[25], last[25];
    begin_line(w, failed > 0);
    say_received(w, s);
    cfg_format_duration((int64_t)((s->end_ns - s->start_ns) / NS_PER_MS * NS_PER_MS), text);
    say(w, "%s", text);
    if (refused) {
        say(w, ", ");
        say_count(w, refused);
        say(w, " refused for the time being");
    }
    if (failed) {
        say(w, ", ");
        say_count(w, failed);
        say(w, " lost by a mistake in a receiver");
    }
    if (times.last_ns) {
        clock_format_ms(times.first_ns, first);
        clock_format_ms(times.last_ns, last);
        say(w, "; their times are from %s to %s", first, last);
    }
    say(w, "\n");
}

static void processor_line(struct words *w, const struct summary *s)
{
    const struct summary_table *t = &s->parts[SUMMARY_PROCESSORS];
    const char *before = "";
    if (summary_sum(s, SUMMARY_PROCESSORS, PROCESSOR_DROPPED, SIGNAL_COUNT) == 0)
        return;
    begin_line(w, true);
    for (size_t i = 0; i < t->n; i++) {
        const struct summary_row *r = &t->rows[i];
        if (r->n[PROCESSOR_DROPPED] == 0)
            continue;
        say(w, "%s%s: ", before, r->id);
        say_count(w, r->n[PROCESSOR_DROPPED]);
        say(w, " %s dropped",
            r->signal == SIGNAL_COUNT ? "records" : signal_records_name(r->signal));
        before = "; ";
    }
    say(w, "\n");
}

/* ---- exporters ---- */

static bool is_empty(const struct summary_row *r)
{
    return summary_in(r) == 0 && r->n[EXPORTER_REFUSED] == 0 && r->n[EXPORTER_RETURNED] == 0;
}

static bool is_loss(const struct summary_row *r)
{
    return summary_rejected(r) > 0 || summary_dropped(r) > 0 || r->n[EXPORTER_DAMAGED] > 0;
}

static void say_part(struct words *w, int64_t n, const char *what)
{
    if (n == 0)
        return;
    say(w, ", ");
    say_count(w, n);
    say(w, " %s", what);
}

/* "traces 12,000 in, 11,990 sent, 10 rejected by the backend, 3 retries, queue peak 14 of 1,000" */
static void say_row(struct words *w, const struct summary_row *r)
{
    say(w, "%s ", signal_name(r->signal));
    say_count(w, summary_in(r));
    say(w, " in");
    if (summary_in(r) && summary_delivered(r) == summary_in(r))
        say(w, ", all sent");
    else if (summary_in(r))
        say(w, ", %s", summary_delivered(r) ? "" : "none sent");
    if (summary_delivered(r) != summary_in(r) && summary_delivered(r)) {
        say_count(w, summary_delivered(r));
        say(w, " sent");
    }
    say_part(w, summary_rejected(r), "rejected by the backend");
    say_part(w, summary_dropped(r), "dropped after the last try");
    say_part(w, r->n[EXPORTER_DAMAGED], "damaged on disk");
    say_part(w, r->n[EXPORTER_KEPT], "kept on disk for the next start");
    say_part(w, r->n[EXPORTER_REFUSED], "refused for want of room");
    say_part(w, r->n[EXPORTER_RETURNED], "given back to their senders");
    say_part(w, r->n[EXPORTER_RETRIES], r->n[EXPORTER_RETRIES] == 1 ? "retry" : "retries");
    if (r->n[EXPORTER_QUEUE_PEAK]) {
        say(w, ", queue peak ");
        say_count(w, r->n[EXPORTER_QUEUE_PEAK]);
        say(w, " of ");
        say_count(w, r->n[EXPORTER_QUEUE_SIZE]);
    }
}

/* The rows of one exporter: where they end, and what is in them. */
struct group {
    size_t first, end, used;
    bool loss;
};

static struct group group_at(const struct summary_table *t, size_t first)
{
    struct group g = {.first = first, .end = first};
    while (g.end < t->n && strcmp(t->rows[g.end].id, t->rows[first].id) == 0) {
        const struct summary_row *r = &t->rows[g.end++];
        g.used += !is_empty(r);
        g.loss = g.loss || is_loss(r);
    }
    return g;
}

/* A line for each signal, or one for all. */
static void say_group(struct words *w, const struct summary_table *t, struct group g, bool one_line)
{
    const char *id = t->rows[g.first].id, *before = "";
    if (!g.used || one_line) {
        begin_line(w, g.loss);
        say(w, "%s: %s", id, g.used ? "" : "nothing came in");
    }
    for (size_t i = g.first; i < g.end; i++) {
        const struct summary_row *r = &t->rows[i];
        if (is_empty(r))
            continue;
        if (!one_line) {
            begin_line(w, is_loss(r));
            say(w, "%s: ", id);
        }
        say(w, "%s", one_line ? before : "");
        say_row(w, r);
        before = "; ";
        say(w, "%s", one_line ? "" : "\n");
    }
    if (!g.used || one_line)
        say(w, "\n");
}

struct layout {
    size_t groups, lines; /* with a line for each signal */
};

static struct layout measure(const struct summary_table *t)
{
    struct layout l = {0};
    for (size_t i = 0; i < t->n;) {
        const struct group g = group_at(t, i);
        l.groups++;
        l.lines += g.used ? g.used : 1;
        i = g.end;
    }
    return l;
}

/* Those that lost something before the others, `max` of them; returns how many were not shown. */
static size_t say_groups(struct words *w, const struct summary_table *t, size_t max, bool one_line)
{
    size_t shown = 0, left = 0;
    for (int loss = 1; loss >= 0; loss--)
        for (size_t i = 0; i < t->n;) {
            const struct group g = group_at(t, i);
            i = g.end;
            if (g.loss != (bool)loss)
                continue;
            if (shown == max) {
                left++;
                continue;
            }
            say_group(w, t, g, one_line);
            shown++;
        }
    return left;
}

static void exporter_lines(struct words *w, const struct summary *s)
{
    const struct summary_table *t = &s->parts[SUMMARY_EXPORTERS];
    const struct layout l = measure(t);
    const size_t max = l.groups > EXPORTER_LINES ? EXPORTER_LINES - 1 : EXPORTER_LINES;
    const size_t left = say_groups(w, t, max, l.lines > EXPORTER_LINES);
    if (!left)
        return;
    begin_line(w, false);
    say(w, "%zu more exporters\n", left);
}

/* ---- targets ---- */

/* Good scrapes in tenths of a percent; 1000 only when there was no bad one. */
static int64_t share(const struct summary_row *r)
{
    const int64_t all = r->n[TARGET_SUCCEEDED] + r->n[TARGET_FAILED];
    return all ? r->n[TARGET_SUCCEEDED] * 1000 / all : 0;
}

static int compare_share(const void *a, const void *b)
{
    const int64_t x = share(*(const struct summary_row *const *)a),
                  y = share(*(const struct summary_row *const *)b);
    return x < y ? -1 : x > y;
}

static void say_target(struct words *w, const struct summary_row *r)
{
    const int64_t all = r->n[TARGET_SUCCEEDED] + r->n[TARGET_FAILED], tenths = share(r);
    say(w, "%s %s ", r->job, r->instance);
    if (all == 0) {
        say(w, "not scraped yet");
        return;
    }
    say(w, "%lld", (long long)tenths / 10);
    if (tenths % 10)
        say(w, ".%lld", (long long)tenths % 10);
    say(w, " %% of ");
    say_count(w, all);
}

/* The worst ones first. */
static void target_line(struct words *w, const struct summary *s)
{
    const struct summary_table *t = &s->parts[SUMMARY_TARGETS];
    if (!t->n)
        return;
    _cleanup_free_ const struct summary_row **rows = calloc(t->n, sizeof(struct summary_row *));
    if (!rows) {
        w->error = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < t->n; i++)
        rows[i] = &t->rows[i];
    qsort(rows, t->n, sizeof(struct summary_row *), compare_share);
    begin_line(w, false);
    say(w, "good scrapes: ");
    for (size_t i = 0; i < t->n && i < TARGETS_SHOWN; i++) {
        say(w, "%s", i ? "; " : "");
        say_target(w, rows[i]);
    }
    if (t->n > TARGETS_SHOWN)
        say(w, "; and %zu that are not worse", t->n - TARGETS_SHOWN);
    say(w, "\n");
}

/* ---- memory ---- */

static void memory_line(struct words *w, const struct summary *s, const char *path)
{
    const double mib = 1024 * 1024;
    begin_line(w, false);
    say(w, "memory peak %.1f MiB, telemetry in it %.1f MiB", (double)s->rss_peak / mib,
        (double)s->telemetry_peak / mib);
    say(w, path ? "; all of this is in %s\n" : "\n", path);
}

int summary_text(const struct summary *s, const char *path, struct buf *out)
{
    struct words w = {.out = out};
    receiver_line(&w, s);
    exporter_lines(&w, s);
    processor_line(&w, s);
    target_line(&w, s);
    memory_line(&w, s, path);
    return w.error;
}
