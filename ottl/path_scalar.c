/* Paths to one number, string, id or time. */
#include <errno.h>

#include "agent/base/encode.h"
#include "agent/base/utf8.h"
#include "ottl/path.h"

#define TRACE_ID_BYTES 16
#define SPAN_ID_BYTES 8

static const char *const kind_names[] = {"Unspecified", "Internal", "Server",
                                         "Client",      "Producer", "Consumer"};
static const char *const old_kind_names[] = {"SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL",
                                             "SPAN_KIND_SERVER",      "SPAN_KIND_CLIENT",
                                             "SPAN_KIND_PRODUCER",    "SPAN_KIND_CONSUMER"};

/* ---- reading ---- */

static int read_id(enum ottl_kind kind, size_t len, struct bytes id, struct ottl_value *ret)
{
    static const uint8_t none[TRACE_ID_BYTES];
    *ret = (struct ottl_value){.kind = kind, .bytes = id.len == len ? id : bytes_of(none, len)};
    return 0;
}

static int read_hex_id(struct ottl_env *env, size_t len, struct bytes id, struct ottl_value *ret)
{
    struct ottl_value v;
    read_id(OTTL_SPAN_ID, len, id, &v);
    char *text = arena_alloc(env->arena, 2 * len);
    if (!text)
        return -ENOMEM;
    encode_hex(v.bytes, text);
    *ret = ottl_string(bytes_of(text, 2 * len));
    return 0;
}

static int read_kind(int64_t kind, const char *const *kinds, size_t n, struct ottl_value *ret)
{
    bool known = kind >= 0 && (size_t)kind < n;
    *ret = ottl_string(bytes_str(known ? kinds[kind] : ""));
    return 0;
}

static int64_t unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* `f` is all zero when the field is not there. */
static int read_scalar(struct ottl_env *env, enum ottl_scalar type, const struct wire_field *f,
                       struct ottl_value *ret)
{
    switch (type) {
    case SCALAR_STRING: *ret = ottl_string(f->bytes); return 0;
    case SCALAR_BOOL: *ret = ottl_bool(f->value != 0); return 0;
    case SCALAR_ENUM: *ret = ottl_int((int32_t)f->value); return 0;
    case SCALAR_SINT32: *ret = ottl_int((int32_t)unzigzag(f->value)); return 0;
    case SCALAR_UINT32:
    case SCALAR_FIXED32:
    case SCALAR_FLAGS: *ret = ottl_int((uint32_t)f->value); return 0;
    case SCALAR_FIXED64:
    case SCALAR_VALUE_INT: *ret = ottl_int((int64_t)f->value); return 0;
    case SCALAR_TIME: *ret = (struct ottl_value){OTTL_TIME, {.i = (int64_t)f->value}, 0}; return 0;
    case SCALAR_DOUBLE:
    case SCALAR_DOUBLE_SET:
    case SCALAR_VALUE_DOUBLE: *ret = ottl_double(wire_double(f->value)); return 0;
    case SCALAR_TRACE_ID: return read_id(OTTL_TRACE_ID, TRACE_ID_BYTES, f->bytes, ret);
    case SCALAR_SPAN_ID: return read_id(OTTL_SPAN_ID, SPAN_ID_BYTES, f->bytes, ret);
    case SCALAR_TRACE_ID_HEX: return read_hex_id(env, TRACE_ID_BYTES, f->bytes, ret);
    case SCALAR_SPAN_ID_HEX: return read_hex_id(env, SPAN_ID_BYTES, f->bytes, ret);
    case SCALAR_KIND: return read_kind((int32_t)f->value, kind_names, ARRAY_SIZE(kind_names), ret);
    case SCALAR_OLD_KIND:
        return read_kind((int32_t)f->value, old_kind_names, ARRAY_SIZE(old_kind_names), ret);
    }
    return -EINVAL;
}

/* The field, in the item or in a message inside of it; all zero when it is not there. */
static struct wire_field find_scalar(const struct ottl_path *p, const struct ottl_item *it,
                                     uint32_t number)
{
    struct wire_field f = {0};
    const struct ottl_path_row *row = ottl_path_self(p)->row;
    uint8_t inside = row->inside[it->point];
    bool found = ottl_item_find(it, inside ? inside : number, &f);
    if (found && inside)
        found = wire_find(f.bytes, number, &f);
    return found ? f : (struct wire_field){0};
}

static int scalar_get(const struct ottl_path *p, struct ottl_env *env, struct ottl_value *ret)
{
    struct ottl_item *it;
    int r = ottl_path_item(p, env, &it);
    if (r < 0)
        return r;
    uint32_t number = ottl_path_number(p, it);
    *ret = ottl_nil();
    if (number == 0)
        return 0;
    struct wire_field f = find_scalar(p, it, number);
    return read_scalar(env, ottl_path_self(p)->row->type, &f, ret);
}

/* ---- writing ---- */

