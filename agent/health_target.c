/* What motel health asks: an address in words, or the one of a configuration. */
#include <errno.h>
#include <string.h>

#include "agent/config/bound.h"
#include "agent/health.h"
#include "agent/net/server.h"

#define DEFAULT_PORT "13133"
#define UNIX_PREFIX "unix:"

void health_target_done(struct health_target *t)
{
    free(t->url);
    free(t->socket);
    *t = (struct health_target){0};
}

/* `path` may be empty. */
static int through_socket(const char *socket, const char *path, struct health_target *ret,
                          struct err *reterr)
{
    ret->socket = strdup(socket);
    if (!ret->socket || asprintf(&ret->url, "http://localhost%s", *path ? path : "/") < 0) {
        ret->url = NULL;
        return err_set(reterr, -ENOMEM, "out of memory");
    }
    return 0;
}

/* Who listens on every interface is asked on this machine. */
static bool is_wildcard(struct bytes host)
{
    return host.len == 0 || bytes_eq_str(host, "0.0.0.0");
}
static bool is_wildcard6(struct bytes host)
{
    return bytes_eq_str(host, "[::]") || bytes_eq_str(host, "[::0]");
}

/* `address` is host:port, host, or a port; anything of it may be left out. */
static int at_address(const char *scheme, struct bytes address, const char *path, bool v6,
                      struct health_target *ret, struct err *reterr)
{
    char text[300];
    const char *digits = "0123456789";
    snprintf(text, sizeof(text), "%.*s", (int)address.len, (const char *)address.data);
    const char *colon = strrchr(text, ':'), *bracket = strrchr(text, ']');
    if (colon && bracket && bracket > colon)
        colon = NULL;
    const char *port = colon ? colon + 1 : DEFAULT_PORT;
    struct bytes host = bytes_of(text, colon ? (size_t)(colon - text) : strlen(text));
    if (!colon && host.len && strspn(text, digits) == host.len) {
        port = text;
        host.len = 0;
    }
    if (address.len >= sizeof(text) || !*port || strlen(port) > 5 || port[strspn(port, digits)] ||
        (memchr(host.data, ':', host.len) && host.data[0] != '['))
        return err_set(reterr, -EINVAL, "expected an address such as 127.0.0.1:13133, got \"%.*s\"",
                       (int)address.len, (const char *)address.data);
    if (is_wildcard6(host) || (v6 && is_wildcard(host)))
        host = bytes_str("[::1]");
    else if (is_wildcard(host))
        host = bytes_str("127.0.0.1");
    if (asprintf(&ret->url, "%s://%.*s:%s%s", scheme, (int)host.len, (const char *)host.data, port,
                 *path ? path : "/") < 0) {
        ret->url = NULL;
        return err_set(reterr, -ENOMEM, "out of memory");
    }
    return 0;
}

int health_target_parse(const char *text, struct health_target *ret, struct err *reterr)
{
    if (strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0) {
        const char *path = text + strlen(UNIX_PREFIX);
        path += strncmp(path, "///", 3) == 0 ? 2 : 0;
        return *path ? through_socket(path, "", ret, reterr)
                     : err_set(reterr, -EINVAL,
                               "expected the path of a socket, as in "
                               "unix:/run/motel/health.sock");
    }
    if (strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0) {
        ret->url = strdup(text);
        return ret->url ? 0 : err_set(reterr, -ENOMEM, "out of memory");
    }
    if (strstr(text, "://") || *text == '/' || !*text)
        return err_set(reterr, -EINVAL,
                       "expected http://HOST:PORT/PATH, https://..., HOST:PORT or unix:PATH, got "
                       "\"%s\"",
                       text);
    const size_t len = strcspn(text, "/");
    return at_address("http", bytes_of(text, len), text + len, false, ret, reterr);
}

static const struct component_settings *find_health_check(const struct service_settings *s)
{
    for (size_t i = 0; i < s->nextensions; i++)
        if (strcmp(s->extensions[i]->type->name, "health_check") == 0)
            return s->extensions[i];
    return NULL;
}

int health_target_of(const struct service_settings *s, struct health_target *ret,
                     struct err *reterr)
{
    const struct component_settings *c = find_health_check(s);
    if (!c)
        return err_set(reterr, -ENOENT,
                       "the configuration has no health_check in service::extensions");
    const struct cfg_field *fields = c->type->fields;
    const char *endpoint = cfg_bound_text(fields, c->bound, "endpoint"),
               *transport = cfg_bound_text(fields, c->bound, "transport"),
               *path = cfg_bound_text(fields, c->bound, "path");
    const bool tls = cfg_bound_has(fields, c->bound, "tls");
    if (strcmp(transport, "unix") == 0 && tls)
        return err_set(reterr, -EINVAL, "extension \"%s\": TLS on a unix socket cannot be asked",
                       c->id);
    if (strcmp(transport, "unix") == 0)
        return through_socket(endpoint, path, ret, reterr);
    const char *colon = strrchr(endpoint, ':');
    if (colon && strcmp(colon, ":0") == 0)
        return err_set(reterr, -EINVAL,
                       "extension \"%s\" listens on any free port (%s), which only its collector "
                       "knows",
                       c->id, endpoint);
    ret->insecure = tls; /* it is this machine's own, and need not be named in its certificate */
    return at_address(tls ? "https" : "http", bytes_str(endpoint), path,
                      strcmp(transport, "tcp6") == 0, ret, reterr);
}
