/* A label set while it is being changed, and its compact form. */
#ifndef MOTEL_RECEIVERS_PROMETHEUS_LABELS_H
#define MOTEL_RECEIVERS_PROMETHEUS_LABELS_H

#include "agent/base/arena.h"
#include "receivers/prometheus/exposition.h"

/* Views only: what names and values point to has to outlive the builder's use, or lie in its arena. */
struct label_builder {
    struct arena *arena;
    struct prom_label *items; /* in no order; a value of length 0 means that there is no such label */
    size_t n, cap;
    bool no_memory; /* an append failed; prom_builder_sorted() says so */
};
int prom_builder_init(struct label_builder *b); /* 0 or -ENOMEM */
void prom_builder_done(struct label_builder *b); /* a cleared one is fine */
/* Forgets everything and starts from `base`. */
void prom_builder_reset(struct label_builder *b, struct prom_labels base);
/* The value; empty when there is none. */
struct bytes prom_builder_get(const struct label_builder *b, struct bytes name);
/* Sets a label; an empty value removes it. */
void prom_builder_set(struct label_builder *b, struct bytes name, struct bytes value);
/* The labels that are there, by name. Valid until the builder is changed. 0 or -ENOMEM. */
int prom_builder_sorted(struct label_builder *b, struct prom_labels *ret);

bool prom_label_is(struct bytes name, const char *text);
bool prom_label_has_prefix(struct bytes name, const char *prefix);

/* One after the other: length of the name, name, length of the value, value; lengths as varints. Appends; 0, -ENOMEM or -EMSGSIZE. */
int prom_labels_encode(struct prom_labels l, struct buf *out);
/* The n labels of such a text into `items`, as views of it. */
void prom_labels_decode(struct bytes encoded, struct prom_label *items, size_t n);
/* {__name__="up", job="x"} for logs; cut at its size. */
void prom_labels_format(struct prom_labels l, char *ret, size_t size);

#endif
