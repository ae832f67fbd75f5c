/* Converters that read structure out of a text, and back. */
#include "agent/base/number.h"
#include "ottl/calls.h"
#include "ottl/value_json.h"
#include "proto/any_value.h"

OTTL_FN(parse_json)
{
    struct bytes s = bytes_of("", 0);
    int r = ottl_fn_string(c, 0, env, &s);
    if (r == 0)
        r = ottl_value_from_json(env->arena, s, ret, env->err);
    if (r == 0 && ret->kind != OTTL_MAP && ret->kind != OTTL_LIST)
        return err_set(env->err, -EINVAL,
                       "could not convert parsed value of type %s to JSON object",
                       ottl_kind_name(ret->kind));
    return r;
}

static int digit_value(uint8_t c)
{
    int v = c >= '0' && c <= '9'   ? c - '0'
            : c >= 'a' && c <= 'z' ? c - 'a' + 10
            : c >= 'A' && c <= 'Z' ? c - 'A' + 10
                                   : 99;
    return v;
}

/* The base that "0x", "0o", "0b" and "0" stand for; they are taken off. */
static int take_prefix(struct bytes *s)
{
    if (s->len < 2 || s->data[0] != '0')
        return 10;
    int base = (s->data[1] | 32) == 'x'   ? 16
               : (s->data[1] | 32) == 'o' ? 8
               : (s->data[1] | 32) == 'b' ? 2
                                          : 0;
    size_t n = base ? 2 : 1;
    *s = bytes_of(s->data + n, s->len - n);
    return base ? base : 8;
}

/* Digits as an int64; false when there is none, an odd one, or too many. */
static bool parse_digits(struct bytes s, int base, bool negative, int64_t *ret)
{
    int64_t v = 0;
    for (size_t i = 0; i < s.len; i++) {
        int digit = digit_value(s.data[i]);
        if (digit >= base || __builtin_mul_overflow(v, base, &v) ||
            __builtin_sub_overflow(v, digit, &v))
            return false;
    }
    if (s.len == 0 || (!negative && v == INT64_MIN))
        return false;
    *ret = negative ? v : -v;
    return true;
}

OTTL_FN(parse_int)
{
    struct bytes s = {0};
    int64_t base = 0, v;
    int r = ottl_fn_string(c, 0, env, &s);
    if (r == 0 && s.len == 0)
        r = err_set(env->err, -EINVAL,
                    "invalid target value for ParseInt function, target cannot be empty");
    if (r == 0)
        r = ottl_fn_int(c, 1, env, &base);
    if (r < 0)
        return r;
    if (base < 0)
        return err_set(env->err, -EINVAL,
                       "invalid base value: %lld for ParseInt function, base cannot be negative",
                       (long long)base);
    bool negative = s.data[0] == '-', sign = negative || s.data[0] == '+';
    struct bytes digits = bytes_of(s.data + sign, s.len - sign);
    if (base == 0)
        base = take_prefix(&digits);
    if (base < 2 || base > 36 || !parse_digits(digits, (int)base, negative, &v))
        return err_set(env->err, -EINVAL, "ParseInt: \"%.*s\" is no int64 in base %lld", (int)s.len,
                       s.data, (long long)base);
    *ret = ottl_int(v);
    return 0;
}

/* ---- key=value ---- */

OTTL_PREPARE(key_value)
{
    struct bytes delimiter = ottl_fn_literal(c, 1, "="), pair = ottl_fn_literal(c, 2, " ");
    if (delimiter.len == 0)
        return err_set(reterr, -EINVAL, "delimiter cannot be set to an empty string");
    if (pair.len == 0)
        return err_set(reterr, -EINVAL, "pair delimiter cannot be set to an empty string");
    if (bytes_eq(pair, delimiter))
        return err_set(reterr, -EINVAL,
                       "pair delimiter \"%.*s\" cannot be equal to delimiter \"%.*s\"",
                       (int)pair.len, pair.data, (int)delimiter.len, delimiter.data);
    return 0;
}

static int put_pair(struct ottl_env *env, struct ottl_index *x, struct bytes pair,
                    struct bytes delimiter)
{
    const uint8_t *p = memmem(pair.data, pair.len, delimiter.data, delimiter.len);
    if (!p)
        return err_set(env->err, -EINVAL,
                       "failed to split pairs into key-values: cannot split \"%.*s\" into 2 items, "
                       "got 1 item(s)",
                       (int)pair.len, pair.data);
    size_t at = (size_t)(p - pair.data), behind = at + delimiter.len;
    struct bytes key = ottl_trim_space(bytes_of(pair.data, at));
    struct bytes value = ottl_trim_space(bytes_of(pair.data + behind, pair.len - behind));
    struct ottl_value *there = ottl_index_find(x, key);
    if (!there)
        return ottl_index_append(x, key, ottl_string(value));
    *there = ottl_string(value);
    return 0;
}

