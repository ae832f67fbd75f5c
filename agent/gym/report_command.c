#include "agent/gym/report_command.h"

#include <errno.h>
#include <signal.h>

#include "agent/gym/feed.h"
#include "agent/gym/report.h"

#define EXIT_TROUBLE 2

/* ---- reading ---- */

static int take(void *ctx, struct batch *b)
{
    int r = report_add(ctx, b);
    batch_unref(b);
    return r;
}

/* What is odd about a file is said, but does not stand in the way. */
static void remark(const char *name, const struct console_stats *s)
{
    uint64_t records = 0;
    for (int i = 0; i < SIGNAL_COUNT; i++)
        records += s->records[i];
    if (records == 0)
        fprintf(stderr, "Warning: %s: no telemetry in it (%llu other lines)\n", name,
                (unsigned long long)s->plain_lines);
    if (s->malformed)
        fprintf(stderr, "Warning: %s: %llu records are damaged and were left out\n", name,
                (unsigned long long)s->malformed);
    if (s->oversized)
        fprintf(stderr, "Warning: %s: %llu records are larger than 16 MiB and were left out\n",
                name, (unsigned long long)s->oversized);
}

/* A file that ends too early still counts as far as it goes. */
static int read_file(struct report *report, const char *path)
{
    const struct console_sink sink = {.telemetry = take, .ctx = report};
    struct err e = {.text = "out of memory"};
    struct feed f;
    int r = feed_open(&f, path, &sink, &e);
    const bool opened = r == 0;
    for (r = r == 0 ? 1 : r; r > 0;)
        r = feed_step(&f, &e);
    if (r < 0)
        fprintf(stderr, "%s: %s\n", opened && r == -EBADMSG ? "Warning" : "Error", e.text);
    if (opened && (r == 0 || r == -EBADMSG)) {
        remark(input_name(f.input), console_reader_stats(f.reader));
        r = 0;
    }
    feed_done(&f);
    return r;
}

/* ---- saying ---- */

static int print(struct report *report, const struct report_command *c)
{
    const struct report_options o = {.all = c->all, .files = (unsigned)c->nfiles};
    const enum propagation p = report_judge(report);
    _cleanup_buf_ struct buf *out = buf_new(0);
    if (!out || (c->json ? report_json : report_text)(report, &o, out) < 0) {
        fputs("Error: out of memory\n", stderr);
        return EXIT_TROUBLE;
    }
    if (fwrite(out->data, 1, out->len, stdout) != out->len || fflush(stdout) != 0) {
        fprintf(stderr, "Error: cannot write to stdout: %s\n", strerror(errno));
        return EXIT_TROUBLE;
    }
    return p == PROPAGATION_WORKS ? 0 : 1;
}

/* Ctrl-C ends the program that writes to our stdin, and then there is something to say. A second
 * one ends us. */
static void let_first_interrupt_pass(void)
{
    struct sigaction a = {.sa_handler = SIG_IGN};
    struct sigaction before;
    if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        sigaction(SIGINT, &a, NULL);
}

int report_files(const struct report_command *c)
{
    _cleanup_(report_freep) struct report *report = report_new(c->max_traces);
    int r = report ? 0 : -ENOMEM;
    if (!report)
        fputs("Error: out of memory\n", stderr);
    for (size_t i = 0; i < c->nfiles && r == 0; i++) {
        if (strcmp(c->files[i], "-") == 0)
            let_first_interrupt_pass();
        r = read_file(report, c->files[i]);
    }
    return r < 0 ? EXIT_TROUBLE : print(report, c);
}
