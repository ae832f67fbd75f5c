/* Which source of a telemetry field counts: all fields, every combination of their sources set,
 * blank and absent. */
#include <ctype.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "agent/base/buf.h"
#include "agent/config/tree.h"
#include "agent/gym/telemetry.h"
#include "config_show.h"

#define MAX_SOURCES 4

/* The documented precedence, first to last; "block" is the key in the telemetry block. */
static const struct precedence {
    const char *name;
    const char *sources[MAX_SOURCES + 1]; /* variables, and "block" */
    const char *def;                      /* NULL = not set */
    const char *values[MAX_SOURCES];      /* what each source says ... */
    const char *read[MAX_SOURCES];        /* ... and how it is read, where that is not the same */
} table[] = {
    {"enabled",
     {"NEMO_GYM_OTEL_ENABLED", "NEMO_LENS_ENABLED", "block"},
     "false",
     {"1", "No", "YES"},
     {"true", "false", "true"}},
    {"service_name", {"OTEL_SERVICE_NAME", "block"}, "nemo-gym", {"env", "yaml"}, {0}},
    {"service_name_per_server",
     {"NEMO_GYM_OTEL_SERVICE_NAME_PER_SERVER", "NEMO_LENS_SERVICE_NAME_PER_SERVER", "block"},
     "true",
     {"off", "on", "False"},
     {"false", "true", "false"}},
    {"run_id",
     {"NEMO_GYM_OTEL_RUN_ID", "NEMO_LENS_RUN_ID", "block", "SLURM_JOB_ID"},
     NULL,
     {"gym-1", "lens-2", "block-3", "123456"},
     {0}},
    {"exporter",
     {"NEMO_GYM_OTEL_EXPORTER", "NEMO_LENS_EXPORTER", "block"},
     "otlp",
     {"console", "otlp", "console"},
     {0}},
    {"traces_enabled",
     {"NEMO_GYM_OTEL_TRACES_ENABLED", "NEMO_LENS_TRACES_ENABLED", "block"},
     "true",
     {"0", "true", "no"},
     {"false", "true", "false"}},
    {"metrics_enabled",
     {"NEMO_GYM_OTEL_METRICS_ENABLED", "NEMO_LENS_METRICS_ENABLED", "block"},
     "true",
     {"FALSE", "yes", "off"},
     {"false", "true", "false"}},
    {"logs_enabled",
     {"NEMO_GYM_OTEL_LOGS_ENABLED", "NEMO_LENS_LOGS_ENABLED", "block"},
     "false",
     {"On", "0", "true"},
     {"true", "false", "true"}},
    {"memory_profiling.enabled",
     {"NEMO_GYM_OTEL_MEMORY_PROFILING_ENABLED", "NEMO_LENS_MEMORY_PROFILING_ENABLED", "block"},
     "false",
     {"yes", "no", "1"},
     {"true", "false", "true"}},
    {"memory_profiling.interval_seconds",
     {"NEMO_GYM_OTEL_MEMORY_PROFILING_INTERVAL_SECONDS",
      "NEMO_LENS_MEMORY_PROFILING_INTERVAL_SECONDS", "block"},
     "1",
     {"0.5", "2", "3.25"},
     {0}},
    {"span_groups",
     {"NEMO_GYM_OTEL_SPAN_GROUPS", "NEMO_LENS_SPAN_GROUPS", "block"},
     "default",
     {"all", "per_rollout", "default,verify"},
     {0}},
    {"instrument_aiohttp",
     {"NEMO_GYM_OTEL_INSTRUMENT_AIOHTTP", "NEMO_LENS_INSTRUMENT_AIOHTTP", "block"},
     "true",
     {"no", "1", "0"},
     {"false", "true", "false"}},
    {"export_strategy",
     {"NEMO_GYM_OTEL_EXPORT_STRATEGY", "NEMO_LENS_EXPORT_STRATEGY", "block"},
     NULL,
     {"all_ranks", "single_rank", "sampled"},
     {0}},
    {"export_rank",
     {"NEMO_GYM_OTEL_EXPORT_RANK", "NEMO_LENS_EXPORT_RANK", "block"},
     NULL,
     {"0", "-1", "2"},
     {0}},
    {"otlp_endpoint",
     {"OTEL_EXPORTER_OTLP_ENDPOINT", "block"},
     NULL,
     {"http://a:1", "http://b:2"},
     {0}},
    {"otlp_protocol",
     {"OTEL_EXPORTER_OTLP_PROTOCOL", "block"},
     "grpc",
     {"http/json", "http/protobuf"},
     {0}},
    {"otlp_headers", {"OTEL_EXPORTER_OTLP_HEADERS", "block"}, NULL, {"a=b", "c=d"}, {0}},
    {"otlp_timeout", {"OTEL_EXPORTER_OTLP_TIMEOUT"}, "10000", {"2500"}, {0}},
    {"otlp_compression", {"OTEL_EXPORTER_OTLP_COMPRESSION"}, "none", {"gzip"}, {0}},
    {"otlp_certificate", {"OTEL_EXPORTER_OTLP_CERTIFICATE"}, NULL, {"/ca.pem"}, {0}},
    {"otlp_client_key", {"OTEL_EXPORTER_OTLP_CLIENT_KEY"}, NULL, {"/key.pem"}, {0}},
    {"otlp_client_certificate",
     {"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"},
     NULL,
     {"/cert.pem"},
     {0}},
    {"otlp_insecure", {"OTEL_EXPORTER_OTLP_INSECURE"}, "false", {"true"}, {0}},
};

