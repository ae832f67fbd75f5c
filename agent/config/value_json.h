/* A config value as JSON. */
#ifndef MOTEL_CONFIG_VALUE_JSON_H
#define MOTEL_CONFIG_VALUE_JSON_H

#include "agent/base/buf.h"
#include "agent/config/value.h"

enum value_json_style {
    VALUE_JSON_COMPACT, /* {"a":1,"b":[2]} */
    VALUE_JSON_SPACED,  /* {"a": 1, "b": [2]} */
    VALUE_JSON_LINES,   /* one key or element a line, indented by two */
};
/* Appends `v` (NULL = null); numbers as numbers, not-a-number and infinities as strings, map keys in file order.
 * 0, -ENOMEM or -EMSGSIZE. */
int cfg_value_json(struct buf *out, const struct cfg_value *v, enum value_json_style style);

#endif
