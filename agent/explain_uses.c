/* What a configuration touches outside of the process: ports, destinations, files. */
#include <string.h>
#include <unistd.h>

#include "agent/explain_parts.h"
#include "agent/net/http_client.h"
#include "agent/summary.h"

struct uses {
    struct explanation *e;
    struct cfg_value *ports, *destinations, *files;
    const struct explained *x;
};

static bool is_true(const struct cfg_visit *v, const char *key)
{
    const void *p = NULL;
    const struct cfg_field *f = cfg_bound_find(v->beside, v->base, key, &p);
    return f && f->kind == BIND_BOOL && *(const bool *)p;
}

static bool has_text(const struct cfg_visit *v, const char *key)
{
    const void *p = NULL;
    const struct cfg_field *f = cfg_bound_find(v->beside, v->base, key, &p);
    return f && (f->kind == BIND_STRING || f->kind == BIND_OPAQUE) && *(const char *const *)p &&
           **(const char *const *)p;
}

/* A row that says whose it is: the path without its last key. */
static struct cfg_value *add_row(struct uses *u, struct cfg_value *list, const char *path)
{
    struct explanation *e = u->e;
    struct cfg_value *row = explain_map(e, list, NULL);
    explain_text(e, row, "of", *path ? "%s::%s" : "%s", u->x->path, path);
    if (*path)
        explain_at(e, row, explain_place(e, u->x, path));
    return row;
}

static const char *without_last(struct explanation *e, const char *path)
{
    const char *end = strstr(path, "::") ? strrchr(path, ':') - 1 : path;
    return explain_copy(e, "%.*s", (int)(end - path), path);
}

static void add_auth(struct uses *u, struct cfg_value *row, const struct cfg_visit *v)
{
    const void *p = NULL;
    const struct cfg_field *f = cfg_bound_find(v->beside, v->base, "auth::authenticator", &p);
    const char *id = f && f->kind == BIND_ID ? ((const struct cfg_id *)p)->id : NULL;
    explain_text(u->e, row, "auth", "%s", id ? id : "none");
}

/* ---- ports ---- */

static const char *server_tls(const struct cfg_visit *v)
{
    if (!cfg_bound_has(v->beside, v->base, "tls"))
        return "none";
    return has_text(v, "tls::client_ca_file") || has_text(v, "tls::client_ca_pem")
               ? "TLS, clients need a certificate"
               : "TLS";
}

static void add_port(struct uses *u, const struct cfg_visit *v)
{
    const char *address = *(const char *const *)v->at,
               *transport = cfg_bound_text(v->beside, v->base, "transport");
    struct explanation *e = u->e;
    if (!address || !*address)
        return;
    struct cfg_value *row = explain_map(e, u->ports, NULL);
    const char *outer = without_last(e, v->path);
    explain_text(e, row, "address", "%s", address);
    explain_text(e, row, "transport", "%s", transport && *transport ? transport : "tcp");
    explain_text(e, row, "protocol", "%s",
                 v->field->use == CFG_SERVES_OTLP ? "OTLP over gRPC and HTTP" : "HTTP");
    explain_text(e, row, "tls", "%s", server_tls(v));
    add_auth(u, row, v);
    explain_text(e, row, "of", *outer ? "%s::%s" : "%s", u->x->path, outer);
    explain_at(e, row, explain_place(e, u->x, v->path));
}

/* The page of motel's own metrics. */
static void add_metrics_page(struct uses *u)
{
    struct explanation *e = u->e;
    const char *endpoint = e->l->service->telemetry.metrics_endpoint;
    if (!endpoint)
        return;
    struct cfg_value *row = explain_map(e, u->ports, NULL);
    explain_text(e, row, "address", "%s", endpoint);
    explain_text(e, row, "transport", "tcp");
    explain_text(e, row, "protocol", "HTTP, Prometheus metrics at /metrics");
    explain_text(e, row, "tls", "none");
    explain_text(e, row, "auth", "none");
    explain_text(e, row, "of", "service::telemetry::metrics");
}

/* ---- destinations ---- */

/* The signals that come to the component. */
static unsigned signals_of(const struct uses *u)
{
    const struct service_settings *s = u->e->l->service;
    unsigned set = 0;
    for (size_t i = 0; i < s->npipelines; i++)
        for (size_t k = 0; k < s->pipelines[i].nexporters; k++)
            if (s->pipelines[i].exporters[k] == u->x->component)
                set |= SIGNAL_BIT(s->pipelines[i].signal);
    return set;
}

