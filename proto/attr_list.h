/*
 * A list of attributes (KeyValue messages) read out of a message, edited, and written back. What was not touched is copied
 * as it came, in its order. A key may stand in it several times (nothing forbids it on the wire): the first one is meant.
 */
#ifndef MOTEL_PROTO_ATTR_LIST_H
#define MOTEL_PROTO_ATTR_LIST_H

#include "agent/base/arena.h"
#include "proto/any_value.h"

struct attr {
    struct bytes key, value; /* value: an AnyValue message */
    struct bytes whole;      /* the KeyValue with its tag as it came; data = NULL: changed or new */
};
struct attr_list {
    struct attr *items;
    size_t n, cap;
    bool changed;
    struct arena *arena; /* made when first needed */
};

/* Reads all fields `number` of the checked message `msg`, which has to outlive the list. `l` is cleared first. 0 or -ENOMEM. */
int attr_list_read(struct attr_list *l, struct bytes msg, uint32_t number);
void attr_list_done(struct attr_list *l);
/* The first attribute of that name; NULL when there is none. Good until the next change. */
struct attr *attr_list_find(const struct attr_list *l, struct bytes key);
/* Gives `a` (of this list) another value; the bytes have to outlive the list. Equal bytes change nothing. */
void attr_list_set(struct attr_list *l, struct attr *a, struct bytes value);
/* Sets the first attribute of that name, or adds one at the end. Key and value have to outlive the list. 0 or -ENOMEM. */
int attr_list_put(struct attr_list *l, struct bytes key, struct bytes value);
/* Removes every attribute of that name. The last one of the list takes the place of one that goes, as in the reference. */
void attr_list_remove(struct attr_list *l, struct bytes key);
/* Removes those for which `drop` is true; the others keep their order. */
void attr_list_remove_if(struct attr_list *l, bool (*drop)(void *ctx, struct bytes key), void *ctx);
/* A copy of `b`, or the AnyValue of `v`, that lives as long as the list. 0 or -ENOMEM. */
int attr_list_keep(struct attr_list *l, struct bytes b, struct bytes *ret);
int attr_list_encode(struct attr_list *l, const struct any_value *v, struct bytes *ret);
/* Appends all attributes as fields `number`. 0, -ENOMEM or -EMSGSIZE. */
int attr_list_write(const struct attr_list *l, uint32_t number, struct buf *out);

#endif
