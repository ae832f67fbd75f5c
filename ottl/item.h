/*
 * One message under the cursor of a walk: a resource, scope, span, event, metric, data point, exemplar or log record. It is read
 * on its bytes. The first write opens it: a shallow list of its fields, of which those that are touched are replaced. At the end
 * of its visit an item that changed is encoded into what stands above it.
 */
#ifndef MOTEL_OTTL_ITEM_H
#define MOTEL_OTTL_ITEM_H

#include "ottl/env.h"
#include "proto/wire.h"

/* Which of the four kinds of data points an item is; also the index of tables by kind. */
enum ottl_point { OTTL_POINT_NUMBER, OTTL_POINT_HISTOGRAM, OTTL_POINT_EXPONENTIAL, OTTL_POINT_SUMMARY, OTTL_POINT_COUNT };

/* What the items of a walk share. */
struct ottl_item_memory {
    struct arena *arena;   /* lives as long as the items */
    struct buf *scratch;   /* for encoding one value */
};
struct ottl_item {
    struct bytes msg;             /* as it came */
    struct wire_field *fields;    /* NULL until it is opened; number 0 = removed; whole.data NULL = replaced or new */
    uint32_t nfields, cap;
    bool changed;
    bool schema_changed;          /* resource, scope */
    enum ottl_point point;        /* data point: its kind */
    uint32_t data_number;         /* metric: which field `data` is */
    uint32_t live_index;          /* field that `live` stands for */
    struct ottl_item *live;       /* child under the cursor; NULL = none */
    struct ottl_item *data;       /* metric: the Gauge, Sum … as an item, once it is needed */
    struct bytes schema_url;      /* resource, scope: it stands beside the message */
    struct ottl_item_memory *mem;
};

void ottl_item_init(struct ottl_item *it, struct bytes msg, struct ottl_item_memory *mem);

/* ---- reading ---- */

struct ottl_field_iter {
    const struct ottl_item *it;
    struct wire_reader r;
    uint32_t i; /* of the next field */
};
static inline struct ottl_field_iter ottl_fields(const struct ottl_item *it)
{
    return (struct ottl_field_iter){it, wire_reader(it->msg), 0};
}
/* The next field and its index in *ret_index (may be NULL); false at the end. The index of a field never changes. */
bool ottl_field_next(struct ottl_field_iter *iter, struct wire_field *ret, uint32_t *ret_index);
/* The same for the next field `number`. */
bool ottl_field_seek(struct ottl_field_iter *iter, uint32_t number, struct wire_field *ret, uint32_t *ret_index);
/* The field `number` of the item; false when it has none. */
bool ottl_item_find(const struct ottl_item *it, uint32_t number, struct wire_field *ret);
/* All fields `number` as they are now, tags and all, one behind the other in `a`. 0 or -ENOMEM. */
int ottl_item_list(struct ottl_item *it, uint32_t number, struct arena *a, struct bytes *ret, uint32_t *ret_n);

/* ---- writing: 0 or -ENOMEM ---- */

/* The fields as a list, from now on. */
int ottl_item_open(struct ottl_item *it);
/* Sets a singular field; the bytes of a WIRE_LEN field are copied. Equal to what was there changes nothing. */
int ottl_item_set(struct ottl_item *it, uint32_t number, enum wire_type type, uint64_t value, struct bytes bytes);
int ottl_item_remove(struct ottl_item *it, uint32_t number); /* all of that number */
int ottl_item_set_at(struct ottl_item *it, uint32_t index, struct bytes bytes);
int ottl_item_remove_at(struct ottl_item *it, uint32_t index);
int ottl_item_append(struct ottl_item *it, uint32_t number, struct bytes bytes);
/* Puts the elements of `list` (fields of any number, in their order) in the place of all fields `number`. */
int ottl_item_set_list(struct ottl_item *it, uint32_t number, struct bytes list);
/* Appends the message as it is now. Also -EMSGSIZE. */
int ottl_item_write(struct ottl_item *it, struct buf *out);
/* The message as it is now, in the memory of the item (or as it came). */
int ottl_item_bytes(struct ottl_item *it, struct bytes *ret);
/* Another message in its place; copied. */
int ottl_item_replace(struct ottl_item *it, struct bytes msg);
/* What the child under the cursor changed is put into its parent now, for who looks at the parent's list. */
int ottl_item_settle(struct ottl_item *it);

/* ---- metrics: for editors that change or make whole metrics ---- */

/* METRIC_GAUGE, METRIC_SUM …; 0 = it has no data. */
uint32_t ottl_metric_kind(const struct ottl_item *metric);
/* The data of a metric, the Gauge, Sum …, as an item; *ret = NULL when it has none. */
int ottl_metric_data(struct ottl_item *metric, struct ottl_item **ret);
/* Gives the metric under the cursor other data: field `number` (METRIC_SUM …), the encoded Sum …; copied. */
int ottl_metric_set_data(struct ottl_item *metric, uint32_t number, struct bytes data);
enum ottl_point ottl_metric_point(uint32_t data_number);
/* The metrics added to one scope. */
struct ottl_added {
    struct bytes *items;
    size_t n, cap, limit; /* limit: more than that is without end */
    struct arena *arena;
};
/*
 * Adds an encoded Metric to the scope under the cursor, behind those it has; copied. It is visited in its turn. 0; -ENOMEM; -EINVAL
 * with env->err when metrics are added without end, or the cursor is not in metrics.
 */
int ottl_env_add_metric(struct ottl_env *env, struct bytes metric);

#endif
