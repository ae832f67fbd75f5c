/* service::telemetry: motel's own logs, metrics and resource. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/base/json_text.h"
#include "agent/config/value_json.h"
#include "agent/pipeline/settings_build.h"

struct attribute {
    const char *name, *value;
};
struct attributes {
    struct attribute *items;
    size_t n; /* the array has room for all that can come */
};

/* One per process: a reload keeps it. */
static const char *instance_id(void)
{
    static char text[37];
    uint8_t u[16];
    if (text[0])
        return text;
    if (getrandom(u, sizeof(u), 0) != (ssize_t)sizeof(u))
        memset(u, 0, sizeof(u));
    u[6] = (uint8_t)((u[6] & 0x0f) | 0x40);
    u[8] = (uint8_t)((u[8] & 0x3f) | 0x80);
    for (size_t i = 0, at = 0; i < sizeof(u); i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            text[at++] = '-';
        text[at++] = "0123456789abcdef"[u[i] >> 4];
        text[at++] = "0123456789abcdef"[u[i] & 15];
    }
    return text;
}

/* Sets an attribute, or takes it away (value NULL). */
static void set_attribute(struct attributes *a, const char *name, const char *value)
{
    size_t i = 0;
    while (i < a->n && strcmp(a->items[i].name, name) != 0)
        i++;
    if (value) {
        a->items[i] = (struct attribute){name, value};
        a->n += i == a->n;
    } else if (i < a->n)
        a->items[i] = a->items[--a->n];
}

static const char *scalar_text(const struct cfg_value *v)
{
    return v && v->type != CFG_NULL && v->type != CFG_LIST && v->type != CFG_MAP ? v->text : NULL;
}

#define RESOURCE_PATH "service::telemetry::resource"

/* {name, value} of the declarative form. */
static void add_declared(struct settings_build *b, const struct cfg_value *v, struct attributes *a)
{
    static const char *const known[] = {"name", "value", NULL};
    const char *path = RESOURCE_PATH "::attributes";
    if (v->type != CFG_MAP) {
        cfg_error(b->errs, v->pos, path, "expected {name, value}, got %s", cfg_type_name(v->type));
        return;
    }
    for (size_t i = 0; i < v->n; i++)
        if (strcmp(v->keys[i], known[0]) != 0 && strcmp(v->keys[i], known[1]) != 0)
            cfg_error(b->errs, v->key_pos[i], path, "unknown key \"%s\" (known: name, value)",
                      v->keys[i]);
    const char *name = scalar_text(cfg_get(v, "name"));
    if (!name || !*name)
        cfg_error(b->errs, v->pos, path, "an attribute needs a name");
    else
        set_attribute(a, name, scalar_text(cfg_get(v, "value")));
}

static void add_legacy(struct settings_build *b, const struct cfg_value *v, struct attributes *a)
{
    for (size_t i = 0; i < v->n; i++) {
        const struct cfg_value *item = v->items[i];
        if (item->type == CFG_NULL || item->type == CFG_STRING || item->expanded)
            set_attribute(a, v->keys[i], item->type == CFG_NULL ? NULL : item->text);
        else
            cfg_error(b->errs, item->pos, RESOURCE_PATH,
                      "attribute \"%s\" must be a string or null, got %s", v->keys[i],
                      cfg_type_name(item->type));
    }
}

static void add_configured(struct settings_build *b, const struct cfg_value *v,
                           struct attributes *a)
{
    if (v->type != CFG_MAP) {
        cfg_error(b->errs, v->pos, RESOURCE_PATH, "expected a map, got %s", cfg_type_name(v->type));
        return;
    }
    const struct cfg_value *declared = cfg_get(v, "attributes");
    if (cfg_get(v, "attributes_list"))
        cfg_error(b->errs, cfg_get(v, "attributes_list")->pos, RESOURCE_PATH,
                  "attributes_list is not supported; use attributes");
    else if (declared && declared->type != CFG_LIST && declared->type != CFG_NULL)
        cfg_error(b->errs, declared->pos, RESOURCE_PATH "::attributes",
                  "expected a list of {name, value}, got %s", cfg_type_name(declared->type));
    else if (declared)
        for (size_t i = 0; i < declared->n; i++)
            add_declared(b, declared->items[i], a);
    else if (!cfg_get(v, "schema_url") && !cfg_get(v, "detectors"))
        add_legacy(b, v, a);
}

static int by_name(const void *x, const void *y)
{
    return strcmp(((const struct attribute *)x)->name, ((const struct attribute *)y)->name);
}

/* A part of a JSON text, kept in the arena; NULL when `r` says that it could not be made. */
static const char *keep_json(struct settings_build *b, struct bytes json, int r)
{
    const char *copy =
        r < 0 ? NULL : arena_strndup(b->config->arena, (const char *)json.data, json.len);
    b->no_memory = b->no_memory || !copy;
    return copy;
}

static int put_attribute(struct buf *out, const struct attribute *a, bool first, bool spaced)
{
    int r = first ? 0 : buf_append_str(out, spaced ? ", " : ",");
    if (r == 0)
        r = json_text(out, bytes_str(a->name));
    if (r == 0)
        r = buf_append_str(out, spaced ? ": " : ":");
    return r < 0 ? r : json_text(out, bytes_str(a->value));
}

