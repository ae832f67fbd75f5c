/* Every codec against bodies that others compressed, against itself, and against damage. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/net/codec.h"

#define ONE_MIB (1024u * 1024u)

static struct buf *load(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), TEST_DATA "/golden/codec/%s", name);
    _cleanup_fclose_ FILE *f = fopen(path, "rb");
    assert_non_null(f);
    struct buf *b = buf_new(0);
    assert_int_equal(buf_reserve(b, ONE_MIB), 0);
    buf_commit(b, fread(b->data, 1, ONE_MIB, f));
    return b;
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum codec want;
    } rows[] = {
        {"", CODEC_IDENTITY},
        {"identity", CODEC_IDENTITY},
        {"gzip", CODEC_GZIP},
        {"GZip", CODEC_GZIP},
        {"zlib", CODEC_ZLIB},
        {"deflate", CODEC_ZLIB},
        {"zstd", CODEC_ZSTD},
        {"snappy", CODEC_SNAPPY},
        {"x-snappy-framed", CODEC_SNAPPY_FRAMED},
        {"lz4", CODEC_LZ4},
        {"br", CODEC_UNKNOWN},
        {"gzip, gzip", CODEC_UNKNOWN},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_int_equal(codec_find(bytes_str(rows[i].name)), rows[i].want);
    assert_string_equal(codec_name(CODEC_SNAPPY_FRAMED), "x-snappy-framed");
}

/* What the collector answered for these bodies: the same bytes, or the reason. */
static void test_recorded(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        enum codec codec;
        const char *reason; /* NULL = plain.bin */
    } rows[] = {
        {"gzip-two-members.bin", CODEC_GZIP, NULL},
        {"gzip-bad-crc.bin", CODEC_GZIP, "gzip: invalid checksum"},
        {"zlib.bin", CODEC_ZLIB, NULL},
        {"deflate-zlib.bin", CODEC_ZLIB, NULL},
        {"deflate-raw.bin", CODEC_ZLIB, "zlib: invalid header"},
        {"zstd.bin", CODEC_ZSTD, NULL},
        {"zstd-cli.bin", CODEC_ZSTD, NULL},
        {"snappy-block.bin", CODEC_SNAPPY, NULL},
        {"x-snappy-framed.bin", CODEC_SNAPPY_FRAMED, NULL},
        {"x-snappy-framed.bin", CODEC_SNAPPY, NULL},
        {"lz4-cli.bin", CODEC_LZ4, NULL},
        {"zlib.bin", CODEC_SNAPPY, "snappy: corrupt input"},
        {"zlib.bin", CODEC_ZSTD, "invalid input: magic number mismatch"},
    };
    _cleanup_buf_ struct buf *plain = load("plain.bin");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_buf_ struct buf *in = load(rows[i].file), *out = buf_new(ONE_MIB);
        struct err e = {""};
        int r = codec_decompress(rows[i].codec, buf_bytes(in), out, &e);
        if (rows[i].reason) {
            assert_int_equal(r, -EBADMSG);
            assert_string_equal(e.text, rows[i].reason);
        } else {
            assert_int_equal(r, 0);
            assert_true(bytes_eq(buf_bytes(out), buf_bytes(plain)));
        }
    }
}

