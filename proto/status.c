#include "proto/status.h"

#include <errno.h>

#include "agent/base/secrets.h"
#include "agent/base/utf8.h"
#include "proto/check.h"
#include "proto/json.h"
#include "proto/json_scan.h"

#define RETRY_INFO "google.rpc.RetryInfo"
#define TYPE_PREFIX "type.googleapis.com/"
#define MAX_DELAY_MS (365ull * 24 * 3600 * 1000) /* longer ones are cut */

enum { STATUS_CODE = 1, STATUS_MESSAGE = 2, STATUS_DETAILS = 3 };
enum { ANY_TYPE = 1, ANY_VALUE = 2 };
enum { RETRY_INFO_DELAY = 1 };
enum { DURATION_SECONDS = 1, DURATION_NANOS = 2 };
enum { RESPONSE_PARTIAL_SUCCESS = 1 };
enum { PARTIAL_REJECTED = 1, PARTIAL_MESSAGE = 2 };

const char *rpc_code_name(int code)
{
    static const char *const names[] = {
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    };
    bool known = code >= 0 && (size_t)code < ARRAY_SIZE(names);
    return known ? names[code] : names[RPC_UNKNOWN];
}

/* Copies valid UTF-8 up to a NUL, as many whole characters as fit. */
static void copy_message(struct bytes s, char *out, size_t size)
{
    size_t len = 0;
    while (s.len && s.data[0]) {
        int n = utf8_next(s);
        size_t used = (size_t)(n < 0 ? -n : n);
        struct bytes c = n < 0 ? bytes_str(UTF8_REPLACEMENT) : bytes_of(s.data, used);
        if (len + c.len >= size) {
            out[len] = 0;
            secrets_trim(out);
            return;
        }
        memcpy(out + len, c.data, c.len);
        len += c.len;
        s = bytes_of(s.data + used, s.len - used);
    }
    out[len] = 0;
}

static int put_duration(uint64_t ms, struct buf *out)
{
    int r = ms >= 1000 ? wire_put_uint(out, DURATION_SECONDS, ms / 1000) : 0;
    if (r == 0 && ms % 1000)
        r = wire_put_uint(out, DURATION_NANOS, ms % 1000 * 1000000);
    return r;
}

static int put_retry_info(uint64_t ms, struct buf *out)
{
    size_t any = 0, info = 0, delay = 0;
    int r = wire_begin(out, STATUS_DETAILS, &any);
    if (r == 0)
        r = wire_put_str(out, ANY_TYPE, TYPE_PREFIX RETRY_INFO);
    if (r == 0)
        r = wire_begin(out, ANY_VALUE, &info);
    if (r == 0)
        r = wire_begin(out, RETRY_INFO_DELAY, &delay);
    if (r == 0)
        r = put_duration(ms, out);
    if (r == 0)
        r = wire_end(out, delay);
    if (r == 0)
        r = wire_end(out, info);
    return r == 0 ? wire_end(out, any) : r;
}

static int write_protobuf(const struct rpc_status *st, struct buf *out)
{
    int r = st->code ? wire_put_uint(out, STATUS_CODE, (uint64_t)(int64_t)st->code) : 0;
    if (r == 0 && st->message[0])
        r = wire_put_str(out, STATUS_MESSAGE, st->message);
    return r == 0 && st->has_retry ? put_retry_info(st->retry_after_ms, out) : r;
}

static int write_json_details(uint64_t ms, struct buf *out)
{
    int r = buf_append_str(out, "\"details\":[{\"@type\":\"" TYPE_PREFIX RETRY_INFO
                                "\",\"retryDelay\":\"");
    if (r == 0)
        r = buf_printf(out, ms % 1000 ? "%llu.%03llus" : "%llus", (unsigned long long)(ms / 1000),
                       (unsigned long long)(ms % 1000));
    return r == 0 ? buf_append_str(out, "\"}]") : r;
}

/* Members with default values are left out. */
static int write_json(const struct rpc_status *st, struct buf *out)
{
    const char *comma = "";
    int r = buf_putc(out, '{');
    if (r == 0 && st->code) {
        r = buf_printf(out, "\"code\":%d", st->code);
        comma = ",";
    }
    if (r == 0 && st->message[0]) {
        r = buf_printf(out, "%s\"message\":", comma);
        if (r == 0)
            r = json_put_string(bytes_str(st->message), 0, out);
        comma = ",";
    }
    if (r == 0 && st->has_retry) {
        r = buf_append_str(out, comma);
        if (r == 0)
            r = write_json_details(st->retry_after_ms, out);
    }
    return r == 0 ? buf_putc(out, '}') : r;
}

