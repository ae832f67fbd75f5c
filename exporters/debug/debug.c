/*
 * The debug exporter: says what passes, for people, in the words of the reference's one: `basic`
 * counts, `normal` a line an item, `detailed` everything. Into the program's own log, or as bare
 * text into stdout or files.
 */
#include <errno.h>
#include <pthread.h>

#include "agent/base/clock.h"
#include "agent/base/secrets.h"
#include "agent/pipeline/output.h"
#include "agent/pipeline/queue.h"
#include "exporters/debug/text.h"
#include "proto/otlp_fields.h"
#include "proto/redact.h"
#include "proto/schema.h"

extern const struct component_type exporter_debug;

enum verbosity { VERBOSITY_BASIC, VERBOSITY_NORMAL, VERBOSITY_DETAILED };

struct debug_config {
    int verbosity;
    int64_t sampling_initial, sampling_thereafter;
    bool use_internal_logger;
    struct cfg_list output_paths;
    enum cfg_presence output_paths_given;
    struct exporter_settings exporter; /* only its queue has a key */
};

#define SAMPLE_SLOTS 256
#define SAMPLE_TICK_NS NS_PER_S
struct sample {
    uint64_t hash, reset_ns, count;
};

struct debug {
    struct component base;
    const struct debug_config *config;
    size_t noutputs;
    struct shared **outputs; /* none with the internal logger */
    pthread_mutex_t lock;    /* of what follows */
    struct sample samples[SIGNAL_COUNT][SAMPLE_SLOTS];
};

static struct debug *debug_of(struct component *c)
{
    return (struct debug *)c;
}

/* ---- life ---- */

static int debug_check(const void *config, struct err *reterr)
{
    const struct debug_config *c = config;
    bool given = c->output_paths_given >= CFG_GIVEN_EMPTY;
    if (c->use_internal_logger && given)
        return err_at(reterr, "output_paths",
                      "output_paths is not supported when use_internal_logger is true");
    if (!c->use_internal_logger && given && c->output_paths.n == 0)
        return err_at(reterr, "output_paths",
                      "output_paths must not be empty when use_internal_logger is false");
    return exporter_settings_check(&c->exporter, reterr);
}

static const struct exporter_settings *debug_settings(const void *config)
{
    return &((const struct debug_config *)config)->exporter;
}

static int debug_create(const struct component_args *args, struct component **ret,
                        struct err *reterr)
{
    struct debug *d = calloc(1, sizeof(*d));
    if (!d)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&d->base, &exporter_debug, args);
    d->config = args->config;
    pthread_mutex_init(&d->lock, NULL);
    *ret = &d->base;
    return 0;
}

static int debug_start(struct component *c, struct err *reterr)
{
    static const char *const standard[] = {"stdout"};
    struct debug *d = debug_of(c);
    const struct cfg_list *paths = &d->config->output_paths;
    if (d->config->use_internal_logger)
        return 0;
    const char *const *names = paths->n ? paths->items : standard;
    size_t n = paths->n ? paths->n : 1;
    d->outputs = calloc(n, sizeof(*d->outputs));
    if (!d->outputs)
        return err_set(reterr, -ENOMEM, "out of memory");
    for (; d->noutputs < n; d->noutputs++)
        if (!(d->outputs[d->noutputs] = output_share(c->host, names[d->noutputs], reterr)))
            return -EIO;
    return 0;
}

static void debug_stop(struct component *c, uint64_t deadline_ns)
{
    struct debug *d = debug_of(c);
    for (size_t i = 0; i < d->noutputs; i++)
        outlet_flush(output_outlet(d->outputs[i]), d, deadline_ns);
}

