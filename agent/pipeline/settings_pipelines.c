/* service::extensions and service::pipelines: every reference resolved, signals and connectors
 * checked. */
#include <string.h>

#include "agent/pipeline/settings_build.h"

enum role { ROLE_RECEIVER, ROLE_PROCESSOR, ROLE_EXPORTER };
static const enum component_kind role_kinds[] = {KIND_RECEIVER, KIND_PROCESSOR, KIND_EXPORTER};

/* The id of the component that is defined under another name of the type that `id` names; NULL when
 * there is none. */
static const char *same_by_alias(struct settings_build *b, enum component_kind kind, const char *id)
{
    const size_t len = strcspn(id, "/");
    bool alias;
    const struct component_type *type =
        settings_find_type(b, kind, settings_text(b, "%.*s", (int)len, id), &alias);
    for (size_t i = 0; type && i < b->out->ncomponents[kind]; i++) {
        const struct component_settings *c = &b->out->components[kind][i];
        if (c->type == type && strcmp(c->id + strcspn(c->id, "/"), id + len) == 0)
            return c->id;
    }
    return NULL;
}

static const char *misspelt(struct settings_build *b, enum component_kind kind, const char *id)
{
    const size_t n = b->out->ncomponents[kind];
    const char **ids = settings_alloc(b, (n + 1) * sizeof(*ids));
    for (size_t i = 0; ids && i < n; i++)
        ids[i] = b->out->components[kind][i].id;
    return ids ? cfg_suggest(id, ids) : NULL;
}

/* Something defined that may be what was meant: in another section, under another name of its type,
 * or misspelt. */
static const char *reference_hint(struct settings_build *b, enum component_kind kind,
                                  const char *id)
{
    for (int k = 0; k < KIND_COUNT; k++)
        if ((enum component_kind)k != kind && settings_find(b->out, (enum component_kind)k, id))
            return settings_text(b, "; \"%s\" stands under %s", id,
                                 component_kind_section((enum component_kind)k));
    const char *near = same_by_alias(b, kind, id);
    if (!near)
        near = misspelt(b, kind, id);
    return near ? settings_text(b, "; did you mean \"%s\"?", near) : "";
}

static const struct component_settings *resolve(struct settings_build *b, enum component_kind kind,
                                                const struct cfg_id *ref, const char *path)
{
    const struct component_settings *c = settings_find(b->out, kind, ref->id);
    if (!c && (kind == KIND_RECEIVER || kind == KIND_EXPORTER))
        c = settings_find(b->out, KIND_CONNECTOR, ref->id);
    if (!c)
        cfg_error(b->errs, ref->pos, path, "references %s \"%s\" which is not configured%s",
                  component_kind_name(kind), ref->id, reference_hint(b, kind, ref->id));
    return c;
}

static const char *signals_text(struct settings_build *b, unsigned set)
{
    const char *text = "";
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (set & SIGNAL_BIT(s))
            text = settings_text(b, "%s%s%s", text, *text ? ", " : "", signal_name((enum signal)s));
    return *text ? text : "no signal";
}

static void check_signal(struct settings_build *b, const struct component_settings *c,
                         enum role role, enum signal signal, const struct cfg_id *ref,
                         const char *path)
{
    if (!c->type)
        return;
    const unsigned set = role == ROLE_RECEIVER ? c->type->emits : c->type->accepts;
    if (!(set & SIGNAL_BIT(signal)))
        cfg_error(b->errs, ref->pos, path, "%s \"%s\" does not support %s, only %s",
                  component_kind_name(c->type->kind), c->id, signal_name(signal),
                  signals_text(b, set));
}

bool component_listed(const struct component_settings *const *list, size_t n,
                      const struct component_settings *c)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == c)
            return true;
    return false;
}

/* One of the three lists. A receiver or exporter that is named twice counts once, as in the
 * reference collector. */
static size_t resolve_list(struct settings_build *b, const struct pipeline_settings *p,
                           enum role role, const struct cfg_list *refs, const char *path,
                           const struct component_settings ***ret)
{
    const struct cfg_id *ids = refs->items;
    const struct component_settings **out = settings_alloc(b, (refs->n + 1) * sizeof(*out));
    size_t n = 0;
    for (size_t i = 0; out && i < refs->n; i++) {
        if (!ids[i].id) /* its mistake is in the list already */
            continue;
        const struct component_settings *c = resolve(b, role_kinds[role], &ids[i], path);
        if (!c)
            continue;
        if (component_listed(out, n, c)) {
            if (role == ROLE_PROCESSOR)
                cfg_error(b->errs, ids[i].pos, path, "references processor \"%s\" multiple times",
                          c->id);
            continue;
        }
        check_signal(b, c, role, p->signal, &ids[i], path);
        out[n++] = c;
    }
    *ret = out;
    return n;
}

/* The signal a pipeline is named after. */
static bool pipeline_signal(struct settings_build *b, const char *name, struct cfg_pos pos,
                            enum signal *ret)
{
    const char *path = settings_text(b, "service::pipelines::%s", name);
    const size_t len = strcspn(name, "/");
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        const char *signal = signal_name((enum signal)s);
        if (strlen(signal) == len && strncmp(signal, name, len) == 0) {
            *ret = (enum signal)s;
            struct err e = {0};
            if (cfg_parse_id(name, &e) < 0)
                cfg_error(b->errs, pos, path, "%s", e.text);
            return true;
        }
    }
    if (len == 8 && strncmp(name, "profiles", len) == 0) {
        cfg_error(b->errs, pos, path, "profiles are not supported by this build");
        return false;
    }
    static const char *const known[] = {"traces", "metrics", "logs", NULL};
    const char *near = cfg_suggest(settings_text(b, "%.*s", (int)len, name), known);
    cfg_error(b->errs, pos, path,
              "unknown pipeline signal: \"%.*s\" (valid values: [traces metrics logs])%s%s%s",
              (int)len, name, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    return false;
}

