/* Verbosity `detailed`: every field of traces and logs on a line of its own. */
#include "exporters/debug/text.h"
#include "proto/otlp_fields.h"
#include "proto/schema.h"

static void put_keys(struct text *t, const char *header, struct bytes ref, uint32_t field)
{
    struct wire_reader r = wire_reader(ref);
    struct bytes key;
    for (bool first = true; wire_each(&r, field, &key); first = false) {
        if (first)
            text_printf(t, "          -> %s:\n", header);
        text_line(t, "               -> ", key);
    }
}

static void put_entity(struct text *t, unsigned i, struct bytes ref)
{
    text_printf(t, "     -> Entity ref #%u:\n", i);
    text_string_line(t, "          -> Type: ", ref, ENTITY_TYPE);
    if (wire_bytes(ref, ENTITY_SCHEMA_URL).len)
        text_string_line(t, "          -> Schema URL: ", ref, ENTITY_SCHEMA_URL);
    put_keys(t, "ID keys", ref, ENTITY_ID_KEYS);
    put_keys(t, "Description keys", ref, ENTITY_DESCRIPTION_KEYS);
}

static void put_entities(struct text *t, struct bytes resource)
{
    struct wire_reader r = wire_reader(resource);
    struct bytes ref;
    for (unsigned i = 0; wire_each(&r, RESOURCE_ENTITY_REFS, &ref); i++) {
        if (i == 0)
            text_printf(t, "Resource entity refs:\n");
        put_entity(t, i, ref);
    }
}

static void put_scope(struct text *t, struct bytes scope)
{
    text_bytes(t, bytes_str("InstrumentationScope "));
    text_bytes(t, wire_bytes(scope, SCOPE_NAME));
    text_string_line(t, " ", scope, SCOPE_VERSION);
    text_attributes(t, "InstrumentationScope attributes", "     ->", scope, SCOPE_ATTRIBUTES);
}

static void put_count(struct text *t, const char *before, struct bytes msg, uint32_t field)
{
    text_printf(t, "%s%llu\n", before, (unsigned long long)wire_uint(msg, field));
}

static void put_events(struct text *t, struct bytes span)
{
    struct wire_reader r = wire_reader(span);
    struct bytes e;
    for (unsigned i = 0; wire_each(&r, SPAN_EVENTS, &e); i++) {
        text_printf(t, "%sSpanEvent #%u\n", i ? "" : "Events:\n", i);
        text_string_line(t, "     -> Name: ", e, EVENT_NAME);
        text_time_line(t, "     -> Timestamp: ", e, EVENT_TIME);
        put_count(t, "     -> DroppedAttributesCount: ", e, EVENT_DROPPED_ATTRIBUTES);
        text_attributes(t, "     -> Attributes:", "          ->", e, EVENT_ATTRIBUTES);
    }
}

static void put_links(struct text *t, struct bytes span)
{
    struct wire_reader r = wire_reader(span);
    struct bytes l;
    for (unsigned i = 0; wire_each(&r, SPAN_LINKS, &l); i++) {
        text_printf(t, "%sSpanLink #%u\n", i ? "" : "Links:\n", i);
        text_id_line(t, "     -> Trace ID: ", l, LINK_TRACE_ID);
        text_id_line(t, "     -> ID: ", l, LINK_SPAN_ID);
        text_string_line(t, "     -> TraceState: ", l, LINK_TRACE_STATE);
        put_count(t, "     -> DroppedAttributesCount: ", l, LINK_DROPPED_ATTRIBUTES);
        text_attributes(t, "     -> Attributes:", "          ->", l, LINK_ATTRIBUTES);
    }
}

static void put_span(struct text *t, unsigned i, struct bytes s)
{
    static const char *const kinds[] = {"Unspecified", "Internal", "Server",
                                        "Client",      "Producer", "Consumer"};
    static const char *const codes[] = {"Unset", "Ok", "Error"};
    struct bytes status = wire_bytes(s, SPAN_STATUS);
    text_printf(t, "Span #%u\n", i);
    text_id_line(t, "    Trace ID       : ", s, SPAN_TRACE_ID);
    text_id_line(t, "    Parent ID      : ", s, SPAN_PARENT_ID);
    text_id_line(t, "    ID             : ", s, SPAN_ID);
    text_string_line(t, "    Name           : ", s, SPAN_NAME);
    text_printf(t, "    Kind           : %s\n",
                text_name(kinds, ARRAY_SIZE(kinds), wire_uint(s, SPAN_KIND)));
    if (wire_bytes(s, SPAN_TRACE_STATE).len)
        text_string_line(t, "    TraceState     : ", s, SPAN_TRACE_STATE);
    text_time_line(t, "    Start time     : ", s, SPAN_START);
    text_time_line(t, "    End time       : ", s, SPAN_END);
    text_printf(t, "    Status code    : %s\n",
                text_name(codes, ARRAY_SIZE(codes), wire_uint(status, STATUS_CODE)));
    text_string_line(t, "    Status message : ", status, STATUS_MESSAGE);
    put_count(t, "    DroppedAttributesCount: ", s, SPAN_DROPPED_ATTRIBUTES);
    put_count(t, "    DroppedEventsCount: ", s, SPAN_DROPPED_EVENTS);
    put_count(t, "    DroppedLinksCount: ", s, SPAN_DROPPED_LINKS);
    text_attributes(t, "Attributes", "     ->", s, SPAN_ATTRIBUTES);
    put_events(t, s);
    put_links(t, s);
}

