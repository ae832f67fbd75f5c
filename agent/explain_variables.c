/* Which environment variables a configuration depends on, where, and as what. */
#include <string.h>

#include "agent/config/kinds.h"
#include "agent/config/load.h"
#include "agent/explain_parts.h"
#include "agent/gym/telemetry.h"

#define VARIABLE "env:"

/* The field that a value like "receivers::otlp::protocols::grpc::endpoint" belongs to; NULL when it
 * belongs to none. */
static const struct cfg_field *field_of(const struct explanation *e, const char *path)
{
    const struct service_settings *s = e->l->service;
    for (int k = 0; k < KIND_COUNT; k++)
        for (size_t i = 0; i < s->ncomponents[k]; i++) {
            const struct component_settings *c = &s->components[k][i];
            char prefix[300];
            const size_t len =
                (size_t)snprintf(prefix, sizeof(prefix),
                                 "%s::%s::", component_kind_section((enum component_kind)k), c->id);
            if (len < sizeof(prefix) && c->type->fields && strncmp(path, prefix, len) == 0)
                return cfg_field_at(c->type->fields, path + len);
        }
    const void *bound;
    size_t size;
    const struct cfg_field *telemetry = service_settings_telemetry(s, &bound, &size);
    if (strncmp(path, "service::telemetry::", 20) == 0)
        return cfg_field_at(telemetry, path + 20);
    return strncmp(path, "motel::", 7) == 0 ? cfg_field_at(motel_fields, path + 7) : NULL;
}

/* Whether a text with this reference in it may hold a password or token:
 * scheme://user:password@host, or what is asked for (?token=...), which logs do not show either. */
static bool in_credentials(const struct explanation *e, const struct cfg_reference *r)
{
    bool exact = false;
    const struct cfg_value *v = cfg_find(e->l->config->root, r->path, &exact);
    const char *url = v && exact && v->text ? strstr(v->text, "://") : NULL;
    return url && strpbrk(url, "@?");
}

static bool is_secret(const struct explanation *e, const struct cfg_reference *r)
{
    const struct cfg_field *f = field_of(e, r->path);
    return r->secret || (f && f->kind == BIND_OPAQUE) || in_credentials(e, r) ||
           cfg_key_is_credential(r->name + strlen(VARIABLE));
}

/* A variable that is a secret anywhere is one everywhere. */
static bool is_hidden(const struct explanation *e, const char *name)
{
    for (size_t i = 0; i < e->l->config->nreferences; i++) {
        const struct cfg_reference *r = &e->l->config->references[i];
        if (strcmp(r->name, name) == 0 && is_secret(e, r))
            return true;
    }
    return false;
}

bool explain_is_hidden(const struct explanation *e, const char *path)
{
    const size_t len = strlen(path);
    for (size_t i = 0; i < e->l->config->nreferences; i++) {
        const struct cfg_reference *r = &e->l->config->references[i];
        if (strncmp(r->path, path, len) == 0 && strchr(":[", r->path[len]) && r->from_env &&
            is_hidden(e, r->name))
            return true;
    }
    return false;
}

static const char *type_words(struct explanation *e, const struct cfg_reference *r)
{
    const struct cfg_field *f = field_of(e, r->path);
    const char *type = cfg_type_name(r->type);
    if (!r->whole)
        return explain_copy(e, "part of a %s", type);
    if (f && f->kind == BIND_ANY)
        return explain_copy(e, "%s (any type may stand here)", type);
    if (f && (f->kind == BIND_STRING || f->kind == BIND_OPAQUE) && r->type != CFG_STRING)
        return explain_copy(e, "%s, taken as the string that it is written as", type);
    return explain_copy(e, "%s", type);
}

static void add_place(struct explanation *e, struct cfg_value *variable,
                      const struct cfg_reference *r, bool hidden)
{
    struct cfg_value *list = (struct cfg_value *)cfg_get(variable, "places");
    struct cfg_value *row = explain_map(e, list, NULL);
    explain_text(e, row, "of", "%s", r->path);
    explain_at(e, row, r->pos);
    explain_text(e, row, "state", "%s", r->from_env ? "set" : r->unset ? "not set" : "default");
    explain_text(e, row, "type", "%s", type_words(e, r));
    if (!r->unset)
        explain_text(e, row, "value", "%s", hidden ? "[REDACTED]" : r->text);
}

static struct cfg_value *variable_of(struct explanation *e, struct cfg_value *list,
                                     const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(cfg_get(list->items[i], "name")->text, name) == 0)
            return list->items[i];
    struct cfg_value *v = explain_map(e, list, NULL);
    explain_text(e, v, "name", "%s", name);
    explain_list(e, v, "places");
    return v;
}

/* A variable that is read without being named in the file. */
static void add_read(struct explanation *e, struct cfg_value *list, const char *name,
                     const char *what)
{
    struct cfg_value *v = variable_of(e, list, name);
    struct cfg_value *row = explain_map(e, (struct cfg_value *)cfg_get(v, "places"), NULL);
    explain_text(e, row, "of", "%s", what);
    explain_text(e, row, "state", "set");
}

static void add_of_motel(struct explanation *e, struct cfg_value *list)
{
    for (const struct cfg_field *f = motel_fields; f->key; f++) {
        char name[80];
        motel_variable_name(f, name, sizeof(name));
        const char *value = getenv(name);
        if (value && *value)
            add_read(e, list, name, explain_copy(e, "motel::%s", f->key));
    }
}

static void see_row(void *ctx, const char *name, const char *value _unused_, const char *origin,
                    const char *note _unused_)
{
    struct explanation *e = ctx;
    struct cfg_value *list = (struct cfg_value *)cfg_get(e->root, "variables");
    if (*origin && strspn(origin, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == strlen(origin))
        add_read(e, list, origin, explain_copy(e, "telemetry block: %s", name));
}

/* Proxies and certificates, by the rules of everybody's clients. */
static void add_of_clients(struct explanation *e, struct cfg_value *list)
{
    static const char *const names[][2] = {
        {"HTTP_PROXY", "proxy for http:// destinations"},
        {"http_proxy", "proxy for http:// destinations"},
        {"HTTPS_PROXY", "proxy for https:// destinations"},
        {"https_proxy", "proxy for https:// destinations"},
        {"NO_PROXY", "hosts without a proxy"},
        {"no_proxy", "hosts without a proxy"},
        {"SSL_CERT_FILE", "authorities that are trusted"},
    };
    const struct cfg_value *destinations = cfg_get(e->root, "destinations");
    for (size_t i = 0; destinations->n && i < ARRAY_SIZE(names); i++) {
        const char *value = getenv(names[i][0]);
        if (value && *value)
            add_read(e, list, names[i][0], names[i][1]);
    }
}

void explain_variables(struct explanation *e)
{
    const struct config *c = e->l->config;
    struct cfg_value *list = explain_list(e, e->root, "variables");
    for (size_t i = 0; i < c->nreferences; i++) {
        const struct cfg_reference *r = &c->references[i];
        if (strncmp(r->name, VARIABLE, strlen(VARIABLE)) != 0)
            continue;
        struct cfg_value *v = variable_of(e, list, r->name + strlen(VARIABLE));
        add_place(e, v, r, is_hidden(e, r->name));
    }
    add_of_motel(e, list);
    if (e->l->gym)
        gym_explain_each(e->l->gym, see_row, e);
    add_of_clients(e, list);
}
