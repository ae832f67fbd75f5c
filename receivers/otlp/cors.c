/* Cross-origin requests of browsers (https://fetch.spec.whatwg.org/#http-cors-protocol), answered
 * as the reference's library does. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "receivers/otlp/otlp.h"

struct cors {
    char **origins, **headers; /* in lower case */
    size_t norigins, nheaders;
    bool any_origin, any_header;
    char *exposed, max_age[24]; /* NULL, "": not sent */
};

static char *lower(const char *s)
{
    char *copy = strdup(s);
    for (char *p = copy; p && *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p += 32;
    return copy;
}

static void free_list(char **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(list[i]);
    free(list);
}

struct cors *cors_free(struct cors *c)
{
    if (!c)
        return NULL;
    free_list(c->origins, c->norigins);
    free_list(c->headers, c->nheaders);
    free(c->exposed);
    free(c);
    return NULL;
}

static int copy_list(const struct cfg_list *from, char ***ret, size_t *ret_n, bool *ret_any)
{
    const char *const *items = from->items;
    *ret = calloc(from->n + 1, sizeof(**ret));
    if (!*ret)
        return -ENOMEM;
    for (size_t i = 0; i < from->n; i++) {
        if (!((*ret)[i] = lower(items[i])))
            return -ENOMEM;
        *ret_n = i + 1;
        *ret_any |= strcmp(items[i], "*") == 0;
    }
    return 0;
}

/* "x-a, x-b" with each word's first letter in upper case. */
static int join_exposed(struct cors *c, const struct cfg_list *list)
{
    const char *const *items = list->items;
    _cleanup_buf_ struct buf *b = buf_new(0);
    int r = b ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        r = buf_printf(b, "%s", i ? ", " : "");
        for (const char *s = items[i]; r == 0 && *s; s++) {
            bool first = s == items[i] || s[-1] == '-';
            char ch = *s >= 'A' && *s <= 'Z' ? (char)(*s + 32) : *s;
            r = buf_putc(b, first && ch >= 'a' && ch <= 'z' ? (char)(ch - 32) : ch);
        }
    }
    if (r == 0 && b->len && !(c->exposed = strdup(buf_str(b))))
        r = -ENOMEM;
    return r;
}

int cors_new(const struct cors_config *config, struct cors **ret)
{
    static const char *const usual[] = {"accept", "content-type", "x-requested-with"};
    const struct cfg_list usual_list = {.items = (void *)usual, .n = ARRAY_SIZE(usual)};
    *ret = NULL;
    if (!config || config->allowed_origins.n == 0)
        return 0;
    struct cors *c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    const struct cfg_list *headers =
        config->allowed_headers.n ? &config->allowed_headers : &usual_list;
    int r = copy_list(&config->allowed_origins, &c->origins, &c->norigins, &c->any_origin);
    if (r == 0)
        r = copy_list(headers, &c->headers, &c->nheaders, &c->any_header);
    if (r == 0)
        r = join_exposed(c, &config->exposed_headers);
    if (config->max_age_s)
        snprintf(c->max_age, sizeof(c->max_age), "%lld",
                 (long long)(config->max_age_s > 0 ? config->max_age_s : 0));
    if (r == 0)
        *ret = TAKE_PTR(c);
    cors_free(c);
    return r;
}

/* `pattern` is in lower case and may have one "*". */
static bool matches(const char *pattern, const char *origin)
{
    const char *star = strchr(pattern, '*');
    size_t n = strlen(origin);
    if (!star)
        return strcasecmp(pattern, origin) == 0;
    size_t before = (size_t)(star - pattern), after = strlen(star + 1);
    return n >= before + after && strncasecmp(origin, pattern, before) == 0 &&
           strcasecmp(origin + n - after, star + 1) == 0;
}