static void test_short_bodies(void **state)
{
    (void)state;
    static const struct {
        enum codec codec;
        const char *body;
        const char *reason; /* NULL = an empty body */
    } rows[] = {
        {CODEC_GZIP, "", "EOF"},
        {CODEC_GZIP, "not gzip", "unexpected EOF"},
        {CODEC_GZIP, "not gzip, but longer", "gzip: invalid header"},
        {CODEC_ZLIB, "", "unexpected EOF"},
        {CODEC_ZLIB, "x", "unexpected EOF"},
        {CODEC_ZSTD, "", NULL},
        {CODEC_LZ4, "", NULL},
        {CODEC_LZ4, "\x04\x22\x4d\x18", NULL},
        {CODEC_SNAPPY, "", "snappy: corrupt input"},
        {CODEC_SNAPPY, "\xff\xff\xff\xff\x0f", "decompressed body is larger than 1048576 bytes"},
        {CODEC_SNAPPY_FRAMED, "\xff\x06", "snappy: corrupt input"},
        {CODEC_UNKNOWN, "x", "unknown compression"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_buf_ struct buf *out = buf_new(ONE_MIB);
        struct err e = {""};
        int r = codec_decompress(rows[i].codec, bytes_str(rows[i].body), out, &e);
        assert_int_equal(r != 0, rows[i].reason != NULL);
        assert_string_equal(e.text, rows[i].reason ? rows[i].reason : "");
        assert_int_equal(out->len, 0);
    }
}

static const enum codec all_codecs[] = {CODEC_IDENTITY, CODEC_GZIP,          CODEC_ZLIB, CODEC_ZSTD,
                                        CODEC_SNAPPY,   CODEC_SNAPPY_FRAMED, CODEC_LZ4};

/* Text-like bytes with repeats; seed 0: noise, 1: one value. */
static struct buf *make_input(size_t len, uint64_t seed)
{
    struct buf *b = buf_new(0);
    uint64_t x = seed * 0x9e3779b97f4a7c15ull + 1;
    for (size_t i = 0; i < len; i++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        if (seed > 1 && i > 300 && x >> 62)
            buf_putc(b, (char)b->data[i - 1 - (x >> 32) % 299 % (seed * 7)]);
        else
            buf_putc(b, seed == 1 ? 'a' : (char)(x >> 56));
    }
    return b;
}

static void round_trip(enum codec c, int level, const struct buf *in, unsigned nparts)
{
    struct bytes parts[7];
    size_t at = 0;
    for (unsigned i = 0; i < nparts; i++) {
        size_t n = i + 1 == nparts ? in->len - at : (in->len - at) / (i == 2 ? 1000 : 3);
        parts[i] = bytes_of(in->len ? in->data + at : (const uint8_t *)"", n);
        at += n;
    }
    _cleanup_buf_ struct buf *packed = buf_new(0), *out = buf_new(in->len);
    struct err e = {""};
    assert_int_equal(codec_compress(c, level, parts, nparts, packed), 0);
    assert_int_equal(codec_decompress(c, buf_bytes(packed), out, &e), 0);
    assert_true(bytes_eq(buf_bytes(out), buf_bytes(in)));
}

static void test_round_trips(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 3, 15, 16, 17, 100, 5000, 65535, 65536, 65537, 400000};
    for (size_t c = 0; c < ARRAY_SIZE(all_codecs); c++)
        for (size_t s = 0; s < ARRAY_SIZE(sizes); s++)
            for (uint64_t seed = 0; seed < 4; seed++) {
                _cleanup_buf_ struct buf *in = make_input(sizes[s], seed);
                round_trip(all_codecs[c], 0, in, 1);
                round_trip(all_codecs[c], seed == 2 ? 9 : -1, in, seed == 3 ? 7 : 2);
            }
}

static void test_empty_round_trip(void **state)
{
    (void)state;
    for (size_t c = 0; c < ARRAY_SIZE(all_codecs); c++) {
        _cleanup_buf_ struct buf *packed = buf_new(0), *out = buf_new(1);
        assert_int_equal(codec_compress(all_codecs[c], 0, NULL, 0, packed), 0);
        assert_int_equal(codec_decompress(all_codecs[c], buf_bytes(packed), out, NULL), 0);
        assert_int_equal(out->len, 0);
    }
}

struct pieces {
    const struct buf *all;
    size_t at, each;
    int fail_at;
};

static int next_piece(void *ctx, struct bytes *ret)
{
    struct pieces *p = ctx;
    size_t n = p->all->len - p->at < p->each ? p->all->len - p->at : p->each;
    *ret = bytes_of(p->all->data + p->at, n);
    p->at += n;
    return p->fail_at-- == 0 ? -ENOENT : 0;
}

static void test_pieces(void **state)
{
    (void)state;
    for (size_t c = 0; c < ARRAY_SIZE(all_codecs); c++)
        for (int level = 0; level < 3; level++) {
            enum codec k = all_codecs[c];
            int l = k == CODEC_GZIP || k == CODEC_ZLIB || k == CODEC_ZSTD ? level : 0;
            _cleanup_buf_ struct buf *in = make_input(300000, 3), *packed = buf_new(0),
                                     *out = buf_new(300000);
            struct pieces p = {in, 0, 7777, -1}, bad = {in, 0, 7777, 3};
            assert_int_equal(codec_compress_pull(k, l, next_piece, &p, packed), 0);
            assert_int_equal(codec_decompress(k, buf_bytes(packed), out, NULL), 0);
            assert_true(bytes_eq(buf_bytes(out), buf_bytes(in)));
            assert_int_equal(codec_compress_pull(k, l, next_piece, &bad, packed), -ENOENT);
        }
}

