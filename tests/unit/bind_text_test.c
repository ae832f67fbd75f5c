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
                                            CFG_TEXT(struct group, text)};
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text),
                                       cmocka_unit_test(test_mismatch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