static void debug_destroy(struct component *c)
{
    struct debug *d = debug_of(c);
    if (!d)
        return;
    for (size_t i = 0; i < d->noutputs; i++)
        host_unshare(c->host, d->outputs[i]);
    free(d->outputs);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* ---- data ---- */

static uint64_t hash_text(struct bytes text)
{
    uint64_t h = 14695981039346656037ull;
    for (size_t i = 0; i < text.len; i++)
        h = (h ^ text.data[i]) * 1099511628211ull;
    return h;
}

/* How often this text has come in the present second. */
static uint64_t count_sample(struct debug *d, enum signal s, struct bytes text)
{
    uint64_t hash = hash_text(text), now = clock_now_ns();
    pthread_mutex_lock(&d->lock);
    struct sample *slot = &d->samples[s][hash % SAMPLE_SLOTS];
    if (slot->hash != hash || now >= slot->reset_ns)
        *slot = (struct sample){.hash = hash, .reset_ns = now + SAMPLE_TICK_NS};
    uint64_t n = ++slot->count;
    pthread_mutex_unlock(&d->lock);
    return n;
}

/* Of equal texts: the first `sampling_initial` of a second, then every `sampling_thereafter`-th. */
static bool sampled(struct debug *d, enum signal s, struct bytes text)
{
    uint64_t initial = (uint64_t)d->config->sampling_initial;
    uint64_t thereafter = (uint64_t)d->config->sampling_thereafter;
    if (thereafter == 1)
        return true;
    uint64_t n = count_sample(d, s, text);
    return n <= initial || (thereafter && (n - initial) % thereafter == 0);
}

struct counts {
    int64_t resources, metrics, records;
};

static struct counts count(const struct batch *b)
{
    struct counts n = {.records = b->records};
    struct bytes resource, scope, item;
    for (unsigned i = 0; i < b->nsegs; i++) {
        struct wire_reader resources = wire_reader(buf_bytes(b->segs[i]));
        for (; wire_each(&resources, OTLP_ENTRIES, &resource); n.resources++)
            for (struct wire_reader scopes = wire_reader(resource);
                 wire_each(&scopes, ENTRY_ITEMS, &scope);)
                for (struct wire_reader items = wire_reader(scope);
                     b->signal == SIGNAL_METRICS && wire_each(&items, ENTRY_ITEMS, &item);)
                    n.metrics++;
    }
    return n;
}

static const struct words {
    const char *title, *resources, *records;
} words[] = {
    [SIGNAL_TRACES] = {"Traces", "resource spans", "spans"},
    [SIGNAL_METRICS] = {"Metrics", "resource metrics", "data points"},
    [SIGNAL_LOGS] = {"Logs", "resource logs", "log records"},
};

static void log_counts(const struct debug *d, const struct batch *b)
{
    struct logger lg = d->base.logger;
    const struct words *w = &words[b->signal];
    struct counts n = count(b);
    lg.signal = signal_name(b->signal);
    if (b->signal == SIGNAL_METRICS)
        log_info(&lg, w->title, LOG_INT(w->resources, n.resources), LOG_INT("metrics", n.metrics),
                 LOG_INT(w->records, n.records));
    else
        log_info(&lg, w->title, LOG_INT(w->resources, n.resources), LOG_INT(w->records, n.records));
}

static void put_counts(struct text *t, const struct batch *b)
{
    const struct words *w = &words[b->signal];
    struct counts n = count(b);
    text_printf(t, "%s\t{\"%s\": %lld, ", w->title, w->resources, (long long)n.resources);
    if (b->signal == SIGNAL_METRICS)
        text_printf(t, "\"metrics\": %lld, ", (long long)n.metrics);
    text_printf(t, "\"%s\": %lld}\n", w->records, (long long)n.records);
}

/* Secrets are taken out before: numbers and bytes do not look like them in the text. */
static void put_data(const struct debug *d, struct text *t, const struct batch *b)
{
    _cleanup_batch_ struct batch *clean = NULL;
    if (t->error == 0)
        t->error = otlp_redact_batch(b, &clean);
    if (t->error < 0)
        return;
    b = clean ? clean : b;
    if (d->config->verbosity == VERBOSITY_DETAILED)
        detailed_text(t, b);
    else
        normal_text(t, b);
}

static enum verdict no_memory(struct outcome *out)
{
    snprintf(out->message, sizeof(out->message), "out of memory");
    return VERDICT_RETRY;
}

static enum verdict send_to_log(struct debug *d, const struct batch *b, struct outcome *out)
{
    struct logger lg = d->base.logger;
    _cleanup_buf_ struct buf *data = buf_new(0);
    struct text t = {.out = data, .error = data ? 0 : -ENOMEM};
    lg.signal = signal_name(b->signal);
    if (sampled(d, b->signal, bytes_str(words[b->signal].title)))
        log_counts(d, b);
    if (d->config->verbosity == VERBOSITY_BASIC)
        return VERDICT_OK;
    put_data(d, &t, b);
    if (t.error < 0)
        return no_memory(out);
    if (sampled(d, b->signal, buf_bytes(data)))
        log_text(LOG_INFO, &lg, buf_bytes(data));
    return VERDICT_OK;
}

/* Appends what the outputs get: the counts, and the data with an empty line behind. */
static int render(struct debug *d, const struct batch *b, struct buf *out)
{
    struct text t = {.out = out};
    if (sampled(d, b->signal, bytes_str(words[b->signal].title)))
        put_counts(&t, b);
    if (d->config->verbosity == VERBOSITY_BASIC || t.error < 0)
        return t.error;
    size_t before = out->len;
    put_data(d, &t, b);
    if (t.error == 0 && !sampled(d, b->signal, bytes_of(out->data + before, out->len - before)))
        buf_truncate(out, before);
    else
        text_bytes(&t, bytes_str("\n"));
    return t.error;
}

/* The text without secrets; takes it. NULL when out of memory. */
static struct buf *redacted(struct buf *text)
{
    if (!secrets_found(buf_bytes(text)))
        return text;
    struct buf *clean = buf_new(0);
    if (clean && secrets_redact(buf_bytes(text), clean) < 0)
        clean = buf_unref(clean);
    buf_unref(text);
    return clean;
}

static enum verdict send_to_outputs(struct debug *d, const struct batch *b, struct outcome *out)
{
    _cleanup_buf_ struct buf *text = buf_new(0);
    if (!text || render(d, b, text) < 0)
        return no_memory(out);
    text = redacted(TAKE_PTR(text));
    if (!text)
        return no_memory(out);
    size_t full = 0;
    for (size_t i = 0; i < d->noutputs; i++) {
        struct outlet_note note = {.ctx = d};
        if (outlet_put(output_outlet(d->outputs[i]), buf_ref(text), note) != -EAGAIN)
            continue;
        buf_unref(text);
        full++;
    }
    if (full < d->noutputs)
        return VERDICT_OK;
    snprintf(out->message, sizeof(out->message), "%s: the output does not keep up", d->base.id);
    return VERDICT_RETRY;
}

static enum verdict debug_send(struct component *c, const struct batch *b,
                               uint64_t deadline_ns _unused_, struct outcome *out)
{
    struct debug *d = debug_of(c);
    return d->config->use_internal_logger ? send_to_log(d, b, out) : send_to_outputs(d, b, out);
}

static const char *const verbosities[] = {"basic|Basic|BASIC", "normal|Normal|NORMAL",
                                          "detailed|Detailed|DETAILED", NULL};

static const struct cfg_field fields[] = {
    {.key = "verbosity",
     .kind = BIND_ENUM,
     CFG_AT(struct debug_config, verbosity),
     .def = "basic",
     .values = verbosities,
     .help = "What is told: counts only (basic), a line for each item (normal), everything "
             "(detailed)."},
    {.key = "sampling_initial",
     .kind = BIND_INT,
     CFG_AT(struct debug_config, sampling_initial),
     .def = "2",
     .help = "Equal messages that are told each second before sampling begins."},
    {.key = "sampling_thereafter",
     .kind = BIND_INT,
     CFG_AT(struct debug_config, sampling_thereafter),
     .def = "1",
     .help = "After them every so-many-th equal message of the second is told; 1 = all."},
    {.key = "use_internal_logger",
     .kind = BIND_BOOL,
     CFG_AT(struct debug_config, use_internal_logger),
     .def = "true",
     .help = "Write into the program's own log instead of output_paths."},
    {.key = "output_paths",
     .kind = BIND_LIST,
     CFG_AT(struct debug_config, output_paths),
     .elem = &cfg_elem_string,
     CFG_MORE(CFG_PRESENCE(struct debug_config, output_paths_given)),
     .use = CFG_WRITES_FILE,
     .help = "Without the internal logger: files to append to, or stdout (the default) or stderr."},
    {.key = "sending_queue",
     .kind = BIND_BLOCK,
     CFG_AT(struct debug_config, exporter.queue),
     .fields = queue_fields,
     CFG_NESTED(struct queue_settings),
     .help = "Queue in front of the output; off by default."},
    {0}};

const struct component_type exporter_debug = {
    .kind = KIND_EXPORTER,
    .name = "debug",
    .accepts = SIGNALS_ALL,
    .stability = {"alpha", "alpha", "alpha"},
    .help = "Tells people what passes: counts, a line for each item, or everything.",
    .fields = fields,
    .config_size = sizeof(struct debug_config),
    .check = debug_check,
    .settings = debug_settings,
    .create = debug_create,
    .start = debug_start,
    .stop = debug_stop,
    .destroy = debug_destroy,
    .send = debug_send,
};
