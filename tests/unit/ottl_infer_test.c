/* Which context a group of statements and conditions is about, and paths that need their prefix. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/ottl_rig.h"

#define BIT OTTL_CONTEXT_BIT
#define TRACES (BIT(OTTL_RESOURCE) | BIT(OTTL_SCOPE) | BIT(OTTL_SPAN) | BIT(OTTL_SPANEVENT))
#define METRICS (BIT(OTTL_RESOURCE) | BIT(OTTL_SCOPE) | BIT(OTTL_METRIC) | BIT(OTTL_DATAPOINT) | BIT(OTTL_EXEMPLAR))
#define LOGS (BIT(OTTL_RESOURCE) | BIT(OTTL_SCOPE) | BIT(OTTL_LOG))

static struct ottl_dialect flat(unsigned allowed)
{
    return (struct ottl_dialect){.context = -1, .allowed = allowed, .prefix_required = true, .functions = rig_tables};
}

static int infer(unsigned allowed, const char *a, const char *b, const char *condition, enum ottl_context *ret, struct err *e)
{
    struct ottl_dialect d = flat(allowed);
    struct bytes statements[2] = {bytes_str(a ? a : ""), bytes_str(b ? b : "")}, conditions[1] = {bytes_str(condition ? condition : "")};
    return ottl_infer_context(statements, (a != NULL) + (b != NULL), conditions, condition != NULL, &d, ret, e);
}

static void test_inferred(void **state)
{
    (void)state;
    static const struct {
        unsigned allowed;
        const char *a, *b, *condition;
        enum ottl_context want;
    } rows[] = {
        {TRACES, "give(resource.attributes)", NULL, NULL, OTTL_RESOURCE},
        {TRACES, "give(scope.name)", NULL, NULL, OTTL_SCOPE},
        {TRACES, "give(instrumentation_scope.name)", NULL, NULL, OTTL_SCOPE},
        {TRACES, "give(span.name)", NULL, NULL, OTTL_SPAN},
        {TRACES, "give(spanevent.name)", NULL, NULL, OTTL_SPANEVENT},
        {TRACES, "give(resource.attributes)", "give(span.name)", NULL, OTTL_SPAN},
        {TRACES, "give(span.name)", "give(resource.attributes)", NULL, OTTL_SPAN},
        {TRACES, "give(resource.attributes) where span.name == \"x\"", NULL, NULL, OTTL_SPAN},
        {TRACES, "give(resource.attributes)", NULL, "spanevent.name == \"x\"", OTTL_SPANEVENT},
        {TRACES, NULL, NULL, "resource.attributes[\"x\"] == 1", OTTL_RESOURCE},
        {TRACES, "give(resource.attributes[span.name])", NULL, NULL, OTTL_SPAN},
        {TRACES, "give([1, {\"k\": -span.flags}])", NULL, NULL, OTTL_SPAN},
        {TRACES, "give(Any(1)[scope.name])", NULL, NULL, OTTL_SCOPE},
        {TRACES, "give(1) where not (Any(scope.name) == 1 or true)", NULL, NULL, OTTL_SCOPE},
        {METRICS, "give(metric.name)", NULL, NULL, OTTL_METRIC},
        {METRICS, "give(metric.name)", "give(datapoint.attributes)", NULL, OTTL_DATAPOINT},
        {METRICS, "give(exemplar.filtered_attributes)", "give(datapoint.attributes)", NULL, OTTL_EXEMPLAR},
        {METRICS, "metric_only() where resource.attributes[\"x\"] == 1", NULL, NULL, OTTL_METRIC},
        {METRICS, "metric_only() where metric.name == \"x\"", NULL, NULL, OTTL_METRIC},
        {LOGS, "give(log.body)", "give(resource.attributes)", NULL, OTTL_LOG},
        {LOGS, "give(log.body)", "give(nope.attributes)", NULL, OTTL_LOG}, /* compiling will say it */
        {LOGS, "Nope(log.body)", NULL, NULL, OTTL_LOG},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        enum ottl_context got;
        struct err e;
        if (infer(rows[i].allowed, rows[i].a, rows[i].b, rows[i].condition, &got, &e) < 0)
            fail_msg("row %zu: %s", i, e.text);
        if (got != rows[i].want)
            fail_msg("row %zu: %s", i, ottl_context_name(got));
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        unsigned allowed;
        const char *a, *condition, *want;
    } rows[] = {
        {TRACES, "give(1)", NULL, "unable to parse OTTL statement \"give(1)\": unable to infer context: path's first segment must be a "
                                  "valid context name: \"resource\", \"scope\", \"span\", \"spanevent\""},
        {TRACES, "give(attributes[\"x\"])", NULL,
         "unable to parse OTTL statement \"give(attributes[\\\"x\\\"])\": unable to infer context: path's first segment must be a valid "
         "context name: \"resource\", \"scope\", \"span\", \"spanevent\""},
        {TRACES, "give(spam.name)", NULL, "unable to parse OTTL statement \"give(spam.name)\": context \"spam\" inferred from the paths "
                                          "is not a supported context: \"resource\", \"scope\", \"span\", \"spanevent\""},
        {LOGS, "give(span.name)", NULL, "unable to parse OTTL statement \"give(span.name)\": context \"span\" inferred from the paths is "
                                        "not a supported context: \"resource\", \"scope\", \"log\""},
        {METRICS, "metric_only() where datapoint.flags == 1", NULL,
         "unable to parse OTTL statement \"metric_only() where datapoint.flags == 1\": inferred context \"datapoint\" does not support "
         "the function \"metric_only\""},
        {LOGS, NULL, "log.body ==", "unable to parse OTTL condition \"log.body ==\": condition has invalid syntax at 1:12: expected a "
                                    "value"},
        {LOGS, NULL, "true", "unable to parse OTTL condition \"true\": unable to infer context: path's first segment must be a valid "
                             "context name: \"resource\", \"scope\", \"log\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        enum ottl_context got;
        struct err e;
        assert_int_equal(infer(rows[i].allowed, rows[i].a, NULL, rows[i].condition, &got, &e), -EINVAL);
        assert_string_equal(e.text, rows[i].want);
    }
}

