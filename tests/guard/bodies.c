/* Requests as the instrumentation of a run sends them, and a page of metrics. */
#include <stdio.h>

#include "proto/otlp_fields.h"
#include "proto/wire.h"
#include "tests/guard/guard.h"

static void put_value(struct buf *b, uint32_t number, const char *key, const char *text, uint64_t n)
{
    size_t kv, any;
    wire_begin(b, number, &kv);
    wire_put_str(b, 1, key);
    wire_begin(b, 2, &any);
    if (text)
        wire_put_str(b, 1, text);
    else
        wire_put_uint(b, 3, n);
    wire_end(b, any);
    wire_end(b, kv);
}

static void put_attributes(struct buf *b, unsigned i)
{
    char text[120];
    put_value(b, SPAN_ATTRIBUTES, "http.request.method", i % 4 ? "POST" : "GET", 0);
    put_value(b, SPAN_ATTRIBUTES, "http.route", "/v1/responses", 0);
    put_value(b, SPAN_ATTRIBUTES, "http.response.status_code", NULL, i % 50 ? 200 : 503);
    put_value(b, SPAN_ATTRIBUTES, "server.address", "model-server-0", 0);
    put_value(b, SPAN_ATTRIBUTES, "server.port", NULL, 8000 + i % 4);
    put_value(b, SPAN_ATTRIBUTES, "gen_ai.request.model", "example/model-70b-instruct", 0);
    put_value(b, SPAN_ATTRIBUTES, "gen_ai.usage.input_tokens", NULL, 100 + 37 * i % 9000);
    put_value(b, SPAN_ATTRIBUTES, "gen_ai.usage.output_tokens", NULL, 10 + 11 * i % 2000);
    snprintf(text, sizeof(text), "rollout-%08u-attempt-%u", i / 8, i % 3);
    put_value(b, SPAN_ATTRIBUTES, "gym.rollout.id", text, 0);
    put_value(b, SPAN_ATTRIBUTES, "gym.step", NULL, i % 30);
    put_value(b, SPAN_ATTRIBUTES, "user_agent.original", "python-httpx/0.28.1", 0);
    snprintf(text, sizeof(text),
             "a \"quoted\" note \xe2\x80\x93 of the agent\non two lines, as long as most of what "
             "agents say, %u",
             i);
    put_value(b, SPAN_ATTRIBUTES, "gym.note", text, 0);
}

static void put_id(struct buf *b, uint32_t number, size_t len, uint64_t n)
{
    uint8_t id[16];
    for (size_t k = 0; k < len; k++)
        id[k] = (uint8_t)((n + 1) * 0x9e3779b97f4a7c15 >> 8 * (k % 8)) ^ (uint8_t)k;
    wire_put_bytes(b, number, bytes_of(id, len));
}

static void put_span(struct buf *b, unsigned i)
{
    static const char *const names[] = {
        "POST /v1/responses",   "chat example/model", "agent.step", "sandbox.exec", "verify",
        "resources_server.seed"};
    const uint64_t start_ns = 1790000000000000000u + (uint64_t)i * 1000003;
    size_t span, status;
    wire_begin(b, 2, &span);
    put_id(b, SPAN_TRACE_ID, 16, i / 8);
    put_id(b, SPAN_ID, 8, i);
    put_id(b, SPAN_PARENT_ID, 8, i / 2);
    wire_put_str(b, SPAN_NAME, names[i % ARRAY_SIZE(names)]);
    wire_put_uint(b, SPAN_KIND, i % 3 + 1);
    wire_put_fixed64(b, SPAN_START, start_ns);
    wire_put_fixed64(b, SPAN_END, start_ns + (uint64_t)(i * 7919 % 10007) * 100000);
    put_attributes(b, i);
    wire_begin(b, SPAN_STATUS, &status);
    if (i % 50 == 0)
        wire_put_uint(b, STATUS_CODE, 2);
    wire_end(b, status);
    wire_end(b, span);
}

