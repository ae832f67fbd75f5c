/*
 * The unfinished objects of a reader. A line belongs to the newest one that it can follow. An
 * object is given up when its own text breaks off, when too much else was read since its last line,
 * or when it grows too large.
 */
#include <errno.h>

#include "proto/console_parts.h"

#define WEAK_LINES 16 /* that may stand between "{" and the first member */

/* Nothing but a brace is there. */
static bool is_weak(const struct console_block *b)
{
    return b->lines == 1 && b->text->len <= 2;
}

static bool is_named(const struct console_block *b, struct bytes name)
{
    return bytes_eq(bytes_of(b->name, b->name_len), name);
}

static void remove_block(struct console_reader *r, unsigned i)
{
    console_block_free(r->blocks[i]);
    r->nblocks--;
    memmove(&r->blocks[i], &r->blocks[i + 1], (r->nblocks - i) * sizeof(r->blocks[0]));
}

static void pass_lines(struct console_reader *r, struct bytes raw)
{
    while (raw.len) {
        const uint8_t *end = memchr(raw.data, '\n', raw.len);
        size_t n = end ? (size_t)(end - raw.data) + 1 : raw.len;
        console_pass(r, bytes_of(raw.data, n));
        raw = console_behind(raw, n);
    }
}

void console_give_up(struct console_reader *r, unsigned i, enum console_end why)
{
    struct console_block *b = r->blocks[i];
    size_t used;
    if (why == END_LARGE)
        r->stats.oversized++;
    else if (console_classify(&r->mapper, buf_bytes(b->text), &used) != CONSOLE_NOT_TELEMETRY)
        r->stats.malformed++;
    pass_lines(r, buf_bytes(b->raw));
    remove_block(r, i);
}

/* Block `i` is complete. */
static int finish_block(struct console_reader *r, unsigned i)
{
    struct console_block *b = r->blocks[i];
    enum signal s;
    size_t used;
    int kind = console_map(&r->mapper, buf_bytes(b->text), bytes_of(b->name, b->name_len), &s,
                           &used, NULL);
    if (kind == -ENOMEM)
        return kind;
    if (kind > 0 && console_is_glued(r, bytes_of(b->name, b->name_len)))
        kind = -EBADMSG;
    int e = kind > 0 ? console_use(r, (enum console_kind)kind, s) : 0;
    if (e < 0)
        return e;
    r->stats.malformed += kind < 0;
    pass_lines(r, kind > 0 ? bytes_of(b->raw->data, b->head) : buf_bytes(b->raw));
    remove_block(r, i);
    return 0;
}

int console_finish_blocks(struct console_reader *r)
{
    int e = 0;
    for (unsigned i = r->nblocks; e == 0 && i-- > 0;)
        if (console_cursor_done(&r->blocks[i]->cursor))
            e = finish_block(r, i);
    return e;
}

/* The piece follows in block `i`; `used`: the length of its text when the object ends there. */
static int take_piece(struct console_reader *r, unsigned i, struct console_piece p, bool done,
                      size_t used, const struct console_cursor *after, struct bytes *ret_rest)
{
    struct console_block *b = r->blocks[i];
    *ret_rest = done ? console_behind(p.text, used) : bytes_of(p.text.data, 0);
    if (b->text->len + p.text.len > r->max) {
        console_give_up(r, i, END_LARGE);
        return 0;
    }
    if (done && !console_blank(*ret_rest)) {
        p.text.len = used;
        if (p.text.data >= p.raw.data && p.text.data < p.raw.data + p.raw.len)
            p.raw.len = (size_t)(ret_rest->data - p.raw.data);
        p.whole = false;
    }
    int e = console_block_add(b, &p, after);
    if (e < 0)
        return e;
    b->line_no = r->line_no;
    if (done)
        e = finish_block(r, i);
    return e < 0 ? e : 1;
}

int console_offer(struct console_reader *r, const struct console_piece *p, bool open,
                  struct bytes *ret_rest)
{
    for (unsigned i = r->nblocks; i-- > 0;) {
        struct console_cursor after;
        size_t used;
        enum cursor_answer a = console_block_accepts(r->blocks[i], p, &after, &used);
        if (a == CURSOR_DONE || (a == CURSOR_MORE && !open))
            return take_piece(r, i, *p, a == CURSOR_DONE, used, &after, ret_rest);
    }
    return 0;
}

