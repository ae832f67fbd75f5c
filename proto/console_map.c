/*
 * Console JSON to OTLP: which of the shapes an object is, and spans and log records. The shapes are
 * those of the to_json() methods of the Python SDK (1.45, and earlier ones where they differ). What
 * a shape does not carry stays unset: the scope of spans and log records, flags of spans, counts of
 * what was dropped.
 */
#include <errno.h>

#include "proto/console_map.h"
#include "proto/json.h"
#include "proto/json_number.h"
#include "proto/otlp_fields.h"
#include "proto/schema.h"

/* ---- members with texts of their own ---- */

/* A name after an optional "Type." prefix; its place in `names`, or -EBADMSG. */
static int read_name(struct console_mapper *m, const char *const *names, const char *what)
{
    struct bytes text;
    json_scan_peek(&m->scan);
    const uint8_t *at = m->scan.p;
    int r = json_scan_string(&m->scan, &text);
    if (r < 0)
        return r;
    const uint8_t *dot = memrchr(text.data, '.', text.len);
    struct bytes name = text;
    if (dot)
        name = bytes_of(dot + 1, (size_t)(text.data + text.len - dot - 1));
    for (int i = 0; names[i]; i++)
        if (bytes_eq_str(name, names[i]))
            return i;
    return json_scan_fail(&m->scan, at, "expected %s, got \"%.*s\"", what,
                          (int)(text.len < 40 ? text.len : 40), (const char *)text.data);
}

static int read_kind(struct console_mapper *m)
{
    static const char *const names[] = {"UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT",
                                        "PRODUCER",    "CONSUMER", NULL};
    int kind = read_name(m, names, "a kind of span such as \"SpanKind.SERVER\"");
    return kind > 0 ? wire_put_uint(m->record, SPAN_KIND, (uint64_t)kind) : kind;
}

static int read_status_code(struct console_mapper *m)
{
    static const char *const names[] = {"UNSET", "OK", "ERROR", NULL};
    int code = read_name(m, names, "a status code such as \"OK\"");
    return code > 0 ? wire_put_uint(m->record, STATUS_CODE, (uint64_t)code) : code;
}

/* A number; in old SDKs the repr() "<SeverityNumber.WARN: 13>". */
static int read_severity(struct console_mapper *m)
{
    struct bytes text;
    uint64_t v = 0;
    bool quoted = json_scan_peek(&m->scan) == '"';
    int r = quoted ? json_scan_string(&m->scan, &text) : json_scan_number(&m->scan, &text);
    if (r < 0)
        return r;
    const uint8_t *colon = quoted ? memrchr(text.data, ' ', text.len) : NULL;
    struct bytes digits = text;
    if (colon && text.data[text.len - 1] == '>')
        digits = bytes_of(colon + 1, (size_t)(text.data + text.len - colon - 2));
    if (json_parse_uint(digits, INT32_MAX, &v) < 0)
        return json_scan_fail(&m->scan, text.data, "expected the number of a severity, got %.*s",
                              (int)(text.len < 40 ? text.len : 40), (const char *)text.data);
    return v ? wire_put_uint(m->record, LOG_SEVERITY_NUMBER, v) : 0;
}

/* Old SDKs print the repr() of a log record's resource: nobody knows what is in it. */
static int read_log_resource(struct console_mapper *m)
{
    struct bytes text;
    bool repr = json_scan_peek(&m->scan) == '"';
    return repr ? json_scan_string(&m->scan, &text) : console_resource(m);
}

static int put_trace_state(struct console_mapper *m, uint8_t number)
{
    struct bytes text;
    _cleanup_buf_ struct buf *state = buf_new(0);
    int r = state ? json_scan_string(&m->scan, &text) : -ENOMEM;
    if (r == 0)
        r = console_trace_state(text, state);
    return r == 0 && state->len ? wire_put_bytes(m->record, number, buf_bytes(state)) : r;
}

static int read_trace_state(struct console_mapper *m)
{
    return put_trace_state(m, SPAN_TRACE_STATE);
}

static int read_link_state(struct console_mapper *m)
{
    return put_trace_state(m, LINK_TRACE_STATE);
}

/* ---- tables ---- */

static const struct console_member context_members[] = {
    {"trace_id", WHAT_ID, SPAN_TRACE_ID, .size = 16},
    {"span_id", WHAT_ID, SPAN_ID, .size = 8},
    {"trace_state", WHAT_OWN, .read = read_trace_state},
};
static const struct console_shape context_shape = CONSOLE_SHAPE(context_members, 3);

