/* A folder with stores, and requests to put in. Include after cmocka.h. */
#ifndef MOTEL_TESTS_STORE_RIG_H
#define MOTEL_TESTS_STORE_RIG_H

#include <errno.h>
#include <ftw.h>
#include <stdint.h>
#include <sys/stat.h>

#include "agent/base/clock.h"
#include "agent/pipeline/graph.h"
#include "agent/pipeline/store.h"
#include "proto/wire.h"

struct rig {
    struct host *host;
    char folder[64];
    struct store_settings settings;
    struct store *store;
};

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

/* In /dev/shm if it is there: what is tested is not the disk. */
static inline void rig_init(struct rig *r)
{
    *r = (struct rig){.host = host_new(NULL)};
    assert_non_null(r->host);
    snprintf(r->folder, sizeof(r->folder), "%s/motel-store-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(r->folder));
    r->settings =
        (struct store_settings){.directory = r->folder, .lock_timeout_ns = 1000 * NS_PER_MS};
}

static inline int rig_try_open(struct rig *r, struct err *e)
{
    return store_open(r->host, &r->settings, "exporter_x_traces", &r->store, e);
}

static inline struct store *rig_open(struct rig *r)
{
    struct err e;
    if (rig_try_open(r, &e) < 0)
        fail_msg("%s", e.text);
    return r->store;
}

static inline void rig_reopen(struct rig *r)
{
    r->store = store_close(r->store);
    rig_open(r);
}

static inline void rig_done(struct rig *r)
{
    store_close(r->store);
    host_free(r->host);
    nftw(r->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline const char *rig_path(const struct rig *r)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/exporter_x_traces.mdb", r->folder);
    return path;
}

/* One log record whose body is `body`. */
static inline struct batch *batch_of_text(struct bytes body)
{
    struct buf *b = buf_new(0);
    size_t marks[5];
    struct batch *ret;
    struct err e;
    static const uint32_t numbers[] = {1, 2, 2, 5, 1}; /* entry, scope entry, record, body, string */
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(wire_begin(b, numbers[i], &marks[i]), 0);
    assert_int_equal(wire_put_bytes(b, 1, body), 0);
    for (size_t i = 4; i-- > 0;)
        assert_int_equal(wire_end(b, marks[i]), 0);
    if (batch_from_wire(SIGNAL_LOGS, b, &ret, &e) < 0)
        fail_msg("%s", e.text);
    return ret;
}

/* `size` bytes that depend on `seed` and compress badly. */
static inline struct batch *batch_of(uint32_t seed, size_t size)
{
    char *text = malloc(size + 1);
    uint32_t x = seed * 2654435761u + 1;
    for (size_t i = 0; i < size; i++) {
        x = x * 1664525u + 1013904223u;
        text[i] = (char)('a' + (x >> 24) % 26);
    }
    struct batch *b = batch_of_text(bytes_of(text, size));
    free(text);
    return b;
}

static inline int put_batch(struct store *st, uint64_t id, const struct batch *b, struct err *e)
{
    const struct store_put put = {id, b};
    return store_write(st, &put, 1, NULL, 0, e);
}

static inline int try_put(struct store *st, uint64_t id, size_t size)
{
    struct batch *b = batch_of((uint32_t)id, size);
    struct err e;
    const int r = put_batch(st, id, b, &e);
    batch_unref(b);
    return r;
}

static inline uint64_t put_next(struct store *st, size_t size)
{
    const uint64_t id = store_next_id(st);
    assert_int_equal(try_put(st, id, size), 0);
    return id;
}

static inline int delete_one(struct store *st, uint64_t id)
{
    struct err e;
    const int r = store_write(st, NULL, 0, &id, 1, &e);
    if (r < 0)
        print_message("%s\n", e.text);
    return r;
}

static inline bool same_batch(const struct batch *a, const struct batch *b)
{
    struct buf *x = batch_flatten(a), *y = batch_flatten(b);
    const bool same = a->signal == b->signal && a->records == b->records &&
                      bytes_eq(buf_bytes(x), buf_bytes(y));
    buf_unref(x);
    buf_unref(y);
    return same;
}

static inline void assert_stored(struct store *st, uint64_t id, size_t size)
{
    struct batch *want = batch_of((uint32_t)id, size), *got = NULL;
    struct err e;
    if (store_read(st, id, &got, &e) < 0)
        fail_msg("%s", e.text);
    assert_true(same_batch(got, want));
    batch_unref(got);
    batch_unref(want);
}

static inline int try_read(struct store *st, uint64_t id, struct err *e)
{
    struct batch *b = NULL;
    const int r = store_read(st, id, &b, e);
    batch_unref(b);
    return r;
}

struct list {
    struct store_entry items[4096];
    size_t n;
};

static inline bool list_add(void *ctx, const struct store_entry *e)
{
    struct list *l = ctx;
    if (l->n < ARRAY_SIZE(l->items))
        l->items[l->n++] = *e;
    return l->n < ARRAY_SIZE(l->items);
}

static inline const struct list *rig_list(struct store *st)
{
    static struct list l;
    struct err e;
    l.n = 0;
    assert_int_equal(store_each(st, list_add, &l, &e), 0);
    return &l;
}

#endif
