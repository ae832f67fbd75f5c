/* Attribute actions: what the reference made of the same configuration and resource; what is
 * refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#include "agent/base/clock.h"
#include "agent/config/config.h"
#include "agent/pipeline/attr_actions.h"
#include "proto/json.h"

struct actions_config {
    struct cfg_list list;
};
static const struct cfg_field fields[] = {{.key = "attributes",
                                           .kind = BIND_LIST,
                                           CFG_AT(struct actions_config, list),
                                           .elem = &attr_action_elem},
                                          {0}};

struct compiled {
    struct config *config;
    struct actions_config bound;
    struct attr_actions *actions;
};

/* 0, or the error text in `e`. */
static int compile(const char *list, struct compiled *ret, struct err *e)
{
    _cleanup_buf_ struct buf *text = buf_new(0);
    struct cfg_errors errs = {0};
    *ret = (struct compiled){0};
    buf_printf(text, "attributes: %s\n", list);
    ret->config = config_load_text("test.yaml", buf_str(text), &errs);
    int r = ret->config ? 0 : -EINVAL;
    if (r == 0) {
        struct cfg_binder b = {.arena = ret->config->arena, .errors = &errs};
        r = cfg_bind(&b, fields, ret->config->root, "p", &ret->bound);
    }
    if (errs.n)
        *e = errs.items[0];
    cfg_errors_done(&errs);
    return r < 0 ? r : attr_actions_new(&ret->bound.list, "attributes", NULL, &ret->actions, e);
}

static void done(struct compiled *c)
{
    attr_actions_free(c->actions);
    config_free(c->config);
}

/* The attributes of an encoded Resource after the actions, with its other fields behind. */
static void run(const struct attr_actions *as, struct bytes resource, struct buf *out)
{
    struct attr_list l;
    assert_int_equal(attr_list_read(&l, resource, 1), 0);
    assert_int_equal(attr_actions_run(as, &l), 0);
    if (!l.changed) {
        buf_append(out, resource.data, resource.len);
    } else {
        struct wire_reader r = wire_reader(resource);
        struct wire_field f;
        assert_int_equal(attr_list_write(&l, 1, out), 0);
        while (wire_next(&r, &f) > 0)
            if (f.number != 1)
                buf_append(out, f.whole.data, f.whole.len);
    }
    attr_list_done(&l);
}

static void check_line(const char *list, const char *in, const char *want)
{
    const struct schema_message *m = schema_find("opentelemetry.proto.resource.v1.Resource");
    _cleanup_buf_ struct buf *wire = buf_new(0), *edited = buf_new(0), *got = buf_new(0);
    struct compiled c;
    struct err e = {.text = ""};
    if (compile(list, &c, &e) < 0)
        fail_msg("%s: %s", list, e.text);
    assert_int_equal(json_read(m, bytes_str(in), wire, &e), 0);
    run(c.actions, buf_bytes(wire), edited);
    assert_int_equal(json_write(m, buf_bytes(edited), 0, got), 0);
    size_t same = 0;
    for (const char *g = buf_str(got); g[same] && g[same] == want[same];)
        same++;
    if (strcmp(buf_str(got), want) != 0)
        fail_msg("%.99s: byte %zu: got %.99s want %.99s", list, same, buf_str(got) + same,
                 want + same);
    done(&c);
}

static void test_reference(void **state)
{
    (void)state;
    _cleanup_fclose_ FILE *f = fopen(TEST_DATA "/golden/attr_actions/reference.tsv", "r");
    assert_non_null(f);
    _cleanup_free_ char *line = NULL;
    size_t size = 0;
    int lines = 0;
    for (; getline(&line, &size, f) > 0; lines++) {
        char *in = strchr(line, '\t'), *want = in ? strchr(in + 1, '\t') : NULL;
        assert_non_null(want);
        *in++ = *want++ = 0;
        want[strcspn(want, "\n")] = 0;
        check_line(line, in, want);
    }
    assert_true(lines > 50);
}

/* What differs from the reference on purpose. */
static const struct {
    const char *list, *in, *want;
} ours[] = {
    /* every attribute of the name goes, not only the first; the last one moves into a gap */
    {"[{key: a, action: delete}]",
     "{\"attributes\":[{\"key\":\"a\",\"value\":{\"intValue\":\"1\"}},{\"key\":\"b\",\"value\":{}},"
     "{\"key\":\"a\",\"value\":{\"intValue\":\"2\"}},{\"key\":\"c\",\"value\":{}},{\"key\":\"d\","
     "\"value\":{}}]}",
     "{\"attributes\":[{\"key\":\"d\",\"value\":{}},{\"key\":\"b\",\"value\":{}},{\"key\":\"c\","
     "\"value\":{}}]}"},
    /* an action with a pattern alone leaves the attribute without a name */
    {"[{pattern: x, action: delete}]",
     "{\"attributes\":[{\"key\":\"\",\"value\":{\"intValue\":\"1\"}},{\"key\":\"x\",\"value\":{}}]"
     "}",
     "{\"attributes\":[{\"value\":{\"intValue\":\"1\"}}]}"},
    /* a map keeps the order of the file */
    {"[{key: m, action: upsert, value: {z: 1, a: 2}}]", "{}",
     "{\"attributes\":[{\"key\":\"m\",\"value\":{\"kvlistValue\":{\"values\":[{\"key\":\"z\","
     "\"value\":{\"intValue\":"
     "\"1\"}},{\"key\":\"a\",\"value\":{\"intValue\":\"2\"}}]}}}]}"},
};

