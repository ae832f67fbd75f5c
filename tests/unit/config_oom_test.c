/* Every allocation of loading, binding and printing fails once: a mistake is reported, nothing
 * leaks or crashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/secrets.h"
#include "agent/config/config.h"
#include "tests/unit/bind_fields.h"
#include "tests/unit/oom.h"

static const char document[] = "on: true\n"
                               "name: ${env:TOKEN}-${env:NOPE}\n"
                               "value: &v {a: [1, 2, {b: c}], d::e: 5, f: \"${env:LIST}\"}\n"
                               "any_list: [*v, {<<: *v, g: h}]\n"
                               "tags: a,b,c\n"
                               "headers: [{name: a, value: \"Bearer ${env:TOKEN}\"}]\n"
                               "labels: {x: \"$$\"}\n"
                               "block: {port: 5}\n"
                               "id: a / b\n"
                               "delay: 1s\n";

/* Blocks of one small allocation each would be slow to walk through; the arena's are 4 KiB, so the
 * text is made long. */
static char *long_document(void)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    fputs(document, f);
    fputs("inners:\n", f);
    for (int i = 0; i < 40; i++)
        fprintf(f, "  - {name: \"n${env:TOKEN}-%d\", port: %d}\n", i, i + 1);
    fclose(f);
    return text;
}

/* One run; true when everything went well. */
static bool run(const char *text)
{
    struct cfg_errors errs = {0};
    struct all a;
    const struct config_source sources[] = {{text, false}, {"count=5", true}};
    bool good = false;
    struct config *c = config_load(sources, 2, &errs);
    if (!c && fail_in == 0)
        assert_true(errs.n + errs.dropped > 0);
    if (c) {
        struct cfg_binder b = {.arena = c->arena, .errors = &errs};
        good = cfg_bind(&b, all_fields, c->root, "top", &a) == 0;
        assert_true(good == (errs.n + errs.dropped == 0));
    }
    config_free(c);
    cfg_errors_done(&errs);
    return good;
}

static void test_each(void **state)
{
    (void)state;
    _cleanup_free_ char *plain = long_document(), *text = NULL;
    assert_true(asprintf(&text, "yaml:%s", plain) > 0);
    setenv("TOKEN", "tok-123456", 1);
    setenv("LIST", "[\"$$a\", \"${env:TOKEN}\"]", 1);
    secrets_clear();
    assert_true(run(text));
    unsigned n = 1;
    for (bool reached = true; reached; n++) {
        fail_in = n;
        secrets_clear();
        run(text);
        reached = fail_in == 0;
        fail_in = 0;
    }
    secrets_clear();
    assert_true(n > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