static void put_severity(struct text *t, struct bytes log)
{
    static const char *const names[] = {
        "Unspecified", "Trace",  "Trace2", "Trace3", "Trace4", "Debug",  "Debug2",
        "Debug3",      "Debug4", "Info",   "Info2",  "Info3",  "Info4",  "Warn",
        "Warn2",       "Warn3",  "Warn4",  "Error",  "Error2", "Error3", "Error4",
        "Fatal",       "Fatal2", "Fatal3", "Fatal4",
    };
    uint64_t number = wire_uint(log, LOG_SEVERITY_NUMBER);
    text_printf(t, "SeverityNumber: %s(%d)\n", text_name(names, ARRAY_SIZE(names), number),
                (int)(int32_t)number);
}

static void put_log(struct text *t, unsigned i, struct bytes l)
{
    text_printf(t, "LogRecord #%u\n", i);
    text_time_line(t, "ObservedTimestamp: ", l, LOG_OBSERVED_TIME);
    text_time_line(t, "Timestamp: ", l, LOG_TIME);
    text_string_line(t, "SeverityText: ", l, LOG_SEVERITY_TEXT);
    put_severity(t, l);
    if (wire_bytes(l, LOG_EVENT_NAME).len)
        text_string_line(t, "EventName: ", l, LOG_EVENT_NAME);
    text_bytes(t, bytes_str("Body: "));
    text_typed_value(t, wire_bytes(l, LOG_BODY));
    text_bytes(t, bytes_str("\n"));
    text_attributes(t, "Attributes", "     ->", l, LOG_ATTRIBUTES);
    text_id_line(t, "Trace ID: ", l, LOG_TRACE_ID);
    text_id_line(t, "Span ID: ", l, LOG_SPAN_ID);
    put_count(t, "Flags: ", l, LOG_FLAGS);
}

static void put_metric(struct text *t, unsigned i, struct bytes metric)
{
    text_printf(t, "Metric #%u\n", i);
    detailed_metric(t, metric);
}

static const struct {
    const char *resource, *scope;
    void (*put)(struct text *t, unsigned i, struct bytes item);
} signals[] = {
    [SIGNAL_TRACES] = {"ResourceSpans", "ScopeSpans", put_span},
    [SIGNAL_METRICS] = {"ResourceMetrics", "ScopeMetrics", put_metric},
    [SIGNAL_LOGS] = {"ResourceLog", "ScopeLogs", put_log},
};

static void put_scope_entry(struct text *t, enum signal s, unsigned i, struct bytes entry)
{
    struct wire_reader r = wire_reader(entry);
    struct bytes item;
    text_printf(t, "%s #%u\n%s SchemaURL: ", signals[s].scope, i, signals[s].scope);
    text_string_line(t, "", entry, ENTRY_SCHEMA_URL);
    put_scope(t, wire_bytes(entry, ENTRY_HEAD));
    for (unsigned k = 0; wire_each(&r, ENTRY_ITEMS, &item); k++)
        signals[s].put(t, k, item);
}

static void put_resource_entry(struct text *t, enum signal s, unsigned i, struct bytes entry)
{
    struct wire_reader r = wire_reader(entry);
    struct bytes resource = wire_bytes(entry, ENTRY_HEAD), scope;
    text_printf(t, "%s #%u\n", signals[s].resource, i);
    text_string_line(t, "Resource SchemaURL: ", entry, ENTRY_SCHEMA_URL);
    text_attributes(t, "Resource attributes", "     ->", resource, RESOURCE_ATTRIBUTES);
    put_entities(t, resource);
    for (unsigned k = 0; wire_each(&r, ENTRY_ITEMS, &scope); k++)
        put_scope_entry(t, s, k, scope);
}

void detailed_text(struct text *t, const struct batch *b)
{
    text_resources(t, b, put_resource_entry);
}
