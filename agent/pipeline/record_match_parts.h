/* Shared by the two halves of record_match. */
#ifndef MOTEL_PIPELINE_RECORD_MATCH_PARTS_H
#define MOTEL_PIPELINE_RECORD_MATCH_PARTS_H

#include "agent/base/regex.h"
#include "agent/pipeline/record_match.h"

struct match_text {
    struct bytes want;   /* strict */
    struct regex *regex; /* regexp */
};
struct match_texts { /* n = 0: not asked for */
    struct match_text *items;
    size_t n;
};
struct match_value {
    struct bytes key;
    struct buf *want;    /* encoded AnyValue; NULL = any value, or by `regex` */
    struct regex *regex;
};
struct match_values {
    struct match_value *items;
    size_t n;
};
struct match_scope {
    struct match_text name, version;
    bool any_version;
};

struct record_match {
    enum signal signal;
    struct match_texts services, span_names, span_kinds, log_bodies, severity_texts, metric_names;
    struct match_values attributes, resources;
    struct match_scope *libraries;
    size_t nlibraries;
    bool severity;
    int64_t severity_min;
    bool severity_undefined;
};

#endif
