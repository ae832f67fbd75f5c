/* Queues on disk in front of a backend that notes the numbers of the records it gets. Include after cmocka.h. */
#ifndef MOTEL_TESTS_DISK_RIG_H
#define MOTEL_TESTS_DISK_RIG_H

#include <fcntl.h>
#include <sys/resource.h>

#include "agent/pipeline/graph_parts.h"
#include "agent/pipeline/queue.h"
#include "fake_pipeline.h"
#include "store_rig.h"

#define RECORDS_MAX 20000

struct backend {
    struct component base;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool shut;       /* calls wait until it is opened, or stopped */
    bool stopped;
    enum verdict verdict;
    uint32_t poison; /* a request with this record has another verdict: */
    enum verdict poisoned;
    unsigned calls, inside;
    uint32_t numbers[RECORDS_MAX]; /* of the records taken, in the order they came */
    size_t n;
    uint32_t sizes[64]; /* records of each call, in order */
    size_t bytes[64];
};

/* The numbers in "#000123#" of all records, appended to `ret`. */
static inline size_t numbers_of(const struct batch *b, uint32_t *ret, size_t max)
{
    size_t n = 0;
    for (unsigned k = 0; k < b->nsegs; k++) {
        const struct buf *seg = b->segs[k];
        for (size_t i = 0; i + 8 <= seg->len && n < max; i++) {
            char text[8] = "";
            memcpy(text, seg->data + i + 1, 6);
            if (seg->data[i] == '#' && seg->data[i + 7] == '#' && strspn(text, "0123456789") == 6)
                ret[n++] = (uint32_t)strtoul(text, NULL, 10);
        }
    }
    return n;
}

static inline enum verdict backend_send(struct component *c, const struct batch *b,
                                        uint64_t deadline_ns, struct outcome *out)
{
    struct backend *s = container_of(c, struct backend, base);
    uint32_t numbers[4096];
    const size_t n = numbers_of(b, numbers, ARRAY_SIZE(numbers));
    (void)deadline_ns;
    pthread_mutex_lock(&s->lock);
    if (s->calls < ARRAY_SIZE(s->sizes)) {
        s->sizes[s->calls] = b->records;
        s->bytes[s->calls] = b->bytes;
    }
    s->calls++;
    s->inside++;
    pthread_cond_broadcast(&s->changed);
    while (s->shut && !s->stopped)
        pthread_cond_wait(&s->changed, &s->lock);
    s->inside--;
    enum verdict v = s->stopped ? VERDICT_RETRY : s->verdict;
    for (size_t i = 0; i < n && s->poison; i++)
        if (numbers[i] == s->poison)
            v = s->poisoned;
    for (size_t i = 0; i < n && v == VERDICT_OK && s->n < RECORDS_MAX; i++)
        s->numbers[s->n++] = numbers[i];
    *out = (struct outcome){.message = "told so"};
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return v;
}