static size_t held_bytes(const struct console_reader *r)
{
    size_t sum = 0;
    for (unsigned i = 0; i < r->nblocks; i++)
        sum += r->blocks[i]->raw->len;
    return sum;
}

int console_open_block(struct console_reader *r, const struct console_piece *p, size_t head,
                       const struct console_cursor *after)
{
    struct console_block *b = console_block_new(p, head);
    int e = b ? console_block_add(b, p, after) : -ENOMEM;
    if (e < 0) {
        console_block_free(b);
        return e;
    }
    b->line_no = r->line_no;
    while (r->nblocks && (r->nblocks == CONSOLE_BLOCKS || held_bytes(r) + p->raw.len > 2 * r->max))
        console_give_up(r, 0, END_STRANGE);
    r->blocks[r->nblocks++] = b;
    return 0;
}

/* An indented member or what closes one. */
static bool starts_member(struct bytes text)
{
    size_t i = 0;
    while (i < text.len && (text.data[i] == ' ' || text.data[i] == '\t'))
        i++;
    return i > 0 && i < text.len && text.data[i] && strchr("\"}]", text.data[i]);
}

/* Whether the line, which cannot follow, shows that the object is broken or is none. */
static bool shows_broken(const struct console_block *b, const struct console_piece *p)
{
    if (is_weak(b) && b->head)
        return true;
    if (b->torn || !is_named(b, p->name))
        return false;
    if (is_weak(b))
        return p->text.data[0] == ' ' || p->text.data[0] == '\t';
    return b->indent && starts_member(p->text);
}

/* Four spaces and a member, or what closes one. */
static bool has_member(struct bytes text)
{
    for (size_t i = 4; i < text.len; i++)
        if (strchr("\"}]", text.data[i]) && text.data[i] &&
            memcmp(text.data + i - 4, "    ", 4) == 0)
            return true;
    return false;
}

/*
 * Whether the line may be a piece of an indented object, torn from it when two processes wrote at
 * once: then another line of one may have been glued to it, which nobody would miss.
 */
static bool is_fragment(struct bytes text)
{
    size_t quotes = 0, n = text.len;
    if (!text.data)
        return false;
    for (size_t i = 0; i < n; i++)
        quotes += text.data[i] == '"';
    while (n && text.data[n - 1] == ' ')
        n--;
    bool comma = n > 1 && text.data[n - 1] == ',' && strchr("\"}]0123456789", text.data[n - 2]);
    bool member = n && text.data[0] == '"' && memmem(text.data, n, "\": ", 3);
    bool bracket = n == 1 && strchr("[]}", text.data[0]);
    return quotes % 2 || comma || member || bracket || has_member(text);
}

static bool any_named(const struct console_reader *r, struct bytes name)
{
    for (unsigned i = 0; i < r->nblocks; i++)
        if (is_named(r->blocks[i], name))
            return true;
    return false;
}

/* No object may have lost a line: those that the fragment can belong to are given up. */
static void drop_torn(struct console_reader *r, const struct console_piece *p)
{
    bool named = p->name.len && any_named(r, p->name);
    for (unsigned i = r->nblocks; i-- > 0;) {
        const struct console_block *b = r->blocks[i];
        if (b->indent && (!named || is_named(b, p->name)))
            console_give_up(r, i, END_STRANGE);
    }
}

void console_drop_broken(struct console_reader *r, const struct console_piece *p)
{
    bool found = false; /* only the newest of a process can be meant */
    for (unsigned i = r->nblocks; i-- > 0 && !found;) {
        found = !r->blocks[i]->torn && is_named(r->blocks[i], p->name);
        if (shows_broken(r->blocks[i], p))
            console_give_up(r, i, END_STRANGE);
    }
    if (r->nblocks && is_fragment(p->text))
        drop_torn(r, p);
}

void console_count_strange(struct console_reader *r, size_t bytes)
{
    for (unsigned i = r->nblocks; i-- > 0;) {
        struct console_block *b = r->blocks[i];
        if (b->line_no == r->line_no)
            continue;
        b->strange_lines++;
        b->strange_bytes += bytes;
        bool vain =
            is_weak(b) ? b->head || b->strange_lines > WEAK_LINES : b->strange_bytes > r->max;
        if (vain)
            console_give_up(r, i, END_STRANGE);
    }
}
