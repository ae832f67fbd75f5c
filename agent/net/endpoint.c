#include "agent/net/endpoint.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "agent/net/server.h"

struct hostport {
    char host[256], port[32];
};

static int split_bad(const char *endpoint, const char *why, struct err *reterr)
{
    return err_set(reterr, -EINVAL, "address %s: %s", endpoint, why);
}

static int split_copy(struct hostport *h, const char *endpoint, const char *host, size_t host_len,
                      const char *port, struct err *reterr)
{
    if (host_len >= sizeof(h->host) || strlen(port) >= sizeof(h->port))
        return split_bad(endpoint, "too long", reterr);
    memcpy(h->host, host, host_len);
    h->host[host_len] = 0;
    strncpy(h->port, port, sizeof(h->port) - 1);
    h->port[sizeof(h->port) - 1] = 0;
    return 0;
}

static int split(const char *endpoint, struct hostport *ret, struct err *reterr)
{
    const char *colon = strrchr(endpoint, ':');
    if (!colon)
        return split_bad(endpoint, "missing port in address", reterr);
    if (endpoint[0] == '[') {
        const char *close = strchr(endpoint, ']');
        if (!close)
            return split_bad(endpoint, "missing ']' in address", reterr);
        if (close[1] == 0)
            return split_bad(endpoint, "missing port in address", reterr);
        if (close + 1 != colon)
            return split_bad(
                endpoint,
                close[1] == ':' ? "too many colons in address" : "missing port in address", reterr);
        if (strchr(endpoint + 1, '[') || strchr(close + 1, ']'))
            return split_bad(endpoint, "unexpected bracket in address", reterr);
        return split_copy(ret, endpoint, endpoint + 1, (size_t)(close - endpoint - 1), colon + 1,
                          reterr);
    }
    if (memchr(endpoint, ':', (size_t)(colon - endpoint)))
        return split_bad(endpoint, "too many colons in address", reterr);
    if (strpbrk(endpoint, "[]"))
        return split_bad(endpoint, "unexpected bracket in address", reterr);
    return split_copy(ret, endpoint, endpoint, (size_t)(colon - endpoint), colon + 1, reterr);
}

int endpoint_check(const char *endpoint, struct err *reterr)
{
    struct hostport h;
    int r = split(endpoint, &h, reterr);
    const bool number = r == 0 && h.port[0] && h.port[strspn(h.port, "0123456789")] == 0;
    if (number && strtoul(h.port, NULL, 10) > 65535)
        return split_bad(endpoint, "invalid port", reterr);
    return r;
}

const char *endpoint_format(const struct sockaddr *a, socklen_t len, char *text, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (a->sa_family == AF_INET && len >= sizeof(struct sockaddr_in)) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)a;
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
        snprintf(text, size, "%s:%u", host, ntohs(in->sin_port));
    } else if (a->sa_family == AF_INET6 && len >= sizeof(struct sockaddr_in6)) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)a;
        if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
            inet_ntop(AF_INET, in6->sin6_addr.s6_addr + 12, host, sizeof(host));
            snprintf(text, size, "%s:%u", host, ntohs(in6->sin6_port));
        } else {
            inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
            snprintf(text, size, "[%s]:%u", host, ntohs(in6->sin6_port));
        }
    } else {
        snprintf(text, size, "%s", a->sa_family == AF_UNIX ? "unix" : "?");
    }
    return text;
}

struct target { /* one address to try */
    struct sockaddr_storage addr;
    socklen_t len;
    bool v6only;
};

/* "bind: address already in use", as Go says it. */
static int listen_error(const char *transport, const char *where, const char *call, int code,
                        struct err *reterr)
{
    char why[128];
    snprintf(why, sizeof(why), "%s", strerror(-code));
    why[0] = (char)tolower((unsigned char)why[0]);
    return err_set(reterr, code, "listen %s %s: %s: %s", transport, where, call, why);
}

