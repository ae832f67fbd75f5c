/* Times, ids and trace states in console JSON; what a prefix is; where objects may begin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/console_parts.h"

static const struct {
    const char *text;
    uint64_t ns;
    bool bad;
} times[] = {
    {"2026-11-29T13:10:59.194822Z", 1795957859194822000, false},
    {"2026-01-01T00:00:00.123456Z", 1767225600123456000, false},
    {"1970-01-01T00:00:00.000000Z", 0, false},
    {"1970-01-01T00:00:00.000000001Z", 1, false},
    {"1970-01-01T00:00:00.0000000019Z", 1, false},
    {"2023-11-14T22:13:20Z", 1700000000000000000, false},
    {"2023-11-14 22:13:20", 1700000000000000000, false},
    {"2023-11-14T22:13:20.5+00:00", 1700000000500000000, false},
    {"2023-11-14T23:13:20+01:00", 1700000000000000000, false},
    {"2023-11-14T16:43:20-0530", 1700000000000000000, false},
    {"2024-02-29T00:00:00Z", 1709164800000000000, false},
    {"2000-03-01T00:00:00Z", 951868800000000000, false},
    {"2554-07-21T23:34:33.709551615Z", UINT64_MAX, false},
    {"2554-07-21T23:34:33.709551616Z", 0, true},
    {"1969-12-31T23:59:59Z", 0, true},
    {"9999-12-31T23:59:59Z", 0, true},
    {"2026-13-01T00:00:00Z", 0, true},
    {"2026-00-01T00:00:00Z", 0, true},
    {"2026-01-32T00:00:00Z", 0, true},
    {"2026-01-01T24:00:00Z", 0, true},
    {"2026-01-01T00:60:00Z", 0, true},
    {"2026-01-01T00:00:00.Z", 0, true},
    {"2026-01-01T00:00:00ZZ", 0, true},
    {"2026-01-01T00:00:00+1", 0, true},
    {"2026-01-01", 0, true},
    {"26-01-01T00:00:00Z", 0, true},
    {"yesterday", 0, true},
    {"", 0, true},
};

static void test_times(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
        uint64_t ns = 77;
        int r = console_time(bytes_str(times[i].text), &ns);
        if ((r < 0) != times[i].bad || (r == 0 && ns != times[i].ns))
            fail_msg("%s: %d, %lu", times[i].text, r, ns);
    }
}

static const struct {
    const char *text, *hex; /* NULL: refused */
    size_t size;
    bool decimal;
} ids[] = {
    {"0x0af7651916cd43dd8448eb211c80319c", "0af7651916cd43dd8448eb211c80319c", 16, false},
    {"0AF7651916CD43DD8448EB211C80319C", "0af7651916cd43dd8448eb211c80319c", 16, false},
    {"0Xb7ad6b7169203331", "b7ad6b7169203331", 8, false},
    {"b7ad6b7169203331", "b7ad6b7169203331", 8, false},
    {"0x1f", "000000000000001f", 8, false},
    {"", "0000000000000000", 8, false},
    {"0x", "0000000000000000", 8, false},
    {"0x0b7ad6b7169203331", NULL, 8, false},
    {"b7ad6b716920333g", NULL, 8, false},
    {"0x0af7651916cd43dd8448eb211c80319c00", NULL, 16, false},
    {"-1", NULL, 8, false},
    {"0", "0000000000000000", 8, true},
    {"13236045131103286065", "b7afe0eb4e733331", 8, true},
    {"18446744073709551615", "ffffffffffffffff", 8, true},
    {"18446744073709551616", NULL, 8, true},
    {"18446744073709551616", "00000000000000010000000000000000", 16, true},
    {"340282366920938463463374607431768211455", "ffffffffffffffffffffffffffffffff", 16, true},
    {"340282366920938463463374607431768211456", NULL, 16, true},
    {"1.5", NULL, 16, true},
    {"-1", NULL, 16, true},
    {"", NULL, 16, true},
};

