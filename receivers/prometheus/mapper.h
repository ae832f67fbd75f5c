/* Parts of the mapping: what a scrape consists of until it is written. All of it lives in the mapper's arena. */
#ifndef MOTEL_RECEIVERS_PROMETHEUS_MAPPER_H
#define MOTEL_RECEIVERS_PROMETHEUS_MAPPER_H

#include "agent/base/arena.h"
#include "receivers/prometheus/mapping.h"
#include "receivers/prometheus/point.h"
#include "receivers/prometheus/table.h"

/* A metric. */
struct family {
    struct prom_node node; /* by scope and name */
    struct family *next;
    struct scope *scope;
    struct bytes name;
    const struct prom_family_info *info;
    enum prom_type type; /* that of `info` when the family began */
    enum point_kind kind;
    struct point *points, **points_end;
    struct point *last; /* of the sample before; the buckets of a histogram stand together */
};

struct scope {
    struct prom_node node; /* by resource and identity */
    struct scope *next;
    struct resource *resource;
    struct bytes identity;          /* its labels as fields of a scope's attributes; empty = the receiver's own scope */
    struct bytes name, version, schema_url, attributes;
    struct family *families, **families_end;
};

struct attribute {
    struct attribute *next;
    struct bytes key, value;
};
struct resource {
    struct prom_node node; /* by job and instance */
    struct resource *next;
    struct bytes job, instance;
    struct attribute *attributes, **attributes_end;
    struct scope *scopes, **scopes_end;
    struct scope *own_scope; /* NULL = no sample was in it yet */
};

struct prom_mapper {
    const char *version;
    const struct prom_origin *origin;
    struct arena *arena;
    struct resource *resources, **resources_end;
    struct prom_table resource_table, scope_table, family_table, name_table, point_table;
    struct resource *last_resource; /* of the sample before */
    struct named *last_name;
    struct buf *scratch;
    size_t expected_bytes; /* of the request, about */
    struct prom_left_out left_out;
    struct place place; /* of the last sample */
    struct prom_recorder *recorder; /* NULL = the scrape is not recorded */
};

/* A copy in the arena; false when out of memory. */
bool mapper_keep(struct prom_mapper *m, struct bytes b, struct bytes *ret);

/* Appends a KeyValue with a string as field `number`. 0, -ENOMEM or -EMSGSIZE. */
int map_put_attribute(struct buf *out, uint32_t number, struct bytes key, struct bytes value);

/* ---- mapping_resource.c ---- */

/* The resource of that job and instance, made when there is none. NULL when out of memory. */
struct resource *map_resource(struct prom_mapper *m, struct bytes job, struct bytes instance);
/* A resource attribute, in the place of one of that name. The texts are copied. 0 or -ENOMEM. */
int map_resource_set(struct prom_mapper *m, struct resource *r, struct bytes key, struct bytes value);
/* The scope that the otel_scope_* labels name. NULL when out of memory. */
struct scope *map_scope(struct prom_mapper *m, struct resource *r, struct prom_labels labels);

/* ---- mapping_family.c ---- */

/* The family that the sample `name` belongs to. NULL when out of memory. */
struct family *map_family(struct prom_mapper *m, struct scope *s, struct bytes name);

/* ---- mapping_write.c ---- */

/* The whole request. */
int map_write(struct prom_mapper *m, struct buf *out, uint32_t *ret_points);
/* Notes in the points where they are in the request that map_write() made. */
void map_locate(struct prom_mapper *m, struct bytes request);
/* A count that came as a double. */
uint64_t map_count(double v);
/* A cumulative count of a bucket, made to rise from the one before it to `count`. */
static inline uint64_t map_rise(uint64_t up_to, uint64_t before, uint64_t count)
{
    return up_to < before ? before : up_to > count ? count : up_to;
}
/* Seconds since 1970 in nanoseconds; 0 for what is no such time. */
uint64_t map_start_ns(double seconds);
/* Whether the point will be written: it has a value (a count). */
bool map_point_complete(const struct point *p);

#endif
