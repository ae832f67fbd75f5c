/* Sources, merge, positions of the winner, warnings, mistakes and secrets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/secrets.h"
#include "agent/config/config.h"
#include "tests/unit/config_show.h"

static char dir[] = "/tmp/motel-config-XXXXXX";

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static const char *write_file(const char *name, const char *text)
{
    static char path[100];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

static int remove_dir(void **state)
{
    static const char *const names[] = {"a.yaml", "b.yaml", "token", "f"};
    char path[100];
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        unlink(path);
    }
    return rmdir(dir);
}

static void test_sources(void **state)
{
    (void)state;
    char a[100], b[100], file_a[120];
    snprintf(a, sizeof(a), "%s", write_file("a.yaml", "x: {p: 1, q: [1, 2]}\ny: old\n"));
    snprintf(b, sizeof(b), "%s", write_file("b.yaml", "x:\n  q: [3]\n  r: ~\n"));
    snprintf(file_a, sizeof(file_a), "file:%s", a);
    setenv("WHOLE", "y: {z: 1}", 1);
    const struct config_source sources[] = {
        {"x.r=[a, b]", true}, {file_a, false},         {b, false},
        {"env:WHOLE", false}, {"yaml:y::w: 2", false}, {"y.z = text: more", true},
    };
    struct cfg_errors errs = {0};
    _cleanup_buf_ struct buf *got = buf_new(0);
    struct config *c = config_load(sources, 5, &errs);
    assert_non_null(c);
    show_value(got, c->root);
    assert_string_equal(
        buf_str(got),
        "{\"x\":{\"p\":i:1,\"q\":[i:3],\"r\":[\"a\",\"b\"]},\"y\":{\"w\":i:2,\"z\":i:1}}");
    bool exact;
    assert_string_equal(cfg_find(c->root, "x::p", &exact)->pos.file, a);
    assert_string_equal(cfg_find(c->root, "x::q", &exact)->pos.file, b);
    assert_int_equal(cfg_find(c->root, "x::q", &exact)->pos.line, 2);
    assert_string_equal(cfg_find(c->root, "x::r", &exact)->pos.file, "--set");
    assert_string_equal(cfg_find(c->root, "y::z", &exact)->pos.file, "env:WHOLE");
    config_free(c);
    /* "text: more" is no YAML behind a key */
    assert_null(config_load(sources, 6, &errs));
    cfg_errors_done(&errs);
}

static void test_bad_sources(void **state)
{
    (void)state;
    static const struct {
        const char *uri;
        bool is_set;
        const char *want;
    } cases[] = {
        {"/nonexistent.yaml", false,
         "cannot read the file \"/nonexistent.yaml\": No such file or directory\n"},
        {"/", false, "cannot read the file \"/\": Is a directory\n"},
        {"http://x/y", false, "\"http://x/y\": a configuration is not fetched over HTTP\n"},
        {"https://x/y", false, "\"https://x/y\": a configuration is not fetched over HTTP\n"},
        {"vault:x", false, "the scheme \"vault\" of \"vault:x\" is not supported\n"},
        {"a b:x", false, "\"a b:x\" is not a valid URI\n"},
        {"env:a-b", false,
         "\"a-b\" is not the name of an environment variable: expected letters, digits and _\n"},
        {"yaml:x", false, "yaml:1:1: expected a map of sections, got string\n"},
        {"yaml:[a]", false, "yaml:1:1: expected a map of sections, got list\n"},
        {"yaml:a: 1\na: 2", false, "yaml:2:1: the key \"a\" was already given at 1:1\n"},
        {"yaml:a:\n\tb: 1", false,
         "yaml:2:1: not valid YAML: a tab cannot indent a line, use spaces\n"},
        {"yaml:a:\n  b: 1\n  \tc: 1", false,
         "yaml:3:3: not valid YAML: a tab cannot indent a line, use spaces\n"},
        {"yaml:a: @b", false,
         "yaml:1:4: not valid YAML: found character that cannot start any token (while scanning "
         "for the next token that starts at 1:4); put the text in quotes\n"},
        {"yaml:a:\n  b: 1\n c: 1", false,
         "yaml:3:2: not valid YAML: did not find expected key (while parsing a block mapping that "
         "starts at 1:1); is the line indented like its neighbours?\n"},
        {"yaml:a: b: c", false,
         "yaml:1:5: not valid YAML: mapping values are not allowed in this context; is the line "
         "indented too far, or a text with \": \" not in quotes?\n"},
        {"yaml:a: 1\nb\nc: 1", false,
         "yaml:3:1: not valid YAML: could not find expected ':' (while scanning a simple key that "
         "starts at 2:1); is the \":\" or the blank behind it missing?\n"},
        {"yaml:  a: 1\nb: 2", false,
         "yaml:2:1: not valid YAML: did not find expected <document start>; is the line "
         "indented like the first one?\n"},
        {"yaml:a: *b", false, "yaml:1:4: unknown anchor \"b\"\n"},
        {"yaml:a: &b [*b]", false, "yaml:1:8: anchor \"b\" contains itself\n"},
        {"foo", true, "--set: \"foo\" has no \"=\": expected KEY=VALUE\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct config_source sources[] = {{"yaml:x: 1", false},
                                                {cases[i].uri, cases[i].is_set}};
        struct cfg_errors errs = {0};
        char text[500];
        assert_null(config_load(sources, 2, &errs));
        show_errors(&errs, text, sizeof(text));
        assert_string_equal(text, cases[i].want);
        cfg_errors_done(&errs);
    }
    struct cfg_errors errs = {0};
    assert_null(config_load(NULL, 0, &errs));
    assert_string_equal(errs.items[0].text, "at least one --config is needed");
    cfg_errors_done(&errs);
}

