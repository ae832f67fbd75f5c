/* A glob becomes a regular expression. */
#include "connectors/span_metrics/glob.h"

#include <errno.h>

#include "agent/base/buf.h"

struct translation {
    const char *p;
    struct buf *out;
    unsigned depth; /* of braces */
};

static int bad(const char *pattern, const char *why, struct err *reterr)
{
    return err_set(reterr, -EINVAL, "invalid dimension glob \"%s\": %s", pattern, why);
}

/* One character, all of its bytes, as itself. */
static int put_literal(struct translation *t)
{
    const char c = *t->p++;
    int r = strchr("\\.+*?()|[]{}^$-", c) ? buf_putc(t->out, '\\') : 0;
    if (r == 0)
        r = buf_putc(t->out, c);
    while (r == 0 && (*t->p & 0xc0) == 0x80)
        r = buf_putc(t->out, *t->p++);
    return r;
}

static int put_star(struct translation *t)
{
    const bool two = t->p[1] == '*';
    t->p += two ? 2 : 1;
    return buf_append_str(t->out, two ? ".*" : "[^.]*");
}

/* The characters of a class up to "]": a range "a-z", or a list. */
static int put_class(struct translation *t)
{
    t->p++;
    int r = buf_append_str(t->out, "[");
    if (r == 0 && *t->p == '!') {
        t->p++;
        r = buf_putc(t->out, '^');
    }
    if (*t->p == ']' || !*t->p)
        return -EINVAL;
    const char *second = t->p + 1;
    while ((*second & 0xc0) == 0x80)
        second++;
    const bool range = *t->p != '\\' && *second == '-' && second[1] && second[1] != ']';
    while (r == 0 && *t->p && *t->p != ']') {
        if (range && t->p == second) {
            t->p++;
            r = buf_putc(t->out, '-');
            if (r == 0)
                r = put_literal(t);
            if (r == 0 && *t->p != ']')
                return -EINVAL;
            continue;
        }
        t->p += *t->p == '\\' && t->p[1];
        r = put_literal(t);
    }
    if (r == 0 && *t->p != ']')
        return -EINVAL;
    t->p++;
    return r < 0 ? r : buf_putc(t->out, ']');
}

static int put_next(struct translation *t)
{
    switch (*t->p) {
    case '*': return put_star(t);
    case '?': t->p++; return buf_append_str(t->out, "[^.]");
    case '[': return put_class(t);
    case '{':
        t->p++;
        t->depth++;
        return buf_append_str(t->out, "(?:");
    case '}':
        if (!t->depth)
            return put_literal(t);
        t->p++;
        t->depth--;
        return buf_putc(t->out, ')');
    case ',':
        if (!t->depth)
            return put_literal(t);
        t->p++;
        return buf_putc(t->out, '|');
    case '\\': t->p++; return *t->p ? put_literal(t) : 0;
    default: return put_literal(t);
    }
}

int glob_compile(const char *pattern, struct regex **ret, struct err *reterr)
{
    _cleanup_buf_ struct buf *out = buf_new(0);
    struct translation t = {.p = pattern, .out = out};
    struct err e = {.text = ""};
    int r = out ? buf_append_str(out, "(?s)\\A(?:") : -ENOMEM;
    while (r == 0 && *t.p)
        r = put_next(&t);
    if (r == -EINVAL)
        return bad(pattern, "a class [...] is empty or not closed", reterr);
    for (; r == 0 && t.depth; t.depth--) /* the end closes what is open */
        r = buf_putc(out, ')');
    if (r == 0)
        r = buf_append_str(out, ")\\z");
    if (r < 0)
        return err_set(reterr, r, "out of memory");
    r = regex_new(buf_bytes(out), ret, &e);
    return r == -EINVAL ? bad(pattern, e.text, reterr)
           : r < 0      ? err_set(reterr, r, "out of memory")
                        : 0;
}
