/* Resources and scopes of scraped samples. */
#include <arpa/inet.h>
#include <errno.h>

#include "proto/otlp_fields.h"
#include "receivers/prometheus/mapper.h"

static const char scope_prefix[] = "otel_scope_";

/* ---- resource attributes ---- */

int map_resource_set(struct prom_mapper *m, struct resource *r, struct bytes key,
                     struct bytes value)
{
    struct attribute *a = r->attributes;
    while (a && !bytes_eq(a->key, key))
        a = a->next;
    if (a)
        return mapper_keep(m, value, &a->value) ? 0 : -ENOMEM;
    a = arena_calloc(m->arena, sizeof(*a));
    if (!a || !mapper_keep(m, key, &a->key) || !mapper_keep(m, value, &a->value))
        return -ENOMEM;
    *r->attributes_end = a;
    r->attributes_end = &a->next;
    return 0;
}

/* "host:port", "[v6]:port": false for anything else, as Go's net.SplitHostPort(). */
static bool split_host_port(struct bytes s, struct bytes *ret_host, struct bytes *ret_port)
{
    const uint8_t *colon = s.len ? memrchr(s.data, ':', s.len) : NULL;
    if (!colon)
        return false;
    struct bytes host = bytes_of(s.data, (size_t)(colon - s.data));
    const struct bytes port = bytes_of(colon + 1, s.len - host.len - 1);
    if (host.len >= 2 && host.data[0] == '[') {
        if (host.data[host.len - 1] != ']')
            return false;
        host = bytes_of(host.data + 1, host.len - 2);
    } else if (host.len && memchr(host.data, ':', host.len)) {
        return false;
    }
    if (host.len && (memchr(host.data, '[', host.len) || memchr(host.data, ']', host.len)))
        return false;
    *ret_host = host;
    *ret_port = port;
    return true;
}

static bool v4_says_nothing(const uint8_t *a)
{
    static const uint8_t any[4];
    return a[0] == 127 || memcmp(a, any, 4) == 0;
}

/* Loopback and unspecified addresses are no name for a server. */
static bool host_says_nothing(struct bytes host)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    char text[INET6_ADDRSTRLEN];
    uint8_t v4[4];
    struct in6_addr v6;
    if (bytes_eq_str(host, "localhost"))
        return true;
    if (host.len >= sizeof(text) || (host.len && memchr(host.data, 0, host.len)))
        return false;
    snprintf(text, sizeof(text), "%.*s", (int)host.len, (const char *)host.data);
    if (inet_pton(AF_INET, text, v4) == 1)
        return v4_says_nothing(v4);
    if (inet_pton(AF_INET6, text, &v6) != 1)
        return false;
    if (memcmp(v6.s6_addr, mapped, sizeof(mapped)) == 0)
        return v4_says_nothing(v6.s6_addr + 12);
    return IN6_IS_ADDR_LOOPBACK(&v6) || IN6_IS_ADDR_UNSPECIFIED(&v6);
}

static int set(struct prom_mapper *m, struct resource *r, const char *key, struct bytes value)
{
    return map_resource_set(m, r, bytes_str(key), value);
}

static int describe(struct prom_mapper *m, struct resource *r)
{
    struct bytes host = r->instance, port = {0};
    split_host_port(r->instance, &host, &port);
    int e = set(m, r, "service.name", r->job);
    if (e == 0 && !host_says_nothing(host))
        e = set(m, r, "server.address", host);
    if (e == 0)
        e = set(m, r, "service.instance.id", r->instance);
    if (e == 0)
        e = set(m, r, "server.port", port);
    if (e == 0)
        e = set(m, r, "url.scheme", m->origin->scheme);
    const struct prom_labels more = m->origin->resource;
    for (size_t i = 0; e == 0 && i < more.n; i++)
        e = map_resource_set(m, r, more.items[i].name, more.items[i].value);
    return e;
}

/* ---- resources ---- */

struct resource_key {
    struct bytes job, instance;
};

static bool same_resource(const struct prom_node *node, const void *key)
{
    const struct resource *r = container_of(node, const struct resource, node);
    const struct resource_key *k = key;
    return bytes_eq(r->job, k->job) && bytes_eq(r->instance, k->instance);
}

