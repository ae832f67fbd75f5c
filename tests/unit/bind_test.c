/* The field binder: every kind, right and wrong, with places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/config/config.h"
#include "tests/unit/bind_fields.h"
#include "tests/unit/config_show.h"

static char warning[512];

static void take_warning(void *ctx, const char *text)
{
    (void)ctx;
    snprintf(warning, sizeof(warning), "%s", text);
}

/* Loads and binds; the caller frees the result. Mistakes go to `errs`. */
static struct config *bound(const char *yaml, struct all *ret, struct cfg_errors *errs)
{
    struct config *c = config_load_text("t", yaml, errs);
    if (!c)
        fail_msg("not loaded: %s: %s", yaml, errs->n ? errs->items[0].text : "");
    struct cfg_binder b = {.arena = c->arena, .errors = errs, .warn = take_warning};
    int r = cfg_bind(&b, all_fields, c->root, "top", ret);
    assert_int_equal(r, errs->n ? -EINVAL : 0);
    return c;
}

static const char *strings(const struct cfg_list *l, size_t i)
{
    assert_true(i < l->n);
    return ((const char **)l->items)[i];
}

static void test_defaults(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}", "on:\ncount:\nratio: ~\nwait: null\nname:\ntags:\nlabels:\ninner:\nlevel: "
              "''\nvalue:\ninners:\n"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct cfg_errors errs = {0};
        struct all a;
        memset(&a, 0xff, sizeof(a));
        struct config *c = bound(texts[i], &a, &errs);
        assert_int_equal(errs.n, 0);
        assert_true(a.on);
        assert_int_equal(a.count, 0);
        assert_true(a.ratio == 0.5);
        assert_int_equal(a.wait_ns, 200000000);
        assert_int_equal(a.limit_bytes, 2 << 20);
        assert_int_equal(a.mode, 0644);
        assert_int_equal(a.level, 1);
        assert_string_equal(a.name, "localhost:4317");
        assert_null(a.maybe);
        assert_string_equal(a.token, "");
        assert_true(i == 0 ? a.value == NULL : a.value->type == CFG_NULL);
        assert_null(a.id.id);
        assert_string_equal(a.inner.name, "none");
        assert_int_equal(a.inner.port, 81);
        assert_null(a.block);
        assert_int_equal(a.block_presence, CFG_ABSENT);
        assert_string_equal(a.preset->name, "preset");
        assert_int_equal(a.preset->port, 80);
        assert_int_equal(a.tags.n, 2);
        assert_string_equal(strings(&a.tags, 1), "b");
        assert_int_equal(a.inners.n, 0);
        assert_int_equal(a.headers.n, 0);
        assert_int_equal(a.shared.retries, 3);
        config_free(c);
    }
}

