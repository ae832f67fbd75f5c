/* Every allocation on the way from a NeMo Gym config to motel's fails once: a mistake is reported,
 * nothing leaks or crashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "agent/base/secrets.h"
#include "agent/gym/source.h"

/* The linker sends allocations of everything that is linked statically here. 0: none fails; n: the
 * n-th from now. */
static unsigned fail_in;

static bool fails(void)
{
    return fail_in > 0 && --fail_in == 0;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}

static char *const environment[] = {"TOKEN=tok-123456", "OTEL_EXPORTER_OTLP_LOGS_TIMEOUT=20",
                                    "OTEL_EXPORTER_OTLP_TRACES_HEADERS=a=$b%24,c=${x}",
                                    "OTEL_EXPORTER_OTLP_CERTIFICATE=/ca", NULL};
static const char head[] = "enabled: true\n"
                           "unknown_key: 1\n"
                           "otlp_endpoint: https://${oc.env:HOST,'backend'}:4317\n"
                           "otlp_headers: x=${oc.env:TOKEN}\n"
                           "memory_profiling: {enabled: true, interval_seconds: 2}\n"
                           "logs_enabled: true\n"
                           "service_name: \"";

/* The arena's blocks are 4 KiB: texts are made long, so that not all fits into the first one. */
static void write_config(const char *path)
{
    _cleanup_fclose_ FILE *f = fopen(path, "w");
    fputs("telemetry:\n", f);
    for (const char *p = head; *p; p++)
        fprintf(f, p == head || p[-1] == '\n' ? "  %c" : "%c", *p);
    for (int i = 0; i < 3000; i++)
        fputs("$x", f);
    fputs("\"\n", f);
}

/* One run; true when everything went well. */
static bool run(const char *path)
{
    struct cfg_errors errs = {0};
    struct gym_source source = {.files = &path, .nfiles = 1, .environment = environment};
    struct config *c =
        config_load(&(struct config_source){.make = gym_source_make, .ctx = &source}, 1, &errs);
    const bool loaded = c != NULL;
    if (!c && fail_in == 0)
        assert_true(errs.n + errs.dropped > 0);
    const bool good = c && gym_source_finish(&source, c, &errs) == 0;
    if (loaded && !good)
        assert_true(errs.n + errs.dropped > 0);
    if (good) { /* then nothing was left out */
        bool exact;
        assert_int_equal(cfg_find(c->root, "processors::gym::service_name", &exact)->text_len,
                         6000);
        assert_string_equal(
            cfg_find(c->root, "exporters::otlp_grpc/gym_traces::headers::c", &exact)->text, "${x}");
        assert_string_equal(cfg_find(c->root, "exporters::otlp_grpc/gym::headers::x", &exact)->text,
                            "tok-123456");
        assert_non_null(cfg_find(c->root, "exporters::otlp_grpc/gym::tls::ca_file", &exact));
        assert_true(exact);
    }
    if (good && source.telemetry) { /* memory for the table may be missing, too */
        char *text = NULL;
        size_t size;
        const unsigned left = fail_in;
        fail_in = 0;
        FILE *f = open_memstream(&text, &size);
        fail_in = left;
        gym_explain(f, source.telemetry);
        fclose(f);
        free(text);
    }
    config_free(c);
    cfg_errors_done(&errs);
    return good;
}

static void test_each(void **state)
{
    (void)state;
    char path[] = "/tmp/gym-oom-test-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    write_config(path);
    secrets_clear();
    assert_true(run(path));
    unsigned n = 1;
    for (bool reached = true; reached; n++) {
        fail_in = n;
        secrets_clear();
        run(path);
        reached = fail_in == 0;
        fail_in = 0;
    }
    secrets_clear();
    unlink(path);
    assert_true(n > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
