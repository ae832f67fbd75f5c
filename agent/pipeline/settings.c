/* Binding the configuration: sections and components; the other settings_*.c do types, references
 * and telemetry. */
#include "agent/pipeline/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "agent/pipeline/settings_build.h"

static const char *const top_keys[] = {"receivers",  "processors", "connectors", "exporters",
                                       "extensions", "service",    "motel",      NULL};

static const struct cfg_field pipeline_fields[] = {
    {.key = "receivers",
     .kind = BIND_LIST,
     CFG_AT(struct pipeline_config, receivers),
     CFG_MORE(CFG_PRESENCE(struct pipeline_config, receivers_given)),
     .elem = &cfg_elem_id,
     .help = "Ids of the receivers, or of connectors that feed this pipeline."},
    {.key = "processors",
     .kind = BIND_LIST,
     CFG_AT(struct pipeline_config, processors),
     .elem = &cfg_elem_id,
     .help = "Ids of the processors, in the order in which data passes them."},
    {.key = "exporters",
     .kind = BIND_LIST,
     CFG_AT(struct pipeline_config, exporters),
     CFG_MORE(CFG_PRESENCE(struct pipeline_config, exporters_given)),
     .elem = &cfg_elem_id,
     .help = "Ids of the exporters, or of connectors that this pipeline feeds."},
    {0}};

static const struct cfg_field pipeline_elem = {
    .kind = BIND_STRUCT, .fields = pipeline_fields, CFG_NESTED(struct pipeline_config)};

const struct cfg_field service_fields[] = {
    {.key = "extensions",
     .kind = BIND_LIST,
     CFG_AT(struct service_config, extensions),
     .elem = &cfg_elem_id,
     .help = "Ids of the extensions to start, in this order."},
    {.key = "pipelines",
     .kind = BIND_MAP,
     CFG_AT(struct service_config, pipelines),
     .elem = &pipeline_elem,
     .help = "Pipelines by name: traces, metrics or logs, with \"/name\" when there are several."},
    {.key = "telemetry",
     .kind = BIND_STRUCT,
     CFG_AT(struct service_config, telemetry),
     .fields = telemetry_fields,
     CFG_NESTED(struct telemetry_config),
     .help = "Motel's own logs and metrics."},
    {0}};

static const struct cfg_field no_fields[] = {{0}};

void *settings_alloc(struct settings_build *b, size_t bytes)
{
    void *p = arena_calloc(b->config->arena, bytes ? bytes : 1);
    b->no_memory = b->no_memory || !p;
    return p;
}

const char *settings_text(struct settings_build *b, const char *fmt, ...)
{
    va_list ap;
    char text[1024];
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    const char *copy = arena_strdup(b->config->arena, text);
    b->no_memory = b->no_memory || !copy;
    return copy ? copy : "";
}

void config_warn(struct config *c, const char *fmt, ...)
{
    va_list ap;
    char text[1024];
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    const char **grown = arena_alloc(c->arena, (c->nwarnings + 1) * sizeof(*grown));
    if (!grown)
        return;
    if (c->nwarnings)
        memcpy(grown, c->warnings, c->nwarnings * sizeof(*grown));
    if ((grown[c->nwarnings] = arena_strdup(c->arena, text))) {
        c->warnings = grown;
        c->nwarnings++;
    }
}

static void binder_warn(void *ctx, const char *text)
{
    config_warn(ctx, "%s", text);
}