static void test_ours(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
        check_line(ours[i].list, ours[i].in, ours[i].want);
}

static const struct {
    const char *list, *path, *text;
} refused[] = {
    {"[{key: a, action: upsert}]", "attributes[0]",
     "one of \"value\", \"from_attribute\" or \"default_value\""},
    {"[{key: a, action: insert, value: null}]", "attributes[0]", "key \"a\" (action 0, insert)"},
    {"[{key: a, action: update, value: 1, from_attribute: b}]", "attributes[0]",
     "exclude each other"},
    {"[{key: a, action: upsert, value: 1, pattern: x}]", "attributes[0]::pattern", "not used"},
    {"[{key: a, action: upsert, value: 1, converted_type: int}]", "attributes[0]::converted_type",
     "not used"},
    {"[{key: a, action: upsert, value: 2026-08-21}]", "attributes[0]::value",
     "a time is no attribute value"},
    {"[{key: a, action: upsert, value: [1, 2026-08-21]}]", "attributes[0]::value", "a time is no"},
    {"[{key: a, action: upsert, default_value: 2026-08-21}]", "attributes[0]::default_value",
     "a time is no"},
    {"[{action: upsert, value: 1}]", "attributes[0]", "\"key\" must be given"},
    {"[{action: delete}]", "attributes[0]", "\"key\" or \"pattern\" must be given"},
    {"[{key: a, action: delete, value: 1}]", "attributes[0]::value", "not used"},
    {"[{key: a, action: hash, from_attribute: b}]", "attributes[0]::from_attribute", "not used"},
    {"[{key: a, action: hash, converted_type: int}]", "attributes[0]::converted_type", "not used"},
    {"[{pattern: \"(?=x)\", action: delete}]", "attributes[0]::pattern", "at character 1"},
    {"[{key: a, action: extract}]", "attributes[0]", "\"pattern\" must be given"},
    {"[{key: a, action: extract, pattern: abc}]", "attributes[0]::pattern", "no named group"},
    {"[{key: a, action: extract, pattern: \"(?P<a>x)(y)\"}]", "attributes[0]::pattern", "group 2"},
    {"[{key: a, action: extract, pattern: \"(?P<a>x)\", value: 1}]", "attributes[0]::value",
     "not used"},
    {"[{key: a, action: convert}]", "attributes[0]::converted_type",
     "expected string, int or double, got \"\""},
    {"[{key: a, action: convert, converted_type: bool}]", "attributes[0]::converted_type",
     "got \"bool\""},
    {"[{key: a, action: convert, converted_type: int, value: 1}]", "attributes[0]::value",
     "not used"},
    {"[{key: a, action: remove}]", "attributes[0]::action", "unsupported action \"remove\""},
    {"[{key: a, value: 1}]", "attributes[0]::action", "\"action\" must be given: expected insert"},
    {"[{key: b, action: upsert, value: 1}, {key: a}]", "attributes[1]::action",
     "key \"a\" (action 1): "},
    {"[{key: a, action: upsert}]", "attributes[0]", "must be given"},
    {"[{key: a, action: upsert, value: \"${env:NEVER_SET_ANYWHERE}\"}]", "attributes[0]::value",
     "the variable of \"value\" is not set or empty"},
    {"[{key: a, action: upsert, from_context: metadata.x}]", "attributes[0]::from_context",
     "client metadata"},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        struct compiled c;
        struct err e = {.text = ""};
        assert_int_equal(compile(refused[i].list, &c, &e), -EINVAL);
        if (!strstr(e.path, refused[i].path) || !strstr(e.text, refused[i].text))
            fail_msg("%s: at %s: %s", refused[i].list, e.path, e.text);
        done(&c);
    }
}

/* The largest resources are no problem; 10,000 equal keys are deleted in one pass. */
static void test_many(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *resource = buf_new(0), *out = buf_new(0);
    for (int i = 0; i < 10000; i++) {
        char key[16];
        size_t mark;
        snprintf(key, sizeof(key), i % 2 ? "k%d" : "a", i);
        wire_begin(resource, 1, &mark);
        wire_put_str(resource, 1, key);
        wire_put_bytes(resource, 2, bytes_of("\x18\x05", 2));
        wire_end(resource, mark);
    }
    struct compiled c;
    struct err e;
    assert_int_equal(compile("[{key: a, action: delete}, {key: k9999, action: hash}, {key: x, "
                             "action: upsert, value: 1},"
                             " {pattern: \"^k1\", action: delete}]",
                             &c, &e),
                     0);
    const clock_t start = clock(); /* CPU time: others do not count */
    run(c.actions, buf_bytes(resource), out);
    assert_true(clock() - start < CLOCKS_PER_SEC / 2);
    struct attr_list l;
    assert_int_equal(attr_list_read(&l, buf_bytes(out), 1), 0);
    assert_null(attr_list_find(&l, bytes_str("a")));
    assert_null(attr_list_find(&l, bytes_str("k1")));
    assert_int_equal(attr_list_find(&l, bytes_str("k9999"))->value.len, 66);
    assert_non_null(attr_list_find(&l, bytes_str("x")));
    attr_list_done(&l);
    done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_ours),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
