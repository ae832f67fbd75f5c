#include <errno.h>

#include "proto/check.h"
#include "proto/schema_pbc.h"
#include "tests/laws/laws.h"

_Noreturn void law_broken(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: law broken: %s\n", file, line, what);
    abort();
}

struct buf *law_copy(struct bytes wire)
{
    struct buf *b = buf_new(0);
    LAW("memory", b && buf_append(b, wire.data, wire.len) == 0);
    return b;
}

/* What we refuse on purpose and protobuf-c takes: it does not look at the wire type of bools. */
static bool stricter(const char *reason)
{
    static const char *const reasons[] = {"id of", "field number 0", "more than 32 bits",
                                          "in field bool_value, expected 0",
                                          "in field is_monotonic, expected 0"};
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (strstr(reason, reasons[i]))
            return true;
    return false;
}

/* Field 1000, which protobuf-c does not know, may be somewhere. */
static bool may_have_old_scopes(struct bytes wire)
{
    return wire.len && memmem(wire.data, wire.len, "\xc2\x3e", 2);
}

/* True when a message field comes twice somewhere. protobuf-c merges in a way of its own: explicit
 * zeros do not win, and two empty AnyValues are refused. */
static bool has_merges(const struct schema_message *m, struct bytes msg)
{
    struct wire_reader r = wire_reader(msg);
    struct wire_field w;
    uint64_t seen = 0;
    while (wire_next(&r, &w) > 0) {
        const struct schema_field *f = schema_field(m, w.number);
        if (!f || f->kind != KIND_MESSAGE)
            continue;
        if (!f->repeated && f->oneof < 0 && (seen & 1ull << f->number))
            return true;
        seen |= 1ull << f->number;
        if (has_merges(f->message, w.bytes))
            return true;
    }
    return false;
}

static struct buf *repacked(const struct schema_message *m, struct bytes wire)
{
    ProtobufCMessage *u =
        protobuf_c_message_unpack(schema_descriptor(m), NULL, wire.len, wire.data);
    if (!u)
        return NULL;
    struct buf *b = buf_new(0);
    LAW("memory", b && buf_reserve(b, protobuf_c_message_get_packed_size(u)) == 0);
    if (b->cap)
        buf_commit(b, protobuf_c_message_pack(u, buf_tail(b)));
    protobuf_c_message_free_unpacked(u, NULL);
    return b;
}

static void same_content(const struct schema_message *m, struct bytes wire, struct bytes fixed,
                         const struct buf *plain)
{
    struct otlp_checked again;
    enum signal s = SIGNAL_TRACES;
    while (schema_request(s) != m)
        s++;
    LAW("the canonical form is valid", otlp_check(s, fixed, &again, NULL) == 0);
    LAW("the canonical form is canonical", again.canonical);
    _cleanup_buf_ struct buf *other = repacked(m, fixed);
    LAW("protobuf-c takes the canonical form", other);
    if (may_have_old_scopes(wire) || has_merges(m, wire))
        return;
    LAW("protobuf-c takes it, too", plain);
    if (!bytes_eq(
            buf_bytes(plain),
            buf_bytes(other))) /* then some UTF-8 was replaced, and by more bytes or as many */
        LAW("the canonical form has the same content",
            memmem(fixed.data, fixed.len, "\xef\xbf\xbd", 3));
}

bool law_check(enum signal s, struct bytes wire)
{
    const struct schema_message *m = schema_request(s);
    struct otlp_checked c;
    struct err err = {0};
    int r = otlp_check(s, wire, &c, &err);
    LAW("an error has a text", r == 0 || (r == -EBADMSG && err.text[0]));
    if (r < 0 && strstr(err.text, "nested deeper")) /* protobuf-c would recurse without a limit */
        return false;
    _cleanup_buf_ struct buf *plain = repacked(m, wire);
    if (r < 0) {
        LAW(err.text, !plain || stricter(err.text) ||
                          may_have_old_scopes(wire)); /* protobuf-c refuses it, too */
        return false;
    }
    LAW("records are counted", c.records == otlp_count(s, c.canonical ? wire : buf_bytes(c.fixed)));
    LAW("protobuf-c takes it, too", plain || !c.canonical);
    if (c.canonical)
        LAW("records are those that protobuf-c sees", c.records == otlp_count(s, buf_bytes(plain)));
    else
        same_content(m, wire, buf_bytes(c.fixed), plain);
    buf_unref(c.fixed);
    return true;
}

void law_all(enum signal s, struct bytes wire)
{
    struct batch *b;
    if (!law_check(s, wire))
        return;
    LAW("a valid request makes a batch", batch_from_wire(s, law_copy(wire), &b, NULL) == 0);
    law_rewrite_nothing(b);
    for (uint32_t seed = 0; seed < 3; seed++)
        law_rewrite_edits(b, seed);
    for (uint32_t max = 1; max < 200; max = max * 3 + 1)
        law_split(b, max, 0);
    for (size_t max = 1; max < 4096; max *= 8)
        law_split(b, 0, max);
    law_split(b, 2, 100);
    law_order(s, buf_bytes(b->segs[0]));
    batch_unref(b);
}