static void test_values(void **state)
{
    (void)state;
    struct cfg_errors errs = {0};
    struct all a;
    struct config *c = bound("on: false\n"
                             "count: 1e3\n"
                             "ratio: 1\n"
                             "wait: 0\n"
                             "limit_mib: 0x10\n"
                             "mode: \"755\"\n"
                             "level: low\n"
                             "name: ''\n"
                             "maybe: ''\n"
                             "token: \"0123\"\n"
                             "even: ab\n"
                             "value: [1, {a: b}]\n"
                             "id: otlp / x\n"
                             "inner: {name: n}\n"
                             "inners: [{port: 1}, {}, ]\n"
                             "any_list: [1, null]\n"
                             "ids: [a, b/c]\n"
                             "headers: {x: y, a: b}\n"
                             "numbers: {a: 1, b: 2.5}\n"
                             "retries: 18446744073709551615\n",
                             &a, &errs);
    /* one mistake: the last does not fit into 63 bits */
    assert_int_equal(errs.n, 1);
    assert_int_equal(a.shared.retries, 3);
    assert_false(a.on);
    assert_int_equal(a.count, 1000);
    assert_true(a.ratio == 1);
    assert_int_equal(a.wait_ns, 0);
    assert_int_equal(a.limit_bytes, 16 << 20);
    assert_int_equal(a.mode, 0755);
    assert_int_equal(a.level, 1);
    assert_string_equal(a.name, "");
    assert_string_equal(a.maybe, "");
    assert_string_equal(a.token, "0123");
    assert_int_equal(a.value->type, CFG_LIST);
    assert_int_equal(a.value->pos.line, 12);
    assert_string_equal(a.id.id, "otlp/x");
    assert_int_equal(a.id.pos.column, 5);
    assert_string_equal(a.inner.name, "n");
    assert_int_equal(a.inner.port, 81);
    assert_int_equal(a.inners.n, 2);
    assert_int_equal(((struct all_inner *)a.inners.items)[0].port, 1);
    assert_string_equal(((struct all_inner *)a.inners.items)[1].name, "none");
    assert_int_equal(((const struct cfg_value **)a.any_list.items)[1]->type, CFG_NULL);
    assert_string_equal(((struct cfg_id *)a.ids.items)[1].id, "b/c");
    assert_string_equal(a.headers.keys[0], "x");
    assert_string_equal(((const char **)a.headers.values)[1], "b");
    assert_true(((double *)a.numbers.values)[1] == 2.5);
    assert_int_equal(a.numbers.pos[1].line, 19);
    cfg_errors_done(&errs);
    config_free(c);
}

static void test_blocks(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        int block, preset, optional; /* the port, 0 = absent */
        enum cfg_presence presence;
    } cases[] = {
        {"block:", 80, 80, 0, CFG_GIVEN_NULL},
        {"block: {}", 80, 80, 0, CFG_GIVEN_EMPTY},
        {"block: {port: 7}", 7, 80, 0, CFG_GIVEN},
        {"block: {enabled: true}", 80, 80, 0, CFG_GIVEN},
        {"block: {enabled: false, port: 7}", 0, 80, 0, CFG_GIVEN},
        {"block: {enabled: }", 80, 80, 0, CFG_GIVEN},
        {"block: {enabled: \"${env:OFF}\"}", 0, 80, 0, CFG_GIVEN},
        {"preset:", 0, 80, 0, CFG_ABSENT},
        {"preset: {port: 9}", 0, 9, 0, CFG_ABSENT},
        {"preset: {enabled: false}", 0, 0, 0, CFG_ABSENT},
        {"optional:", 0, 80, 0, CFG_ABSENT},
        {"optional: {}", 0, 80, 80, CFG_ABSENT},
    };
    setenv("OFF", "false", 1);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct cfg_errors errs = {0};
        struct all a;
        struct config *c = bound(cases[i].yaml, &a, &errs);
        if (errs.n)
            fail_msg("%s: %s", cases[i].yaml, errs.items[0].text);
        if ((a.block ? a.block->port : 0) != cases[i].block ||
            (a.preset ? a.preset->port : 0) != cases[i].preset ||
            (a.optional ? a.optional->port : 0) != cases[i].optional ||
            a.block_presence != cases[i].presence)
            fail_msg("%s", cases[i].yaml);
        config_free(c);
    }
}

