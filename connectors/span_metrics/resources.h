/*
 * The resources whose spans are counted, in the order of their last use. When there are too many, the one that was not used for the longest time
 * is put aside: it is exported once more, and comes back if it is seen before that.
 */
#ifndef MOTEL_CONNECTORS_SPAN_METRICS_RESOURCES_H
#define MOTEL_CONNECTORS_SPAN_METRICS_RESOURCES_H

#include "agent/config/bind.h"
#include "connectors/span_metrics/attributes.h"
#include "connectors/span_metrics/series.h"

struct resource {
    struct resource *older, *newer;
    uint64_t hash;      /* of the key */
    uint64_t raw_hash;  /* of the message */
    struct bytes key;   /* attributes that tell it from others, sorted */
    struct bytes raw;   /* the Resource message that came first */
    uint64_t seen_ns;   /* clock_now_ns() */
    bool aside;
    struct series_set sums, histograms, events; /* histograms: only when their keys differ from those of sums */
};

struct resource_list {
    struct resource *oldest, *newest;
    size_t n;
};

#define RESOURCES_RECENT 64
struct resources {
    size_t max;                           /* in use, others are aside */
    const struct cfg_list *key_attributes; /* of const char *; none = all attributes */
    uint64_t seed;
    bool histogram_in_sums;
    struct sm_table table;
    struct resource_list used, aside;
    struct resource *recent[RESOURCES_RECENT]; /* by raw_hash: those whose message came as it is stored */
    struct buf *key;                           /* working memory */
    struct attributes sorted;
};
int resources_init(struct resources *r); /* -ENOMEM; the first four fields are set before */
void resources_done(struct resources *r);

/* That of the Resource message `raw` with these attributes, made when it is new; now the newest. NULL when out of memory. */
struct resource *resources_get(struct resources *r, struct bytes raw, const struct attributes *attributes);
/* The same by its message alone, for those that came lately; NULL = unknown. */
struct resource *resources_recent(struct resources *r, struct bytes raw);
/* After an export: what is aside is gone. */
void resources_drop_aside(struct resources *r);
/* Those last seen at `before_ns` or earlier are put aside. */
void resources_expire(struct resources *r, uint64_t before_ns);
void resources_drop_all(struct resources *r);

#endif
