/* What a series is found by, and the attributes that its points carry. */
#ifndef MOTEL_CONNECTORS_SPAN_METRICS_IDENTITY_H
#define MOTEL_CONNECTORS_SPAN_METRICS_IDENTITY_H

#include "connectors/span_metrics/attributes.h"
#include "connectors/span_metrics/config.h"
#include "connectors/span_metrics/span.h"

struct identity {
    bool service, name, kind, status, instance; /* which of the common attributes are there */
    bool service_in_key;                        /* a resource may hold spans of several services */
    bool method;                                /* sampling.method is there */
    const struct cfg_list *scopes;              /* names of scopes that are shown; of const char * */
    char instance_id[37];

    struct attributes list; /* working memory */
    struct buf *texts;
};
/* 0, or a negative errno with reterr; identity_done() is due in any case. */
int identity_init(struct identity *id, const struct span_metrics_config *config, struct err *reterr);
void identity_done(struct identity *id);

/* One span: its service, whether it stands for several, and the values of its dimensions (two lists, one after the other). */
struct subject {
    struct bytes service;
    const struct span *span;
    bool adjusted;
    const struct attributes *matches, *more;
};
/* Overwrites `key`. Two keys are equal when the names of the common attributes and the texts of all values are. 0 or -ENOMEM. */
int identity_key(const struct identity *id, const struct subject *s, struct buf *key);
/* Overwrites `out` by the attributes, as fields 7. Of two with the same name the later value counts. 0 or -ENOMEM. */
int identity_attributes(struct identity *id, const struct subject *s, struct buf *out);

#endif
