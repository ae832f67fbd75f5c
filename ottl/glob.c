#include "ottl/glob.h"

#include <errno.h>

#include "agent/base/buf.h"

struct glob {
    struct bytes rest;
    struct buf *out;
    struct err *err;
    int depth; /* of braces */
};

/* The next character with all its bytes; empty at the end. */
static struct bytes take(struct glob *g)
{
    size_t n = g->rest.len > 0;
    while (n && n < g->rest.len && (g->rest.data[n] & 0xc0) == 0x80)
        n++;
    struct bytes c = bytes_of(g->rest.data, n);
    g->rest = bytes_of(g->rest.data + n, g->rest.len - n);
    return c;
}

static bool at(const struct glob *g, char c)
{
    return g->rest.len > 0 && g->rest.data[0] == (uint8_t)c;
}

static int unexpected_end(struct glob *g)
{
    return err_set(g->err, -EINVAL, "unexpected end of input in [");
}

/* One character that stands for itself. */
static int put_literal(struct glob *g, struct bytes c)
{
    if (c.len == 1 && c.data[0] && strchr("\\^$.|?*+()[]{}-&~#", c.data[0])) {
        int r = buf_putc(g->out, '\\');
        if (r < 0)
            return r;
    }
    return buf_append(g->out, c.data, c.len);
}

/* lo-hi, behind the first character and the hyphen. */
static int put_range(struct glob *g, struct bytes low)
{
    struct bytes high = take(g);
    if (high.len == 0)
        return unexpected_end(g);
    if (!at(g, ']'))
        return err_set(g->err, -EINVAL, "expected ] behind the range");
    take(g);
    int r = put_literal(g, low);
    if (r == 0)
        r = buf_putc(g->out, '-');
    return r < 0 ? r : put_literal(g, high);
}

/* Characters up to the ], of which `first` is one that was taken already. */
static int put_set(struct glob *g, struct bytes first)
{
    int r = 0;
    size_t n = 0;
    for (struct bytes c = first; r == 0 && !bytes_eq_str(c, "]"); c = take(g)) {
        if (bytes_eq_str(c, "\\"))
            c = take(g);
        if (c.len == 0)
            return unexpected_end(g);
        r = put_literal(g, c);
        n++;
    }
    return r < 0 || n > 0 ? r : err_set(g->err, -EINVAL, "nothing between [ and ]");
}

/* Behind the [. */
static int put_class(struct glob *g)
{
    int r = buf_putc(g->out, '[');
    if (r == 0 && at(g, '!')) {
        take(g);
        r = buf_putc(g->out, '^');
    }
    if (r < 0)
        return r;
    struct bytes first = take(g);
    if (first.len && at(g, '-')) {
        take(g);
        r = put_range(g, first);
    } else {
        r = put_set(g, first);
    }
    return r < 0 ? r : buf_putc(g->out, ']');
}

static int put_any(struct glob *g)
{
    while (at(g, '*'))
        take(g);
    return buf_append_str(g->out, ".*");
}

static int open_brace(struct glob *g)
{
    g->depth++;
    return buf_append_str(g->out, "(?:");
}

static int close_brace(struct glob *g)
{
    g->depth--;
    return buf_putc(g->out, ')');
}

static int put_item(struct glob *g)
{
    struct bytes c = take(g);
    switch (c.data[0]) {
    case '*': return put_any(g);
    case '?': return buf_putc(g->out, '.');
    case '[': return put_class(g);
    case '{': return open_brace(g);
    case '\\': c = take(g); return put_literal(g, c);
    case '}': return g->depth ? close_brace(g) : put_literal(g, c);
    case ',': return g->depth ? buf_putc(g->out, '|') : put_literal(g, c);
    default: return put_literal(g, c);
    }
}

/* What is still open at the end is closed. */
static int translate(struct glob *g)
{
    int r = buf_append_str(g->out, "(?s)^");
    while (r == 0 && g->rest.len > 0)
        r = put_item(g);
    while (r == 0 && g->depth > 0)
        r = close_brace(g);
    return r < 0 ? r : buf_putc(g->out, '$');
}

int ottl_glob_new(struct bytes pattern, struct regex **ret, struct err *reterr)
{
    _cleanup_buf_ struct buf *out = buf_new(0);
    struct glob g = {pattern, out, reterr, 0};
    if (!out)
        return -ENOMEM;
    int r = translate(&g);
    return r < 0 ? r : regex_new(buf_bytes(out), ret, reterr);
}
