/*
 * The reader of a mixed stream: cuts it into lines and keeps what is not whole. Lines that stand in
 * the caller's bytes are read in place.
 */
#include <errno.h>

#include "proto/check.h"
#include "proto/console_parts.h"

#define DEFAULT_MAX ((size_t)16 << 20)

struct console_reader *console_reader_new(const struct console_sink *sink, size_t max_record_bytes)
{
    struct console_reader *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->sink = *sink;
    r->max = max_record_bytes ? max_record_bytes : DEFAULT_MAX;
    r->partial = buf_new(0);
    r->scratch = buf_new(0);
    if (console_mapper_init(&r->mapper) < 0 || !r->partial || !r->scratch)
        return console_reader_free(r);
    return r;
}

struct console_reader *console_reader_free(struct console_reader *r)
{
    if (!r)
        return NULL;
    for (unsigned i = 0; i < r->nblocks; i++)
        console_block_free(r->blocks[i]);
    for (int s = 0; s < SIGNAL_COUNT; s++)
        console_group_done(&r->groups[s]);
    console_mapper_done(&r->mapper);
    buf_unref(r->partial);
    buf_unref(r->scratch);
    free(r);
    return NULL;
}

/* ---- to the sink ---- */

static void note_answer(struct console_reader *r, int answer)
{
    if (answer && !r->stop)
        r->stop = answer;
}

void console_pass(struct console_reader *r, struct bytes line)
{
    if (line.len == 0)
        return;
    r->stats.plain_lines++;
    if (r->sink.plain)
        note_answer(r, r->sink.plain(r->sink.ctx, line));
}

/* 0 or -ENOMEM. */
static int hand_over(struct console_reader *r, enum signal s)
{
    struct batch *b = NULL;
    int e = console_group_take(&r->groups[s], s, &b);
    if (e == -ENOMEM)
        return e;
    r->stats.malformed += e < 0;
    if (b && b->records) {
        r->stats.records[s] += b->records;
        note_answer(r, r->sink.telemetry(r->sink.ctx, TAKE_PTR(b)));
    }
    batch_unref(b);
    return 0;
}

static int hand_over_all(struct console_reader *r)
{
    int e = 0;
    for (int s = 0; e == 0 && s < SIGNAL_COUNT; s++)
        e = hand_over(r, (enum signal)s);
    return e;
}

int console_use(struct console_reader *r, enum console_kind kind, enum signal s)
{
    /* What did not go for lack of memory goes the next time. */
    if (console_group_full(&r->groups[s])) {
        int e = hand_over(r, s);
        if (e < 0)
            return e;
    }
    if (kind == CONSOLE_OTLP &&
        otlp_check_message(schema_request(s), buf_bytes(r->mapper.record), NULL) < 0) {
        r->stats.malformed++;
        return 0;
    }
    return console_group_add(&r->groups[s], &r->mapper, kind);
}

/* ---- lines ---- */

static void drop_front(struct buf *b, size_t n)
{
    if (n)
        memmove(b->data, b->data + n, b->len - n);
    buf_truncate(b, b->len - n);
}

/* The line that ends with `rest`, of whose front `partial` has the bytes. *ret_used: bytes of
 * `rest` used up. */
static int finish_line(struct console_reader *r, struct bytes rest, size_t *ret_used)
{
    size_t before = r->partial->len, used;
    uint64_t offset = r->offset - before;
    struct bytes line = rest;
    *ret_used = 0;
    if (before) {
        int e = buf_append(r->partial, rest.data, rest.len);
        if (e < 0)
            return e;
        line = buf_bytes(r->partial);
    }
    int e = console_do_line(r, line, offset, false, &used);
    buf_truncate(r->partial, before);
    drop_front(r->partial, used < before ? used : before);
    *ret_used = used > before ? used - before : 0;
    r->mid_line = e < 0 && (used || r->mid_line);
    r->mid_text = r->mid_line && used == 0 && r->mid_text;
    return e;
}

/* A line that is not whole: objects that end in it are used. *ret_used: whether there were any. */
static int use_objects(struct console_reader *r, bool *ret_used)
{
    size_t used;
    int e = console_do_line(r, buf_bytes(r->partial), r->offset - r->partial->len, true, &used);
    drop_front(r->partial, used);
    r->mid_line |= used > 0;
    r->mid_text &= used == 0;
    *ret_used = used > 0;
    return e;
}