int status_write(const struct rpc_status *st, bool json, struct buf *out)
{
    return json ? write_json(st, out) : write_protobuf(st, out);
}

static void set_delay(struct rpc_status *st, int64_t seconds, int32_t nanos)
{
    st->has_retry = true;
    if (seconds < 0 || nanos < 0)
        return;
    uint64_t ms = (uint64_t)seconds < MAX_DELAY_MS / 1000 ? (uint64_t)seconds * 1000 : MAX_DELAY_MS;
    st->retry_after_ms = ms + ((uint64_t)nanos + 999999) / 1000000;
}

static bool is_retry_info(struct bytes type)
{
    size_t n = strlen("/" RETRY_INFO);
    return type.len > n && memcmp(type.data + type.len - n, "/" RETRY_INFO, n) == 0;
}

/* A RetryInfo that does not parse is as good as none. */
static void read_detail(struct bytes any, struct rpc_status *st)
{
    const struct schema_message *m = schema_find(RETRY_INFO);
    struct wire_field type, value, delay, seconds = {.value = 0}, nanos = {.value = 0};
    if (!wire_find(any, ANY_TYPE, &type) || !is_retry_info(type.bytes) ||
        !wire_find(any, ANY_VALUE, &value))
        return;
    if (otlp_check_message(m, value.bytes, NULL) < 0)
        return;
    if (!wire_find(value.bytes, RETRY_INFO_DELAY, &delay))
        delay.bytes = bytes_of(NULL, 0);
    wire_find(delay.bytes, DURATION_SECONDS, &seconds);
    wire_find(delay.bytes, DURATION_NANOS, &nanos);
    set_delay(st, (int64_t)seconds.value, (int32_t)nanos.value);
}

int status_read(struct bytes body, struct rpc_status *ret)
{
    struct wire_reader r = wire_reader(body);
    struct wire_field f;
    *ret = (struct rpc_status){.code = 0};
    if (otlp_check_message(schema_find("google.rpc.Status"), body, NULL) < 0)
        return -EBADMSG;
    while (wire_next(&r, &f) > 0) {
        if (f.number == STATUS_CODE)
            ret->code = (int32_t)f.value;
        else if (f.number == STATUS_MESSAGE)
            copy_message(f.bytes, ret->message, sizeof(ret->message));
        else if (f.number == STATUS_DETAILS)
            read_detail(f.bytes, ret);
    }
    return 0;
}

/* "1.5s": seconds with up to nine decimals. */
static bool parse_duration(struct bytes text, int64_t *ret_seconds, int32_t *ret_nanos)
{
    size_t i = 0;
    int64_t seconds = 0;
    int32_t nanos = 0, unit = 100000000;
    for (; i < text.len && text.data[i] >= '0' && text.data[i] <= '9' && seconds < INT64_MAX / 20;
         i++)
        seconds = seconds * 10 + (text.data[i] - '0');
    if (i > 0 && i < text.len && text.data[i] == '.')
        for (i++; i < text.len && text.data[i] >= '0' && text.data[i] <= '9' && unit > 0;
             i++, unit /= 10)
            nanos += (text.data[i] - '0') * unit;
    *ret_seconds = seconds;
    *ret_nanos = nanos;
    return i > 0 && i + 1 == text.len && text.data[i] == 's';
}

static int read_json_detail(struct json_scan *s, struct rpc_status *st)
{
    bool first = true, is_retry = false, has_delay = false;
    int64_t seconds = 0;
    int32_t nanos = 0;
    struct bytes key, value;
    int r = json_scan_char(s, '{');
    while (r == 0 && (r = json_scan_key(s, &first, &key)) > 0) {
        bool type = bytes_eq_str(key, "@type"), delay = bytes_eq_str(key, "retryDelay");
        bool text = (type || delay) && json_scan_peek(s) == '"';
        r = text ? json_scan_string(s, &value) : json_scan_skip(s);
        if (r == 0 && text && type)
            is_retry = is_retry_info(value);
        if (r == 0 && text && delay)
            has_delay = parse_duration(value, &seconds, &nanos);
    }
    if (r == 0 && is_retry)
        set_delay(st, has_delay ? seconds : 0, has_delay ? nanos : 0);
    return r;
}

