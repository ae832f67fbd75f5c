/*
 * A queue and its store.
 *
 * The store belongs to the queues of one exporter and signal that use it: one, or for a while two
 * when a reload starts a new graph beside the old one. What is on disk is held by exactly one of
 * them, in its list of requests. The first one takes up all that it finds. A queue that ends gives
 * what it still holds to one that goes on; if there is none it stays on disk for the next start.
 * New requests have ids from one counter, so an id says how old a request is, whoever holds it.
 */
#include <errno.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/pipeline/host_parts.h"
#include "agent/pipeline/queue_disk.h"

#define SPILL_LARGE_BYTES (64 * 1024 * 1024)  /* a file that was larger is made smaller again */
#define SPILL_LOCK_NS (5 * (int64_t)NS_PER_S) /* a process before us may be about to end */

uint64_t queue_next_id(struct queue *q)
{
    return atomic_fetch_add(&q->disk->next_id, 1);
}

int queue_read(struct queue *q, struct request *r, struct err *reterr)
{
    return store_read(q->disk->store, r->id, &r->batch, reterr);
}

/* ---- what is on disk ---- */

void queue_count_on_disk(struct queue *q, const struct request *r, int sign)
{
    q->n_on_disk += (size_t)sign;
    metric_add(q->disk_records, sign * (int64_t)r->records);
    metric_add(q->disk_bytes, sign * (int64_t)r->bytes);
}

/* ---- taking up ---- */

struct taking_up {
    struct queue *queue;
    struct request_list list;
    int64_t records;
    bool no_memory;
};

static bool see_entry(void *ctx, const struct store_entry *e)
{
    struct taking_up *t = ctx;
    struct request *r = queue_request_new(NULL, NULL);
    if (!r) {
        t->no_memory = true;
        return false;
    }
    r->id = e->id;
    r->records = e->records;
    r->bytes = e->bytes;
    r->on_disk = r->for_disk = true;
    t->records += r->records;
    list_push(&t->list, r);
    return true;
}

/* Spilled requests take no room in memory. Lock held. */
static void hold(struct queue *q, struct request_list *l)
{
    for (struct request *r; (r = list_pop(l));) {
        r->size = q->storage ? queue_request_size(q, r->records, r->bytes) : 0;
        queue_count_on_disk(q, r, 1);
        queue_charge(q, r);
        queue_call_worker(q);
        queue_ready_push(q, r);
    }
}

static int take_up(struct queue *q, struct err *reterr)
{
    struct taking_up t = {.queue = q};
    list_init(&t.list);
    int r = store_each(q->disk->store, see_entry, &t, reterr);
    if (r == 0 && t.no_memory)
        r = err_set(reterr, -ENOMEM, "out of memory");
    if (r < 0) {
        for (struct request *x; (x = list_pop(&t.list));)
            queue_request_free(x);
        return r;
    }
    if (t.list.n)
        log_info(&q->logger, "Taking up what the disk holds",
                 LOG_STR("file", store_path(q->disk->store)), LOG_INT("requests", t.list.n),
                 LOG_INT("items", t.records));
    pthread_mutex_lock(&q->lock);
    hold(q, &t.list);
    pthread_mutex_unlock(&q->lock);
    return 0;
}

/* ---- the shared part ---- */

static int disk_open(void *ctx, void **ret, struct err *reterr)
{
    struct disk *d = calloc(1, sizeof(*d));
    if (!d)
        return err_set(reterr, -ENOMEM, "out of memory");
    pthread_mutex_init(&d->lock, NULL);
    atomic_init(&d->next_id, store_next_id(ctx));
    d->store = ctx;
    *ret = d;
    return 0;
}

