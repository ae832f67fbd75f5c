/*
 * What the receiver reads first: gRPC frames and header encodings, the first bytes of a connection,
 * media types. The first byte chooses which; what must hold of every answer is checked.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/net/grpc.h"
#include "agent/net/head.h"
#include "receivers/otlp/media_type.h"
#include "tests/fuzz/fuzz.h"

#define MAX_HEAD 512

static void must(bool ok)
{
    if (!ok)
        abort();
}

/* A copy that ends where the input ends, so that a read beyond it is seen. */
static struct buf *exact(struct bytes in)
{
    struct buf *b = buf_new(0);
    must(b && buf_append(b, in.data, in.len) == 0);
    buf_shrink(b);
    return b;
}

/* Frames follow each other; a cut one asks for exactly what is missing. */
static void frames(struct bytes in)
{
    bool compressed = false;
    struct bytes message = {NULL, 0};
    size_t used = 0, need = 0;
    int r;
    while ((r = grpc_frame_parse(in, &compressed, &message, &used, &need)) == 1) {
        uint8_t prefix[GRPC_PREFIX_BYTES];
        grpc_frame_prefix(compressed, (uint32_t)message.len, prefix);
        must(used == GRPC_PREFIX_BYTES + message.len && used <= in.len);
        must(message.data == in.data + GRPC_PREFIX_BYTES &&
             memcmp(prefix, in.data, sizeof(prefix)) == 0);
        in = bytes_of(in.data + used, in.len - used);
    }
    must(r < 0 ? in.len > 0 && in.data[0] > 1
               : in.len < GRPC_PREFIX_BYTES || in.len < GRPC_PREFIX_BYTES + need);
}

/* What is encoded decodes to itself; decoding anything is safe. */
static void header_values(struct bytes in)
{
    _cleanup_buf_ struct buf *a = buf_new(0), *b = buf_new(0), *c = buf_new(0), *d = buf_new(0),
                             *e = buf_new(0);
    must(grpc_percent_encode(in, a) == 0 && grpc_percent_decode(buf_bytes(a), b) == 0);
    must(bytes_eq(in, buf_bytes(b)));
    for (size_t i = 0; i < a->len; i++)
        must(a->data[i] >= ' ' && a->data[i] <= '~');
    must(grpc_bin_encode(in, c) == 0 && grpc_bin_decode(buf_bytes(c), d) == 0);
    must(bytes_eq(in, buf_bytes(d)));
    grpc_percent_decode(in, e);
    grpc_bin_decode(in, e);
    uint64_t ns;
    grpc_timeout_parse(in, &ns);
}

/* The verdict comes once and stays; a head that passes has only what one reader can understand. */
static void heads(struct bytes in)
{
    enum head_kind last = HEAD_MORE;
    for (size_t n = 0; n <= in.len; n++) {
        _cleanup_buf_ struct buf *part = exact(bytes_of(in.data, n));
        enum head_kind k = http_head_sniff(buf_bytes(part), MAX_HEAD);
        must(last == HEAD_MORE || k == last);
        must(k != HEAD_MORE || n < MAX_HEAD);
        last = k;
    }
    if (last != HEAD_HTTP1)
        return;
    const uint8_t *end = memmem(in.data, in.len, "\r\n\r\n", 4);
    while (end == in.data) /* empty lines before it */
        end = memmem(end + 2, in.len - 2, "\r\n\r\n", 4);
    must(end && end + 4 <= in.data + MAX_HEAD);
    for (const uint8_t *p = in.data; p < end + 4; p++)
        must(*p >= ' ' || *p == '\t' || (*p == '\r' && p[1] == '\n') ||
             (*p == '\n' && p[-1] == '\r'));
}

static void media_types(struct bytes in)
{
    char type[MEDIA_TYPE_BYTES];
    media_type_parse(in, type);
    must(memchr(type, 0, sizeof(type)));
    for (const char *s = type; *s; s++)
        must(*s > ' ' && *s < 0x7f && (*s < 'A' || *s > 'Z') && *s != ';');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const targets[])(struct bytes) = {frames, header_values, heads, media_types};
    if (size == 0)
        return 0;
    _cleanup_buf_ struct buf *in = exact(bytes_of(data + 1, size - 1));
    targets[data[0] % ARRAY_SIZE(targets)](buf_bytes(in));
    return 0;
}
