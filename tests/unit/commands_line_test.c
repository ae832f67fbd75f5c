/* The command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "agent/commands.h"

#define MAX_ARGS 8

static int parse(const char *const *args, struct command_line *cl, struct err *e)
{
    char *argv[MAX_ARGS + 2] = {"motel"};
    int argc = 1;
    for (; args[argc - 1]; argc++)
        argv[argc] = (char *)args[argc - 1];
    return command_line_parse(argc, argv, cl, e);
}

static void test_sources(void **state)
{
    (void)state;
    const char *const args[] = {"--config", "a.yaml", "--set=x.y=1", "--config=b.yaml",
                                "--set",    "z=",     NULL};
    struct command_line cl;
    assert_int_equal(parse(args, &cl, NULL), 0);
    assert_int_equal(cl.command, COMMAND_RUN);
    assert_int_equal(cl.nsources, 4);
    assert_int_equal(cl.nconfigs, 2);
    static const char *const order[] = {"a.yaml", "b.yaml", "x.y=1", "z="};
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(cl.sources[i].uri, order[i]);
        assert_int_equal(cl.sources[i].is_set, i >= 2);
    }
    command_line_done(&cl);
}

static void test_gym_configs(void **state)
{
    (void)state;
    const char *const args[] = {"--gym-config",        "a.yaml", "--config", "c.yaml",
                                "--gym-config=b.yaml", NULL};
    struct command_line cl;
    assert_int_equal(parse(args, &cl, NULL), 0);
    assert_int_equal(cl.ngym_configs, 2);
    assert_string_equal(cl.gym_configs[0], "a.yaml");
    assert_string_equal(cl.gym_configs[1], "b.yaml");
    assert_int_equal(cl.nconfigs, 1);
    assert_true(command_line_configured(&cl));
    command_line_done(&cl);
}

static void test_commands(void **state)
{
    (void)state;
    static const struct {
        const char *args[MAX_ARGS];
        enum command command;
    } cases[] = {
        {{NULL}, COMMAND_RUN},
        {{"validate", "--config", "x", NULL}, COMMAND_VALIDATE},
        {{"--config", "x", "validate", NULL}, COMMAND_VALIDATE},
        {{"components", NULL}, COMMAND_COMPONENTS},
        {{"explain", "--gym-config", "gym.yaml", NULL}, COMMAND_EXPLAIN},
        {{"--gym-config=gym.yaml", "--config", "x", NULL}, COMMAND_RUN},
        {{"health", NULL}, COMMAND_HEALTH},
        {{"health", "--wait=3s", "http://x/", "--insecure", NULL}, COMMAND_HEALTH},
        {{"health", "--config", "x", "--timeout", "1s", NULL}, COMMAND_HEALTH},
        {{"doctor", NULL}, COMMAND_DOCTOR},
        {{"doctor", "--config", "x", "--set=a=b", "--timeout", "1s", "--format=json", NULL},
         COMMAND_DOCTOR},
        {{"print-config", "--format=json", "--validate=false", NULL}, COMMAND_PRINT_CONFIG},
        {{"print-initial-config", "--validate", NULL}, COMMAND_PRINT_CONFIG},
        {{"featuregate", "pdata.useProtoPooling", NULL}, COMMAND_FEATUREGATE},
        {{"-v", NULL}, COMMAND_VERSION},
        {{"--version", NULL}, COMMAND_VERSION},
        {{"version", NULL}, COMMAND_VERSION},
        {{"-h", NULL}, COMMAND_HELP},
        {{"help", NULL}, COMMAND_HELP},
        {{"help", "validate", NULL}, COMMAND_HELP},
        {{"validate", "--help", NULL}, COMMAND_HELP},
        {{"--feature-gates", "+pdata.useProtoPooling,-service.partialReload", NULL}, COMMAND_RUN},
        {{"--shutdown-timeout", "5s", NULL}, COMMAND_RUN},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct command_line cl;
        struct err e = {0};
        if (parse(cases[i].args, &cl, &e) < 0)
            fail_msg("case %zu: %s", i, e.text);
        assert_int_equal(cl.command, cases[i].command);
        command_line_done(&cl);
    }
}

static void test_settings(void **state)
{
    (void)state;
    const char *const args[] = {"--redact=false", "--shutdown-timeout", "5s", NULL};
    struct command_line cl;
    assert_int_equal(parse(args, &cl, NULL), 0);
    assert_int_equal(cl.nflags, 2);
    assert_string_equal(cl.flags[0].field->key, "redact");
    assert_string_equal(cl.flags[0].value, "false");
    assert_string_equal(cl.flags[1].flag, "--shutdown-timeout");
    assert_string_equal(cl.flags[1].value, "5s");
    command_line_done(&cl);
}

static void test_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *args[MAX_ARGS], *error;
    } cases[] = {
        {{"--nope", NULL}, "unknown flag: --nope"},
        {{"--confg", "x", NULL}, "unknown flag: --confg; did you mean --config?"},
        {{"--conf", "x", NULL}, "unknown flag: --conf; did you mean --config?"},
        {{"--shutdown=2s", NULL}, "unknown flag: --shutdown; did you mean --shutdown-timeout?"},
        {{"--shutdown-timout=1s", NULL},
         "unknown flag: --shutdown-timout; did you mean --shutdown-timeout?"},
        {{"-x", NULL}, "unknown shorthand flag: 'x' in -x; motel --help lists all"},
        {{"--config", NULL}, "flag needs an argument: --config"},
        {{"--set", "foo", NULL}, "invalid argument \"foo\" for \"--set\" flag: missing equal sign"},
        {{"frob", NULL}, "unknown command \"frob\" for \"motel\""},
        {{"validat", NULL}, "unknown command \"validat\" for \"motel\"; did you mean validate?"},
        {{"validate", "more", NULL}, "unexpected argument \"more\""},
        {{"components", "--config", "x", NULL}, "unknown flag: --config here"},
        {{"--format", "json", NULL}, "unknown flag: --format here"},
        {{"--wait", "1s", NULL}, "unknown flag: --wait here"},
        {{"health", "a", "b", NULL}, "unexpected argument \"b\""},
        {{"health", "--timeout", "5", NULL},
         "invalid argument \"5\" for \"--timeout\" flag: expected a time such as 3s, at most 24h"},
        {{"health", "--wait=0s", NULL},
         "invalid argument \"0s\" for \"--wait\" flag: expected a time such as 3s, at most 24h"},
        {{"print-config", "--format", "toml", NULL},
         "invalid argument \"toml\" for \"--format\" flag: expected yaml or json "
         "(doctor and explain: text or json)"},
        {{"--feature-gates=nope", NULL},
         "invalid argument for \"--feature-gates\" flag: no such feature gate \"nope\"; motel "
         "featuregate lists all"},
        {{"--feature-gates", "pdata.useProtoPooling,-ottl.set.allowNil", NULL},
         "invalid argument for \"--feature-gates\" flag: motel cannot disable "
         "\"ottl.set.allowNil\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct command_line cl;
        struct err e = {0};
        assert_true(parse(cases[i].args, &cl, &e) < 0);
        assert_string_equal(e.text, cases[i].error);
        command_line_done(&cl);
    }
}

/* A file name where a command belongs gets the flag that was forgotten. */
static void test_file_for_command(void **state)
{
    (void)state;
    const char *const args[] = {"/dev/null", NULL};
    struct command_line cl;
    struct err e = {0};
    assert_true(parse(args, &cl, &e) < 0);
    assert_string_equal(e.text, "unknown command \"/dev/null\"; did you mean --config /dev/null?");
    command_line_done(&cl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sources),  cmocka_unit_test(test_gym_configs),
        cmocka_unit_test(test_commands), cmocka_unit_test(test_settings),
        cmocka_unit_test(test_mistakes), cmocka_unit_test(test_file_for_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
