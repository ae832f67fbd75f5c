/*
 * The console exporter: each span and log record, and all metrics of a batch, as one line of JSON
 * on stdout, in the shape that the OpenTelemetry Python SDK's console exporters print, for jq and
 * for a replay. A writer thread and a bound on what waits for it: past the bound the answer is
 * RETRY, so a slow reader holds up the senders and nothing else. A reader that has gone away costs
 * the data, is logged once and counted.
 */
#include <errno.h>
#include <stdatomic.h>

#include "agent/pipeline/output.h"
#include "agent/pipeline/queue.h"
#include "exporters/console/lines.h"

extern const struct component_type exporter_console;

struct console {
    struct component base;
    struct shared *output;
    struct exporter_metrics metrics[SIGNAL_COUNT];
    atomic_uint_fast64_t late; /* records that were not written before the stop's deadline */
};

static struct console *console_of(struct component *c)
{
    return (struct console *)c;
}

/* ---- life ---- */

static int console_create(const struct component_args *args, struct component **ret,
                          struct err *reterr)
{
    struct console *c = calloc(1, sizeof(*c));
    if (!c)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&c->base, &exporter_console, args);
    for (int s = 0; s < SIGNAL_COUNT; s++)
        exporter_metrics_get(args->host, args->id, (enum signal)s, &c->metrics[s]);
    *ret = &c->base;
    return 0;
}

static int console_start(struct component *c, struct err *reterr)
{
    console_of(c)->output = output_share(c->host, "stdout", reterr);
    return console_of(c)->output ? 0 : -EIO;
}

static void console_stop(struct component *c, uint64_t deadline_ns)
{
    struct console *console = console_of(c);
    if (!console->output)
        return;
    outlet_flush(output_outlet(console->output), console, deadline_ns);
    uint64_t late = atomic_exchange(&console->late, 0);
    if (late)
        log_error(&c->logger, "stdout took too long at the stop. Dropping data.",
                  LOG_INT("dropped_items", late));
}

static void console_destroy(struct component *c)
{
    if (!c)
        return;
    console_stop(c, 0);
    host_unshare(c->host, console_of(c)->output);
    free(c);
}

/* ---- data ---- */

static void note_done(void *ctx, int error, unsigned kind, uint32_t records)
{
    struct console *c = ctx;
    metric_add(error ? c->metrics[kind].send_failed : c->metrics[kind].sent, records);
    if (error == -ETIMEDOUT)
        atomic_fetch_add(&c->late, records);
}

static enum verdict console_consume(struct component *component, struct batch *b, struct ack *ack)
{
    struct console *c = console_of(component);
    _cleanup_batch_ struct batch *batch = b;
    _cleanup_buf_ struct buf *text = buf_new(0);
    struct outlet_note note = {note_done, c, batch->signal, batch->records};
    if (!text || console_lines(batch, text) < 0)
        return ack_answer(ack, VERDICT_RETRY, 0, "%s: out of memory", component->id);
    if (text->len == 0)
        return VERDICT_OK;
    buf_shrink(text);
    if (outlet_put(output_outlet(c->output), text, note) != -EAGAIN) {
        TAKE_PTR(text);
        return VERDICT_OK;
    }
    metric_add(c->metrics[batch->signal].enqueue_failed, batch->records);
    return ack_answer(ack, VERDICT_RETRY, 0, "%s: stdout does not keep up", component->id);
}

const struct component_type exporter_console = {
    .kind = KIND_EXPORTER,
    .name = "console",
    .accepts = SIGNALS_ALL,
    .stability = {"beta", "beta", "beta"},
    .help = "Prints data on stdout as lines of JSON in the shape of the OpenTelemetry Python SDK's "
            "console exporters.",
    .create = console_create,
    .start = console_start,
    .stop = console_stop,
    .destroy = console_destroy,
    .consume = console_consume,
};