static void put_resource(struct buf *b, unsigned resource)
{
    char text[40];
    size_t head;
    wire_begin(b, 1, &head);
    put_value(b, 1, "telemetry.sdk.language", "python", 0);
    put_value(b, 1, "telemetry.sdk.name", "opentelemetry", 0);
    put_value(b, 1, "telemetry.sdk.version", "1.45.0", 0);
    snprintf(text, sizeof(text), "server-%u", resource);
    put_value(b, 1, "service.name", text, 0);
    snprintf(text, sizeof(text), "instance-%u-of-run", resource);
    put_value(b, 1, "service.instance.id", text, 0);
    wire_end(b, head);
}

struct buf *body_traces(unsigned resource, unsigned first, unsigned n)
{
    struct buf *b = buf_new(0);
    size_t entry, scope, head;
    guard_must(b, "no memory");
    wire_begin(b, 1, &entry);
    put_resource(b, resource);
    wire_begin(b, 2, &scope);
    wire_begin(b, 1, &head);
    wire_put_str(b, SCOPE_NAME, "opentelemetry.instrumentation.httpx");
    wire_put_str(b, SCOPE_VERSION, "0.66b0");
    wire_end(b, head);
    for (unsigned i = first; i < first + n; i++)
        put_span(b, i);
    wire_end(b, scope);
    wire_end(b, entry);
    return b;
}

struct batch *body_batch(unsigned resource, unsigned first, unsigned n)
{
    struct batch *b = NULL;
    guard_must(batch_from_wire(SIGNAL_TRACES, body_traces(resource, first, n), &b, NULL) == 0 &&
                   b->records == n,
               "the body is not sound");
    return b;
}

/* ---- the page ---- */

static void put_family(struct buf *b, const char *type, unsigned f)
{
    buf_printf(b, "# HELP model_%s_%u What the server says about number %u of its kind.\n", type, f,
               f);
    buf_printf(b, "# TYPE model_%s_%u %s\n", type, f, type);
}

static void put_numbers(struct buf *b, const char *type, unsigned families, unsigned series,
                        unsigned age)
{
    for (unsigned f = 0; f < families; f++) {
        put_family(b, type, f);
        for (unsigned i = 0; i < series; i++)
            buf_printf(b,
                       "model_%s_%u{engine=\"%u\",model_name=\"example/model-70b\",path=\"/v1/"
                       "item/%u\"} %u%s\n",
                       type, f, i % 8, i, i * 1237 + f + age * (i % 7), i % 3 ? "" : ".25");
    }
}

static void put_histograms(struct buf *b, unsigned families, unsigned series, unsigned age)
{
    static const char *const bounds[] = {"0.005", "0.05", "0.5",  "1.0",
                                         "2.5",   "10.0", "60.0", "+Inf"};
    for (unsigned f = 0; f < families; f++) {
        put_family(b, "histogram", f);
        for (unsigned i = 0; i < series; i++) {
            for (unsigned k = 0; k < ARRAY_SIZE(bounds); k++)
                buf_printf(b, "model_histogram_%u_bucket{engine=\"%u\",le=\"%s\"} %u.0\n", f, i,
                           bounds[k], (k + 1) * (i + 3 + age));
            buf_printf(b, "model_histogram_%u_sum{engine=\"%u\"} %u.0625\n", f, i, 31 * i + age);
            buf_printf(b, "model_histogram_%u_count{engine=\"%u\"} %u.0\n", f, i,
                       8 * (i + 3 + age));
        }
    }
}

struct buf *body_page(unsigned age)
{
    struct buf *b = buf_new(0);
    guard_must(b, "no memory");
    put_numbers(b, "counter", 30, 70, age); /* 2,100 */
    put_numbers(b, "gauge", 38, 50, age);   /* 1,900 */
    put_histograms(b, 10, 10, age);         /* 1,000 */
    return b;
}