static int read_json_details(struct json_scan *s, struct rpc_status *st)
{
    bool first = true;
    int r = json_scan_char(s, '[');
    while (r == 0 && (r = json_scan_element(s, &first)) > 0)
        r = json_scan_peek(s) == '{' ? read_json_detail(s, st) : json_scan_skip(s);
    return r;
}

static int read_json_code(struct json_scan *s, struct rpc_status *st)
{
    struct bytes number;
    char text[16] = "";
    int r = json_scan_number(s, &number);
    if (r < 0)
        return r;
    memcpy(text, number.data, number.len < sizeof(text) ? number.len : sizeof(text) - 1);
    st->code =
        (int)strtol(text, NULL, 10); /* codes are small; the scan has seen that it is a number */
    return 0;
}

static int read_json_member(struct json_scan *s, struct bytes key, struct rpc_status *st)
{
    uint8_t next = json_scan_peek(s);
    struct bytes value;
    if (next == '"' && bytes_eq_str(key, "message")) {
        int r = json_scan_string(s, &value);
        if (r == 0)
            copy_message(value, st->message, sizeof(st->message));
        return r;
    }
    if (next == '[' && bytes_eq_str(key, "details"))
        return read_json_details(s, st);
    if (next != 'n' && bytes_eq_str(key, "code"))
        return read_json_code(s, st);
    return json_scan_skip(s);
}

int status_read_json(struct bytes body, struct rpc_status *ret)
{
    _cleanup_buf_ struct buf *scratch = buf_new(0);
    struct json_scan s = {
        .start = body.data, .p = body.data, .end = body.data + body.len, .scratch = scratch};
    struct bytes key;
    bool first = true;
    *ret = (struct rpc_status){.code = 0};
    int r = scratch ? json_scan_char(&s, '{') : -ENOMEM;
    while (r == 0 && (r = json_scan_key(&s, &first, &key)) > 0)
        r = read_json_member(&s, key, ret);
    return r == 0 || r == -ENOMEM ? r : -EBADMSG;
}

static int write_response(const struct partial_success *ps, struct buf *out)
{
    size_t mark;
    int r = wire_begin(out, RESPONSE_PARTIAL_SUCCESS, &mark);
    if (r == 0 && ps->rejected)
        r = wire_put_uint(out, PARTIAL_REJECTED, ps->rejected);
    if (r == 0 && ps->message[0])
        r = wire_put_str(out, PARTIAL_MESSAGE, ps->message);
    return r == 0 ? wire_end(out, mark) : r;
}

int response_write(enum signal s, const struct partial_success *ps, bool json, struct buf *out)
{
    if (!json)
        return write_response(ps, out);
    _cleanup_buf_ struct buf *wire = buf_new(0);
    if (!wire || write_response(ps, wire) < 0)
        return -ENOMEM;
    return json_write(schema_response(s), buf_bytes(wire), 0, out);
}

static int read_response(enum signal s, struct bytes body, struct partial_success *ret)
{
    struct wire_field partial, f;
    if (otlp_check_message(schema_response(s), body, NULL) < 0)
        return -EBADMSG;
    if (!wire_find(body, RESPONSE_PARTIAL_SUCCESS, &partial))
        return 0;
    if (wire_find(partial.bytes, PARTIAL_REJECTED, &f))
        ret->rejected = (int64_t)f.value > 0 ? f.value : 0;
    if (wire_find(partial.bytes, PARTIAL_MESSAGE, &f))
        copy_message(f.bytes, ret->message, sizeof(ret->message));
    return 0;
}

int response_read(enum signal s, struct bytes body, bool json, struct partial_success *ret)
{
    *ret = (struct partial_success){.rejected = 0};
    if (!json || body.len == 0)
        return read_response(s, body, ret);
    _cleanup_buf_ struct buf *wire = buf_new(0);
    int r = wire ? json_read(schema_response(s), body, wire, NULL) : -ENOMEM;
    if (r < 0)
        return r == -ENOMEM ? r : -EBADMSG;
    return read_response(s, buf_bytes(wire), ret);
}
