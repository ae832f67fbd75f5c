/* What the merged configuration made of the exporters: each has somewhere to send to, which is not
 * motel itself. */
#include <errno.h>
#include <strings.h>

#include "agent/config/tree.h"
#include "agent/gym/pipeline.h"
#include "agent/net/http_client.h"

/* A host and a port, as text. */
struct place {
    char host[256], port[8];
};

/* Host and port of "host:port" or of a URL, whose scheme gives the port if need be. False when it
 * has none. */
static bool place_of(const char *text, const char *port, struct place *ret)
{
    const char *scheme = strstr(text, "://"), *host = scheme ? scheme + 3 : text;
    size_t len = strcspn(host, "/?#");
    if (scheme)
        port = strncasecmp(text, "https:", 6) == 0 ? "443" : "80";
    const char *at = memrchr(host, '@', len);
    if (at) {
        len -= (size_t)(at + 1 - host);
        host = at + 1;
    }
    const char *bracket = *host == '[' ? memchr(host, ']', len) : NULL;
    const char *colon = bracket ? bracket + 1 : memrchr(host, ':', len);
    const bool has_port = colon && colon < host + len && *colon == ':';
    const char *end = has_port ? colon : host + len;
    const int skip = bracket != NULL, tail = bracket && end[-1] == ']';
    snprintf(ret->host, sizeof(ret->host), "%.*s", (int)(end - host) - skip - tail, host + skip);
    snprintf(ret->port, sizeof(ret->port), "%.*s",
             has_port ? (int)(host + len - colon - 1) : (int)strlen(port),
             has_port ? colon + 1 : port);
    return *ret->port;
}

static bool is_wildcard(const char *host)
{
    return !*host || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

static bool is_loopback(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "::1") == 0;
}

static bool is_this_machine(const char *host)
{
    char name[256];
    if (is_wildcard(host) || is_loopback(host))
        return true;
    return gethostname(name, sizeof(name)) == 0 && strcasecmp(name, host) == 0;
}

/* Whether what is sent to `to` comes in at `listener`. Names are not looked up. */
static bool reaches(const struct place *to, const struct place *listener)
{
    if (strcmp(to->port, listener->port) != 0)
        return false;
    if (strcasecmp(to->host, listener->host) == 0)
        return true;
    return is_this_machine(to->host) &&
           (is_wildcard(listener->host) || is_loopback(listener->host));
}

/* ---- the merged tree ---- */

static bool list_names(const struct cfg_value *list, const char *id)
{
    if (list && list->type == CFG_STRING)
        return strstr(list->text, id) != NULL;
    for (size_t i = 0; list && list->type == CFG_LIST && i < list->n; i++)
        if (list->items[i]->type == CFG_STRING && strcmp(list->items[i]->text, id) == 0)
            return true;
    return false;
}

/* Whether a pipeline has `id` among its "receivers" or "exporters". */
static bool is_used(const struct cfg_value *root, const char *section, const char *id)
{
    const struct cfg_value *pipelines = cfg_get(cfg_get(root, "service"), "pipelines");
    for (size_t i = 0; pipelines && pipelines->type == CFG_MAP && i < pipelines->n; i++)
        if (list_names(cfg_get(pipelines->items[i], section), id))
            return true;
    return false;
}

/* Whether gym_pipeline() gives this id to an exporter that needs an endpoint. */
static bool is_ours(const char *id)
{
    static const char *const types[] = {"otlp_grpc/gym", "otlp_http/gym"}, *const ends[] = {
                                                                               "", "_traces",
                                                                               "_metrics", "_logs"};
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        for (size_t k = 0; k < ARRAY_SIZE(ends); k++) {
            const size_t n = strlen(types[i]);
            if (strncmp(id, types[i], n) == 0 && strcmp(id + n, ends[k]) == 0)
                return true;
        }
    return false;
}

/* The listener of one protocol of an otlp receiver; false when it has none, or a unix socket. */
static bool listener_of(const struct cfg_value *receiver, const char *protocol, const char *normal,
                        struct place *ret)
{
    const struct cfg_value *protocols = cfg_get(receiver, "protocols"),
                           *p = cfg_get(protocols, protocol), *transport = cfg_get(p, "transport"),
                           *endpoint = cfg_get(p, "endpoint");
    if (!p || (transport && transport->type == CFG_STRING && strcmp(transport->text, "unix") == 0))
        return false;
    const bool given = endpoint && endpoint->type == CFG_STRING && *endpoint->text;
    return place_of(given ? endpoint->text : normal, "", ret);
}

