/* Every allocation of binding a configuration fails once: a mistake is reported, nothing leaks or
 * crashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/motel_settings.h"
#include "agent/pipeline/settings.h"
#include "tests/unit/oom.h"

static const struct component_type in = {.kind = KIND_RECEIVER, .name = "in", .emits = SIGNALS_ALL};
static const char *const old_names[] = {"old", NULL};
static const struct component_type out = {
    .kind = KIND_EXPORTER, .name = "out", .aliases = old_names, .accepts = SIGNALS_ALL};
static const struct component_type *const types[] = {&in, &out, NULL};

static const char good[] =
    "service:\n"
    "  telemetry:\n"
    "    logs: {initial_fields: {a: {b: [1, 2]}}, output_paths: [stderr, stdout]}\n"
    "    resource: {attributes: [{name: a, value: b}]}\n"
    "  pipelines: {traces: {receivers: [in/1], exporters: [old/1, out/2]}}\n"
    "motel: {redact: false, file_mode: '0600'}\n";
static const char bad[] =
    "service:\n"
    "  extensions: [none]\n"
    "  pipelines: {trace: , logs: {receivers: [in/x, nope], exporters: [out/0]}}\n"
    "motel: {redac: 5}\n";

/* The arena's blocks are 4 KiB: with many components binding takes many of them. */
static char *document(const char *rest)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    fputs("receivers:\n", f);
    for (int i = 0; i < 60; i++)
        fprintf(f, "  in/%d:\n", i);
    fputs("exporters:\n", f);
    for (int i = 0; i < 60; i++)
        fprintf(f, i % 2 ? "  old/%d:\n" : "  out/%d:\n", i);
    fputs(rest, f);
    fclose(f);
    return text;
}

/* One run with the n-th allocation failing (0: none); whether that many were made. */
static bool run(const char *text, unsigned n, bool *ret_good)
{
    static char *const environment[] = {"MOTEL_SHUTDOWN_TIMEOUT=5s", "MOTEL_X=1", NULL};
    struct cfg_errors errs = {0};
    struct service_settings *s = NULL;
    struct motel_settings m;
    struct config *c = config_load_text("c.yaml", text, &errs);
    assert_non_null(c);
    fail_in = n;
    bool service = service_settings_bind(c, types, &errs, &s) == 0;
    bool motel =
        motel_settings_bind(c, cfg_get(c->root, "motel"), environment, NULL, 0, &errs, &m) == 0;
    const bool failed = n && fail_in == 0;
    fail_in = 0;
    assert_int_equal(service, s != NULL);
    assert_int_equal(service && motel, errs.n + errs.dropped == 0);
    *ret_good = service && motel;
    config_free(c);
    cfg_errors_done(&errs);
    return failed;
}

static void each(const char *rest, bool is_good)
{
    _cleanup_free_ char *text = document(rest);
    bool ok;
    run(text, 0, &ok);
    assert_int_equal(ok, is_good);
    unsigned n = 1;
    while (run(text, n, &ok)) {
        assert_true(is_good || !ok);
        n++;
    }
    assert_true(n > 8);
}

static void test_good(void **state)
{
    (void)state;
    each(good, true);
}

static void test_bad(void **state)
{
    (void)state;
    each(bad, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good), cmocka_unit_test(test_bad)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
