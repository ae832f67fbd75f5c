/* JSON out: strings, what is left out and what not, redaction, several segments. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/secrets.h"
#include "proto/json.h"
#include "proto/json_plain.h"

static const char *write_string(struct buf *b, struct bytes s)
{
    buf_truncate(b, 0);
    assert_int_equal(json_put_string(s, 0, b), 0);
    return buf_str(b);
}

static void test_strings(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        size_t len;
        const char *want;
    } cases[] = {
        {"", 0, "\"\""},
        {"plain, longer than eight bytes", 30, "\"plain, longer than eight bytes\""},
        {"a\0b", 3, "\"a\\u0000b\""},
        {"1234567\"1234567\\", 16, "\"1234567\\\"1234567\\\\\""},
        {"\n\r\t\b\f\x1f", 6, "\"\\n\\r\\t\\u0008\\u000c\\u001f\""},
        {"\x7f<>&'/", 6, "\"\x7f<>&'/\""},
        {"é值🚀", 9, "\"é值🚀\""},
        {"\xe2\x80\xa8\xe2\x80\xa9", 6, "\"\xe2\x80\xa8\xe2\x80\xa9\""},
        {"a\xff"
         "b",
         3,
         "\"a\xef\xbf\xbd"
         "b\""},
        {"\xe5\x80", 2, "\"\xef\xbf\xbd\""},
        {"\xe5\x80X", 3, "\"\xef\xbf\xbdX\""},
        {"\xf0\x9f\x9a", 3, "\"\xef\xbf\xbd\""},
        {"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* a surrogate */
        {"\xc0\xaf", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},                 /* overlong */
        {"\xf5\x80", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    _cleanup_buf_ struct buf *b = buf_new(0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_string_equal(write_string(b, bytes_of(cases[i].in, cases[i].len)), cases[i].want);
}

/* Each byte at each place of a word and behind it. */
static void test_every_place(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *b = buf_new(0);
    for (int c = 0; c < 256; c++) {
        char alone[16];
        snprintf(alone, sizeof(alone), "%s",
                 write_string(b, bytes_of(&(uint8_t){(uint8_t)c}, 1)) + 1);
        alone[strlen(alone) - 1] = 0;
        for (int at = 0; at < 19; at++) {
            char in[20] = "xxxxxxxxxxxxxxxxxxx", want[64];
            in[at] = (char)c;
            snprintf(want, sizeof(want), "\"%.*s%s%.*s\"", at, "xxxxxxxxxxxxxxxxxxx", alone,
                     18 - at, "xxxxxxxxxxxxxxxxxxx");
            assert_string_equal(write_string(b, bytes_of(in, 19)), want);
        }
    }
}

/* The same answer with and without vector instructions, whatever stands behind the first hit. */
static void test_plain(void **state)
{
    (void)state;
    static const uint8_t others[] = {0x00, 0x1f, '"', '\\', 0x7f, 0x80,
                                     0xff, '!',  '#', '[',  ']',  ' '};
    uint32_t random = 1;
    for (int i = 0; i < 200000; i++) {
        uint8_t text[16];
        unsigned want = 16;
        for (unsigned k = 0; k < 16; k++) {
            random = random * 1664525 + 1013904223;
            const unsigned r = random >> 16;
            text[k] = r % 16 ? (uint8_t)('a' + r % 26) : others[r / 16 % sizeof(others)];
            const bool plain =
                text[k] >= 0x20 && text[k] < 0x80 && text[k] != '"' && text[k] != '\\';
            want = !plain && want == 16 ? k : want;
        }
        assert_int_equal(jplain_16(text), want);
        assert_int_equal(jplain_portable(text), want);
    }
}

static struct buf *hex(const char *text)
{
    struct buf *b = buf_new(0);
    unsigned byte;
    for (int n; sscanf(text, " %2x%n", &byte, &n) == 1; text += n)
        assert_int_equal(buf_putc(b, (char)byte), 0);
    return b;
}

static void test_messages(void **state)
{
    (void)state;
    static const struct {
        const char *message, *in, *want;
    } cases[] = {
        {"trace.v1.Span", "", "{\"status\":{}}"},
        {"trace.v1.ScopeSpans", "", "{\"scope\":{}}"},
        {"trace.v1.ResourceSpans", "", "{\"resource\":{}}"},
        {"logs.v1.LogRecord", "", "{\"body\":{}}"},
        {"logs.v1.LogRecord", "2a020a00", "{\"body\":{\"stringValue\":\"\"}}"},
        {"common.v1.KeyValue", "", "{\"value\":{}}"},
        {"common.v1.AnyValue", "1000", "{\"boolValue\":false}"},
        {"common.v1.AnyValue", "1001", "{\"boolValue\":true}"},
        {"common.v1.AnyValue", "1800", "{\"intValue\":\"0\"}"},
        {"common.v1.AnyValue", "18ffffffffffffffffff01", "{\"intValue\":\"-1\"}"},
        {"common.v1.AnyValue", "210000000000000000", "{\"doubleValue\":0}"},
        {"common.v1.AnyValue", "2a00", "{\"arrayValue\":{}}"},
        {"common.v1.AnyValue", "2a020a00", "{\"arrayValue\":{\"values\":[{}]}}"},
        {"common.v1.AnyValue", "3200", "{\"kvlistValue\":{}}"},
        {"common.v1.AnyValue", "3a00", "{\"bytesValue\":\"\"}"},
        {"common.v1.AnyValue", "3a0200ff", "{\"bytesValue\":\"AP8=\"}"},
        /* unknown fields of every wire type are not there */
        {"common.v1.AnyValue", "e83f01 f13f0000000000000000 fa3f0141 fd3f00000000 0a0178",
         "{\"stringValue\":\"x\"}"},
        /* ids: all zeros are none */
        {"trace.v1.Span", "0a10 00000000000000000000000000000000 1208 0000000000000000",
         "{\"status\":{}}"},
        {"trace.v1.Span", "0a00 1208 00000000000000ff",
         "{\"spanId\":\"00000000000000ff\",\"status\":{}}"},
        /* fields in another order, elements of two lists mixed */
        {"trace.v1.Span", "3002 5a03120161 4a030a0162 5a03120163 2a0178 4a030a0164",
         "{\"name\":\"x\",\"kind\":2,\"attributes\":[{\"key\":\"b\",\"value\":{}},{\"key\":\"d\","
         "\"value\":{}}],"
         "\"events\":[{\"name\":\"a\"},{\"name\":\"c\"}],\"status\":{}}"},
        {"trace.v1.Span", "3063 8501 01010000", "{\"flags\":257,\"kind\":99,\"status\":{}}"},
        /* packed and not packed, an empty packed field */
        {"metrics.v1.HistogramDataPoint",
         "3210 0100000000000000 0200000000000000 310300000000000000",
         "{\"bucketCounts\":[\"1\",\"2\",\"3\"]}"},
        {"metrics.v1.HistogramDataPoint", "3200 3a00", "{}"},
        {"metrics.v1.HistogramDataPoint", "290000000000000000", "{\"sum\":0}"},
        {"metrics.v1.ExponentialHistogramDataPoint.Buckets", "0803 12040501ac02",
         "{\"offset\":-2,\"bucketCounts\":[\"5\",\"1\",\"300\"]}"},
        {"metrics.v1.ExponentialHistogramDataPoint", "3001",
         "{\"scale\":-1,\"positive\":{},\"negative\":{}}"},
        {"metrics.v1.SummaryDataPoint", "290000000000000080", "{}"},
        {"metrics.v1.NumberDataPoint", "31ffffffffffffffff", "{\"asInt\":\"-1\"}"},
        {"metrics.v1.NumberDataPoint", "21000000000000f07f", "{\"asDouble\":\"Infinity\"}"},
        {"metrics.v1.Metric", "2a00", "{\"gauge\":{}}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char name[100];
        snprintf(name, sizeof(name), "opentelemetry.proto.%s", cases[i].message);
        const struct schema_message *m = schema_find(name);
        assert_non_null(m);
        _cleanup_buf_ struct buf *in = hex(cases[i].in);
        _cleanup_buf_ struct buf *out = buf_new(0);
        assert_int_equal(json_write(m, buf_bytes(in), 0, out), 0);
        assert_string_equal(buf_str(out), cases[i].want);
    }
}

static void test_batch(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *out = buf_new(0);
    struct buf *segs[] = {hex("0a00 0a021200"), hex(""), hex("0a031a0175")};
    _cleanup_batch_ struct batch *b = batch_new(SIGNAL_LOGS, segs, 3, 0);
    assert_int_equal(json_write_batch(b, 0, out), 0);
    assert_string_equal(
        buf_str(out),
        "{\"resourceLogs\":[{\"resource\":{}},{\"resource\":{},\"scopeLogs\":[{\"scope\":{}}]},"
        "{\"resource\":{},\"schemaUrl\":\"u\"}]}");
    _cleanup_batch_ struct batch *none = batch_new(SIGNAL_METRICS, (struct buf *[]){hex("")}, 1, 0);
    buf_truncate(out, 0);
    assert_int_equal(json_write_batch(none, 0, out), 0);
    assert_string_equal(buf_str(out), "{}");
}

static void test_redaction(void **state)
{
    (void)state;
    const struct schema_message *any = schema_find("opentelemetry.proto.common.v1.AnyValue");
    static const struct {
        const char *in, *want;
    } cases[] = {
        {"0a0d 41206265666f72652061667465", "{\"stringValue\":\"A before afte\"}"},
        {"0a0c 7878736563726574 31797979", "{\"stringValue\":\"xx[REDACTED]yyy\"}"},
        {"18 c0c407", "{\"intValue\":\"123456\"}"},
        {"18 87ade204", "{\"stringValue\":\"[REDACTED]\"}"},
        {"21 0000000000008640", "{\"doubleValue\":704}"},
        {"21 77be9f1a2fdd5e40", "{\"stringValue\":\"[REDACTED]\"}"},
    };
    secrets_add("secret1");
    secrets_add("10000007");
    secrets_add("123.456");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_buf_ struct buf *in = hex(cases[i].in);
        _cleanup_buf_ struct buf *out = buf_new(0);
        assert_int_equal(json_write(any, buf_bytes(in), JSON_REDACT, out), 0);
        assert_string_equal(buf_str(out), cases[i].want);
    }
    _cleanup_buf_ struct buf *in = hex(cases[1].in);
    _cleanup_buf_ struct buf *out = buf_new(0);
    assert_int_equal(json_write(any, buf_bytes(in), 0, out), 0);
    assert_string_equal(buf_str(out), "{\"stringValue\":\"xxsecret1yyy\"}");
    secrets_clear();
}

/* Two resources, values inside each other deeper than parts are searched on their own; %s is where
 * a secret may stand. */
static const char redacted_places[] =
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"token\",\"value\":{"
    "\"stringValue\":"
    "\"%s\"}},{\"key\":\"%s\",\"value\":{\"boolValue\":true}}]},\"scopeSpans\":[{\"scope\":{"
    "\"name\":"
    "\"%s\"},\"spans\":[{\"name\":\"%s\",\"kind\":2},{\"name\":\"b\",\"kind\":1,\"attributes\":[{"
    "\"key\":"
    "\"n\",\"value\":{\"intValue\":\"5\"}},{\"key\":\"k\",\"value\":{\"stringValue\":\"x%sy\"}}],"
    "\"events\":"
    "[{\"name\":\"%s\"}]}]}]},{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":[{\"name\":"
    "\"c\","
    "\"attributes\":[{\"key\":\"deep\",\"value\":{\"arrayValue\":{\"values\":[{\"arrayValue\":{"
    "\"values\":["
    "{\"kvlistValue\":{\"values\":[{\"key\":\"q\",\"value\":{\"arrayValue\":{\"values\":[{"
    "\"stringValue\":"
    "\"%s\"},{\"stringValue\":\"z\"}]}}}]}}]}}]}}}],\"status\":{\"message\":\"%s\"}}]}]}]}";
#define REDACTED_PLACES 8

static void fill(char *text, size_t size, unsigned places, const char *with)
{
    const char *t[REDACTED_PLACES];
    for (unsigned i = 0; i < REDACTED_PLACES; i++)
        t[i] = places >> i & 1 ? with : "-";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, size, redacted_places, t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]);
#pragma GCC diagnostic pop
}

/* Every choice of places: all that hold it lose it, and nothing else changes. */
static void test_redacted_parts(void **state)
{
    (void)state;
    secrets_add("sk-secret");
    for (unsigned places = 0; places < 1u << REDACTED_PLACES; places++) {
        char in[2000], want[2000];
        fill(in, sizeof(in), places, "sk-secret");
        fill(want, sizeof(want), places, SECRET_PLACEHOLDER);
        struct buf *wire = buf_new(0);
        _cleanup_buf_ struct buf *out = buf_new(0), *expected = buf_new(0);
        const struct schema_message *m = schema_request(SIGNAL_TRACES);
        assert_int_equal(json_read(m, bytes_str(in), wire, NULL), 0);
        assert_int_equal(json_write(m, buf_bytes(wire), JSON_REDACT, out), 0);
        buf_truncate(wire, 0);
        assert_int_equal(json_read(m, bytes_str(want), wire, NULL), 0);
        assert_int_equal(json_write(m, buf_bytes(wire), 0, expected), 0);
        assert_string_equal(buf_str(out), buf_str(expected));
        buf_unref(wire);
    }
    secrets_clear();
}

struct spilled {
    struct buf *text;
    unsigned pieces, fail_at;
    bool keep; /* leaves it in the buffer */
};

static int take(void *ctx, struct buf *out)
{
    struct spilled *s = ctx;
    if (++s->pieces == s->fail_at)
        return -EFBIG;
    if (s->keep)
        return 0;
    assert_int_equal(buf_append(s->text, out->data, out->len), 0);
    buf_truncate(out, 0);
    return 0;
}

/* Two requests of spans whose texts have all lengths around those of pieces and runs. */
static struct batch *long_batch(void)
{
    struct buf *segs[2] = {buf_new(0), buf_new(0)};
    for (size_t n = 0; n < 700; n++) {
        char text[2100] = "";
        size_t mark[3];
        struct buf *b = segs[n % 2];
        for (size_t i = 0; i < 3 * n; i++)
            text[i] = i % 97 == 96 ? "\"\n\x01"[i % 3] : (char)('a' + i % 26);
        for (unsigned k = 0; k < 3; k++)
            assert_int_equal(wire_begin(b, k ? 2 : 1, &mark[k]), 0);
        wire_put_str(b, 5, text);
        wire_put_fixed64(b, 7, n * 0x0123456789ab);
        for (int k = 2; k >= 0; k--)
            wire_end(b, mark[k]);
    }
    return batch_new(SIGNAL_TRACES, segs, 2, 700);
}

static void test_pieces(void **state)
{
    (void)state;
    _cleanup_batch_ struct batch *b = long_batch();
    _cleanup_buf_ struct buf *want = buf_new(0);
    assert_int_equal(json_write_batch(b, JSON_LINE, want), 0);
    assert_int_equal(want->data[want->len - 1], '\n');
    for (size_t room = 1; room < 9000; room += 713) {
        _cleanup_buf_ struct buf *out = buf_new(0), *text = buf_new(0);
        struct spilled s = {.text = text, .keep = room % 5 == 4};
        buf_append_str(text, "before");
        buf_reserve(out, room);
        buf_append_str(out, "and here");
        assert_int_equal(
            json_write_batch_in_pieces(b, JSON_LINE, &(struct json_spill){take, &s}, out), 0);
        assert_true(s.keep || (s.pieces > 100 && out->cap < 20000));
        buf_append(text, out->data, out->len);
        assert_int_equal(text->len, want->len + 14);
        assert_memory_equal(text->data, "beforeand here", 14);
        assert_memory_equal(text->data + 14, want->data, want->len);
    }
    _cleanup_buf_ struct buf *out = buf_new(0), *text = buf_new(0);
    struct spilled s = {.text = text, .fail_at = 3};
    assert_int_equal(json_write_batch_in_pieces(b, 0, &(struct json_spill){take, &s}, out), -EFBIG);
    assert_int_equal(s.pieces, 3); /* nothing is offered after an error */
}

static void test_limit(void **state)
{
    (void)state;
    const struct schema_message *m = schema_find("opentelemetry.proto.trace.v1.Span");
    _cleanup_buf_ struct buf *in = hex("2a0178 4a030a0162 3900000000000000ff");
    _cleanup_buf_ struct buf *whole = buf_new(0);
    assert_int_equal(json_write(m, buf_bytes(in), 0, whole), 0);
    for (size_t max = 1; max < whole->len + 10; max++) {
        _cleanup_buf_ struct buf *out = buf_new(max);
        int r = json_write(m, buf_bytes(in), 0, out);
        assert_int_equal(r, max < whole->len ? -EMSGSIZE : 0);
        assert_true(out->len <= max);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings),        cmocka_unit_test(test_every_place),
        cmocka_unit_test(test_messages),       cmocka_unit_test(test_batch),
        cmocka_unit_test(test_redaction),      cmocka_unit_test(test_limit),
        cmocka_unit_test(test_plain),          cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_redacted_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
