/* The tables of a report: each finds an item or adds it, up to a limit. */
#include <errno.h>

#include "agent/gym/report_parts.h"

/* Makes room for one more item. The items of `*table` are `size` bytes. */
static int make_room(void *table, size_t n, size_t *cap, size_t size)
{
    void **items = table;
    if (n < *cap)
        return 0;
    const size_t more = *cap ? *cap + *cap / 2 : 64;
    void *grown = realloc(*items, more * size);
    if (!grown)
        return -ENOMEM;
    memset((char *)grown + n * size, 0, (more - n) * size);
    *items = grown;
    *cap = more;
    return 0;
}
#define MAKE_ROOM(r, table, n, cap) make_room(&(r)->table, (r)->n, &(r)->cap, sizeof(*(r)->table))

struct wanted_name {
    const struct report *r;
    struct bytes name;
    uint32_t service;
};

static bool same_service(const void *ctx, uint32_t i)
{
    const struct wanted_name *w = ctx;
    return bytes_eq_str(w->name, w->r->services[i].name);
}

static bool same_name(const void *ctx, uint32_t i)
{
    const struct wanted_name *w = ctx;
    const struct span_name *n = &w->r->names[i];
    return n->service == w->service && bytes_eq_str(w->name, n->name);
}

static char *keep(struct report *r, struct bytes text)
{
    return arena_strndup(r->arena, (const char *)text.data, text.len);
}

int report_put_service(struct report *r, struct bytes name, enum server_type type, uint32_t *ret)
{
    const struct wanted_name w = {r, name, 0};
    const uint64_t hash = hash_bytes(name, 0);
    *ret = index_find(&r->service_index, hash, same_service, &w);
    if (*ret != INDEX_NONE)
        return 0;
    *ret = 0;
    if (r->nservices == MAX_SERVICES)
        return 0;
    const char *copy = keep(r, name);
    if (!copy || MAKE_ROOM(r, services, nservices, services_cap) < 0 ||
        index_add(&r->service_index, hash, (uint32_t)r->nservices) < 0)
        return -ENOMEM;
    r->services[r->nservices] = (struct service){.name = copy, .type = type};
    *ret = (uint32_t)r->nservices++;
    return 0;
}

int report_put_name(struct report *r, struct bytes name, uint32_t service, uint32_t *ret)
{
    const struct wanted_name w = {r, name, service};
    const uint64_t hash = hash_bytes(name, service);
    *ret = index_find(&r->name_index, hash, same_name, &w);
    if (*ret != INDEX_NONE)
        return 0;
    *ret = 0;
    if (r->nnames == MAX_NAMES)
        return 0;
    const char *copy = keep(r, name);
    if (!copy || MAKE_ROOM(r, names, nnames, names_cap) < 0 ||
        index_add(&r->name_index, hash, (uint32_t)r->nnames) < 0)
        return -ENOMEM;
    r->names[r->nnames] = (struct span_name){.name = copy, .service = service};
    *ret = (uint32_t)r->nnames++;
    return 0;
}

struct wanted_set {
    const struct report *r;
    const uint16_t *services;
    uint32_t n;
};

static bool same_set(const void *ctx, uint32_t i)
{
    const struct wanted_set *w = ctx;
    const struct service_set *s = &w->r->sets[i];
    return s->n == w->n && memcmp(s->services, w->services, w->n * sizeof(*w->services)) == 0;
}

int report_put_set(struct report *r, const uint16_t *services, uint32_t n, uint32_t *ret)
{
    const struct wanted_set w = {r, services, n};
    const size_t bytes = n * sizeof(*services);
    const uint64_t hash = hash_bytes(bytes_of(services, bytes), 0);
    *ret = index_find(&r->set_index, hash, same_set, &w);
    if (*ret != INDEX_NONE)
        return 0;
    *ret = 0;
    if (r->nsets == MAX_SETS)
        return 0;
    uint16_t *copy = arena_alloc(r->arena, bytes ? bytes : 1);
    if (!copy || MAKE_ROOM(r, sets, nsets, sets_cap) < 0 ||
        index_add(&r->set_index, hash, (uint32_t)r->nsets) < 0)
        return -ENOMEM;
    memcpy(copy, services, bytes);
    r->sets[r->nsets] = (struct service_set){.n = n, .services = copy};
    *ret = (uint32_t)r->nsets++;
    return 0;
}

struct wanted_url {
    const struct report *r;
    uint64_t hash;
};

static bool same_url(const void *ctx, uint32_t i)
{
    const struct wanted_url *w = ctx;
    return w->r->urls[i].hash == w->hash;
}

int report_put_url(struct report *r, uint64_t hash, uint32_t *ret)
{
    const struct wanted_url w = {r, hash};
    *ret = index_find(&r->url_index, hash, same_url, &w);
    if (*ret != INDEX_NONE)
        return 0;
    *ret = 0;
    if (r->nurls == MAX_URLS)
        return 0;
    if (MAKE_ROOM(r, urls, nurls, urls_cap) < 0 ||
        index_add(&r->url_index, hash, (uint32_t)r->nurls) < 0)
        return -ENOMEM;
    r->urls[r->nurls] = (struct url){.hash = hash};
    *ret = (uint32_t)r->nurls++;
    return 0;
}

struct wanted_trace {
    const struct report *r;
    const uint8_t *id;
};

static bool same_trace(const void *ctx, uint32_t i)
{
    const struct wanted_trace *w = ctx;
    return memcmp(w->r->traces[i].id, w->id, sizeof(w->r->traces[i].id)) == 0;
}

int report_put_trace(struct report *r, const uint8_t *id, uint32_t *ret)
{
    const struct wanted_trace w = {r, id};
    const uint64_t hash = hash_bytes(bytes_of(id, 16), 0);
    *ret = index_find(&r->trace_index, hash, same_trace, &w);
    if (*ret != INDEX_NONE || r->ntraces == r->max_traces)
        return 0;
    if (MAKE_ROOM(r, traces, ntraces, traces_cap) < 0 ||
        index_add(&r->trace_index, hash, (uint32_t)r->ntraces) < 0)
        return -ENOMEM;
    struct trace *t = &r->traces[r->ntraces];
    *t = (struct trace){.set = EMPTY_SET};
    memcpy(t->id, id, sizeof(t->id));
    *ret = (uint32_t)r->ntraces++;
    return 0;
}

struct wanted_span {
    const struct report *r;
    uint32_t trace;
    uint64_t id;
};

static bool same_span(const void *ctx, uint32_t i)
{
    const struct wanted_span *w = ctx;
    return w->r->spans[i].id == w->id && w->r->spans[i].trace == w->trace;
}

static uint64_t span_hash(uint32_t trace, uint64_t id)
{
    return hash_u64(id, trace);
}

uint32_t report_find_span(const struct report *r, uint32_t trace, uint64_t id)
{
    const struct wanted_span w = {r, trace, id};
    return index_find(&r->span_index, span_hash(trace, id), same_span, &w);
}

int report_put_span(struct report *r, const struct span *s)
{
    if (MAKE_ROOM(r, spans, nspans, spans_cap) < 0 ||
        index_add(&r->span_index, span_hash(s->trace, s->id), (uint32_t)r->nspans) < 0)
        return -ENOMEM;
    r->spans[r->nspans++] = *s;
    return 0;
}