static int open_socket(const struct target *t, const char **ret_call)
{
    int one = 1, v6only = t->v6only;
    *ret_call = "socket";
    _cleanup_close_ int fd =
        socket(t->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (t->addr.ss_family != AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (t->addr.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof(v6only));
    *ret_call = "bind";
    if (bind(fd, (const struct sockaddr *)&t->addr, t->len) < 0)
        return -errno;
    *ret_call = "listen";
    if (listen(fd, SOMAXCONN) < 0)
        return -errno;
    return TAKE_FD(fd);
}

static bool is_wildcard(const char *host)
{
    return host[0] == 0 || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

static void wildcard_target(int family, bool v6only, uint16_t port, struct target *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->addr.ss_family = (sa_family_t)family;
    if (family == AF_INET6) {
        ((struct sockaddr_in6 *)&ret->addr)->sin6_port = htons(port);
        ret->len = sizeof(struct sockaddr_in6);
    } else {
        ((struct sockaddr_in *)&ret->addr)->sin_port = htons(port);
        ret->len = sizeof(struct sockaddr_in);
    }
    ret->v6only = v6only;
}

static int parse_port(const char *transport, const char *port, uint16_t *ret, struct err *reterr)
{
    char *end = NULL;
    errno = 0;
    unsigned long v = strtoul(port, &end, 10);
    if (isdigit((unsigned char)port[0]) && *end == 0) {
        if (errno || v > 65535)
            return err_set(reterr, -EINVAL, "listen %s: address %s: invalid port", transport, port);
        *ret = (uint16_t)v;
        return 0;
    }
    struct servent *s = port[0] ? getservbyname(port, "tcp") : NULL;
    if (port[0] && !s)
        return err_set(reterr, -EINVAL, "listen %s: lookup %s/%s: unknown port", transport,
                       transport, port);
    *ret = s ? ntohs((uint16_t)s->s_port) : 0;
    return 0;
}

/* The first IPv4 address of the host, else its first one. */
static int resolve(const char *transport, const struct hostport *h, uint16_t port,
                   struct target *ret, struct err *reterr)
{
    char service[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *list = NULL,
                    *pick;
    hints.ai_family = strcmp(transport, "tcp4") == 0   ? AF_INET
                      : strcmp(transport, "tcp6") == 0 ? AF_INET6
                                                       : AF_UNSPEC;
    snprintf(service, sizeof(service), "%u", port);
    const char *host = h->host;
    if (strcasecmp(host, "localhost") ==
        0) /* the loopback wherever names are asked for (RFC 6761) */
        host = hints.ai_family == AF_INET6 ? "::1" : "127.0.0.1";
    int r = getaddrinfo(host, service, &hints, &list);
    if (r != 0)
        return err_set(reterr, -EADDRNOTAVAIL, "listen %s: lookup %s: %s", transport, h->host,
                       gai_strerror(r));
    for (pick = list; pick && pick->ai_family != AF_INET; pick = pick->ai_next)
        ;
    pick = pick ? pick : list;
    memset(ret, 0, sizeof(*ret));
    memcpy(&ret->addr, pick->ai_addr, pick->ai_addrlen);
    ret->len = pick->ai_addrlen;
    ret->v6only = true;
    freeaddrinfo(list);
    return 0;
}

static int listen_tcp(const char *transport, const char *endpoint, struct err *reterr)
{
    struct hostport h;
    struct target t;
    uint16_t port = 0;
    const char *call;
    int r = split(endpoint, &h, reterr);
    if (r < 0) {
        err_prefix(reterr, "listen %s: ", transport);
        return r;
    }
    if ((r = parse_port(transport, h.port, &port, reterr)) < 0)
        return r;
    if (!is_wildcard(h.host)) {
        if ((r = resolve(transport, &h, port, &t, reterr)) < 0)
            return r;
        char where[128];
        r = open_socket(&t, &call);
        endpoint_format((struct sockaddr *)&t.addr, t.len, where, sizeof(where));
        return r < 0 ? listen_error(transport, where, call, r, reterr) : r;
    }
    wildcard_target(strcmp(transport, "tcp4") == 0 ? AF_INET : AF_INET6,
                    strcmp(transport, "tcp6") == 0, port, &t);
    r = open_socket(&t, &call);
    if ((r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL) &&
        strcmp(transport, "tcp") == 0) { /* no IPv6 here */
        wildcard_target(AF_INET, false, port, &t);
        r = open_socket(&t, &call);
    }
    return r < 0 ? listen_error(transport, endpoint, call, r, reterr) : r;
}

/* A socket file whose server is gone refuses connections. */
static bool is_stale_socket(const struct target *t, const char *path)
{
    struct stat st;
    if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return false;
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd >= 0 && connect(fd, (const struct sockaddr *)&t->addr, t->len) < 0 &&
           errno == ECONNREFUSED;
}

static int listen_unix(const char *path, struct err *reterr)
{
    struct target t = {.addr.ss_family = AF_UNIX, .len = sizeof(struct sockaddr_un)};
    struct sockaddr_un *un = (struct sockaddr_un *)&t.addr;
    const char *call;
    if (strlen(path) >= sizeof(un->sun_path))
        return err_set(reterr, -ENAMETOOLONG, "listen unix %s: the path is longer than %zu bytes",
                       path, sizeof(un->sun_path) - 1);
    memcpy(un->sun_path, path, strlen(path));
    int r = open_socket(&t, &call);
    if (r == -EADDRINUSE && is_stale_socket(&t, path) && unlink(path) == 0)
        r = open_socket(&t, &call);
    return r < 0 ? listen_error("unix", path, call, r, reterr) : r;
}

int endpoint_listen(const char *transport, const char *endpoint, struct err *reterr)
{
    if (!transport || !transport[0])
        transport = "tcp";
    if (strcmp(transport, "unix") == 0)
        return listen_unix(endpoint, reterr);
    if (strcmp(transport, "tcp") != 0 && strcmp(transport, "tcp4") != 0 &&
        strcmp(transport, "tcp6") != 0)
        return err_set(reterr, -EINVAL, "listen %s: expected transport tcp, tcp4, tcp6 or unix",
                       transport);
    return listen_tcp(transport, endpoint, reterr);
}
