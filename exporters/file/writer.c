#include "exporters/file/writer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/base/cond.h"
#include "agent/pipeline/throttle.h"
#include "exporters/file/group.h"

#define WAKE_BYTES 4096         /* queued: the thread does not wait for more */
#define SLOW_BYTES (4u << 20)   /* queued: clients wait for their answers... */
#define LIMIT_BYTES (64u << 20) /* ...and here no more is taken */
#define PAUSE_NS NS_PER_S       /* between tries while the disk refuses */
#define PAUSE_STOPPING_NS (100 * NS_PER_MS)
#define SAY_AGAIN_NS (60 * NS_PER_S)
#define GRACE_NS                                                                                   \
    (200 *                                                                                         \
     NS_PER_MS) /* a stop has at least that, and a thread that long to come back from the disk */
#define STACK_BYTES (512u << 10)

struct item {
    struct item *next;
    struct batch *batch;
    uint64_t queued_ns;
    char segment[]; /* with group_by */
};

struct writer {
    struct component *owner;
    struct output *output; /* the thread's */
    const char *attribute;
    uint64_t flush_ns, said_ns;
    struct throttle *clients;
    struct metric *sent[SIGNAL_COUNT], *failed[SIGNAL_COUNT];
    pthread_t thread;

    pthread_mutex_t lock; /* of all below; never held while something is written or answered */
    pthread_cond_t work, finished;
    struct item *head, *tail;
    size_t n, bytes;
    bool refusing; /* the disk does: `why` */
    char why[128];
    uint64_t retry_ns;    /* when refusing: the next try */
    uint64_t deadline_ns; /* of the stop; 0 = not stopping */
    bool ended;
    bool left_behind; /* nobody waits for the thread any more, and what it worked for may be gone */
};

/* ---- the queue ---- */

static struct item *item_new(struct batch *b, const char *segment)
{
    size_t n = segment ? strlen(segment) + 1 : 0;
    struct item *it = calloc(1, sizeof(*it) + n);
    if (!it)
        return NULL;
    it->batch = b;
    it->queued_ns = clock_now_ns();
    if (n)
        memcpy(it->segment, segment, n);
    return it;
}

static void items_free(struct item *list)
{
    while (list) {
        struct item *it = list;
        list = it->next;
        batch_unref(it->batch);
        free(it);
    }
}

/* With the lock. */
static void push(struct writer *w, struct item *it)
{
    *(w->tail ? &w->tail->next : &w->head) = it;
    w->tail = it;
    w->n++;
    w->bytes += it->batch->bytes;
    if (w->n == 1 || w->bytes >= WAKE_BYTES)
        pthread_cond_signal(&w->work);
}

/* With the lock: takes the first `n` out. */
static struct item *pop(struct writer *w, size_t n)
{
    struct item *list = w->head, **end = &list;
    for (; n > 0; n--, end = &(*end)->next) {
        w->bytes -= (*end)->batch->bytes;
        w->n--;
    }
    w->head = *end;
    if (!w->head)
        w->tail = NULL;
    *end = NULL;
    return list;
}

/* ---- writing (the thread, without the lock) ---- */

/* True when no time will make it possible: the name is at fault, not the disk. One file was looked
 * at when it was opened. */
static bool hopeless(const struct writer *w, int error)
{
    static const int errors[] = {ENAMETOOLONG, EISDIR, ENOTDIR, EINVAL, ELOOP, EBADMSG, EBUSY};
    for (size_t i = 0; w->attribute && i < ARRAY_SIZE(errors); i++)
        if (error == -errors[i])
            return true;
    return false;
}

/* Writes the first ones of `n` items that go into one file and one write. *ret_done: how many are
 * in the file. */
static int write_some(struct writer *w, const struct item *it, size_t n, size_t *ret_done,
                      struct err *reterr)
{
    const char *segment = w->attribute ? it->segment : NULL;
    *ret_done = 0;
    int r = output_select(w->output, segment, reterr);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n && !output_full(w->output); i++) {
        if (segment && strcmp(it->segment, segment) != 0)
            break;
        r = output_add(w->output, it->batch);
        if (r < 0)
            break;
        if (i + 1 < n) /* the last one's `next` may be changing */
            it = it->next;
    }
    int written = output_flush(w->output, ret_done, reterr);
    if (written < 0 || *ret_done > 0)
        return written;
    return r < 0 && r != -EAGAIN ? err_set(reterr, r, "cannot make a record: %s", strerror(-r)) : 0;
}

static void give_up(struct writer *w, struct item *list, const char *why)
{
    uint64_t records = 0;
    for (const struct item *it = list; it; it = it->next) {
        records += it->batch->records;
        metric_add(w->failed[it->batch->signal], it->batch->records);
    }
    if (list)
        log_error(&w->owner->logger, "Exporting failed. Dropping data.", LOG_STR("error", why),
                  LOG_INT("dropped_items", records));
    items_free(list);
}

