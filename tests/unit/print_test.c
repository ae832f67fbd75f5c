/* What cfg_print() writes is read back as the same values, without secrets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/secrets.h"
#include "agent/config/config.h"
#include "tests/unit/bind_fields.h"

/* Binds a text and prints the result; the caller frees it. */
static char *printed(const char *yaml)
{
    struct cfg_errors errs = {0};
    struct all a;
    char *text = NULL;
    size_t size;
    struct config *c = config_load_text("t", yaml, &errs);
    if (!c)
        fail_msg("%s\n%s", yaml, errs.items[0].text);
    struct cfg_binder b = {.arena = c->arena, .errors = &errs};
    if (cfg_bind(&b, all_fields, c->root, "top", &a) < 0)
        fail_msg("%s\n%s: %s", yaml, errs.items[0].path, errs.items[0].text);
    FILE *f = open_memstream(&text, &size);
    cfg_print(f, all_fields, &a, 0);
    fclose(f);
    config_free(c);
    return text;
}

static const char defaults[] = "on: true\n"
                               "count: 0\n"
                               "ratio: 0.5\n"
                               "wait: 200ms\n"
                               "limit_mib: 2\n"
                               "mode: \"0644\"\n"
                               "level: basic\n"
                               "name: localhost:4317\n"
                               "maybe: null\n"
                               "token: \"\"\n"
                               "even: \"\"\n"
                               "inner:\n"
                               "  name: none\n"
                               "  port: 81\n"
                               "preset:\n"
                               "  name: preset\n"
                               "  port: 80\n"
                               "tags:\n"
                               "  - a\n"
                               "  - b\n"
                               "inners: []\n"
                               "any_list: []\n"
                               "ids: []\n"
                               "headers: {}\n"
                               "labels: {}\n"
                               "numbers: {}\n"
                               "retries: 3\n";

static void test_defaults(void **state)
{
    (void)state;
    _cleanup_free_ char *text = printed("{}");
    assert_string_equal(text, defaults);
}

static void test_round_trip(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "delay: 1.5s\nlevel: low\nblock:\npreset: {enabled: false}\noptional: {port: 5}\nid: "
        "a/b\nids: [x, y/z]",
        "name: 'yes'\nmaybe: ''\nlabels: {a: '5', b: 'null', c: '0x1F', d: 'a: b', e: ' x', f: '', "
        "g: \"tab\\t\\\"q\\\"\\n\", "
        "h: '#', i: 'a #b', j: '- x', k: '~', l: '2026-01-01', m: '$${env:X}', mm: "
        "'$$$$${env:NOPE:-d}', mmm: 'a$b$$$$c$', mmmm: '$$$${x}', n: 'a:', o: '5 ', p: 'é', q: "
        "'-', r: 'x,y', "
        "'odd key: ': v, '5': w}",
        "inners: [{}, {name: x, port: 1}]\nnumbers: {a: 1, b: 2.5, c: .inf, d: -.inf, e: 1e300, f: "
        "0.1}",
        "value: {a: [1, {b: c}, [], {}], d: ~, e: 0x10, f: 18446744073709551615, g: 1.5, h: true, "
        "i: '5', j: 2026-01-01}",
        "value:\nany_list: [a, [b], {c: d}]\n",
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        _cleanup_free_ char *once = printed(texts[i]);
        _cleanup_free_ char *twice = printed(once);
        assert_string_equal(once, twice);
    }
}

static void test_dollars(void **state)
{
    (void)state;
    _cleanup_free_ char *text =
        printed("labels: {a: '$${env:X}', b: 'a$b$$$$c$', c: '$$$$$${x}', $$d: $}");
    assert_non_null(strstr(text, "  a: $${env:X}\n"
                                 "  b: a$b$$$$c$\n"
                                 "  c: $$$$$${x}\n"
                                 "  $$d: $\n"));
}

static void test_secrets(void **state)
{
    (void)state;
    secrets_clear();
    setenv("TOKEN", "tok-123456", 1);
    _cleanup_free_ char *text = printed("token: opaque-value\n"
                                        "headers: {a: opaque-header, b: \"x ${env:TOKEN}\"}\n"
                                        "labels: {c: \"see ${env:TOKEN}\"}\n"
                                        "name: http://u:url-pass@h\n"
                                        "value: [\"${env:TOKEN}\"]\n");
    assert_null(strstr(text, "opaque"));
    assert_null(strstr(text, "tok-123456"));
    assert_null(strstr(text, "url-pass"));
    assert_non_null(strstr(text, "token: \"[REDACTED]\"\n"));
    assert_non_null(strstr(text, "headers:\n  a: \"[REDACTED]\"\n  b: \"[REDACTED]\"\n"));
    assert_non_null(strstr(text, "labels:\n  c: see [REDACTED]\n"));
    assert_non_null(strstr(text, "name: http://u:[REDACTED]@h\n"));
    assert_non_null(strstr(text, "value:\n  - \"[REDACTED]\"\n"));
    secrets_clear();
}

static void test_docs(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "| Key | Type | Default | |\n",
        "| `on` | bool | `true` | Whether it is on. |\n",
        "| `count` | int |  | How many. Unit: spans. |\n",
        "| `ratio` | float | `0.5` |  At least 0, at most 1. |\n",
        "| `wait` | duration | `200ms` |  At least 0s, at most 1m0s. Older name: `delay`. |\n",
        "| `level` | `none`, `basic`, `detailed` | `basic` |  |\n",
        "| `inner::port` | int | `80` |  At least 1, at most 65535. |\n",
        "| `inners` | list of map |  |  |\n",
        "| `inners::[]::name` | string | `none` |  |\n",
        "| `retries` | int | `3` |  At least 0. |\n",
        "| `proxy` | not served | `none` | Not supported: there is no proxy |\n",
    };
    _cleanup_free_ char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    cfg_print_docs(f, all_fields);
    fclose(f);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (!strstr(text, rows[i]))
            fail_msg("no row %s in\n%s", rows[i], text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_dollars),  cmocka_unit_test(test_secrets),
        cmocka_unit_test(test_docs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
