/* Objects that are not finished. */
#include <errno.h>

#include "proto/console_parts.h"

struct console_block *console_block_new(const struct console_piece *p, size_t head)
{
    struct console_block *b = calloc(1, sizeof(*b));
    if (!b)
        return NULL;
    b->raw = buf_new(0);
    b->text = buf_new(0);
    b->head = head;
    b->name_len = p->name.len;
    if (b->name_len)
        memcpy(b->name, p->name.data, b->name_len);
    return b->raw && b->text ? b : console_block_free(b);
}

struct console_block *console_block_free(struct console_block *b)
{
    if (b) {
        buf_unref(b->raw);
        buf_unref(b->text);
        free(b->ranges);
        free(b);
    }
    return NULL;
}

static int add_range(struct console_block *b, uint64_t offset, size_t len)
{
    struct console_range *last = b->nranges ? &b->ranges[b->nranges - 1] : NULL;
    if (last && last->offset + last->len == offset) {
        last->len += len;
        return 0;
    }
    if (b->nranges == b->ranges_cap) {
        size_t cap = b->ranges_cap ? 2 * b->ranges_cap : 2;
        struct console_range *grown = realloc(b->ranges, cap * sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        b->ranges = grown;
        b->ranges_cap = cap;
    }
    b->ranges[b->nranges++] = (struct console_range){offset, len};
    return 0;
}

static size_t indent_of(struct bytes text)
{
    size_t n = 0;
    while (n < text.len && (text.data[n] == ' ' || text.data[n] == '\t'))
        n++;
    return n;
}

int console_block_add(struct console_block *b, const struct console_piece *p,
                      const struct console_cursor *after)
{
    int r = buf_reserve(b->text, p->text.len + 1);
    if (r == 0)
        r = buf_reserve(b->raw, p->raw.len);
    if (r == 0)
        r = add_range(b, p->offset, p->raw.len);
    if (r < 0)
        return r;
    buf_append(b->text, p->text.data, p->text.len);
    if (p->whole)
        buf_putc(b->text, '\n');
    buf_append(b->raw, p->raw.data, p->raw.len);
    if (b->lines == 0)
        b->lone = p->text.len == 1;
    if (b->lines == 1)
        b->indent = indent_of(p->text);
    b->torn = !p->whole;
    b->lines++;
    b->strange_lines = b->strange_bytes = 0;
    b->cursor = *after;
    return 0;
}

/* Whether the line stands where one of the object would: the second line shows how far a level is
 * indented. */
static bool is_in_place(const struct console_block *b, struct bytes text)
{
    size_t n = indent_of(text);
    bool closes = n < text.len && (text.data[n] == '}' || text.data[n] == ']');
    if (b->lines < 2 || b->indent == 0)
        return true;
    return b->lone ? n == b->indent * (b->cursor.depth - closes) : n > 0 || closes;
}

static bool may_follow(const struct console_block *b, const struct console_piece *p)
{
    if (b->torn)
        return !p->guess;
    if (b->name_len != p->name.len || memcmp(b->name, p->name.data, b->name_len) != 0)
        return false;
    return is_in_place(b, p->text);
}

enum cursor_answer console_block_accepts(const struct console_block *b,
                                         const struct console_piece *p,
                                         struct console_cursor *ret_after, size_t *ret_used)
{
    *ret_after = b->cursor;
    if (p->text.len == 0 || !may_follow(b, p))
        return CURSOR_BAD;
    enum cursor_answer a = p->whole ? console_cursor_line(ret_after, p->text, ret_used)
                                    : console_cursor_read(ret_after, p->text, ret_used);
    if (a != CURSOR_DONE)
        return a;
    struct bytes rest = console_behind(p->text, *ret_used), name;
    if (!console_blank(rest) && rest.data[0] != '{' && !console_take_prefix(&rest, &name))
        return CURSOR_BAD;
    return CURSOR_DONE;
}