/* ---- one reading ---- */

struct reading {
    struct arena *arena;
    struct gym_telemetry t;
    int result;
    char errors[2048];
};

/* `block`: YAML of the telemetry block, "" = none. */
static void read_all(struct reading *r, const char *block, char *const *environment)
{
    struct cfg_errors errs = {0};
    r->arena = arena_new(0);
    const struct cfg_value *v =
        cfg_yaml_parse(r->arena, "gym.yaml", block, strlen(block), &errs, NULL);
    r->result = v ? gym_telemetry_read(r->arena, v, environment, &errs, &r->t) : -EINVAL;
    show_errors(&errs, r->errors, sizeof(r->errors));
    cfg_errors_done(&errs);
}

static const struct gym_value *named(const struct gym_telemetry *t, const char *name)
{
    for (int i = 0; i < GYM_FIELD_COUNT; i++)
        if (strcmp(gym_field_name((enum gym_field)i), name) == 0)
            return &t->fields[i];
    for (int i = 0; i < GYM_OTLP_COUNT; i++)
        if (strcmp(gym_otlp_name((enum gym_otlp)i), name) == 0)
            return &t->otlp[i];
    fail_msg("no field %s", name);
    return NULL;
}

/* The sources of a field in the states that `digits` says in base 3: absent, blank, set. */
struct setup {
    char variables[MAX_SOURCES][160];
    char *environment[MAX_SOURCES + 1];
    char block[160];
    int winner; /* the first one that is set; -1 = none */
};

static void set_block(struct setup *s, const char *name, const char *value)
{
    const char *dot = strchr(name, '.');
    if (dot)
        snprintf(s->block, sizeof(s->block), "{%.*s: {%s: '%s'}}", (int)(dot - name), name, dot + 1,
                 value);
    else
        snprintf(s->block, sizeof(s->block), "{%s: '%s'}", name, value);
}

static void set_up(struct setup *s, const struct precedence *p, int digits)
{
    int n = 0;
    *s = (struct setup){.winner = -1};
    for (int i = 0; i < MAX_SOURCES && p->sources[i]; i++, digits /= 3) {
        const char *value = digits % 3 == 2 ? p->values[i] : " \t";
        if (digits % 3 == 0)
            continue;
        if (digits % 3 == 2 && s->winner < 0)
            s->winner = i;
        if (strcmp(p->sources[i], "block") == 0) {
            set_block(s, p->name, value);
            continue;
        }
        snprintf(s->variables[n], sizeof(s->variables[n]), "%s=%s", p->sources[i], value);
        s->environment[n] = s->variables[n];
        n++;
    }
}

