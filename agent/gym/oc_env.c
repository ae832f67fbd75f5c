/* Grammar: https://omegaconf.readthedocs.io/en/2.3_branch/grammar.html, as far as oc.env needs it.
 */
#include "agent/gym/oc_env.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "agent/base/buf.h"
#include "agent/base/secrets.h"

#define MAX_NESTING 16 /* defaults inside defaults */
#define MAX_TEXT_BYTES (1u << 20)

struct scan {
    const struct oc_env *o;
    const char *p;
    int nesting;
    struct err *err;
};

/* One argument of a resolver. */
struct argument {
    struct buf *text;
    bool null; /* the word null */
};

const char *environment_get(char *const *environment, const char *name)
{
    const size_t len = strlen(name);
    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, len) == 0 && (*environment)[len] == '=')
            return *environment + len + 1;
    return NULL;
}

static int interpolation(struct scan *s, struct buf *out, bool *ret_null);

static void skip_space(struct scan *s)
{
    while (isspace((unsigned char)*s->p))
        s->p++;
}

static bool at_interpolation(const struct scan *s)
{
    return s->p[0] == '$' && s->p[1] == '{';
}

/* 'text' or "text" */
static int quoted(struct scan *s, struct buf *out)
{
    const char quote = *s->p++;
    int r = 0;
    while (r == 0 && *s->p && *s->p != quote) {
        bool null;
        if (at_interpolation(s)) {
            r = interpolation(s, out, &null);
            continue;
        }
        if (s->p[0] == '\\' && (s->p[1] == quote || s->p[1] == '\\'))
            s->p++;
        r = buf_putc(out, *s->p++);
    }
    if (r == 0 && *s->p++ != quote)
        return err_set(s->err, -EINVAL, "a quote (%c) of an interpolation is not closed", quote);
    skip_space(s);
    return r;
}

/* Up to the comma or brace that ends it, without the white space before that. */
static int unquoted(struct scan *s, struct buf *out, bool *ret_null)
{
    const char *start = s->p;
    size_t trimmed = 0; /* length without trailing space */
    int r = 0;
    while (r == 0 && *s->p && *s->p != ',' && *s->p != '}') {
        bool null;
        if (at_interpolation(s)) {
            r = interpolation(s, out, &null);
            trimmed = out->len;
            continue;
        }
        const bool space = isspace((unsigned char)*s->p);
        if (s->p[0] == '\\' && s->p[1])
            s->p++;
        r = buf_putc(out, *s->p++);
        if (!space)
            trimmed = out->len;
    }
    *ret_null = trimmed == 4 && strncasecmp(start, "null", 4) == 0;
    buf_truncate(out, trimmed);
    return r;
}

static int argument(struct scan *s, struct argument *a)
{
    a->null = false;
    if (!(a->text = buf_new(MAX_TEXT_BYTES)))
        return -ENOMEM;
    skip_space(s);
    return *s->p == '"' || *s->p == '\'' ? quoted(s, a->text) : unquoted(s, a->text, &a->null);
}

/* "oc.env:" behind the "${"; what else stands there is shown up to its brace. */
static int resolver_name(struct scan *s)
{
    static const char name[] = "oc.env";
    const char *start = s->p;
    s->p += 2;
    skip_space(s);
    if (strncmp(s->p, name, sizeof(name) - 1) == 0) {
        s->p += sizeof(name) - 1;
        skip_space(s);
        if (*s->p++ == ':')
            return 0;
    }
    const char *end = strchr(start, '}');
    return err_set(s->err, -EINVAL,
                   "the interpolation \"%.*s\" is not resolved here: expected ${oc.env:NAME} or "
                   "${oc.env:NAME,default}",
                   end && end - start < 80 ? (int)(end - start + 1) : 80, start);
}

static int value_of(struct scan *s, const struct argument *args, int n, struct buf *out,
                    bool *ret_null)
{
    const char *name = buf_str(args[0].text);
    if (!name)
        return -ENOMEM;
    if (!*name)
        return err_set(s->err, -EINVAL, "${oc.env:} names no environment variable");
    const char *value = environment_get(s->o->environment, name);
    if (value && s->o->secret)
        secrets_add(value);
    if (value)
        return buf_append_str(out, value);
    if (n < 2)
        return err_set(
            s->err, -EINVAL,
            "the environment variable \"%.100s\" is not set, and ${oc.env:%.100s} has no "
            "default",
            name, name);
    *ret_null = args[1].null;
    return args[1].null ? 0 : buf_append(out, args[1].text->data, args[1].text->len);
}

/* From "${" to behind its "}". */
static int interpolation(struct scan *s, struct buf *out, bool *ret_null)
{
    struct argument args[2] = {{0}};
    int n = 0, r = resolver_name(s);
    *ret_null = false;
    if (r == 0 && ++s->nesting > MAX_NESTING)
        r = err_set(s->err, -EINVAL, "interpolations are nested too deeply");
    while (r == 0) {
        r = argument(s, &args[n++]);
        if (n == 2 || *s->p != ',')
            break;
        s->p++;
    }
    if (r == 0 && *s->p != '}')
        r = err_set(s->err, -EINVAL,
                    *s->p ? "an interpolation has too much in it: expected ${oc.env:NAME} or "
                            "${oc.env:NAME,default}"
                          : "an interpolation is not closed: expected a \"}\"");
    s->p += r == 0;
    s->nesting--;
    if (r == 0)
        r = value_of(s, args, n, out, ret_null);
    for (int i = 0; i < 2; i++)
        buf_unref(args[i].text);
    return r;
}

/* Backslashes before "${": every two are one, and an odd one takes the meaning of "${" away. */
static int backslashes(struct scan *s, struct buf *out)
{
    const size_t n = strspn(s->p, "\\");
    const bool matters = s->p[n] == '$' && s->p[n + 1] == '{';
    int r = buf_append(out, s->p, matters ? n / 2 : n);
    s->p += n;
    if (r == 0 && matters && n % 2 == 1) {
        r = buf_append_str(out, "${");
        s->p += 2;
    }
    return r;
}

int oc_env_resolve(const struct oc_env *o, const char *text, const char **ret, struct err *reterr)
{
    struct scan s = {.o = o, .p = text, .err = reterr};
    *ret = text;
    if (!strstr(text, "${"))
        return 0;
    _cleanup_buf_ struct buf *out = buf_new(MAX_TEXT_BYTES);
    bool null = false;
    int r = out ? 0 : -ENOMEM;
    while (r == 0 && *s.p) {
        const bool first = s.p == text;
        if (*s.p == '\\')
            r = backslashes(&s, out);
        else if (!at_interpolation(&s))
            r = buf_putc(out, *s.p++);
        else if ((r = interpolation(&s, out, &null)) == 0)
            null = null && first && !*s.p;
    }
    if (r == 0)
        *ret = null ? NULL : arena_strndup(o->arena, (const char *)out->data, out->len);
    if (r == -ENOMEM || (r == 0 && !*ret && !null))
        return err_set(reterr, -ENOMEM, "out of memory");
    return r == -EMSGSIZE ? err_set(reterr, -EINVAL, "expands to too long a text") : r;
}
