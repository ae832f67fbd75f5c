/* What texts say: the tree of each as nested lists, or the reason and the place where it makes no sense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ottl/ast.h"
#include "tests/unit/ottl_rig.h"

static void print(const struct ottl_node *n, struct buf *out);

static void print_children(const struct ottl_node *n, struct buf *out)
{
    for (const struct ottl_node *c = n->first; c; c = c->next) {
        buf_append_str(out, " ");
        if (c->op)
            buf_printf(out, "%c ", c->op);
        if (c->label.data)
            buf_printf(out, "%.*s=", (int)c->label.len, c->label.data);
        print(c, out);
    }
}

static void print_name(const struct ottl_node *n, struct buf *out)
{
    buf_printf(out, "%.*s", (int)n->name.len, n->name.data);
    for (const struct ottl_node *k = n->keys ? n->keys->first : NULL; k; k = k->next) {
        buf_append_str(out, "[");
        print(k, out);
        buf_append_str(out, "]");
    }
}

static void print_path(const struct ottl_node *n, struct buf *out)
{
    for (const struct ottl_node *c = n->first; c; c = c->next) {
        buf_append_str(out, c == n->first ? "" : ".");
        print_name(c, out);
    }
}

static void print_list(const char *word, const struct ottl_node *n, struct buf *out)
{
    buf_printf(out, "(%s", word);
    print_children(n, out);
    buf_append_str(out, ")");
}

static void print(const struct ottl_node *n, struct buf *out)
{
    static const char *const ops[] = {"==", "!=", "<", "<=", ">", ">="};
    switch (n->kind) {
    case OTTL_N_LITERAL: show(&n->value, out); break;
    case OTTL_N_ENUM: buf_printf(out, "enum:%.*s", (int)n->name.len, n->name.data); break;
    case OTTL_N_FUNCTION: buf_printf(out, "function:%.*s", (int)n->name.len, n->name.data); break;
    case OTTL_N_PATH: print_path(n, out); break;
    case OTTL_N_SEGMENT: print_name(n, out); break;
    case OTTL_N_CALL:
        buf_append_str(out, "(");
        print_name(n, out);
        print_children(n, out);
        buf_append_str(out, ")");
        break;
    case OTTL_N_LIST: print_list("list", n, out); break;
    case OTTL_N_MAP: print_list("map", n, out); break;
    case OTTL_N_MINUS: print_list("minus", n, out); break;
    case OTTL_N_MATH: print_list("math", n, out); break;
    case OTTL_N_COMPARE: print_list(ops[n->compare], n, out); break;
    case OTTL_N_NOT: print_list("not", n, out); break;
    case OTTL_N_AND: print_list("and", n, out); break;
    case OTTL_N_OR: print_list("or", n, out); break;
    }
}

/* The tree, or "column: reason". */
static void answer(struct bytes text, bool statement, struct buf *out)
{
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    struct ottl_ast ast;
    struct err e;
    int r = ottl_parse(a, text, statement, &ast, &e);
    if (r < 0) {
        assert_int_equal(r, -EINVAL);
        buf_printf(out, "%s", e.text);
        return;
    }
    if (ast.call)
        print(ast.call, out);
    if (ast.condition) {
        buf_append_str(out, ast.call ? " where " : "");
        print(ast.condition, out);
    }
}

struct row {
    const char *text, *want;
};

static void check(const struct row *rows, size_t n, bool statements)
{
    for (size_t i = 0; i < n; i++) {
        _cleanup_buf_ struct buf *out = buf_new(0);
        answer(bytes_str(rows[i].text), statements, out);
        if (strcmp(buf_str(out), rows[i].want) != 0)
            fail_msg("%s\n  gave   %s\n  wanted %s", rows[i].text, buf_str(out), rows[i].want);
    }
}

