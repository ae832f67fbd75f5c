/* What expressions and conditions give, and what is refused at the start or while running. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/ottl_rig.h"

static struct bytes key(const char *s)
{
    return bytes_str(s);
}

/* A record whose cache holds a value of every kind. */
static void fill(struct ottl_env *env)
{
    struct arena *a = env->arena;
    struct ottl_map *cache = ottl_map_new(a), *m = ottl_map_new(a);
    struct ottl_list *l = ottl_list_new(a);
    static const uint8_t bytes[] = {1, 2, 255};
    ottl_map_put(a, m, key("x"), ottl_string(key("y")));
    ottl_list_append(a, l, ottl_int(10));
    ottl_list_append(a, l, ottl_string(key("b")));
    ottl_list_append(a, l, ottl_nil());
    ottl_list_append(a, l, (struct ottl_value){.kind = OTTL_BYTES, .bytes = bytes_of(bytes, 3)});
    ottl_map_put(a, cache, key("s"), ottl_string(key("text")));
    ottl_map_put(a, cache, key("i"), ottl_int(7));
    ottl_map_put(a, cache, key("d"), ottl_double(2.5));
    ottl_map_put(a, cache, key("t"), ottl_bool(true));
    ottl_map_put(a, cache, key("m"), (struct ottl_value){.kind = OTTL_MAP, .map = m});
    ottl_map_put(a, cache, key("l"), (struct ottl_value){.kind = OTTL_LIST, .list = l});
    ottl_map_put(a, cache, key("raw"), (struct ottl_value){.kind = OTTL_BYTES, .bytes = bytes_of(bytes, 3)});
    ottl_map_put(a, cache, key("number"), ottl_string(key("12")));
    env->cache[OTTL_LOG] = cache;
}

struct world {
    struct arena *arena;
    struct err err;
    struct ottl_env env;
};

static struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    w->arena = arena_new(0);
    w->env = (struct ottl_env){.arena = w->arena, .context = OTTL_LOG, .err = &w->err};
    fill(&w->env);
    return w;
}

static struct world *world_free(struct world *w)
{
    arena_free(w->arena);
    free(w);
    return NULL;
}
DEFINE_CLEANUP(struct world *, world_free)

/* The result of an expression in words; "! " and the reason when running fails; "? " when compiling does. */
static void evaluate(const char *expression, struct buf *out)
{
    _cleanup_(world_freep) struct world *w = world_new();
    _cleanup_(ottl_statement_freep) struct ottl_statement *s = NULL;
    char text[4096];
    snprintf(text, sizeof(text), "give(%s)", expression);
    int r = ottl_statement_parse(bytes_str(text), &rig_log, &s, &w->err);
    if (r == 0 && (r = ottl_statement_run(s, &w->env, NULL)) == 0) {
        show(&given, out);
        return;
    }
    assert_int_equal(r, -EINVAL);
    const char *reason = strstr(w->err.text, ")\": ");
    reason = reason ? reason + 4 : w->err.text;
    buf_printf(out, "%s %s", s ? "!" : "?", reason);
}

struct row {
    const char *text, *want;
};

static void check(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        _cleanup_buf_ struct buf *out = buf_new(0);
        evaluate(rows[i].text, out);
        if (strcmp(buf_str(out), rows[i].want) != 0)
            fail_msg("%s\n  gave   %s\n  wanted %s", rows[i].text, buf_str(out), rows[i].want);
    }
}

static void test_literals(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"nil", "nil"},
        {"\"nil\"", "\"nil\""},
        {"5", "5"},
        {"-5", "-5"},
        {"2.5", "2.5000000000000000"},
        {"true", "true"},
        {"0x0aff", "0x0aff"},
        {"SEVERITY_NUMBER_INFO", "9"},
        {"[1, \"a\", [nil], {\"k\": 2}]", "[1, \"a\", [nil], {k: 2}]"},
        {"{\"a\": 1, \"b\": log.cache[\"i\"], \"a\": 3}", "{a: 3, b: 7}"},
        {"[Tm(1)]", "[time 1]"},
        {"{\"a\": Tm(1)}", "! <Invalid value type time.Time>"},
        {"SEVERITY_NUMBER_INFOO", "? error while parsing arguments for call to \"give\": invalid argument at position 0: enum "
                                  "symbol, SEVERITY_NUMBER_INFOO, not found, did you mean SEVERITY_NUMBER_INFO? (column 6)"},
    };
    check(rows, ARRAY_SIZE(rows));
}