static void test_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *want;
    } cases[] = {
        {"on: yes", "t:1:5: top::on: expected true or false, got string \"yes\"\n"},
        {"on: 1", "t:1:5: top::on: expected true or false, got int 1\n"},
        {"on: \"true\"", "t:1:5: top::on: expected true or false, got string \"true\"\n"},
        {"count: '5'", "t:1:8: top::count: expected an int, got string \"5\"\n"},
        {"count: 5.5", "t:1:8: top::count: expected an int, got float 5.5\n"},
        {"count: [5]", "t:1:8: top::count: expected an int, got list\n"},
        {"count: true", "t:1:8: top::count: expected an int, got bool true\n"},
        {"count: 9223372036854775808",
         "t:1:8: top::count: expected a smaller int, got int 9223372036854775808\n"},
        {"ratio: 1.5", "t:1:8: top::ratio: expected 0 to 1, got float 1.5\n"},
        {"ratio: x", "t:1:8: top::ratio: expected a number, got string \"x\"\n"},
        {"wait: 5", "t:1:7: top::wait: expected a duration such as \"5s\", got int 5\n"},
        {"wait: '5'", "t:1:7: top::wait: expected a duration such as \"5s\", got string \"5\"\n"},
        {"wait: -1s", "t:1:7: top::wait: expected 0s to 1m0s, got string \"-1s\"\n"},
        {"wait: 2h", "t:1:7: top::wait: expected 0s to 1m0s, got string \"2h\"\n"},
        {"retries: -1", "t:1:10: top::retries: expected 0 or more, got int -1\n"},
        {"limit_mib: 9000000000000",
         "t:1:12: top::limit_mib: expected a smaller int (MiB), got int 9000000000000\n"},
        {"mode: 0755",
         "t:1:7: top::mode: expected octal digits in quotes such as \"0755\", got int 0755\n"},
        {"mode: '888'", "t:1:7: top::mode: expected octal digits in quotes such as \"0755\", got "
                        "string \"888\"\n"},
        {"level: hi",
         "t:1:8: top::level: expected one of none, basic, detailed, got string \"hi\"\n"},
        {"level: 5", "t:1:8: top::level: expected one of none, basic, detailed, got int 5\n"},
        {"name: 5", "t:1:7: top::name: expected a string, got int 5\n"},
        {"name: 2026-01-01", "t:1:7: top::name: expected a string, got timestamp 2026-01-01\n"},
        {"name: \"a\\0b\"", "t:1:7: top::name: expected a string without NUL bytes\n"},
        {"name: {a: b}", "t:1:7: top::name: expected a string, got map\n"},
        {"token: 123456", "t:1:8: top::token: expected a string, got int\n"},
        {"even: abc", "t:1:7: top::even: \"abc\" is odd\n"},
        {"id: ''", "t:1:5: top::id: a component id must not be empty\n"},
        {"id: 5", "t:1:5: top::id: expected a component id, got int 5\n"},
        {"ids: [a, null]", "t:1:10: top::ids[1]: expected a component id, got null\n"},
        {"inner: 5", "t:1:8: top::inner: expected a map, got int 5\n"},
        {"inner: {port: 0}", "t:1:15: top::inner::port: expected 1 to 65535, got int 0\n"},
        {"inner: {prt: 1}", "t:1:9: top::inner: unknown key \"prt\"; did you mean \"port\"?\n"},
        {"block: []", "t:1:8: top::block: expected a map, got list\n"},
        {"block: {enabled: 'no'}",
         "t:1:18: top::block::enabled: expected true or false, got string \"no\"\n"},
        {"block: {enabled: false, prt: 1}",
         "t:1:25: top::block: unknown key \"prt\"; did you mean \"port\"?\n"},
        {"inner: {enabled: true}", "t:1:9: top::inner: unknown key \"enabled\"\n"},
        {"tags: 5", "t:1:7: top::tags: expected a list, got int 5\n"},
        {"tags: [a, 5]", "t:1:11: top::tags[1]: expected a string, got int 5\n"},
        {"inners: a", "t:1:9: top::inners: expected a list, got string \"a\"\n"},
        {"inners: [{}, {port: x}]",
         "t:1:21: top::inners[1]::port: expected an int, got string \"x\"\n"},
        {"headers: {a: 5}", "t:1:14: top::headers::a: expected a string, got int\n"},
        {"headers: [{name: a, valu: b}]",
         "t:1:11: top::headers[0]: expected a map with the keys \"name\" and \"value\"\n"},
        {"headers: [{name: a}, {name: a}]", "t:1:29: top::headers[1]: \"a\" is given twice\n"},
        {"headers: [5]",
         "t:1:11: top::headers[0]: expected a map with the keys \"name\" and \"value\"\n"},
        {"labels: [{name: a, value: b}]", "t:1:9: top::labels: expected a map, got list\n"},
        {"cuont: 1", "t:1:1: top: unknown key \"cuont\"; did you mean \"count\"?\n"},
        {"retreis: 1", "t:1:1: top: unknown key \"retreis\"; did you mean \"retries\"?\n"},
        {"zzzzzz: 1", "t:1:1: top: unknown key \"zzzzzz\"\n"},
        {"wait: 1s\ndelay: 1s", "t:2:8: top: given twice, as \"wait\" and as \"delay\"\n"},
        {"proxy: http://x", "t:1:8: top::proxy: not supported: there is no proxy\n"},
        {"proxy: {enabled: true}", "t:1:8: top::proxy: not supported: there is no proxy\n"},
        {"middlewares: [a]", "t:1:14: top::middlewares: not supported: there are none\n"},
        {"on: 1\ncount: x\nwhat: 1\ninner: {port: x, nam: y}",
         "t:3:1: top: unknown key \"what\"\n"
         "t:1:5: top::on: expected true or false, got int 1\n"
         "t:2:8: top::count: expected an int, got string \"x\"\n"
         "t:4:18: top::inner: unknown key \"nam\"; did you mean \"name\"?\n"
         "t:4:15: top::inner::port: expected an int, got string \"x\"\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct cfg_errors errs = {0};
        struct all a;
        char text[2000];
        struct config *c = bound(cases[i].yaml, &a, &errs);
        show_errors(&errs, text, sizeof(text));
        assert_string_equal(text, cases[i].want);
        config_free(c);
        cfg_errors_done(&errs);
    }
}

