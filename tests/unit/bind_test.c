/* The field binder: every kind, right and wrong, with places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/config/bind.h"
#include "agent/config/config.h"

struct inner {
    const char *name;
    int64_t port;
};
static const struct cfg_field inner_fields[] = {
    {.key = "name", .kind = BIND_STRING, CFG_AT(struct inner, name), .def = "none"},
    {.key = "port",
     .kind = BIND_INT,
     CFG_AT(struct inner, port),
     .def = "80",
     .min = 0,
     .max = 65535},
    {0}};

struct outer {
    bool on;
    int64_t timeout_ns;
    int level;
    struct cfg_list tags;
    struct cfg_map headers;
    struct inner inner;
    struct inner *block, *preset;
};
static const char *const levels[] = {"none", "basic|low", "detailed", NULL};
static const struct cfg_field fields[] = {
    {.key = "on", .kind = BIND_BOOL, CFG_AT(struct outer, on), .def = "true"},
    {.key = "timeout", .kind = BIND_DURATION, CFG_AT(struct outer, timeout_ns), .def = "200ms"},
    {.key = "level",
     .kind = BIND_ENUM,
     CFG_AT(struct outer, level),
     .values = levels,
     .def = "basic"},
    {.key = "tags", .kind = BIND_LIST, CFG_AT(struct outer, tags), .elem = &cfg_elem_string},
    {.key = "headers",
     .kind = BIND_MAP,
     CFG_AT(struct outer, headers),
     .elem = &cfg_elem_opaque,
     .pairs = true},
    {.key = "inner",
     .kind = BIND_STRUCT,
     CFG_AT(struct outer, inner),
     .fields = inner_fields,
     CFG_NESTED(struct inner)},
    {.key = "block",
     .kind = BIND_BLOCK,
     CFG_AT(struct outer, block),
     .fields = inner_fields,
     CFG_NESTED(struct inner)},
    {.key = "preset",
     .kind = BIND_BLOCK,
     CFG_AT(struct outer, preset),
     .fields = inner_fields,
     CFG_NESTED(struct inner),
     .def = "{port: 81}"},
    {0}};

static void test_defaults(void **state)
{
    (void)state;
    struct cfg_errors errs = {0};
    struct outer o;
    struct config *c =
        config_load_text("t.yaml", "block:\ninner: {name: x}\nheaders: {a: b}\ntags: a,b\n", &errs);
    assert_non_null(c);
    struct cfg_binder b = {.arena = c->arena, .errors = &errs};
    assert_int_equal(cfg_bind(&b, fields, c->root, "top", &o), 0);
    assert_true(o.on);
    assert_int_equal(o.timeout_ns, 200000000);
    assert_int_equal(o.level, 1);
    assert_int_equal(o.tags.n, 2);
    assert_string_equal(((const char **)o.tags.items)[1], "b");
    assert_string_equal(o.inner.name, "x");
    assert_int_equal(o.inner.port, 80);
    assert_string_equal(o.block->name, "none");
    assert_int_equal(o.preset->port, 81);
    config_free(c);
    cfg_errors_done(&errs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_defaults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
