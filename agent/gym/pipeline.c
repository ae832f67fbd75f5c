/* From the telemetry settings to a configuration. */
#include "agent/gym/pipeline.h"

#include <errno.h>

#include "agent/config/bind.h"
#include "agent/config/tree.h"

static const struct cfg_pos nowhere = {.file = GYM_PIPELINE_FILE};
static const char *const signals[SIGNAL_COUNT] = {"traces", "metrics", "logs"};

/* Makes a tree. Out of memory shows at the end only. */
struct maker {
    struct arena *a;
    const struct gym_telemetry *t;
    struct cfg_errors *errs;
    bool failed;
};

/* ---- trees ---- */

static struct cfg_value *made(struct maker *m, struct cfg_value *v)
{
    static struct cfg_value nothing;
    m->failed = m->failed || !v;
    return v ? v : &nothing;
}

static struct cfg_value *add(struct maker *m, struct cfg_value *parent, const char *key,
                             struct cfg_pos pos, struct cfg_value *v)
{
    if (!m->failed && cfg_append(m->a, parent, key, pos, v) < 0)
        m->failed = true;
    return v;
}

static struct cfg_value *add_map(struct maker *m, struct cfg_value *parent, const char *key)
{
    return add(m, parent, key, nowhere, made(m, cfg_new(m->a, CFG_MAP, nowhere)));
}

/* A null for a section with its defaults. */
static void add_null(struct maker *m, struct cfg_value *parent, const char *key)
{
    add(m, parent, key, nowhere, made(m, cfg_new(m->a, CFG_NULL, nowhere)));
}

/* A text that is meant as it is: expansion will make one "$" of two. */
static struct cfg_value *add_text(struct maker *m, struct cfg_value *parent, const char *key,
                                  struct cfg_pos pos, const char *text)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    int r = b ? 0 : -ENOMEM;
    for (const char *p = text; r == 0 && *p; p++) {
        r = buf_putc(b, *p);
        if (r == 0 && *p == '$')
            r = buf_putc(b, '$');
    }
    return add(m, parent, key, pos,
               made(m, r == 0 ? cfg_new_string(m->a, pos, (const char *)b->data, b->len) : NULL));
}

static void add_words(struct maker *m, struct cfg_value *parent, const char *key,
                      const char *const *words)
{
    struct cfg_value *list =
        add(m, parent, key, nowhere, made(m, cfg_new(m->a, CFG_LIST, nowhere)));
    for (; *words; words++)
        add_text(m, list, NULL, nowhere, *words);
}

static void add_switch(struct maker *m, struct cfg_value *parent, const char *key,
                       const struct gym_value *v)
{
    add(m, parent, key, v->pos, made(m, cfg_new_plain(m->a, v->pos, v->text, strlen(v->text))));
}

/* ---- what the settings say ---- */

static bool is_on(const struct maker *m, enum gym_field f)
{
    return m->t->fields[f].on;
}

static bool has_signal(const struct maker *m, enum signal s)
{
    static const enum gym_field switches[SIGNAL_COUNT] = {
        [SIGNAL_TRACES] = GYM_TRACES_ENABLED,
        [SIGNAL_METRICS] = GYM_METRICS_ENABLED,
        [SIGNAL_LOGS] = GYM_LOGS_ENABLED,
    };
    return is_on(m, switches[s]);
}

static bool to_console(const struct maker *m)
{
    return strcmp(m->t->fields[GYM_EXPORTER].text, "console") == 0;
}

static bool over_grpc(const struct maker *m, enum signal s)
{
    return strcmp(gym_otlp_of(m->t, s, GYM_OTLP_PROTOCOL)->text, "grpc") == 0;
}

/* Whether a variable of its own sets this signal apart. */
static bool is_special(const struct maker *m, enum signal s)
{
    for (int i = 0; i < GYM_OTLP_COUNT; i++)
        if (m->t->signal_otlp[s][i].text)
            return true;
    return false;
}

