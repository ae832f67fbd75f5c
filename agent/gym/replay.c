/*
 * Reads the files one after the other, sends what is in them through a pipeline of one exporter,
 * and knows what became of every record: acknowledgements come back through the pipeline.
 */
#include "agent/gym/replay.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

#include "agent/base/clock.h"
#include "agent/base/cond.h"
#include "agent/gym/embed.h"
#include "agent/gym/feed.h"
#include "agent/gym/replay_parts.h"
#include "agent/pipeline/queue.h"
#include "proto/rewrite.h"

#define REQUEST_BYTES ((size_t)2 << 20) /* gRPC servers take 4 MiB by default */
#define HELD_MAX 1000            /* half-read records in a place; with more it is not noted */
#define STATE_NS NS_PER_S        /* how often the state is written */
#define SETTLE_NS (5 * NS_PER_S) /* for answers, after an interrupt */
#define STOP_NS (30 * NS_PER_S)

enum { EXIT_DELIVERED, EXIT_NOT_ALL, EXIT_NOTHING };

static volatile sig_atomic_t interrupted; /* by this signal */

struct replay {
    const struct replay_command *c;
    struct replay_target target;
    struct embed pipeline;
    struct window window;
    struct replay_state *state;
    size_t *entries; /* of the files, in the state */
    struct progress progress;
    uint64_t state_ns; /* when it was written last */
    uint64_t due_ns;   /* with a rate: when the next record may go */
    struct feed feed;  /* of the file that is being read */
    size_t file;
    uint64_t bytes_before; /* of the files before it */
    uint64_t plain_lines, malformed, oversized;
    bool failed;   /* a file could not be read to its end */
    bool hopeless; /* no use in going on with the next one */
};

static void on_signal(int s)
{
    interrupted = s;
}