/* Mistakes of several places come together, and name place and path. */
static void test_expansion_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *want;
    } cases[] = {
        {"a: ${1}\nb: [x, \"${env:p-q}\"]",
         "t:1:4: a: \"1\" is not the name of an environment variable: expected letters, digits and "
         "_\n"
         "t:2:8: b[1]: \"p-q\" is not the name of an environment variable: expected letters, "
         "digits and _\n"},
        {"a: {b: \"${HOST:-x}\"}",
         "t:1:8: a::b: \"HOST:-x\" has no scheme: write \"env:HOST:-x\"\n"},
        {"a: ${A:x}", "t:1:4: a: \"A:x\" is not a valid URI\n"},
        {"a: ${vault:x}", "t:1:4: a: the scheme \"vault\" of \"vault:x\" is not supported\n"},
        {"a: ${file:/nonexistent}",
         "t:1:4: a: cannot read the file \"/nonexistent\": No such file or directory\n"},
        {"a: ${env:$X}", "t:1:4: a: \"env:$X\" has a \"$\" inside the braces\n"},
        {"a: ${env:LOOP}", "t:1:4: a: too many expansions, one inside the other\n"},
        {"a: x${env:GROW}", "t:1:4: a: too many expansions, one inside the other\n"},
        {"a: ${env:${env:TOKEN}}",
         "t:1:4: a: the reference that its variables make is not valid\n"},
    };
    setenv("LOOP", "${env:LOOP}", 1);
    setenv("GROW", "${env:GROW}${env:GROW}", 1);
    setenv("TOKEN", "sekret-token", 1);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct cfg_errors errs = {0};
        char text[1000];
        assert_null(config_load_text("t", cases[i].yaml, &errs));
        show_errors(&errs, text, sizeof(text));
        assert_string_equal(text, cases[i].want);
        cfg_errors_done(&errs);
    }
}

/* A list that holds itself ends at the depth limit, once. */
static void test_endless_list(void **state)
{
    (void)state;
    struct cfg_errors errs = {0};
    setenv("LIST", "[\"${env:LIST}\", \"${env:LIST}\"]", 1);
    assert_null(config_load_text("t", "b: ${env:LIST}\nc: ${env:LIST}", &errs));
    assert_int_equal(errs.n, 1);
    assert_non_null(strstr(errs.items[0].text, "nested too deeply"));
    assert_int_equal(strncmp(errs.items[0].path, "b[0][0]", 7), 0);
    cfg_errors_done(&errs);
}