static void complain(struct writer *w, const char *why)
{
    uint64_t now = clock_now_ns();
    if (w->said_ns && now - w->said_ns < SAY_AGAIN_NS)
        return;
    w->said_ns = now;
    log_error(&w->owner->logger, "Exporting failed. Data is kept and tried again.",
              LOG_STR("error", why));
}

/* ---- the thread ---- */

/* With the lock: when there is something to do. */
static uint64_t due(const struct writer *w)
{
    if (!w->n)
        return w->deadline_ns ? 0 : UINT64_MAX;
    if (w->refusing)
        return w->retry_ns;
    return w->bytes >= WAKE_BYTES || w->deadline_ns ? 0 : w->head->queued_ns + w->flush_ns;
}

/* With the lock. */
static void after_failure(struct writer *w, const char *why)
{
    w->refusing = true;
    snprintf(w->why, sizeof(w->why), "%.*s", (int)sizeof(w->why) - 1, why);
    w->retry_ns = clock_now_ns() + (w->deadline_ns ? PAUSE_STOPPING_NS : PAUSE_NS);
}

/* What one write came to. */
struct result {
    int error;
    bool works_again;
    struct item *written, *dropped;
    struct err why;
};

/* With the lock. */
static void settle(struct writer *w, size_t done, struct result *res)
{
    res->written = pop(w, done);
    res->works_again = w->refusing && res->error == 0;
    if (res->error == 0) {
        w->refusing = false;
    } else if (hopeless(w, res->error)) {
        res->dropped = pop(w, 1);
    } else {
        after_failure(w, res->why.text);
    }
}

static void report(struct writer *w, const struct result *res)
{
    for (const struct item *it = res->written; it; it = it->next)
        metric_add(w->sent[it->batch->signal], it->batch->records);
    if (res->works_again) {
        w->said_ns = 0;
        log_info(&w->owner->logger, "Writing works again");
    } else if (res->error < 0 && !res->dropped) {
        complain(w, res->why.text);
    }
}

/* With the lock, which is let go meanwhile: one write and what follows from it. */
static void step(struct writer *w)
{
    const struct item *head = w->head;
    size_t n = w->n, done;
    struct result res = {.why.text = ""};
    pthread_mutex_unlock(&w->lock);
    res.error = write_some(w, head, n, &done, &res.why);
    pthread_mutex_lock(&w->lock);
    if (w->left_behind)
        return;
    settle(w, done, &res);
    bool room = w->bytes < SLOW_BYTES || w->refusing;
    pthread_mutex_unlock(&w->lock);
    if (room)
        throttle_release(w->clients);
    report(w, &res);
    items_free(res.written);
    give_up(w, res.dropped, res.why.text);
    pthread_mutex_lock(&w->lock);
}

/* With the lock: writes until it is time to end. */
static void work(struct writer *w)
{
    while (!w->left_behind) {
        uint64_t now = clock_now_ns(), at = due(w);
        if (w->deadline_ns && (!w->n || now >= w->deadline_ns))
            return;
        if (at <= now)
            step(w);
        else
            cond_wait_until(&w->work, &w->lock, at);
    }
}

static void *writer_main(void *arg)
{
    struct writer *w = arg;
    pthread_mutex_lock(&w->lock);
    work(w);
    struct item *left = w->left_behind ? NULL : pop(w, w->n);
    bool alone = w->left_behind;
    pthread_mutex_unlock(&w->lock);
    if (alone)
        return NULL;
    give_up(w, left, *w->why ? w->why : "no time left");
    w->output = output_free(w->output);
    pthread_mutex_lock(&w->lock);
    w->ended = true;
    pthread_cond_signal(&w->finished);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- the interface ---- */

static struct writer *writer_free(struct writer *w)
{
    output_free(w->output);
    throttle_free(w->clients);
    pthread_cond_destroy(&w->work);
    pthread_cond_destroy(&w->finished);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return NULL;
}

static void get_metrics(struct writer *w)
{
    struct component *c = w->owner;
    char labels[METRIC_LABELS_MAX] = "", name[96];
    metric_label(labels, "exporter", c->id);
    for (enum signal s = 0; s < SIGNAL_COUNT; s++) {
        snprintf(name, sizeof(name), "otelcol_exporter_sent_%s", signal_records_name(s));
        w->sent[s] = metric_counter(c->host, name, "Records that the destination took.", labels);
        snprintf(name, sizeof(name), "otelcol_exporter_send_failed_%s", signal_records_name(s));
        w->failed[s] = metric_counter(
            c->host, name, "Records that were given up: refused by the destination or out of time.",
            labels);
    }
}

static int start_thread(struct writer *w)
{
    pthread_attr_t attr;
    sigset_t all, before;
    sigfillset(&all); /* SIGXFSZ and SIGPIPE too: they are errors of write() here */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    int r = pthread_create(&w->thread, &attr, writer_main, w);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r == 0)
        pthread_setname_np(w->thread, "file writer");
    return -r;
}

