/* What one line of the stream is: records, a piece of an object that is not finished, or text. */
#include <errno.h>

#include "proto/console_parts.h"

#define MAX_STARTS 64 /* places in a line that are tried */

struct work {
    struct console_reader *r;
    struct console_piece p; /* what is left of the line */
    bool sliced;            /* p.text is a part of p.raw */
    bool open;              /* the line may go on */
    bool begun;             /* its front was used */
    size_t used;
};
enum { LINE_DONE, LINE_GOES_ON };

/* The bytes as they came before `at`, a place in the text. */
static struct bytes raw_before(const struct work *w, const uint8_t *at)
{
    const uint8_t *from = w->sliced ? w->p.raw.data : w->p.text.data;
    return bytes_of(from, (size_t)(at - from));
}

/* What is before `at` is done with. */
static void consume(struct work *w, const uint8_t *at)
{
    size_t n = raw_before(w, at).len;
    w->p.text = console_behind(w->p.text, (size_t)(at - w->p.text.data));
    w->p.raw = w->sliced ? console_behind(w->p.raw, n) : w->p.text;
    w->p.offset += w->sliced ? n : 0;
    w->used += w->sliced ? n : 0;
    w->begun = true;
    w->p.name = bytes_of(at, 0);
    console_take_prefix(&w->p.text, &w->p.name);
}

static int pass_rest(struct work *w)
{
    console_pass(w->r, w->p.raw);
    return LINE_DONE;
}

static bool is_known(const struct console_reader *r, struct bytes name)
{
    for (unsigned i = 0; i < CONSOLE_NAMES; i++)
        if (bytes_eq(bytes_of(r->names[i], r->name_lens[i]), name))
            return true;
    return false;
}

bool console_is_glued(const struct console_reader *r, struct bytes name)
{
    const struct console_resource *k = r->mapper.resource;
    struct bytes own = k ? bytes_of(k->own, k->own_len) : bytes_of("", 0);
    return name.len && own.len && !bytes_eq(name, own) && is_known(r, own);
}

/* An object stands here. *ret: what comes of it; unchanged when it is neither a record nor all
 * there is. */
static int try_object(struct work *w, int *ret)
{
    enum signal s;
    size_t used;
    int kind = console_map(&w->r->mapper, w->p.text, w->p.name, &s, &used, NULL);
    if (kind == -ENOMEM)
        return kind;
    if (kind > 0 && console_is_glued(w->r, w->p.name))
        kind = -EBADMSG;
    if (kind > 0) {
        int e = console_use(w->r, (enum console_kind)kind, s);
        if (e == 0)
            consume(w, w->p.text.data + used);
        *ret = LINE_GOES_ON;
        return e < 0 ? e : 1;
    }
    if (w->open || used == 0 || !console_blank(console_behind(w->p.text, used)))
        return 0;
    w->r->stats.malformed += kind < 0;
    *ret = pass_rest(w);
    return 1;
}

/* The beginning of an object, as far as this line. */
static int try_beginning(struct work *w)
{
    struct console_cursor c = {0};
    size_t used;
    if (console_cursor_line(&c, w->p.text, &used) != CURSOR_MORE)
        return 0;
    int e = console_open_block(w->r, &w->p, 0, &c);
    return e < 0 ? e : 1;
}

/* `head`, before another object, is a piece of one that was cut: 1, or 0. */
static int take_torn(struct work *w, struct bytes head)
{
    struct console_piece p = w->p;
    struct console_cursor c = {0};
    struct bytes rest;
    size_t used;
    p.text = head;
    p.raw = raw_before(w, head.data + head.len);
    p.whole = false;
    int e = console_offer(w->r, &p, false, &rest);
    if (e != 0 || head.data[0] != '{' || console_cursor_read(&c, head, &used) != CURSOR_MORE)
        return e;
    e = console_open_block(w->r, &p, 0, &c);
    return e < 0 ? e : 1;
}

/* A brace ends a line of other text: perhaps an object begins here. */
static int open_at_end(struct work *w, const struct console_start *at)
{
    struct console_piece p = w->p;
    struct console_cursor c = {0};
    size_t used;
    p.text = bytes_of(at->tail.data, 1);
    if (at->name.len)
        p.name = at->name;
    console_cursor_line(&c, p.text, &used);
    return console_open_block(w->r, &p, raw_before(w, at->head.data + at->head.len).len, &c);
}