/* One pair of those in `rest`, up to the delimiter outside of quotes. The quotes are left out:
 * `out` has room for it. */
static bool next_pair(struct bytes *rest, struct bytes delimiter, uint8_t *out, struct bytes *ret,
                      uint8_t *ret_quote)
{
    uint8_t quote = 0;
    size_t n = 0, i = 0;
    for (bool escaped = false; i < rest->len; i++) {
        uint8_t ch = rest->data[i];
        if (!quote && rest->len - i >= delimiter.len &&
            memcmp(rest->data + i, delimiter.data, delimiter.len) == 0) {
            i += delimiter.len;
            if (n > 0)
                break;
            i--;
            continue;
        }
        if (!escaped && (quote ? ch == quote : ch == '"' || ch == '\'')) {
            quote = quote ? 0 : ch;
            continue;
        }
        escaped = !escaped && ch == '\\';
        out[n++] = ch;
    }
    *rest = bytes_of(rest->data + i, rest->len - i);
    *ret = bytes_of(out, n);
    *ret_quote = quote;
    return n > 0 || quote;
}

OTTL_FN(parse_key_value)
{
    struct bytes s = {0}, pair, delimiter = ottl_fn_literal(c, 1, "=");
    uint8_t quote = 0;
    int r = ottl_fn_string(c, 0, env, &s);
    if (r == 0 && s.len == 0)
        r = err_set(env->err, -EINVAL, "cannot parse from empty target");
    if (r < 0)
        return r;
    struct ottl_map *m = ottl_map_new(env->arena);
    uint8_t *out = arena_alloc(env->arena, s.len);
    struct ottl_index x;
    if (!m || !out || ottl_index_init(&x, env->arena, m) < 0)
        return -ENOMEM;
    struct bytes rest = s;
    while (r == 0 && next_pair(&rest, ottl_fn_literal(c, 2, " "), out, &pair, &quote)) {
        if (quote)
            return err_set(
                env->err, -EINVAL,
                "splitting source \"%.*s\" into pairs failed: never reached the end of a "
                "quoted value",
                (int)s.len, s.data);
        r = put_pair(env, &x, pair, delimiter);
        out += pair.len;
    }
    *ret = ottl_map_value(m);
    return r;
}

/* ---- and back ---- */

static bool contains(struct bytes s, struct bytes part)
{
    return s.len && memmem(s.data, s.len, part.data, part.len);
}

/* In quotes when a delimiter is in it; its own quotes get a backslash. */
static int put_quoted(struct bytes s, struct bytes delimiter, struct bytes pair, struct buf *out)
{
    bool quote = contains(s, delimiter) || contains(s, pair);
    int r = quote ? buf_putc(out, '"') : 0;
    for (size_t i = 0; r == 0 && i < s.len; i++) {
        if (s.data[i] == '"')
            r = buf_putc(out, '\\');
        if (r == 0)
            r = buf_putc(out, (char)s.data[i]);
    }
    return r < 0 || !quote ? r : buf_putc(out, '"');
}

static int put_entry(const struct ottl_call *c, const struct ottl_entry *e, struct buf *out)
{
    _cleanup_buf_ struct buf *any = buf_new(0), *text = buf_new(0);
    struct bytes delimiter = ottl_fn_literal(c, 1, "="), pair = ottl_fn_literal(c, 2, " ");
    if (!any || !text)
        return -ENOMEM;
    int r = ottl_value_encode(&e->value, any);
    if (r == 0)
        r = any_value_text(buf_bytes(any), text);
    if (r == 0)
        r = put_quoted(e->key, delimiter, pair, out);
    if (r == 0)
        r = buf_append(out, delimiter.data, delimiter.len);
    return r < 0 ? r : put_quoted(buf_bytes(text), delimiter, pair, out);
}

static int by_key(const void *a, const void *b)
{
    const struct ottl_value x = ottl_string(((const struct ottl_entry *)a)->key);
    const struct ottl_value y = ottl_string(((const struct ottl_entry *)b)->key);
    return ottl_compare(&x, OTTL_LT, &y) ? -1 : ottl_compare(&x, OTTL_GT, &y);
}

OTTL_FN(to_key_value_string)
{
    _cleanup_buf_ struct buf *out = ottl_fn_buf(env);
    struct bytes pair = ottl_fn_literal(c, 2, " ");
    struct ottl_value v;
    if (!out)
        return -ENOMEM;
    int r = ottl_arg_value(c, 0, env, &v);
    if (r == 0 && v.map->n && ottl_fn_literal_bool(c, 3, false))
        qsort(v.map->items, v.map->n, sizeof(*v.map->items), by_key);
    for (size_t i = 0; r == 0 && i < v.map->n; i++) {
        if (i > 0)
            r = buf_append(out, pair.data, pair.len);
        if (r == 0)
            r = put_entry(c, &v.map->items[i], out);
    }
    return r < 0 ? r : ottl_fn_text(env, out, ret);
}
