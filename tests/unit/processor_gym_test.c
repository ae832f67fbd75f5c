/* The gym processor: what it adds, what it leaves alone, on tables of resources and on what NeMo
 * Gym sends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "rig.h"

#include "proto/json.h"

extern const struct component_type processor_gym;

static void make(struct rig *r, const char *yaml)
{
    rig_make(r, &processor_gym, "gym", SIGNAL_LOGS, 1, yaml);
}

/* "a=1 b=x" as a logs request; a value in <> is a number. */
static struct batch *logs(const char *attributes)
{
    _cleanup_buf_ struct buf *json = buf_new(0);
    struct buf *wire = buf_new(0);
    struct batch *b = NULL;
    struct err e = {.text = ""};
    char text[512], *rest = text;
    snprintf(text, sizeof(text), "%s", attributes);
    buf_append_str(json, "{\"resourceLogs\":[{\"resource\":{\"attributes\":[");
    for (const char *pair; (pair = strsep(&rest, " ")) && *pair;) {
        const char *equals = strchr(pair, '='),
                   *kind = equals[1] == '<' ? "intValue" : "stringValue";
        const char *value = equals + 1 + (equals[1] == '<');
        buf_printf(json, "%s{\"key\":\"%.*s\",\"value\":{\"%s\":\"%.*s\"}}",
                   pair == text ? "" : ",", (int)(equals - pair), pair, kind,
                   (int)strcspn(value, ">"), value);
    }
    buf_append_str(json,
                   "]},\"scopeLogs\":[{\"logRecords\":[{\"body\":{\"stringValue\":\"x\"}}]}]}]}");
    if (json_read(schema_request(SIGNAL_LOGS), buf_bytes(json), wire, &e) < 0)
        fail_msg("%s: %s", buf_str(json), e.text);
    assert_int_equal(batch_from_wire(SIGNAL_LOGS, wire, &b, &e), 0);
    return b;
}

/* The attributes of the one resource of `b`, in the same form. */
static void show(struct batch *b, struct buf *out)
{
    _cleanup_buf_ struct buf *json = buf_new(0);
    assert_int_equal(json_write_batch(b, 0, json), 0);
    const char *p = strstr(buf_str(json), "\"attributes\":["),
               *end = strstr(buf_str(json), "\"scopeLogs\"");
    for (; p && (p = strstr(p, "{\"key\":\"")) && p < end;) {
        p += 8;
        const char *value = strstr(p, "Value\":\"");
        const bool number = strncmp(value - 3, "int", 3) == 0;
        value += 8;
        buf_printf(out, "%s%.*s=%s%.*s%s", out->len ? " " : "", (int)strcspn(p, "\""), p,
                   number ? "<" : "", (int)strcspn(value, "\""), value, number ? ">" : "");
        p = value;
    }
}

#define RUN "nemo.run.id=R"
#define SERVER "nemo.gym.server.name="
#define GROUP "nemo.gym.service_group="