static void test_values(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"f()", "(f)"},
        {"f(nil, true, false)", "(f nil true false)"},
        {"f(0, 42, 9223372036854775807)", "(f 0 42 9223372036854775807)"},
        {"f(010, 00, 0777777777777777777777)", "(f 8 0 9223372036854775807)"},
        {"f(1.5, .5, 2., 1.5e3, 2.e-1)", "(f 1.5000000000000000 0.50000000000000000 2.0000000000000000 "
                                         "1500.0000000000000 0.20000000000000001)"},
        {"f(-1, +1, -1.5, - 2)", "(f -1 1 -1.5000000000000000 -2)"},
        {"f(0x01ff, 0xAB)", "(f 0x01ff 0xab)"},
        {"f(\"\", \"a b\")", "(f \"\" \"a b\")"},
        {"f(SPAN_KIND_SERVER, A1)", "(f enum:SPAN_KIND_SERVER enum:A1)"},
        {"f([], [1], [1, [2, \"x\"]])", "(f (list) (list 1) (list 1 (list 2 \"x\")))"},
        {"f({})", "(f (map))"},
        {"f({\"a\": 1, \"b\": {\"c\": []},})", "(f (map a=1 b=(map c=(list))))"},
        {"f({\"a\": 1 \"b\": 2})", "(f (map a=1 b=2))"},
        {"f(name)", "(f name)"},
        {"f(a.b_1.c)", "(f a.b_1.c)"},
        {"f(attributes[\"k\"][0][x.y])", "(f attributes[\"k\"][0][x.y])"},
        {"f(a[\"k\"].b[1].c)", "(f a[\"k\"].b[1].c)"},
        {"f(a[Lower(b)][-1][1.5])", "(f a[(Lower b)][-1][1.5000000000000000])"},
        {"f(Split(a, \",\")[0])", "(f (Split[0] a \",\"))"},
        {"f(IsMatch(ParseJSON(x)[\"a\"], \"b\"))", "(f (IsMatch (ParseJSON[\"a\"] x) \"b\"))"},
        {"f(a, value=1, b_cD = 2)", "(f a value=1 b_cD=2)"},
        {"f(a, IsMatch, SHA256)", "(f a function:IsMatch enum:SHA256)"},
        {"f(Is Match(a))", "(f (IsMatch a))"},
        {" \t\n\r\f f ( a ,\n b )", "(f a b)"},
        {"fooBar(nothing, notx, andy, orx, nilx, trueish)", "(fooBar nothing notx andy orx nilx trueish)"},
        {"f(where) where where == 1", "(f where) where (== where 1)"},
        {"f(a)[\"k\"]", "(f[\"k\"] a)"},
        {"Set(a)", "(Set a)"},
    };
    check(rows, ARRAY_SIZE(rows), true);
}

static void test_strings(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"f(\"a\\\"b\\\\c\")", "(f \"a\"b\\c\")"},
        {"f(\"\\n\\t\\r\\a\\b\\f\\v\")", "(f \"\n\t\r\a\b\f\v\")"},
        {"f(\"\\x41\\101\\u00e9\\U0001f600\")", "(f \"AA\xc3\xa9\xf0\x9f\x98\x80\")"},
        {"f(\"\xc3\xa9\xe2\x82\xac\")", "(f \"\xc3\xa9\xe2\x82\xac\")"},
        {"f(\"\\xff-\\377\")", "(f \"\xc3\xbf-\xc3\xbf\")"}, /* code points, not bytes */
        {"f(\"a\nb\")", "(f \"a\nb\")"},
        {"f(\"\xff\")", "(f \"\xef\xbf\xbd\")"},
        {"f(\"a\\qb\")", "statement has invalid syntax at 1:5 near `\\qb\"`: invalid quoted string: no such escape (a "
                         "backslash is written \\\\)"},
        {"f(\"\\'\")", "statement has invalid syntax at 1:4 near `\\'\"`: invalid quoted string: no such escape (a "
                       "backslash is written \\\\)"},
        {"f(\"\\x4\")", "statement has invalid syntax at 1:4 near `\\x4\"`: invalid quoted string: no such escape (a "
                        "backslash is written \\\\)"},
        {"f(\"\\ud800\")", "statement has invalid syntax at 1:4 near `\\ud800\"`: invalid quoted string: no such escape "
                           "(a backslash is written \\\\)"},
        {"f(\"\\400\")", "statement has invalid syntax at 1:4 near `\\400\"`: invalid quoted string: no such escape (a "
                         "backslash is written \\\\)"},
        {"f(\"\xc3\xa9\", \"\\U00110000\")", "statement has invalid syntax at 1:9 near `\\U00110000\"`: invalid quoted "
                                             "string: no such escape (a backslash is written \\\\)"},
        {"f(\"abc)", "statement has invalid syntax at 1:3 near `\"abc)`: the string has no end"},
        {"f(\"abc\\\")", "statement has invalid syntax at 1:3 near `\"abc\\\")`: the string has no end"},
    };
    check(rows, ARRAY_SIZE(rows), true);
}

static void test_arithmetic(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"f(1 + 2)", "(f (math 1 + 2))"},
        {"f(1-2+a)", "(f (math 1 - 2 + a))"},
        {"f(1 + 2 * 3 - 4 / 5 * 6)", "(f (math 1 + (math 2 * 3) - (math 4 / 5 * 6)))"},
        {"f((1 + 2) * 3)", "(f (math (math 1 + 2) * 3))"},
        {"f(-(1 + 2))", "(f (minus (math 1 + 2)))"},
        {"f(-a * +b)", "(f (math (minus a) * b))"},
        {"f(-(1))", "(f (minus 1))"},
        {"f(1 - -1)", "(f (math 1 - -1))"},
        {"f(A(1) + 2.5)", "(f (math (A 1) + 2.5000000000000000))"},
        {"f(((((a)))))", "(f a)"},
    };
    check(rows, ARRAY_SIZE(rows), true);
}