/* An object begins behind other text. */
static int split(struct work *w, const struct console_start *at, int *ret)
{
    struct bytes name = w->p.name;
    int e = console_blank(at->head) ? 0 : take_torn(w, at->head);
    if (e < 0)
        return e;
    if (e == 0 && at->lone) {
        *ret = LINE_DONE;
        return open_at_end(w, at);
    }
    if (e == 0 && !console_blank(at->head))
        console_pass(w->r, raw_before(w, at->head.data + at->head.len));
    consume(w, at->head.data + at->head.len);
    if (e == 0 && w->p.name.len == 0)
        w->p.name = name; /* text and record are of one process */
    *ret = LINE_GOES_ON;
    return 0;
}

/* Looks for an object behind the beginning: 1 when there is one. */
static int try_split(struct work *w, int *ret)
{
    struct console_start at;
    size_t from = 0, used;
    enum signal s;
    for (int i = 0; i < MAX_STARTS && console_find_start(w->p.text, &from, &at); i++) {
        int kind = at.lone ? 1 : console_map(&w->r->mapper, at.tail, at.name, &s, &used, NULL);
        if (kind == -ENOMEM)
            return kind;
        int e = kind > 0 ? split(w, &at, ret) : 0;
        if (e < 0 || kind > 0)
            return e < 0 ? e : 1;
    }
    return 0;
}

static void note_name(struct console_reader *r, struct bytes name)
{
    if (name.len == 0 || is_known(r, name))
        return;
    unsigned i = r->next_name++ % CONSOLE_NAMES;
    memcpy(r->names[i], name.data, name.len);
    r->name_lens[i] = name.len;
}

/* An object that is cut by a line of text of another process, whose prefix shows where: 1, or 0. */
static int try_prefix(struct work *w, int *ret)
{
    struct console_start at;
    size_t from = 0;
    for (int i = 0; i < MAX_STARTS && console_find_prefix(w->p.text, &from, &at); i++) {
        if (!is_known(w->r, at.name) || console_blank(at.head))
            continue;
        w->p.guess = true;
        int e = take_torn(w, at.head);
        w->p.guess = false;
        if (e < 0)
            return e;
        if (e > 0) {
            consume(w, at.tail.data);
            *ret = LINE_GOES_ON;
            return 1;
        }
    }
    return 0;
}

/* What the rest of the line is. LINE_DONE, LINE_GOES_ON, or -ENOMEM. */
static int step(struct work *w)
{
    struct bytes text = w->p.text, rest;
    int ret = LINE_DONE, e = 0;
    if (console_blank(text))
        return w->open || w->begun || (w->r->mid_line && !w->r->mid_text) ? LINE_DONE
                                                                          : pass_rest(w);
    bool lone = text.data[0] == '{' && console_blank(console_behind(text, 1));
    if (text.data[0] == '{' && !lone)
        e = try_object(w, &ret);
    if (e == 0 && lone && !w->open)
        e = try_beginning(w);
    if (e == 0 && !lone && (e = console_offer(w->r, &w->p, w->open, &rest)) > 0) {
        consume(w, rest.data);
        ret = rest.len ? LINE_GOES_ON : LINE_DONE;
    }
    if (e != 0 || w->open)
        return e < 0 ? e : ret;
    if (text.data[0] == '{')
        e = try_beginning(w);
    if (e == 0)
        e = try_split(w, &ret);
    if (e == 0)
        e = try_prefix(w, &ret);
    if (e != 0)
        return e < 0 ? e : ret;
    console_drop_broken(w->r, &w->p);
    return pass_rest(w);
}

int console_do_line(struct console_reader *r, struct bytes raw, uint64_t offset, bool open,
                    size_t *ret_used)
{
    struct console_line line;
    *ret_used = 0;
    int e = console_finish_blocks(r);
    if (e == 0)
        e = console_line_read(raw, r->scratch, &line);
    if (e < 0 || (open && !line.sliced))
        return e;
    struct work w = {.r = r, .sliced = line.sliced, .open = open};
    w.p = (struct console_piece){raw, line.text, line.name, offset, !open, false};
    note_name(r, line.name);
    bool usual =
        r->nblocks == 0 && (line.text.len == 0 || !memchr(line.text.data, '{', line.text.len));
    if (usual && !open && (!r->mid_line || r->mid_text)) {
        console_pass(r, raw);
        *ret_used = raw.len;
        return 0;
    }
    r->line_no++;
    do
        e = step(&w);
    while (e == LINE_GOES_ON);
    *ret_used = w.used;
    if (e < 0)
        return e;
    if (!open)
        *ret_used = raw.len;
    if (!open)
        console_count_strange(r, raw.len);
    return 0;
}