static void test_ids(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        uint8_t id[16];
        char hex[33] = "";
        int r = (ids[i].decimal ? console_decimal_id : console_hex_id)(bytes_str(ids[i].text),
                                                                       ids[i].size, id);
        for (size_t k = 0; r == 0 && k < ids[i].size; k++)
            snprintf(hex + 2 * k, 3, "%02x", id[k]);
        if ((r == 0) != (ids[i].hex != NULL) || (r == 0 && strcmp(hex, ids[i].hex) != 0))
            fail_msg("%s: %d, %s", ids[i].text, r, hex);
    }
}

static const struct {
    const char *repr, *want;
} states[] = {
    {"[]", ""},
    {"['{key=vendor, value=x}', '{key=k2, value=y}']", "vendor=x,k2=y"},
    {"['{key=k, value=v}']", "k=v"},
    {"[\"{key=q, value=it's}\"]", "q=it's"},
    {"['{key=d, value=a\"b}']", "d=a\"b"},
    {"['{key=both, value=a\\'b\"c\\\\ d}']", "both=a'b\"c\\ d"},
    {"['{key=e, value=}]}', '{key=f, value=a, value=b}']", "e=}],f=a, value=b"},
    {"['{key=a@b, value=1=2}']", "a@b=1=2"},
    {"k=v,k2=v2", "k=v,k2=v2"},
    {"['{key=k, value=v}'", "['{key=k, value=v}'"},
    {"['nonsense']", "['nonsense']"},
    {"['']", "['']"},
    {"['{key=}']", "['{key=}']"},
    {"['{key=k, value=v}'] and more", "['{key=k, value=v}'] and more"},
    {"['unclosed", "['unclosed"},
    {"[1, 2]", "[1, 2]"},
    {"", ""},
};

static void test_trace_states(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
        _cleanup_buf_ struct buf *out = buf_new(0);
        assert_int_equal(console_trace_state(bytes_str(states[i].repr), out), 0);
        assert_string_equal(buf_str(out), states[i].want);
    }
}

static const struct {
    const char *raw, *text, *name;
} lines[] = {
    {"plain\n", "plain", ""},
    {"plain\r\n", "plain", ""},
    {"", "", ""},
    {"\n", "", ""},
    {"(policy_model) {\n", "{", "policy_model"},
    {"(a b-c.d) x\r\n", "x", "a b-c.d"},
    {"(a)     \"indented\"\n", "    \"indented\"", "a"},
    {"(a)x\n", "(a)x", ""},
    {"() x\n", "() x", ""},
    {"(a\n", "(a", ""},
    {"((a) x\n", "((a) x", ""},
    {"(say \"hi\") x\n", "(say \"hi\") x", ""},
    {"\x1b[36m(a)\x1b[0m {\"k\": 1}\x1b[0m\n", "{\"k\": 1}", "a"},
    {"\x1b[1;32mINFO\x1b[m: \x1b]8;;http://x\x1b\\link\x1b]8;;\a!\n", "INFO: link!", ""},
    {"\x1b[", "", ""},
    {"\x1b", "", ""},
    {"x\x1b(By\n", "xBy", ""},
};

static void test_lines(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *scratch = buf_new(0);
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        struct console_line l;
        assert_int_equal(console_line_read(bytes_str(lines[i].raw), scratch, &l), 0);
        if (!bytes_eq_str(l.text, lines[i].text) || !bytes_eq_str(l.name, lines[i].name))
            fail_msg("%s: \"%.*s\" (%.*s)", lines[i].raw, (int)l.text.len, l.text.data,
                     (int)l.name.len, l.name.data);
    }
}

static const struct {
    const char *text, *want; /* of each place: head|name|tail, or head|name|{$ */
} starts[] = {
    {"no brace", ""},
    {"{\"name\": 1}", ""},
    {"x{\"name\": 1}", "x||{\"name\": 1};"},
    {"x{ \"body\": 1}", "x||{ \"body\": 1};"},
    {"x{\"other\": 1}", ""},
    {"x (srv) {\"name\": 1}", "x |srv|{\"name\": 1};"},
    {"x (not a prefix){\"name\": 1}", "x (not a prefix)||{\"name\": 1};"},
    {"half \"0xab{", "half \"0xab||{$;"},
    {"    \"member\": {", ""},
    {"half(srv) {  ", "half|srv|{$;"},
    {"a{\"name\": {\"resource_metrics\": [", "a||{\"name\": {\"resource_metrics\": [;"
                                             "a{\"name\": ||{\"resource_metrics\": [;"},
};

