#include "ottl/value.h"

const char *ottl_kind_name(enum ottl_kind k)
{
    static const char *const names[] = {
        "nil", "bool",      "int64",         "float64",  "string",  "[]byte",         "slice",
        "map", "time.Time", "time.Duration", "trace ID", "span ID", "slice of items",
    };
    return names[k];
}
