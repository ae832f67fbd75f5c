/* What stands behind a URI: a variable, a file, or the text itself. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>

#include "agent/base/buf.h"
#include "agent/config/load.h"

#define MAX_FILE_BYTES (16u << 20)

/* [a-zA-Z_][a-zA-Z0-9_]* */
static bool is_variable_name(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isalpha((unsigned char)name[i]) && name[i] != '_' &&
            (i == 0 || !isdigit((unsigned char)name[i])))
            return false;
    return len > 0;
}

static int retrieve_env(struct arena *a, const char *opaque, struct retrieved *ret,
                        struct err *reterr)
{
    const char *fallback = strstr(opaque, ":-");
    size_t len = fallback ? (size_t)(fallback - opaque) : strlen(opaque);
    char *name = arena_strndup(a, opaque, len);
    if (!name)
        return err_set(reterr, -ENOMEM, "out of memory");
    if (!is_variable_name(name, len))
        return err_set(
            reterr, -EINVAL,
            "\"%.100s\" is not the name of an environment variable: expected letters, digits and _",
            name);
    const char *value = getenv(name);
    ret->from_env = value != NULL;
    if (!value && !fallback)
        ret->unset = name;
    if (!value)
        value = fallback ? fallback + 2 : "";
    ret->empty_string = !ret->from_env && fallback && !*value;
    ret->name = arena_printf(a, "env:%s", name);
    ret->text = arena_strdup(a, value);
    ret->len = strlen(value);
    return ret->name && ret->text ? 0 : err_set(reterr, -ENOMEM, "out of memory");
}

static int retrieve_file(struct arena *a, const char *path, struct retrieved *ret,
                         struct err *reterr)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(reterr, -errno, "cannot read the file \"%.200s\": %s", path,
                       strerror(errno));
    _cleanup_buf_ struct buf *b = buf_new(MAX_FILE_BYTES);
    int r = b ? buf_append_fd(b, fd) : -ENOMEM;
    r = r == -EMSGSIZE ? -EFBIG : r;
    if (r < 0)
        return err_set(reterr, r, "cannot read the file \"%.200s\": %s", path, strerror(-r));
    ret->from_file = true;
    ret->name = arena_strdup(a, path);
    ret->text = arena_strndup(a, (const char *)b->data, b->len);
    ret->len = b->len;
    return ret->name && ret->text ? 0 : err_set(reterr, -ENOMEM, "out of memory");
}

/* [A-Za-z][A-Za-z0-9+.-]+ before the first colon; its length, or 0. */
static size_t scheme_length(const char *uri)
{
    size_t n = strcspn(uri, ":");
    if (n < 2 || !uri[n] || !isalpha((unsigned char)*uri))
        return 0;
    for (size_t i = 1; i < n; i++)
        if (!isalnum((unsigned char)uri[i]) && !strchr("+.-", uri[i]))
            return 0;
    return n;
}

static int unknown_scheme(const char *uri, size_t scheme, struct err *reterr)
{
    const char *fallback = strstr(uri, ":-");
    if (fallback && is_variable_name(uri, (size_t)(fallback - uri)))
        return err_set(reterr, -EINVAL, "\"%.200s\" has no scheme: write \"env:%.200s\"", uri, uri);
    if (scheme == 0)
        return err_set(reterr, -EINVAL, "\"%.200s\" is not a valid URI", uri);
    if (strncmp(uri, "http", 4) == 0 && (scheme == 4 || (scheme == 5 && uri[4] == 's')))
        return err_set(reterr, -EINVAL, "\"%.200s\": a configuration is not fetched over HTTP",
                       uri);
    return err_set(reterr, -EINVAL, "the scheme \"%.*s\" of \"%.200s\" is not supported",
                   (int)scheme, uri, uri);
}

int cfg_retrieve(struct arena *a, const char *uri, struct retrieved *ret, struct err *reterr)
{
    size_t scheme = scheme_length(uri);
    const char *opaque = uri + scheme + 1;
    *ret = (struct retrieved){0};
    if (scheme == 3 && strncmp(uri, "env", 3) == 0)
        return retrieve_env(a, opaque, ret, reterr);
    if (scheme == 4 && strncmp(uri, "file", 4) == 0)
        return retrieve_file(a, opaque, ret, reterr);
    if (scheme != 4 || strncmp(uri, "yaml", 4) != 0)
        return unknown_scheme(uri, scheme, reterr);
    ret->name = "yaml";
    ret->text = arena_strdup(a, opaque);
    ret->len = strlen(opaque);
    return ret->text ? 0 : err_set(reterr, -ENOMEM, "out of memory");
}

size_t cfg_trimmed_len(const struct retrieved *r)
{
    size_t len = r->len;
    while (r->from_file && len && strchr("\r\n", r->text[len - 1]))
        len--;
    return len;
}