static const struct {
    const char *config, *in, *want; /* run_id is R unless the config says so */
} cases[] = {
    /* What is there stays; what is left out is added. */
    {"{run_id: R}", "", RUN},
    {"{run_id: R}", "nemo.run.id=old", "nemo.run.id=old"},
    {"{run_id: R}", "nemo.run.id=", RUN},
    {"{run_id: R}", "nemo.run.id=<7>", "nemo.run.id=<7>"},
    {"{run_id: R, version: 0.7.0, server_name: m, server_type: responses_api_models}", "a=<1>",
     "a=<1> " RUN " nemo.gym.version=0.7.0 " SERVER "m nemo.gym.server.type=responses_api_models"},
    {"{run_id: R, version: 0.7.0, server_name: m, server_type: t}",
     "nemo.gym.version=1 " SERVER "x nemo.gym.server.type=y",
     "nemo.gym.version=1 " SERVER "x nemo.gym.server.type=y " RUN},
    {"{run_id: R, version: 0.7.0, server_name: m, server_type: t, override: true}",
     "nemo.gym.version=1 " SERVER "x nemo.gym.server.type=y nemo.run.id=old",
     "nemo.gym.version=0.7.0 " SERVER "m nemo.gym.server.type=t " RUN},
    /* The name of the service. */
    {"{run_id: R}", "service.name=nemo-gym " SERVER "m",
     "service.name=nemo-gym/m " SERVER "m " RUN " " GROUP "nemo-gym"},
    {"{run_id: R}", "service.name=nemo-gym/m " SERVER "m",
     "service.name=nemo-gym/m " SERVER "m " RUN " " GROUP "nemo-gym"},
    {"{run_id: R}", "service.name=a/b " SERVER "m",
     "service.name=a/b/m " SERVER "m " RUN " " GROUP "a"},
    {"{run_id: R}", "service.name=gm " SERVER "m",
     "service.name=gm/m " SERVER "m " RUN " " GROUP "gm"},
    {"{run_id: R}", "service.name=m " SERVER "m",
     "service.name=m/m " SERVER "m " RUN " " GROUP "m"},
    {"{run_id: R}", "service.name=vllm", "service.name=vllm " RUN " " GROUP "vllm"},
    {"{run_id: R}", "service.name=<5> " SERVER "m", "service.name=<5> " SERVER "m " RUN},
    {"{run_id: R, service_name_per_server: false}", "service.name=nemo-gym " SERVER "m",
     "service.name=nemo-gym " SERVER "m " RUN " " GROUP "nemo-gym"},
    {"{run_id: R, service_name_per_server: false}", "service.name=nemo-gym/m " SERVER "m",
     "service.name=nemo-gym/m " SERVER "m " RUN " " GROUP "nemo-gym"},
    {"{run_id: R, service_name: s}", SERVER "m", SERVER "m " RUN " service.name=s/m " GROUP "s"},
    {"{run_id: R, service_name: s}", "service.name=unknown_service:python " SERVER "m",
     "service.name=s/m " SERVER "m " RUN " " GROUP "s"},
    {"{run_id: R, service_name: s}", "service.name=unknown_service",
     "service.name=s " RUN " " GROUP "s"},
    {"{run_id: R, service_name: s}", "service.name=unknown_services",
     "service.name=unknown_services " RUN " " GROUP "unknown_services"},
    {"{run_id: R, service_name: s}", "service.name=other " SERVER "m",
     "service.name=other/m " SERVER "m " RUN " " GROUP "other"},
    {"{run_id: R, service_name: s, service_name_per_server: false}", SERVER "m",
     SERVER "m " RUN " service.name=s " GROUP "s"},
    {"{run_id: R, service_name: s, override: true}", "service.name=other/m " SERVER "m",
     "service.name=s/m " SERVER "m " RUN " " GROUP "s"},
    {"{run_id: R, service_name: s, override: true, service_name_per_server: false}",
     "service.name=other/m " SERVER "m", "service.name=s " SERVER "m " RUN " " GROUP "s"},
    {"{run_id: R, service_name: s, override: true}", "service.name=<5>",
     "service.name=s " RUN " " GROUP "s"},
    /* A server that is configured counts for the name, also when the producer had another or wrote
       it already. */
    {"{run_id: R, server_name: m}", "service.name=nemo-gym",
     "service.name=nemo-gym/m " RUN " " SERVER "m " GROUP "nemo-gym"},
    {"{run_id: R, server_name: m}", "service.name=nemo-gym/m",
     "service.name=nemo-gym/m " RUN " " SERVER "m " GROUP "nemo-gym"},
    {"{run_id: R, server_name: m, override: true}", "service.name=nemo-gym/x " SERVER "x",
     "service.name=nemo-gym/m " SERVER "m " RUN " " GROUP "nemo-gym"},
    /* The group. */
    {"{run_id: R, service_group: g}", "service.name=a/b", "service.name=a/b " RUN " " GROUP "g"},
    {"{run_id: R, service_group: g}", GROUP "own", GROUP "own " RUN},
    {"{run_id: R, service_group: g, override: true}", GROUP "own", GROUP "g " RUN},
    {"{run_id: R}", "service.name=/m", "service.name=/m " RUN}, /* nothing before the slash */
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct rig r = {0};
        make(&r, cases[i].config);
        for (int again = 0; again < 2; again++) { /* the second time from memory */
            _cleanup_buf_ struct buf *got = buf_new(0);
            assert_int_equal(rig_offer(&r, logs(cases[i].in), NULL), VERDICT_OK);
            show(r.sinks[0].taken[again], got);
            if (strcmp(buf_str(got), cases[i].want) != 0)
                fail_msg("case %zu: %s + %s\n  got  %s\n  want %s", i, cases[i].config, cases[i].in,
                         buf_str(got), cases[i].want);
        }
        rig_done(&r);
    }
}