static const struct console_member status_members[] = {
    {"status_code", WHAT_OWN, .read = read_status_code},
    {"description", WHAT_STRING, STATUS_MESSAGE},
};
static const struct console_shape status_shape = CONSOLE_SHAPE(status_members, 0);

static const struct console_member event_members[] = {
    {"name", WHAT_STRING, EVENT_NAME},
    {"timestamp", WHAT_TIME, EVENT_TIME},
    {"attributes", WHAT_ATTRIBUTES, EVENT_ATTRIBUTES},
};
static const struct console_shape event_shape = CONSOLE_SHAPE(event_members, 0);

static const struct console_member link_context_members[] = {
    {"trace_id", WHAT_ID, LINK_TRACE_ID, .size = 16},
    {"span_id", WHAT_ID, LINK_SPAN_ID, .size = 8},
    {"trace_state", WHAT_OWN, .read = read_link_state},
};
static const struct console_shape link_context_shape = CONSOLE_SHAPE(link_context_members, 3);

static const struct console_member link_members[] = {
    {"context", WHAT_INLINE, .shape = &link_context_shape},
    {"attributes", WHAT_ATTRIBUTES, LINK_ATTRIBUTES},
};
static const struct console_shape link_shape = CONSOLE_SHAPE(link_members, 1);

static const struct console_member span_members[] = {
    {"name", WHAT_STRING, SPAN_NAME},
    {"context", WHAT_INLINE, .shape = &context_shape},
    {"kind", WHAT_OWN, .read = read_kind},
    {"parent_id", WHAT_ID, SPAN_PARENT_ID, .size = 8},
    {"start_time", WHAT_TIME, SPAN_START},
    {"end_time", WHAT_TIME, SPAN_END},
    {"status", WHAT_MESSAGE, SPAN_STATUS, .shape = &status_shape},
    {"attributes", WHAT_ATTRIBUTES, SPAN_ATTRIBUTES},
    {"events", WHAT_MESSAGES, SPAN_EVENTS, .shape = &event_shape},
    {"links", WHAT_MESSAGES, SPAN_LINKS, .shape = &link_shape},
    {"resource", WHAT_OWN, .read = console_resource},
};
static const struct console_shape span_shape = CONSOLE_SHAPE(span_members, 1u << 1 | 1u << 2);

static const struct console_member log_members[] = {
    {"body", WHAT_ANY, LOG_BODY},
    {"severity_number", WHAT_OWN, .read = read_severity},
    {"severity_text", WHAT_STRING, LOG_SEVERITY_TEXT},
    {"attributes", WHAT_ATTRIBUTES, LOG_ATTRIBUTES},
    {"dropped_attributes", WHAT_UINT, LOG_DROPPED_ATTRIBUTES},
    {"timestamp", WHAT_TIME, LOG_TIME},
    {"observed_timestamp", WHAT_TIME, LOG_OBSERVED_TIME},
    {"trace_id", WHAT_ID, LOG_TRACE_ID, .size = 16},
    {"span_id", WHAT_ID, LOG_SPAN_ID, .size = 8},
    {"trace_flags", WHAT_FIXED32, LOG_FLAGS},
    {"resource", WHAT_OWN, .read = read_log_resource},
    {"event_name", WHAT_STRING, LOG_EVENT_NAME},
};
static const struct console_shape log_shape = CONSOLE_SHAPE(log_members, 0);
#define LOG_SEEN_OBSERVED (1u << 6)

static const struct console_member metrics_members[] = {
    {"resource_metrics", WHAT_OWN, .read = console_metrics},
};
static const struct console_shape metrics_shape = CONSOLE_SHAPE(metrics_members, 1);

/* ---- which shape ---- */

enum {
    HAS_CONTEXT = 1,
    HAS_KIND = 2,
    HAS_METRICS = 4,
    HAS_OBSERVED = 8,
    HAS_SEVERITY = 16,
    HAS_FLAGS = 32,
    HAS_OTLP = 64 /* shifted by the signal */
};

static unsigned telling_key(struct bytes key)
{
    static const struct {
        const char *key;
        unsigned bit;
    } keys[] = {
        {"context", HAS_CONTEXT},
        {"kind", HAS_KIND},
        {"resource_metrics", HAS_METRICS},
        {"observed_timestamp", HAS_OBSERVED},
        {"severity_number", HAS_SEVERITY},
        {"trace_flags", HAS_FLAGS},
        {"resourceSpans", HAS_OTLP << SIGNAL_TRACES},
        {"resourceMetrics", HAS_OTLP << SIGNAL_METRICS},
        {"resourceLogs", HAS_OTLP << SIGNAL_LOGS},
    };
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (bytes_eq_str(key, keys[i].key))
            return keys[i].bit;
    return 0;
}