static void test_refused_but_off(void **state)
{
    (void)state;
    static const char *const texts[] = {"proxy:", "proxy: none", "proxy: {enabled: false, url: x}",
                                        "middlewares: []", "middlewares:"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct cfg_errors errs = {0};
        struct all a;
        struct config *c = bound(texts[i], &a, &errs);
        assert_int_equal(errs.n, 0);
        config_free(c);
    }
}

static void test_alias(void **state)
{
    (void)state;
    struct cfg_errors errs = {0};
    struct all a;
    struct config *c = bound("delay: 3s", &a, &errs);
    assert_int_equal(errs.n, 0);
    assert_int_equal(a.wait_ns, 3000000000);
    assert_string_equal(warning, "t:1:8: top: \"delay\" is an older name, use \"wait\"");
    config_free(c);
}

static void test_strings_take_the_exact_text(void **state)
{
    (void)state;
    static const char *const tokens[] = {
        "123",   "0123",     "0xdeadbeef",           "1e3",         "true", "null",
        "[a,b]", "\"0123\"", "2023-03-20T03:17:55Z", "1111:1111::", "a: b", "",
        " 5 ",   "foo # bar"};
    for (size_t i = 0; i < ARRAY_SIZE(tokens); i++) {
        struct cfg_errors errs = {0};
        struct all a;
        char joined[100];
        setenv("TOK", tokens[i], 1);
        struct config *c = bound(
            "headers: {x-tok: \"${env:TOK}\", y: \"pre-${env:TOK}\"}\nname: ${TOK}\nmaybe: ${TOK}",
            &a, &errs);
        assert_int_equal(errs.n, 0);
        snprintf(joined, sizeof(joined), "pre-%s", tokens[i]);
        assert_string_equal(((const char **)a.headers.values)[0], tokens[i]);
        assert_string_equal(((const char **)a.headers.values)[1], joined);
        assert_string_equal(a.name, tokens[i]);
        if (strcmp(tokens[i], "null") == 0 || !*tokens[i])
            assert_null(a.maybe);
        else
            assert_string_equal(a.maybe, tokens[i]);
        config_free(c);
    }
}

