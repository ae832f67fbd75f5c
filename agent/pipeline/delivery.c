/* The sending side of the exporter helper: attempts with a time limit, pauses, and what is said
 * about them. */
#include <string.h>

#include "agent/base/clock.h"
#include "agent/pipeline/host_parts.h"
#include "agent/pipeline/queue_parts.h"

#define DRAIN_PAUSE_NS (100 * NS_PER_MS)
#define DRAIN_PAUSE_MAX_NS NS_PER_S

/* The end of an attempt that starts now: its own time limit, and the stop's if there is one. */
static uint64_t attempt_deadline(struct queue *q)
{
    uint64_t own = UINT64_MAX;
    if (q->settings->timeout_ns > 0)
        own = clock_now_ns() + (uint64_t)q->settings->timeout_ns;
    pthread_mutex_lock(&q->lock);
    uint64_t stop = q->deadline_ns;
    pthread_mutex_unlock(&q->lock);
    return own < stop ? own : stop;
}

static enum verdict attempt(struct queue *q, const struct batch *b, struct outcome *out)
{
    *out = (struct outcome){0};
    struct component *c = q->component;
    enum verdict v = c->type->send(c, b, attempt_deadline(q), out);
    return v == VERDICT_PENDING ? VERDICT_RETRY : v; /* send() has no way to answer later */
}

static void prefix_message(struct outcome *out, const char *prefix)
{
    char text[sizeof(out->message)];
    snprintf(text, sizeof(text), "%s", out->message);
    struct ack cut = {0};
    ack_answer(&cut, VERDICT_RETRY, 0, "%s%s", prefix, text);
    memcpy(out->message, cut.now.message, sizeof(out->message));
}

static void log_pause(struct queue *q, const struct outcome *out, uint64_t pause_ns)
{
    char interval[32];
    cfg_format_duration((int64_t)pause_ns, interval);
    log_info(&q->logger, "Exporting failed. Will retry the request after interval.",
             LOG_STR("error", out->message), LOG_STR("interval", interval));
}

/* Until the pause is over, the state is no longer what it was, or the stop's deadline is there.
 * Lock held. */
static void pause_until(struct queue *q, uint64_t until_ns)
{
    const enum queue_state before = q->state;
    for (;;) {
        uint64_t end_ns = until_ns < q->deadline_ns ? until_ns : q->deadline_ns;
        if (q->state != before || clock_now_ns() >= end_ns)
            return;
        cond_wait_until(&q->changed, &q->lock, end_ns);
    }
}

/* While draining the pauses depend on how the queue as a whole fares; a server's wish counts if it
 * can be met. */
static uint64_t drain_pause(struct queue *q, uint64_t now_ns, uint32_t retry_after_ms)
{
    uint64_t pause_ns = DRAIN_PAUSE_NS;
    for (unsigned i = 0; i < q->failures && pause_ns < DRAIN_PAUSE_MAX_NS; i++)
        pause_ns += pause_ns / 2;
    if (pause_ns > DRAIN_PAUSE_MAX_NS)
        pause_ns = DRAIN_PAUSE_MAX_NS;
    uint64_t asked_ns = retry_after_ms * NS_PER_MS;
    if (asked_ns > pause_ns && now_ns + asked_ns < q->deadline_ns)
        pause_ns = asked_ns;
    return pause_ns;
}

/* No use in going on: the time is over, or the backend has been out of reach for long. Lock held.
 */
static bool hopeless(const struct queue *q)
{
    uint64_t now_ns = clock_now_ns();
    return q->state == QUEUE_CLOSED || now_ns >= q->deadline_ns ||
           (q->failures && now_ns - q->failing_ns >= q->patience_ns);
}

/* A failed attempt while draining. Lock held. */
static enum delivery drain_failed(struct queue *q, const struct outcome *out)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t pause_ns = drain_pause(q, now_ns, out->retry_after_ms);
    snprintf(q->last_error, sizeof(q->last_error), "%s", out->message);
    if (q->failures++ == 0)
        q->failing_ns = now_ns;
    if (!hopeless(q))
        pause_until(q, now_ns + pause_ns);
    if (!hopeless(q))
        return DELIVERY_LATER;
    q->given_up = q->disk != NULL;
    return DELIVERY_LOST;
}

/* DELIVERY_DONE = give up; DELIVERY_LATER = go on. */
static enum delivery pause_running(struct queue *q, struct parcel *p, struct outcome *out)
{
    uint64_t pause_ns;
    uint64_t now_ns = clock_now_ns();
    if (!backoff_next(&p->backoff, &q->settings->retry, now_ns, out->retry_after_ms,
                      backoff_random(), &pause_ns)) {
        prefix_message(out, "no more retries left: ");
        return DELIVERY_DONE;
    }
    log_pause(q, out, pause_ns);
    pthread_mutex_lock(&q->lock);
    if (q->state == QUEUE_RUNNING)
        pause_until(q, now_ns + pause_ns);
    pthread_mutex_unlock(&q->lock);
    return DELIVERY_LATER;
}

static enum delivery after_failure(struct queue *q, struct parcel *p, struct outcome *out)
{
    pthread_mutex_lock(&q->lock);
    enum queue_state state = q->state;
    enum delivery d = DELIVERY_LOST;
    if (state == QUEUE_DRAINING && q->settings->retry.enabled)
        d = drain_failed(q, out);
    pthread_mutex_unlock(&q->lock);
    if (state == QUEUE_CLOSED)
        return DELIVERY_LOST;
    if (!q->settings->retry.enabled)
        return DELIVERY_DONE;
    return state == QUEUE_DRAINING ? d : pause_running(q, p, out);
}

static bool is_running(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    bool running = q->state == QUEUE_RUNNING;
    pthread_mutex_unlock(&q->lock);
    return running;
}

static void note_success(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->failures = 0;
    q->moved_ns = clock_now_ns();
    pthread_mutex_unlock(&q->lock);
}

/* What the client is told of a decided request: the backend's words, not the helper's own back-off
 * nor its partial success. */
static void for_client(struct outcome *out, enum verdict v, bool retries)
{
    if (v == VERDICT_OK)
        *out = (struct outcome){0};
    out->counted = v == VERDICT_REJECT;
    if (v == VERDICT_REJECT)
        prefix_message(out,
                       retries ? "not retryable error: Permanent error: " : "Permanent error: ");
    if (out->retry_after_own)
        out->retry_after_ms = 0;
}

enum delivery queue_deliver(struct queue *q, struct parcel *p, enum verdict *ret_verdict,
                            struct outcome *ret_outcome)
{
    enum delivery d = DELIVERY_LATER;
    enum verdict v;
    if (!p->attempts)
        backoff_init(&p->backoff, &q->settings->retry, clock_now_ns());
    do {
        if (p->attempts++)
            metric_add(q->retries, 1);
        v = attempt(q, p->batch, ret_outcome);
        d = v == VERDICT_RETRY ? after_failure(q, p, ret_outcome) : DELIVERY_DONE;
    } while (d == DELIVERY_LATER && is_running(q));
    if (d == DELIVERY_LATER)
        return d;
    p->batch = batch_unref(p->batch);
    if (v == VERDICT_OK) {
        note_success(q);
        metric_add(q->metrics.partly_refused, ret_outcome->rejected);
    }
    for_client(ret_outcome, v, q->settings->retry.enabled);
    *ret_verdict = v;
    return d;
}