/* Signals without settings of their own share one exporter. */
static const char *exporter_id(struct maker *m, enum signal s)
{
    if (to_console(m))
        return "console";
    const char *type = over_grpc(m, s) ? "otlp_grpc" : "otlp_http";
    char *id = is_special(m, s) ? arena_printf(m->a, "%s/gym_%s", type, signals[s])
                                : arena_printf(m->a, "%s/gym", type);
    m->failed = m->failed || !id;
    return id ? id : "";
}

/* ---- exporters ---- */

/* The variables give gRPC a URL of which scheme, host and port count; without a port it is 443, as
 * in gRPC. */
static const char *grpc_endpoint(struct maker *m, const char *url)
{
    const char *scheme = strstr(url, "://"), *host = scheme ? scheme + 3 : url;
    if (strncmp(url, "unix:", 5) == 0)
        return url;
    const size_t len = strcspn(host, "/?#");
    const char *bracket = memrchr(host, ']', len), *from = bracket ? bracket : host;
    const bool port = memchr(from, ':', len - (size_t)(from - host));
    char *r = arena_printf(m->a, "%.*s%s", (int)(host + len - url), url, port ? "" : ":443");
    m->failed = m->failed || !r;
    return r ? r : "";
}

static void add_endpoint(struct maker *m, struct cfg_value *exporter, enum signal s)
{
    const struct gym_value *v = gym_otlp_of(m->t, s, GYM_OTLP_ENDPOINT);
    if (!v->text)
        return;
    if (over_grpc(m, s)) {
        add_text(m, exporter, "endpoint", v->pos, grpc_endpoint(m, v->text));
        return;
    }
    const char *whole = v == &m->t->otlp[GYM_OTLP_ENDPOINT]
                            ? NULL /* a base, below which every signal has its path */
                            : arena_printf(m->a, "%s_endpoint", signals[s]);
    add_text(m, exporter, whole ? whole : "endpoint", v->pos, v->text);
}

static void add_headers(struct maker *m, struct cfg_value *exporter, enum signal s)
{
    const struct gym_value *v = gym_otlp_of(m->t, s, GYM_OTLP_HEADERS);
    struct gym_header *headers;
    struct err e = {0};
    size_t n;
    if (!v->text)
        return;
    if (gym_headers_parse(m->a, v->text, &headers, &n, &e) < 0) {
        cfg_error(m->errs, v->pos, v->pos.line ? "telemetry::otlp_headers" : "", "%s", e.text);
        m->failed = true;
        return;
    }
    struct cfg_value *map = add_map(m, exporter, "headers");
    for (size_t i = 0; i < n; i++)
        add_text(m, map, headers[i].name, v->pos, headers[i].value)->secret = true;
}

static void add_tls(struct maker *m, struct cfg_value *exporter, enum signal s)
{
    static const struct {
        enum gym_otlp field;
        const char *key;
    } files[] = {{GYM_OTLP_CERTIFICATE, "ca_file"},
                 {GYM_OTLP_CLIENT_CERTIFICATE, "cert_file"},
                 {GYM_OTLP_CLIENT_KEY, "key_file"}};
    struct cfg_value *tls = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        const struct gym_value *v = gym_otlp_of(m->t, s, files[i].field);
        if (v->text && !tls)
            tls = add_map(m, exporter, "tls");
        if (v->text)
            add_text(m, tls, files[i].key, v->pos, v->text);
    }
    const struct gym_value *insecure = gym_otlp_of(m->t, s, GYM_OTLP_INSECURE);
    if (insecure->on && over_grpc(m, s)) /* over HTTP the scheme decides */
        add_switch(m, tls ? tls : add_map(m, exporter, "tls"), "insecure", insecure);
}

