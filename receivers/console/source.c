/* One source: what is read from it goes through a console reader into the pipelines, and text that
 * is no telemetry on. */
#include <errno.h>
#include <poll.h>

#include "proto/schema.h"
#include "receivers/console/console.h"
#include "receivers/console/plain_log.h"

#define RETRY_NS (50 * NS_PER_MS) /* when memory or an output is short */
#define TURN_BYTES ((size_t)256 << 10)
#define OUTLET_BYTES ((size_t)4 << 20)

/* ---- from the console reader ---- */

static int take_batch(void *ctx, struct batch *b)
{
    struct source *s = ctx;
    uint32_t records = b->records;
    enum signal sig = b->signal;
    if (sending_put(&s->sending, s->owner, b) < 0)
        log_error(&s->owner->c.logger, "Out of memory; records are dropped",
                  LOG_STR("signal", signal_name(sig)), LOG_INT("dropped_items", records));
    return sending_empty(&s->sending) ? 0 : -EAGAIN;
}

static int take_plain(void *ctx, struct bytes line)
{
    struct source *s = ctx;
    int e = 0;
    if (s->outlet && s->pass == CONSOLE_PASS_PLAIN)
        e = buf_append(s->plain, line.data, line.len);
    if (e == 0 && s->owner->config->plain_lines == PLAIN_LOG && s->owner->c.next[SIGNAL_LOGS])
        e = plain_log_add(s->logs, s, line);
    if (e < 0)
        log_error(&s->owner->c.logger, "Out of memory; a line is dropped",
                  LOG_STR("source", s->path));
    return s->plain->len >= OUTLET_BYTES ? -EAGAIN : 0;
}

/* ---- life ---- */

struct source *source_new(struct console *c, enum source_kind kind, const char *path, int fd)
{
    struct source *s = calloc(1, sizeof(*s));
    if (!s) {
        if (fd > STDIN_FILENO)
            close(fd);
        return NULL;
    }
    const struct console_sink sink = {take_batch, take_plain, s};
    s->kind = kind;
    s->fd = fd;
    s->borrowed = fd == STDIN_FILENO;
    s->path = strdup(path);
    s->reader = console_reader_new(&sink, (size_t)c->config->max_record_bytes);
    s->plain = buf_new(0);
    s->logs = buf_new(0);
    s->rest = buf_new(0);
    const int r = sending_init(&s->sending);
    source_adopt(s, c);
    return r == 0 && s->path && s->reader && s->plain && s->logs && s->rest ? s : source_free(s);
}

void source_adopt(struct source *s, struct console *c)
{
    s->owner = c;
    sending_reset(&s->sending);
    if (!s->own_outlet)
        s->outlet = c->output ? output_outlet(c->output) : NULL;
}

struct source *source_free(struct source *s)
{
    if (!s)
        return NULL;
    if (s->fd >= 0 && !s->borrowed)
        close(s->fd);
    sending_done(&s->sending);
    if (s->own_outlet)
        outlet_free(s->outlet);
    console_reader_free(s->reader);
    buf_unref(s->plain);
    buf_unref(s->logs);
    buf_unref(s->rest);
    mark_done(&s->mark);
    free(s->path);
    free(s);
    return NULL;
}

/* ---- handing over ---- */

static void count(struct source *s)
{
    const struct console_stats *now = console_reader_stats(s->reader);
    struct console *c = s->owner;
    metric_add(c->plain_lines, (int64_t)(now->plain_lines - s->counted.plain_lines));
    metric_add(c->malformed, (int64_t)(now->malformed - s->counted.malformed));
    metric_add(c->oversized, (int64_t)(now->oversized - s->counted.oversized));
    s->counted = *now;
}

