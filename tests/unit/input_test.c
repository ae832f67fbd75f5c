/* Files of telemetry as text, whatever they are compressed with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <zstd.h>

#include "agent/gym/feed.h"
#include "agent/gym/index.h"

static char path[] = "/tmp/motel-input-XXXXXX";

static void put_file(const void *data, size_t len)
{
    FILE *f = fopen(path, "w");
    assert_int_equal(fwrite(data, 1, len, f), len);
    fclose(f);
}

static void put_frame(struct buf *b, const char *text, bool with_length)
{
    char packed[4096];
    const size_t n = ZSTD_compress(packed, sizeof(packed), text, strlen(text), 1);
    const uint8_t length[4] = {0, 0, (uint8_t)(n >> 8), (uint8_t)n};
    if (with_length)
        buf_append(b, length, 4);
    buf_append(b, packed, n);
}

/* All of the text, read in pieces of at most `max`. */
static int read_all(size_t max, struct buf *out, struct err *e)
{
    struct input *in;
    struct bytes piece = {0};
    int r = input_open(path, &in, e);
    if (r < 0)
        return r;
    do {
        assert_int_equal(input_offset(in), out->len);
        r = input_read(in, max, &piece, e);
        assert_true(piece.len <= max);
        buf_append(out, piece.data, piece.len);
    } while (r == 0 && piece.len);
    input_free(in);
    return r;
}

static void expect_text(const char *want)
{
    static const size_t sizes[] = {SIZE_MAX, 1, 7};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct buf *out = buf_new(0);
        struct err e = {0};
        assert_int_equal(read_all(sizes[i], out, &e), 0);
        assert_string_equal(buf_str(out), want);
        buf_unref(out);
    }
}

static void test_forms(void **state)
{
    (void)state;
    struct buf *b = buf_new(0);
    put_file("", 0);
    expect_text("");
    put_file("a\nb", 3);
    expect_text("a\nb");
    put_frame(b, "one\ntw", false);
    put_frame(b, "", false);
    put_frame(b, "o\n", false);
    put_file(b->data, b->len);
    expect_text("one\ntwo\n");
    buf_truncate(b, 0);
    put_frame(b, "{1}", true); /* messages become lines */
    put_frame(b, "{2}\n", true);
    put_frame(b, "{3}", true);
    put_file(b->data, b->len);
    expect_text("{1}\n{2}\n{3}\n");
    buf_unref(b);
}

static void test_damage(void **state)
{
    (void)state;
    struct buf *b = buf_new(0), *out = buf_new(0);
    struct err e = {0};
    put_frame(b, "a line\n", true);
    const size_t whole = b->len;
    put_frame(b, "another line\n", true);
    for (size_t len = whole + 1; len < b->len; len++) {
        put_file(b->data, len);
        buf_truncate(out, 0);
        assert_int_equal(read_all(SIZE_MAX, out, &e), -EBADMSG);
        assert_non_null(strstr(e.text, path));
        assert_true(out->len >= 7 && memcmp(out->data, "a line\n", 7) == 0);
    }
    memset(b->data + whole + 8, 0xee, 8);
    put_file(b->data, b->len);
    buf_truncate(out, 0);
    assert_int_equal(read_all(SIZE_MAX, out, &e), -EBADMSG);
    assert_non_null(strstr(e.text, "damaged"));
    put_file("\x1f\x8b\x08", 3);
    assert_int_equal(read_all(SIZE_MAX, out, &e), -EBADMSG);
    buf_unref(b);
    buf_unref(out);
}

