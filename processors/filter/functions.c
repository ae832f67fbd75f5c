#include "processors/filter/functions.h"

#include <errno.h>

#include "ottl/item.h"
#include "proto/any_value.h"
#include "proto/otlp_fields.h"

static uint32_t attributes_of(uint32_t data)
{
    switch (data) {
    case METRIC_HISTOGRAM: return HISTOGRAM_ATTRIBUTES;
    case METRIC_EXPONENTIAL: return EXPONENTIAL_ATTRIBUTES;
    case METRIC_SUMMARY: return SUMMARY_ATTRIBUTES;
    default: return NUMBER_ATTRIBUTES;
    }
}

/* Whether the point has the attribute `key`, and with the text `value` unless that is NULL. */
static bool point_has(struct bytes point, uint32_t number, struct bytes key,
                      const struct bytes *value)
{
    struct wire_reader r = wire_reader(point);
    struct bytes kv;
    while (wire_each(&r, number, &kv)) {
        const struct key_value pair = key_value_read(kv);
        const struct any_value v = any_value_read(pair.value);
        if (bytes_eq(pair.key, key))
            return !value || (v.kind == ANY_STRING && bytes_eq(v.bytes, *value));
    }
    return false;
}

/* Whether any point of the metric under the cursor has it. */
static int any_point_has(struct ottl_env *env, struct bytes key, const struct bytes *value,
                         struct ottl_value *ret)
{
    struct ottl_item *metric = env->items[OTTL_METRIC], *data = NULL;
    int r = ottl_metric_data(metric, &data);
    *ret = ottl_bool(false);
    if (r < 0 || !data)
        return r;
    const uint32_t number = attributes_of(ottl_metric_kind(metric));
    struct ottl_field_iter iter = ottl_fields(data);
    struct wire_field f;
    while (ottl_field_next(&iter, &f, NULL))
        if (f.number == DATA_POINTS && point_has(f.bytes, number, key, value)) {
            *ret = ottl_bool(true);
            break;
        }
    return 0;
}

static int has_key(const struct ottl_call *c, struct ottl_env *env, struct ottl_value *ret)
{
    return any_point_has(env, c->args[0].literal.bytes, NULL, ret);
}

static int has_value(const struct ottl_call *c, struct ottl_env *env, struct ottl_value *ret)
{
    return any_point_has(env, c->args[0].literal.bytes, &c->args[1].literal.bytes, ret);
}

static const struct ottl_param key_params[] = {{"key", OTTL_P_LITERAL_STRING, false}, {0}};
static const struct ottl_param value_params[] = {
    {"key", OTTL_P_LITERAL_STRING, false}, {"expectedVal", OTTL_P_LITERAL_STRING, false}, {0}};

const struct ottl_function filter_functions[] = {
    {.name = "HasAttrKeyOnDatapoint",
     .params = key_params,
     .contexts = OTTL_CONTEXT_BIT(OTTL_METRIC),
     .call = has_key},
    {.name = "HasAttrOnDatapoint",
     .params = value_params,
     .contexts = OTTL_CONTEXT_BIT(OTTL_METRIC),
     .call = has_value},
    {0},
};
