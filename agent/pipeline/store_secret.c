/*
 * Secrets do not go to the disk: each is replaced by a placeholder that tells which one it is by
 * the beginning of its SHA-256, and put back when the request is read. This is done on the bytes of
 * the request, whatever field they are in: on the disk they are not read as protobuf. A secret that
 * is a number is replaced also where it stands as a number in an attribute. placeholder: marker (8
 * bytes that are nowhere else in the request), kind (1), hash (8)
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "agent/base/digest.h"
#include "agent/base/encode.h"
#include "agent/base/secrets.h"
#include "agent/pipeline/store_parts.h"
#include "proto/wire.h"

enum { MARKER_BYTES = 8, HASH_BYTES = 8, PLACEHOLDER_BYTES = MARKER_BYTES + 1 + HASH_BYTES };
enum kind { AS_TEXT = 't', AS_INT = 'i', AS_DOUBLE = 'd' };
enum { INT_VALUE = 3, DOUBLE_VALUE = 4 }; /* fields of AnyValue */

/* What is looked for, the text or the field that holds the number, and the text that it stands for.
 */
struct pattern {
    enum kind kind;
    struct buf *bytes; /* NULL = the value itself */
    struct bytes value;
};
struct patterns {
    struct pattern *items;
    size_t n, cap;
    int error;
};

static struct bytes pattern_bytes(const struct pattern *p)
{
    return p->bytes ? buf_bytes(p->bytes) : p->value;
}

static void patterns_done(struct patterns *p)
{
    for (size_t i = 0; i < p->n; i++)
        buf_unref(p->items[i].bytes);
    free(p->items);
}
#define _cleanup_patterns_ _cleanup_(patterns_done)

/* Takes `bytes`. */
static void add(struct patterns *p, enum kind kind, struct buf *bytes, struct bytes value)
{
    if (p->n == p->cap) {
        const size_t cap = p->cap ? 2 * p->cap : 8;
        struct pattern *items = realloc(p->items, cap * sizeof(*items));
        if (!items) {
            buf_unref(bytes);
            p->error = -ENOMEM;
            return;
        }
        p->items = items;
        p->cap = cap;
    }
    p->items[p->n++] = (struct pattern){kind, bytes, value};
}

static void add_number(struct patterns *p, enum kind kind, const struct secret_view *v)
{
    struct buf *b = buf_new(0);
    int r = b ? 0 : -ENOMEM;
    if (r == 0 && kind == AS_INT) {
        r = wire_put_tag(b, INT_VALUE, WIRE_VARINT);
        if (r == 0)
            r = wire_put_varint(b, (uint64_t)v->i);
    } else if (r == 0) {
        uint64_t bits;
        memcpy(&bits, &v->d, sizeof(bits));
        r = wire_put_tag(b, DOUBLE_VALUE, WIRE_I64);
        bits = htole64(bits);
        if (r == 0)
            r = buf_append(b, &bits, sizeof(bits));
    }
    if (r < 0) {
        buf_unref(b);
        p->error = r;
        return;
    }
    add(p, kind, b, v->value);
}

static void see_secret(void *ctx, const struct secret_view *v)
{
    struct patterns *p = ctx;
    add(p, AS_TEXT, NULL, v->value);
    if (v->is_int)
        add_number(p, AS_INT, v);
    if (v->is_double)
        add_number(p, AS_DOUBLE, v);
}

static int patterns_make(struct patterns *ret)
{
    *ret = (struct patterns){0};
    secrets_each(see_secret, ret);
    return ret->error;
}

/* The first pattern in `text`; of those at one place the first one, which is the longest secret. */
static const struct pattern *find(const struct patterns *p, struct bytes text, size_t *ret_at)
{
    const struct pattern *found = NULL;
    for (size_t i = 0; i < p->n; i++) {
        const struct bytes b = pattern_bytes(&p->items[i]);
        const uint8_t *at = memmem(text.data, text.len, b.data, b.len);
        if (!at)
            continue;
        if (!found || (size_t)(at - text.data) < *ret_at) {
            found = &p->items[i];
            *ret_at = (size_t)(at - text.data);
        }
    }
    return found;
}

static void hash_of(struct bytes value, uint8_t ret[HASH_BYTES])
{
    uint8_t whole[SHA256_BYTES];
    digest_sha256(value, whole);
    memcpy(ret, whole, HASH_BYTES);
}

static int put_placeholder(const struct pattern *p, const uint8_t marker[MARKER_BYTES],
                           struct buf *out)
{
    uint8_t text[PLACEHOLDER_BYTES];
    memcpy(text, marker, MARKER_BYTES);
    text[MARKER_BYTES] = (uint8_t)p->kind;
    hash_of(p->value, text + MARKER_BYTES + 1);
    return buf_append(out, text, sizeof(text));
}

