/*
 * Which records a processor is about: the `include:` and `exclude:` blocks of the attributes and filter processors. All keys that are
 * given have to hold; of the names in one list, one.
 */
#ifndef MOTEL_PIPELINE_RECORD_MATCH_H
#define MOTEL_PIPELINE_RECORD_MATCH_H

#include "agent/config/bind.h"
#include "proto/batch.h"

struct match_severity {
    const struct cfg_value *min; /* a number, or a name such as INFO */
    bool match_undefined;
};
struct match_attribute {
    const char *key;
    const struct cfg_value *value; /* NULL = any */
};
struct match_library {
    const char *name, *version; /* version NULL = any */
};
struct match_config {
    const char *match_type;
    const struct cfg_value *regexp; /* taken without effect */
    struct cfg_list services, span_names, span_kinds, log_bodies, log_severity_texts, metric_names; /* of const char * */
    struct match_severity *severity;
    struct cfg_list attributes, resources; /* of struct match_attribute */
    struct cfg_list libraries;             /* of struct match_library */
};
/* The keys as the attributes processor (and the filter processor's `spans`) has them, and as the filter's `logs` and `metrics`. */
extern const struct cfg_field match_fields[], match_log_fields[], match_metric_fields[];

struct record_match;
/* Checks and compiles `c`, which has to outlive the result, for records of `s`. `key` ("include") is where it stands, for error texts.
 * 0, -EINVAL or -ENOMEM. */
int record_match_new(const struct match_config *c, const char *key, enum signal s, struct record_match **ret, struct err *reterr);
struct record_match *record_match_free(struct record_match *m); /* NULL ok; returns NULL */
DEFINE_CLEANUP(struct record_match *, record_match_free)
/* Whether the checked Span, LogRecord or Metric matches. Any number of threads. */
bool record_match_run(const struct record_match *m, struct bytes resource, struct bytes scope, struct bytes record);

#endif
