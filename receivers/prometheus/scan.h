/* Parts of the exposition parser: labels as they are read and as they are given out, numbers. */
#ifndef MOTEL_RECEIVERS_PROMETHEUS_SCAN_H
#define MOTEL_RECEIVERS_PROMETHEUS_SCAN_H

#include "agent/base/arena.h"
#include "receivers/prometheus/exposition.h"

/* Labels of one sample or exemplar: first as they stand in the page (quotes off, escapes on), after label_list_finish() as they are
 * meant. */
struct label_list {
    struct prom_label *items;
    size_t n, cap;
    bool finished;
};
/* A new label at the end, cleared; NULL when out of memory. */
struct prom_label *label_list_add(struct label_list *l);
void label_list_done(struct label_list *l);
/* Once: decodes, writes `le` and `quantile` anew where `type` has them, sorts. 0 or -ENOMEM. */
int label_list_finish(struct label_list *l, enum prom_type type, struct arena *arena);

/* `s` with `\\` and `\n` decoded, and `\"` where `quotes` says so; other escapes stay. A view of `s` when there are none. 0 or -ENOMEM. */
int prom_unescape(struct bytes s, bool quotes, struct arena *arena, struct bytes *ret);

/* A value or time: what Go's ParseFloat takes, less underscores and hexadecimal; a not-a-number is number_nan(). */
bool prom_parse_double(struct bytes text, double *ret);
/* The decimal number at `p` when it is one of the usual kind, with an exponent or without: behind it. NULL: ask one of the other functions. */
const uint8_t *prom_scan_double(const uint8_t *p, const uint8_t *end, double *ret);
/* The same of a whole text. */
bool prom_quick_double(struct bytes text, double *ret);

#endif