static int take_int(struct ottl_env *env, const struct ottl_value *v, uint64_t *ret)
{
    if (v->kind != OTTL_INT)
        return ottl_expects(env, "int64", v);
    *ret = (uint64_t)v->i;
    return 0;
}

static int take_double(struct ottl_env *env, const struct ottl_value *v, uint64_t *ret)
{
    if (v->kind != OTTL_DOUBLE)
        return ottl_expects(env, "float64", v);
    memcpy(ret, &v->d, sizeof(*ret));
    return 0;
}

static int take_flags(struct ottl_env *env, const struct ottl_value *v, uint64_t *ret)
{
    int r = take_int(env, v, ret);
    if (r == 0 && *ret > UINT32_MAX)
        return err_set(env->err, -EINVAL, "value %lld is out of range for uint32", (long long)v->i);
    return r;
}

static int take_time(struct ottl_env *env, const struct ottl_value *v, uint64_t *ret)
{
    if (v->kind != OTTL_TIME)
        return ottl_expects(env, "time.Time", v);
    *ret = (uint64_t)v->i;
    return 0;
}

static int take_kind(struct ottl_env *env, const struct ottl_value *v, bool old, uint64_t *ret)
{
    const char *const *kinds = old ? old_kind_names : kind_names;
    if (v->kind != OTTL_STRING)
        return ottl_expects(env, "string", v);
    for (size_t i = 0; i < ARRAY_SIZE(kind_names); i++)
        if (bytes_eq_str(v->bytes, kinds[i])) {
            *ret = i;
            return 0;
        }
    return err_set(env->err, -EINVAL, "unknown span kind %sstring", old ? "deprecated " : "");
}

static int take_string(struct ottl_env *env, const struct ottl_value *v, struct bytes *ret)
{
    if (v->kind != OTTL_STRING)
        return ottl_expects(env, "string", v);
    *ret = v->bytes;
    if (utf8_valid(v->bytes))
        return 0;
    _cleanup_buf_ struct buf *good = buf_new(0);
    char *copy = NULL;
    if (good && utf8_append(v->bytes, good) == 0)
        copy = arena_strndup(env->arena, (const char *)good->data, good->len);
    *ret = bytes_of(copy, copy ? good->len : 0);
    return copy ? 0 : -ENOMEM;
}

/* An id of zero bytes is none, and not written. */
static int take_id(struct ottl_env *env, const struct ottl_value *v, enum ottl_kind kind,
                   struct bytes *ret)
{
    static const uint8_t none[TRACE_ID_BYTES];
    if (v->kind != kind)
        return ottl_expects(env, kind == OTTL_TRACE_ID ? "pcommon.TraceID" : "pcommon.SpanID", v);
    bool zero = v->bytes.len <= sizeof(none) && bytes_eq(v->bytes, bytes_of(none, v->bytes.len));
    *ret = zero ? bytes_of(NULL, 0) : v->bytes;
    return 0;
}

static int take_hex_id(struct ottl_env *env, const struct ottl_value *v, bool trace,
                       struct bytes *ret)
{
    size_t len = trace ? TRACE_ID_BYTES : SPAN_ID_BYTES;
    struct bytes text;
    int r = take_string(env, v, &text);
    if (r < 0)
        return r;
    if (text.len / 2 != len)
        return err_set(env->err, -EINVAL, "%s ids must be %zu hex characters",
                       trace ? "trace" : "span", 2 * len);
    uint8_t *id = arena_alloc(env->arena, len);
    if (!id)
        return -ENOMEM;
    if (!decode_hex(text, id))
        return err_set(env->err, -EINVAL, "encoding/hex: invalid byte in the id");
    struct ottl_value bin = {.kind = trace ? OTTL_TRACE_ID : OTTL_SPAN_ID, .bytes = {id, len}};
    return take_id(env, &bin, bin.kind, ret);
}

/* `v` as it is on the wire, in type, value and bytes of *ret. */
static int encode_scalar(struct ottl_env *env, enum ottl_scalar type, const struct ottl_value *v,
                         struct wire_field *ret)
{
    uint64_t n = 0;
    int r;
    *ret = (struct wire_field){.type = WIRE_LEN};
    switch (type) {
    case SCALAR_STRING: return take_string(env, v, &ret->bytes);
    case SCALAR_TRACE_ID: return take_id(env, v, OTTL_TRACE_ID, &ret->bytes);
    case SCALAR_SPAN_ID: return take_id(env, v, OTTL_SPAN_ID, &ret->bytes);
    case SCALAR_TRACE_ID_HEX: return take_hex_id(env, v, true, &ret->bytes);
    case SCALAR_SPAN_ID_HEX: return take_hex_id(env, v, false, &ret->bytes);
    default: break;
    }
    ret->type = WIRE_VARINT;
    switch (type) {
    case SCALAR_BOOL:
        r = v->kind == OTTL_BOOL ? 0 : ottl_expects(env, "bool", v);
        n = r == 0 && v->b;
        break;
    case SCALAR_UINT32:
        r = take_int(env, v, &n);
        n = (uint32_t)n;
        break;
    case SCALAR_ENUM:
        r = take_int(env, v, &n);
        n = (uint64_t)(int64_t)(int32_t)n;
        break;
    case SCALAR_SINT32:
        r = take_int(env, v, &n);
        n = (uint32_t)((uint32_t)n << 1) ^ (uint32_t)((int32_t)n >> 31);
        break;
    case SCALAR_KIND: r = take_kind(env, v, false, &n); break;
    case SCALAR_OLD_KIND: r = take_kind(env, v, true, &n); break;
    case SCALAR_FIXED32:
    case SCALAR_FLAGS:
        r = type == SCALAR_FLAGS ? take_flags(env, v, &n) : take_int(env, v, &n);
        n = (uint32_t)n;
        ret->type = WIRE_I32;
        break;
    default:
        r = type == SCALAR_TIME                                  ? take_time(env, v, &n)
            : type == SCALAR_FIXED64 || type == SCALAR_VALUE_INT ? take_int(env, v, &n)
                                                                 : take_double(env, v, &n);
        ret->type = WIRE_I64;
        break;
    }
    ret->value = n;
    return r;
}