static void check_winner(const struct precedence *p, const struct setup *s)
{
    struct reading r;
    char origin[200];
    read_all(&r, s->block, s->environment);
    assert_string_equal(r.errors, "");
    const struct gym_value *v = named(&r.t, p->name);
    const char *want = s->winner < 0        ? p->def
                       : p->read[s->winner] ? p->read[s->winner]
                                            : p->values[s->winner];
    if (!want != !v->text || (want && strcmp(v->text, want) != 0))
        fail_msg("%s from source %d: got %s, want %s", p->name, s->winner,
                 v->text ? v->text : "nothing", want ? want : "nothing");
    const char *from = s->winner < 0                                 ? want ? "default" : "not set"
                       : strcmp(p->sources[s->winner], "block") == 0 ? "gym.yaml:1:"
                                                                     : p->sources[s->winner];
    gym_origin(v, origin, sizeof(origin));
    assert_int_equal(strncmp(origin, from, strlen(from)), 0);
    if (want && (strcmp(want, "true") == 0 || strcmp(want, "false") == 0))
        assert_int_equal(v->on, strcmp(want, "true") == 0);
    arena_free(r.arena);
}

static void test_precedence(void **state)
{
    (void)state;
    int checked = 0;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        int combinations = 1;
        for (int k = 0; k < MAX_SOURCES && table[i].sources[k]; k++)
            combinations *= 3;
        for (int digits = 0; digits < combinations; digits++, checked++) {
            struct setup s;
            set_up(&s, &table[i], digits);
            check_winner(&table[i], &s);
        }
    }
    assert_int_equal(ARRAY_SIZE(table), GYM_FIELD_COUNT + GYM_OTLP_COUNT);
    assert_true(checked > 400);
}

/* A variable of one signal counts for that signal alone, over that of all signals and the block. */
static void test_signals(void **state)
{
    (void)state;
    static const char *const names[] = {"ENDPOINT",   "PROTOCOL",           "HEADERS",
                                        "TIMEOUT",    "COMPRESSION",        "CERTIFICATE",
                                        "CLIENT_KEY", "CLIENT_CERTIFICATE", "INSECURE"};
    static const char *const values[][2] = {{"http://a:1", "http://b:2"},
                                            {"http/json", "http/protobuf"},
                                            {"a=b", "c=d"},
                                            {"1000", "2000"},
                                            {"gzip", "deflate"},
                                            {"/a", "/b"},
                                            {"/a", "/b"},
                                            {"/a", "/b"},
                                            {"false", "true"}};
    static const char *const signals[] = {"TRACES", "METRICS", "LOGS"};
    for (int f = 0; f < GYM_OTLP_COUNT; f++)
        for (unsigned set = 0; set < 16; set++) { /* bit 3: the variable of all signals */
            char text[4][120];
            char *environment[5] = {0};
            int n = 0;
            for (int s = 0; s < 3; s++)
                if (set & 1u << s) {
                    snprintf(text[n], sizeof(text[n]), "OTEL_EXPORTER_OTLP_%s_%s=%s", signals[s],
                             names[f], values[f][1]);
                    environment[n] = text[n];
                    n++;
                }
            if (set & 8) {
                snprintf(text[n], sizeof(text[n]), "OTEL_EXPORTER_OTLP_%s=%s", names[f],
                         values[f][0]);
                environment[n] = text[n];
            }
            struct reading r;
            read_all(&r, "", environment);
            assert_string_equal(r.errors, "");
            for (int s = 0; s < 3; s++) {
                const struct gym_value *v = gym_otlp_of(&r.t, (enum signal)s, (enum gym_otlp)f);
                if (set & 1u << s)
                    assert_string_equal(v->text, values[f][1]);
                else if (set & 8)
                    assert_string_equal(v->text, values[f][0]);
                else
                    assert_ptr_equal(v, &r.t.otlp[f]);
            }
            arena_free(r.arena);
        }
}

/* ---- what is accepted ---- */

