/* Secrets out of protobuf: the same message as the JSON writer shows, and nothing else changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/secrets.h"
#include "proto/check.h"
#include "proto/json.h"
#include "proto/redact.h"

static const char *const texts[] = {
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"Authorization\",\"value\":{"
    "\"stringValue\":\"tok-123456\"}}]},"
    "\"scopeSpans\":[{\"scope\":{\"name\":\"x "
    "tok-123456\"},\"spans\":[{\"traceId\":\"5b8efff798038103d269b633813fc60c\","
    "\"spanId\":\"eee19b7ec3c1b174\",\"name\":\"tok-123456tok-123456\",\"attributes\":[{\"key\":"
    "\"deep\",\"value\":{\"arrayValue\":"
    "{\"values\":[{\"kvlistValue\":{\"values\":[{\"key\":\"tok-123456\",\"value\":{\"stringValue\":"
    "\"a tok-123456 b\"}}]}},"
    "{\"intValue\":\"5\"},{\"doubleValue\":0.5},{\"intValue\":\"7654321\"},{\"doubleValue\":1."
    "25e10},{"
    "\"bytesValue\":\"eHRvay0xMjM0NTZ4\"}]}}}],\"status\":{\"message\":\"no\"}}]}],"
    "\"schemaUrl\":\"u\"}]}",
    "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":"
    "\"5b8efff798038103d269b633813fc60c\","
    "\"spanId\":\"eee19b7ec3c1b174\",\"name\":\"nothing to see\"}]}]}]}",
};

static void test_same_as_json(void **state)
{
    (void)state;
    const struct schema_message *m = schema_request(SIGNAL_TRACES);
    assert_true(secrets_add("tok-123456"));
    assert_true(secrets_add("7654321"));
    assert_true(secrets_add("1.25e10"));
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        _cleanup_buf_ struct buf *wire = buf_new(0), *clean = buf_new(0), *want = buf_new(0),
                                 *got = buf_new(0);
        struct otlp_checked checked;
        struct err e;
        assert_int_equal(json_read(m, bytes_str(texts[i]), wire, &e), 0);
        assert_int_equal(otlp_redact(m, buf_bytes(wire), clean), 0);
        assert_int_equal(otlp_check(SIGNAL_TRACES, buf_bytes(clean), &checked, &e), 0);
        assert_true(checked.canonical);
        json_write(m, buf_bytes(wire), JSON_REDACT, want);
        json_write(m, buf_bytes(clean), 0, got);
        assert_null(memmem(clean->data, clean->len, "tok-123456", 10));
        if (i == 0) {
            assert_non_null(strstr(buf_str(got), "[REDACTED][REDACTED]"));
            assert_non_null(
                strstr(buf_str(got),
                       "{\"doubleValue\":0.5},{\"stringValue\":\"[REDACTED]\"},{"
                       "\"stringValue\":\"[REDACTED]\"},{\"bytesValue\":\"eFtSRURBQ1RFRF14\"}"));
        } else
            assert_true(bytes_eq(buf_bytes(clean), buf_bytes(wire)));
        assert_string_equal(buf_str(got), buf_str(want));
    }
    secrets_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_as_json)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