static struct cfg_value *add_destination(struct uses *u, const char *address, const char *protocol,
                                         const char *tls)
{
    char shown[1024];
    http_url_redact(address, shown, sizeof(shown));
    struct cfg_value *row = explain_map(u->e, u->destinations, NULL);
    explain_text(u->e, row, "address", "%s", shown);
    explain_text(u->e, row, "protocol", "%s", protocol);
    explain_text(u->e, row, "tls", "%s", tls);
    return row;
}

static void end_destination(struct uses *u, const struct cfg_visit *v, struct cfg_value *row)
{
    explain_text(u->e, row, "of", "%s", u->x->path);
    explain_at(u->e, row, explain_place(u->e, u->x, v->path));
}

static bool begins(const char *text, const char *with)
{
    return strncasecmp(text, with, strlen(with)) == 0;
}

static const char *client_tls(const struct cfg_visit *v, bool on)
{
    if (!on)
        return "none";
    if (is_true(v, "tls::insecure_skip_verify"))
        return "TLS, the certificate is not verified";
    return has_text(v, "tls::cert_file") || has_text(v, "tls::cert_pem")
               ? "TLS, with a client certificate"
               : "TLS";
}

static bool is_noted(const struct uses *u, const char *of)
{
    for (size_t i = 0; i < u->files->n; i++) {
        const struct cfg_value *v = cfg_get(u->files->items[i], "of");
        if (v && v->text && strcmp(v->text, of) == 0)
            return true;
    }
    return false;
}

static void note_authorities(struct uses *u, const struct cfg_visit *v)
{
    const char *path = tls_system_ca_file(), *of = explain_copy(u->e, "%s::tls", u->x->path);
    if (!path || is_noted(u, of) || is_true(v, "tls::insecure_skip_verify") ||
        ((has_text(v, "tls::ca_file") || has_text(v, "tls::ca_pem")) &&
         !is_true(v, "tls::include_system_ca_certs_pool")))
        return;
    struct cfg_value *row = explain_map(u->e, u->files, NULL);
    explain_text(u->e, row, "path", "%s", path);
    explain_text(u->e, row, "use", "read");
    explain_text(u->e, row, "of", "%s", of);
}

static void add_grpc(struct uses *u, const struct cfg_visit *v)
{
    const char *address = *(const char *const *)v->at;
    const bool tls = !begins(address, "http://") && !begins(address, "unix:") &&
                     (begins(address, "https://") || !is_true(v, "tls::insecure"));
    if (!*address)
        return;
    struct cfg_value *row = add_destination(u, address, "OTLP over gRPC", client_tls(v, tls));
    struct cfg_value *list = explain_list(u->e, row, "signals");
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (signals_of(u) & SIGNAL_BIT(s))
            explain_text(u->e, list, NULL, "%s", signal_name((enum signal)s));
    add_auth(u, row, v);
    end_destination(u, v, row);
    if (tls)
        note_authorities(u, v);
}

/* A signal goes to the URL of its own, or to a path below the base. */
static void add_http_signal(struct uses *u, const struct cfg_visit *v, enum signal s)
{
    const char *base = *(const char *const *)v->at, *name = signal_name(s);
    const char *own = cfg_bound_text(v->beside, v->base, explain_copy(u->e, "%s_endpoint", name));
    const bool is_base = strcmp(v->field->key, "endpoint") == 0;
    if (!(signals_of(u) & SIGNAL_BIT(s)) || !*base || (is_base && own && *own) ||
        (!is_base && strncmp(v->field->key, name, strlen(name)) != 0))
        return;
    const size_t len = strlen(base);
    const char *url = is_base
                          ? explain_copy(u->e, "%.*s/v1/%s",
                                         (int)(base[len - 1] == '/' ? len - 1 : len), base, name)
                          : base;
    const bool tls = begins(url, "https://");
    struct cfg_value *row = add_destination(u, url, "OTLP over HTTP", client_tls(v, tls));
    explain_text(u->e, explain_list(u->e, row, "signals"), NULL, "%s", name);
    add_auth(u, row, v);
    end_destination(u, v, row);
    if (tls)
        note_authorities(u, v);
}

static const char *job_text(struct uses *u, const char *job, const char *key, const char *normal)
{
    bool exact = false;
    const struct cfg_value *v =
        cfg_find(u->x->value, explain_copy(u->e, "%s::%s", job, key), &exact);
    return v && exact && v->text ? v->text : normal;
}