/* Copies the Origin of `x`; true when it is allowed. */
static bool origin_allowed(const struct cors *c, const struct http_exchange *x,
                           struct cors_reply *ret)
{
    struct bytes o = http_header(x, "origin");
    if (o.len == 0 || o.len >= sizeof(ret->origin))
        return false;
    memcpy(ret->origin, o.data, o.len);
    ret->origin[o.len] = 0;
    for (size_t i = 0; i < c->norigins; i++)
        if (matches(c->origins[i], ret->origin))
            return true;
    return c->any_origin;
}

static void add(struct cors_reply *r, const char *name, const char *value)
{
    if (r->n < CORS_MAX_HEADERS)
        r->headers[r->n++] = (struct http_header_out){name, value};
}

static void add_origin(const struct cors *c, struct cors_reply *r)
{
    add(r, "access-control-allow-origin", c->any_origin ? "*" : r->origin);
}

void cors_actual(const struct cors *c, const struct http_exchange *x, struct cors_reply *ret)
{
    ret->n = 0;
    if (!c)
        return;
    add(ret, "vary", "Origin");
    struct bytes m = http_method(x);
    bool simple = bytes_eq_str(m, "POST") || bytes_eq_str(m, "GET") || bytes_eq_str(m, "HEAD");
    if (!origin_allowed(c, x, ret) || !simple)
        return;
    add_origin(c, ret);
    if (c->exposed)
        add(ret, "access-control-expose-headers", c->exposed);
    add(ret, "access-control-allow-credentials", "true");
}

static bool header_allowed(const struct cors *c, struct bytes name)
{
    for (size_t i = 0; i < c->nheaders; i++)
        if (strlen(c->headers[i]) == name.len &&
            strncasecmp(c->headers[i], (const char *)name.data, name.len) == 0)
            return true;
    return c->any_header ||
           (name.len == 12 && strncasecmp((const char *)name.data, "content-type", 12) == 0);
}

/* Every name in "a, b,c" is allowed. */
static bool all_allowed(const struct cors *c, struct bytes list)
{
    while (list.len) {
        size_t n = 0;
        while (n < list.len && list.data[n] != ',')
            n++;
        struct bytes name = bytes_of(list.data, n);
        list = bytes_of(list.data + n, list.len - n);
        if (list.len)
            list = bytes_of(list.data + 1, list.len - 1);
        while (name.len && (name.data[0] == ' ' || name.data[0] == '\t'))
            name = bytes_of(name.data + 1, name.len - 1);
        while (name.len && (name.data[name.len - 1] == ' ' || name.data[name.len - 1] == '\t'))
            name.len--;
        if (name.len && !header_allowed(c, name))
            return false;
    }
    return true;
}

static bool method_allowed(struct bytes m, const char **ret)
{
    static const char *const methods[] = {"GET", "POST", "HEAD", "OPTIONS"};
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        if (bytes_eq_str(m, methods[i])) {
            *ret = methods[i];
            return true;
        }
    return false;
}

bool cors_preflight(const struct cors *c, const struct http_exchange *x, struct cors_reply *ret)
{
    struct bytes asked = http_header(x, "access-control-request-headers");
    struct bytes method = http_header(x, "access-control-request-method");
    const char *allowed;
    ret->n = 0;
    if (!c || !bytes_eq_str(http_method(x), "OPTIONS") || method.len == 0)
        return false;
    add(ret, "vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
    if (!origin_allowed(c, x, ret) || !method_allowed(method, &allowed) ||
        asked.len >= sizeof(ret->asked) || !all_allowed(c, asked))
        return true;
    add_origin(c, ret);
    add(ret, "access-control-allow-methods", allowed);
    if (asked.len) {
        memcpy(ret->asked, asked.data, asked.len);
        ret->asked[asked.len] = 0;
        add(ret, "access-control-allow-headers", ret->asked);
    }
    add(ret, "access-control-allow-credentials", "true");
    if (c->max_age[0])
        add(ret, "access-control-max-age", c->max_age);
    return true;
}