static void test_math(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"1 + 2 * 3", "7"},
        {"(1 + 2) * 3", "9"},
        {"10 - 3 - 2", "5"},
        {"2 * 3 / 4", "1"},
        {"7 / 2", "3"},
        {"-7 / 2", "-3"},
        {"7 / 2.0", "3.5000000000000000"},
        {"1 + 0.5", "1.5000000000000000"},
        {"1.5 * 2", "3.0000000000000000"},
        {"9223372036854775807 + 1", "-9223372036854775808"},
        {"(-9223372036854775807 - 1) / -1", "-9223372036854775808"},
        {"-(-9223372036854775807 - 1)", "-9223372036854775808"},
        {"9223372036854775807 * 2", "-2"},
        {"1 / 0", "! attempted to divide by 0"},
        {"1.5 / 0", "! attempted to divide by 0"},
        {"1 / 0.0", "! attempted to divide by 0"},
        {"-log.cache[\"i\"]", "-7"},
        {"-log.cache[\"d\"]", "-2.5000000000000000"},
        {"+log.cache[\"s\"]", "\"text\""},
        {"-log.cache[\"s\"]", "! unsupported unary minus operation on type string"},
        {"log.cache[\"i\"] + log.cache[\"i\"]", "14"},
        {"log.cache[\"i\"] + log.cache[\"none\"]", "! <nil> must be int64 or float64"},
        {"log.cache[\"none\"] + 1", "! <nil> must be int64, float64, time.Time or time.Duration"},
        {"log.cache[\"s\"] + 1", "! text must be int64, float64, time.Time or time.Duration"},
        {"1 + log.cache[\"s\"]", "! text must be int64 or float64"},
        {"Tm(100) + Dur(5)", "time 105"},
        {"Tm(100) - Dur(5)", "time 95"},
        {"Tm(100) - Tm(30)", "duration 70"},
        {"Dur(5) + Tm(100)", "time 105"},
        {"Dur(5) + Dur(6)", "duration 11"},
        {"Dur(5) - Dur(6)", "duration -1"},
        {"Dur(5) * 2", "! only addition and subtraction supported for time.Time and time.Duration"},
        {"Tm(5) / 2", "! only addition and subtraction supported for time.Time and time.Duration"},
        {"Tm(1) + 7", "! time.Time must be added to time.Duration; found 7 instead"},
        {"Tm(1) - 7", "! time.Time or time.Duration must be subtracted from time.Time; found 7 instead"},
        {"Dur(1) + 7", "! time.Duration must be added to time.Duration or time.Time; found 7 instead"},
        {"Dur(1) - Any(7)", "! time.Duration must be subtracted from time.Duration; found 7 instead"},
        {"1 + Boom()", "! boom"},
        {"Boom() + 1", "! boom"},
    };
    check(rows, ARRAY_SIZE(rows));
}

static void test_index(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"Any(log.cache[\"l\"])[0]", "10"},
        {"Any([1, [2, 3]])[1][1]", "3"},
        {"Any({\"a\": {\"b\": 5}})[\"a\"][\"b\"]", "5"},
        {"Any(log.cache[\"m\"])[Any(\"x\")]", "\"y\""},
        {"Any(log.cache[\"l\"])[log.cache[\"i\"] - 6]", "\"b\""},
        {"Any(log.cache[\"l\"])[2]", "nil"},
        {"Any(0x0102)[1]", "2"},
        {"Any([1])[1]", "! index 1 out of bounds"},
        {"Any([1])[-1]", "! index -1 out of bounds"},
        {"Any({})[\"a\"]", "! key not found in map"},
        {"Any(5)[\"a\"]", "! type int64 does not support string indexing"},
        {"Any(5)[0]", "! type int64 does not support int indexing"},
        {"Any(\"abc\")[0]", "! type string does not support int indexing"},
        {"Any([1])[log.cache[\"none\"]]", "! key expression returned nil, expected an int or string"},
        {"Any([1])[1.5]", "! key expression must evaluate to string or int, got float64"},
    };
    check(rows, ARRAY_SIZE(rows));
}