/* True when no text waits to be passed on. */
static bool pass_on(struct source *s)
{
    if (s->plain->len == 0)
        return true;
    if (!s->outlet) {
        buf_truncate(s->plain, 0);
        return true;
    }
    struct buf *next = buf_new(0);
    if (!next)
        return false;
    if (outlet_put(s->outlet, s->plain, (struct outlet_note){.ctx = s}) == -EAGAIN) {
        buf_unref(next);
        return false;
    }
    s->plain = next;
    return true;
}

/* True when no log records of lines wait to be handed over. */
static bool put_logs(struct source *s)
{
    struct batch *b = NULL;
    if (s->logs->len && plain_log_take(&s->logs, &b) == 0)
        take_batch(s, b);
    return s->logs->len == 0;
}

static bool has_moved(const struct source *s)
{
    return s->mark.offset != s->offset || s->mark.nheld || console_pending(s->reader);
}

/* What was read is with the pipelines: this is the place to go on at. */
static void set_mark(struct source *s)
{
    if (s->kind != SOURCE_FILE || s->fd < 0 || !has_moved(s))
        return;
    int held = mark_hold(&s->mark, s->reader);
    bool moved = s->mark.offset != s->offset && mark_set(&s->mark, s->fd, s->offset) == 0;
    s->owner->dirty |= held > 0 || moved;
}

static void lower(uint64_t *at_ns, uint64_t ns)
{
    *at_ns = ns < *at_ns ? ns : *at_ns;
}

bool source_settle(struct source *s, uint64_t *ret_at_ns)
{
    if (s->ended && !s->keep && console_pending(s->reader))
        console_flush(s->reader, false); /* memory was short */
    bool logs = put_logs(s), plain = pass_on(s);
    count(s);
    bool out = sending_run(&s->sending, s->owner, ret_at_ns);
    if (!plain || !logs)
        lower(ret_at_ns, clock_now_ns() + RETRY_NS);
    if (out && plain && logs)
        set_mark(s);
    return out && plain && logs;
}

/* ---- reading ---- */

static void lost(const struct source *s, size_t bytes)
{
    if (bytes)
        log_error(&s->owner->c.logger, "Out of memory; input is dropped",
                  LOG_STR("source", s->path), LOG_INT("bytes", bytes));
}

/* Feeds what was read; the rest of a stream is kept, that of a file is read again. */
static int feed(struct source *s, struct bytes bytes)
{
    size_t used;
    int e = console_feed(s->reader, bytes, &used);
    s->offset += used;
    bytes = bytes_of(bytes.data + used, bytes.len - used);
    if (s->kind != SOURCE_FILE && buf_append(s->rest, bytes.data, bytes.len) < 0)
        lost(s, bytes.len);
    return e;
}

static int feed_rest(struct source *s)
{
    size_t used;
    int e = console_feed(s->reader, buf_bytes(s->rest), &used);
    s->offset += used;
    memmove(s->rest->data, s->rest->data + used, s->rest->len - used);
    buf_truncate(s->rest, s->rest->len - used);
    return e;
}