/* What is zero is left out, except where zero is told from absent. */
static bool is_absent(enum ottl_scalar type, const struct wire_field *f)
{
    if (type == SCALAR_DOUBLE_SET || type == SCALAR_VALUE_DOUBLE || type == SCALAR_VALUE_INT)
        return false;
    return f->type == WIRE_LEN ? f->bytes.len == 0 : f->value == 0;
}

static int put_field(struct ottl_item *it, bool absent, const struct wire_field *f)
{
    return absent ? ottl_item_remove(it, f->number)
                  : ottl_item_set(it, f->number, f->type, f->value, f->bytes);
}

/* The same in the message that is field `inside` of the item. */
static int put_inside(struct ottl_item *it, uint32_t inside, bool absent,
                      const struct wire_field *f)
{
    struct ottl_item child;
    struct wire_field old;
    bool there = ottl_item_find(it, inside, &old);
    ottl_item_init(&child, there ? old.bytes : bytes_of(NULL, 0), it->mem);
    int r = put_field(&child, absent, f);
    if (r < 0 || !child.changed)
        return r;
    buf_truncate(it->mem->scratch, 0);
    r = ottl_item_write(&child, it->mem->scratch);
    return r < 0 ? -ENOMEM : ottl_item_set(it, inside, WIRE_LEN, 0, buf_bytes(it->mem->scratch));
}

static int scalar_set(const struct ottl_path *p, struct ottl_env *env, const struct ottl_value *v)
{
    const struct ottl_path_row *row = ottl_path_self(p)->row;
    struct ottl_item *it;
    struct wire_field f;
    int r = ottl_path_item(p, env, &it);
    if (r == 0)
        r = encode_scalar(env, row->type, v, &f);
    if (r < 0)
        return r;
    f.number = ottl_path_number(p, it);
    if (f.number == 0)
        return ottl_wrong_point(p, env, it);
    bool absent = is_absent(row->type, &f);
    if (row->inside[it->point])
        return put_inside(it, row->inside[it->point], absent, &f);
    r = row->other[it->point] ? ottl_item_remove(it, row->other[it->point]) : 0;
    return r < 0 ? r : put_field(it, absent, &f);
}

const struct ottl_path_ops ottl_scalar_ops = {scalar_get, scalar_set};

/* ---- what stands beside the message ---- */

static int schema_url_get(const struct ottl_path *p, struct ottl_env *env, struct ottl_value *ret)
{
    struct ottl_item *it;
    int r = ottl_path_item(p, env, &it);
    if (r == 0)
        *ret = ottl_string(it->schema_url);
    return r;
}

static int schema_url_set(const struct ottl_path *p, struct ottl_env *env,
                          const struct ottl_value *v)
{
    struct ottl_item *it;
    struct bytes url;
    int r = ottl_path_item(p, env, &it);
    if (r == 0)
        r = take_string(env, v, &url);
    if (r < 0 || bytes_eq(url, it->schema_url))
        return r;
    char *copy = arena_strndup(it->mem->arena, (const char *)url.data, url.len);
    if (!copy)
        return -ENOMEM;
    it->schema_url = bytes_of(copy, url.len);
    it->schema_changed = true;
    return 0;
}

const struct ottl_path_ops ottl_schema_url_ops = {schema_url_get, schema_url_set};

static int event_index_get(const struct ottl_path *p, struct ottl_env *env, struct ottl_value *ret)
{
    (void)p;
    *ret = ottl_int((int64_t)env->event_index);
    return 0;
}

static int event_index_set(const struct ottl_path *p, struct ottl_env *env,
                           const struct ottl_value *v)
{
    (void)p;
    (void)v;
    return err_set(env->err, -EINVAL, "the 'event_index' path cannot be modified");
}

const struct ottl_path_ops ottl_event_index_ops = {event_index_get, event_index_set};