/* Exactly the limit passes; one byte less does not, and a bomb costs no more than the limit. */
static void test_limit(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *in = make_input(30 * ONE_MIB, 1);
    struct bytes part = buf_bytes(in);
    for (size_t c = 0; c < ARRAY_SIZE(all_codecs); c++) {
        _cleanup_buf_ struct buf *packed = buf_new(0), *exact = buf_new(in->len),
                                 *less = buf_new(in->len - 1), *small = buf_new(ONE_MIB);
        assert_int_equal(codec_compress(all_codecs[c], 0, &part, 1, packed), 0);
        struct err e = {""};
        assert_int_equal(codec_decompress(all_codecs[c], buf_bytes(packed), exact, &e), 0);
        assert_int_equal(exact->len, in->len);
        assert_int_equal(codec_decompress(all_codecs[c], buf_bytes(packed), less, &e), -EMSGSIZE);
        assert_int_equal(codec_decompress(all_codecs[c], buf_bytes(packed), small, &e), -EMSGSIZE);
        assert_string_equal(e.text, "decompressed body is larger than 1048576 bytes");
        assert_true(small->cap <= ONE_MIB + 4096);
    }
}

static void test_appends_behind(void **state)
{
    (void)state;
    struct bytes part = bytes_str("body");
    for (size_t c = 0; c < ARRAY_SIZE(all_codecs); c++) {
        _cleanup_buf_ struct buf *packed = buf_new(0), *out = buf_new(100);
        buf_append_str(packed, "12345");
        buf_append_str(out, "front ");
        assert_int_equal(codec_compress(all_codecs[c], 0, &part, 1, packed), 0);
        struct bytes body = bytes_of(packed->data + 5, packed->len - 5);
        assert_int_equal(codec_decompress(all_codecs[c], body, out, NULL), 0);
        assert_string_equal(buf_str(out), "front body");
    }
}

/* Cut at every length and with every byte changed: an error or other bytes, never a crash, never
 * more than the limit. */
static void test_damage(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *in = make_input(900, 3);
    struct bytes part = buf_bytes(in);
    for (size_t c = 1; c < ARRAY_SIZE(all_codecs); c++) {
        _cleanup_buf_ struct buf *packed = buf_new(0);
        codec_compress(all_codecs[c], 0, &part, 1, packed);
        for (size_t n = 0; n < packed->len; n++) {
            _cleanup_free_ uint8_t *copy = malloc(n + 1);
            memcpy(copy, packed->data, n);
            _cleanup_buf_ struct buf *out = buf_new(in->len);
            int r = codec_decompress(all_codecs[c], bytes_of(copy, n), out, NULL);
            assert_true(r == -EBADMSG || (r == 0 && out->len < in->len) || r == -EMSGSIZE);
        }
        for (size_t i = 0; i < packed->len; i++) {
            _cleanup_buf_ struct buf *out = buf_new(2000);
            packed->data[i] ^= (uint8_t)(1 + i % 255);
            codec_decompress(all_codecs[c], buf_bytes(packed), out, NULL);
            packed->data[i] ^= (uint8_t)(1 + i % 255);
            assert_true(out->len <= 2000);
        }
    }
}

static void test_gzip_reasons(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *in = make_input(5000, 3), *packed = buf_new(0);
    struct bytes part = buf_bytes(in);
    codec_compress(CODEC_GZIP, 0, &part, 1, packed);
    static const size_t cuts[] = {1, 8, 9, 400};
    for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
        _cleanup_buf_ struct buf *out = buf_new(0);
        struct err e = {""};
        assert_int_equal(
            codec_decompress(CODEC_GZIP, bytes_of(packed->data, packed->len - cuts[i]), out, &e),
            -EBADMSG);
        assert_non_null(strstr(e.text, "unexpected EOF"));
    }
    buf_append_str(packed, "trailing garbage");
    _cleanup_buf_ struct buf *out = buf_new(0);
    struct err e = {""};
    assert_int_equal(codec_decompress(CODEC_GZIP, buf_bytes(packed), out, &e), -EBADMSG);
    assert_string_equal(e.text, "gzip: invalid header");
}

/* All optional header fields of RFC 1952. */
static void test_gzip_header_fields(void **state)
{
    (void)state;
    static const uint8_t body[] = "\x1f\x8b\x08\x1c\x00\x00\x00\x00\x00\x03"
                                  "\x03\x00"
                                  "xyz"
                                  "name\0"
                                  "comment\0"
                                  "\x4b\x4c\x4a\x06\x00"
                                  "\xc2\x41\x24\x35"
                                  "\x03\x00\x00\x00";
    _cleanup_buf_ struct buf *out = buf_new(10);
    assert_int_equal(codec_decompress(CODEC_GZIP, bytes_of(body, sizeof(body) - 1), out, NULL), 0);
    assert_string_equal(buf_str(out), "abc");
    for (size_t n = 1; n < sizeof(body) - 1; n++) {
        _cleanup_buf_ struct buf *cut = buf_new(0);
        assert_int_equal(codec_decompress(CODEC_GZIP, bytes_of(body, n), cut, NULL), -EBADMSG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_short_bodies),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_empty_round_trip),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_appends_behind),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_gzip_reasons),
        cmocka_unit_test(test_gzip_header_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