/* Targets of a scrape job, whose own keys are two levels up. */
static void add_targets(struct uses *u, const struct cfg_visit *v)
{
    const struct cfg_list *list = v->at;
    const char *end = strstr(v->path, "::static_configs");
    const char *job = explain_copy(u->e, "%.*s", end ? (int)(end - v->path) : 0, v->path);
    for (size_t i = 0; i < list->n; i++) {
        const char *scheme = job_text(u, job, "scheme", "http");
        const char *url =
            explain_copy(u->e, "%s://%s%s", scheme, ((const char *const *)list->items)[i],
                         job_text(u, job, "metrics_path", "/metrics"));
        struct cfg_value *row =
            add_destination(u, url, "HTTP, scraped", strcmp(scheme, "https") == 0 ? "TLS" : "none");
        explain_text(u->e, row, "job", "%s", job_text(u, job, "job_name", ""));
        end_destination(u, v, row);
    }
}

/* ---- files ---- */

static const char *absolute(struct explanation *e, const char *path)
{
    _cleanup_free_ char *cwd = *path == '/' ? NULL : getcwd(NULL, 0);
    return cwd ? explain_copy(e, "%s/%s", cwd, strncmp(path, "./", 2) == 0 ? path + 2 : path)
               : path;
}

static void add_file(struct uses *u, const struct cfg_visit *v, const char *path)
{
    static const char *const words[] = {
        [CFG_READS_FILE] = "read", [CFG_WRITES_FILE] = "written", [CFG_KEEPS_FILE] = "kept"};
    if (*path && strcmp(path, "stdout") != 0 && strcmp(path, "stderr") != 0) {
        struct cfg_value *row = explain_map(u->e, u->files, NULL);
        explain_text(u->e, row, "path", "%s", absolute(u->e, path));
        explain_text(u->e, row, "use", "%s", words[v->field->use]);
        explain_text(u->e, row, "of", "%s::%s", u->x->path, v->path);
        explain_at(u->e, row, explain_place(u->e, u->x, v->path));
    }
}

static void add_files(struct uses *u, const struct cfg_visit *v)
{
    const struct cfg_list *list = v->at;
    if (strcmp(v->path, "compaction::directory") == 0 && !is_true(v, "on_start") &&
        !is_true(v, "on_rebound"))
        return;
    if (v->field->kind == BIND_STRING && *(const char *const *)v->at)
        add_file(u, v, *(const char *const *)v->at);
    for (size_t i = 0; v->field->kind == BIND_LIST && i < list->n; i++)
        add_file(u, v, ((const char *const *)list->items)[i]);
}

static void add_summary(struct uses *u)
{
    struct summary_place place = {NULL};
    if (summary_place_find(u->e->l->service, u->e->l->motel.summary, &place) == 0 && place.path) {
        struct explained motel = {.path = "motel::summary"};
        u->x = &motel;
        struct cfg_value *row = add_row(u, u->files, "");
        explain_text(u->e, row, "path", "%s", absolute(u->e, place.path));
        explain_text(u->e, row, "use", "written");
    }
    summary_place_done(&place);
}

/* ---- all ---- */

static void see_value(void *ctx, const struct cfg_visit *v)
{
    struct uses *u = ctx;
    switch (v->field->use) {
    case CFG_SERVES_OTLP:
    case CFG_SERVES_HTTP: add_port(u, v); break;
    case CFG_SENDS_OTLP_GRPC: add_grpc(u, v); break;
    case CFG_SENDS_OTLP_HTTP:
        for (int s = 0; s < SIGNAL_COUNT; s++)
            add_http_signal(u, v, (enum signal)s);
        break;
    case CFG_SENDS_TO_PROXY:
        if (**(const char *const *)v->at)
            end_destination(u, v,
                            add_destination(u, *(const char *const *)v->at, "HTTP proxy", "none"));
        break;
    case CFG_ASKS_HTTP: add_targets(u, v); break;
    case CFG_READS_FILE:
    case CFG_WRITES_FILE:
    case CFG_KEEPS_FILE: add_files(u, v); break;
    case CFG_USE_NONE:
    case CFG_NO_EFFECT: break;
    }
}

static void see_explained(void *ctx, const struct explained *x)
{
    struct uses *u = ctx;
    u->x = x;
    if (cfg_bound_walk(u->e->arena, x->fields, x->size, x->bound, see_value, u) < 0)
        u->e->failed = true;
}

void explain_uses(struct explanation *e)
{
    struct uses u = {.e = e};
    u.ports = explain_list(e, e->root, "ports");
    u.destinations = explain_list(e, e->root, "destinations");
    u.files = explain_list(e, e->root, "files");
    explain_each(e, true, see_explained, &u);
    add_metrics_page(&u);
    add_summary(&u);
}
