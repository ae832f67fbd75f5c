/* Where a gRPC client connects to: host:port, http://, https://, dns:, passthrough:, unix: (grpc
 * naming.md). */
#include <errno.h>

#include "agent/net/grpc_client_impl.h"

/* Takes a prefix off; false when it is not there. */
static bool strip(const char **text, const char *prefix)
{
    size_t n = strlen(prefix);
    if (strncmp(*text, prefix, n) != 0)
        return false;
    *text += n;
    return true;
}

static int unix_path(const char *path, struct grpc_endpoint *ret, struct err *reterr)
{
    if (strip(&path, "//") && *path != '/')
        return err_set(reterr, -EINVAL,
                       "unix socket of \"%s\": expected unix:path or unix:///absolute/path", path);
    if (!*path || strlen(path) >= sizeof(ret->path))
        return err_set(reterr, -EINVAL, "unix socket path: expected 1 to %zu bytes, got %zu",
                       sizeof(ret->path) - 1, strlen(path));
    snprintf(ret->path, sizeof(ret->path), "%s", path);
    snprintf(ret->host, sizeof(ret->host), "localhost");
    return 0;
}

/* The rules of net.SplitHostPort. */
static int host_port(const char *text, struct grpc_endpoint *ret, struct err *reterr)
{
    size_t len = strlen(text);
    while (len && text[len - 1] == '/')
        len--;
    const char *colon = memrchr(text, ':', len), *host = text;
    const char *bracket = text[0] == '[' ? memchr(text, ']', len) : NULL;
    if (!colon || (bracket && bracket > colon) || (bracket && bracket + 1 != colon))
        return err_set(reterr, -EINVAL, "address %s: missing port in address", text);
    size_t host_len = (size_t)(colon - text), port_len = len - host_len - 1;
    if (bracket) {
        host++;
        host_len -= 2;
    } else if (memchr(host, ':', host_len)) {
        return err_set(reterr, -EINVAL, "address %s: too many colons in address", text);
    }
    bool digits = port_len > 0 && port_len <= 5 && strspn(colon + 1, "0123456789") >= port_len;
    if (!digits || strtoul(colon + 1, NULL, 10) > 65535)
        return err_set(reterr, -EINVAL, "invalid port \"%.*s\"", (int)port_len, colon + 1);
    if (host_len >= sizeof(ret->host))
        return err_set(reterr, -EINVAL, "address %s: the host name is too long", text);
    snprintf(ret->host, sizeof(ret->host), "%.*s", (int)host_len, host_len ? host : "localhost");
    if (!host_len)
        snprintf(ret->host, sizeof(ret->host), "localhost");
    snprintf(ret->port, sizeof(ret->port), "%.*s", (int)port_len, colon + 1);
    return 0;
}

int grpc_endpoint_parse(const char *text, struct grpc_endpoint *ret, struct err *reterr)
{
    memset(ret, 0, sizeof(*ret));
    if (!*text)
        return err_set(reterr, -EINVAL, "requires a non-empty \"endpoint\"");
    if (strip(&text, "unix:"))
        return unix_path(text, ret, reterr);
    ret->plain = strip(&text, "http://");
    ret->secure = !ret->plain && strip(&text, "https://");
    if (!ret->plain && !ret->secure && (strip(&text, "dns:") || strip(&text, "passthrough:"))) {
        const char *slash = strip(&text, "//") ? strchr(text, '/')
                                               : NULL; /* the name server of dns:// is not asked */
        text = slash ? slash + 1 : text;
    }
    return host_port(text, ret, reterr);
}

int grpc_client_check_endpoint(const char *endpoint, struct err *reterr)
{
    struct grpc_endpoint e;
    return grpc_endpoint_parse(endpoint, &e, reterr);
}
