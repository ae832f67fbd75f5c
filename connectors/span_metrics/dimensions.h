/*
 * The attributes that a series has besides the five that all have: which values a span gives for the configured dimensions.
 * A value comes from the span, else from the event (of event metrics), else from the resource, else it is the default; a glob takes
 * all attributes whose names match.
 */
#ifndef MOTEL_CONNECTORS_SPAN_METRICS_DIMENSIONS_H
#define MOTEL_CONNECTORS_SPAN_METRICS_DIMENSIONS_H

#include "agent/config/bind.h"
#include "connectors/span_metrics/attributes.h"

struct dimension_config {
    const char *name, *glob; /* one of them; "" = not given */
    const char *def;         /* NULL = none */
};

struct dimension {
    struct bytes name;
    struct bytes def; /* an encoded AnyValue; data NULL = none */
    struct bytes inherited; /* of the present resource, else the default; data NULL = none */
};
struct dimensions {
    struct dimension *named;
    size_t nnamed;
    struct regex **globs;
    size_t nglobs;
};

/* From a list of struct dimension_config, which outlives it. 0, or a negative errno with reterr. */
int dimensions_init(struct dimensions *d, const struct cfg_list *config, struct err *reterr);
void dimensions_done(struct dimensions *d);
static inline bool dimensions_any(const struct dimensions *d)
{
    return d->nnamed || d->nglobs;
}
/* The lengths of the names that are looked for, as bits (length modulo 64); all bits with globs. */
uint64_t dimensions_lengths(const struct dimensions *d);
/* The rules for a list of them: one of name and glob, no name twice or of a dimension that all have. 0 or -EINVAL. */
int dimensions_check(const struct cfg_list *config, struct err *reterr);

/* Where values come from. */
struct sources {
    const struct attributes *span, *event /* NULL = none */, *resource;
};
/* Once for each resource, before its spans. */
void dimensions_set_resource(struct dimensions *d, const struct attributes *resource);
/* Appends what matches to `out`, in order: named ones, then by glob those of the span, sorted, then the others, sorted. 0 or -ENOMEM. */
int dimensions_match(const struct dimensions *d, const struct sources *from, struct attributes *out);

#endif
