/* Collecting: every span once, and what is to be known of its trace, its service and its name. */
#include <errno.h>

#include "agent/gym/report_parts.h"
#include "proto/any_value.h"
#include "proto/check.h"
#include "proto/otlp_fields.h"
#include "proto/schema.h"

/* ---- spans ---- */

/* The set of the trace, with `service` in it. */
static int join_set(struct report *r, struct trace *t, uint32_t service)
{
    uint16_t with[MAX_SERVICES];
    const struct service_set *s = &r->sets[t->set];
    uint32_t n = 0;
    if (t->set == FULL_SET)
        return 0;
    while (n < s->n && s->services[n] < service)
        n++;
    if (n < s->n && s->services[n] == service)
        return 0;
    memcpy(with, s->services, n * sizeof(*with));
    with[n] = (uint16_t)service;
    memcpy(with + n + 1, s->services + n, (s->n - n) * sizeof(*with));
    return report_put_set(r, with, s->n + 1, &t->set);
}

static void count_name(struct span_name *n, const struct seen_span *s)
{
    const uint64_t ns = s->end_ns > s->start_ns ? s->end_ns - s->start_ns : 0;
    n->count++;
    n->errors += s->error;
    n->total_ns += ns;
    if (ns > n->max_ns)
        n->max_ns = ns;
}

static int count_url(struct report *r, const struct seen_span *s, uint32_t *ret_url)
{
    *ret_url = 0;
    if (!s->url || (s->kind != SPAN_KIND_SERVER && s->kind != SPAN_KIND_CLIENT))
        return 0;
    int e = report_put_url(r, s->url, ret_url);
    if (e < 0 || *ret_url == 0)
        return e;
    struct url *u = &r->urls[*ret_url];
    if (s->kind == SPAN_KIND_CLIENT)
        u->clients++;
    else if (s->parent)
        u->joined++;
    else
        u->roots++;
    return 0;
}

static int join_trace(struct report *r, struct trace *t, const struct seen_span *s,
                      uint32_t service, uint32_t name)
{
    uint32_t url;
    int e = count_url(r, s, &url);
    if (e == 0)
        e = join_set(r, t, service);
    if (e < 0)
        return e;
    t->spans++;
    t->errors += s->error;
    t->truncated += s->truncated;
    if (s->parent == 0 && t->roots++ == 0) {
        t->root = name;
        t->root_url = url;
        t->root_kind = (uint8_t)s->kind;
    }
    return 0;
}

/* A span of trace `trace`, which is kept. *ret_known: it was there before. */
static int add_to_trace(struct report *r, uint32_t trace, const struct seen_span *s,
                        uint32_t service, uint32_t name, bool *ret_known)
{
    struct trace *t = &r->traces[trace];
    *ret_known = report_find_span(r, trace, s->id) != INDEX_NONE;
    if (*ret_known)
        return 0;
    if (r->nspans == r->max_spans) {
        t->cut = true;
        r->beyond++;
        return 0;
    }
    int e = report_put_span(r, &(struct span){s->id, s->parent, trace, name});
    return e < 0 ? e : join_trace(r, t, s, service, name);
}

static int add_span(struct report *r, struct bytes record, uint32_t service)
{
    const struct seen_span s = report_see_span(record);
    const struct bytes id = wire_bytes(record, SPAN_TRACE_ID);
    uint32_t trace = INDEX_NONE, name;
    bool known = false;
    int e = report_put_name(r, s.name, service, &name);
    if (e == 0 && id.len == 16)
        e = report_put_trace(r, id.data, &trace);
    if (e == 0 && trace != INDEX_NONE)
        e = add_to_trace(r, trace, &s, service, name, &known);
    else if (e == 0)
        r->beyond++;
    if (e < 0)
        return e;
    if (known) {
        r->duplicates++;
        return 0;
    }
    count_name(&r->names[name], &s);
    r->records[SIGNAL_TRACES]++;
    r->truncated += s.truncated;
    r->services[service].spans++;
    r->services[service].errors += s.error;
    return 0;
}

/* ---- services ---- */

static enum server_type server_type(struct bytes text)
{
    static const char *const types[] = {
        [SERVER_ENVIRONMENT] = "environment_servers", [SERVER_AGENT] = "responses_api_agents",
        [SERVER_MODEL] = "responses_api_models",      [SERVER_RESOURCES] = "resources_servers",
        [SERVER_ORCHESTRATOR] = "orchestrator",
    };
    for (size_t i = SERVER_OTHER + 1; i < ARRAY_SIZE(types); i++)
        if (bytes_eq_str(text, types[i]))
            return (enum server_type)i;
    return SERVER_OTHER;
}

struct identity {
    struct bytes service, overridden, server, type;
};

static struct identity identify(struct bytes resource)
{
    struct identity i = {0};
    struct wire_reader reader = wire_reader(resource);
    struct bytes attribute;
    while (wire_each(&reader, RESOURCE_ATTRIBUTES, &attribute)) {
        const struct key_value kv = key_value_read(attribute);
        struct bytes *to = bytes_eq_str(kv.key, "service.name")            ? &i.service
                           : bytes_eq_str(kv.key, "service.name.override") ? &i.overridden
                           : bytes_eq_str(kv.key, "nemo.gym.server.name")  ? &i.server
                           : bytes_eq_str(kv.key, "nemo.gym.server.type")  ? &i.type
                                                                           : NULL;
        const struct any_value v = any_value_read(kv.value);
        if (to && v.kind == ANY_STRING)
            *to = v.bytes;
    }
    return i;
}

