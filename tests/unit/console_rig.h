/* A console reader with a sink that writes down what it gets. */
#ifndef CONSOLE_RIG_H
#define CONSOLE_RIG_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/any_value.h"
#include "proto/console.h"
#include "proto/json.h"
#include "proto/otlp_fields.h"
#include "proto/schema.h"

struct notes {
    struct buf *records; /* S(name) L(body) M(metric names), with @server when the resource has one, in the order of their arrival */
    struct buf *plain;   /* all plain bytes */
    struct buf *all;     /* both, plain pieces in [] */
    struct buf *json;    /* a line for each record: resource and record as JSON */
    int answer;          /* of the sink */
};

static inline void notes_init(struct notes *n)
{
    *n = (struct notes){buf_new(0), buf_new(0), buf_new(0), buf_new(0), 0};
}

static inline void notes_done(struct notes *n)
{
    buf_unref(n->records);
    buf_unref(n->plain);
    buf_unref(n->all);
    buf_unref(n->json);
}

static inline struct bytes server_of(struct bytes resource)
{
    struct wire_reader r = wire_reader(resource);
    struct bytes kv;
    while (wire_each(&r, RESOURCE_ATTRIBUTES, &kv)) {
        struct key_value k = key_value_read(kv);
        if (bytes_eq_str(k.key, "nemo.gym.server.name"))
            return any_value_read(k.value).bytes;
    }
    return bytes_of("", 0);
}

static inline void note_record(struct notes *n, enum signal s, struct bytes resource, struct bytes record)
{
    static const char letters[] = "SML";
    static const uint8_t names[] = {SPAN_NAME, METRIC_NAME, LOG_BODY};
    _cleanup_buf_ struct buf *text = buf_new(0);
    struct bytes name = wire_bytes(record, names[s]), server = server_of(resource);
    if (s == SIGNAL_LOGS)
        any_value_text(name, text);
    else
        buf_append(text, name.data, name.len);
    buf_printf(n->records, "%c(%s", letters[s], buf_str(text));
    buf_printf(n->all, "%c(%s", letters[s], buf_str(text));
    if (server.len)
        buf_printf(n->records, "@%.*s", (int)server.len, (const char *)server.data);
    if (server.len)
        buf_printf(n->all, "@%.*s", (int)server.len, (const char *)server.data);
    buf_append_str(n->records, ")");
    buf_append_str(n->all, ")");
}

static inline void note_json(struct notes *n, enum signal s, struct bytes entry, struct bytes scope_entry, struct bytes record)
{
    static const char *const types[] = {"opentelemetry.proto.trace.v1.Span", "opentelemetry.proto.metrics.v1.Metric",
                                        "opentelemetry.proto.logs.v1.LogRecord"};
    struct bytes url = wire_bytes(entry, ENTRY_SCHEMA_URL), scope_url = wire_bytes(scope_entry, ENTRY_SCHEMA_URL);
    json_write(schema_find("opentelemetry.proto.resource.v1.Resource"), wire_bytes(entry, ENTRY_HEAD), 0, n->json);
    buf_printf(n->json, " %.*s ", (int)url.len, (const char *)url.data);
    json_write(schema_find("opentelemetry.proto.common.v1.InstrumentationScope"), wire_bytes(scope_entry, ENTRY_HEAD), 0, n->json);
    buf_printf(n->json, " %.*s ", (int)scope_url.len, (const char *)scope_url.data);
    json_write(schema_find(types[s]), record, 0, n->json);
    buf_append_str(n->json, "\n");
}

static inline int note_telemetry(void *ctx, struct batch *b)
{
    struct notes *n = ctx;
    for (unsigned i = 0; i < b->nsegs; i++) {
        struct wire_reader entries = wire_reader(buf_bytes(b->segs[i]));
        struct bytes entry, scope_entry, record;
        while (wire_each(&entries, OTLP_ENTRIES, &entry)) {
            struct wire_reader scopes = wire_reader(entry);
            while (wire_each(&scopes, ENTRY_ITEMS, &scope_entry)) {
                struct wire_reader records = wire_reader(scope_entry);
                while (wire_each(&records, ENTRY_ITEMS, &record)) {
                    note_record(n, b->signal, wire_bytes(entry, ENTRY_HEAD), record);
                    note_json(n, b->signal, entry, scope_entry, record);
                }
            }
        }
    }
    assert_true(b->records > 0);
    batch_unref(b);
    return n->answer;
}

static inline int note_plain(void *ctx, struct bytes line)
{
    struct notes *n = ctx;
    assert_true(line.len > 0);
    buf_append(n->plain, line.data, line.len);
    buf_append_str(n->all, "[");
    buf_append(n->all, line.data, line.len);
    buf_append_str(n->all, "]");
    return n->answer;
}

static inline struct console_reader *notes_reader(struct notes *n, size_t max)
{
    const struct console_sink sink = {note_telemetry, note_plain, n};
    struct console_reader *r = console_reader_new(&sink, max);
    assert_non_null(r);
    return r;
}

/* Feeds in pieces of `step` bytes, again where it says so. */
static inline void feed_all(struct console_reader *r, struct bytes text, size_t step)
{
    while (text.len) {
        size_t n = text.len < step ? text.len : step, used = 0;
        int e = console_feed(r, bytes_of(text.data, n), &used);
        assert_true(e == 0 || e == -EAGAIN);
        assert_true(e ? used <= n : used == n);
        text = bytes_of(text.data + used, text.len - used);
    }
}

#endif
