/* Matching of records at work; the keys and their compilation are in record_match_check.c. */
#include "agent/pipeline/record_match.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/pipeline/record_match_parts.h"
#include "proto/any_value.h"
#include "proto/otlp_fields.h"

#define NO_SERVICE "<nil-service-name>" /* what stands for a service without a name */

static bool text_matches(const struct match_text *t, struct bytes text)
{
    return t->regex ? regex_match(t->regex, text) : bytes_eq(t->want, text);
}

static bool one_of(const struct match_texts *t, struct bytes text)
{
    for (size_t i = 0; i < t->n; i++)
        if (text_matches(&t->items[i], text))
            return true;
    return t->n == 0;
}

/* The value of the first attribute of that name among the fields `number` of `msg`. */
static bool find_attribute(struct bytes msg, uint32_t number, struct bytes key, struct bytes *ret)
{
    struct wire_reader r = wire_reader(msg);
    struct bytes kv;
    while (wire_each(&r, number, &kv)) {
        const struct key_value pair = key_value_read(kv);
        if (bytes_eq(pair.key, key)) {
            *ret = pair.value;
            return true;
        }
    }
    return false;
}

/* ---- attributes ---- */

/* A double without an exponent, in as few digits as say which it is. */
static size_t double_text(double d, char *ret, size_t size)
{
    int n = 0;
    for (int digits = 0; digits < 400; digits++) {
        n = snprintf(ret, size, "%.*f", digits, d);
        if (n < 0 || (size_t)n >= size || strtod(ret, NULL) == d || d != d)
            break;
    }
    return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

static bool value_matches_regex(const struct regex *re, struct bytes value)
{
    const struct any_value v = any_value_read(value);
    char room[800];
    switch (v.kind) {
    case ANY_STRING: return regex_match(re, v.bytes);
    case ANY_BOOL: return regex_match(re, bytes_str(v.b ? "true" : "false"));
    case ANY_INT: snprintf(room, sizeof(room), "%lld", (long long)v.i); break;
    case ANY_DOUBLE: return regex_match(re, bytes_of(room, double_text(v.d, room, sizeof(room))));
    default: return false;
    }
    return regex_match(re, bytes_str(room));
}

static bool value_equals(struct bytes want, struct bytes value)
{
    const struct any_value a = any_value_read(want), b = any_value_read(value);
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case ANY_EMPTY: return true;
    case ANY_BOOL: return a.b == b.b;
    case ANY_INT: return a.i == b.i;
    case ANY_DOUBLE: return a.d == b.d;
    default: return bytes_eq(a.bytes, b.bytes);
    }
}

static bool all_values(const struct match_values *vs, struct bytes msg, uint32_t number)
{
    struct bytes value;
    for (size_t i = 0; i < vs->n; i++) {
        const struct match_value *v = &vs->items[i];
        if (!find_attribute(msg, number, v->key, &value))
            return false;
        if (v->regex && !value_matches_regex(v->regex, value))
            return false;
        if (v->want && !value_equals(buf_bytes(v->want), value))
            return false;
    }
    return true;
}

/* ---- what all records have ---- */

static bool service_matches(const struct record_match *m, struct bytes resource)
{
    struct bytes value, name = bytes_str(NO_SERVICE);
    if (m->services.n == 0)
        return true;
    if (find_attribute(resource, RESOURCE_ATTRIBUTES, bytes_str("service.name"), &value)) {
        const struct any_value v = any_value_read(value);
        name = v.kind == ANY_STRING ? v.bytes : bytes_of("", 0);
    }
    return one_of(&m->services, name);
}

static bool scope_matches(const struct record_match *m, struct bytes scope)
{
    const struct bytes name = wire_bytes(scope, SCOPE_NAME);
    const struct bytes version = wire_bytes(scope, SCOPE_VERSION);
    for (size_t i = 0; i < m->nlibraries; i++) {
        const struct match_scope *s = &m->libraries[i];
        if (text_matches(&s->name, name) && (s->any_version || text_matches(&s->version, version)))
            return true;
    }
    return m->nlibraries == 0;
}

/* ---- the records of one signal ---- */

static struct bytes kind_name(uint64_t kind)
{
    static const char *const names[] = {"SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL",
                                        "SPAN_KIND_SERVER",      "SPAN_KIND_CLIENT",
                                        "SPAN_KIND_PRODUCER",    "SPAN_KIND_CONSUMER"};
    return bytes_str(kind < ARRAY_SIZE(names) ? names[kind] : "");
}

static bool span_matches(const struct record_match *m, struct bytes span)
{
    return one_of(&m->span_names, wire_bytes(span, SPAN_NAME)) &&
           (m->span_kinds.n == 0 ||
            one_of(&m->span_kinds, kind_name(wire_uint(span, SPAN_KIND)))) &&
           all_values(&m->attributes, span, SPAN_ATTRIBUTES);
}

static bool severity_matches(const struct record_match *m, struct bytes record)
{
    const int64_t severity = (int32_t)wire_uint(record, LOG_SEVERITY_NUMBER);
    return severity == 0 ? m->severity_undefined : severity >= m->severity_min;
}

/* Bodies that are no text are matched by their text form. */
static bool body_matches(const struct record_match *m, struct bytes body)
{
    const struct any_value v = any_value_read(body);
    if (m->log_bodies.n == 0 || v.kind == ANY_STRING)
        return one_of(&m->log_bodies, v.bytes);
    _cleanup_buf_ struct buf *text = buf_new(0);
    return text && any_value_text(body, text) == 0 && one_of(&m->log_bodies, buf_bytes(text));
}

static bool log_matches(const struct record_match *m, struct bytes record)
{
    return one_of(&m->severity_texts, wire_bytes(record, LOG_SEVERITY_TEXT)) &&
           (!m->severity || severity_matches(m, record)) &&
           body_matches(m, wire_bytes(record, LOG_BODY)) &&
           all_values(&m->attributes, record, LOG_ATTRIBUTES);
}

bool record_match_run(const struct record_match *m, struct bytes resource, struct bytes scope,
                      struct bytes record)
{
    if (!all_values(&m->resources, resource, RESOURCE_ATTRIBUTES) ||
        !service_matches(m, resource) || !scope_matches(m, scope))
        return false;
    switch (m->signal) {
    case SIGNAL_TRACES: return span_matches(m, record);
    case SIGNAL_LOGS: return log_matches(m, record);
    default: return one_of(&m->metric_names, wire_bytes(record, METRIC_NAME));
    }
}