#define AT "? error while parsing arguments for call to \"give\": invalid argument at position 0: "
#define IN(f) AT "error while parsing arguments for call to \"" f "\": "

static void test_arguments(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"Pair(1)", "[1, nil]"},
        {"Pair(1, 2)", "[1, 2]"},
        {"Pair(first=1, the_other=2)", "[1, 2]"},
        {"Pair(the_other=2, first=1)", "[1, 2]"},
        {"Pair(1, theOther=2)", "[1, 2]"},
        {"Pair(theother=2, first=1)", IN("Pair") "no such parameter: theother, did you mean \"the_other\"? (column 20)"},
        {"Pair(zzz=2, first=1)", IN("Pair") "no such parameter: zzz (column 15)"},
        {"Pair(first=2, 1)", IN("Pair") "unnamed argument used after named argument (column 20)"},
        {"Pair(the_other=2)", IN("Pair") "the argument \"first\" is missing (column 6)"},
        {"Pair()", IN("Pair") "incorrect number of arguments. Expected: 2 Received: 0 (column 6)"},
        {"Pair(1, 2, 3)", IN("Pair") "incorrect number of arguments. Expected: 2 Received: 3 (column 6)"},
        {"Boom(1)", IN("Boom") "incorrect number of arguments. Expected: 0 Received: 1 (column 6)"},
        {"Nope()", AT "undefined function \"Nope\" (column 6)"},
        {"Pare(1)", AT "undefined function \"Pare\" (column 6)"},
        {"Pairr(1)", AT "undefined function \"Pairr\", did you mean \"Pair\"? (column 6)"},
        {"put(1)", AT "converter names must start with an uppercase letter but got 'put' (column 6)"},
        {"Str(log.cache[\"s\"])", "\"text\""},
        {"Str(log.cache[\"i\"])", "! expected string but got int64"},
        {"Str(log.cache[\"none\"])", "! expected string but got nil"},
        {"Str(5)", IN("Str") "invalid argument at position 0: expected string but got int64 (column 10)"},
        {"Str(nil)", IN("Str") "invalid argument at position 0: expected string but got nil (column 10)"},
        {"Str(1 + 1)", "! expected string but got int64"},
        {"Str(Boom())", "! boom"},
        {"StrLike(log.cache[\"i\"])", "\"7\""},
        {"StrLike(true)", "\"true\""},
        {"StrLike(nil)", "nil"},
        {"StrLike(log.cache[\"m\"])", "\"{\"x\":\"y\"}\""},
        {"Int(5)", "5"},
        {"Int(5.0)", IN("Int") "invalid argument at position 0: expected int64 but got float64 (column 10)"},
        {"IntLike(\"-12\")", "-12"},
        {"IntLike(1.9)", "1"},
        {"IntLike(true)", "1"},
        {"IntLike(nil)", "nil"},
        {"IntLike(log.cache[\"s\"])", "! strconv.ParseInt: parsing \"text\": invalid syntax"},
        {"IntLike(log.cache[\"l\"])", "! unsupported type: pcommon.Slice"},
        {"Dbl(1.5)", "1.5000000000000000"},
        {"Dbl(log.cache[\"i\"])", "! expected float64 but got int64"},
        {"DblLike(\"1e3\")", "1000.0000000000000"},
        {"DblLike(3)", "3.0000000000000000"},
        {"DblLike(false)", "0.0000000000000000"},
        {"DblLike(log.cache[\"s\"])", "! strconv.ParseFloat: parsing \"text\": invalid syntax"},
        {"Bool(true)", "true"},
        {"Bool(log.cache[\"i\"])", "! expected bool but got int64"},
        {"BoolLike(\"T\")", "true"},
        {"BoolLike(\"False\")", "false"},
        {"BoolLike(0)", "false"},
        {"BoolLike(0.5)", "true"},
        {"BoolLike(log.cache[\"s\"])", "! strconv.ParseBool: parsing \"text\": invalid syntax"},
        {"Map(log.cache[\"m\"])", "{x: \"y\"}"},
        {"Map({\"a\": log.cache[\"i\"]})", "{a: 7}"},
        {"Map(log.cache[\"l\"])", "! expected pcommon.Map but got pcommon.Slice"},
        {"List([1])", "[1]"},
        {"List(log.cache[\"none\"])", "! expected pcommon.Slice but got nil"},
        {"Time(Tm(3))", "time 3"},
        {"Time(log.cache[\"i\"])", "! expected time but got int64"},
        {"Duration(Dur(3))", "duration 3"},
        {"Duration(Tm(3))", "! expected duration but got time.Time"},
        {"Bytes(\"ab\")", "0x6162"},
        {"Bytes(258)", "0x0000000000000102"},
        {"Bytes(1.0)", "0x3ff0000000000000"},
        {"Bytes(true)", "0x01"},
        {"Bytes(log.cache[\"raw\"])", "0x0102ff"},
        {"Bytes(log.cache[\"l\"])", "! unsupported type: pcommon.Slice"},
        {"LitStr(\"a\")", "\"a\""},
        {"LitStr(log.cache[\"s\"])", IN("LitStr") "invalid argument at position 0: must be a string (column 13)"},
        {"LitInt(3)", "3"},
        {"LitInt(-3)", IN("LitInt") "invalid argument at position 0: must be an int (column 13)"},
        {"LitInt((3))", IN("LitInt") "invalid argument at position 0: must be an int (column 14)"},
        {"LitDbl(3.5)", "3.5000000000000000"},
        {"LitDbl(3)", IN("LitDbl") "invalid argument at position 0: must be a float (column 13)"},
        {"LitBool(true)", "true"},
        {"LitBool(\"true\")", IN("LitBool") "invalid argument at position 0: must be a bool (column 14)"},
        {"Enum(STATUS_CODE_ERROR)", "2"},
        {"Enum(2)", IN("Enum") "invalid argument at position 0: must be an Enum (column 11)"},
        {"Anys([1, log.cache[\"s\"], nil])", "[1, \"text\", nil]"},
        {"Anys(log.cache[\"l\"])", IN("Anys") "invalid argument at position 0: must be a list (column 11)"},
        {"Strs([\"a\", log.cache[\"s\"]])", "[\"a\", \"text\"]"},
        {"Strs([\"a\", log.cache[\"i\"]])", "! expected string but got int64"},
        {"Strs([\"a\", 1])", IN("Strs") "invalid argument at position 0: error while parsing list argument at index 1: "
                                        "expected string but got int64 (column 17)"},
        {"StrLikes([1, nil, log.cache[\"none\"], 0x01])", "[\"1\", nil, nil, \"01\"]"},
        {"StrLikes(log.cache[\"l\"])", "[\"10\", \"b\", \"\", \"AQL/\"]"},
        {"StrLikes(Any([2, true]))", "[\"2\", \"true\"]"},
        {"StrLikes(log.cache[\"none\"])", "[]"},
        {"StrLikes(log.cache[\"s\"])", "! expected a slice, got string"},
        {"LitStrs([\"a\", \"b\"])", "[\"a\", \"b\"]"},
        {"LitStrs([\"a\", 1])", IN("LitStrs") "invalid argument at position 0: error while parsing list argument at index "
                                              "1: must be a string (column 20)"},
        {"TargetMap(log.cache[\"m\"])", "{x: \"y\"}"},
        {"TargetMap(log.cache[\"s\"])", "! expected pcommon.Map but got string"},
        {"TargetMap({})", IN("TargetMap") "invalid argument at position 0: must be a path (column 16)"},
        {"TargetMap((log.cache))", IN("TargetMap") "invalid argument at position 0: must be a path (column 17)"},
        {"Mapper(Str)", "nil"},
        {"Mapper(Stx)", IN("Mapper") "invalid argument at position 0: undefined function \"Stx\", did you mean \"Str\"? (column 13)"},
        {"Mapper(5)", IN("Mapper") "invalid argument at position 0: invalid function name given (column 13)"},
        {"Any(Str)", IN("Any") "invalid argument at position 0: expected a value, not the name of a function (column 10)"},
        {"Prepared(\"x\")", "\"x\""},
        {"Prepared(\"\")", AT "couldn't create function: it is empty (column 6)"},
    };
    check(rows, ARRAY_SIZE(rows));
    assert_int_equal(prepared, released);
}