static bool ends_with(struct bytes text, struct bytes end)
{
    return text.len >= end.len && memcmp(text.data + text.len - end.len, end.data, end.len) == 0;
}

/* service.name, or what it was before a collector wrote over it; with the server's name, which NeMo
 * Gym appends unless told otherwise. */
static int find_service(struct report *r, struct bytes resource, uint32_t *ret)
{
    const struct identity i = identify(resource);
    struct bytes name = i.overridden.len ? i.overridden : i.service;
    _cleanup_buf_ struct buf *joined = NULL;
    if (i.server.len && !name.len) {
        name = i.server;
    } else if (i.server.len && !ends_with(name, i.server)) {
        joined = buf_new(0);
        if (!joined || buf_printf(joined, "%.*s/%.*s", (int)name.len, (const char *)name.data,
                                  (int)i.server.len, (const char *)i.server.data) < 0)
            return -ENOMEM;
        name = buf_bytes(joined);
    }
    return report_put_service(r, name.len ? name : bytes_str("(no service.name)"),
                              server_type(i.type), ret);
}

static int service_of(struct report *r, struct bytes resource, uint32_t *ret)
{
    const uint64_t hash = hash_bytes(resource, 0) | 1;
    struct remembered_service *m = &r->remembered[(hash >> 32) % REMEMBERED];
    if (m->hash == hash) {
        *ret = m->service;
        return 0;
    }
    int e = find_service(r, resource, ret);
    if (e == 0)
        *m = (struct remembered_service){hash, *ret};
    return e;
}

/* ---- batches ---- */

static int add_spans(struct report *r, struct bytes entry, uint32_t service)
{
    struct wire_reader scopes = wire_reader(entry);
    struct bytes scope, record;
    int e = 0;
    while (e == 0 && wire_each(&scopes, ENTRY_ITEMS, &scope)) {
        struct wire_reader records = wire_reader(scope);
        while (e == 0 && wire_each(&records, ENTRY_ITEMS, &record))
            e = add_span(r, record, service);
    }
    return e;
}

/* An entry with its tag is a request by itself. */
static int add_entry(struct report *r, enum signal s, const struct wire_field *entry)
{
    uint32_t service;
    int e = service_of(r, wire_bytes(entry->bytes, ENTRY_HEAD), &service);
    if (e < 0 || s == SIGNAL_TRACES)
        return e < 0 ? e : add_spans(r, entry->bytes, service);
    const uint32_t n = otlp_count(s, entry->whole);
    r->records[s] += n;
    if (s == SIGNAL_METRICS)
        r->services[service].points += n;
    else
        r->services[service].logs += n;
    return 0;
}

int report_add(struct report *r, const struct batch *b)
{
    struct wire_field f;
    int e = 0;
    for (unsigned i = 0; e == 0 && i < b->nsegs; i++) {
        struct wire_reader reader = wire_reader(buf_bytes(b->segs[i]));
        while (e == 0 && wire_next(&reader, &f) > 0)
            if (f.number == OTLP_ENTRIES)
                e = add_entry(r, b->signal, &f);
    }
    return e;
}

bool report_is_empty(const struct report *r)
{
    return !r->records[SIGNAL_TRACES] && !r->records[SIGNAL_METRICS] && !r->records[SIGNAL_LOGS];
}

/* ---- life ---- */

/* Item 0 of each table is for what has no room. */
static int add_first_items(struct report *r)
{
    uint32_t zero, empty;
    static const uint16_t none[1];
    if (report_put_service(r, bytes_str("(other services)"), SERVER_OTHER, &zero) < 0 ||
        report_put_name(r, bytes_str("(other names)"), 0, &zero) < 0 ||
        report_put_url(r, 0, &zero) < 0 || report_put_set(r, none, 1, &zero) < 0 ||
        report_put_set(r, none, 0, &empty) < 0)
        return -ENOMEM;
    return 0;
}

struct report *report_new(size_t max_traces)
{
    struct report *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->max_traces = max_traces ? max_traces : REPORT_MAX_TRACES;
    if (r->max_traces > UINT32_MAX / REPORT_SPANS_PER_TRACE)
        r->max_traces = UINT32_MAX / REPORT_SPANS_PER_TRACE;
    r->max_spans = r->max_traces * REPORT_SPANS_PER_TRACE;
    r->arena = arena_new(0);
    if (!r->arena || add_first_items(r) < 0)
        return report_free(r);
    return r;
}

struct report *report_free(struct report *r)
{
    if (!r)
        return NULL;
    struct index *const indexes[] = {&r->service_index, &r->set_index,   &r->name_index,
                                     &r->url_index,     &r->trace_index, &r->span_index};
    for (size_t i = 0; i < ARRAY_SIZE(indexes); i++)
        index_done(indexes[i]);
    free(r->services);
    free(r->sets);
    free(r->names);
    free(r->urls);
    free(r->traces);
    free(r->spans);
    arena_free(r->arena);
    free(r);
    return NULL;
}
