/*
 * The console reader: the same stream in one piece and in small ones gives the same records and the
 * same plain text, and nothing is lost: what is no record is passed on. An object that the scanner
 * takes is one for the cursor, too. The first byte chooses the limit, the second the size of the
 * pieces.
 */
#include <errno.h>

#include "proto/console.h"
#include "proto/console_cursor.h"
#include "proto/json_scan.h"
#include "proto/schema.h"
#include "tests/fuzz/fuzz.h"
#include "tests/laws/laws.h"

struct found {
    struct buf *records[SIGNAL_COUNT], *plain;
};

static void need(bool good)
{
    if (!good)
        abort();
}

/* Each record with its resource, apart from how they were grouped. */
static int take_batch(void *ctx, struct batch *b)
{
    struct found *f = ctx;
    struct wire_reader entries = wire_reader(buf_bytes(b->segs[0]));
    struct bytes entry, scope_entry, record;
    need(b->records > 0 && b->nsegs == 1);
    while (wire_each(&entries, OTLP_ENTRIES, &entry)) {
        struct bytes resource = wire_bytes(entry, ENTRY_HEAD);
        struct wire_reader scopes = wire_reader(entry);
        while (wire_each(&scopes, ENTRY_ITEMS, &scope_entry)) {
            struct wire_reader records = wire_reader(scope_entry);
            while (wire_each(&records, ENTRY_ITEMS, &record)) {
                need(wire_put_bytes(f->records[b->signal], 1, resource) == 0);
                need(wire_put_bytes(f->records[b->signal], 2, record) == 0);
            }
        }
    }
    batch_unref(b);
    return 0;
}

static int take_plain(void *ctx, struct bytes line)
{
    struct found *f = ctx;
    need(line.len > 0 && buf_append(f->plain, line.data, line.len) == 0);
    return 0;
}

static void read_stream(struct bytes text, size_t max, size_t step, struct found *f,
                        struct console_stats *ret)
{
    const struct console_sink sink = {take_batch, take_plain, f};
    struct console_reader *r = console_reader_new(&sink, max);
    need(r != NULL);
    for (size_t s = 0; s < SIGNAL_COUNT; s++)
        need((f->records[s] = buf_new(0)) != NULL);
    need((f->plain = buf_new(0)) != NULL);
    while (text.len) {
        size_t n = text.len < step ? text.len : step, used;
        struct buf *exact = law_copy(bytes_of(text.data, n));
        need(console_feed(r, buf_bytes(exact), &used) == 0 && used == n);
        buf_unref(exact);
        text = bytes_of(text.data + n, text.len - n);
    }
    need(console_flush(r, false) == 0);
    need(console_pending(r) == 0);
    *ret = *console_reader_stats(r);
    console_reader_free(r);
}

static void found_done(struct found *f)
{
    for (size_t s = 0; s < SIGNAL_COUNT; s++)
        buf_unref(f->records[s]);
    buf_unref(f->plain);
}

static void law_cuts(struct bytes text, size_t max, size_t step)
{
    struct found whole, cut;
    struct console_stats a, b;
    read_stream(text, max, SIZE_MAX, &whole, &a);
    read_stream(text, max, step, &cut, &b);
    for (size_t s = 0; s < SIGNAL_COUNT; s++) {
        need(bytes_eq(buf_bytes(whole.records[s]), buf_bytes(cut.records[s])));
        need(a.records[s] == b.records[s]);
    }
    need(bytes_eq(buf_bytes(whole.plain), buf_bytes(cut.plain)));
    need(a.plain_lines == b.plain_lines && a.malformed == b.malformed);
    need(a.oversized == b.oversized);
    uint64_t records = a.records[0] + a.records[1] + a.records[2];
    need(whole.plain->len <= text.len &&
         (records || memchr(text.data, 0x1b, text.len) || memchr(text.data, '{', text.len) ||
          whole.plain->len == text.len));
    found_done(&whole);
    found_done(&cut);
}

static void law_cursor(struct bytes text)
{
    struct console_cursor c = {0};
    struct json_scan s = {
        .start = text.data, .p = text.data, .end = text.data + text.len, .python = true};
    size_t used;
    s.scratch = buf_new(0);
    bool good = json_scan_peek(&s) == '{' && json_scan_skip(&s) == 0;
    enum cursor_answer a = console_cursor_read(&c, text, &used);
    if (good && c.depth < CURSOR_MAX_DEPTH)
        need(a == CURSOR_DONE && used == (size_t)(s.p - text.data));
    buf_unref(s.scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    struct buf *exact = law_copy(bytes_of(data + 2, size - 2));
    law_cuts(buf_bytes(exact), data[0] ? 16 + 8u * data[0] : 0, 1u + data[1] % 64);
    law_cursor(buf_bytes(exact));
    buf_unref(exact);
    return 0;
}