static void start_scan(struct console_mapper *m, struct bytes text, struct err *err)
{
    m->scan.start = m->scan.p = text.data;
    m->scan.end = text.data + text.len;
    m->scan.err = err;
    m->depth = 0;
}

/* The telling keys on the first level, as far as the text is JSON. 0, or an error where it stops.
 */
static int telling_keys(struct console_mapper *m, unsigned *ret)
{
    struct bytes key;
    bool first = true;
    int r = json_scan_char(&m->scan, '{');
    *ret = 0;
    while (r == 0 && (r = json_scan_key(&m->scan, &first, &key)) > 0) {
        *ret |= telling_key(key);
        r = json_scan_skip(&m->scan);
    }
    return r;
}

static enum console_kind kind_of(unsigned keys, enum signal *ret_signal)
{
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        if (keys & HAS_OTLP << s) {
            *ret_signal = (enum signal)s;
            return CONSOLE_OTLP;
        }
    }
    *ret_signal = SIGNAL_TRACES;
    if ((keys & HAS_CONTEXT) && (keys & HAS_KIND))
        return CONSOLE_SPAN;
    *ret_signal = keys & HAS_METRICS ? SIGNAL_METRICS : SIGNAL_LOGS;
    if (keys & HAS_METRICS)
        return CONSOLE_METRICS;
    bool log =
        (keys & HAS_OBSERVED) || ((keys & HAS_SEVERITY) && (keys & HAS_FLAGS)); /* old SDKs */
    return log ? CONSOLE_LOG : CONSOLE_NOT_TELEMETRY;
}

static enum console_kind classify(struct console_mapper *m, struct bytes text,
                                  enum signal *ret_signal, size_t *ret_used)
{
    unsigned keys;
    start_scan(m, text, NULL);
    int r = telling_keys(m, &keys);
    *ret_used = r == 0 ? (size_t)(m->scan.p - text.data) : 0;
    return kind_of(keys, ret_signal);
}

enum console_kind console_classify(struct console_mapper *m, struct bytes text, size_t *ret_used)
{
    enum signal s;
    return classify(m, text, &s, ret_used);
}

/* What the first key lets expect, in the order in which the SDK prints. */
static enum console_kind guess(struct console_mapper *m, struct bytes text)
{
    struct bytes key;
    bool first = true;
    start_scan(m, text, NULL);
    if (json_scan_char(&m->scan, '{') < 0 || json_scan_key(&m->scan, &first, &key) <= 0)
        return CONSOLE_NOT_TELEMETRY;
    if (bytes_eq_str(key, "name"))
        return CONSOLE_SPAN;
    if (bytes_eq_str(key, "body"))
        return CONSOLE_LOG;
    return bytes_eq_str(key, "resource_metrics") ? CONSOLE_METRICS : CONSOLE_NOT_TELEMETRY;
}

/* ---- reading ---- */

static int read_span_or_log(struct console_mapper *m, const struct console_shape *shape)
{
    static const char none[] = "{}";
    int r = console_object(m, shape, &m->seen);
    if (r < 0 || m->resource)
        return r;
    /* Without a resource: an empty one, which may get the name of the server. */
    struct json_scan at = m->scan;
    m->scan.p = (const uint8_t *)none;
    m->scan.end = m->scan.p + strlen(none);
    r = console_resource(m);
    m->scan.p = at.p;
    m->scan.end = at.end;
    return r;
}

static int read_as(struct console_mapper *m, enum console_kind kind)
{
    buf_truncate(m->record, 0);
    m->resource = NULL;
    switch (kind) {
    case CONSOLE_SPAN: return read_span_or_log(m, &span_shape);
    case CONSOLE_LOG: return read_span_or_log(m, &log_shape);
    default: return console_object(m, &metrics_shape, NULL);
    }
}

/* Gives the resources of an OTLP request in m->record the name of the server. */
static int name_resources(struct console_mapper *m, enum signal s)
{
    const struct otlp_rewriter rw = {.resource = console_name_resource, .ctx = m};
    _cleanup_batch_ struct batch *in = NULL, *out = NULL;
    struct buf *fresh = buf_new(0);
    if (!fresh)
        return -ENOMEM;
    int r = batch_from_wire(s, m->record, &in, m->scan.err);
    m->record = fresh;
    if (r == 0)
        r = otlp_rewrite(&rw, in, &out);
    for (unsigned i = 0; r == 0 && i < out->nsegs; i++)
        r = buf_append(m->record, out->segs[i]->data, out->segs[i]->len);
    return r;
}