static void test_switches(void **state)
{
    (void)state;
    static const char *const words[] = {"1", "true", "yes", "on", "0", "false", "no", "off"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        for (int style = 0; style < 3; style++) {
            char variable[64], block[64];
            char word[8];
            snprintf(word, sizeof(word), "%s", words[i]);
            for (char *p = word; *p; p++)
                if (style == 1 || (style == 2 && p == word))
                    *p = (char)toupper((unsigned char)*p);
            snprintf(variable, sizeof(variable), "NEMO_GYM_OTEL_LOGS_ENABLED=  %s ", word);
            snprintf(block, sizeof(block), "{enabled: %s}",
                     word); /* unquoted: true is a bool, 1 an int, yes a string */
            struct reading r;
            read_all(&r, block, (char *const[]){variable, NULL});
            assert_string_equal(r.errors, "");
            assert_int_equal(r.t.fields[GYM_LOGS_ENABLED].on, i < 4);
            assert_int_equal(r.t.fields[GYM_ENABLED].on, i < 4);
            arena_free(r.arena);
        }
}

static void test_block_values(void **state)
{
    (void)state;
    static char *const environment[] = {"HOST=backend", "ON=yes", NULL};
    struct reading r;
    read_all(&r,
             "enabled: ${oc.env:ON}\n"
             "run_id: 0123\n"
             "service_name: 'a ${oc.env:HOST} b'\n"
             "otlp_endpoint: http://${oc.env:HOST}:${oc.env:PORT,4317}\n"
             "otlp_headers: ${oc.env:NO,null}\n"
             "exporter: null\n"
             "span_groups:\n"
             "export_strategy: [all_ranks]\n"
             "export_rank: false\n"
             "memory_profiling: {enabled: true, interval_seconds: 0x10}\n",
             environment);
    assert_string_equal(r.errors, "");
    assert_true(r.t.fields[GYM_ENABLED].on);
    assert_string_equal(r.t.fields[GYM_RUN_ID].text, "0123"); /* as it is written */
    assert_string_equal(r.t.fields[GYM_SERVICE_NAME].text, "a backend b");
    assert_string_equal(r.t.otlp[GYM_OTLP_ENDPOINT].text, "http://backend:4317");
    assert_null(r.t.otlp[GYM_OTLP_HEADERS].text);
    assert_string_equal(r.t.fields[GYM_EXPORTER].text, "otlp");
    assert_string_equal(r.t.fields[GYM_SPAN_GROUPS].text, "default");
    assert_true(r.t.fields[GYM_MEMORY_INTERVAL].number == 16);
    assert_int_equal(r.t.nwarnings, 0);
    arena_free(r.arena);
}

static void test_warnings(void **state)
{
    (void)state;
    static char *const environment[] = {"OTEL_EXPORTER_OTLP_TIMEOUT=10",
                                        "OTEL_EXPORTER_OTLP_LOGS_TIMEOUT=0", NULL};
    struct reading r;
    read_all(&r, "{enabledd: 1, mine: 2, memory_profiling: {interval: 3}}", environment);
    assert_string_equal(r.errors, "");
    assert_int_equal(r.t.nwarnings, 4);
    assert_string_equal(
        r.t.warnings[0],
        "gym.yaml:1:2: telemetry: unknown key \"enabledd\"; did you mean \"enabled\"?");
    assert_string_equal(r.t.warnings[1], "gym.yaml:1:15: telemetry: unknown key \"mine\"");
    assert_non_null(strstr(r.t.warnings[2],
                           "gym.yaml:1:43: telemetry: unknown key \"memory_profiling.interval\""));
    assert_non_null(strstr(r.t.warnings[3], "OTEL_EXPORTER_OTLP_TIMEOUT is 10 milliseconds"));
    arena_free(r.arena);
}

/* ---- mistakes ---- */

#define SWITCH "expected 1, true, yes, on or 0, false, no, off, got "

static const struct {
    const char *block, *variable, *want; /* want: the whole text of the error */
} mistakes[] = {
    {"", "NEMO_GYM_OTEL_ENABLED=maybe", "NEMO_GYM_OTEL_ENABLED: " SWITCH "\"maybe\"\n"},
    {"", "NEMO_LENS_ENABLED=2", "NEMO_LENS_ENABLED: " SWITCH "\"2\"\n"},
    {"", "NEMO_LENS_MEMORY_PROFILING_ENABLED=y",
     "NEMO_LENS_MEMORY_PROFILING_ENABLED: " SWITCH "\"y\"\n"},
    {"", "OTEL_EXPORTER_OTLP_LOGS_INSECURE=t",
     "OTEL_EXPORTER_OTLP_LOGS_INSECURE: " SWITCH "\"t\"\n"},
    {"", "NEMO_GYM_OTEL_EXPORTER=zipkin",
     "NEMO_GYM_OTEL_EXPORTER: expected otlp or console, got \"zipkin\"\n"},
    {"", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http",
     "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: expected grpc, http/protobuf or http/json, got "
     "\"http\"\n"},
    {"", "OTEL_EXPORTER_OTLP_TIMEOUT=1.5",
     "OTEL_EXPORTER_OTLP_TIMEOUT: expected whole milliseconds such as 10000, got \"1.5\"\n"},
    {"", "OTEL_EXPORTER_OTLP_TIMEOUT=-1",
     "OTEL_EXPORTER_OTLP_TIMEOUT: expected whole milliseconds such as 10000, got \"-1\"\n"},
    {"", "NEMO_GYM_OTEL_MEMORY_PROFILING_INTERVAL_SECONDS=0",
     "NEMO_GYM_OTEL_MEMORY_PROFILING_INTERVAL_SECONDS: expected seconds above 0 such as 0.5, got "
     "\"0\"\n"},
    {"", "NEMO_GYM_OTEL_MEMORY_PROFILING_INTERVAL_SECONDS=inf",
     "NEMO_GYM_OTEL_MEMORY_PROFILING_INTERVAL_SECONDS: expected seconds above 0 such as 0.5, got "
     "\"inf\"\n"},
    {"", "NEMO_GYM_OTEL_MEMORY_PROFILING_INTERVAL_SECONDS=nan",
     "NEMO_GYM_OTEL_MEMORY_PROFILING_INTERVAL_SECONDS: expected seconds above 0 such as 0.5, got "
     "\"nan\"\n"},
    {"enabled: true\nlogs_enabled: maybe", "",
     "gym.yaml:2:15: telemetry::logs_enabled: " SWITCH "\"maybe\"\n"},
    {"logs_enabled: 2", "", "gym.yaml:1:15: telemetry::logs_enabled: " SWITCH "\"2\"\n"},
    {"logs_enabled: 1.0", "", "gym.yaml:1:15: telemetry::logs_enabled: " SWITCH "float\n"},
    {"service_name: true", "",
     "gym.yaml:1:15: telemetry::service_name: expected a text, got bool\n"},
    {"service_name: [a]", "",
     "gym.yaml:1:15: telemetry::service_name: expected a text, got list\n"},
    {"memory_profiling: true", "",
     "gym.yaml:1:19: telemetry::memory_profiling: expected a map of enabled and interval_seconds, "
     "got bool\n"},
    {"memory_profiling:\n  interval_seconds: -1", "",
     "gym.yaml:2:21: telemetry::memory_profiling::interval_seconds: expected seconds above 0 such "
     "as 0.5, got \"-1\"\n"},
    {"otlp_endpoint: ${oc.env:NO}", "",
     "gym.yaml:1:16: telemetry::otlp_endpoint: the environment variable \"NO\" is not set, and "
     "${oc.env:NO} has no default\n"},
    {"otlp_endpoint: ${policy.url}", "",
     "gym.yaml:1:16: telemetry::otlp_endpoint: the interpolation \"${policy.url}\" is not resolved "
     "here: expected "
     "${oc.env:NAME} or ${oc.env:NAME,default}\n"},
    /* A block that is overruled is still read. */
    {"logs_enabled: maybe", "NEMO_GYM_OTEL_LOGS_ENABLED=1",
     "gym.yaml:1:15: telemetry::logs_enabled: " SWITCH "\"maybe\"\n"},
};

static void test_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
        char variable[120];
        char *const environment[] = {variable, NULL};
        struct reading r;
        snprintf(variable, sizeof(variable), "%s", mistakes[i].variable);
        read_all(&r, mistakes[i].block, environment);
        assert_int_equal(r.result, -EINVAL);
        assert_string_equal(r.errors, mistakes[i].want);
        arena_free(r.arena);
    }
}

/* What is wrong elsewhere does not matter while telemetry is off. */
static void test_enabled_alone(void **state)
{
    (void)state;
    static char *const environment[] = {"NEMO_GYM_OTEL_EXPORTER=zipkin", NULL};
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    struct cfg_errors errs = {0};
    struct gym_value v;
    const char *block = "{enabled: false, otlp_endpoint: '${x}', memory_profiling: 7}";
    const struct cfg_value *b = cfg_yaml_parse(a, "gym.yaml", block, strlen(block), &errs, NULL);
    assert_int_equal(gym_enabled_read(a, b, environment, &errs, &v), 0);
    assert_false(v.on);
    assert_int_equal(errs.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_precedence),    cmocka_unit_test(test_signals),
        cmocka_unit_test(test_switches),      cmocka_unit_test(test_block_values),
        cmocka_unit_test(test_warnings),      cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_enabled_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
