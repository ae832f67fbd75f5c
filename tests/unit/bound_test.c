/* Looking at bound structs through their tables, and the references that a configuration has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/config/bound.h"
#include "agent/config/config.h"

struct inner {
    const char *name;
    int64_t n;
};
struct outer {
    struct inner in;
    struct inner *block;
    struct cfg_list list; /* of struct inner */
    struct cfg_map map;   /* of const char * */
    const struct cfg_value *any;
    struct inner shared;
};

static const struct cfg_field inner_fields[] = {
    {.key = "name", .kind = BIND_STRING, CFG_AT(struct inner, name), CFG_MORE(.alias = "label")},
    {.key = "n", .kind = BIND_INT, CFG_AT(struct inner, n), .def = "7"},
    {0}};
static const struct cfg_field shared_fields[] = {
    {.key = "extra", .kind = BIND_STRING, CFG_AT(struct inner, name)}, {0}};
static const struct cfg_field inner_elem = {
    .kind = BIND_STRUCT, .fields = inner_fields, CFG_NESTED(struct inner)};
static const struct cfg_field fields[] = {
    {.key = "in",
     .kind = BIND_STRUCT,
     CFG_AT(struct outer, in),
     .fields = inner_fields,
     CFG_NESTED(struct inner)},
    {.key = "block",
     .kind = BIND_BLOCK,
     CFG_AT(struct outer, block),
     .fields = inner_fields,
     CFG_NESTED(struct inner)},
    {.key = "list", .kind = BIND_LIST, CFG_AT(struct outer, list), .elem = &inner_elem},
    {.key = "map", .kind = BIND_MAP, CFG_AT(struct outer, map), .elem = &cfg_elem_string},
    {.key = "any", .kind = BIND_ANY, CFG_AT(struct outer, any)},
    {.key = "",
     .kind = BIND_STRUCT,
     CFG_AT(struct outer, shared),
     .fields = shared_fields,
     CFG_NESTED(struct inner)},
    {0}};

static struct config *bind(const char *yaml, struct outer *ret)
{
    struct cfg_errors errs = {0};
    struct config *c = config_load_text("test", yaml, &errs);
    assert_non_null(c);
    struct cfg_binder b = {.arena = c->arena, .errors = &errs};
    assert_int_equal(cfg_bind(&b, fields, c->root, "", ret), 0);
    cfg_errors_done(&errs);
    return c;
}

static void test_find(void **state)
{
    (void)state;
    struct outer o;
    const void *p = NULL;
    struct config *c = bind("in: {label: a}\nblock: {n: 9}\nextra: e\n", &o);
    assert_string_equal(cfg_bound_text(fields, &o, "in::name"), "a");
    assert_string_equal(cfg_bound_text(fields, &o, "extra"), "e");
    assert_non_null(cfg_bound_find(fields, &o, "block::n", &p));
    assert_int_equal(*(const int64_t *)p, 9);
    assert_true(cfg_bound_has(fields, &o, "block"));
    assert_false(cfg_bound_has(fields, &o, "in"));
    assert_null(cfg_bound_find(fields, &o, "nothing", &p));
    assert_null(cfg_bound_find(fields, &o, "in::name::more", &p));
    o.block = NULL;
    assert_null(cfg_bound_find(fields, &o, "block::n", &p));
    config_free(c);
}

static void test_field_at(void **state)
{
    (void)state;
    static const struct {
        const char *path, *key; /* key NULL = there is none, "" = an element */
    } cases[] = {
        {"in::name", "name"}, {"in::label", "name"},
        {"list[3]::n", "n"},  {"list[0]", ""},
        {"map::x.y", ""},     {"map::a[0]", ""},
        {"any", "any"},       {"any::deep[1]::er", "any"},
        {"extra", "extra"},   {"in::zzz", NULL},
        {"in[0]", NULL},      {"list::n", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct cfg_field *f = cfg_field_at(fields, cases[i].path);
        if (!cases[i].key)
            assert_null(f);
        else
            assert_string_equal(f && f->key ? f->key : "", cases[i].key);
        assert_int_equal(f != NULL, cases[i].key != NULL);
    }
}

/* "path=value/default", those that differ, one a line. */
static void see(void *ctx, const struct cfg_visit *v)
{
    FILE *f = ctx;
    fprintf(f, "%s=", v->path);
    cfg_print_flow(f, v->field, v->at);
    fputc('/', f);
    cfg_print_flow(f, v->field, v->normal);
    fputc('\n', f);
}

static void test_walk(void **state)
{
    (void)state;
    struct outer o;
    char *text = NULL;
    size_t len;
    _cleanup_(config_freep) struct config *c =
        bind("block: {n: 9}\nlist: [{name: x}]\nmap: {k: v}\nany: [1, {a: b}]\n", &o);
    FILE *f = open_memstream(&text, &len);
    assert_int_equal(cfg_bound_walk(c->arena, fields, sizeof(o), &o, see, f), 0);
    fclose(f);
    assert_string_equal(text, "in::name=\"\"/\"\"\n"
                              "in::n=7/7\n"
                              "block::name=\"\"/\"\"\n"
                              "block::n=9/7\n"
                              "block={name: \"\", n: 9}/null\n"
                              "list[0]::name=x/\"\"\n"
                              "list[0]::n=7/7\n"
                              "list=[{name: x, n: 7}]/[]\n"
                              "map={k: v}/{}\n"
                              "any=[1, {a: b}]/null\n"
                              "extra=\"\"/\"\"\n");
    free(text);
}

/* "env:NAME path type" and what else is known, one a reference. */
static void test_references(void **state)
{
    (void)state;
    static const char *const want[] = {
        "env:BT_NUM any int whole set 42",
        "env:BT_NUM in::name string part set 42",
        "env:BT_NONE extra string whole default x",
        "env:BT_MAP map map whole set {k: '${env:BT_NUM}'}",
        "env:BT_NUM map::k int whole set 42",
        "env:BT_NUM headers::h int whole secret set 42",
        "env:BT_UNSET block null whole unset ",
    };
    setenv("BT_NUM", "42", 1);
    setenv("BT_MAP", "{k: '${env:BT_NUM}'}", 1);
    struct cfg_errors errs = {0};
    _cleanup_(config_freep) struct config *c = config_load_text(
        "test",
        "any: ${env:BT_NUM}\nin: {name: 'a${env:BT_NUM}'}\nextra: ${env:BT_NONE:-x}\n"
        "map: ${env:BT_MAP}\nheaders: {h: '${env:BT_NUM}'}\nblock: ${env:BT_UNSET}\n"
        "escaped: $${env:BT_NUM}\n",
        &errs);
    assert_non_null(c);
    assert_int_equal(c->nreferences, ARRAY_SIZE(want));
    for (size_t i = 0; i < c->nreferences; i++) {
        const struct cfg_reference *r = &c->references[i];
        char got[300];
        snprintf(got, sizeof(got), "%s %s %s %s%s %s %s", r->name, r->path, cfg_type_name(r->type),
                 r->whole ? "whole" : "part", r->secret ? " secret" : "",
                 r->from_env ? "set"
                 : r->unset  ? "unset"
                             : "default",
                 r->text);
        assert_string_equal(got, want[i]);
        assert_string_equal(r->pos.file, strcmp(r->path, "map::k") == 0 ? "env:BT_MAP" : "test");
        assert_true(r->pos.line > 0);
    }
    cfg_errors_done(&errs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_field_at),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_references),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