/* A second one ends the program at once. */
static void catch_signals(void)
{
    const struct sigaction a = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static const char *place_name(const struct replay *r)
{
    return r->target.kind == TARGET_STDOUT ? "stdout" : r->target.shown;
}

/* ---- records, on their way out ---- */

static uint64_t sum(const uint64_t *counts)
{
    return counts[SIGNAL_TRACES] + counts[SIGNAL_METRICS] + counts[SIGNAL_LOGS];
}

static void show_progress(struct replay *r)
{
    if (!progress_due(&r->progress))
        return;
    char waiting[sizeof(r->window.waiting)];
    pthread_mutex_lock(&r->window.lock);
    const struct progress_now n = {.bytes =
                                       r->bytes_before + input_progress(r->feed.input).done_bytes,
                                   .records = sum(r->window.delivered),
                                   .file = r->file + 1,
                                   .nfiles = r->c->nfiles,
                                   .name = input_name(r->feed.input),
                                   .waiting = waiting};
    memcpy(waiting, r->window.waiting, sizeof(waiting));
    pthread_mutex_unlock(&r->window.lock);
    progress_show(&r->progress, &n);
}

/* Waits until `n` more records may go at the rate that is set. */
static void pace(struct replay *r, uint32_t n)
{
    if (r->c->rate == 0)
        return;
    pthread_mutex_lock(&r->window.lock);
    while (!interrupted && !r->window.stopped && clock_now_ns() < r->due_ns) {
        const uint64_t look_ns = clock_now_ns() + 100 * NS_PER_MS;
        cond_wait_until(&r->window.changed, &r->window.lock,
                        look_ns < r->due_ns ? look_ns : r->due_ns);
    }
    pthread_mutex_unlock(&r->window.lock);
    const uint64_t now_ns = clock_now_ns();
    r->due_ns = (r->due_ns > now_ns ? r->due_ns : now_ns) + n * NS_PER_S / (uint64_t)r->c->rate;
}

/* Backends have limits of size; with a rate, a tenth of a second's records go at a time. */
static int send_pieces(struct replay *r, struct batch *b)
{
    struct batch **pieces;
    size_t n;
    const int64_t tenth = (r->c->rate + 9) / 10;
    const uint32_t most = tenth > UINT32_MAX ? UINT32_MAX : (uint32_t)tenth;
    int e = otlp_split_all(b, most, REQUEST_BYTES, &pieces, &n);
    if (e < 0)
        return e;
    for (size_t i = 0; i < n; i++) {
        if (e == 0)
            pace(r, pieces[i]->records);
        if (e == 0)
            e = window_send(&r->window, TAKE_PTR(pieces[i]), &interrupted);
        batch_unref(pieces[i]);
        show_progress(r);
    }
    free(pieces);
    return e;
}

static int take(void *ctx, struct batch *b)
{
    int e = send_pieces(ctx, b);
    batch_unref(b);
    return e;
}

/* ---- places ---- */

static int mark(struct replay *r)
{
    struct console_range held[HELD_MAX];
    const size_t n = console_held(r->feed.reader, held, HELD_MAX);
    struct replay_place p = {.offset = input_offset(r->feed.input), .nheld = n};
    if (n > HELD_MAX)
        return 0;
    if (n && !(p.held = malloc(n * sizeof(*held))))
        return -ENOMEM;
    if (n)
        memcpy(p.held, held, n * sizeof(*held));
    int e = window_mark(&r->window, r->file, &p);
    replay_place_done(&p);
    return e;
}

/* Into the state's memory: how far every file is safe. */
static int note_places(struct replay *r)
{
    int e = 0;
    pthread_mutex_lock(&r->window.lock);
    for (size_t i = 0; e == 0 && i <= r->file && i < r->c->nfiles; i++)
        if (r->window.safe[i].offset)
            e = replay_state_note(r->state, r->entries[i], &r->window.safe[i]);
    pthread_mutex_unlock(&r->window.lock);
    return e;
}

static int write_state(struct replay *r, struct err *reterr)
{
    int e = note_places(r);
    r->state_ns = clock_now_ns();
    return e < 0 ? err_set(reterr, e, "out of memory") : replay_state_write(r->state, reterr);
}

/* What a file's writer holds is safe only when it has stopped. */
static int write_state_sometimes(struct replay *r, struct err *reterr)
{
    if (!r->state || r->window.local || clock_now_ns() - r->state_ns < STATE_NS)
        return 0;
    return write_state(r, reterr);
}

/* ---- one file ---- */

static int go_on(struct replay *r, struct err *reterr)
{
    struct replay_place p;
    int e = replay_state_find(r->state, r->c->files[r->file], input_fd(r->feed.input),
                              &r->entries[r->file], &p);
    if (e < 0)
        return err_set(reterr, e, "%s: %s", r->c->files[r->file], strerror(-e));
    if (p.offset)
        e = feed_resume(&r->feed, p.held, p.nheld, p.offset, reterr);
    replay_place_done(&p);
    return e;
}

/* The target's own file among the inputs would never end. */
static int check_loop(const struct replay *r, struct err *reterr)
{
    struct stat in, out;
    if (r->target.kind == TARGET_FILE && stat(r->target.place, &out) == 0 &&
        fstat(input_fd(r->feed.input), &in) == 0 && in.st_dev == out.st_dev &&
        in.st_ino == out.st_ino)
        return err_set(reterr, -EINVAL, "%s: is the file to be written as well",
                       input_name(r->feed.input));
    return 0;
}

static void count_file(struct replay *r)
{
    const struct console_stats *s = console_reader_stats(r->feed.reader);
    r->plain_lines += s->plain_lines;
    r->malformed += s->malformed;
    r->oversized += s->oversized;
    r->bytes_before += input_progress(r->feed.input).size_bytes;
}

/* Records that the exporter gave up later, or that the backend left out of what it took. */
static uint64_t counted_elsewhere(const struct replay *r)
{
    uint64_t n = 0;
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        struct exporter_metrics m;
        exporter_metrics_get(r->pipeline.host, r->target.exporter, (enum signal)s, &m);
        n += (uint64_t)metric_value(m.partly_refused);
        if (r->window.local)
            n += (uint64_t)metric_value(m.send_failed);
    }
    return n;
}