/* ---- the check ---- */

struct check {
    const struct cfg_value *root;
    struct cfg_errors *errs;
    bool failed;
};

static void check_listener(struct check *c, const char *path, const struct cfg_value *endpoint,
                           const char *receiver, const struct place *listener)
{
    struct place to;
    char safe[200];
    if (!place_of(endpoint->text, "", &to) || !reaches(&to, listener))
        return;
    http_url_redact(endpoint->text, safe, sizeof(safe));
    cfg_error(c->errs, endpoint->pos, path,
              "\"%s\" is motel itself: the receiver %s listens on %s:%s, and what it gets would "
              "come back to it. Give motel another endpoint than the programs that send to it",
              safe, receiver, listener->host, listener->port);
    c->failed = true;
}

static void check_endpoint(struct check *c, const char *id, const char *key,
                           const struct cfg_value *endpoint)
{
    const struct cfg_value *receivers = cfg_get(c->root, "receivers");
    char path[160];
    struct place listener;
    snprintf(path, sizeof(path), "exporters::%s::%s", id, key);
    for (size_t i = 0; receivers && receivers->type == CFG_MAP && i < receivers->n; i++) {
        const char *receiver = receivers->keys[i];
        if ((strcmp(receiver, "otlp") != 0 && strncmp(receiver, "otlp/", 5) != 0) ||
            !is_used(c->root, "receivers", receiver))
            continue;
        if (listener_of(receivers->items[i], "grpc", "localhost:4317", &listener))
            check_listener(c, path, endpoint, receiver, &listener);
        if (listener_of(receivers->items[i], "http", "localhost:4318", &listener))
            check_listener(c, path, endpoint, receiver, &listener);
    }
}

static void check_exporter(struct check *c, const char *id, const struct cfg_value *exporter)
{
    static const char *const keys[] = {"endpoint", "traces_endpoint", "metrics_endpoint",
                                       "logs_endpoint"};
    bool any = false;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        const struct cfg_value *v = cfg_get(exporter, keys[i]);
        if (!v || v->type != CFG_STRING || !*v->text)
            continue;
        any = true;
        check_endpoint(c, id, keys[i], v);
    }
    if (any)
        return;
    cfg_error(c->errs, (struct cfg_pos){0}, "",
              "the exporter \"otlp\" of the telemetry settings needs a destination: set "
              "OTEL_EXPORTER_OTLP_ENDPOINT, or otlp_endpoint in the telemetry block. The default "
              "of OpenTelemetry, localhost:4317, is motel itself");
    c->failed = true;
}

/* `map` with `v` under `key`, or without the key when v is NULL. */
static struct cfg_value *changed(struct arena *a, const struct cfg_value *map, const char *key,
                                 struct cfg_value *v)
{
    struct cfg_value *copy = cfg_new(a, CFG_MAP, map->pos);
    for (size_t i = 0; copy && i < map->n; i++) {
        const bool it = strcmp(map->keys[i], key) == 0;
        struct cfg_value *item = it ? v : map->items[i];
        if (item && cfg_append(a, copy, map->keys[i], map->key_pos[i], item) < 0)
            copy = NULL;
    }
    return copy;
}

int gym_pipeline_check(struct config *config, struct cfg_errors *errs)
{
    struct check c = {config->root, errs, false};
    const struct cfg_value *exporters = cfg_get(c.root, "exporters");
    for (size_t i = 0; exporters && exporters->type == CFG_MAP && i < exporters->n; i++) {
        const char *id = exporters->keys[i];
        if (!is_ours(id))
            continue;
        if (is_used(c.root, "exporters", id)) {
            check_exporter(&c, id, exporters->items[i]);
            continue;
        }
        struct cfg_value *rest = changed(config->arena, exporters, id, NULL),
                         *root = rest ? changed(config->arena, c.root, "exporters", rest) : NULL;
        if (!root) {
            cfg_error(errs, (struct cfg_pos){0}, "", "out of memory");
            return -ENOMEM;
        }
        config->root = c.root = root;
        exporters = rest;
        i--;
    }
    return c.failed ? -EINVAL : 0;
}
