/* Binding whole configurations: references, signals, connectors, telemetry; every mistake with its
 * place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "agent/pipeline/settings.h"

/* A set of component types of our own, so that this test does not change with the real ones. */
struct thing_config {
    const char *endpoint;
    int64_t timeout_ns;
};
static const struct cfg_field thing_fields[] = {
    {.key = "endpoint", .kind = BIND_STRING, CFG_AT(struct thing_config, endpoint)},
    {.key = "timeout", .kind = BIND_DURATION, CFG_AT(struct thing_config, timeout_ns), .def = "5s"},
    {0}};
static int thing_check(const void *config, struct err *reterr)
{
    const struct thing_config *c = config;
    if (strcmp(c->endpoint, "bad") == 0)
        return err_at(reterr, "endpoint", "address bad: missing port in address");
    return 0;
}
static const char *const old_names[] = {"oldthing", NULL};
static const struct component_type wire = {.kind = KIND_RECEIVER,
                                           .name = "wire",
                                           .emits = SIGNALS_ALL,
                                           .fields = thing_fields,
                                           .config_size = sizeof(struct thing_config),
                                           .check = thing_check};
static const struct component_type scraper = {
    .kind = KIND_RECEIVER, .name = "scraper", .emits = SIGNAL_BIT(SIGNAL_METRICS)};
static const struct component_type stamp = {
    .kind = KIND_PROCESSOR, .name = "stamp", .accepts = SIGNALS_ALL, .emits = SIGNALS_ALL};
static const struct component_type pass = {.kind = KIND_CONNECTOR,
                                           .name = "pass",
                                           .accepts = SIGNALS_ALL,
                                           .emits = SIGNALS_ALL,
                                           .same_signal = true};
static const struct component_type count = {.kind = KIND_CONNECTOR,
                                            .name = "count",
                                            .accepts = SIGNAL_BIT(SIGNAL_TRACES),
                                            .emits = SIGNAL_BIT(SIGNAL_METRICS)};
static const struct component_type thing = {.kind = KIND_EXPORTER,
                                            .name = "new_thing",
                                            .aliases = old_names,
                                            .accepts = SIGNALS_ALL,
                                            .fields = thing_fields,
                                            .config_size = sizeof(struct thing_config),
                                            .check = thing_check};
static const struct component_type sink = {
    .kind = KIND_EXPORTER, .name = "sink", .accepts = SIGNALS_ALL};
static const struct component_type health = {.kind = KIND_EXTENSION, .name = "health"};
static const struct component_type *const types[] = {&wire,  &scraper, &stamp,  &pass, &count,
                                                     &thing, &sink,    &health, NULL};

struct bound {
    struct config *config;
    struct service_settings *s; /* NULL: refused */
    char *errors;
};

static struct bound bind(const char *text)
{
    struct bound b = {0};
    struct cfg_errors errs = {0};
    size_t len;
    b.config = config_load_text("c.yaml", text, &errs);
    if (b.config && service_settings_bind(b.config, types, &errs, &b.s) < 0)
        b.s = NULL;
    FILE *f = open_memstream(&b.errors, &len);
    cfg_errors_print(&errs, f);
    fclose(f);
    cfg_errors_done(&errs);
    return b;
}

static void unbind(struct bound *b)
{
    config_free(b->config);
    free(b->errors);
}

#define GOOD                                                                                       \
    "receivers: {wire: }\nexporters: {sink: }\nservice: {pipelines: {traces: {receivers: [wire], " \
    "exporters: [sink]}}}\n"