static void test_conditions(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"true", "true"},
        {"not false", "(not false)"},
        {"A(b)", "(A b)"},
        {"a == 1", "(== a 1)"},
        {"a != nil", "(!= a nil)"},
        {"a < 1 and b <= 2 and c > 3 or d >= 4", "(or (and (< a 1) (<= b 2) (> c 3)) (>= d 4))"},
        {"a == 1 or b == 2 and not c == 3", "(or (== a 1) (and (== b 2) (not (== c 3))))"},
        {"(a == 1 or b == 2) and not (c == 3)", "(and (or (== a 1) (== b 2)) (not (== c 3)))"},
        {"(((true)))", "true"},
        {"(a) == (1)", "(== a 1)"},
        {"(a + 1) * 2 == 3", "(== (math (math a + 1) * 2) 3)"},
        {"((a + 1) == 3)", "(== (math a + 1) 3)"},
        {"(A(b)) and true", "(and (A b) true)"},
        {"A(b) == true", "(== (A b) true)"},
        {"true == false", "(== true false)"},
        {"A(b)[\"x\"]", "(A[\"x\"] b)"},
        {"a[\"x\"] == [1, 2] and {\"k\": 1} == b", "(and (== a[\"x\"] (list 1 2)) (== (map k=1) b))"},
        {"a", "condition has invalid syntax at 1:2: expected a comparison such as \"==\""},
        {"1", "condition has invalid syntax at 1:2: expected a comparison such as \"==\""},
        {"(true) == true", "condition has invalid syntax at 1:8 near `==`: expected \"and\", \"or\" or the end"},
        {"not not true", "condition has invalid syntax at 1:5 near `not`: expected a value"},
        {"true and", "condition has invalid syntax at 1:9: expected a value"},
        {"a == 1 b == 2", "condition has invalid syntax at 1:8 near `b`: expected \"and\", \"or\" or the end"},
        {"(a == 1", "condition has invalid syntax at 1:8: expected \")\""},
        {"(a == 1 and (b + 2 == 3)", "condition has invalid syntax at 1:25: expected \")\""},
        {"", "condition has invalid syntax at 1:1: expected a value"},
        {"a = 1", "condition has invalid syntax at 1:3 near `=`: expected a comparison such as \"==\""},
        {"a ! 1", "condition has invalid syntax at 1:3 near `! 1`: no word of the language begins like this"},
    };
    check(rows, ARRAY_SIZE(rows), false);
}

static void test_mistakes(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", "statement has invalid syntax at 1:1: expected the name of an editor, such as \"set\""},
        {"set", "statement has invalid syntax at 1:4: expected \"(\""},
        {"set(name, ", "statement has invalid syntax at 1:11: expected a value"},
        {"set(name", "statement has invalid syntax at 1:9: expected \",\" or \")\""},
        {"set(name,)", "statement has invalid syntax at 1:10 near `)`: expected a value"},
        {"set(name 1)", "statement has invalid syntax at 1:10 near `1`: expected \",\" or \")\""},
        {"set(name, 08)", "statement has invalid syntax at 1:11 near `08`: not a 64-bit integer"},
        {"set(a, 9223372036854775808)",
         "statement has invalid syntax at 1:8 near `922337203685`: not a 64-bit integer"},
        {"set(a, 1.0e400)", "statement has invalid syntax at 1:8 near `1.0e400`: not a 64-bit float"},
        {"set(a, 1e5)", "statement has invalid syntax at 1:9 near `e5`: expected \",\" or \")\""},
        {"set(a, 0x1)", "statement has invalid syntax at 1:8 near `0x1`: byte literals must have an even number of "
                        "hexadecimal digits"},
        {"set(a, --1)",
         "statement has invalid syntax at 1:9 near `-`: expected a number, a path, a converter or \"(\""},
        {"set(a, -\"x\")",
         "statement has invalid syntax at 1:9 near `\"x\"`: expected a number, a path, a converter or \"(\""},
        {"set(a, nil + 1)", "statement has invalid syntax at 1:12 near `+`: expected \",\" or \")\""},
        {"set(a, [1,])", "statement has invalid syntax at 1:11 near `]`: expected a value"},
        {"set(a, {1: 2})", "statement has invalid syntax at 1:9 near `1`: expected a string as key, or \"}\""},
        {"set(a, {\"k\" 2})", "statement has invalid syntax at 1:13 near `2`: expected \":\""},
        {"set(a.1, 2)", "statement has invalid syntax at 1:6 near `.1`: expected \",\" or \")\""},
        {"set(a.B, 2)", "statement has invalid syntax at 1:7 near `B`: expected the name of a field"},
        {"set(a[0+1], 2)", "statement has invalid syntax at 1:8 near `+`: expected \"]\""},
        {"set(a[], 2)", "statement has invalid syntax at 1:7 near `]`: expected a number, a path, a converter or \"(\""},
        {"set(Abc, 1) x", "statement has invalid syntax at 1:13 near `x`: expected the end, or \"where\" and a condition"},
        {"set([Abc], 1)", "statement has invalid syntax at 1:6 near `A`: expected an enum symbol, or \"(\" behind the name "
                          "of a converter"},
        {"set(a, 1) where", "statement has invalid syntax at 1:16: expected a value"},
        {"set(a, 1) where true x", "statement has invalid syntax at 1:22 near `x`: expected the end, or \"where\" and a condition"},
        {"set(a,\n  b)\n where é", "statement has invalid syntax at 3:8 near `é`: no word of the language begins like this"},
        {"set(\xe2\x82\xac)", "statement has invalid syntax at 1:5 near `\xe2\x82\xac)`: no word of the language begins like this"},
        {"set(a, \"\xc3\xa9\", $)", "statement has invalid syntax at 1:13 near `$)`: no word of the language begins like this"},
        {"set(a, (x) => x)", "statement has invalid syntax at 1:8 near `(`: lambda expressions are not supported"},
        {"set(a, (_, y) => y == 1)", "statement has invalid syntax at 1:8 near `(`: lambda expressions are not supported"},
        {"set(a, _x)", "statement has invalid syntax at 1:8 near `_x)`: no word of the language begins like this"},
    };
    check(rows, ARRAY_SIZE(rows), true);
}

