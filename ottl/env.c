#include "ottl/env.h"

#include <strings.h>

#include "proto/schema.h"

static const char *const names[OTTL_CONTEXT_COUNT] = {
    [OTTL_RESOURCE] = "resource",   [OTTL_SCOPE] = "scope",   [OTTL_SPAN] = "span",
    [OTTL_SPANEVENT] = "spanevent", [OTTL_METRIC] = "metric", [OTTL_DATAPOINT] = "datapoint",
    [OTTL_EXEMPLAR] = "exemplar",   [OTTL_LOG] = "log",
};

const char *ottl_context_name(enum ottl_context c)
{
    return names[c];
}

static bool same_name(struct bytes a, const char *b)
{
    return a.len == strlen(b) && strncasecmp((const char *)a.data, b, a.len) == 0;
}

int ottl_context_find(struct bytes name)
{
    if (name.len == 0)
        return -1;
    for (int i = 0; i < OTTL_CONTEXT_COUNT; i++)
        if (same_name(name, names[i]))
            return i;
    return same_name(name, "instrumentation_scope") ? OTTL_SCOPE : -1;
}

unsigned ottl_context_reach(enum ottl_context c)
{
    static const int above[OTTL_CONTEXT_COUNT] = {
        [OTTL_RESOURCE] = -1,
        [OTTL_SCOPE] = OTTL_RESOURCE,
        [OTTL_SPAN] = OTTL_SCOPE,
        [OTTL_SPANEVENT] = OTTL_SPAN,
        [OTTL_METRIC] = OTTL_SCOPE,
        [OTTL_DATAPOINT] = OTTL_METRIC,
        [OTTL_EXEMPLAR] = OTTL_DATAPOINT,
        [OTTL_LOG] = OTTL_SCOPE,
    };
    unsigned reach = 0;
    for (int i = (int)c; i >= 0; i = above[i])
        reach |= OTTL_CONTEXT_BIT(i);
    return reach;
}

/* ---- enums ---- */

/* Of these messages, the enums that statements may name. */
static const struct {
    const char *message, *field;
} enum_fields[] = {
    {"opentelemetry.proto.trace.v1.Span", "kind"},
    {"opentelemetry.proto.trace.v1.Status", "code"},
    {"opentelemetry.proto.logs.v1.LogRecord", "severity_number"},
    {"opentelemetry.proto.metrics.v1.Sum", "aggregation_temporality"},
};

/* Symbols that are no enum of the protocol. */
static const struct {
    const char *name;
    int64_t number;
} own_symbols[] = {
    {"METRIC_DATA_TYPE_NONE", 0},
    {"METRIC_DATA_TYPE_GAUGE", 1},
    {"METRIC_DATA_TYPE_SUM", 2},
    {"METRIC_DATA_TYPE_HISTOGRAM", 3},
    {"METRIC_DATA_TYPE_EXPONENTIAL_HISTOGRAM", 4},
    {"METRIC_DATA_TYPE_SUMMARY", 5},
    {"FLAG_NONE", 0},
    {"FLAG_NO_RECORDED_VALUE", 1},
};

static const struct schema_enum *find_enum(const char *message, const char *field)
{
    const struct schema_message *m = schema_find(message);
    for (unsigned i = 0; m && i < m->nfields; i++)
        if (strcmp(m->fields[i].name, field) == 0)
            return m->fields[i].enumeration;
    return NULL;
}

static bool find_in_enum(const struct schema_enum *e, struct bytes symbol, int64_t *ret)
{
    for (size_t i = 0; e && i < e->nvalues; i++)
        if (bytes_eq_str(symbol, e->values[i].name)) {
            *ret = e->values[i].number;
            return true;
        }
    return false;
}

bool ottl_enum_find(struct bytes symbol, int64_t *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(own_symbols); i++)
        if (bytes_eq_str(symbol, own_symbols[i].name)) {
            *ret = own_symbols[i].number;
            return true;
        }
    for (size_t i = 0; i < ARRAY_SIZE(enum_fields); i++)
        if (find_in_enum(find_enum(enum_fields[i].message, enum_fields[i].field), symbol, ret))
            return true;
    return false;
}

const char *ottl_enum_symbol(size_t i)
{
    if (i < ARRAY_SIZE(own_symbols))
        return own_symbols[i].name;
    i -= ARRAY_SIZE(own_symbols);
    for (size_t k = 0; k < ARRAY_SIZE(enum_fields); k++) {
        const struct schema_enum *e = find_enum(enum_fields[k].message, enum_fields[k].field);
        if (e && i < e->nvalues)
            return e->values[i].name;
        i -= e ? e->nvalues : 0;
    }
    return NULL;
}
