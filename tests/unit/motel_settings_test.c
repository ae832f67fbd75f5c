/* Motel's own settings: file, variables and flags. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "agent/motel_settings.h"

struct bound {
    struct config *config;
    struct motel_settings s;
    int result;
    char *errors;
};

static struct bound bind(const char *section, char *const *environment,
                         const struct motel_flag *flags, size_t nflags)
{
    struct bound b = {0};
    struct cfg_errors errs = {0};
    size_t len;
    b.config = config_load_text("c.yaml", section, &errs);
    assert_non_null(b.config);
    b.result = motel_settings_bind(b.config, cfg_get(b.config->root, "motel"), environment, flags,
                                   nflags, &errs, &b.s);
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

static char *const nothing[] = {NULL};

static void test_defaults(void **state)
{
    (void)state;
    struct bound b = bind("{}", nothing, NULL, 0);
    assert_int_equal(b.result, 0);
    assert_true(b.s.redact);
    assert_int_equal(b.s.shutdown_timeout_ns, 25000000000);
    assert_int_equal(b.s.stop_delay_ns, 0);
    assert_int_equal(b.s.file_mode, -1);
    assert_int_equal(b.s.max_connections, 0);
    assert_int_equal(b.s.max_header_bytes, 16384);
    assert_int_equal(b.s.max_nesting, 64);
    assert_int_equal(b.s.max_attributes, 65536);
    assert_int_equal(b.s.max_decompression_ratio, 2000);
    assert_int_equal(b.s.client_timeout_ns, 60000000000);
    assert_int_equal(b.s.request_timeout_ns, 600000000000);
    assert_int_equal(b.s.stream_reset_burst, 10000);
    assert_int_equal(b.s.stream_reset_rate, 500);
    unbind(&b);
}

static void test_file(void **state)
{
    (void)state;
    struct bound b =
        bind("motel: {redact: false, shutdown_timeout: 1m, file_mode: '0640'}", nothing, NULL, 0);
    assert_int_equal(b.result, 0);
    assert_false(b.s.redact);
    assert_int_equal(b.s.shutdown_timeout_ns, 60000000000);
    assert_int_equal(b.s.file_mode, 0640);
    unbind(&b);
}

/* A flag over a variable over the file. */
static void test_precedence(void **state)
{
    (void)state;
    char *const environment[] = {"MOTEL_SHUTDOWN_TIMEOUT=2s",
                                 "MOTEL_FILE_MODE=0600",
                                 "MOTEL_STOP_DELAY=1500ms",
                                 "MOTEL_REDACT=",
                                 "PATH=/bin",
                                 NULL};
    const struct motel_flag flags[] = {
        {motel_setting_of_flag("shutdown-timeout"), "--shutdown-timeout", "3s"}};
    struct bound b = bind("motel: {redact: false, shutdown_timeout: 1s, file_mode: '0644'}",
                          environment, flags, 1);
    assert_string_equal(b.errors, "");
    assert_int_equal(b.s.shutdown_timeout_ns, 3000000000);
    assert_int_equal(b.s.stop_delay_ns, 1500000000);
    assert_int_equal(b.s.file_mode, 0600);
    assert_false(b.s.redact); /* an empty variable counts as not set */
    unbind(&b);
}

static void test_mistakes(void **state)
{
    (void)state;
    char *const environment[] = {"MOTEL_SHUTDOWN_TIMEOUT=soon", "MOTEL_REDCT=false", NULL};
    const struct motel_flag flags[] = {{motel_setting_of_flag("redact"), "--redact", "maybe"}};
    struct bound b = bind("motel: {file_mod: '0644'}", environment, flags, 1);
    assert_int_equal(b.result, -EINVAL);
    assert_string_equal(
        b.errors,
        "c.yaml:1:9: motel: unknown key \"file_mod\"; did you mean \"file_mode\"?\n"
        "--redact: motel::redact: expected true or false, got string \"maybe\"\n"
        "MOTEL_SHUTDOWN_TIMEOUT: motel::shutdown_timeout: expected a duration such as \"5s\", got "
        "string \"soon\"\n");
    assert_int_equal(b.config->nwarnings, 1);
    assert_non_null(strstr(b.config->warnings[0], "MOTEL_REDCT is not known"));
    assert_non_null(strstr(b.config->warnings[0], "did you mean MOTEL_REDACT?"));
    unbind(&b);
    b = bind("motel: 5", nothing, NULL, 0);
    assert_int_equal(b.result, -EINVAL);
    assert_string_equal(b.errors, "c.yaml:1:8: motel: expected a map of settings, got int\n");
    unbind(&b);
}

static void test_memory_limit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes; /* -2 = a mistake */
    } cases[] = {{"64", 64 << 20},
                 {"'64'", 64 << 20},
                 {"64MiB", 64 << 20},
                 {"1.5 GiB", 3ll << 29},
                 {"100MB", 100000000},
                 {"20000k", 20480000},
                 {"none", 0},
                 {"", -1},
                 {"7", -2},
                 {"64 apples", -2},
                 {"-5", -2},
                 {"0", -2},
                 {"lots", -2},
                 {"1e30", -2}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char yaml[80];
        snprintf(yaml, sizeof(yaml), "motel: {memory_limit: %s}", cases[i].text);
        struct bound b = bind(yaml, nothing, NULL, 0);
        if (b.result != (cases[i].bytes == -2 ? -EINVAL : 0))
            fail_msg("%s: %d, %s", cases[i].text, b.result, b.errors);
        if (cases[i].bytes == -2)
            assert_non_null(strstr(b.errors, "motel::memory_limit: expected a size such as"));
        else
            assert_int_equal(b.s.memory_limit_bytes, cases[i].bytes);
        unbind(&b);
    }
    char *const environment[] = {"MOTEL_MEMORY_LIMIT=32", NULL};
    struct bound b = bind("motel: {memory_limit: 64}", environment, NULL, 0);
    assert_int_equal(b.s.memory_limit_bytes, 32 << 20);
    unbind(&b);
    b = bind("motel: {memory_limit: 50%}", nothing, NULL, 0);
    assert_in_range(b.s.memory_limit_bytes, 1 << 20, INT64_MAX);
    unbind(&b);
}

static void test_names(void **state)
{
    (void)state;
    char name[64];
    const struct cfg_field *f = motel_setting_of_flag("shutdown-timeout");
    assert_non_null(f);
    motel_flag_name(f, name, sizeof(name));
    assert_string_equal(name, "--shutdown-timeout");
    motel_variable_name(f, name, sizeof(name));
    assert_string_equal(name, "MOTEL_SHUTDOWN_TIMEOUT");
    assert_null(motel_setting_of_flag("shutdown_timeout"));
    assert_null(motel_setting_of_flag("config"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),   cmocka_unit_test(test_file),
        cmocka_unit_test(test_precedence), cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_names),      cmocka_unit_test(test_memory_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
