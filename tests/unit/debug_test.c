/* The debug exporter: its keys, its outputs, its sampling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/secrets.h"
#include "proto/wire.h"
#include "rig.h"

extern const struct component_type exporter_debug;

/* A span of the name. */
static struct batch *span(const char *name)
{
    struct buf *b = buf_new(0);
    size_t entry, scope, record;
    wire_begin(b, 1, &entry);
    wire_begin(b, 2, &scope);
    wire_begin(b, 2, &record);
    wire_put_str(b, 5, name);
    wire_end(b, record);
    wire_end(b, scope);
    wire_end(b, entry);
    return batch_new(SIGNAL_TRACES, &b, 1, 1);
}

struct debug_rig {
    struct rig rig;
    char path[64];
};

/* Writes into a file of its own. */
static void setup(struct debug_rig *r, const char *more)
{
    char yaml[400];
    struct err e = {.text = ""};
    *r = (struct debug_rig){0};
    snprintf(r->path, sizeof(r->path), "/tmp/debug-test-XXXXXX");
    close(mkstemp(r->path));
    snprintf(yaml, sizeof(yaml), "use_internal_logger: false\noutput_paths: [%s]\n%s", r->path,
             more);
    rig_make(&r->rig, &exporter_debug, "debug", SIGNAL_TRACES, 0, yaml);
    if (exporter_debug.start(r->rig.c, &e) < 0)
        fail_msg("%s", e.text);
}

static void send(struct debug_rig *r, const char *name)
{
    _cleanup_batch_ struct batch *b = span(name);
    struct outcome out = {0};
    assert_int_equal(exporter_debug.send(r->rig.c, b, UINT64_MAX, &out), VERDICT_OK);
}

/* Stops and compares what was written. */
static void finish(struct debug_rig *r, const char *want)
{
    char got[4096] = "";
    exporter_debug.stop(r->rig.c, clock_now_ns() + 10 * NS_PER_S);
    FILE *f = fopen(r->path, "r");
    assert_non_null(f);
    got[fread(got, 1, sizeof(got) - 1, f)] = 0;
    fclose(f);
    unlink(r->path);
    rig_done(&r->rig);
    assert_string_equal(got, want);
}

#define COUNTS "Traces\t{\"resource spans\": 1, \"spans\": 1}\n"
#define NORMAL(name) "ResourceTraces #0\nScopeTraces #0\n" name "  \n\n"

static void test_output(void **state)
{
    (void)state;
    struct debug_rig r = {0};
    size_t before = mem_used();
    setup(&r, "");
    send(&r, "a");
    send(&r, "b");
    finish(&r, COUNTS COUNTS);
    setup(&r, "verbosity: normal");
    send(&r, "a");
    send(&r, "b");
    finish(&r, COUNTS NORMAL("a") COUNTS NORMAL("b"));
    assert_int_equal(mem_used(), before);
}

static void test_sampling(void **state)
{
    (void)state;
    struct debug_rig r = {0};
    setup(&r, "verbosity: normal\nsampling_initial: 1\nsampling_thereafter: 3");
    for (int i = 0; i < 5; i++)
        send(&r, "a");
    send(&r, "b");
    finish(&r, COUNTS NORMAL("a") COUNTS NORMAL("a") NORMAL("b"));
    setup(&r, "sampling_thereafter: 0");
    for (int i = 0; i < 5; i++)
        send(&r, "a");
    finish(&r, COUNTS COUNTS);
}

static void test_redaction(void **state)
{
    (void)state;
    struct debug_rig r = {0};
    secrets_add("hidden-name");
    setup(&r, "verbosity: normal");
    send(&r, "a hidden-name b");
    finish(&r, COUNTS NORMAL("a [REDACTED] b"));
    secrets_clear();
}

static void test_keys(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *path; /* NULL = fine */
    } cases[] = {
        {"", NULL},
        {"verbosity: detailed", NULL},
        {"verbosity: Detailed", NULL},
        {"verbosity: none", "verbosity"},
        {"sending_queue: {queue_size: 5}", NULL},
        {"sending_queue: {queue_size: 0}", "sending_queue::queue_size"},
        {"output_paths: [stdout]", "output_paths"},
        {"output_paths: []", "output_paths"},
        {"use_internal_logger: false", NULL},
        {"{use_internal_logger: false, output_paths: []}", "output_paths"},
        {"timeout: 5s", ""},
        {"retry_on_failure: {enabled: false}", ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct rig r = {0};
        struct err e = {.text = ""};
        void *bound;
        int rc = rig_bind(&r, &exporter_debug, cases[i].yaml, &bound, &e);
        if ((rc == 0) != !cases[i].path || (cases[i].path && !strstr(e.path, cases[i].path)))
            fail_msg("%s: %d %s %s", cases[i].yaml, rc, e.path, e.text);
        config_free(r.config);
    }
}

static void test_no_output(void **state)
{
    (void)state;
    struct rig r = {0};
    struct err e = {.text = ""};
    rig_make(&r, &exporter_debug, "debug", SIGNAL_TRACES, 0,
             "{use_internal_logger: false, output_paths: [/nowhere/at/all]}");
    assert_true(exporter_debug.start(r.c, &e) < 0);
    assert_string_equal(e.text, "cannot open \"/nowhere/at/all\": No such file or directory");
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_output),    cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_redaction), cmocka_unit_test(test_keys),
        cmocka_unit_test(test_no_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
