/* URLs and proxies, as the HTTP clients see them. */
#include <errno.h>
#include <strings.h>

#include "agent/net/http_client_impl.h"

static bool given(const char *s)
{
    return s && *s;
}

static const char *env_of(const char *upper, const char *lower)
{
    const char *v = getenv(upper);
    return given(v) ? v : getenv(lower);
}

static bool is_loopback(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "[::1]") == 0;
}

/* Go's ProxyFromEnvironment. */
const char *http_proxy_of(const struct http_client_settings *s, const char *scheme,
                          const char *host, const char **ret_except)
{
    const char *proxy = s->proxy_url;
    *ret_except = s->no_proxy;
    if (given(proxy))
        return proxy;
    if (s->no_env_proxy)
        return "";
    const bool https = strcmp(scheme, "https") == 0;
    proxy = https ? env_of("HTTPS_PROXY", "https_proxy") : env_of("HTTP_PROXY", "http_proxy");
    *ret_except = env_of("NO_PROXY", "no_proxy");
    if (!given(proxy) || is_loopback(host) || (!https && getenv("REQUEST_METHOD")))
        return "";
    return proxy;
}

static void take(CURLU *u, CURLUPart part, unsigned flags, char *ret, size_t size)
{
    char *text = NULL;
    if (curl_url_get(u, part, &text, flags) == CURLUE_OK)
        snprintf(ret, size, "%s", text);
    curl_free(text);
}

int http_url_split(const char *url, struct http_url *ret)
{
    CURLU *u = curl_url();
    memset(ret, 0, sizeof(*ret));
    if (u && curl_url_set(u, CURLUPART_URL, url, CURLU_GUESS_SCHEME) == CURLUE_OK) {
        take(u, CURLUPART_SCHEME, 0, ret->scheme, sizeof(ret->scheme));
        take(u, CURLUPART_HOST, 0, ret->host, sizeof(ret->host));
        take(u, CURLUPART_PORT, CURLU_DEFAULT_PORT, ret->port, sizeof(ret->port));
        take(u, CURLUPART_PATH, 0, ret->path, sizeof(ret->path));
    }
    curl_url_cleanup(u);
    ret->tls = strcmp(ret->scheme, "https") == 0;
    return *ret->host ? 0 : -EINVAL;
}

/* "example.com" and ".example.com" are the domain and all below it; "*" is all. */
static bool is_excepted(const char *host, const char *list)
{
    for (const char *p = list; p && *p;) {
        p += strspn(p, ", ");
        size_t n = strcspn(p, ", ");
        const char *name = p;
        p += n;
        if (n == 1 && *name == '*')
            return true;
        if (n && *name == '.') {
            name++;
            n--;
        }
        const size_t len = strlen(host);
        if (n && len >= n && strncasecmp(host + len - n, name, n) == 0 &&
            (len == n || host[len - n - 1] == '.'))
            return true;
    }
    return false;
}

bool http_client_proxy(const struct http_client_settings *s, const char *url, struct http_url *ret)
{
    struct http_url to;
    const char *except;
    if (http_url_split(url, &to) < 0)
        return false;
    const char *proxy = http_proxy_of(s, to.scheme, to.host, &except);
    if (!*proxy || is_excepted(to.host, except) || http_url_split(proxy, ret) < 0)
        return false;
    const char *authority = strstr(proxy, "://");
    authority = authority ? authority + 3 : proxy;
    const char *at = strchr(authority, '@');
    if (!strchr(at ? at : authority, ':'))
        snprintf(ret->port, sizeof(ret->port), "1080"); /* libcurl's default for proxies */
    return true;
}
