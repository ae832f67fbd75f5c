/* motel explain: the whole text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "agent/base/secrets.h"
#include "agent/config/tree.h"
#include "agent/gym/telemetry.h"

static char *read_golden(const char *name)
{
    char path[512], *text = NULL;
    size_t size = 0;
    snprintf(path, sizeof(path), TEST_DATA "/golden/gym/%s", name);
    _cleanup_fclose_ FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_true(getdelim(&text, &size, 0, f) > 0);
    return text;
}

static void explain(const char *block, char *const *environment, char **ret)
{
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    struct cfg_errors errs = {0};
    struct gym_telemetry t;
    size_t len;
    const struct cfg_value *v = cfg_yaml_parse(a, "gym.yaml", block, strlen(block), &errs, NULL);
    assert_int_equal(gym_telemetry_read(a, v, environment, &errs, &t), 0);
    FILE *f = open_memstream(ret, &len);
    gym_explain(f, &t);
    fclose(f);
}

static void test_golden(void **state)
{
    (void)state;
    static char *const environment[] = {"NEMO_GYM_OTEL_LOGS_ENABLED=1",
                                        "NEMO_LENS_SPAN_GROUPS=all",
                                        "NEMO_LENS_TRACES_ENABLED=",
                                        "TEAM_TOKEN=team-token-1",
                                        "OTEL_EXPORTER_OTLP_TRACES_HEADERS=x-team=trace-token-2",
                                        "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL=http/protobuf",
                                        "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=http://logs:4318/v1/logs",
                                        "OTEL_EXPORTER_OTLP_CERTIFICATE=/etc/ca.pem",
                                        NULL};
    _cleanup_free_ char *block = read_golden("block.yaml"), *want = read_golden("explain.txt"),
                        *got = NULL;
    explain(block, environment, &got);
    assert_string_equal(got, want);
    assert_null(strstr(got, "token-"));
    assert_null(strstr(got, "hunter2"));
    secrets_clear();
}

/* Without anything set, every field is there with its default. */
static void test_defaults(void **state)
{
    (void)state;
    _cleanup_free_ char *got = NULL;
    explain("", (char *const[]){NULL}, &got);
    for (int i = 0; i < GYM_FIELD_COUNT; i++)
        if (i != GYM_EXPORT_STRATEGY &&
            i != GYM_EXPORT_RANK) /* shown when somebody still sets them */
            assert_non_null(strstr(got, gym_field_name((enum gym_field)i)));
    for (int i = 0; i < GYM_OTLP_COUNT; i++)
        assert_non_null(strstr(got, gym_otlp_name((enum gym_otlp)i)));
    assert_null(strstr(got, "export_"));
    assert_null(strstr(got, "yaml"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