/* Each text is refused with exactly these lines. */
static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *errors;
    } cases[] = {
        {"", "c.yaml: the configuration is empty: it defines no component\n"
             "service::pipelines: service must have at least one pipeline\n"},
        {"receivers: {wire: }\nexporters: {sink: }\n",
         "service::pipelines: service must have at least one pipeline\n"},
        {GOOD "receiver: {}\n",
         "c.yaml:4:1: receiver: unknown section, did you mean \"receivers\"?; a configuration has "
         "receivers, processors, connectors, exporters, extensions, service and motel\n"},
        {GOOD "telemetry: {enabled: true}\n",
         "c.yaml:4:1: telemetry: unknown section; a NeMo Gym config is given with --gym-config, "
         "and what a collector says of itself stands in service::telemetry\n"},
        {"receivers: {wire: , nosuch/1: }\nexporters: {sink: }\nservice: {pipelines: {traces: "
         "{receivers: [wire, nosuch/1], exporters: [sink]}}}\n",
         "c.yaml:1:21: receivers::nosuch/1: unknown type: \"nosuch\" for id: \"nosuch/1\" (valid "
         "values: [wire scraper])\n"},
        {"receivers: {wier: }\nexporters: {sink: }\nservice: {pipelines: {traces: {receivers: "
         "[wier], "
         "exporters: [sink]}}}\n",
         "c.yaml:1:13: receivers::wier: unknown type: \"wier\" for id: \"wier\" (valid values: "
         "[wire "
         "scraper]); did you mean \"wire\"?\n"},
        {"receivers: {wire: }\nexporters: {sink: , kafka/x: , logging: , stamp: }\nservice: "
         "{pipelines: "
         "{traces: {receivers: [wire], exporters: [sink]}}}\n",
         "c.yaml:2:21: exporters::kafka/x: exporter type \"kafka\" is not supported by this build "
         "(supported: [new_thing sink])\n"
         "c.yaml:2:32: exporters::logging: the \"logging\" exporter is gone; use \"debug\" "
         "instead\n"
         "c.yaml:2:43: exporters::stamp: unknown type: \"stamp\" for id: \"stamp\": it is a "
         "processor "
         "(valid values: [new_thing sink])\n"},
        {"receivers: {wire: {endpont: x, timeout: 5}}\nexporters: {new_thing: {endpoint: "
         "bad}}\nservice: "
         "{pipelines: {traces: {receivers: [wire], exporters: [new_thing]}}}\n",
         "c.yaml:1:20: receivers::wire: unknown key \"endpont\"; did you mean \"endpoint\"?\n"
         "c.yaml:1:41: receivers::wire::timeout: expected a duration such as \"5s\", got int 5\n"
         "c.yaml:2:35: exporters::new_thing::endpoint: address bad: missing port in address\n"},
        {"receivers: {wire: , 'wire ': }\nexporters: {sink: , sink/: }\nservice: {pipelines: "
         "{traces: "
         "{receivers: [wire], exporters: [sink]}}}\n",
         "c.yaml:1:21: receivers::wire: duplicate name \"wire\": blanks around a name do not "
         "count\n"
         "c.yaml:2:21: exporters::sink/: in \"sink/\" id: there is no name after the /\n"},
        {"receivers: [wire]\nexporters: {sink: }\nservice: {pipelines: {traces: {receivers: "
         "[wire], "
         "exporters: [sink]}}}\n",
         "c.yaml:1:12: receivers: expected a map of receivers by id, got list\n"
         "c.yaml: receivers: no receiver is configured\n"
         "c.yaml:3:44: service::pipelines::traces: references receiver \"wire\" which is not "
         "configured\n"},
        {"receivers: {wire: }\nconnectors: {pass: }\nservice: {pipelines: {traces: {receivers: "
         "[wire]}}}\n",
         "c.yaml: exporters: no exporter is configured\n"
         "c.yaml:3:23: service::pipelines::traces: must have at least one exporter\n"},
        {"receivers: {wire: }\nexporters: {sink: }\nservice: {pipelines: {traces: {receivers: "
         "wire, exporters: {sink: }}}}\n",
         "c.yaml:3:43: service::pipelines::traces::receivers: expected a list, got string "
         "\"wire\"\n"
         "c.yaml:3:60: service::pipelines::traces::exporters: expected a list, got map\n"},
        {"receivers: {wire: }\nexporters: {sink: }\nservice: {extensions: [health], pipelines: "
         "{traces: "
         "{receivers: [wire/x, sink], processors: [stamp], exporters: [snk]}}}\n",
         "c.yaml:3:24: service::extensions: references extension \"health\" which is not "
         "configured\n"
         "c.yaml:3:66: service::pipelines::traces: references receiver \"wire/x\" which is not "
         "configured; did you mean \"wire\"?\n"
         "c.yaml:3:74: service::pipelines::traces: references receiver \"sink\" which is not "
         "configured; \"sink\" stands under exporters\n"
         "c.yaml:3:94: service::pipelines::traces: references processor \"stamp\" which is not "
         "configured\n"
         "c.yaml:3:114: service::pipelines::traces: references exporter \"snk\" which is not "
         "configured; did you mean \"sink\"?\n"},
        {"receivers: {wire: , scraper: }\nprocessors: {stamp: }\nexporters: {sink: }\nservice: "
         "{pipelines: "
         "{traces: {receivers: [scraper], processors: [stamp, stamp], exporters: [sink]}, trace: , "
         "profiles: , 'logs/': {receivers: [wire], exporters: [sink]}}}\n",
         "c.yaml:4:44: service::pipelines::traces: receiver \"scraper\" does not support traces, "
         "only "
         "metrics\n"
         "c.yaml:4:74: service::pipelines::traces: references processor \"stamp\" multiple times\n"
         "c.yaml:4:102: service::pipelines::trace: unknown pipeline signal: \"trace\" (valid "
         "values: "
         "[traces metrics logs]); did you mean \"traces\"?\n"
         "c.yaml:4:111: service::pipelines::profiles: profiles are not supported by this build\n"
         "c.yaml:4:123: service::pipelines::logs/: in \"logs/\" id: there is no name after the "
         "/\n"},
        {"receivers: {wire: }\nexporters: {oldthing: }\nservice: {pipelines: {traces: {receivers: "
         "[wire], "
         "exporters: [new_thing]}}}\n",
         "c.yaml:3:63: service::pipelines::traces: references exporter \"new_thing\" which is not "
         "configured; did you mean \"oldthing\"?\n"},
        {GOOD "connectors: {sink: }\n", "c.yaml:4:14: connectors::sink: unknown type: \"sink\" for "
                                        "id: \"sink\": it is an exporter "
                                        "(valid values: [pass count])\n"
                                        "c.yaml:4:14: connectors::sink: ambiguous: there is an "
                                        "exporter \"sink\" as well; rename one "
                                        "of them\n"},
        {"receivers: {wire: }\nexporters: {sink: }\nservice: {telemetry: {logs: {level: loud}, "
         "metrics: "
         "{readers: []}, resource: {n: 5}}, pipelines: {traces: {receivers: [wire], exporters: "
         "[sink]}}, extension: []}\n",
         "c.yaml:3:148: service: unknown key \"extension\"; did you mean \"extensions\"?\n"
         "c.yaml:3:37: service::telemetry::logs::level: expected one of debug, info, warn, error, "
         "dpanic, panic, fatal, got string \"loud\"\n"
         "c.yaml:3:63: service::telemetry::metrics::readers: expected a reader, as the metrics "
         "level is "
         "not none\n"
         "c.yaml:3:82: service::telemetry::resource: attribute \"n\" must be a string or null, got "
         "int\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bound b = bind(cases[i].text);
        assert_null(b.s);
        assert_string_equal(b.errors, cases[i].errors);
        unbind(&b);
    }
}