static const char *resource_json(struct settings_build *b, const struct attributes *a, bool spaced)
{
    _cleanup_buf_ struct buf *out = buf_new(0);
    int r = out ? buf_putc(out, '{') : -ENOMEM;
    for (size_t i = 0; r == 0 && i < a->n; i++)
        r = put_attribute(out, &a->items[i], i == 0, spaced);
    if (r == 0)
        r = buf_putc(out, '}');
    return keep_json(b, out ? buf_bytes(out) : (struct bytes){0}, r);
}

static size_t count_attributes(const struct cfg_value *v)
{
    const struct cfg_value *declared = v && v->type == CFG_MAP ? cfg_get(v, "attributes") : NULL;
    return 3 + (v ? v->n : 0) + (declared ? declared->n : 0);
}

static void bind_resource(struct settings_build *b, const struct telemetry_config *t)
{
    const size_t max = count_attributes(t->resource);
    struct attributes a = {.items = settings_alloc(b, max * sizeof(*a.items))};
    const char **pairs = settings_alloc(b, (2 * max + 1) * sizeof(*pairs));
    if (!a.items || !pairs)
        return;
    set_attribute(&a, "service.instance.id", instance_id());
    set_attribute(&a, "service.name", "motel");
    set_attribute(&a, "service.version", MOTEL_VERSION);
    if (t->resource && t->resource->type != CFG_NULL)
        add_configured(b, t->resource, &a);
    qsort(a.items, a.n, sizeof(*a.items), by_name);
    for (size_t i = 0; i < a.n; i++) {
        pairs[2 * i] = a.items[i].name;
        pairs[2 * i + 1] = a.items[i].value;
    }
    b->out->telemetry.resource = pairs;
    if (!t->logs.disable_zap_resource)
        b->out->telemetry.logs.resource_json =
            resource_json(b, &a, t->logs.encoding == LOG_CONSOLE);
}

/* The map without its braces, to be put into every line. */
static const char *initial_fields(struct settings_build *b, const struct telemetry_logs *logs)
{
    const struct cfg_value *v = logs->initial_fields;
    if (!v || v->type == CFG_NULL)
        return NULL;
    if (v->type != CFG_MAP) {
        cfg_error(b->errs, v->pos, "service::telemetry::logs::initial_fields",
                  "expected a map, got %s", cfg_type_name(v->type));
        return NULL;
    }
    if (v->n == 0)
        return NULL;
    _cleanup_buf_ struct buf *out = buf_new(0);
    const enum value_json_style style =
        logs->encoding == LOG_CONSOLE ? VALUE_JSON_SPACED : VALUE_JSON_COMPACT;
    int r = out ? cfg_value_json(out, v, style) : -ENOMEM;
    return keep_json(b, r < 0 ? (struct bytes){0} : bytes_of(out->data + 1, out->len - 2), r);
}

static void bind_logs(struct settings_build *b, const struct telemetry_logs *logs)
{
    static const enum log_level map[] = {LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR,
                                         LOG_OFF,   LOG_OFF,  LOG_OFF};
    const char **paths = settings_alloc(b, (logs->output_paths.n + 1) * sizeof(*paths));
    if (!paths)
        return;
    if (logs->output_paths.n)
        memcpy(paths, logs->output_paths.items, logs->output_paths.n * sizeof(*paths));
    b->out->telemetry.logs = (struct log_options){
        .level = map[logs->level],
        .encoding = logs->encoding == 0 ? LOG_CONSOLE : LOG_JSON,
        .sampling = logs->sampling != NULL,
        .output_paths = paths,
        .initial_fields_json = initial_fields(b, logs),
    };
    if (logs->sampling) {
        b->out->telemetry.logs.sampling_tick_ns = (uint64_t)logs->sampling->tick_ns;
        b->out->telemetry.logs.sampling_initial = (uint32_t)logs->sampling->initial;
        b->out->telemetry.logs.sampling_thereafter = (uint32_t)logs->sampling->thereafter;
    }
}

static const char *reader_endpoint(struct settings_build *b, const struct prometheus_reader *p)
{
    const bool v6 = strchr(p->host, ':') && p->host[0] != '[';
    return settings_text(b, v6 ? "[%s]:%d" : "%s:%d", p->host, (int)p->port);
}

static void bind_metrics(struct settings_build *b, const struct telemetry_metrics *m)
{
    static const char path[] = "service::telemetry::metrics::readers";
    const struct metric_reader *readers = m->readers.items;
    const struct cfg_pos pos = m->readers.value ? m->readers.value->pos : (struct cfg_pos){0};
    b->out->telemetry.metrics_level = m->level;
    if (m->level == 0)
        return;
    if (m->readers.n == 0)
        cfg_error(b->errs, pos, path, "expected a reader, as the metrics level is not none");
    else if (m->readers.n > 1)
        cfg_error(b->errs, pos, path, "motel serves one reader, got %zu", m->readers.n);
    else if (!readers[0].pull || !readers[0].pull->exporter.prometheus)
        cfg_error(b->errs, pos, path, "expected [{pull: {exporter: {prometheus: {host, port}}}}]");
    else
        b->out->telemetry.metrics_endpoint =
            reader_endpoint(b, readers[0].pull->exporter.prometheus);
    if (*m->address) {
        config_warn(b->config,
                    "service::telemetry::metrics::address is deprecated; use readers instead");
        b->out->telemetry.metrics_endpoint = m->address;
    }
}

void settings_telemetry(struct settings_build *b, const struct telemetry_config *t)
{
    bind_logs(b, &t->logs);
    bind_metrics(b, &t->metrics);
    bind_resource(b, t);
}
