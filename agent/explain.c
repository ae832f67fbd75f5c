#include "agent/explain.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "agent/base/plain_text.h"
#include "agent/base/secrets.h"
#include "agent/config/tree.h"
#include "agent/config/value_json.h"
#include "agent/explain_parts.h"
#include "agent/gym/telemetry.h"

/* ---- the tree ---- */

static struct cfg_value *add(struct explanation *e, struct cfg_value *parent, const char *key,
                             struct cfg_value *v)
{
    static struct cfg_value nothing;
    if (!v || cfg_append(e->arena, parent, key, (struct cfg_pos){0}, v) < 0)
        e->failed = true;
    return v ? v : &nothing;
}

struct cfg_value *explain_map(struct explanation *e, struct cfg_value *parent, const char *key)
{
    return add(e, parent, key, cfg_new(e->arena, CFG_MAP, (struct cfg_pos){0}));
}

struct cfg_value *explain_list(struct explanation *e, struct cfg_value *parent, const char *key)
{
    return add(e, parent, key, cfg_new(e->arena, CFG_LIST, (struct cfg_pos){0}));
}

static const char *copy_v(struct explanation *e, const char *fmt, va_list ap)
{
    char *text = NULL;
    const char *copy = NULL;
    if (vasprintf(&text, fmt, ap) >= 0) {
        copy = arena_strdup(e->arena, text);
        free(text);
    }
    e->failed = e->failed || !copy;
    return copy ? copy : "";
}

const char *explain_copy(struct explanation *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *copy = copy_v(e, fmt, ap);
    va_end(ap);
    return copy;
}

/* scheme://user:password@host: what stands before the host is not shown, however short it is. */
static void hide_user(char *text)
{
    for (char *at = strstr(text, "://"); at; at = strstr(at, "://")) {
        at += 3;
        const size_t len = strcspn(at, "/?# \"',]}");
        const char *end = memrchr(at, '@', len);
        if (end && strncmp(at, "***@", 4) != 0)
            memset(at, '*', (size_t)(end - at));
    }
}

void explain_text(struct explanation *e, struct cfg_value *parent, const char *key, const char *fmt,
                  ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = copy_v(e, fmt, ap);
    va_end(ap);
    char *copy = arena_strdup(e->arena, text);
    if (copy)
        hide_user(copy);
    e->failed = e->failed || !copy;
    text = copy ? copy : "";
    _cleanup_buf_ struct buf *clean = buf_new(0);
    if (!clean || secrets_redact(bytes_str(text), clean) < 0) {
        e->failed = true;
        return;
    }
    add(e, parent, key,
        cfg_new_string(e->arena, (struct cfg_pos){0}, (const char *)clean->data, clean->len));
}

void explain_flag(struct explanation *e, struct cfg_value *parent, const char *key, bool on)
{
    const char *text = on ? "true" : "false";
    add(e, parent, key, cfg_new_plain(e->arena, (struct cfg_pos){0}, text, strlen(text)));
}

void explain_at(struct explanation *e, struct cfg_value *parent, struct cfg_pos pos)
{
    if (pos.file && pos.line && strcmp(pos.file, "--set") != 0)
        explain_text(e, parent, "at", "%s:%d:%d", pos.file, pos.line, pos.column);
    else if (pos.file)
        explain_text(e, parent, "at", "%s", pos.file);
}

/* ---- what there is to walk over ---- */

bool explain_is_used(const struct service_settings *s, const struct component_settings *c)
{
    for (size_t i = 0; i < s->npipelines; i++) {
        const struct pipeline_settings *p = &s->pipelines[i];
        if (component_listed(p->receivers, p->nreceivers, c) ||
            component_listed(p->processors, p->nprocessors, c) ||
            component_listed(p->exporters, p->nexporters, c))
            return true;
    }
    return component_listed(s->extensions, s->nextensions, c);
}

static void each_component(struct explanation *e, bool used,
                           void (*each)(void *ctx, const struct explained *x), void *ctx)
{
    static const struct cfg_field none[] = {{0}};
    const struct service_settings *s = e->l->service;
    for (int k = 0; k < KIND_COUNT; k++)
        for (size_t i = 0; i < s->ncomponents[k]; i++) {
            const struct component_settings *c = &s->components[k][i];
            if (used && !explain_is_used(s, c))
                continue;
            const char *section = component_kind_section((enum component_kind)k);
            each(ctx, &(struct explained){explain_copy(e, "%s::%s", section, c->id),
                                          c->type->fields ? c->type->fields : none,
                                          c->type->config_size, c->bound, c->value, c->pos, c});
        }
}

void explain_each(struct explanation *e, bool used,
                  void (*each)(void *ctx, const struct explained *x), void *ctx)
{
    const struct cfg_value *root = e->l->config->root;
    struct explained service = {.path = "service::telemetry",
                                .value = cfg_get(cfg_get(root, "service"), "telemetry")};
    service.fields = service_settings_telemetry(e->l->service, &service.bound, &service.size);
    const struct explained motel = {"motel",      motel_fields,           sizeof(e->l->motel),
                                    &e->l->motel, cfg_get(root, "motel"), {0},
                                    NULL};
    each_component(e, used, each, ctx);
    each(ctx, &service);
    each(ctx, &motel);
}