/* Bytes read, 0 at the end, -EAGAIN when nothing is there. */
static ssize_t read_some(struct source *s)
{
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    uint8_t *into = s->owner->bytes;
    ssize_t n;
    if (s->kind != SOURCE_FILE && poll(&p, 1, 0) <= 0)
        return -EAGAIN;
    do
        n = s->kind == SOURCE_FILE ? pread(s->fd, into, READ_BYTES, (off_t)s->offset)
                                   : read(s->fd, into, READ_BYTES);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

/* Nothing more is there for now, or ever. */
static void at_end(struct source *s, ssize_t n)
{
    bool file = s->kind == SOURCE_FILE;
    if (n < 0 && n != -EAGAIN)
        log_error(&s->owner->c.logger, "Cannot read", LOG_STR("source", s->path),
                  LOG_STR("error", strerror((int)-n)));
    if (file && n == 0 && s->owner->config->follow) {
        if (s->rested_ns)
            console_flush(s->reader, true);
        s->rested_ns = 0;
    } else if (n != -EAGAIN) {
        source_finish(s, false);
    }
}

/* Takes some bytes: 1, or 0 when it has to wait. */
static int take_bytes(struct source *s, size_t n)
{
    const uint8_t *bytes = s->owner->bytes;
    if (s->outlet && s->pass == CONSOLE_PASS_ALL && buf_append(s->plain, bytes, n) < 0)
        lost(s, n);
    s->rested_ns = clock_now_ns();
    return feed(s, bytes_of(bytes, n)) != -ENOMEM;
}

/* Memory is short. */
static bool come_back(uint64_t *ret_at_ns)
{
    lower(ret_at_ns, clock_now_ns() + RETRY_NS);
    return false;
}

bool source_turn(struct source *s, uint64_t *ret_at_ns)
{
    s->more = true;
    for (size_t sum = 0; sum < TURN_BYTES;) {
        if (!source_settle(s, ret_at_ns))
            return false;
        if (s->rest->len) {
            if (feed_rest(s) == -ENOMEM)
                return come_back(ret_at_ns);
            continue;
        }
        ssize_t n = s->ended ? -EAGAIN : read_some(s);
        if (n <= 0) {
            s->more = false;
            if (!s->ended)
                at_end(s, n);
            return source_settle(s, ret_at_ns);
        }
        if (!take_bytes(s, (size_t)n))
            return come_back(ret_at_ns);
        sum += (size_t)n;
    }
    return true;
}

void source_rest(struct source *s)
{
    s->rested_ns = 0;
    console_flush(s->reader, true);
    if (s->outlet && s->pass == CONSOLE_PASS_PLAIN && s->owner->config->plain_lines != PLAIN_LOG)
        console_flush_text(s->reader);
}

/* ---- the end ---- */

void source_finish(struct source *s, bool keep)
{
    console_flush(s->reader, keep);
    s->ended = true;
    s->keep = keep;
    s->rested_ns = 0;
}

void source_close(struct source *s, uint64_t until_ns)
{
    if (s->outlet)
        outlet_flush(s->outlet, s, until_ns);
    if (s->fd >= 0 && !s->borrowed)
        close(s->fd);
    s->fd = -1;
    if (s->on_end)
        s->on_end(s->ctx);
    s->on_end = NULL;
}

/* ---- going on in a file ---- */

static int feed_range(struct source *s, const struct console_range *range)
{
    uint64_t at = range->offset, end = at + range->len;
    console_reader_seek(s->reader, at);
    while (at < end) {
        size_t want = end - at < READ_BYTES ? (size_t)(end - at) : READ_BYTES, used;
        ssize_t n = pread(s->fd, s->owner->bytes, want, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ENODATA;
        int e = console_feed(s->reader, bytes_of(s->owner->bytes, (size_t)n), &used);
        if (e == -ENOMEM)
            return e;
        at += used;
    }
    return 0;
}

int source_resume(struct source *s, const struct console_range *held, size_t nheld, uint64_t offset)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < nheld; i++)
        r = feed_range(s, &held[i]);
    console_reader_seek(s->reader, offset);
    s->offset = offset;
    if (r == 0)
        r = mark_hold(&s->mark, s->reader);
    return r < 0 ? r : mark_set(&s->mark, s->fd, offset);
}

int source_restart(struct source *s)
{
    const struct console_sink sink = {take_batch, take_plain, s};
    if (s->moved) { /* what was held goes on elsewhere */
        struct console_reader *r =
            console_reader_new(&sink, (size_t)s->owner->config->max_record_bytes);
        if (!r)
            return -ENOMEM;
        count(s);
        console_reader_free(s->reader);
        s->reader = r;
        s->counted = (struct console_stats){0};
    } else {
        console_flush(s->reader, false);
    }
    console_reader_seek(s->reader, 0);
    mark_done(&s->mark);
    s->mark = (struct mark){.dev = s->mark.dev, .ino = s->mark.ino};
    s->offset = 0;
    s->moved = false;
    s->owner->dirty = true;
    return 0;
}
