/* Converters of encodings, check digits and network addresses. */
#include <arpa/inet.h>

#include "agent/base/encode.h"
#include "ottl/calls.h"

/* ---- base64 ---- */

struct variant {
    const char *name;
    bool padded, url;
};
static const struct variant variants[] = {
    {"base64", true, false},
    {"base64-raw", false, false},
    {"base64-url", true, true},
    {"base64-raw-url", false, true},
};

static const struct variant *find_variant(struct bytes name)
{
    for (size_t i = 0; i < ARRAY_SIZE(variants); i++)
        if (bytes_eq_str(name, variants[i].name))
            return &variants[i];
    return NULL;
}

static void replace(char *p, size_t n, char from, char to)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] == from)
            p[i] = to;
}

OTTL_FN(base64_encode)
{
    struct bytes s = bytes_of("", 0), name = bytes_str("base64");
    int r = ottl_fn_string(c, 0, env, &s);
    if (r == 0)
        r = ottl_fn_string(c, 1, env, &name);
    const struct variant *v = find_variant(name);
    if (r == 0 && !v)
        r = err_set(env->err, -EINVAL, "unsupported base64 variant: %.*s", (int)name.len,
                    name.data);
    if (r < 0)
        return r;
    size_t n = base64_size(s.len);
    char *p = arena_alloc(env->arena, n + 1);
    if (!p)
        return -ENOMEM;
    encode_base64(s, p);
    while (!v->padded && n && p[n - 1] == '=')
        n--;
    if (v->url) {
        replace(p, n, '+', '-');
        replace(p, n, '/', '_');
    }
    *ret = ottl_string(bytes_of(p, n));
    return 0;
}

/* The text in the standard alphabet with padding; false when it has a character of the other
 * alphabet, or padding that it must not have. Line ends are left out. `out` has room for three more
 * bytes. */
static bool standardize(struct bytes s, const struct variant *v, char *out, size_t *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        char ch = (char)s.data[i];
        if (ch == '\r' || ch == '\n')
            continue;
        if ((v->url ? ch == '+' || ch == '/' : ch == '-' || ch == '_') || (!v->padded && ch == '='))
            return false;
        out[n++] = ch;
    }
    replace(out, n, '-', '+');
    replace(out, n, '_', '/');
    while (!v->padded && n % 4)
        out[n++] = '=';
    *ret = n;
    return true;
}

OTTL_PREPARE(decode)
{
    struct ottl_value v;
    if (!ottl_expr_literal(c->args[1].expr, &v) || v.kind != OTTL_STRING || find_variant(v.bytes))
        return 0;
    return err_set(reterr, -EINVAL,
                   "unsupported encoding \"%.*s\": expected base64, base64-raw, base64-url or "
                   "base64-raw-url",
                   (int)v.bytes.len, v.bytes.data);
}

OTTL_FN(decode)
{
    struct ottl_value v;
    struct bytes name = {0};
    int r = ottl_arg_value(c, 0, env, &v);
    if (r == 0)
        r = ottl_fn_string(c, 1, env, &name);
    const struct variant *variant = r < 0 ? NULL : find_variant(name);
    if (r == 0 && !variant)
        r = err_set(env->err, -EINVAL, "unsupported encoding \"%.*s\"", (int)name.len, name.data);
    if (r == 0 && v.kind != OTTL_STRING && v.kind != OTTL_BYTES)
        r = err_set(env->err, -EINVAL, "unsupported type provided to Decode function: %s",
                    ottl_kind_name(v.kind));
    if (r < 0)
        return r;
    char *text = arena_alloc(env->arena, v.bytes.len + 4), *out;
    out = arena_alloc(env->arena, v.bytes.len + 4);
    size_t n, len = 0;
    if (!text || !out)
        return -ENOMEM;
    if (!standardize(v.bytes, variant, text, &n) || !decode_base64(bytes_of(text, n), out, &len))
        return err_set(env->err, -EINVAL, "could not decode: no %s text", variant->name);
    *ret = ottl_string(bytes_of(out, len));
    return 0;
}

/* ---- IsValidLuhn ---- */