/* A setting of motel's own also comes from a flag or a variable. */
static bool find_outside(const struct explanation *e, const char *key, struct cfg_pos *ret)
{
    char name[80];
    for (size_t i = e->cl->nflags; i > 0; i--)
        if (strcmp(e->cl->flags[i - 1].field->key, key) == 0) {
            ret->file = arena_strndup(e->arena, e->cl->flags[i - 1].flag,
                                      strcspn(e->cl->flags[i - 1].flag, "="));
            return true;
        }
    for (const struct cfg_field *f = motel_fields; f->key; f++)
        if (strcmp(f->key, key) == 0) {
            motel_variable_name(f, name, sizeof(name));
            const char *value = getenv(name);
            if (!value || !*value)
                return false;
            ret->file = arena_strdup(e->arena, name);
            return true;
        }
    return false;
}

struct cfg_pos explain_place(const struct explanation *e, const struct explained *x,
                             const char *path)
{
    struct cfg_pos pos = {0};
    bool exact = false;
    if (x->fields == motel_fields && find_outside(e, path, &pos))
        return pos;
    const struct cfg_value *v = x->value ? cfg_find(x->value, path, &exact) : NULL;
    if (v && exact)
        return v->pos;
    const struct cfg_field *f = cfg_field_at(x->fields, path);
    const char *last = strstr(path, "::") ? strrchr(path, ':') + 1 : path;
    char older[512];
    if (!x->value || !f || !f->more || !f->more->alias)
        return pos;
    snprintf(older, sizeof(older), "%.*s%s", (int)(last - path), path, f->more->alias);
    v = cfg_find(x->value, older, &exact);
    return v && exact ? v->pos : pos;
}

/* ---- all of it ---- */

static void explain_sources(struct explanation *e)
{
    struct cfg_value *list = explain_list(e, e->root, "sources");
    for (size_t i = 0; i < e->cl->ngym_configs; i++)
        explain_text(e, list, NULL, "--gym-config %s", e->cl->gym_configs[i]);
    for (size_t i = 0; i < e->cl->nsources; i++) {
        const char *uri = e->cl->sources[i].uri;
        if (e->cl->sources[i].is_set) /* the value may be a secret */
            explain_text(e, list, NULL, "--set %.*s", (int)strcspn(uri, "="), uri);
        else if (strncmp(uri, "yaml:", 5) == 0)
            explain_text(e, list, NULL, "yaml:...");
        else
            explain_text(e, list, NULL, "%s", uri);
    }
    if (e->cl->ngym_configs == 0 && e->cl->nconfigs == 0)
        explain_text(e, list, NULL, "built-in");
}

static void see_row(void *ctx, const char *name, const char *value, const char *origin,
                    const char *note)
{
    struct explanation *e = ctx;
    struct cfg_value *list = (struct cfg_value *)cfg_get(e->root, "telemetry_block");
    struct cfg_value *row = explain_map(e, list, NULL);
    explain_text(e, row, "field", "%s", name);
    explain_text(e, row, "value", "%s", value);
    explain_text(e, row, "from", "%s", origin);
    if (note)
        explain_text(e, row, "note", "%s", note);
}

static int account(FILE *f, const struct command_line *cl, const struct loaded *l, bool json)
{
    struct explanation e = {.arena = l->config->arena, .cl = cl, .l = l};
    e.root = cfg_new(e.arena, CFG_MAP, (struct cfg_pos){0});
    if (!e.root)
        return -ENOMEM;
    explain_sources(&e);
    if (l->gym && json) {
        explain_list(&e, e.root, "telemetry_block");
        gym_explain_each(l->gym, see_row, &e);
    } else if (l->gym) {
        gym_explain(f, l->gym);
        fputc('\n', f);
    }
    explain_pipelines(&e);
    explain_settings(&e);
    explain_uses(&e);
    explain_variables(&e);
    explain_notes(&e);
    if (e.failed)
        return -ENOMEM;
    if (!json) {
        explain_words(f, e.root);
        return 0;
    }
    _cleanup_buf_ struct buf *out = buf_new(0);
    int r = out ? cfg_value_json(out, e.root, VALUE_JSON_LINES) : -ENOMEM;
    if (r == 0)
        fprintf(f, "%.*s\n", (int)out->len, (const char *)out->data);
    return r;
}

int explain_print(FILE *f, const struct command_line *cl, const struct loaded *l, bool json)
{
    if (json)
        return account(f, cl, l, true);
    _cleanup_free_ char *text = NULL;
    size_t len = 0;
    _cleanup_buf_ struct buf *out = buf_new(0); /* values may hold what a terminal would obey */
    FILE *words = out ? open_memstream(&text, &len) : NULL;
    if (!words)
        return -ENOMEM;
    int r = account(words, cl, l, false);
    if (fclose(words) != 0)
        r = -ENOMEM;
    if (r == 0)
        r = plain_text(out, bytes_of(text, len), ' ', "\n\t");
    if (r == 0)
        fwrite(out->data, 1, out->len, f);
    return r;
}