static void test_conditions(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int want; /* -1: an error while running */
    } rows[] = {
        {"true", 1},
        {"not true", 0},
        {"log.cache[\"i\"] == 7", 1},
        {"log.cache[\"i\"] == 7.0", 1},
        {"log.cache[\"i\"] != \"7\"", 1},
        {"log.cache[\"none\"] == nil", 1},
        {"log.cache[\"none\"] > 1", 0},
        {"log.cache[\"s\"] == \"text\" and log.cache[\"t\"] == true", 1},
        {"log.cache[\"s\"] == \"no\" or log.cache[\"t\"] == true", 1},
        {"not (log.cache[\"s\"] == \"no\" or log.cache[\"t\"] == true)", 0},
        {"Any(true)", 1},
        {"Any(log.cache[\"t\"])", 1},
        {"Any([false, true])[1]", 1},
        {"Any(5)", -1},
        {"Any(nil)", -1},
        {"Boom()", -1},
        {"not Boom()", -1},
        {"Boom() == 1", -1},
        {"1 == Boom()", -1},
        {"Any(false) and Boom()", 0},
        {"Any(true) or Boom()", 1},
        {"Boom() or Any(true)", -1},
        {"Boom() and false", 0}, /* a constant decides before anything runs */
        {"Boom() or 1 == 1", 1},
        {"Any(true) and true", 1},
        {"false or false", 0},
        {"true and true", 1},
        {"false or Any(true) and not false", 1},
        {"[1, 2] == [1, 2]", 1},
        {"{\"a\": 1} == {\"a\": 1}", 1},
        {"log.cache[\"m\"] == {\"x\": \"y\"}", 1},
        {"1 + 1 == 2", 1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(world_freep) struct world *w = world_new();
        _cleanup_(ottl_condition_freep) struct ottl_condition *c = NULL;
        bool got = false;
        if (ottl_condition_parse(bytes_str(rows[i].text), &rig_log, &c, &w->err) < 0)
            fail_msg("%s: %s", rows[i].text, w->err.text);
        assert_true(bytes_eq_str(ottl_condition_text(c), rows[i].text));
        int r = ottl_condition_eval(c, &w->env, &got);
        if (rows[i].want != (r < 0 ? -1 : got))
            fail_msg("%s gave %d %d", rows[i].text, r, got);
    }
}