static void add_exporter(struct maker *m, struct cfg_value *exporters, enum signal s)
{
    const struct gym_value *timeout = gym_otlp_of(m->t, s, GYM_OTLP_TIMEOUT),
                           *protocol = gym_otlp_of(m->t, s, GYM_OTLP_PROTOCOL),
                           *compression = gym_otlp_of(m->t, s, GYM_OTLP_COMPRESSION);
    const char *id = exporter_id(m, s);
    char text[32];
    if (cfg_get(exporters, id))
        return;
    if (to_console(m)) {
        add_null(m, exporters, id);
        return;
    }
    struct cfg_value *e = add_map(m, exporters, id);
    add_endpoint(m, e, s);
    if (strcmp(protocol->text, "http/json") == 0)
        add_text(m, e, "encoding", protocol->pos, "json");
    add_headers(m, e, s);
    snprintf(text, sizeof(text), "%.0fms", timeout->number);
    add_text(m, e, "timeout", timeout->pos, text);
    add_text(m, e, "compression", compression->pos, compression->text);
    add_tls(m, e, s);
}

/* ---- the rest ---- */

static void add_receivers(struct maker *m, struct cfg_value *root)
{
    struct cfg_value *protocols =
        add_map(m, add_map(m, add_map(m, root, "receivers"), "otlp"), "protocols");
    add_text(m, add_map(m, protocols, "grpc"), "endpoint", nowhere, "127.0.0.1:4317");
    add_text(m, add_map(m, protocols, "http"), "endpoint", nowhere, "127.0.0.1:4318");
}

static void add_processors(struct maker *m, struct cfg_value *root)
{
    const struct gym_value *f = m->t->fields, *run_id = &f[GYM_RUN_ID],
                           *name = &f[GYM_SERVICE_NAME];
    struct cfg_value *processors = add_map(m, root, "processors"),
                     *gym = add_map(m, processors, "gym");
    if (run_id->text)
        add_text(m, gym, "run_id", run_id->pos, run_id->text);
    add_text(m, gym, "service_name", name->pos, name->text);
    add_switch(m, gym, "service_name_per_server", &f[GYM_SERVICE_NAME_PER_SERVER]);
    if (!to_console(m))
        add_null(m, processors, "batch");
}

static void add_service(struct maker *m, struct cfg_value *root)
{
    struct cfg_value *service = add_map(m, root, "service"), *pipelines;
    add_text(m, add_map(m, add_map(m, root, "extensions"), "health_check"), "endpoint", nowhere,
             "127.0.0.1:13133");
    add_words(m, service, "extensions", (const char *const[]){"health_check", NULL});
    add_text(m, add_map(m, add_map(m, service, "telemetry"), "metrics"), "level", nowhere, "none");
    pipelines = add_map(m, service, "pipelines");
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        if (!has_signal(m, (enum signal)s))
            continue;
        struct cfg_value *p = add_map(m, pipelines, signals[s]);
        add_words(m, p, "receivers", (const char *const[]){"otlp", NULL});
        add_words(m, p, "processors",
                  (const char *const[]){"gym", to_console(m) ? NULL : "batch", NULL});
        add_words(m, p, "exporters", (const char *const[]){exporter_id(m, (enum signal)s), NULL});
    }
}

struct cfg_value *gym_pipeline(struct arena *a, const struct gym_telemetry *t,
                               struct cfg_errors *errs)
{
    struct maker m = {a, t, errs, false};
    const size_t before = errs->n + errs->dropped;
    struct cfg_value *root = made(&m, cfg_new(a, CFG_MAP, nowhere));
    add_receivers(&m, root);
    add_processors(&m, root);
    struct cfg_value *exporters = add_map(&m, root, "exporters");
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (has_signal(&m, (enum signal)s))
            add_exporter(&m, exporters, (enum signal)s);
    add_service(&m, root);
    if (m.failed && errs->n + errs->dropped == before)
        cfg_error(errs, nowhere, "", "out of memory");
    return m.failed ? NULL : root;
}
