/* A table that uses every kind of field, for the tests of the binder and its printers. */
#ifndef MOTEL_TESTS_BIND_FIELDS_H
#define MOTEL_TESTS_BIND_FIELDS_H

#include <errno.h>

#include "agent/config/bind.h"

struct all_inner {
    const char *name;
    int64_t port;
};
struct all_shared {
    int64_t retries;
};
struct all {
    bool on;
    int64_t count, wait_ns, limit_bytes, mode;
    double ratio;
    int level;
    const char *name, *maybe, *token, *even;
    const struct cfg_value *value;
    struct cfg_id id;
    struct all_inner inner;
    struct all_inner *block, *preset, *optional;
    struct cfg_list tags, inners, any_list, ids;
    struct cfg_map headers, labels, numbers;
    struct all_shared shared;
    enum cfg_presence block_presence;
};

/* A syntax of its own: an even number of characters. */
static inline int all_check_even(const char *text, void *ret, struct err *reterr)
{
    (void)ret;
    return strlen(text) % 2 ? err_set(reterr, -EINVAL, "\"%s\" is odd", text) : 0;
}

static const char *const all_levels[] = {"none", "basic|low", "detailed", NULL};
static const struct cfg_field all_inner_fields[] = {
    {.key = "name", .kind = BIND_STRING, CFG_AT(struct all_inner, name), .def = "none"},
    {.key = "port",
     .kind = BIND_INT,
     CFG_AT(struct all_inner, port),
     .def = "80",
     CFG_MORE(.min = 1, .max = 65535)},
    {0}};
static const struct cfg_field all_shared_fields[] = {{.key = "retries",
                                                      .kind = BIND_INT,
                                                      CFG_AT(struct all_shared, retries),
                                                      .def = "3",
                                                      CFG_MORE(.min = 0, .max = 1e19)},
                                                     {0}};
static const struct cfg_field all_inner_elem = {
    .key = "", .kind = BIND_STRUCT, .fields = all_inner_fields, CFG_NESTED(struct all_inner)};
static const struct cfg_field all_fields[] = {
    {.key = "on",
     .kind = BIND_BOOL,
     CFG_AT(struct all, on),
     .def = "true",
     .help = "Whether it is on."},
    {.key = "count",
     .kind = BIND_INT,
     CFG_AT(struct all, count),
     CFG_MORE(.unit = "spans"),
     .help = "How many."},
    {.key = "ratio",
     .kind = BIND_DOUBLE,
     CFG_AT(struct all, ratio),
     .def = "0.5",
     CFG_MORE(.min = 0, .max = 1)},
    {.key = "wait",
     .kind = BIND_DURATION,
     CFG_AT(struct all, wait_ns),
     .def = "200ms",
     CFG_MORE(.min = 0, .max = 60e9, .alias = "delay")},
    {.key = "limit_mib", .kind = BIND_SIZE_MIB, CFG_AT(struct all, limit_bytes), .def = "2"},
    {.key = "mode", .kind = BIND_OCTAL, CFG_AT(struct all, mode), .def = "\"0644\""},
    {.key = "level",
     .kind = BIND_ENUM,
     CFG_AT(struct all, level),
     .values = all_levels,
     .def = "basic"},
    {.key = "name", .kind = BIND_STRING, CFG_AT(struct all, name), .def = "localhost:4317"},
    {.key = "maybe", .kind = BIND_STRING, CFG_AT(struct all, maybe), .nullable = true},
    {.key = "token", .kind = BIND_OPAQUE, CFG_AT(struct all, token)},
    {.key = "even", .kind = BIND_STRING, CFG_AT(struct all, even), .parse = all_check_even},
    {.key = "value", .kind = BIND_ANY, CFG_AT(struct all, value)},
    {.key = "id", .kind = BIND_ID, CFG_AT(struct all, id)},
    {.key = "inner",
     .kind = BIND_STRUCT,
     CFG_AT(struct all, inner),
     .fields = all_inner_fields,
     CFG_NESTED(struct all_inner),
     .def = "{port: 81}"},
    {.key = "block",
     .kind = BIND_BLOCK,
     CFG_AT(struct all, block),
     .fields = all_inner_fields,
     CFG_NESTED(struct all_inner),
     CFG_MORE(CFG_PRESENCE(struct all, block_presence))},
    {.key = "preset",
     .kind = BIND_BLOCK,
     CFG_AT(struct all, preset),
     .fields = all_inner_fields,
     CFG_NESTED(struct all_inner),
     .def = "{name: preset}"},
    {.key = "optional",
     .kind = BIND_BLOCK,
     CFG_AT(struct all, optional),
     .fields = all_inner_fields,
     CFG_NESTED(struct all_inner),
     .null_absent = true},
    {.key = "tags",
     .kind = BIND_LIST,
     CFG_AT(struct all, tags),
     .elem = &cfg_elem_string,
     .def = "[a, b]"},
    {.key = "inners", .kind = BIND_LIST, CFG_AT(struct all, inners), .elem = &all_inner_elem},
    {.key = "any_list", .kind = BIND_LIST, CFG_AT(struct all, any_list), .elem = &cfg_elem_any},
    {.key = "ids", .kind = BIND_LIST, CFG_AT(struct all, ids), .elem = &cfg_elem_id},
    {.key = "headers",
     .kind = BIND_MAP,
     CFG_AT(struct all, headers),
     .elem = &cfg_elem_opaque,
     .pairs = true},
    {.key = "labels", .kind = BIND_MAP, CFG_AT(struct all, labels), .elem = &cfg_elem_string},
    {.key = "numbers", .kind = BIND_MAP, CFG_AT(struct all, numbers), .elem = &cfg_elem_double},
    {.key = "",
     .kind = BIND_STRUCT,
     CFG_AT(struct all, shared),
     .fields = all_shared_fields,
     CFG_NESTED(struct all_shared)},
    {.key = "proxy", .kind = BIND_REFUSED, .help = "there is no proxy", .def = "none"},
    {.key = "middlewares", .kind = BIND_REFUSED, .help = "there are none", .def = "[]"},
    {0}};

#endif
