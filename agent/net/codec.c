#include "agent/net/codec_impl.h"

#include <errno.h>
#include <pthread.h>
#include <strings.h>

static const struct {
    const char *name;
    enum codec codec;
} names[] = {
    {"", CODEC_IDENTITY},     {"identity", CODEC_IDENTITY},
    {"gzip", CODEC_GZIP},     {"zlib", CODEC_ZLIB},
    {"deflate", CODEC_ZLIB},  {"zstd", CODEC_ZSTD},
    {"snappy", CODEC_SNAPPY}, {"x-snappy-framed", CODEC_SNAPPY_FRAMED},
    {"lz4", CODEC_LZ4},
};

enum codec codec_find(struct bytes name)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strlen(names[i].name) == name.len &&
            strncasecmp(names[i].name, (const char *)name.data, name.len) == 0)
            return names[i].codec;
    return CODEC_UNKNOWN;
}

const char *codec_name(enum codec c)
{
    static const char *const of[] = {
        [CODEC_IDENTITY] = "identity", [CODEC_GZIP] = "gzip",
        [CODEC_ZLIB] = "zlib",         [CODEC_ZSTD] = "zstd",
        [CODEC_SNAPPY] = "snappy",     [CODEC_SNAPPY_FRAMED] = "x-snappy-framed",
        [CODEC_LZ4] = "lz4",           [CODEC_UNKNOWN] = "unknown",
    };
    return of[c];
}

static pthread_key_t local_key;
static pthread_once_t local_once = PTHREAD_ONCE_INIT;
static bool local_ready;

static void local_free(void *p)
{
    struct codec_local *l = p;
    codec_deflate_done(l);
    codec_zstd_done(l);
    free(l);
}

static void local_init(void)
{
    local_ready = pthread_key_create(&local_key, local_free) == 0;
}

struct codec_local *codec_local(void)
{
    pthread_once(&local_once, local_init);
    if (!local_ready)
        return NULL;
    struct codec_local *l = pthread_getspecific(local_key);
    if (l)
        return l;
    l = calloc(1, sizeof(*l));
    if (l && pthread_setspecific(local_key, l) != 0) {
        free(l);
        return NULL;
    }
    return l;
}

int codec_too_large(const struct buf *out, struct err *reterr)
{
    return err_set(reterr, -EMSGSIZE, "decompressed body is larger than %zu bytes", out->max);
}

size_t codec_total(const struct bytes *parts, unsigned n)
{
    size_t total = 0;
    for (unsigned i = 0; i < n; i++)
        total += parts[i].len;
    return total;
}

int codec_join(const struct bytes *parts, unsigned n, struct bytes *ret, struct buf **ret_copy)
{
    *ret_copy = NULL;
    *ret = n ? parts[0] : bytes_of("", 0);
    if (n <= 1)
        return 0;
    _cleanup_buf_ struct buf *all = buf_new(0);
    if (!all || buf_reserve(all, codec_total(parts, n)) < 0)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        buf_append(all, parts[i].data, parts[i].len);
    *ret = buf_bytes(all);
    *ret_copy = TAKE_PTR(all);
    return 0;
}

int codec_decompress(enum codec c, struct bytes in, struct buf *out, struct err *reterr)
{
    struct codec_local *l = codec_local();
    if (!l)
        return err_set(reterr, -ENOMEM, "out of memory");
    switch (c) {
    case CODEC_IDENTITY:
        if (in.len > out->max - out->len)
            return codec_too_large(out, reterr);
        return buf_append(out, in.data, in.len);
    case CODEC_GZIP: return gzip_decompress(l, in, out, reterr);
    case CODEC_ZLIB: return zlib_decompress(l, in, out, reterr);
    case CODEC_ZSTD: return zstd_decompress(l, in, out, reterr);
    case CODEC_SNAPPY:
    case CODEC_SNAPPY_FRAMED: return snappy_decompress(in, out, reterr);
    case CODEC_LZ4: return lz4_decompress(in, out, reterr);
    case CODEC_UNKNOWN: break;
    }
    return err_set(reterr, -EBADMSG, "unknown compression");
}

int codec_compress(enum codec c, int level, const struct bytes *parts, unsigned n, struct buf *out)
{
    struct codec_local *l = codec_local();
    if (!l)
        return -ENOMEM;
    int r = 0;
    switch (c) {
    case CODEC_IDENTITY:
        for (unsigned i = 0; r == 0 && i < n; i++)
            r = buf_append(out, parts[i].data, parts[i].len);
        return r;
    case CODEC_GZIP:
    case CODEC_ZLIB: return deflate_compress(l, c == CODEC_GZIP, level, parts, n, out);
    case CODEC_ZSTD: return zstd_compress(l, level, parts, n, out);
    case CODEC_SNAPPY:
    case CODEC_SNAPPY_FRAMED: return snappy_compress(c == CODEC_SNAPPY_FRAMED, parts, n, out);
    case CODEC_LZ4: return lz4_compress(level, parts, n, out);
    case CODEC_UNKNOWN: break;
    }
    return -EINVAL;
}

static int collect(int (*next)(void *ctx, struct bytes *ret), void *ctx, struct buf *all)
{
    struct bytes piece = {NULL, 0};
    int r;
    while ((r = next(ctx, &piece)) == 0 && piece.len)
        if ((r = buf_append(all, piece.data, piece.len)) < 0)
            break;
    return r;
}

int codec_compress_pull(enum codec c, int level, int (*next)(void *ctx, struct bytes *ret),
                        void *ctx, struct buf *out)
{
    struct codec_local *l = codec_local();
    bool deflates = c == CODEC_GZIP || c == CODEC_ZLIB;
    int r = !l ? -ENOMEM
            : deflates && (level == 0 || level == -1)
                ? fast_compress_pull(l, c == CODEC_GZIP, next, ctx, out)
                : -ENOTSUP;
    if (r != -ENOTSUP)
        return r;
    _cleanup_buf_ struct buf *all = buf_new(0);
    r = all ? collect(next, ctx, all) : -ENOMEM;
    if (r < 0)
        return r;
    struct bytes part = buf_bytes(all);
    return codec_compress(c, level, &part, 1, out);
}