/* In any form the text goes on at any place. */
static void test_skip(void **state)
{
    (void)state;
    struct buf *text = buf_new(0), *packed = buf_new(0);
    for (int i = 0; i < 30000; i++)
        buf_printf(text, "line %d\n", i);
    packed->len = 0;
    buf_reserve(packed, ZSTD_compressBound(text->len));
    buf_commit(packed, ZSTD_compress(packed->data, packed->cap, text->data, text->len, 1));
    for (int form = 0; form < 2; form++) {
        put_file(form ? packed->data : text->data, form ? packed->len : text->len);
        for (size_t at = 0; at <= text->len; at += text->len / 7) {
            struct input *in;
            struct bytes piece;
            struct err e;
            assert_int_equal(input_open(path, &in, &e), 0);
            input_read(in, 3, &piece, &e);
            if (at >= 3) {
                assert_int_equal(input_skip_to(in, at, &e), 0);
                assert_int_equal(input_offset(in), at);
                assert_int_equal(input_read(in, 20, &piece, &e), 0);
                assert_memory_equal(piece.data, text->data + at, piece.len);
                assert_true(piece.len > 0 || at == text->len);
            }
            assert_int_equal(input_skip_to(in, text->len + 1, &e), -ESPIPE);
            input_free(in);
        }
    }
    buf_unref(text);
    buf_unref(packed);
}

/* ---- feeding and going on ---- */

static int count(void *ctx, struct batch *b)
{
    *(unsigned *)ctx += b->records;
    batch_unref(b);
    return 0;
}

static const char record[] =
    "{\n  \"body\": \"x\",\n  \"severity_number\": 9,\n  \"observed_timestamp\": "
    "\"2026-11-29T13:10:59.194822Z\",\n  \"resource\": {\"attributes\": {}, \"schema_url\": "
    "\"\"}\n}\n";

/* The file is read to each of its bytes, and then, by another reader, to its end: every record
 * comes once. */
static void test_resume(void **state)
{
    (void)state;
    struct buf *text = buf_new(0);
    buf_printf(text, "plain\n%s(server) plain\n%s", record, record);
    for (size_t end = 0; end <= text->len; end++) {
        unsigned records = 0;
        const struct console_sink sink = {.telemetry = count, .ctx = &records};
        struct console_range held[8];
        struct feed f;
        struct err e = {0};
        put_file(text->data, end);
        assert_int_equal(feed_open(&f, path, &sink, &e), 0);
        f.keep = true;
        while (feed_step(&f, &e) > 0)
            ;
        const size_t n = console_held(f.reader, held, ARRAY_SIZE(held));
        const uint64_t offset = input_offset(f.input);
        assert_int_equal(offset, end);
        feed_done(&f);
        put_file(text->data, text->len);
        assert_int_equal(feed_open(&f, path, &sink, &e), 0);
        if (end)
            assert_int_equal(feed_resume(&f, held, n, offset, &e), 0);
        while (feed_step(&f, &e) > 0)
            ;
        feed_done(&f);
        if (records != 2)
            fail_msg("%u records when it was read up to %zu", records, end);
    }
    buf_unref(text);
}

/* ---- the index ---- */

struct numbers {
    const uint64_t *items;
    uint64_t wanted;
};

static bool same_number(const void *ctx, uint32_t i)
{
    const struct numbers *n = ctx;
    return n->items[i] == n->wanted;
}

static void test_index(void **state)
{
    (void)state;
    enum { N = 20000 };
    static uint64_t items[N];
    struct index x = {0};
    for (uint32_t i = 0; i < N; i++) {
        items[i] = (uint64_t)i * i * 0x100000001ull;
        const struct numbers n = {items, items[i]};
        assert_int_equal(index_find(&x, hash_u64(items[i], 0), same_number, &n), INDEX_NONE);
        assert_int_equal(index_add(&x, hash_u64(items[i], 0), i), 0);
    }
    for (uint32_t i = 0; i < N; i++) {
        const struct numbers n = {items, items[i]};
        assert_int_equal(index_find(&x, hash_u64(items[i], 0), same_number, &n), i);
    }
    assert_int_not_equal(hash_bytes(bytes_str("abcdefgh"), 0),
                         hash_bytes(bytes_str("abcdefgi"), 0));
    assert_int_not_equal(hash_bytes(bytes_of("\0", 1), 0), hash_bytes(bytes_of("\0\0", 2), 0));
    index_done(&x);
}

static int set_up(void **state)
{
    (void)state;
    const int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),  cmocka_unit_test(test_damage), cmocka_unit_test(test_skip),
        cmocka_unit_test(test_resume), cmocka_unit_test(test_index),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