static void check_warnings(const char *yaml, const char *const *want)
{
    struct cfg_errors errs = {0};
    struct config *c = config_load_text("t", yaml, &errs);
    assert_non_null(c);
    for (size_t i = 0; i < c->nwarnings; i++) {
        assert_non_null(want[i]);
        assert_string_equal(c->warnings[i], want[i]);
    }
    assert_null(want[c->nwarnings]);
    config_free(c);
}

static void test_warnings(void **state)
{
    (void)state;
    char yaml[300], trimmed[300];
    unsetenv("NOPE");
    unsetenv("NOPE2");
    setenv("EMPTY", "", 1);
    setenv("SHORT", "abc", 1);
    check_warnings("a: x\n", (const char *[]){NULL});
    check_warnings("a: ${env:NOPE:-d}\nb: ${env:EMPTY}", (const char *[]){NULL});
    check_warnings("a: ${NOPE}\nb: x${env:NOPE}\nc: ${NOPE2}",
                   (const char *[]){
                       "t:1:4: a: the environment variable \"NOPE\" is not set, so this is empty",
                       "t:3:4: c: the environment variable \"NOPE2\" is not set, so this is empty",
                       NULL});
    check_warnings("a: 1\n---\nb: 2",
                   (const char *[]){"t: only the first of its YAML documents is read", NULL});
    check_warnings(
        "headers: {a: \"x ${SHORT}\"}",
        (const char *[]){
            "t:1:14: headers::a: the value of env:SHORT is too short to be blanked out of logs "
            "and output",
            NULL});
    const char *path = write_file("token", "file-token\n");
    snprintf(yaml, sizeof(yaml), "a: ${file:%s}", path);
    snprintf(trimmed, sizeof(trimmed), "t:1:4: a: the newline at the end of \"%s\" is left out",
             path);
    check_warnings(yaml, (const char *[]){trimmed, NULL});
}

static void test_files(void **state)
{
    (void)state;
    static const struct {
        const char *content, *yaml, *want;
    } cases[] = {
        {"tok\r\n", "a: ${file:%s}", "{\"a\":\"tok\"}"},
        {"tok\n", "a: Bearer ${file:%s}", "{\"a\":\"Bearer tok\"}"},
        {"0123\n", "a: ${file:%s}", "{\"a\":i:83}"},
        {"b: 1\nc::d: ${env:IN}\n", "a: ${file:%s}", "{\"a\":{\"b\":i:1,\"c\":{\"d\":\"inner\"}}}"},
        {"- $$x\n- ${env:IN}\n", "a: ${file:%s}", "{\"a\":[\"$x\",\"inner\"]}"},
        {"", "a: ${file:%s}", "{\"a\":null}"},
    };
    setenv("IN", "inner", 1);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct cfg_errors errs = {0};
        char yaml[300];
        _cleanup_buf_ struct buf *got = buf_new(0);
        snprintf(yaml, sizeof(yaml), cases[i].yaml, write_file("f", cases[i].content));
        struct config *c = config_load_text("t", yaml, &errs);
        assert_non_null(c);
        show_value(got, c->root);
        assert_string_equal(buf_str(got), cases[i].want);
        config_free(c);
    }
}