static void resolve_pipeline(struct settings_build *b, const char *name, struct cfg_pos pos,
                             const struct pipeline_config *config)
{
    struct pipeline_settings p = {.name = name, .pos = pos};
    if (!pipeline_signal(b, name, pos, &p.signal))
        return;
    const char *path = settings_text(b, "service::pipelines::%s", name);
    for (size_t i = 0; i < b->out->npipelines; i++)
        if (strcmp(b->out->pipelines[i].name, name) == 0)
            cfg_error(b->errs, pos, path,
                      "duplicate name \"%s\": blanks around a name do not count", name);
    if (config->receivers.n == 0 && config->receivers_given != CFG_GIVEN)
        cfg_error(b->errs, pos, path, "must have at least one receiver");
    if (config->exporters.n == 0 && config->exporters_given != CFG_GIVEN)
        cfg_error(b->errs, pos, path, "must have at least one exporter");
    p.nreceivers = resolve_list(b, &p, ROLE_RECEIVER, &config->receivers, path, &p.receivers);
    p.nprocessors = resolve_list(b, &p, ROLE_PROCESSOR, &config->processors, path, &p.processors);
    p.nexporters = resolve_list(b, &p, ROLE_EXPORTER, &config->exporters, path, &p.exporters);
    b->out->pipelines[b->out->npipelines++] = p;
}

/* The signals of the pipelines that have `c` among their receivers (or exporters), and these
 * pipelines by name. */
static unsigned connector_use(struct settings_build *b, const struct component_settings *c,
                              enum role role, const char **ret_names)
{
    unsigned set = 0;
    const char *names = "";
    for (size_t i = 0; i < b->out->npipelines; i++) {
        const struct pipeline_settings *p = &b->out->pipelines[i];
        const bool in = role == ROLE_RECEIVER ? component_listed(p->receivers, p->nreceivers, c)
                                              : component_listed(p->exporters, p->nexporters, c);
        if (!in)
            continue;
        set |= SIGNAL_BIT(p->signal);
        names = settings_text(b, "%s%s%s", names, *names ? " " : "", p->name);
    }
    *ret_names = names;
    return set;
}

/* Whether `c` turns something of `from` into signal `to`. */
static bool connects(const struct component_settings *c, unsigned from, enum signal to)
{
    if (!(c->type->emits & SIGNAL_BIT(to)))
        return false;
    return from & (c->type->same_signal ? SIGNAL_BIT(to) : c->type->accepts);
}

static void check_connector(struct settings_build *b, const struct component_settings *c)
{
    const char *in_names, *out_names, *path = settings_text(b, "connectors::%s", c->id);
    const unsigned in = connector_use(b, c, ROLE_EXPORTER, &in_names);
    const unsigned out = connector_use(b, c, ROLE_RECEIVER, &out_names);
    unsigned fed = 0, feeding = 0;
    for (int to = 0; to < SIGNAL_COUNT; to++)
        if (out & SIGNAL_BIT(to) && connects(c, in, (enum signal)to)) {
            fed |= SIGNAL_BIT(to);
            feeding |= c->type->same_signal ? SIGNAL_BIT(to) : in & c->type->accepts;
        }
    if (in & ~feeding)
        cfg_error(
            b->errs, c->pos, path,
            "connector \"%s\" used as exporter in [%s] pipeline but not used in any supported "
            "receiver pipeline",
            c->id, in_names);
    if (out & ~fed)
        cfg_error(
            b->errs, c->pos, path,
            "connector \"%s\" used as receiver in [%s] pipeline but not used in any supported "
            "exporter pipeline",
            c->id, out_names);
}

static void resolve_extensions(struct settings_build *b, const struct cfg_list *refs)
{
    const struct cfg_id *ids = refs->items;
    struct service_settings *s = b->out;
    s->extensions = settings_alloc(b, (refs->n + 1) * sizeof(*s->extensions));
    for (size_t i = 0; s->extensions && i < refs->n; i++) {
        const struct component_settings *c =
            ids[i].id ? resolve(b, KIND_EXTENSION, &ids[i], "service::extensions") : NULL;
        if (c && !component_listed(s->extensions, s->nextensions, c))
            s->extensions[s->nextensions++] = c;
    }
}

void settings_resolve(struct settings_build *b, const struct service_config *config,
                      struct cfg_pos pos)
{
    resolve_extensions(b, &config->extensions);
    const struct cfg_map *map = &config->pipelines;
    const struct pipeline_config *pipelines = map->values;
    if (map->n == 0)
        cfg_error(b->errs, pos, "service::pipelines", "service must have at least one pipeline");
    b->out->pipelines = settings_alloc(b, (map->n + 1) * sizeof(*b->out->pipelines));
    for (size_t i = 0; b->out->pipelines && i < map->n; i++) {
        const char *name = cfg_trim_id(b->config->arena, map->keys[i]);
        if (name)
            resolve_pipeline(b, name, map->pos[i], &pipelines[i]);
        else
            b->no_memory = true;
    }
    const size_t n = b->out->ncomponents[KIND_CONNECTOR];
    for (size_t i = 0; i < n; i++)
        if (b->out->components[KIND_CONNECTOR][i].type)
            check_connector(b, &b->out->components[KIND_CONNECTOR][i]);
}