static int after_step(struct replay *r, struct err *reterr)
{
    int e = mark(r);
    if (e < 0)
        return err_set(reterr, e, "out of memory");
    e = write_state_sometimes(r, reterr);
    r->hopeless = e < 0 || (r->window.local && counted_elsewhere(r)); /* nobody reads stdout */
    show_progress(r);
    return e;
}

static int read_file(struct replay *r, struct err *reterr)
{
    int e = check_loop(r, reterr);
    if (e == 0 && r->state)
        e = go_on(r, reterr);
    for (e = e == 0 ? 1 : e; e > 0;) {
        if (interrupted || r->hopeless)
            return -ECANCELED;
        e = feed_step(&r->feed, reterr);
        if (e >= 0 && after_step(r, reterr) < 0)
            return -ENOMEM;
    }
    return e;
}

/* A file that cannot be read to its end is said, and others follow. */
static void replay_file(struct replay *r)
{
    const struct console_sink sink = {.telemetry = take, .ctx = r};
    struct err e = {.text = "out of memory"};
    int code = feed_open(&r->feed, r->c->files[r->file], &sink, &e);
    r->feed.keep = r->state != NULL;
    if (code == 0) {
        code = read_file(r, &e);
        count_file(r);
    }
    feed_done(&r->feed);
    if (code == 0 || code == -ECANCELED)
        return;
    progress_clear(&r->progress);
    fprintf(stderr, "Error: %s\n", e.text);
    r->failed = true;
    r->hopeless |= code == -ENOMEM;
}

static bool may_go_on(struct replay *r)
{
    pthread_mutex_lock(&r->window.lock);
    const bool go = !interrupted && !r->hopeless && !r->window.stopped;
    pthread_mutex_unlock(&r->window.lock);
    return go;
}

/* ---- all files ---- */

static uint64_t total_bytes(const struct replay_command *c)
{
    uint64_t sum_bytes = 0;
    struct stat st;
    for (size_t i = 0; i < c->nfiles; i++) {
        if (strcmp(c->files[i], "-") == 0)
            return 0;
        if (stat(c->files[i], &st) == 0 && S_ISREG(st.st_mode))
            sum_bytes += (uint64_t)st.st_size;
    }
    return sum_bytes;
}

/* Waits for the last answers, and for writers to finish. */
static void settle(struct replay *r, struct err *reterr)
{
    static const volatile sig_atomic_t never;
    const uint64_t limit_ns = interrupted ? clock_now_ns() + SETTLE_NS : UINT64_MAX;
    window_settle(&r->window, limit_ns, interrupted ? &never : &interrupted);
    progress_clear(&r->progress);
    const bool hurry = !may_go_on(r);
    embed_stop(&r->pipeline, clock_now_ns() + (hurry ? SETTLE_NS : STOP_NS));
    if (r->state && write_state(r, reterr) < 0) {
        fprintf(stderr, "Error: %s\n", reterr->text);
        r->failed = true;
    }
}

static void print_delivered(const struct replay *r)
{
    char spans[32], points[32], logs[32];
    const uint64_t *d = r->window.delivered;
    fprintf(stderr, "%s %s spans, %s data points and %s log records %s %s.\n",
            r->window.local ? "Wrote" : "Delivered", grouped(d[SIGNAL_TRACES], spans),
            grouped(d[SIGNAL_METRICS], points), grouped(d[SIGNAL_LOGS], logs), "to", place_name(r));
}

static void print_count(uint64_t n, const char *format)
{
    char text[32];
    if (n)
        fprintf(stderr, format, grouped(n, text));
}

/* Ports of the one do not understand the other, and their errors do not say so. */
static void print_other_protocol(const struct replay *r)
{
    const bool grpc = r->target.kind == TARGET_GRPC;
    if (!r->window.local)
        fprintf(stderr, "Tried with %s. Does that port take it? The other one is --protocol %s.\n",
                grpc ? "grpc" : "OTLP over HTTP", grpc ? "http/protobuf" : "grpc");
}