static void test_where(void **state)
{
    (void)state;
    _cleanup_(world_freep) struct world *w = world_new();
    _cleanup_(ottl_statement_freep) struct ottl_statement *yes = NULL, *no = NULL, *bad = NULL;
    bool ran;
    const char *text = "put(cache[\"a\"], 1) where cache[\"i\"] == 7";
    assert_int_equal(ottl_statement_parse(bytes_str(text), &rig_log, &yes, &w->err), 0);
    assert_true(bytes_eq_str(ottl_statement_text(yes), text));
    assert_int_equal(ottl_statement_context(yes), OTTL_LOG);
    assert_int_equal(ottl_statement_parse(bytes_str("put(log.cache[\"b\"], 1) where cache[\"i\"] == 8"), &rig_log, &no, &w->err), 0);
    assert_int_equal(ottl_statement_parse(bytes_str("boom() where not Boom()"), &rig_log, &bad, &w->err), 0);
    assert_int_equal(ottl_statement_run(yes, &w->env, &ran), 0);
    assert_true(ran);
    assert_int_equal(ottl_statement_run(no, &w->env, &ran), 0);
    assert_false(ran);
    assert_non_null(ottl_map_find(w->env.cache[OTTL_LOG], key("a")));
    assert_null(ottl_map_find(w->env.cache[OTTL_LOG], key("b")));
    assert_int_equal(ottl_statement_run(bad, &w->env, &ran), -EINVAL);
    assert_false(ran);
    assert_string_equal(w->err.text, "boom");
}

