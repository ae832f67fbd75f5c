/* Batches from JSON and back, paths and values from short texts: for tests of the transformation language. */
#ifndef OTTL_BATCHES_H
#define OTTL_BATCHES_H

#include <ctype.h>
#include <errno.h>

#include "agent/base/encode.h"
#include "ottl/item.h"
#include "ottl/walk.h"
#include "proto/json.h"

static inline struct batch *ottl_rig_batch(enum signal s, const char *json)
{
    struct buf *wire = buf_new(0);
    struct batch *b = NULL;
    struct err e = {.text = ""};
    if (json_read(schema_request(s), bytes_str(json), wire, &e) < 0)
        fail_msg("%s in %s", e.text, json);
    assert_int_equal(batch_from_wire(s, wire, &b, &e), 0);
    return b;
}

static inline const char *ottl_rig_json(const struct batch *b, struct buf *out)
{
    buf_truncate(out, 0);
    assert_int_equal(json_write_batch(b, 0, out), 0);
    return buf_str(out);
}

/* `a.b["k"][0].c` without the context; keys that are names need no quotes here. */
static inline int ottl_rig_path(enum ottl_context c, const char *text, struct arena *a, struct ottl_path *ret, struct err *e)
{
    struct ottl_segment *segments = arena_calloc(a, 8 * sizeof(*segments));
    struct ottl_path_text p = {.context = c, .segments = segments, .text = bytes_of(arena_strdup(a, text), strlen(text))};
    for (const char *t = text; *t;) {
        struct ottl_segment *s = &segments[p.n++];
        struct ottl_key *keys = arena_calloc(a, 8 * sizeof(*keys));
        s->column = (unsigned)(t - text) + 1;
        s->keys = keys;
        s->name = bytes_of(t, strcspn(t, ".["));
        t += s->name.len;
        while (*t == '[') {
            size_t n = strcspn(++t, "]");
            struct ottl_key *k = &keys[s->nkeys++];
            if (isdigit((unsigned char)*t) || *t == '-')
                *k = (struct ottl_key){.is_int = true, .i = atoll(t)};
            else
                *k = (struct ottl_key){.is_string = true, .s = bytes_of(t, n)};
            t += n + 1;
        }
        t += *t == '.';
    }
    return ottl_path_resolve(&p, a, ret, e);
}

/* "n", "s:text", "i:1", "d:1.5", "b:true", "t:1" (time), "T:hex", "S:hex" (ids), "j:{…}" (an AnyValue in JSON). */
static inline struct ottl_value ottl_rig_value(struct arena *a, const char *text)
{
    const char *rest = strlen(text) > 2 ? text + 2 : "";
    struct ottl_value v = ottl_nil();
    switch (text[0]) {
    case 'n': return v;
    case 's': return ottl_string(bytes_str(rest));
    case 'i': return ottl_int(atoll(rest));
    case 'd': return ottl_double(atof(rest));
    case 'b': return ottl_bool(*rest == 't');
    case 't': return (struct ottl_value){.kind = OTTL_TIME, .i = atoll(rest)};
    case 'D': return (struct ottl_value){.kind = OTTL_DURATION, .i = atoll(rest)};
    case 'T':
    case 'S': {
        uint8_t *id = arena_alloc(a, 16);
        assert_true(decode_hex(bytes_str(rest), id));
        return (struct ottl_value){.kind = *text == 'T' ? OTTL_TRACE_ID : OTTL_SPAN_ID, .bytes = {id, strlen(rest) / 2}};
    }
    case 'j': {
        _cleanup_buf_ struct buf *any = buf_new(0);
        struct err e;
        if (json_read(schema_find("opentelemetry.proto.common.v1.AnyValue"), bytes_str(rest), any, &e) < 0)
            fail_msg("%s in %s", e.text, rest);
        uint8_t *copy = arena_alloc(a, any->len + 1);
        memcpy(copy, any->data, any->len);
        assert_int_equal(ottl_value_decode(a, bytes_of(copy, any->len), &v), 0);
        return v;
    }
    default: fail_msg("value \"%s\"?", text);
    }
    return v;
}

/* The kind and the text: "int64 5", "nil", "slice of items 2". */
static inline const char *ottl_rig_text(struct arena *a, const struct ottl_value *v)
{
    struct bytes text = {0};
    bool nil;
    if (v->kind == OTTL_ITEMS)
        return arena_printf(a, "%s %u", ottl_kind_name(v->kind), v->items);
    if (v->kind == OTTL_TIME)
        return arena_printf(a, "time %lld", (long long)v->i);
    if (v->kind == OTTL_TRACE_ID || v->kind == OTTL_SPAN_ID) {
        char hex[33] = "";
        encode_hex(v->bytes, hex);
        return arena_printf(a, "%s %s", ottl_kind_name(v->kind), hex);
    }
    assert_int_equal(ottl_value_text(a, v, &text, &nil), 0);
    return nil ? "nil" : arena_printf(a, "%s %.*s", ottl_kind_name(v->kind), (int)text.len, (const char *)text.data);
}

#endif
