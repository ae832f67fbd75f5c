#include "exporters/file/render.h"

#include <errno.h>
#include <zstd.h>

#include "agent/base/secrets.h"
#include "proto/redact.h"

#define HEADER 4 /* big-endian length before a message */

struct renderer {
    bool proto;
    ZSTD_CCtx *zstd;  /* NULL = not compressed */
    struct buf *text; /* compressed: the message before that */
};

struct renderer *renderer_new(bool proto, bool zstd, int level)
{
    struct renderer *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->proto = proto;
    if (!zstd)
        return r;
    r->zstd = ZSTD_createCCtx();
    r->text = buf_new(0);
    if (!r->zstd || !r->text)
        return renderer_free(r);
    ZSTD_CCtx_setParameter(r->zstd, ZSTD_c_compressionLevel, level ? level : ZSTD_CLEVEL_DEFAULT);
    ZSTD_CCtx_setParameter(r->zstd, ZSTD_c_checksumFlag, 1);
    return r;
}

struct renderer *renderer_free(struct renderer *r)
{
    if (!r)
        return NULL;
    ZSTD_freeCCtx(r->zstd);
    buf_unref(r->text);
    free(r);
    return NULL;
}

bool renderer_framed(const struct renderer *r)
{
    return r->proto || r->zstd;
}

const char *renderer_content(const struct renderer *r)
{
    return r->proto ? r->zstd ? "proto zstd" : "proto" : r->zstd ? "json zstd" : "json";
}

static int put_message(const struct renderer *r, const struct batch *b, struct buf *out)
{
    if (!r->proto)
        return json_write_batch(b, JSON_REDACT, out);
    int e = buf_reserve(out, b->bytes);
    for (unsigned i = 0; e == 0 && i < b->nsegs; i++)
        e = otlp_redact(schema_request(b->signal), buf_bytes(b->segs[i]), out);
    return e;
}

static int put_compressed(struct renderer *r, const struct batch *b, struct buf *out)
{
    buf_truncate(r->text, 0);
    int e = put_message(r, b, r->text);
    if (e == 0)
        e = buf_reserve(out, ZSTD_compressBound(r->text->len));
    if (e < 0)
        return e;
    size_t n = ZSTD_compress2(r->zstd, buf_tail(out), ZSTD_compressBound(r->text->len),
                              r->text->data, r->text->len);
    if (ZSTD_isError(n))
        return -ENOMEM;
    buf_commit(out, n);
    return 0;
}

static int put_framed(struct renderer *r, const struct batch *b, struct buf *out)
{
    const uint8_t no_length[HEADER] = {0};
    size_t at = out->len + HEADER;
    int e = buf_append(out, no_length, HEADER);
    if (e == 0)
        e = r->zstd ? put_compressed(r, b, out) : put_message(r, b, out);
    if (e < 0)
        return e;
    size_t len = out->len - at;
    if (len > UINT32_MAX)
        return -EMSGSIZE;
    for (int i = 0; i < HEADER; i++)
        out->data[at - HEADER + (size_t)i] = (uint8_t)(len >> (24 - 8 * i));
    return 0;
}

int render(struct renderer *r, const struct batch *b, const struct json_spill *spill,
           struct buf *out)
{
    if (!renderer_framed(r))
        return json_write_batch_in_pieces(b, JSON_REDACT | JSON_LINE, spill, out);
    return put_framed(r, b, out);
}