/* What a literal list gave may be edited: the next run sees the literal again. */
static void test_literals_are_lent(void **state)
{
    (void)state;
    _cleanup_(world_freep) struct world *w = world_new();
    _cleanup_(ottl_statement_freep) struct ottl_statement *s = NULL;
    assert_int_equal(ottl_statement_parse(bytes_str("put(log.cache[\"r\"], [1, 2])"), &rig_log, &s, &w->err), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ottl_statement_run(s, &w->env, NULL), 0);
        struct ottl_value *r = ottl_map_find(w->env.cache[OTTL_LOG], key("r"));
        assert_int_equal(r->list->items[0].i, 1);
        r->list->items[0].i = 99;
    }
}

static void test_statement_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
        int column;
    } rows[] = {
        {"frob(log.body)", "unable to parse OTTL statement \"frob(log.body)\": undefined function \"frob\" (column 1)", 1},
        {"  pit(log.body, 1)",
         "unable to parse OTTL statement \"  pit(log.body, 1)\": undefined function \"pit\", did you mean \"put\"? (column 3)", 3},
        {"metric_only()", "unable to parse OTTL statement \"metric_only()\": undefined function \"metric_only\" in the log context "
                          "(column 1)", 1},
        {"Put(log.body, 1)", "unable to parse OTTL statement \"Put(log.body, 1)\": editor names must start with a lowercase "
                             "letter but got 'Put' (column 1)", 1},
        {"put(log.body, 1)[\"x\"]", "unable to parse OTTL statement \"put(log.body, 1)[\\\"x\\\"]\": only paths and converters "
                                    "may be indexed, not editors, but got put (column 1)", 1},
        {"put(span.name, 1)", "unable to parse OTTL statement \"put(span.name, 1)\": error while parsing arguments for call to "
                              "\"put\": invalid argument at position 0: context \"span\" from path \"span.name\" is not valid, it "
                              "must be replaced by one of: \"resource\", \"scope\", \"log\" (column 5)", 5},
        {"put(\n  log.body,\n  Nope())", "unable to parse OTTL statement \"put(\\n  log.body,\\n  Nope())\": error while parsing "
                                         "arguments for call to \"put\": invalid argument at position 1: undefined function "
                                         "\"Nope\" (line 3, column 3)", 3},
        {"put(log.body, ", "unable to parse OTTL statement \"put(log.body, \": statement has invalid syntax at 1:15: expected a value",
         15},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct ottl_statement *s;
        struct err e;
        assert_int_equal(ottl_statement_parse(bytes_str(rows[i].text), &rig_log, &s, &e), -EINVAL);
        assert_string_equal(e.text, rows[i].want);
        assert_int_equal(e.column, rows[i].column);
    }
}

/* A very long text is cut in the error, between two characters. */
static void test_long_text_in_error(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *text = buf_new(0);
    struct ottl_statement *s;
    struct err e;
    buf_append_str(text, "put(log.body, \"");
    for (int i = 0; i < 1000; i++)
        buf_append_str(text, "\xe2\x82\xac");
    buf_append_str(text, "\", Nope())");
    assert_int_equal(ottl_statement_parse(buf_bytes(text), &rig_log, &s, &e), -EINVAL);
    assert_non_null(strstr(e.text, "\xe2\x82\xac\xe2\x80\xa6\": error while parsing"));
    assert_non_null(strstr(e.text, "Expected: 2 Received: 3"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_literals),      cmocka_unit_test(test_math),
        cmocka_unit_test(test_index),         cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_conditions),    cmocka_unit_test(test_where),
        cmocka_unit_test(test_literals_are_lent), cmocka_unit_test(test_statement_mistakes),
        cmocka_unit_test(test_long_text_in_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
