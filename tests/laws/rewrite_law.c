#include "proto/check.h"
#include "proto/rewrite.h"
#include "proto/schema_pbc.h"
#include "tests/laws/laws.h"

enum { HEAD_RESOURCE = 1, HEAD_SCOPE, RECORD };

static enum edit keep_head(void *ctx, struct bytes head, struct buf *out)
{
    (void)ctx;
    buf_append(out, head.data, head.len);
    return EDIT_REPLACE;
}

static enum edit keep_scope(void *ctx, struct bytes resource, struct bytes scope, struct buf *out)
{
    (void)resource;
    return keep_head(ctx, scope, out);
}

static enum edit keep_record(void *ctx, struct bytes resource, struct bytes scope,
                             struct bytes record, struct buf *out)
{
    (void)resource, (void)scope, (void)record, (void)out, (void)ctx;
    return EDIT_KEEP;
}

void law_rewrite_nothing(struct batch *b)
{
    struct otlp_rewriter rw[] = {{NULL}, {keep_head, keep_scope, keep_record, NULL}};
    for (size_t i = 0; i < ARRAY_SIZE(rw); i++) {
        struct batch *same;
        LAW("rewriting works", otlp_rewrite(&rw[i], b, &same) == 0);
        LAW("a rewrite that changes nothing gives the same batch", same == b);
        batch_unref(same);
    }
}

/* The same edits, chosen by the content, on bytes and on objects. */
struct edits {
    enum signal signal;
    uint32_t seed;
};

static const struct schema_message *message_of(enum signal s, int what)
{
    const struct schema_message *entry = schema_field(schema_request(s), OTLP_ENTRIES)->message;
    const struct schema_message *scope = schema_field(entry, ENTRY_ITEMS)->message;
    if (what == HEAD_RESOURCE)
        return schema_field(entry, ENTRY_HEAD)->message;
    return schema_field(scope, what == HEAD_SCOPE ? ENTRY_HEAD : ENTRY_ITEMS)->message;
}

/* The number of the repeated KeyValue field that an edit appends to. */
static uint32_t attributes_of(enum signal s, int what)
{
    static const uint32_t records[] = {9, 12, 6};
    return what == HEAD_RESOURCE ? 1 : what == HEAD_SCOPE ? 3 : records[s];
}

static struct buf *packed(const ProtobufCMessage *m)
{
    struct buf *b = buf_new(0);
    LAW("memory", b && buf_reserve(b, 1 + protobuf_c_message_get_packed_size(m)) == 0);
    buf_commit(b, protobuf_c_message_pack(m, buf_tail(b)));
    return b;
}

static enum edit choose(const struct edits *e, int what, const ProtobufCMessage *m)
{
    _cleanup_buf_ struct buf *b = packed(m);
    uint32_t hash = 2166136261u ^ e->seed ^ (uint32_t)what << 8;
    for (size_t i = 0; i < b->len; i++)
        hash = (hash ^ b->data[i]) * 16777619u;
    static const enum edit edits[] = {EDIT_KEEP, EDIT_REPLACE, EDIT_DROP, EDIT_KEEP};
    return edits[(hash >> 13) % (what == RECORD ? 4 : 3)];
}

static const char attribute[] = "\x0a\x01k\x12\x03\x0a\x01v"; /* k = "v" */

static enum edit edit_wire(const struct edits *e, int what, struct bytes in, struct buf *out)
{
    const struct schema_message *m = message_of(e->signal, what);
    ProtobufCMessage *u = protobuf_c_message_unpack(schema_descriptor(m), NULL, in.len, in.data);
    LAW("a callback is shown a message", u);
    enum edit edit = choose(e, what, u);
    if (edit == EDIT_REPLACE) {
        buf_append(out, in.data, in.len);
        wire_put_bytes(out, attributes_of(e->signal, what),
                       bytes_of(attribute, sizeof(attribute) - 1));
    }
    protobuf_c_message_free_unpacked(u, NULL);
    return edit;
}

static enum edit edit_resource(void *ctx, struct bytes resource, struct buf *out)
{
    return edit_wire(ctx, HEAD_RESOURCE, resource, out);
}

static enum edit edit_scope(void *ctx, struct bytes resource, struct bytes scope, struct buf *out)
{
    (void)resource;
    return edit_wire(ctx, HEAD_SCOPE, scope, out);
}

static enum edit edit_record(void *ctx, struct bytes resource, struct bytes scope,
                             struct bytes record, struct buf *out)
{
    (void)resource, (void)scope;
    return edit_wire(ctx, RECORD, record, out);
}

/* A repeated message field of an object. */
struct items {
    size_t *n;
    ProtobufCMessage ***p;
};