static int read_otlp(struct console_mapper *m, struct bytes text, enum signal s, size_t used,
                     struct err *reterr)
{
    buf_truncate(m->record, 0);
    m->resource = NULL;
    m->scan.err = reterr;
    int r = json_read(schema_request(s), bytes_of(text.data, used), m->record, reterr);
    return r == 0 && m->server_name.len ? name_resources(m, s) : r;
}

/* By what its members are, when the first key did not tell or told wrong. */
static int map_slowly(struct console_mapper *m, struct bytes text, enum console_kind tried,
                      enum signal *ret_signal, size_t *ret_used, struct err *reterr)
{
    enum console_kind kind = classify(m, text, ret_signal, ret_used);
    if (kind == CONSOLE_NOT_TELEMETRY)
        return kind;
    if (kind == tried) /* reterr is set */
        return -EBADMSG;
    int r = kind == CONSOLE_OTLP && *ret_used == 0
                ? err_set(reterr, -EBADMSG, "the object does not end")
                : 0;
    start_scan(m, text, reterr);
    if (r == 0)
        r = kind == CONSOLE_OTLP ? read_otlp(m, text, *ret_signal, *ret_used, reterr)
                                 : read_as(m, kind);
    return r == 0 ? (int)kind : r;
}

static enum signal signal_of(enum console_kind kind)
{
    return kind == CONSOLE_SPAN  ? SIGNAL_TRACES
           : kind == CONSOLE_LOG ? SIGNAL_LOGS
                                 : SIGNAL_METRICS;
}

/* True when m->record is what the first key let expect. */
static bool guessed_right(struct console_mapper *m, struct bytes text, enum console_kind kind)
{
    enum signal s;
    size_t used;
    return kind != CONSOLE_LOG || (m->seen & LOG_SEEN_OBSERVED) ||
           classify(m, text, &s, &used) == CONSOLE_LOG;
}

int console_map(struct console_mapper *m, struct bytes text, struct bytes server_name,
                enum signal *ret_signal, size_t *ret_used, struct err *reterr)
{
    bool fits = server_name.len <= CONSOLE_NAME_MAX;
    m->server_name = bytes_of(server_name.data, fits ? server_name.len : 0);
    enum console_kind kind = guess(m, text);
    int r = -EBADMSG;
    *ret_used = 0;
    if (kind != CONSOLE_NOT_TELEMETRY) {
        start_scan(m, text, reterr);
        r = read_as(m, kind);
    }
    size_t used = (size_t)(m->scan.p - text.data);
    if (r == 0 && guessed_right(m, text, kind)) {
        *ret_used = used;
        *ret_signal = signal_of(kind);
        return (int)kind;
    }
    if (r != -ENOMEM)
        r = map_slowly(m, text, kind, ret_signal, ret_used, reterr);
    return r < 0 && r != -ENOMEM ? -EBADMSG : r;
}

/* ---- a whole request ---- */

int console_put_entry(struct buf *out, const struct console_resource *resource, struct bytes items)
{
    size_t mark;
    int r = wire_begin(out, OTLP_ENTRIES, &mark);
    if (r == 0)
        r = buf_append(out, resource->entry->data, resource->entry->len);
    if (r == 0)
        r = wire_put_bytes(out, ENTRY_ITEMS, items);
    if (r == 0)
        r = buf_append(out, resource->url->data, resource->url->len);
    return r == 0 ? wire_end(out, mark) : r;
}

/* Appends what was mapped as a request. */
static int put_request(struct console_mapper *m, enum console_kind kind, struct buf *out)
{
    if (kind == CONSOLE_METRICS || kind == CONSOLE_OTLP)
        return buf_append(out, m->record->data, m->record->len);
    _cleanup_buf_ struct buf *items = buf_new(0);
    int r = items ? wire_put_bytes(items, ENTRY_ITEMS, buf_bytes(m->record)) : -ENOMEM;
    return r == 0 ? console_put_entry(out, m->resource, buf_bytes(items)) : r;
}

int console_read(struct bytes text, struct bytes server_name, struct buf *out,
                 enum signal *ret_signal, size_t *ret_used, struct err *reterr)
{
    struct console_mapper m;
    size_t before = out->len;
    int kind = console_mapper_init(&m);
    if (kind == 0)
        kind = console_map(&m, text, server_name, ret_signal, ret_used, reterr);
    int r = kind > 0 ? put_request(&m, (enum console_kind)kind, out) : 0;
    console_mapper_done(&m);
    if (r < 0)
        buf_truncate(out, before);
    return r < 0 ? r : kind;
}
