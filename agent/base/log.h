/*
 * Structured log lines on stderr (or files) in the reference's console and JSON encodings:
 *   log_warn(&c->logger, "Exporting failed", LOG_STR("error", text), LOG_INT("dropped_items", n));
 * Thread safe. Every line goes through the redaction of agent/base/secrets.h and is written with one write(2).
 */
#ifndef MOTEL_BASE_LOG_H
#define MOTEL_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/bytes.h"
#include "agent/base/err.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF };
enum log_encoding { LOG_CONSOLE, LOG_JSON };

/* Who speaks; every member may be NULL. Rendered as otelcol.component.id, .kind, otelcol.signal, otelcol.pipeline.id. */
struct logger {
    const char *id, *kind, *signal, *pipeline;
};

enum log_field_type { LOG_FIELD_STR, LOG_FIELD_INT, LOG_FIELD_DOUBLE, LOG_FIELD_BOOL, LOG_FIELD_RAW };
struct log_field {
    const char *key;
    enum log_field_type type;
    union {
        const char *s;
        int64_t i;
        double d;
        bool b;
    };
};
#define LOG_STR(k, v) ((struct log_field){(k), LOG_FIELD_STR, {.s = (v)}})
#define LOG_INT(k, v) ((struct log_field){(k), LOG_FIELD_INT, {.i = (int64_t)(v)}})
#define LOG_DBL(k, v) ((struct log_field){(k), LOG_FIELD_DOUBLE, {.d = (v)}})
#define LOG_BOOL(k, v) ((struct log_field){(k), LOG_FIELD_BOOL, {.b = (v)}})
#define LOG_RAWJSON(k, v) ((struct log_field){(k), LOG_FIELD_RAW, {.s = (v)}}) /* text that is JSON already */

/* `fields` ends with a NULL key; `lg` may be NULL. Use the macros. */
void log_event(enum log_level level, const struct logger *lg, const char *msg,
               const struct log_field *fields);
/* The same for a text of many lines, which stay lines in the console encoding, and without fields. */
void log_text(enum log_level level, const struct logger *lg, struct bytes text);
bool log_enabled(enum log_level level);

#define log_fields_(...) ((const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){.key = (const char *)0}})
#define log_at(level, lg, msg, ...)                                                                \
    do {                                                                                           \
        if (log_enabled(level))                                                                    \
            log_event((level), (lg), (msg), log_fields_(__VA_ARGS__));                             \
    } while (0)
#define log_debug(lg, msg, ...) log_at(LOG_DEBUG, lg, msg, __VA_ARGS__)
#define log_info(lg, msg, ...) log_at(LOG_INFO, lg, msg, __VA_ARGS__)
#define log_warn(lg, msg, ...) log_at(LOG_WARN, lg, msg, __VA_ARGS__)
#define log_error(lg, msg, ...) log_at(LOG_ERROR, lg, msg, __VA_ARGS__)

/* service.telemetry.logs. Set before threads start and again at a reload; the strings are copied. */
struct log_options {
    enum log_level level;
    enum log_encoding encoding;
    bool sampling;                   /* per level + message: first `initial` a tick, then every `thereafter`-th */
    uint64_t sampling_tick_ns;
    uint32_t sampling_initial, sampling_thereafter;
    const char *const *output_paths; /* NULL ended; "stderr", "stdout" or a file; NULL = stderr */
    const char *resource_json;       /* value of the "resource" field, "{…}"; NULL = left out */
    const char *initial_fields_json; /* "\"k\":\"v\",…" put into every line; NULL = none */
};
/* 0, or -errno with reterr when an output path cannot be opened (the old settings stay). Before the first call: info, console. */
int log_configure(const struct log_options *o, struct err *reterr);

#endif