/* Which values are blanked out, by where they are used. */
static void test_secrets(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *secret; /* NULL = nothing is */
        const char *text;          /* shown as "<[REDACTED]>" or not */
    } cases[] = {
        {"headers: {Authorization: \"Bearer ${env:TOKEN}\"}", "tok-123456", NULL},
        {"headers: {x-k: \"${env:TOKEN}\"}", "tok-123456", NULL},
        {"headers: {x-k: \"pre ${env:TOKEN}\"}", "tok-123456", "pre "},
        {"headers: {x-k: literal-value}", NULL, "literal-value"},
        {"headers: {Authorization: Bearer literal-value}", "literal-value", NULL},
        {"headers: {x-api-key: literal-value}", "literal-value", NULL},
        {"headers: ${env:MAP}", "map-secret", NULL},
        {"headers: [{name: a, value: \"${env:TOKEN}\"}]", "tok-123456", NULL},
        {"headers: [{name: Authorization, value: Bearer literal-value}]", "literal-value", NULL},
        {"headers: [{name: x-a, value: literal-value}]", NULL, "literal-value"},
        {"attributes: [{key: Authorization, value: literal-value}]", NULL, "literal-value"},
        {"auth: {x: \"${env:TOKEN}\"}", "tok-123456", NULL},
        {"bearertokenauth/x: {token: \"${env:TOKEN}\"}", "tok-123456", NULL},
        {"basicauth: {client_auth: {username: u, password: literal-value}}", "literal-value", NULL},
        {"htpasswd: {inline: \"u:literal-value\"}", "u:literal-value", NULL},
        {"htpasswd: {file: /etc/motel/users}", NULL, "/etc/motel/users"},
        {"tls: {key_pem: \"${env:TOKEN}\"}", "tok-123456", NULL},
        {"tls: {key_file: \"${env:TOKEN}\"}", NULL, "tok-123456"},
        {"value: ${env:TOKEN}", NULL, "tok-123456"},
        {"token_url: ${env:TOKEN}", NULL, "tok-123456"},
        {"authority: ${env:TOKEN}", NULL, "tok-123456"},
        {"cors: {allowed_headers: [\"${env:TOKEN}\"]}", NULL, "tok-123456"},
        {"headers: {a: \"${env:DOLLARS}\"}", "pa$$word", NULL},
        {"headers: {a: \"${env:DOLLARS}\"}", "pa$word", NULL},
        {"headers: {a: \"${env:NESTED}\"}", "pre-tok-123456", NULL},
        {"headers: {a: \"x ${env:NESTED}\"}", "pre-tok-123456", NULL},
        {"headers: {a: \"${env:OCTAL}\"}", "012345670", NULL},
        {"headers: {a: \"${env:OCTAL}\"}\nvalue: ${env:OCTAL}", "2739128", NULL},
        {"endpoint: http://user:url-secret@host/x", "url-secret", "host"},
        {"endpoint: http://host/user:url-secret@x", NULL, "url-secret"},
        {"headers: {a: \"${env:NOPE:-default-value}\"}", NULL, "default-value"},
    };
    setenv("TOKEN", "tok-123456", 1);
    setenv("MAP", "{authorization: map-secret}", 1);
    setenv("DOLLARS", "pa$$word", 1);
    setenv("NESTED", "pre-${env:TOKEN}", 1);
    setenv("OCTAL", "012345670", 1);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct cfg_errors errs = {0};
        secrets_clear();
        struct config *c = config_load_text("t", cases[i].yaml, &errs);
        assert_non_null(c);
        if (cases[i].secret && !secrets_equal(bytes_str(cases[i].secret)))
            fail_msg("%s: %s is no secret", cases[i].yaml, cases[i].secret);
        if (cases[i].text && secrets_found(bytes_str(cases[i].text)))
            fail_msg("%s: %s is a secret", cases[i].yaml, cases[i].text);
        config_free(c);
    }
    secrets_clear();
}

/* No mistake or warning shows what a variable holds. */
static void test_mistakes_hide_values(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "a: ${env:${env:TOKEN}}",
        "a: ${file:/${env:TOKEN}}",
        "a: ${${env:TOKEN}:x}",
        "a: ${env:X:-${env:TOKEN}",
        "headers: {a: \"${env:TOKEN}${1}\"}",
        "a: ${yaml:${env:TOKEN}: [${1}}",
    };
    setenv("TOKEN", "sekret$token", 1);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct cfg_errors errs = {0};
        struct config *c = config_load_text("t", texts[i], &errs);
        for (size_t j = 0; j < errs.n; j++)
            assert_null(strstr(errs.items[j].text, "sekret"));
        for (size_t j = 0; c && j < c->nwarnings; j++)
            assert_null(strstr(c->warnings[j], "sekret"));
        config_free(c);
        cfg_errors_done(&errs);
    }
    secrets_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_bad_sources),
        cmocka_unit_test(test_expansion_mistakes),
        cmocka_unit_test(test_endless_list),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_secrets),
        cmocka_unit_test(test_mistakes_hide_values),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