/* The line is as long as an object may be. */
static int too_long(struct console_reader *r)
{
    bool used;
    int e = use_objects(r, &used);
    if (e < 0 || used)
        return e;
    console_pass(r, buf_bytes(r->partial));
    buf_truncate(r->partial, 0);
    r->stats.oversized++;
    r->skipping = true;
    return 0;
}

/* The rest of a line that is too long goes by, as a part of the line that was counted. */
static void skip(struct console_reader *r, struct bytes piece)
{
    console_pass(r, piece);
    r->stats.plain_lines--;
    r->skipping = piece.data[piece.len - 1] != '\n';
}

/* Takes bytes up to a line end, the end of the text, or the limit. */
static int take_some(struct console_reader *r, struct bytes text, size_t *ret_used)
{
    size_t room = r->max - r->partial->len;
    const uint8_t *end =
        memchr(text.data, '\n', r->skipping || text.len <= room ? text.len : room + 1);
    size_t n = end ? (size_t)(end - text.data) + 1 : text.len;
    *ret_used = n;
    if (r->skipping) {
        skip(r, bytes_of(text.data, n));
        return 0;
    }
    if (end)
        return finish_line(r, bytes_of(text.data, n), ret_used);
    if (n > room)
        *ret_used = n = room;
    int e = r->partial->len < r->max ? buf_append(r->partial, text.data, n) : 0;
    if (e < 0)
        *ret_used = 0;
    return e;
}

int console_feed(struct console_reader *r, struct bytes text, size_t *ret_used)
{
    int e = 0;
    size_t n;
    r->stop = 0;
    *ret_used = 0;
    while (e == 0 && r->stop == 0 && *ret_used < text.len) {
        if (r->partial->len == r->max && text.data[*ret_used] != '\n') {
            e = too_long(r);
            continue;
        }
        e = take_some(r, console_behind(text, *ret_used), &n);
        *ret_used += n;
        r->offset += n;
    }
    int last = hand_over_all(r);
    return e < 0 ? e : last < 0 ? last : r->stop;
}

/* ---- the end ---- */

/* Whether it is worth while to look for an object that ends here. */
static bool ends_object(struct bytes b)
{
    while (b.len && b.data[b.len - 1] <= ' ')
        b.len--;
    return b.len && b.data[b.len - 1] == '}';
}

static int flush_partial(struct console_reader *r, bool keep)
{
    bool used;
    size_t n;
    if (r->partial->len == 0)
        return 0;
    if (keep)
        return ends_object(buf_bytes(r->partial)) ? use_objects(r, &used) : 0;
    return finish_line(r, bytes_of("", 0), &n);
}

int console_flush(struct console_reader *r, bool keep)
{
    r->stop = 0;
    int e = flush_partial(r, keep);
    if (e == 0)
        e = console_finish_blocks(r);
    while (e == 0 && !keep && r->nblocks)
        console_give_up(r, 0, END_STRANGE);
    if (e == 0 && !keep)
        r->skipping = r->mid_line = r->mid_text = false;
    int last = hand_over_all(r);
    return e < 0 ? e : last < 0 ? last : r->stop;
}

int console_flush_text(struct console_reader *r)
{
    struct bytes text = buf_bytes(r->partial);
    r->stop = 0;
    if (text.len == 0 || r->nblocks || memchr(text.data, '{', text.len))
        return 0;
    console_pass(r, text);
    buf_truncate(r->partial, 0);
    r->mid_line = r->mid_text = true;
    return r->stop;
}

/* ---- what is held ---- */

static int by_offset(const void *a, const void *b)
{
    const struct console_range *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

size_t console_held(const struct console_reader *r, struct console_range *ret, size_t max)
{
    size_t n = 0;
    for (unsigned i = 0; i < r->nblocks; i++)
        for (size_t k = 0; k < r->blocks[i]->nranges; k++, n++)
            if (n < max)
                ret[n] = r->blocks[i]->ranges[k];
    if (n > 1 && n <= max)
        qsort(ret, n, sizeof(*ret), by_offset);
    if (r->partial->len && n++ < max)
        ret[n - 1] = (struct console_range){r->offset - r->partial->len, r->partial->len};
    return n;
}

size_t console_pending(const struct console_reader *r)
{
    size_t sum = r->partial->len;
    for (unsigned i = 0; i < r->nblocks; i++)
        sum += r->blocks[i]->raw->len;
    return sum;
}

void console_reader_seek(struct console_reader *r, uint64_t offset)
{
    r->offset = offset;
}

const struct console_stats *console_reader_stats(const struct console_reader *r)
{
    return &r->stats;
}
