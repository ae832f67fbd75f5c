/* Converters of trace and span ids, UUIDs. */
#include <sys/random.h>

#include "agent/base/encode.h"
#include "ottl/calls.h"
#include "ottl/item.h"

/* ---- TraceID, SpanID ---- */

/* Raw bytes of the id's length, or twice as many hex digits. */
static int make_id(struct arena *a, const char *name, struct bytes b, size_t len, struct bytes *ret,
                   struct err *reterr)
{
    if (b.len != len && b.len != 2 * len)
        return err_set(
            reterr, -EINVAL,
            "%s: could not decode ID: invalid length: expected %zu or %zu bytes, got %zu", name,
            len, 2 * len, b.len);
    *ret = b;
    if (b.len == len)
        return 0;
    uint8_t *p = arena_alloc(a, len);
    if (!p)
        return -ENOMEM;
    *ret = bytes_of(p, len);
    return decode_hex(b, p) ? 0
                            : err_set(reterr, -EINVAL, "%s: could not decode ID: invalid hex: %.*s",
                                      name, (int)b.len, b.data);
}

static int id(const struct ottl_call *c, struct ottl_env *env, enum ottl_kind kind, size_t len,
              struct ottl_value *ret)
{
    struct ottl_value v;
    int r = ottl_arg_value(c, 0, env, &v);
    if (r < 0)
        return r;
    struct bytes b = v.kind == OTTL_NIL ? bytes_of("", 0) : v.bytes;
    *ret = (struct ottl_value){.kind = kind};
    return make_id(env->arena, c->function->name, b, len, &ret->bytes, env->err);
}

OTTL_FN(trace_id)
{
    return id(c, env, OTTL_TRACE_ID, 16, ret);
}

OTTL_FN(span_id)
{
    return id(c, env, OTTL_SPAN_ID, 8, ret);
}

/* A literal that is no id is an error at the start. */
static int check_literal(struct ottl_call *c, size_t len, struct err *reterr)
{
    uint8_t decoded[16];
    struct ottl_value v;
    if (!ottl_expr_literal(c->args[0].expr, &v) || (v.kind != OTTL_STRING && v.kind != OTTL_BYTES))
        return 0;
    if (v.bytes.len == 2 * len && !decode_hex(v.bytes, decoded))
        return err_set(reterr, -EINVAL, "%s: could not decode ID: invalid hex: %.*s",
                       c->function->name, (int)v.bytes.len, v.bytes.data);
    struct bytes ret;
    return v.bytes.len == 2 * len ? 0
                                  : make_id(NULL, c->function->name, v.bytes, len, &ret, reterr);
}

OTTL_PREPARE(trace_id)
{
    return check_literal(c, 16, reterr);
}

OTTL_PREPARE(span_id)
{
    return check_literal(c, 8, reterr);
}

/* ---- IsRootSpan ---- */

enum { SPAN_PARENT_SPAN_ID = 4 };

OTTL_FN(is_root_span)
{
    struct wire_field f;
    bool root = true;
    (void)c;
    if (ottl_item_find(env->items[OTTL_SPAN], SPAN_PARENT_SPAN_ID, &f))
        for (size_t i = 0; i < f.bytes.len; i++)
            root = root && f.bytes.data[i] == 0;
    *ret = ottl_bool(root);
    return 0;
}

/* ---- UUID ---- */

/* Version 4, RFC 9562. */
OTTL_FN(uuid)
{
    static const int groups[] = {4, 2, 2, 2, 6};
    uint8_t b[16];
    (void)c;
    if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
        return err_set(env->err, -EINVAL, "UUID: no random numbers");
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    char *p = arena_alloc(env->arena, 36), *out = p;
    if (!p)
        return -ENOMEM;
    for (size_t i = 0, at = 0; i < ARRAY_SIZE(groups); i++) {
        if (i > 0)
            *out++ = '-';
        encode_hex(bytes_of(b + at, (size_t)groups[i]), out);
        out += 2 * groups[i];
        at += (size_t)groups[i];
    }
    *ret = ottl_string(bytes_of(p, 36));
    return 0;
}