static int mask(const struct patterns *p, struct bytes text, const uint8_t marker[MARKER_BYTES],
                struct buf *out)
{
    size_t at = 0;
    int r = 0;
    for (const struct pattern *f; r == 0 && (f = find(p, text, &at));) {
        const size_t end = at + pattern_bytes(f).len;
        r = buf_append(out, text.data, at);
        if (r == 0)
            r = put_placeholder(f, marker, out);
        text = bytes_of(text.data + end, text.len - end);
    }
    return r < 0 ? r : buf_append(out, text.data, text.len);
}

static bool any_in(const struct patterns *p, const struct batch *b)
{
    size_t at;
    for (unsigned i = 0; i < b->nsegs; i++)
        if (find(p, buf_bytes(b->segs[i]), &at))
            return true;
    return false;
}

/* The first byte is nowhere else in the marker, so that it cannot overlap with itself: behind any
 * bytes that do not hold it, the first place where it is found is where it was put. */
static bool can_overlap(const uint8_t marker[MARKER_BYTES])
{
    return memchr(marker + 1, marker[0], MARKER_BYTES - 1) != NULL;
}

static void choose_marker(struct bytes whole, uint8_t marker[MARKER_BYTES])
{
    do {
        if (getrandom(marker, MARKER_BYTES, 0) != MARKER_BYTES)
            for (int i = MARKER_BYTES - 1; i >= 0 && ++marker[i] == 0; i--)
                ;
    } while (can_overlap(marker) || memmem(whole.data, whole.len, marker, MARKER_BYTES));
}

int store_mask(const struct batch *b, uint8_t marker[8], struct buf **ret)
{
    _cleanup_patterns_ struct patterns p = {0};
    *ret = NULL;
    if (!secrets_active())
        return 0;
    int r = patterns_make(&p);
    if (r < 0 || !any_in(&p, b))
        return r;
    _cleanup_buf_ struct buf *whole = batch_flatten(b), *out = buf_new(0);
    if (!whole || !out)
        return -ENOMEM;
    choose_marker(buf_bytes(whole), marker);
    r = mask(&p, buf_bytes(whole), marker, out);
    if (r == 0)
        *ret = TAKE_PTR(out);
    return r < 0 ? -ENOMEM : 0;
}

/* ---- back ---- */

static const struct pattern *find_hash(const struct patterns *p, uint8_t kind,
                                       const uint8_t hash[HASH_BYTES])
{
    uint8_t own[HASH_BYTES];
    for (size_t i = 0; i < p->n; i++) {
        hash_of(p->items[i].value, own);
        if (p->items[i].kind == kind && memcmp(own, hash, HASH_BYTES) == 0)
            return &p->items[i];
    }
    return NULL;
}

static int put_back(const struct patterns *p, const uint8_t *placeholder, struct buf *out,
                    struct err *reterr)
{
    const uint8_t *hash = placeholder + MARKER_BYTES + 1;
    const struct pattern *f = find_hash(p, placeholder[MARKER_BYTES], hash);
    if (!f) {
        char hex[2 * HASH_BYTES + 1] = "";
        encode_hex(bytes_of(hash, HASH_BYTES), hex);
        return err_set(reterr, -EBADMSG,
                       "it holds a secret that is not in the environment any more (its SHA-256 "
                       "begins with %s)",
                       hex);
    }
    const struct bytes b = pattern_bytes(f);
    return buf_append(out, b.data, b.len);
}

int store_unmask(struct bytes payload, const uint8_t marker[8], struct buf **ret,
                 struct err *reterr)
{
    _cleanup_patterns_ struct patterns p = {0};
    _cleanup_buf_ struct buf *out = buf_new(0);
    int r = out ? patterns_make(&p) : -ENOMEM;
    const uint8_t *at = payload.data, *end = payload.data + payload.len;
    for (const uint8_t *m; r == 0 && at < end; at = m + PLACEHOLDER_BYTES) {
        m = memmem(at, (size_t)(end - at), marker, MARKER_BYTES);
        r = buf_append(out, at, (size_t)((m ? m : end) - at));
        if (!m)
            break;
        if (r == 0)
            r = end - m < PLACEHOLDER_BYTES
                    ? err_set(reterr, -EBADMSG, "a placeholder of a secret is cut")
                    : put_back(&p, m, out, reterr);
    }
    if (r == 0)
        *ret = TAKE_PTR(out);
    return r == 0 || r == -EBADMSG ? r : err_set(reterr, -ENOMEM, "out of memory");
}
