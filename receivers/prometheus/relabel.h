/* Relabelling: rules that change label sets, or drop them. https://prometheus.io/docs/prometheus/latest/configuration/configuration/#relabel_config */
#ifndef MOTEL_RECEIVERS_PROMETHEUS_RELABEL_H
#define MOTEL_RECEIVERS_PROMETHEUS_RELABEL_H

#include "agent/base/regex.h"
#include "receivers/prometheus/config.h"
#include "receivers/prometheus/labels.h"

/* A regular expression as rules have it: it has to match the whole text. 0, -EINVAL with the reason, -ENOMEM. */
int prom_relabel_regex(const char *text, struct regex **ret, struct err *reterr);
/* What an action needs and what it cannot have. 0 or -EINVAL; e->path is the key below the rule, or "". */
int prom_relabel_check(const struct relabel_config *c, struct err *reterr);

struct relabel_rules;
/* Compiles checked rules; their strings have to outlive the result. An empty list is NULL, with 0. 0 or -errno with reterr. */
int prom_relabel_new(const struct cfg_list *configs, struct relabel_rules **ret, struct err *reterr);
struct relabel_rules *prom_relabel_free(struct relabel_rules *r); /* NULL ok; returns NULL */
DEFINE_CLEANUP(struct relabel_rules *, prom_relabel_free)
/* Applies the rules in their order (NULL = none). False: the label set is dropped. New texts lie in the builder's arena. */
bool prom_relabel_apply(const struct relabel_rules *r, struct label_builder *b);
/* A rule writes `__name__`: type, unit and help of a metric get lost. */
bool prom_relabel_renames(const struct relabel_rules *r);

#endif