static struct resource *new_resource(struct prom_mapper *m, const struct resource_key *k,
                                     uint64_t hash)
{
    struct resource *r = arena_calloc(m->arena, sizeof(*r));
    if (!r || !mapper_keep(m, k->job, &r->job) || !mapper_keep(m, k->instance, &r->instance))
        return NULL;
    r->node.hash = hash;
    r->attributes_end = &r->attributes;
    r->scopes_end = &r->scopes;
    if (describe(m, r) < 0 || prom_table_add(&m->resource_table, &r->node) < 0)
        return NULL;
    *m->resources_end = r;
    m->resources_end = &r->next;
    return r;
}

struct resource *map_resource(struct prom_mapper *m, struct bytes job, struct bytes instance)
{
    const struct resource_key key = {job, instance};
    if (m->last_resource && same_resource(&m->last_resource->node, &key))
        return m->last_resource;
    const uint64_t hash = prom_hash(prom_hash(0, job), instance);
    struct prom_node *node = prom_table_find(&m->resource_table, hash, same_resource, &key);
    struct resource *r =
        node ? container_of(node, struct resource, node) : new_resource(m, &key, hash);
    if (r)
        m->last_resource = r;
    return r;
}

/* ---- scopes ---- */

struct scope_key {
    const struct resource *resource;
    struct bytes identity;
};

static bool same_scope(const struct prom_node *node, const void *key)
{
    const struct scope *s = container_of(node, const struct scope, node);
    const struct scope_key *k = key;
    return s->resource == k->resource && bytes_eq(s->identity, k->identity);
}

/* The part of a label's name behind otel_scope_; empty for other labels and those without a value.
 */
static struct bytes scope_field(const struct prom_label *l)
{
    const size_t n = strlen(scope_prefix);
    if (l->value.len == 0 || l->name.len < n || memcmp(l->name.data, scope_prefix, n) != 0)
        return (struct bytes){0};
    return bytes_of(l->name.data + n, l->name.len - n);
}

/* The well-known fields of a scope; NULL = an attribute. */
static struct bytes *known_field(struct scope *s, struct bytes field)
{
    return bytes_eq_str(field, "name")         ? &s->name
           : bytes_eq_str(field, "version")    ? &s->version
           : bytes_eq_str(field, "schema_url") ? &s->schema_url
                                               : NULL;
}

static int fill_scope(struct prom_mapper *m, struct scope *s, struct prom_labels labels)
{
    buf_truncate(m->scratch, 0);
    for (size_t i = 0; i < labels.n; i++) {
        const struct prom_label *l = &labels.items[i];
        const struct bytes field = scope_field(l);
        if (!field.data)
            continue;
        struct bytes *known = known_field(s, field);
        if (known && !mapper_keep(m, l->value, known))
            return -ENOMEM;
        if (!known && map_put_attribute(m->scratch, SCOPE_ATTRIBUTES, field, l->value) < 0)
            return -ENOMEM;
    }
    return mapper_keep(m, buf_bytes(m->scratch), &s->attributes) ? 0 : -ENOMEM;
}

static struct scope *new_scope(struct prom_mapper *m, struct resource *r, struct bytes identity,
                               uint64_t hash, struct prom_labels labels)
{
    struct scope *s = arena_calloc(m->arena, sizeof(*s));
    if (!s || !mapper_keep(m, identity, &s->identity)) /* it may be the scratch buffer */
        return NULL;
    s->node.hash = hash;
    s->resource = r;
    s->families_end = &s->families;
    if (identity.len && fill_scope(m, s, labels) < 0)
        return NULL;
    if (prom_table_add(&m->scope_table, &s->node) < 0)
        return NULL;
    *r->scopes_end = s;
    r->scopes_end = &s->next;
    return s;
}

struct scope *map_scope(struct prom_mapper *m, struct resource *r, struct prom_labels labels)
{
    buf_truncate(m->scratch, 0);
    for (size_t i = 0; i < labels.n; i++) {
        const struct prom_label *l = &labels.items[i];
        if (scope_field(l).data &&
            map_put_attribute(m->scratch, SCOPE_ATTRIBUTES, l->name, l->value) < 0)
            return NULL;
    }
    if (m->scratch->len == 0 && r->own_scope)
        return r->own_scope;
    const struct scope_key key = {r, buf_bytes(m->scratch)};
    const uint64_t hash = prom_hash((uintptr_t)r, key.identity);
    struct prom_node *node = prom_table_find(&m->scope_table, hash, same_scope, &key);
    struct scope *s =
        node ? container_of(node, struct scope, node) : new_scope(m, r, key.identity, hash, labels);
    if (s && s->identity.len == 0)
        r->own_scope = s;
    return s;
}