static void disk_close(void *thing)
{
    struct disk *d = thing;
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static void disk_metrics(struct queue *q)
{
    struct host *h = q->component->host;
    char labels[METRIC_LABELS_MAX] = "", name[80];
    metric_label(labels, "data_type", signal_name(q->signal));
    metric_label(labels, "exporter", q->component->id);
    q->disk_records =
        metric_gauge(h, "motel_exporter_disk_records", "Records in the queue on disk.", labels);
    q->disk_bytes = metric_gauge(h, "motel_exporter_disk_bytes",
                                 "Bytes of telemetry in the queue on disk.", labels);
    q->disk_file_bytes = metric_gauge(h, "motel_exporter_disk_file_bytes",
                                      "Size of the file of the queue on disk.", labels);
    snprintf(name, sizeof(name), "motel_exporter_damaged_%s", signal_records_name(q->signal));
    *labels = '\0';
    metric_label(labels, "exporter", q->component->id);
    q->damaged = metric_counter(
        h, name, "Records among those given up that could not be read from disk.", labels);
}

static const struct store_settings *settings_of(struct queue *q)
{
    const char *folder = host_settings(q->component->host)->spill_directory;
    if (q->storage)
        return q->storage;
    if (!q->settings->queue || !folder || !*folder)
        return NULL;
    q->spill = (struct store_settings){.directory = folder,
                                       .lock_timeout_ns = SPILL_LOCK_NS,
                                       .create_directory = true,
                                       .recreate = true,
                                       .compact_on_rebound = true,
                                       .rebound_needed_bytes = SPILL_LARGE_BYTES,
                                       .rebound_trigger_bytes = SPILL_LARGE_BYTES / 4,
                                       .directory_mode = 0700};
    return &q->spill;
}

static int open_store(struct queue *q, const struct store_settings *s, struct err *reterr)
{
    struct host *h = q->component->host;
    struct store *store;
    _cleanup_free_ char *key = NULL;
    _cleanup_free_ char *name = store_name("exporter", q->component->id, signal_name(q->signal));
    if (!name)
        return err_set(reterr, -ENOMEM, "out of memory");
    int r = store_open(h, s, name, &store, reterr);
    if (r < 0)
        return r;
    if (asprintf(&key, "queue:%s", store_path(store)) >= 0)
        q->shared = host_share(h, key, disk_open, store, disk_close, reterr);
    if (!q->shared) {
        store_close(store);
        return err_set(reterr, -ENOMEM, "out of memory");
    }
    q->disk = q->shared->thing;
    q->store = store;
    return 0;
}

static void release(struct queue *q)
{
    q->shared = host_unshare(q->component->host, q->shared);
    q->disk = NULL;
    q->store = store_close(q->store);
}

int queue_start(struct queue *q, struct err *reterr)
{
    const struct store_settings *s = settings_of(q);
    if (!s || q->disk)
        return 0;
    int r = open_store(q, s, reterr);
    if (r < 0) {
        err_prefix(reterr, "%s: ", q->storage ? "sending_queue::storage" : "spill_directory");
        return r;
    }
    disk_metrics(q);
    metric_set(q->disk_file_bytes, (int64_t)store_file_bytes(q->store));
    pthread_mutex_lock(&q->disk->lock);
    r = q->disk->users ? 0 : take_up(q, reterr);
    if (r == 0) {
        q->next_user = q->disk->users;
        q->disk->users = q;
    }
    pthread_mutex_unlock(&q->disk->lock);
    if (r < 0)
        release(q);
    return r;
}

/* ---- the end ---- */

/* What another queue held: older than what `q` got itself. The lock of the disk is held. */
static void adopt(struct queue *q, struct request_list *l)
{
    struct request_list mine;
    list_init(&mine);
    pthread_mutex_lock(&q->lock);
    for (struct request *r; (r = queue_ready_pop(q));)
        list_push(&mine, r);
    hold(q, l);
    for (struct request *r; (r = list_pop(&mine));)
        queue_ready_push(q, r);
    pthread_mutex_unlock(&q->lock);
}

static void leave(struct disk *d, struct queue *q)
{
    struct queue **at = &d->users;
    while (*at && *at != q)
        at = &(*at)->next_user;
    if (*at)
        *at = q->next_user;
}

static void tell_kept(struct queue *q, const struct request_list *l)
{
    int64_t records = 0;
    for (const struct request *r = l->first; r; r = r->next)
        records += r->records;
    if (l->n)
        log_warn(&q->logger, "Not delivered: kept on disk for the next start",
                 LOG_STR("error", *q->last_error ? q->last_error : "there was no time to send it"),
                 LOG_STR("file", store_path(q->store)), LOG_INT("kept_items", records),
                 LOG_INT("kept_requests", l->n));
}

/* Nobody else is left to touch the queue. */
void queue_detach(struct queue *q)
{
    struct request_list left;
    const bool ends = host_stopping(q->component->host);
    if (!q->disk)
        return;
    list_init(&left);
    pthread_mutex_lock(&q->disk->lock);
    leave(q->disk, q);
    for (struct request *r; (r = queue_ready_pop(q));) /* of a queue that ended before us */
        list_push(&q->kept, r);
    for (struct request *r; (r = list_pop(&q->kept));) {
        queue_discharge(q, r);
        r->batch = batch_unref(r->batch);
        r->undelivered = false;
        r->verdict = VERDICT_OK;
        list_push(&left, r);
    }
    struct queue *heir = q->disk->users;
    if (!heir)
        tell_kept(q, &left);
    for (struct request *r = left.first; r && (heir || !ends); r = r->next)
        queue_count_on_disk(q, r, -1); /* at the end they are counted for the summary */
    if (heir)
        adopt(heir, &left);
    pthread_mutex_unlock(&q->disk->lock);
    for (struct request *r; (r = list_pop(&left));)
        queue_request_free(r);
    release(q);
}
