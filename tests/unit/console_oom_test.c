/* Every allocation of the console reader fails once: nothing is lost or found twice, nothing leaks.
 */
#include "console_rig.h"
#include "tests/unit/oom.h"

static const char stream[] =
    "(srv) {\"name\": \"\\u00e9\", \"context\": {\"trace_id\": \"0x01\", \"span_id\": \"0x02\", "
    "\"trace_state\": \"['{key=a, value=b}']\"}, \"kind\": \"SpanKind.INTERNAL\", \"resource\": "
    "{\"attributes\": {\"a\": [1, {}]}}}\n"
    "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":[{\"name\":\"o\"}"
    "]"
    "}]}]}\n"
    "(x) {\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":[{\"name\":"
    "\"named\"}]}]}]}\n"
    "\x1b[1mcolour\x1b[0m {\n"
    "{\n    \"body\": \"block\",\n"
    "{\"resource_metrics\": [{\"resource\": {}, \"scope_metrics\": [{\"metrics\": [{\"name\": "
    "\"m\", "
    "\"data\": {\"data_points\": [{\"value\": 1}]}}]}]}]}\n"
    "plain\n"
    "    \"observed_timestamp\": null\n}\n"
    "{\"body\": \"cut{\"body\": \"whole\", \"observed_timestamp\": null}\n"
    "\", \"observed_timestamp\": null}\n"
    "{\"body\": \"one\", \"observed_timestamp\": null}{\"body\": \"two\", \"observed_timestamp\": "
    "null}\n{\n    \"body\": \"no line end\",\n    \"observed_timestamp\": null\n}";

static const char want_records[] =
    "S(\xc3\xa9@srv)S(o)S(named@x)M(m)L(block)L(whole)L(cut)L(one)L(two)L(no line end)";

/* The sink of the test allocates, too; that is not what is tested. */
static int safe_telemetry(void *ctx, struct batch *b)
{
    unsigned left = fail_in;
    fail_in = 0;
    int r = note_telemetry(ctx, b);
    fail_in = left;
    return r;
}

static int safe_plain(void *ctx, struct bytes line)
{
    unsigned left = fail_in;
    fail_in = 0;
    int r = note_plain(ctx, line);
    fail_in = left;
    return r;
}

/* Reads the stream in pieces, again where memory was short. Returns how often it was. */
static unsigned read_stream(struct notes *n, unsigned fail_at, size_t step)
{
    const struct console_sink sink = {safe_telemetry, safe_plain, n};
    struct console_reader *r = console_reader_new(&sink, 0);
    struct bytes text = bytes_str(stream);
    unsigned failures = 0;
    int e;
    fail_in = fail_at;
    while (text.len) {
        size_t used, len = text.len < step ? text.len : step;
        e = console_feed(r, bytes_of(text.data, len), &used);
        assert_true(e == 0 ? used == len : e == -ENOMEM && used <= len);
        failures += e < 0;
        text = bytes_of(text.data + used, text.len - used);
    }
    while ((e = console_flush(r, true)) < 0 || (e = console_flush(r, false)) < 0) {
        assert_int_equal(e, -ENOMEM);
        failures++;
    }
    fail_in = 0;
    console_reader_free(r);
    return failures;
}

/* The records, sorted by signal but else in their order. */
static void assert_records(struct notes *n, unsigned at)
{
    for (const char *p = want_records; *p;) {
        const char *end = strchr(p, ')') + 1;
        _cleanup_buf_ struct buf *one = buf_new(0);
        buf_append(one, p, (size_t)(end - p));
        const char *found = strstr(buf_str(n->records), buf_str(one));
        if (!found || strstr(found + 1, buf_str(one)))
            fail_msg("allocation %u fails: %s in %s", at, buf_str(one), buf_str(n->records));
        p = end;
    }
    assert_int_equal(n->records->len, strlen(want_records));
}

static void check_step(size_t step)
{
    unsigned failures = 1, at = 1;
    for (; failures; at++) {
        struct notes n;
        notes_init(&n);
        failures = read_stream(&n, at, step);
        assert_true(failures <= 1);
        assert_records(&n, at);
        assert_non_null(strstr(buf_str(n.plain), "plain\n"));
        assert_non_null(strstr(buf_str(n.plain), "\x1b[1mcolour\x1b[0m {\n"));
        notes_done(&n);
    }
    assert_true(at > 30);
}

static void test_feed(void **state)
{
    (void)state;
    check_step(SIZE_MAX);
    check_step(100);
    check_step(1);
}

static void test_new(void **state)
{
    (void)state;
    const struct console_sink sink = {0};
    struct console_reader *r = NULL;
    unsigned at = 1;
    for (; !r; at++) {
        fail_in = at;
        r = console_reader_new(&sink, 0);
        fail_in = 0;
    }
    assert_true(at > 4);
    console_reader_free(r);
    assert_null(console_reader_free(NULL));
}

static void test_read(void **state)
{
    (void)state;
    int r = -ENOMEM;
    for (unsigned at = 1; r < 0; at++) {
        struct buf *out = buf_new(0);
        enum signal s;
        size_t used;
        fail_in = at;
        r = console_read(bytes_str(stream + strlen("(srv) ")), bytes_str("srv"), out, &s, &used,
                         NULL);
        fail_in = 0;
        assert_int_equal(r, r < 0 ? -ENOMEM : (int)CONSOLE_SPAN);
        assert_true(r > 0 || out->len == 0);
        buf_unref(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_feed),
        cmocka_unit_test(test_new),
        cmocka_unit_test(test_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
