/* Editors of metrics: one statement on one request, and the request that the reference wrote. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ottl/ottl.h"
#include "ottl/walk.h"
#include "proto/json.h"

static const struct ottl_function *const tables[] = {ottl_editors, ottl_metric_editors,
                                                     ottl_converters, NULL};
static const struct ottl_dialect dialect = {
    .context = OTTL_METRIC,
    .allowed = OTTL_CONTEXT_BIT(OTTL_METRIC),
    .functions = tables,
};

static struct batch *read_metrics(void)
{
    _cleanup_fclose_ FILE *f = fopen(TEST_DATA "/golden/ottl/metrics.json", "r");
    static char text[65536];
    struct buf *wire = buf_new(0);
    struct batch *b = NULL;
    struct err e = {0};
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof(text), f);
    if (json_read(schema_request(SIGNAL_METRICS), bytes_of(text, n), wire, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(batch_from_wire(SIGNAL_METRICS, wire, &b, &e), 0);
    return b;
}

struct run {
    const struct ottl_statement *statement;
    unsigned failed;
};

/* A statement that fails is passed over. */
static enum ottl_visit run_one(void *ctx, struct ottl_env *env)
{
    struct run *run = ctx;
    int r = ottl_statement_run(run->statement, env, NULL);
    assert_true(r == 0 || r == -EINVAL);
    run->failed += r < 0;
    return OTTL_KEEP;
}

static unsigned apply(const char *text, struct buf *out)
{
    _cleanup_(ottl_statement_freep) struct ottl_statement *s = NULL;
    _cleanup_batch_ struct batch *b = read_metrics(), *after = NULL;
    struct err e = {0};
    if (ottl_statement_parse(bytes_str(text), &dialect, &s, &e) < 0)
        fail_msg("%s", e.text);
    struct run run = {s, 0};
    struct ottl_walk w = {OTTL_METRIC, run_one, &run};
    assert_int_equal(ottl_walk(&w, b, &after, &e), 0);
    assert_int_equal(json_write_batch(after, 0, out), 0);
    return run.failed;
}

static void test_recorded(void **state)
{
    (void)state;
    _cleanup_fclose_ FILE *f = fopen(TEST_DATA "/golden/ottl/metric_editors.tsv", "r");
    static char line[65536];
    int lines = 0;
    assert_non_null(f);
    for (; fgets(line, sizeof(line), f); lines++) {
        _cleanup_buf_ struct buf *out = buf_new(0);
        char *want = strchr(line, '\t');
        assert_non_null(want);
        *want++ = 0;
        want[strcspn(want, "\n")] = 0;
        apply(line, out);
        if (strcmp(buf_str(out), want) != 0)
            fail_msg("%s\n got  %s\n want %s", line, buf_str(out), want);
    }
    assert_true(lines >= 22);
}

static void test_failures(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned failed;
    } cases[] = {
        {"extract_count_metric(true)",
         6}, /* gauge, sum, no data, and the three sums that were added */
        {"extract_sum_metric(true)", 6},
        {"scale_metric(2.0)", 2}, /* exponential histogram, no data */
        {"convert_sum_to_gauge()", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_buf_ struct buf *out = buf_new(0);
        assert_int_equal(apply(cases[i].text, out), cases[i].failed);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "convert_gauge_to_sum(\"sometimes\", true)",
        "convert_gauge_to_sum(\"delta\")",
        "scale_metric(\"x\")",
        "scale_metric(2)",
        "extract_sum_metric()",
        "copy_metric(name=5)",
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct ottl_statement *s = NULL;
        struct err e = {0};
        assert_int_equal(ottl_statement_parse(bytes_str(texts[i]), &dialect, &s, &e), -EINVAL);
        assert_true(strlen(e.text) > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