/* The exit code. */
static int print_summary(const struct replay *r)
{
    const struct window *w = &r->window;
    const uint64_t refused = sum(w->refused), failed = sum(w->failed);
    const uint64_t elsewhere = counted_elsewhere(r);
    print_delivered(r);
    print_count(refused, "%s records were refused");
    if (refused)
        fprintf(stderr, ": %s\n", w->reason);
    print_count(failed, "%s records did not get there");
    if (failed)
        fprintf(stderr, ": %s\n", w->reason);
    print_count(elsewhere, "%s records were taken and then dropped; the lines above say why.\n");
    print_count(r->malformed, "%s records in the files are damaged and were left out.\n");
    print_count(r->oversized,
                "%s records in the files are larger than 16 MiB and were left out.\n");
    print_count(r->plain_lines, "%s lines are no telemetry.\n");
    if (failed && sum(w->delivered) == 0)
        print_other_protocol(r);
    if (w->stopped)
        fprintf(stderr, "Gave up: the target %s. %s\n",
                failed ? "could not be reached" : "refuses everything",
                r->state ? "The same command goes on from here."
                         : "With --state FILE the next attempt would go on from here.");
    if (interrupted)
        fputs("Interrupted.\n", stderr);
    return refused || failed || elsewhere || r->malformed || r->oversized || r->failed ||
                   w->stopped || interrupted
               ? EXIT_NOT_ALL
               : EXIT_DELIVERED;
}

static int replay_all(struct replay *r)
{
    struct err e = {0};
    progress_start(&r->progress, total_bytes(r->c));
    catch_signals();
    for (; r->file < r->c->nfiles && may_go_on(r); r->file++)
        replay_file(r);
    settle(r, &e);
    return print_summary(r);
}

/* ---- set-up ---- */

static int check_files(const struct replay_command *c, struct err *reterr)
{
    for (size_t i = 0; i < c->nfiles; i++) {
        const bool is_stdin = strcmp(c->files[i], "-") == 0;
        if (is_stdin && c->state)
            return err_set(reterr, -EINVAL,
                           "--state cannot remember how far stdin was read; name files");
        if (!is_stdin && access(c->files[i], R_OK) < 0)
            return err_set(reterr, -errno, "%s: cannot open: %s", c->files[i], strerror(errno));
        if (!is_stdin && input_is_folder(c->files[i], reterr))
            return -EISDIR;
    }
    return 0;
}

static int set_up(struct replay *r, struct err *reterr)
{
    _cleanup_buf_ struct buf *text = buf_new(0);
    const struct replay_command *c = r->c;
    int e = replay_target_find(c, &r->target, reterr);
    if (e == 0)
        e = check_files(c, reterr);
    if (e == 0 && c->state)
        e = replay_state_open(c->state, r->target.shown, &r->state, reterr);
    if (e == 0)
        e = text ? replay_config(c, &r->target, text, reterr) : -ENOMEM;
    if (e == 0)
        e = buf_str(text)
                ? embed_start(&r->pipeline, buf_str(text), &replay_source, c->settings, reterr)
                : -ENOMEM;
    if (e < 0)
        return e;
    r->entries = calloc(c->nfiles, sizeof(*r->entries));
    const bool local = r->target.kind == TARGET_FILE || r->target.kind == TARGET_STDOUT;
    e = window_init(&r->window, replay_source_made(), place_name(r), local, c->nfiles);
    return r->entries ? e : -ENOMEM;
}

int replay_run(const struct replay_command *c)
{
    struct replay r = {.c = c};
    struct err e = {.text = "out of memory"};
    int code = EXIT_NOTHING;
    if (set_up(&r, &e) < 0)
        fprintf(stderr, "Error: %s\n", e.text);
    else
        code = replay_all(&r);
    embed_done(&r.pipeline);
    if (r.entries)
        window_done(&r.window);
    free(r.entries);
    replay_state_free(r.state);
    return code;
}