OTTL_FN(is_valid_luhn)
{
    struct ottl_value v;
    int r = ottl_arg_value(c, 0, env, &v), sum = 0;
    if (r == 0 && v.kind == OTTL_NIL)
        r = err_set(env->err, -EINVAL, "invalid input: <nil>");
    bool twice = false, any = false;
    for (size_t i = r < 0 ? 0 : v.bytes.len; i-- > 0;) {
        int digit = v.bytes.data[i] - '0';
        if (v.bytes.data[i] == ' ')
            continue;
        if (digit < 0 || digit > 9)
            return err_set(env->err, -EINVAL, "IsValidLuhn: \"%.*s\" has more than digits",
                           (int)v.bytes.len, v.bytes.data);
        int weighed = twice ? 2 * digit : digit;
        sum += weighed > 9 ? weighed - 9 : weighed;
        twice = !twice;
        any = true;
    }
    *ret = ottl_bool(any && sum % 10 == 0);
    return r;
}

/* ---- IsInCIDR ---- */

struct address {
    uint8_t bytes[16];
    int len; /* 4 or 16 */
};

/* IPv4 in IPv6 (::ffff:1.2.3.4) is IPv4. */
static bool parse_address(struct bytes s, struct address *ret)
{
    static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
    char text[64];
    if (s.len >= sizeof(text) || (s.len && memchr(s.data, 0, s.len)))
        return false;
    memcpy(text, s.data, s.len);
    text[s.len] = 0;
    ret->len = 4;
    if (inet_pton(AF_INET, text, ret->bytes) == 1)
        return true;
    if (inet_pton(AF_INET6, text, ret->bytes) != 1)
        return false;
    if (memcmp(ret->bytes, mapped, sizeof(mapped)) == 0)
        memmove(ret->bytes, ret->bytes + 12, 4);
    else
        ret->len = 16;
    return true;
}

static bool parse_network(struct bytes s, struct address *ret, int *ret_bits)
{
    const uint8_t *slash = s.len ? memchr(s.data, '/', s.len) : NULL;
    if (!slash || slash + 1 == s.data + s.len ||
        !parse_address(bytes_of(s.data, (size_t)(slash - s.data)), ret))
        return false;
    *ret_bits = 0;
    for (const uint8_t *p = slash + 1; p < s.data + s.len; p++) {
        if (*p < '0' || *p > '9' || *ret_bits > 128)
            return false;
        *ret_bits = *ret_bits * 10 + (*p - '0');
    }
    return *ret_bits <= 8 * ret->len;
}

static bool is_inside(const struct address *a, const struct address *network, int bits)
{
    if (a->len != network->len || memcmp(a->bytes, network->bytes, (size_t)bits / 8) != 0)
        return false;
    int rest = bits % 8;
    return rest == 0 || (a->bytes[bits / 8] ^ network->bytes[bits / 8]) >> (8 - rest) == 0;
}

static int no_network(struct bytes s, struct err *reterr)
{
    return err_set(reterr, -EINVAL, "invalid CIDR address: %.*s", (int)s.len, s.data);
}

OTTL_PREPARE(is_in_cidr)
{
    struct address network;
    struct ottl_value v;
    int bits;
    for (size_t i = 0; i < c->args[1].nlist; i++)
        if (ottl_expr_literal(c->args[1].list[i], &v) && v.kind == OTTL_STRING &&
            !parse_network(v.bytes, &network, &bits))
            return no_network(v.bytes, reterr);
    return 0;
}

OTTL_FN(is_in_cidr)
{
    struct address a, network;
    struct bytes s = bytes_of("", 0);
    struct ottl_list *l = NULL;
    int bits, r = ottl_fn_string(c, 0, env, &s);
    *ret = ottl_bool(false);
    if (r < 0 || !parse_address(s, &a))
        return r;
    r = ottl_arg_list(c, 1, env, &l);
    for (size_t i = 0; r == 0 && !ret->b && i < l->n; i++) {
        if (!parse_network(l->items[i].bytes, &network, &bits))
            return no_network(l->items[i].bytes, env->err);
        *ret = ottl_bool(is_inside(&a, &network, bits));
    }
    return r;
}