static void test_starts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
        _cleanup_buf_ struct buf *got = buf_new(0);
        struct console_start s;
        size_t at = 0;
        while (console_find_start(bytes_str(starts[i].text), &at, &s))
            buf_printf(got, "%.*s|%.*s|%.*s;", (int)s.head.len, s.head.data, (int)s.name.len,
                       s.name.data, s.lone ? 2 : (int)s.tail.len,
                       s.lone ? "{$" : (const char *)s.tail.data);
        assert_string_equal(buf_str(got), starts[i].want);
    }
}

static const struct {
    const char *text;
    enum cursor_answer answer;
    size_t used;
} texts[] = {
    {"{", CURSOR_MORE, 1},
    {" {}x", CURSOR_DONE, 3},
    {"{\"a\": [1, 2.5e+3, -1, true, false, null, NaN, Infinity, -Infinity, \"\\u00e9\\n\", {}, "
     "[]]}",
     CURSOR_DONE, 87},
    {"{\"a\": \"half", CURSOR_MORE, 11},
    {"{\"a\": \"half\\", CURSOR_MORE, 12},
    {"{\"a\": \"half\\u00", CURSOR_MORE, 15},
    {"{\"a\": tr", CURSOR_MORE, 8},
    {"{\"a\": 12", CURSOR_MORE, 8},
    {"[", CURSOR_BAD, 0},
    {"{'a'", CURSOR_BAD, 1},
    {"{\"a\" 1", CURSOR_BAD, 5},
    {"{\"a\": }", CURSOR_BAD, 6},
    {"{\"a\": 1,}", CURSOR_BAD, 8},
    {"{\"a\": [1,]", CURSOR_BAD, 9},
    {"{\"a\": [1}", CURSOR_BAD, 8},
    {"{\"a\": 1]", CURSOR_BAD, 7},
    {"{\"a\": trux", CURSOR_BAD, 9},
    {"{\"a\": \"\n", CURSOR_BAD, 7},
    {"{\"a\": \"\\x", CURSOR_BAD, 8},
    {"{\"a\": \"\\u00g", CURSOR_BAD, 11},
    {"{\"a\": x", CURSOR_BAD, 6},
};

/* The answer is the same for the whole and byte by byte. */
static void test_cursor(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct console_cursor whole = {0}, bits = {0};
        struct bytes t = bytes_str(texts[i].text);
        size_t used, n = 0, step = 0;
        enum cursor_answer a = console_cursor_read(&whole, t, &used), b = CURSOR_MORE;
        while (b == CURSOR_MORE && n < t.len) {
            b = console_cursor_read(&bits, bytes_of(t.data + n, 1), &step);
            n += step;
        }
        if (a != texts[i].answer || used != texts[i].used || b != a || n != used)
            fail_msg("%s: %u at %zu, bytewise %u at %zu", texts[i].text, a, used, b, n);
    }
}

static void test_cursor_depth(void **state)
{
    (void)state;
    struct console_cursor c = {0};
    _cleanup_buf_ struct buf *deep = buf_new(0);
    size_t used;
    buf_append_str(deep, "{\"a\":");
    for (int i = 0; i < CURSOR_MAX_DEPTH; i++)
        buf_putc(deep, '[');
    assert_int_equal(console_cursor_read(&c, buf_bytes(deep), &used), CURSOR_BAD);
    assert_int_equal(used, deep->len - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_trace_states), cmocka_unit_test(test_lines),
        cmocka_unit_test(test_starts),       cmocka_unit_test(test_cursor),
        cmocka_unit_test(test_cursor_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