/* Whether connector `c` may stand between the given pipelines. */
static void test_connectors(void **state)
{
    (void)state;
    static const struct {
        const char *pipelines, *error; /* NULL = good */
    } cases[] = {
        {"traces: {receivers: [wire], exporters: [pass]}, traces/2: {receivers: [pass], exporters: "
         "[sink]}",
         NULL},
        {"traces: {receivers: [wire], exporters: [count]}, metrics: {receivers: [count], "
         "exporters: "
         "[sink]}",
         NULL},
        {"traces: {receivers: [wire], exporters: [pass]}",
         "connector \"pass\" used as exporter in [traces] pipeline but not used in any supported "
         "receiver pipeline"},
        {"traces: {receivers: [pass], exporters: [sink]}",
         "connector \"pass\" used as receiver in [traces] pipeline but not used in any supported "
         "exporter pipeline"},
        {"traces: {receivers: [wire], exporters: [pass]}, logs: {receivers: [pass], exporters: "
         "[sink]}",
         "connector \"pass\" used as receiver in [logs] pipeline"},
        {"traces: {receivers: [wire], exporters: [count]}, logs: {receivers: [count], exporters: "
         "[sink]}",
         "connector \"count\" does not support logs, only metrics"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[1024];
        snprintf(
            text, sizeof(text),
            "receivers: {wire: }\nexporters: {sink: }\nconnectors: {pass: , count: }\nservice: "
            "{pipelines: {%s}}\n",
            cases[i].pipelines);
        struct bound b = bind(text);
        assert_int_equal(b.s != NULL, cases[i].error == NULL);
        if (cases[i].error && !strstr(b.errors, cases[i].error))
            fail_msg("%s: got %s", cases[i].pipelines, b.errors);
        unbind(&b);
    }
}

/* Blanks in names of pipelines do not count, as in ids. */
static void test_pipeline_names(void **state)
{
    (void)state;
    struct bound b =
        bind("receivers: {wire: }\nexporters: {sink: }\nservice: {pipelines: {' traces / a': "
             "{receivers: [wire], exporters: [sink]}}}\n");
    assert_string_equal(b.errors, "");
    assert_string_equal(b.s->pipelines[0].name, "traces/a");
    unbind(&b);
    b = bind(
        "receivers: {wire: }\nexporters: {sink: }\nservice: {pipelines: {traces: &t {receivers: "
        "[wire], exporters: [sink]}, 'traces ': *t}}\n");
    assert_non_null(strstr(b.errors, "service::pipelines::traces: duplicate name \"traces\""));
    unbind(&b);
}

static void test_resolved(void **state)
{
    (void)state;
    struct bound b = bind("receivers: {wire: {endpoint: a}, scraper/idle: }\n"
                          "processors: {stamp: , stamp/2: }\n"
                          "exporters: {sink: , oldthing/x: {timeout: 1m30s}}\n"
                          "extensions: {health: , health/2: }\n"
                          "service:\n"
                          "  extensions: [health/2, health]\n"
                          "  pipelines:\n"
                          "    traces/a: {receivers: [wire, wire], processors: [stamp/2, stamp], "
                          "exporters: [oldthing/x, sink]}\n"
                          "    logs: {receivers: [wire], processors: , exporters: [sink]}\n"
                          "motel: {redact: false}\n");
    assert_string_equal(b.errors, "");
    assert_non_null(b.s);
    const struct service_settings *s = b.s;
    assert_int_equal(s->npipelines, 2);
    const struct pipeline_settings *p = &s->pipelines[0];
    assert_string_equal(p->name, "traces/a");
    assert_int_equal(p->signal, SIGNAL_TRACES);
    assert_int_equal(p->nreceivers, 1); /* named twice, used once */
    assert_ptr_equal(p->receivers[0], s->pipelines[1].receivers[0]);
    assert_string_equal(p->processors[0]->id, "stamp/2");
    assert_string_equal(p->exporters[0]->id, "oldthing/x");
    assert_ptr_equal(p->exporters[0]->type, &thing);
    assert_int_equal(((const struct thing_config *)p->exporters[0]->bound)->timeout_ns,
                     90000000000);
    assert_int_equal(s->pipelines[1].nprocessors, 0);
    assert_int_equal(s->nextensions, 2);
    assert_string_equal(s->extensions[0]->id, "health/2");
    assert_int_equal(s->ncomponents[KIND_RECEIVER], 2); /* the unused one too */
    assert_non_null(cfg_get(s->motel, "redact"));
    assert_int_equal(b.config->nwarnings, 1);
    assert_string_equal(b.config->warnings[0],
                        "\"oldthing\" alias is deprecated; use \"new_thing\" instead");
    unbind(&b);
}

static void test_telemetry_defaults(void **state)
{
    (void)state;
    struct bound b = bind(GOOD);
    assert_non_null(b.s);
    const struct telemetry_settings *t = &b.s->telemetry;
    assert_int_equal(t->logs.level, LOG_INFO);
    assert_int_equal(t->logs.encoding, LOG_CONSOLE);
    assert_true(t->logs.sampling);
    assert_int_equal(t->logs.sampling_initial, 10);
    assert_int_equal(t->logs.sampling_thereafter, 100);
    assert_string_equal(t->logs.output_paths[0], "stderr");
    assert_null(t->logs.output_paths[1]);
    assert_string_equal(t->metrics_endpoint, "localhost:8888");
    assert_string_equal(t->resource[0], "service.instance.id");
    assert_int_equal(strlen(t->resource[1]), 36);
    assert_string_equal(t->resource[2], "service.name");
    assert_string_equal(t->resource[3], "motel");
    assert_string_equal(t->resource[4], "service.version");
    assert_null(t->resource[6]);
    assert_non_null(strstr(t->logs.resource_json, "\"service.name\": \"motel\""));
    unbind(&b);
}

static void test_telemetry(void **state)
{
    (void)state;
    struct bound b = bind(
        "receivers: {wire: }\nexporters: {sink: }\nservice:\n"
        "  pipelines: {traces: {receivers: [wire], exporters: [sink]}}\n"
        "  telemetry:\n"
        "    logs: {level: DEBUG, encoding: json, sampling: {enabled: false}, output_paths: "
        "'stdout,/tmp/x', initial_fields: {k: v, n: 1, m: {a: [1, true]}}}\n"
        "    metrics: {readers: [{pull: {exporter: {prometheus: {host: '::1', port: 9}}}}]}\n"
        "    resource: {attributes: [{name: a, value: 5}, {name: service.name, value: gym}, {name: "
        "service.version, value: null}]}\n");
    assert_string_equal(b.errors, "");
    const struct telemetry_settings *t = &b.s->telemetry;
    assert_int_equal(t->logs.level, LOG_DEBUG);
    assert_int_equal(t->logs.encoding, LOG_JSON);
    assert_false(t->logs.sampling);
    assert_string_equal(t->logs.output_paths[1], "/tmp/x");
    assert_string_equal(t->logs.initial_fields_json, "\"k\":\"v\",\"n\":1,\"m\":{\"a\":[1,true]}");
    assert_string_equal(t->metrics_endpoint, "[::1]:9");
    assert_string_equal(t->resource[0], "a");
    assert_string_equal(t->resource[1], "5");
    assert_string_equal(t->resource[4], "service.name");
    assert_string_equal(t->resource[5], "gym");
    assert_null(t->resource[6]);
    unbind(&b);
}

static void test_metrics_off(void **state)
{
    (void)state;
    struct bound b =
        bind("receivers: {wire: }\nexporters: {sink: }\nservice:\n"
             "  pipelines: {traces: {receivers: [wire], exporters: [sink]}}\n"
             "  telemetry: {metrics: {level: none}, resource: {x: y, service.name: null}, "
             "logs: {disable_zap_resource: true}}\n");
    assert_string_equal(b.errors, "");
    assert_null(b.s->telemetry.metrics_endpoint);
    assert_null(b.s->telemetry.logs.resource_json);
    assert_string_equal(b.s->telemetry.resource[4], "x");
    unbind(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_connectors),
        cmocka_unit_test(test_pipeline_names),
        cmocka_unit_test(test_resolved),
        cmocka_unit_test(test_telemetry_defaults),
        cmocka_unit_test(test_telemetry),
        cmocka_unit_test(test_metrics_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
