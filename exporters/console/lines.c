/* Lines of spans and log records. */
#include "exporters/console/lines.h"

#include <errno.h>
#include <math.h>
#include <time.h>

#include "agent/base/secrets.h"
#include "proto/otlp_fields.h"

/*
 * A time in microseconds or null. The SDK divides by a float, so its last digit can be one off;
 * that is done alike here, so that a line and its copy agree.
 */
static void put_time(struct lines *l, uint64_t ns)
{
    double seconds, micros = nearbyint(modf((double)ns / 1e9, &seconds) * 1e6);
    if (ns == 0) {
        line_text(l, "null");
        return;
    }
    if (micros >= 1e6) {
        micros -= 1e6;
        seconds += 1;
    }
    time_t t = (time_t)seconds;
    struct tm tm;
    char date[32], text[64];
    gmtime_r(&t, &tm);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text, sizeof(text), "\"%s.%06dZ\"", date, (int)micros);
    line_text(l, text);
}

/* ---- spans ---- */

/* Python's repr() of a string. */
static int append_repr(struct bytes s, struct buf *out)
{
    bool single = memchr(s.data, '\'', s.len), both = single && memchr(s.data, '"', s.len);
    const char quote = single && !both ? '"' : '\'';
    int r = buf_putc(out, quote);
    for (size_t i = 0; r == 0 && i < s.len; i++) {
        if (s.data[i] == '\\' || (both && s.data[i] == '\''))
            r = buf_putc(out, '\\');
        if (r == 0)
            r = buf_putc(out, (char)s.data[i]);
    }
    return r < 0 ? r : buf_putc(out, quote);
}

/* One member "key=value" of a W3C trace state, as the SDK shows it. */
static int append_member(struct bytes member, struct buf *out)
{
    _cleanup_buf_ struct buf *text = buf_new(0);
    const uint8_t *equal = memchr(member.data, '=', member.len);
    size_t key = equal ? (size_t)(equal - member.data) : member.len, value = equal ? key + 1 : key;
    if (!text)
        return -ENOMEM;
    int r = buf_printf(text, "{key=%.*s, value=%.*s}", (int)key, (const char *)member.data,
                       (int)(member.len - value), (const char *)member.data + value);
    return r < 0 ? r : append_repr(buf_bytes(text), out);
}

