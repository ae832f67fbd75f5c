/* The keys that exporters share: sending_queue, retry_on_failure, timeout. */
#include <inttypes.h>

#include "agent/pipeline/queue_parts.h"

static const char *const sizers[] = {"requests", "items", "bytes", NULL};

static const struct cfg_field partition_fields[] = {
    {.key = "metadata_keys",
     .kind = BIND_LIST,
     CFG_AT(struct queue_partition, metadata_keys),
     .elem = &cfg_elem_string,
     .help = "Not available; only an empty list is taken."},
    {0}};

static const struct cfg_field batch_fields[] = {
    {.key = "flush_timeout",
     .kind = BIND_DURATION,
     CFG_AT(struct queue_batch, flush_timeout_ns),
     .def = "200ms",
     .help = "What has waited this long is sent even if it is less than min_size."},
    {.key = "min_size",
     .kind = BIND_INT,
     CFG_AT(struct queue_batch, min_size),
     .def = "8192",
     .help = "Size that is sent at once, counted as `sizer` says."},
    {.key = "max_size",
     .kind = BIND_INT,
     CFG_AT(struct queue_batch, max_size),
     .def = "0",
     .help = "Largest size; what is larger is cut. 0 = no limit. A single record that is larger is "
             "sent alone."},
    {.key = "sizer",
     .kind = BIND_ENUM,
     CFG_AT(struct queue_batch, sizer),
     .def = "items",
     .values = sizers,
     CFG_MORE(CFG_PRESENCE(struct queue_batch, sizer_given)),
     .help = "What the sizes count: items (records) or bytes. Where the queue's own `sizer` is "
             "given it is followed."},
    {.key = "partition",
     .kind = BIND_STRUCT,
     CFG_AT(struct queue_batch, partition),
     .fields = partition_fields,
     CFG_NESTED(struct queue_partition),
     .help = "Batches apart by client metadata."},
    {0}};

/* A batch without a sizer of its own follows a sizer that is given. */
static bool sizer_counts_alone(const void *bound)
{
    const struct queue_settings *q = bound;
    return !q->batch || q->batch->sizer_given == CFG_GIVEN;
}

const struct cfg_field queue_fields[] = {
    {.key = "num_consumers",
     .kind = BIND_INT,
     CFG_AT(struct queue_settings, num_consumers),
     .def = "10",
     .help = "Requests that are sent at the same time."},
    {.key = "queue_size",
     .kind = BIND_INT,
     CFG_AT(struct queue_settings, queue_size),
     .def = "1000",
     .help =
         "Most that may wait or be under way, counted as `sizer` says; beyond it data is refused."},
    {.key = "sizer",
     .kind = BIND_ENUM,
     CFG_AT(struct queue_settings, sizer),
     CFG_MORE(CFG_PRESENCE(struct queue_settings, sizer_given), .printed = sizer_counts_alone),
     .def = "requests",
     .values = sizers,
     .help = "What queue_size counts: requests, items (records) or bytes."},
    {.key = "block_on_overflow",
     .kind = BIND_BOOL,
     CFG_AT(struct queue_settings, block_on_overflow),
     .def = "false",
     .help = "When the queue is full, make the sender wait instead of refusing."},
    {.key = "wait_for_result",
     .kind = BIND_BOOL,
     CFG_AT(struct queue_settings, wait_for_result),
     .def = "false",
     .help = "Answer the sender only when the backend has answered."},
    {.key = "storage",
     .kind = BIND_ID,
     CFG_AT(struct queue_settings, storage),
     .help = "Extension that keeps the queue on disk: nothing that was acknowledged is lost, "
             "whatever ends motel."},
    {.key = "batch",
     .kind = BIND_BLOCK,
     CFG_AT(struct queue_settings, batch),
     .fields = batch_fields,
     CFG_NESTED(struct queue_batch),
     .help = "Puts requests together, or cuts them, on their way out of the queue."},
    {0}};

const struct cfg_field retry_fields[] = {
    {.key = "enabled",
     .kind = BIND_BOOL,
     CFG_AT(struct retry_settings, enabled),
     .def = "true",
     .help = "Try again after an answer that allows it."},
    {.key = "initial_interval",
     .kind = BIND_DURATION,
     CFG_AT(struct retry_settings, initial_interval_ns),
     .def = "5s",
     .help = "Pause after the first failure."},
    {.key = "randomization_factor",
     .kind = BIND_DOUBLE,
     CFG_AT(struct retry_settings, randomization_factor),
     .def = "0.5",
     .help = "Each pause is longer or shorter by up to this part of it."},
    {.key = "multiplier",
     .kind = BIND_DOUBLE,
     CFG_AT(struct retry_settings, multiplier),
     .def = "1.5",
     .help = "Growth of the pause from one failure to the next."},
    {.key = "max_interval",
     .kind = BIND_DURATION,
     CFG_AT(struct retry_settings, max_interval_ns),
     .def = "30s",
     .help = "The longest pause, but for what a server asks for."},
    {.key = "max_elapsed_time",
     .kind = BIND_DURATION,
     CFG_AT(struct retry_settings, max_elapsed_time_ns),
     .def = "5m",
     .help = "Give up when the next attempt would be later than this after the first; 0 = never."},
    {0}};