static struct items items_of(ProtobufCMessage *m, uint32_t number)
{
    const ProtobufCFieldDescriptor *f =
        protobuf_c_message_descriptor_get_field(m->descriptor, number);
    char *base = (char *)m;
    return (struct items){(size_t *)(base + f->quantifier_offset),
                          (ProtobufCMessage ***)(base + f->offset)};
}

static void append_attribute(ProtobufCMessage *m, uint32_t number)
{
    struct items attrs = items_of(m, number);
    const struct schema_message *kv = schema_find("opentelemetry.proto.common.v1.KeyValue");
    ProtobufCMessage **p = realloc(*attrs.p, (*attrs.n + 1) * sizeof(*p));
    LAW("memory", p);
    p[(*attrs.n)++] = protobuf_c_message_unpack(schema_descriptor(kv), NULL, sizeof(attribute) - 1,
                                                (const uint8_t *)attribute);
    *attrs.p = p;
}

static ProtobufCMessage **head_of(ProtobufCMessage *entry)
{
    const ProtobufCFieldDescriptor *f =
        protobuf_c_message_descriptor_get_field(entry->descriptor, ENTRY_HEAD);
    return (ProtobufCMessage **)((char *)entry + f->offset);
}

/* False: the entry is to be dropped. */
static bool edit_object_head(const struct edits *e, int what, ProtobufCMessage *entry)
{
    ProtobufCMessage **head = head_of(entry);
    const ProtobufCMessageDescriptor *d = schema_descriptor(message_of(e->signal, what));
    ProtobufCMessage *m = *head ? *head : protobuf_c_message_unpack(d, NULL, 0, NULL);
    enum edit edit = choose(e, what, m);
    if (edit == EDIT_REPLACE) {
        append_attribute(m, attributes_of(e->signal, what));
        *head = m;
    } else if (m != *head) {
        protobuf_c_message_free_unpacked(m, NULL);
    }
    return edit != EDIT_DROP;
}

/* Edits the items of `m`; false: there were some, and all were dropped. */
static bool edit_objects(const struct edits *e, int level, ProtobufCMessage *m)
{
    struct items items = items_of(m, level == 0 ? OTLP_ENTRIES : ENTRY_ITEMS);
    size_t n = *items.n;
    *items.n = 0;
    for (size_t i = 0; i < n; i++) {
        ProtobufCMessage *item = (*items.p)[i];
        bool keep;
        if (level == 2) {
            enum edit edit = choose(e, RECORD, item);
            if (edit == EDIT_REPLACE)
                append_attribute(item, attributes_of(e->signal, RECORD));
            keep = edit != EDIT_DROP;
        } else {
            keep = edit_object_head(e, level == 0 ? HEAD_RESOURCE : HEAD_SCOPE, item) &&
                   edit_objects(e, level + 1, item);
        }
        if (keep)
            (*items.p)[(*items.n)++] = item;
        else
            protobuf_c_message_free_unpacked(item, NULL);
    }
    return n == 0 || *items.n > 0;
}

static ProtobufCMessage *decoded(enum signal s, const struct batch *b)
{
    _cleanup_buf_ struct buf *all = batch_flatten(b);
    ProtobufCMessage *m =
        protobuf_c_message_unpack(schema_descriptor(schema_request(s)), NULL, all->len, all->data);
    LAW("protobuf-c decodes a batch", m);
    return m;
}

static void same_objects(ProtobufCMessage *a, ProtobufCMessage *b)
{
    _cleanup_buf_ struct buf *x = packed(a), *y = packed(b);
    LAW("rewrite then decode equals decode then edit", bytes_eq(buf_bytes(x), buf_bytes(y)));
    protobuf_c_message_free_unpacked(a, NULL);
    protobuf_c_message_free_unpacked(b, NULL);
}

void law_rewrite_edits(struct batch *b, uint32_t seed)
{
    struct edits e = {b->signal, seed};
    struct otlp_rewriter rw = {edit_resource, edit_scope, edit_record, &e};
    struct batch *edited;
    struct otlp_checked c;
    LAW("rewriting works", otlp_rewrite(&rw, b, &edited) == 0);
    ProtobufCMessage *objects = decoded(b->signal, b);
    if (!edit_objects(&e, 0, objects)) {
        LAW("all dropped: no segments", edited->nsegs == 0 && edited->records == 0);
        protobuf_c_message_free_unpacked(objects, NULL);
    } else {
        same_objects(objects, decoded(b->signal, edited));
    }
    for (unsigned i = 0; i < edited->nsegs; i++)
        LAW("rewritten bytes are valid",
            otlp_check(b->signal, buf_bytes(edited->segs[i]), &c, NULL) == 0 && c.canonical);
    batch_unref(edited);
}