/* One statement alone, the context inferred while it is parsed. */
static void test_alone(void **state)
{
    (void)state;
    struct ottl_dialect d = flat(TRACES);
    _cleanup_(ottl_statement_freep) struct ottl_statement *s = NULL;
    _cleanup_(ottl_condition_freep) struct ottl_condition *c = NULL;
    struct err e;
    assert_int_equal(ottl_statement_parse(bytes_str("give(span.name)"), &d, &s, &e), 0);
    assert_int_equal(ottl_statement_context(s), OTTL_SPAN);
    assert_int_equal(ottl_condition_parse(bytes_str("resource.attributes[\"x\"] == nil"), &d, &c, &e), 0);
    assert_int_equal(ottl_condition_context(c), OTTL_RESOURCE);
}

static void test_prefix(void **state)
{
    (void)state;
    static const struct {
        bool required;
        const char *text, *want; /* NULL: good */
    } rows[] = {
        {false, "give(name)", NULL},
        {false, "give(span.name)", NULL},
        {false, "give(status.code)", NULL},
        {false, "give(resource.attributes[name])", NULL},
        {true, "give(span.status.code)", NULL},
        {true, "give(name)", "missing context name for path \"name\", possibly valid options are: \"resource.name\", \"scope.name\", "
                             "\"span.name\" (column 6)"},
        {true, "give(status.code)", "context \"status\" from path \"status.code\" is not valid, it must be replaced by one of: "
                                    "\"resource\", \"scope\", \"span\" (column 6)"},
        {true, "give(span.attributes[name])", "missing context name for path \"name\", possibly valid options are: \"resource.name\", "
                                              "\"scope.name\", \"span.name\" (column 22)"},
        {false, "give(spanevent.name)", "context \"spanevent\" from path \"spanevent.name\" is not valid, it must be replaced by one "
                                        "of: \"resource\", \"scope\", \"span\" (column 6)"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct ottl_dialect d = {OTTL_SPAN, TRACES, rows[i].required, rig_tables};
        _cleanup_(ottl_statement_freep) struct ottl_statement *s = NULL;
        struct err e = {.text = ""};
        int r = ottl_statement_parse(bytes_str(rows[i].text), &d, &s, &e);
        if (r != (rows[i].want ? -EINVAL : 0) || (r < 0 && !strstr(e.text, rows[i].want)))
            fail_msg("%s: %d %s", rows[i].text, r, e.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inferred),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