static struct bytes trim(struct bytes s)
{
    while (s.len && (s.data[0] == ' ' || s.data[0] == '\t'))
        s = bytes_of(s.data + 1, s.len - 1);
    while (s.len && (s.data[s.len - 1] == ' ' || s.data[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* "['{key=a, value=1}', ...]" */
static int append_state(struct bytes state, struct buf *out)
{
    int r = buf_putc(out, '[');
    for (bool more = false; r == 0 && state.len;) {
        const uint8_t *comma = memchr(state.data, ',', state.len);
        size_t n = comma ? (size_t)(comma - state.data) : state.len;
        struct bytes member = trim(bytes_of(state.data, n));
        if (member.len && more)
            r = buf_append_str(out, ", ");
        if (member.len && r == 0) {
            r = append_member(member, out);
            more = true;
        }
        n += comma != NULL;
        state = bytes_of(state.data + n, state.len - n);
    }
    return r < 0 ? r : buf_putc(out, ']');
}

static void put_state(struct lines *l, struct bytes state)
{
    if (state.len == 0) {
        line_text(l, "\"[]\"");
        return;
    }
    _cleanup_buf_ struct buf *text = buf_new(0);
    int r = text ? append_state(state, text) : -ENOMEM;
    if (r == 0)
        line_string(l, buf_bytes(text));
    else if (l->error == 0)
        l->error = r;
}

static void put_context(struct lines *l, struct bytes trace_id, struct bytes span_id,
                        struct bytes state)
{
    line_text(l, "{\"trace_id\": ");
    line_id(l, trace_id, 32);
    line_text(l, ", \"span_id\": ");
    line_id(l, span_id, 16);
    line_text(l, ", \"trace_state\": ");
    put_state(l, state);
    line_text(l, "}");
}

static void put_status(struct lines *l, struct bytes status)
{
    uint64_t code = wire_uint(status, STATUS_CODE);
    struct bytes message = wire_bytes(status, STATUS_MESSAGE);
    line_text(l, "{\"status_code\": ");
    line_text(l, code == 1 ? "\"OK\"" : code == 2 ? "\"ERROR\"" : "\"UNSET\"");
    if (message.len) {
        line_text(l, ", \"description\": ");
        line_string(l, message);
    }
    line_text(l, "}");
}

static void put_events(struct lines *l, struct bytes span)
{
    struct wire_reader r = wire_reader(span);
    struct bytes event;
    line_text(l, "[");
    for (bool first = true; wire_each(&r, SPAN_EVENTS, &event); first = false) {
        line_text(l, first ? "{\"name\": " : ", {\"name\": ");
        line_string(l, wire_bytes(event, EVENT_NAME));
        line_text(l, ", \"timestamp\": ");
        put_time(l, wire_uint(event, EVENT_TIME));
        line_text(l, ", \"attributes\": ");
        line_attributes(l, event, EVENT_ATTRIBUTES, "{}");
        line_text(l, "}");
    }
    line_text(l, "]");
}

static void put_links(struct lines *l, struct bytes span)
{
    struct wire_reader r = wire_reader(span);
    struct bytes link;
    line_text(l, "[");
    for (bool first = true; wire_each(&r, SPAN_LINKS, &link); first = false) {
        line_text(l, first ? "{\"context\": " : ", {\"context\": ");
        put_context(l, wire_bytes(link, LINK_TRACE_ID), wire_bytes(link, LINK_SPAN_ID),
                    wire_bytes(link, LINK_TRACE_STATE));
        line_text(l, ", \"attributes\": ");
        line_attributes(l, link, LINK_ATTRIBUTES, "{}");
        line_text(l, "}");
    }
    line_text(l, "]");
}

static bool is_set(struct bytes id)
{
    for (size_t i = 0; i < id.len; i++)
        if (id.data[i])
            return true;
    return false;
}

static const char *kind_name(uint64_t kind)
{
    static const char *const names[] = {"INTERNAL", "INTERNAL", "SERVER",
                                        "CLIENT",   "PRODUCER", "CONSUMER"};
    return names[kind < ARRAY_SIZE(names) ? kind : 0];
}

/* `trace_id` stands in the context, as the SDK has it, and beside it, where log lines have theirs.
 */
static void put_span(struct lines *l, struct bytes span, struct bytes resource)
{
    struct wire_field f[SPAN_FLAGS + 1];
    wire_index(span, f, ARRAY_SIZE(f));
    line_text(l, "{\"name\": ");
    line_string(l, f[SPAN_NAME].bytes);
    line_text(l, ", \"context\": ");
    put_context(l, f[SPAN_TRACE_ID].bytes, f[SPAN_ID].bytes, f[SPAN_TRACE_STATE].bytes);
    line_text(l, ", \"trace_id\": ");
    line_id(l, f[SPAN_TRACE_ID].bytes, 32);
    line_text(l, ", \"kind\": \"SpanKind.");
    line_text(l, kind_name(f[SPAN_KIND].value));
    line_text(l, "\", \"parent_id\": ");
    if (is_set(f[SPAN_PARENT_ID].bytes))
        line_id(l, f[SPAN_PARENT_ID].bytes, 16);
    else
        line_text(l, "null");
    line_text(l, ", \"start_time\": ");
    put_time(l, f[SPAN_START].value);
    line_text(l, ", \"end_time\": ");
    put_time(l, f[SPAN_END].value);
    line_text(l, ", \"status\": ");
    put_status(l, f[SPAN_STATUS].bytes);
    line_text(l, ", \"attributes\": ");
    line_attributes(l, span, SPAN_ATTRIBUTES, "{}");
    line_text(l, ", \"events\": ");
    put_events(l, span);
    line_text(l, ", \"links\": ");
    put_links(l, span);
    line_text(l, ", \"resource\": ");
    line_bytes(l, resource);
    line_text(l, "}\n");
}

/* ---- log records ---- */

static void put_or_null(struct lines *l, const struct wire_field *f)
{
    if (f->type == WIRE_LEN ? f->bytes.len == 0 : f->value == 0)
        line_text(l, "null");
    else if (f->type == WIRE_LEN)
        line_string(l, f->bytes);
    else
        line_int(l, (int32_t)f->value);
}

static void put_log(struct lines *l, struct bytes log, struct bytes resource)
{
    struct wire_field f[LOG_EVENT_NAME + 1];
    wire_index(log, f, ARRAY_SIZE(f));
    line_text(l, "{\"body\": ");
    line_value(l, f[LOG_BODY].bytes);
    line_text(l, ", \"severity_number\": ");
    put_or_null(l, &f[LOG_SEVERITY_NUMBER]);
    line_text(l, ", \"severity_text\": ");
    put_or_null(l, &f[LOG_SEVERITY_TEXT]);
    line_text(l, ", \"attributes\": ");
    line_attributes(l, log, LOG_ATTRIBUTES, "null");
    line_text(l, ", \"dropped_attributes\": ");
    line_uint(l, f[LOG_DROPPED_ATTRIBUTES].value);
    line_text(l, ", \"timestamp\": ");
    put_time(l, f[LOG_TIME].value);
    line_text(l, ", \"observed_timestamp\": ");
    put_time(l, f[LOG_OBSERVED_TIME].value);
    line_text(l, ", \"trace_id\": ");
    line_id(l, f[LOG_TRACE_ID].bytes, 32);
    line_text(l, ", \"span_id\": ");
    line_id(l, f[LOG_SPAN_ID].bytes, 16);
    line_text(l, ", \"trace_flags\": ");
    line_uint(l, f[LOG_FLAGS].value & 0xff);
    line_text(l, ", \"resource\": ");
    line_bytes(l, resource);
    line_text(l, ", \"event_name\": ");
    line_string(l, f[LOG_EVENT_NAME].bytes);
    line_text(l, "}\n");
}

/* ---- batches ---- */

static void put_records(struct lines *l, enum signal s, struct bytes entry, struct bytes resource)
{
    struct bytes scope, record;
    for (struct wire_reader r = wire_reader(entry); wire_each(&r, ENTRY_ITEMS, &scope);)
        for (struct wire_reader q = wire_reader(scope);
             l->error == 0 && wire_each(&q, ENTRY_ITEMS, &record);)
            (s == SIGNAL_TRACES ? put_span : put_log)(l, record, resource);
}

static void put_entry(struct lines *l, enum signal s, struct bytes entry)
{
    _cleanup_buf_ struct buf *resource = buf_new(0);
    struct lines r = {.out = resource, .redact = l->redact, .error = resource ? 0 : -ENOMEM};
    line_resource(&r, entry);
    if (r.error == 0)
        put_records(l, s, entry, buf_bytes(resource));
    else
        l->error = r.error;
}

int console_lines(const struct batch *b, struct buf *out)
{
    struct lines l = {.out = out};
    struct bytes entry;
    const size_t start = out->len;
    for (unsigned i = 0; i < b->nsegs; i++) {
        struct bytes segment = buf_bytes(b->segs[i]);
        l.redact = secrets_found(segment);
        for (struct wire_reader r = wire_reader(segment);
             l.error == 0 && wire_each(&r, OTLP_ENTRIES, &entry);) {
            if (b->signal != SIGNAL_METRICS) {
                put_entry(&l, b->signal, entry);
                continue;
            }
            line_text(&l, out->len == start ? "{\"resource_metrics\": [" : ", ");
            line_resource_metrics(&l, entry);
        }
    }
    if (b->signal == SIGNAL_METRICS && out->len > start)
        line_text(&l, "]}\n");
    return l.error;
}
