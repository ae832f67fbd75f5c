/* Views of attributes, read quickly out of checked messages. */
#ifndef MOTEL_CONNECTORS_SPAN_METRICS_ATTRIBUTES_H
#define MOTEL_CONNECTORS_SPAN_METRICS_ATTRIBUTES_H

#include "proto/any_value.h"

struct attribute {
    struct bytes key, value; /* value: an AnyValue message; data is never NULL, also when it is empty */
};
/* All zero is an empty list; used again and again as working memory. */
struct attributes {
    struct attribute *items;
    size_t n, cap;
};
void attributes_done(struct attributes *a);
int attributes_grow(struct attributes *a); /* room for one more; -ENOMEM */
static inline int attributes_add(struct attributes *a, struct bytes key, struct bytes value)
{
    if (a->n == a->cap && attributes_grow(a) < 0)
        return -1;
    a->items[a->n++] = (struct attribute){key, value};
    return 0;
}
/* Adds the attribute in the KeyValue message `kv`. 0 or -ENOMEM. */
int attributes_add_kv(struct attributes *a, struct bytes kv);
/* Adds all attributes in the fields `number` of `msg`. 0 or -ENOMEM. */
int attributes_read(struct attributes *a, struct bytes msg, uint32_t number);
/* The first one of that name; NULL = none. */
const struct attribute *attributes_find(const struct attributes *a, struct bytes key);
/* Sets the value of the first one of that name, or adds one. 0 or -ENOMEM. */
int attributes_put(struct attributes *a, struct bytes key, struct bytes value);
/* Those from place `from` on, by key; those of the same key keep their order. */
void attributes_sort(struct attributes *a, size_t from);

#endif