static struct buf *read_file(const char *path)
{
    _cleanup_fclose_ FILE *f = fopen(path, "r");
    struct buf *b = buf_new(0);
    assert_non_null(f);
    for (size_t n = 1; n > 0; buf_commit(b, n)) {
        assert_int_equal(buf_reserve(b, 65536), 0);
        n = fread(buf_tail(b), 1, 65536, f);
    }
    return b;
}

/* Every resource that Gym itself sends has all of it: the same buffer goes on. */
static void test_complete(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum signal s;
    } files[] = {{"gym-logs.pb", SIGNAL_LOGS}, {"gym-traces.pb", SIGNAL_TRACES}};
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        struct rig r = {0};
        struct batch *b = NULL;
        struct err e = {.text = ""};
        char path[512];
        snprintf(path, sizeof(path), TEST_DATA "/golden/otlp/%s", files[i].name);
        assert_int_equal(batch_from_wire(files[i].s, read_file(path), &b, &e), 0);
        rig_make(&r, &processor_gym, "gym", files[i].s, 1,
                 "{run_id: R, service_name: other, version: '9'}");
        batch_ref(b);
        assert_int_equal(rig_offer(&r, b, NULL), VERDICT_OK);
        assert_ptr_equal(r.sinks[0].taken[0]->segs[0], b->segs[0]);
        batch_unref(b);
        rig_done(&r);
    }
}

/* The run id that one resource gets. */
static void run_id_of(const char *config, char ret[80])
{
    struct rig r = {0};
    _cleanup_buf_ struct buf *got = buf_new(0);
    make(&r, config);
    assert_int_equal(rig_offer(&r, logs(""), NULL), VERDICT_OK);
    show(r.sinks[0].taken[0], got);
    assert_int_equal(strncmp(buf_str(got), "nemo.run.id=", 12), 0);
    snprintf(ret, 80, "%s", buf_str(got) + 12);
    rig_done(&r);
}

static void test_run_id(void **state)
{
    (void)state;
    static const char *const names[] = {"NEMO_GYM_OTEL_RUN_ID", "NEMO_LENS_RUN_ID", "SLURM_JOB_ID"};
    char id[80], again[80];
    for (unsigned set = 0; set < 8;
         set++) { /* every combination of the variables; the first one counts */
        const char *want = NULL;
        for (int i = 2; i >= 0; i--) {
            unsetenv(names[i]);
            if (set & 1u << i)
                setenv(names[i], want = names[i], 1);
        }
        run_id_of("{run_id: given}", id);
        assert_string_equal(id, "given");
        run_id_of("{}", id);
        if (want) {
            assert_string_equal(id, want);
        } else {
            assert_int_equal(strlen(id), 12);
            assert_int_equal(strspn(id, "0123456789abcdef"), 12);
            run_id_of("{run_id: ' '}", again);
            assert_string_equal(again, id);
        }
    }
    setenv(names[0], "  \t", 1);
    setenv(names[1], " padded ", 1);
    run_id_of("{}", id);
    assert_string_equal(id, "padded");
    for (int i = 0; i < 3; i++)
        unsetenv(names[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_complete),
        cmocka_unit_test(test_run_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