static void test_typed_variables(void **state)
{
    (void)state;
    static const struct {
        const char *value, *yaml;
        int64_t count;
        size_t tags;
        const char *error;
    } cases[] = {
        {"0123", "count: ${env:V}", 83, 2, NULL},
        {"0xff", "count: ${env:V}", 255, 2, NULL},
        {"1_000", "count: ${env:V}", 1000, 2, NULL},
        {"5", "tags: [\"${env:V}\"]", 0, 1, NULL},
        {"[x, y, z]", "tags: ${env:V}", 0, 3, NULL},
        {"x,y,z", "tags: ${env:V}", 0, 3, NULL},
        {"", "tags: ${env:V}", 0, 2, NULL},
        {"", "count: ${env:V}", 0, 2, NULL},
        {"abc", "count: ${env:V}", 0, 2, "t:1:8: top::count: expected an int, got string\n"},
        {"5", "count: x${env:V}", 0, 2, "t:1:8: top::count: expected an int, got string\n"},
        {"[0123]", "tags: ${env:V}", 0, 2, "env:V:1:2: top::tags[0]: expected a string, got int\n"},
        {"b", "level: ${env:V}", 0, 2,
         "t:1:8: top::level: expected one of none, basic, detailed, got string\n"},
        {"abc", "even: ${env:V}", 0, 2, "t:1:7: top::even: not valid\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct cfg_errors errs = {0};
        struct all a;
        char text[2000];
        setenv("V", cases[i].value, 1);
        struct config *c = bound(cases[i].yaml, &a, &errs);
        show_errors(&errs, text, sizeof(text));
        assert_string_equal(text, cases[i].error ? cases[i].error : "");
        assert_int_equal(a.count, cases[i].count);
        assert_int_equal(a.tags.n, cases[i].tags);
        config_free(c);
        cfg_errors_done(&errs);
    }
}

struct must {
    const char *path;
    struct cfg_list actions;
    struct must_inner {
        const char *url;
    } * block;
};
static const struct cfg_field must_inner_fields[] = {
    {.key = "url", .kind = BIND_STRING, CFG_AT(struct must_inner, url), .required = true}, {0}};
static const struct cfg_field must_fields[] = {
    {.key = "path", .kind = BIND_STRING, CFG_AT(struct must, path), .required = true},
    {.key = "actions",
     .kind = BIND_LIST,
     CFG_AT(struct must, actions),
     .elem = &cfg_elem_string,
     .required = true},
    {.key = "block",
     .kind = BIND_BLOCK,
     CFG_AT(struct must, block),
     .fields = must_inner_fields,
     CFG_NESTED(struct must_inner)},
    {0}};

static void test_required(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *want;
    } cases[] = {
        {"path: a\nactions: [x]", ""},
        {"path: a\nactions: [x]\nblock: {enabled: false}", ""},
        {"path: a\nactions: [x]\nblock:", "t:3:7: top::block::url: required, but not given\n"},
        {"path: ''\nactions: []",
         "t:1:7: top::path: required, but empty\nt:2:10: top::actions: required, but empty\n"},
        {"path:\nactions: x", "t:1:6: top::path: required, but null\n"},
        {"{}", "t:1:1: top::path: required, but not given\nt:1:1: top::actions: required, but not "
               "given\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct cfg_errors errs = {0};
        struct must m;
        char text[2000];
        struct config *c = config_load_text("t", cases[i].yaml, &errs);
        assert_non_null(c);
        struct cfg_binder b = {.arena = c->arena, .errors = &errs};
        cfg_bind(&b, must_fields, c->root, "top", &m);
        show_errors(&errs, text, sizeof(text));
        assert_string_equal(text, cases[i].want);
        config_free(c);
        cfg_errors_done(&errs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_refused_but_off),
        cmocka_unit_test(test_alias),
        cmocka_unit_test(test_strings_take_the_exact_text),
        cmocka_unit_test(test_typed_variables),
        cmocka_unit_test(test_required),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
