/* Structs in whose place a string may stand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/config/bind.h"
#include "agent/config/config.h"

struct group {
    const char *text;
    const char *context;
    int64_t count;
};
struct top {
    struct cfg_list groups;
};

static const struct cfg_field group_fields[] = {
    {.key = "context", .kind = BIND_STRING, CFG_AT(struct group, context), .def = "none"},
    {.key = "count", .kind = BIND_INT, CFG_AT(struct group, count), .def = "3"},
    {0}};
static const struct cfg_field group_elem = {.kind = BIND_STRUCT,
                                            .fields = group_fields,
                                            CFG_NESTED(struct group),
                                            CFG_MORE(CFG_TEXT(struct group, text))};
static const struct cfg_field fields[] = {
    {.key = "groups", .kind = BIND_LIST, CFG_AT(struct top, groups), .elem = &group_elem}, {0}};

static void test_text(void **state)
{
    (void)state;
    struct cfg_errors errs = {0};
    struct top t;
    char *text = NULL;
    size_t size;
    struct config *c = config_load_text("t", "groups: ['a, b', {context: x}, '', ]", &errs);
    assert_non_null(c);
    struct cfg_binder b = {.arena = c->arena, .errors = &errs};
    assert_int_equal(cfg_bind(&b, fields, c->root, "top", &t), 0);
    const struct group *g = t.groups.items;
    assert_int_equal(t.groups.n, 3);
    assert_string_equal(g[0].text, "a, b");
    assert_string_equal(g[0].context, "none");
    assert_int_equal(g[0].count, 3);
    assert_null(g[1].text);
    assert_string_equal(g[1].context, "x");
    assert_string_equal(g[2].text, "");
    FILE *f = open_memstream(&text, &size);
    cfg_print(f, fields, &t, 0);
    fclose(f);
    assert_string_equal(text, "groups:\n  - a, b\n  -\n    context: x\n    count: 3\n  - \"\"\n");
    free(text);
    f = open_memstream(&text, &size);
    cfg_print_docs(f, fields);
    fclose(f);
    assert_non_null(strstr(text, "list of map or string"));
    free(text);
    config_free(c);
}

static void test_mismatch(void **state)
{
    (void)state;
    struct cfg_errors errs = {0};
    struct top t;
    struct config *c = config_load_text("t", "groups: [5]", &errs);
    assert_non_null(c);
    struct cfg_binder b = {.arena = c->arena, .errors = &errs};
    assert_int_equal(cfg_bind(&b, fields, c->root, "top", &t), -EINVAL);
    assert_int_equal(errs.n, 1);
    assert_string_equal(errs.items[0].text, "expected a map or a string, got int 5");
    cfg_errors_done(&errs);
    config_free(c);
}

/* A secret in the wrong place is not quoted, wherever in the struct secrets belong. */
static void test_secret_in_the_wrong_place(void **state)
{
    (void)state;
    struct inner {
        const char *token;
    };
    struct outer {
        struct inner inner;
        struct inner *block;
        struct cfg_map headers;
        struct cfg_list inners;
        int64_t count;
    } bound;
    static const struct cfg_field inner_fields[] = {
        {.key = "token", .kind = BIND_OPAQUE, CFG_AT(struct inner, token)}, {0}};
    static const struct cfg_field inner_elem = {
        .kind = BIND_STRUCT, .fields = inner_fields, CFG_NESTED(struct inner)};
    static const struct cfg_field outer_fields[] = {
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
        {.key = "headers",
         .kind = BIND_MAP,
         CFG_AT(struct outer, headers),
         .elem = &cfg_elem_opaque},
        {.key = "inners", .kind = BIND_LIST, CFG_AT(struct outer, inners), .elem = &inner_elem},
        {.key = "count", .kind = BIND_INT, CFG_AT(struct outer, count)},
        {0}};
    static const struct {
        const char *yaml, *error;
    } cases[] = {
        {"root: s3cret", "expected a map, got string"},
        {"root: 12345", "expected a map, got int"},
        {"root: {inner: s3cret}", "expected a map, got string"},
        {"root: {block: s3cret}", "expected a map, got string"},
        {"root: {headers: s3cret}", "expected a map, got string"},
        {"root: {inners: s3cret}", "expected a list, got string"},
        {"root: {inners: [s3cret]}", "expected a map, got string"},
        {"root: {count: text}", "expected an int, got string \"text\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct cfg_errors errs = {0};
        struct config *c = config_load_text("t", cases[i].yaml, &errs);
        assert_non_null(c);
        struct cfg_binder b = {.arena = c->arena, .errors = &errs};
        const struct cfg_value *root = cfg_get(c->root, "root");
        assert_int_equal(cfg_bind(&b, outer_fields, root, "top", &bound), -EINVAL);
        assert_int_equal(errs.n, 1);
        assert_string_equal(errs.items[0].text, cases[i].error);
        cfg_errors_done(&errs);
        config_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text), cmocka_unit_test(test_mismatch),
                                       cmocka_unit_test(test_secret_in_the_wrong_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