static inline void backend_stop(struct component *c, uint64_t deadline_ns)
{
    struct backend *s = container_of(c, struct backend, base);
    (void)deadline_ns;
    pthread_mutex_lock(&s->lock);
    s->stopped = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static const struct component_type backend_type = {
    .kind = KIND_EXPORTER, .name = "backend", .send = backend_send, .stop = backend_stop};

static inline void backend_set(struct backend *s, bool shut, enum verdict v)
{
    pthread_mutex_lock(&s->lock);
    s->shut = shut;
    s->stopped = false;
    s->verdict = v;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static inline size_t backend_count(struct backend *s)
{
    pthread_mutex_lock(&s->lock);
    const size_t n = s->n;
    pthread_mutex_unlock(&s->lock);
    return n;
}

static inline unsigned backend_inside(struct backend *s)
{
    pthread_mutex_lock(&s->lock);
    const unsigned n = s->inside;
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* All of 0 … n - 1 came, each exactly once; in order, too. */
static inline void assert_came(struct backend *s, uint32_t n, bool in_order)
{
    char *seen = calloc(n ? n : 1, 1);
    assert_int_equal(s->n, n);
    for (size_t i = 0; i < s->n; i++) {
        assert_in_range(s->numbers[i], 0, n - 1);
        assert_int_equal(seen[s->numbers[i]]++, 0);
        if (in_order)
            assert_int_equal(s->numbers[i], i);
    }
    free(seen);
}

struct disk_rig {
    struct rig rig; /* host and folder */
    struct motel_settings motel;
    struct component extension;
    struct component_settings extension_settings;
    struct node node, *nodes[1];
    struct graph graph;
    struct backend backend;
    struct queue_batch batch;
    struct queue_settings queue_settings;
    struct exporter_settings settings;
    struct queue *queue;
    size_t mem_before;
};

static struct disk_rig *the_rig; /* whose settings the extension gives */

static inline const void *storage_capability(struct component *c, enum capability kind)
{
    (void)c;
    return kind == CAP_STORAGE ? &the_rig->rig.settings : NULL;
}

static const struct component_type storage_type = {
    .kind = KIND_EXTENSION, .name = "storage", .capability = storage_capability};

/* A worker, pauses of a millisecond. `use_storage`, or the folder is for spilling. */
static inline void disk_rig_init(struct disk_rig *d, bool use_storage)
{
    *d = (struct disk_rig){.mem_before = mem_used()};
    rig_init(&d->rig);
    the_rig = d;
    d->motel = (struct motel_settings){.redact = true, .spill_directory = ""};
    if (!use_storage)
        d->motel.spill_directory = d->rig.folder;
    host_set_settings(d->rig.host, &d->motel);
    d->extension = (struct component){.type = &storage_type, .id = "storage"};
    d->extension_settings = (struct component_settings){.id = "storage", .type = &storage_type};
    d->node = (struct node){.settings = &d->extension_settings, .component = &d->extension};
    d->nodes[0] = &d->node;
    d->graph = (struct graph){.host = d->rig.host, .extensions = {d->nodes, 1}};
    host_set_graph(d->rig.host, &d->graph);
    d->backend.base =
        (struct component){.type = &backend_type, .id = "backend/x", .host = d->rig.host};
    pthread_mutex_init(&d->backend.lock, NULL);
    pthread_cond_init(&d->backend.changed, NULL);
    d->queue_settings = (struct queue_settings){
        .num_consumers = 1, .queue_size = 1000, .storage = {.id = use_storage ? "storage" : NULL}};
    d->settings = (struct exporter_settings){.queue = &d->queue_settings,
                                             .retry = {.enabled = true,
                                                       .initial_interval_ns = NS_PER_MS,
                                                       .max_interval_ns = NS_PER_MS,
                                                       .multiplier = 1}};
}

static inline struct queue *disk_rig_start(struct disk_rig *d)
{
    struct err e = {0};
    struct queue *q = queue_new(&d->backend.base, &d->settings, SIGNAL_LOGS, &e);
    if (!q || queue_start(q, &e) < 0)
        fail_msg("%s", e.text);
    return d->queue = q;
}

/* Stops within `ms`, and frees. */
static inline void disk_rig_stop(struct disk_rig *d, unsigned ms)
{
    queue_stop(d->queue, clock_now_ns() + ms * NS_PER_MS);
    d->queue = queue_free(d->queue);
}

/* Requests in the file of the queue, which is not open. */
static inline size_t disk_rig_stored(struct disk_rig *d)
{
    struct err e;
    if (store_open(d->rig.host, &d->rig.settings, "exporter_backend_x_logs", &d->rig.store, &e) < 0)
        fail_msg("%s", e.text);
    const size_t n = rig_list(d->rig.store)->n;
    d->rig.store = store_close(d->rig.store);
    return n;
}

static inline void disk_rig_done(struct disk_rig *d)
{
    backend_set(&d->backend, false, VERDICT_OK);
    queue_free(d->queue);
    rig_done(&d->rig);
    assert_int_equal(mem_used(), d->mem_before);
}

/* Records `first` … `first` + n - 1, each of about `size` bytes. */
static inline struct batch *numbered(uint32_t first, uint32_t n, size_t size)
{
    struct buf *all = buf_new(0);
    char *text = malloc(size + 16);
    struct batch *b;
    struct err e;
    for (uint32_t i = 0; i < n; i++) {
        int len = snprintf(text, 16, "#%06u#", first + i);
        memset(text + len, '.', size);
        struct batch *one = batch_of_text(bytes_of(text, (size_t)len + size));
        buf_append(all, one->segs[0]->data, one->segs[0]->len);
        batch_unref(one);
    }
    free(text);
    if (batch_from_wire(SIGNAL_LOGS, all, &b, &e) < 0)
        fail_msg("%s", e.text);
    return b;
}

static inline enum verdict offer_numbered(struct disk_rig *d, uint32_t first, uint32_t n,
                                          size_t size)
{
    struct fake_ack ack;
    fake_ack_init(&ack);
    return fake_ack_verdict(&ack, queue_offer(d->queue, numbered(first, n, size), &ack.ack));
}

static inline int64_t disk_gauge(struct disk_rig *d, const char *name)
{
    return metric_value(
        metric_gauge(d->rig.host, name, "", "data_type=\"logs\",exporter=\"backend/x\""));
}

static inline int64_t disk_counter(struct disk_rig *d, const char *name)
{
    return metric_value(metric_counter(d->rig.host, name, "", "exporter=\"backend/x\""));
}

#endif