static void unknown_section(struct settings_build *b, struct cfg_pos pos, const char *key)
{
    const char *near = cfg_suggest(key, top_keys);
    if (strcmp(key, "telemetry") == 0)
        cfg_error(b->errs, pos, key,
                  "unknown section; a NeMo Gym config is given with --gym-config, and what a "
                  "collector says of itself stands in service::telemetry");
    else
        cfg_error(b->errs, pos, key,
                  "unknown section%s%s%s; a configuration has receivers, processors, connectors, "
                  "exporters, extensions, service and motel",
                  near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static void check_top_keys(struct settings_build *b)
{
    const struct cfg_value *root = b->config->root;
    for (size_t i = 0; root && root->type == CFG_MAP && i < root->n; i++) {
        const char *key = root->keys[i];
        bool known = false;
        for (const char *const *k = top_keys; *k; k++)
            known = known || strcmp(*k, key) == 0;
        if (!known)
            unknown_section(b, root->key_pos[i], key);
    }
}

static void check_component(struct settings_build *b, const struct component_settings *cs,
                            const char *path)
{
    struct err e = {0};
    if (!cs->type->check || cs->type->check(cs->bound, &e) == 0)
        return;
    bool exact = false;
    const struct cfg_value *at = e.path[0] ? cfg_find(cs->value, e.path, &exact) : NULL;
    const char *full = e.path[0] ? settings_text(b, "%s::%s", path, e.path) : path;
    cfg_error(b->errs, at && at->pos.file ? at->pos : cs->pos, full, "%s", e.text);
}

static void bind_component(struct settings_build *b, enum component_kind kind,
                           struct component_settings *cs)
{
    const char *path = settings_text(b, "%s::%s", component_kind_section(kind), cs->id);
    struct err e = {0};
    if (cfg_parse_id(cs->id, &e) < 0) {
        cfg_error(b->errs, cs->pos, path, "%s", e.text);
        return;
    }
    cs->type = settings_type(b, kind, cs->id, cs->pos, &cs->alias);
    if (!cs->type)
        return;
    if (cs->alias)
        config_warn(b->config, "\"%.*s\" alias is deprecated; use \"%s\" instead",
                    (int)strcspn(cs->id, "/"), cs->id, cs->type->name);
    const struct cfg_field *fields = cs->type->fields ? cs->type->fields : no_fields;
    void *bound = settings_alloc(b, cs->type->config_size);
    if (bound && cfg_bind(&b->binder, fields, cs->value, path, bound) == 0) {
        cs->bound = bound;
        check_component(b, cs, path);
    }
}

const struct component_settings *settings_find(const struct service_settings *s,
                                               enum component_kind kind, const char *id)
{
    for (size_t i = 0; i < s->ncomponents[kind]; i++)
        if (strcmp(s->components[kind][i].id, id) == 0)
            return &s->components[kind][i];
    return NULL;
}

static void bind_section(struct settings_build *b, enum component_kind kind)
{
    const char *section = component_kind_section(kind);
    const struct cfg_value *v = cfg_get(b->config->root, section);
    if (!v || v->type == CFG_NULL)
        return;
    if (v->type != CFG_MAP) {
        cfg_error(b->errs, v->pos, section, "expected a map of %s by id, got %s", section,
                  cfg_type_name(v->type));
        return;
    }
    struct service_settings *s = b->out;
    s->components[kind] = settings_alloc(b, v->n * sizeof(**s->components));
    for (size_t i = 0; s->components[kind] && i < v->n; i++) {
        const char *id = cfg_trim_id(b->config->arena, v->keys[i]);
        if (!id) {
            b->no_memory = true;
            return;
        }
        if (settings_find(s, kind, id)) {
            cfg_error(b->errs, v->key_pos[i], settings_text(b, "%s::%s", section, id),
                      "duplicate name \"%s\": blanks around a name do not count", id);
            continue;
        }
        struct component_settings *cs = &s->components[kind][s->ncomponents[kind]++];
        *cs = (struct component_settings){.id = id, .value = v->items[i], .pos = v->key_pos[i]};
        bind_component(b, kind, cs);
    }
}

/* A connector may not have the id of a receiver or exporter: a pipeline could mean either. */
static void check_ambiguous(struct settings_build *b)
{
    static const enum component_kind others[] = {KIND_RECEIVER, KIND_EXPORTER};
    for (size_t i = 0; i < b->out->ncomponents[KIND_CONNECTOR]; i++) {
        const struct component_settings *c = &b->out->components[KIND_CONNECTOR][i];
        for (size_t k = 0; k < ARRAY_SIZE(others); k++)
            if (settings_find(b->out, others[k], c->id))
                cfg_error(b->errs, c->pos, settings_text(b, "connectors::%s", c->id),
                          "ambiguous: there is %s \"%s\" as well; rename one of them",
                          others[k] == KIND_RECEIVER ? "a receiver" : "an exporter", c->id);
    }
}

static void check_sections(struct settings_build *b)
{
    size_t all = 0;
    for (int k = 0; k < KIND_COUNT; k++)
        all += b->out->ncomponents[k];
    const struct cfg_pos none = {b->config->root ? b->config->root->pos.file : NULL, 0, 0};
    if (all == 0)
        cfg_error(b->errs, none, "", "the configuration is empty: it defines no component");
    else if (b->out->ncomponents[KIND_RECEIVER] == 0)
        cfg_error(b->errs, none, "receivers", "no receiver is configured");
    else if (b->out->ncomponents[KIND_EXPORTER] == 0)
        cfg_error(b->errs, none, "exporters", "no exporter is configured");
}

int service_settings_bind(struct config *c, const struct component_type *const *types,
                          struct cfg_errors *errs, struct service_settings **ret)
{
    struct settings_build b = {.config = c, .types = types, .errs = errs};
    b.binder = (struct cfg_binder){c->arena, errs, binder_warn, c};
    const size_t before = errs->n + errs->dropped;
    b.out = settings_alloc(&b, sizeof(*b.out));
    struct service_config *service = settings_alloc(&b, sizeof(*service));
    if (!b.out || !service) {
        cfg_error(errs, (struct cfg_pos){0}, "", "out of memory");
        return -ENOMEM;
    }
    check_top_keys(&b);
    for (int k = 0; k < KIND_COUNT; k++)
        bind_section(&b, (enum component_kind)k);
    check_ambiguous(&b);
    check_sections(&b);

    const struct cfg_value *v = cfg_get(c->root, "service");
    cfg_bind(&b.binder, service_fields, v, "service", service);
    settings_resolve(&b, service, v ? v->pos : (struct cfg_pos){0});
    settings_telemetry(&b, &service->telemetry);
    b.out->service = service;
    b.out->motel = cfg_get(c->root, "motel");
    if (b.no_memory)
        cfg_error(errs, (struct cfg_pos){0}, "", "out of memory");
    if (errs->n + errs->dropped > before)
        return -EINVAL;
    *ret = b.out;
    return 0;
}

const struct cfg_field *service_settings_telemetry(const struct service_settings *s,
                                                   const void **ret_bound, size_t *ret_size)
{
    *ret_bound = &s->service->telemetry;
    *ret_size = sizeof(s->service->telemetry);
    return telemetry_fields;
}

void service_settings_print(FILE *f, const struct service_settings *s)
{
    for (int k = 0; k < KIND_COUNT; k++) {
        fprintf(f, s->ncomponents[k] ? "%s:\n" : "%s: {}\n",
                component_kind_section((enum component_kind)k));
        for (size_t i = 0; i < s->ncomponents[k]; i++) {
            const struct component_settings *cs = &s->components[k][i];
            const bool empty = !cs->type->fields || !cs->type->fields[0].key;
            fprintf(f, empty ? "  %s: {}\n" : "  %s:\n", cs->id);
            if (!empty)
                cfg_print(f, cs->type->fields, cs->bound, 4);
        }
    }
    fputs("service:\n", f);
    cfg_print(f, service_fields, s->service, 2);
}