/* `open` n times, `middle`, `close` n times. */
static void nested(struct buf *out, const char *open, const char *middle, const char *close, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        buf_append_str(out, open);
    buf_append_str(out, middle);
    for (unsigned i = 0; i < n; i++)
        buf_append_str(out, close);
}

static int parse_nested(const char *head, const char *open, const char *middle, const char *close, const char *tail,
                        unsigned n, bool statement)
{
    _cleanup_buf_ struct buf *text = buf_new(0);
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    struct ottl_ast ast;
    struct err e;
    buf_append_str(text, head);
    nested(text, open, middle, close, n);
    buf_append_str(text, tail);
    int r = ottl_parse(a, buf_bytes(text), statement, &ast, &e);
    if (r < 0)
        assert_non_null(strstr(e.text, "nested more than 64 levels deep"));
    return r;
}

static void test_depth(void **state)
{
    (void)state;
    static const struct {
        const char *open, *middle, *close;
    } kinds[] = {{"(", "1", ")"},         {"[", "1", "]"},      {"{\"k\":", "1", "}"},
                 {"A(", "1", ")"},        {"a[b[", "1", "]]"}, {"-(", "1", ")"},
                 {"A([{\"k\":(", "1", ")}])"}};
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        assert_int_equal(parse_nested("f(", kinds[i].open, kinds[i].middle, kinds[i].close, ")", 15, true), 0);
        assert_int_equal(parse_nested("f(", kinds[i].open, kinds[i].middle, kinds[i].close, ")", 100, true), -EINVAL);
        assert_int_equal(parse_nested("f(", kinds[i].open, kinds[i].middle, "", "", 100000, true), -EINVAL);
    }
    assert_int_equal(parse_nested("", "(", "a == 1", ")", "", 60, false), 0);
    assert_int_equal(parse_nested("", "not (", "a == 1", ")", "", 60, false), 0);
    assert_int_equal(parse_nested("", "not (", "a == 1", ")", "", 65, false), -EINVAL);
    assert_int_equal(parse_nested("", "(true and (", "a == 1", "))", "", 100000, false), -EINVAL);
}

/* Long is not deep: chains are loops. */
static void test_long(void **state)
{
    (void)state;
    assert_int_equal(parse_nested("f(", "1+", "1", "", ")", 100000, true), 0);
    assert_int_equal(parse_nested("f(", "1*2-", "1", "", ")", 100000, true), 0);
    assert_int_equal(parse_nested("f([", "1,", "1", "", "])", 100000, true), 0);
    assert_int_equal(parse_nested("f(a", "[0]", "", "", ")", 100000, true), 0);
    assert_int_equal(parse_nested("f(a", ".b", "", "", ")", 100000, true), 0);
    assert_int_equal(parse_nested("", "a==1 and ", "true", "", "", 100000, false), 0);
    assert_int_equal(parse_nested("", "(a==1) or ", "true", "", "", 100000, false), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),   cmocka_unit_test(test_strings), cmocka_unit_test(test_arithmetic), cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_mistakes), cmocka_unit_test(test_depth),   cmocka_unit_test(test_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