static int positive(const char *path, int64_t n, struct err *reterr)
{
    return n > 0 ? 0 : err_at(reterr, path, "must be positive, got %" PRId64, n);
}

static int not_negative(const char *path, int64_t ns, struct err *reterr)
{
    char text[32];
    if (ns >= 0)
        return 0;
    cfg_format_duration(ns, text);
    return err_at(reterr, path, "must not be negative, got %s", text);
}

int queue_batch_sizer(const struct queue_settings *q)
{
    const bool follows = q->batch->sizer_given == CFG_ABSENT && q->sizer_given == CFG_GIVEN;
    return follows ? q->sizer : q->batch->sizer;
}

static int not_below_zero(const char *path, int64_t n, struct err *reterr)
{
    return n >= 0 ? 0 : err_at(reterr, path, "must be non-negative, found %" PRId64, n);
}

static int batch_check(const struct queue_settings *q, struct err *reterr)
{
    const struct queue_batch *b = q->batch;
    const int sizer = queue_batch_sizer(q);
    char text[32];
    cfg_format_duration(b->flush_timeout_ns, text);
    if (b->flush_timeout_ns <= 0)
        return err_at(reterr, "sending_queue::batch::flush_timeout", "must be positive, found %s",
                      text);
    if (sizer == q->sizer && b->min_size > q->queue_size)
        return err_at(reterr, "sending_queue::batch::min_size",
                      "must be less than or equal to queue_size (%" PRId64 "), found %" PRId64,
                      q->queue_size, b->min_size);
    if (sizer == SIZER_REQUESTS)
        return err_at(reterr, "sending_queue::batch::sizer",
                      "supports only items or bytes, found \"requests\"");
    int r = not_below_zero("sending_queue::batch::min_size", b->min_size, reterr);
    if (r == 0)
        r = not_below_zero("sending_queue::batch::max_size", b->max_size, reterr);
    if (r < 0)
        return r;
    if (b->max_size && b->max_size < b->min_size)
        return err_at(reterr, "sending_queue::batch::max_size",
                      "must be greater than or equal to min_size (%" PRId64 "), found %" PRId64,
                      b->min_size, b->max_size);
    return b->partition.metadata_keys.n == 0
               ? 0
               : err_at(reterr, "sending_queue::batch::partition::metadata_keys",
                        "batches by client metadata are not available in the queue; the batch "
                        "processor has metadata_keys");
}

static int queue_check(const struct queue_settings *q, struct err *reterr)
{
    int r = positive("sending_queue::num_consumers", q->num_consumers, reterr);
    if (r == 0)
        r = positive("sending_queue::queue_size", q->queue_size, reterr);
    return r == 0 && q->batch ? batch_check(q, reterr) : r;
}

/* A limit on all attempts that is shorter than one pause would never allow a second attempt. */
static int elapsed_check(const struct retry_settings *s, struct err *reterr)
{
    char most[32], text[32];
    if (s->max_elapsed_time_ns == 0)
        return 0;
    const bool initial = s->max_elapsed_time_ns < s->initial_interval_ns;
    if (!initial && s->max_elapsed_time_ns >= s->max_interval_ns)
        return 0;
    cfg_format_duration(s->max_elapsed_time_ns, most);
    cfg_format_duration(initial ? s->initial_interval_ns : s->max_interval_ns, text);
    return err_at(reterr, "retry_on_failure::max_elapsed_time", "%s is less than %s (%s)", most,
                  initial ? "initial_interval" : "max_interval", text);
}

static int retry_check(const struct retry_settings *s, struct err *reterr)
{
    int r = not_negative("retry_on_failure::initial_interval", s->initial_interval_ns, reterr);
    if (r == 0)
        r = not_negative("retry_on_failure::max_interval", s->max_interval_ns, reterr);
    if (r == 0)
        r = not_negative("retry_on_failure::max_elapsed_time", s->max_elapsed_time_ns, reterr);
    if (r < 0)
        return r;
    if (!(s->randomization_factor >= 0 && s->randomization_factor <= 1))
        return err_at(reterr, "retry_on_failure::randomization_factor",
                      "must be within 0 and 1, got %g", s->randomization_factor);
    if (!(s->multiplier >= 0))
        return err_at(reterr, "retry_on_failure::multiplier", "must not be negative, got %g",
                      s->multiplier);
    return elapsed_check(s, reterr);
}

int exporter_settings_check(const struct exporter_settings *s, struct err *reterr)
{
    int r = not_negative("timeout", s->timeout_ns, reterr);
    if (r == 0 && s->queue)
        r = queue_check(s->queue, reterr);
    if (r == 0 && s->retry.enabled)
        r = retry_check(&s->retry, reterr);
    return r;
}