int writer_start(struct component *owner, struct output *output, uint64_t flush_ns,
                 const char *attribute, struct writer **ret, struct err *reterr)
{
    struct writer *w = calloc(1, sizeof(*w));
    if (!w) {
        output_free(output);
        return err_set(reterr, -ENOMEM, "out of memory");
    }
    w->owner = owner;
    w->output = output;
    w->flush_ns = flush_ns;
    w->attribute = attribute;
    pthread_mutex_init(&w->lock, NULL);
    cond_init_monotonic(&w->work);
    cond_init_monotonic(&w->finished);
    get_metrics(w);
    w->clients = throttle_new(owner->host);
    int r = w->clients ? start_thread(w) : -ENOMEM;
    if (r < 0) {
        writer_free(w);
        return err_set(reterr, r, "cannot start a thread: %s", strerror(-r));
    }
    *ret = w;
    return 0;
}

/* With the lock: the reason why a batch of `bytes` is not taken, in `ack`; or VERDICT_OK. */
static enum verdict admission(const struct writer *w, size_t bytes, struct ack *ack)
{
    ack->now = (struct outcome){0};
    if (w->refusing)
        return ack_answer(ack, VERDICT_RETRY, 0, "%s", w->why);
    if (w->deadline_ns)
        return ack_answer(ack, VERDICT_RETRY, 0, "shutting down");
    if (w->n && w->bytes + bytes > LIMIT_BYTES)
        return ack_answer(ack, VERDICT_RETRY, 0,
                          "the disk is too slow: %zu bytes wait to be written", w->bytes);
    return VERDICT_OK;
}

/* Takes a list of items, all or none. */
static enum verdict queue(struct writer *w, struct item *list, size_t bytes, struct ack *ack)
{
    pthread_mutex_lock(&w->lock);
    enum verdict v = admission(w, bytes, ack);
    while (v == VERDICT_OK && list) {
        struct item *it = list;
        list = it->next;
        it->next = NULL;
        push(w, it);
    }
    if (v == VERDICT_OK && w->n > 1 && w->bytes > SLOW_BYTES && throttle_wait(w->clients, ack))
        v = VERDICT_PENDING;
    pthread_mutex_unlock(&w->lock);
    items_free(list);
    return v;
}

/* One item for each file. 0 or -ENOMEM; *ret is to be freed in any case. */
static int group_items(struct writer *w, struct batch *b, struct item **ret)
{
    struct groups groups;
    struct item **end = ret;
    *ret = NULL;
    int r = group_batch(b, w->attribute, &groups);
    for (size_t i = 0; r == 0 && i < groups.n; i++) {
        *end = item_new(groups.items[i].batch, groups.items[i].segment);
        if (*end) {
            batch_ref((*end)->batch);
            end = &(*end)->next;
        } else {
            r = -ENOMEM;
        }
    }
    if (r == 0 && groups.without) {
        metric_add(w->failed[b->signal], groups.without);
        log_warn(&w->owner->logger, "Resources without a file name were dropped",
                 LOG_STR("attribute", w->attribute), LOG_INT("dropped_items", groups.without));
    }
    groups_done(&groups);
    return r;
}

enum verdict writer_offer(struct writer *w, struct batch *b, struct ack *ack)
{
    struct item *list = NULL;
    size_t bytes = b->bytes;
    int r = 0;
    if (w->attribute) {
        r = group_items(w, b, &list);
        batch_unref(b);
    } else if (!(list = item_new(b, NULL))) {
        batch_unref(b);
        r = -ENOMEM;
    }
    if (r == 0)
        return queue(w, list, bytes, ack);
    items_free(list);
    return ack_answer(ack, VERDICT_RETRY, 0, "out of memory");
}

/* With the lock: waits for the thread; false = it hangs. */
static bool wait_for_end(struct writer *w, uint64_t until_ns)
{
    while (!w->ended && clock_now_ns() < until_ns)
        cond_wait_until(&w->finished, &w->lock, until_ns);
    w->left_behind = !w->ended;
    return w->ended;
}

bool writer_stop(struct writer *w, uint64_t deadline_ns)
{
    uint64_t least = clock_now_ns() + GRACE_NS;
    pthread_mutex_lock(&w->lock);
    w->deadline_ns = deadline_ns > least ? deadline_ns : least;
    w->retry_ns = 0;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    throttle_release(w->clients);
    pthread_mutex_lock(&w->lock);
    bool ended = wait_for_end(w, w->deadline_ns + GRACE_NS);
    size_t left = w->n;
    pthread_mutex_unlock(&w->lock);
    if (ended) {
        pthread_join(w->thread, NULL);
        writer_free(w);
        return true;
    }
    log_error(&w->owner->logger, "The file system does not answer. Dropping data.",
              LOG_INT("dropped_requests", left));
    pthread_detach(w->thread);
    return false;
}
