/* Converters of texts. */
#include "agent/base/digest.h"
#include "agent/base/encode.h"
#include "agent/base/regex.h"
#include "agent/base/utf8.h"
#include "ottl/calls.h"
#include "ottl/case.h"

/* Length of the character at the front of `s`; a bad byte is one. */
static size_t char_length(struct bytes s)
{
    int n = utf8_next(s);
    return n > 0 ? (size_t)n : 1;
}

static struct bytes cut(struct bytes s, size_t from, size_t to)
{
    return bytes_of(s.data + from, to - from);
}

static bool starts_with(struct bytes s, struct bytes start)
{
    return s.len >= start.len && bytes_eq(cut(s, 0, start.len), start);
}

static bool ends_with(struct bytes s, struct bytes end)
{
    return s.len >= end.len && bytes_eq(cut(s, s.len - end.len, s.len), end);
}

/* Two strings, arguments 0 and 1. */
static int two_strings(const struct ottl_call *c, struct ottl_env *env, struct bytes *ret_a,
                       struct bytes *ret_b)
{
    *ret_a = *ret_b = bytes_of("", 0);
    int r = ottl_fn_string(c, 0, env, ret_a);
    return r < 0 ? r : ottl_fn_string(c, 1, env, ret_b);
}

/* ---- putting together, taking apart ---- */

OTTL_FN(concat)
{
    _cleanup_buf_ struct buf *out = ottl_fn_buf(env);
    struct bytes delimiter = {0};
    struct ottl_list *l = NULL;
    if (!out)
        return -ENOMEM;
    int r = ottl_fn_string(c, 1, env, &delimiter);
    if (r == 0)
        r = ottl_arg_list(c, 0, env, &l);
    for (size_t i = 0; r == 0 && i < l->n; i++) {
        struct ottl_value *v = &l->items[i];
        struct bytes text = v->kind == OTTL_NIL ? bytes_str("<nil>") : v->bytes;
        if (i > 0)
            r = buf_append(out, delimiter.data, delimiter.len);
        if (r == 0)
            r = buf_append(out, text.data, text.len);
    }
    return r < 0 ? r : ottl_fn_text(env, out, ret);
}

static int append_text(struct ottl_env *env, struct ottl_list *l, struct bytes s)
{
    return ottl_list_append(env->arena, l, ottl_string(s));
}

static int split_chars(struct ottl_env *env, struct bytes s, struct ottl_list *l)
{
    int r = 0;
    for (size_t i = 0, n; r == 0 && i < s.len; i += n) {
        n = char_length(cut(s, i, s.len));
        r = append_text(env, l, cut(s, i, i + n));
    }
    return r;
}

static int split_at(struct ottl_env *env, struct bytes s, struct bytes by, struct ottl_list *l)
{
    int r = 0;
    const uint8_t *p;
    while (r == 0 && s.len && (p = memmem(s.data, s.len, by.data, by.len))) {
        size_t at = (size_t)(p - s.data);
        r = append_text(env, l, cut(s, 0, at));
        s = cut(s, at + by.len, s.len);
    }
    return r < 0 ? r : append_text(env, l, s);
}

OTTL_FN(split)
{
    struct bytes s, by;
    int r = two_strings(c, env, &s, &by);
    if (r < 0)
        return r;
    struct ottl_list *l = ottl_list_new(env->arena);
    if (!l)
        return -ENOMEM;
    *ret = ottl_list_value(l);
    return by.len ? split_at(env, s, by, l) : split_chars(env, s, l);
}

static bool is_inside_char(struct bytes s, size_t at)
{
    return at < s.len && (s.data[at] & 0xc0) == 0x80;
}

static int check_substring(struct ottl_env *env, int64_t start, int64_t length, size_t len)
{
    if (start < 0)
        return err_set(env->err, -EINVAL,
                       "invalid start for substring function, %lld cannot be negative",
                       (long long)start);
    if (length <= 0)
        return err_set(env->err, -EINVAL,
                       "invalid length for substring function, %lld cannot be negative or zero",
                       (long long)length);
    if (start > (int64_t)len || length > (int64_t)len - start)
        return err_set(env->err, -EINVAL,
                       "invalid range for substring function, start(%lld)+length(%lld) cannot be "
                       "greater than the length of target string(%zu)",
                       (long long)start, (long long)length, len);
    return 0;
}

OTTL_FN(substring)
{
    struct bytes s = {0};
    int64_t start = 0, length = 0;
    int r = ottl_fn_int(c, 1, env, &start);
    if (r == 0)
        r = ottl_fn_int(c, 2, env, &length);
    if (r == 0)
        r = ottl_fn_string(c, 0, env, &s);
    if (r == 0)
        r = check_substring(env, start, length, s.len);
    if (r < 0)
        return r;
    size_t from = (size_t)start, to = (size_t)(start + length);
    if (ottl_fn_literal_bool(c, 3, false)) {
        while (is_inside_char(s, from))
            from++;
        while (to > from && is_inside_char(s, to))
            to--;
        to = to < from ? from : to;
    }
    *ret = ottl_string(cut(s, from, to));
    return 0;
}

OTTL_FN(has_prefix)
{
    struct bytes s, start;
    int r = two_strings(c, env, &s, &start);
    *ret = ottl_bool(starts_with(s, start));
    return r;
}

OTTL_FN(has_suffix)
{
    struct bytes s, end;
    int r = two_strings(c, env, &s, &end);
    *ret = ottl_bool(ends_with(s, end));
    return r;
}

OTTL_FN(trim_prefix)
{
    struct bytes s, start;
    int r = two_strings(c, env, &s, &start);
    *ret = ottl_string(starts_with(s, start) ? cut(s, start.len, s.len) : s);
    return r;
}

OTTL_FN(trim_suffix)
{
    struct bytes s, end;
    int r = two_strings(c, env, &s, &end);
    *ret = ottl_string(ends_with(s, end) ? cut(s, 0, s.len - end.len) : s);
    return r;
}

static bool has_char(struct bytes set, struct bytes one)
{
    for (size_t i = 0, n; i < set.len; i += n) {
        n = char_length(cut(set, i, set.len));
        if (bytes_eq(cut(set, i, i + n), one))
            return true;
    }
    return false;
}

static size_t last_char_length(struct bytes s)
{
    size_t n = 1;
    while (n < s.len && n < 4 && is_inside_char(s, s.len - n))
        n++;
    return char_length(cut(s, s.len - n, s.len)) == n ? n : 1;
}

OTTL_FN(trim)
{
    struct bytes s = {0}, set = ottl_fn_literal(c, 1, " ");
    int r = ottl_fn_string(c, 0, env, &s);
    size_t n;
    while (s.len && has_char(set, cut(s, 0, n = char_length(s))))
        s = cut(s, n, s.len);
    while (s.len && has_char(set, cut(s, s.len - (n = last_char_length(s)), s.len)))
        s.len -= n;
    *ret = ottl_string(s);
    return r;
}

/* ---- cases ---- */

static int convert_case(const struct ottl_call *c, struct ottl_env *env,
                        int (*put)(struct bytes, struct buf *), struct ottl_value *ret)
{
    _cleanup_buf_ struct buf *out = ottl_fn_buf(env);
    struct bytes s = {0};
    if (!out)
        return -ENOMEM;
    int r = ottl_fn_string(c, 0, env, &s);
    if (r == 0)
        r = put(s, out);
    return r < 0 ? r : ottl_fn_text(env, out, ret);
}

OTTL_FN(to_lower_case)
{
    return convert_case(c, env, case_lower, ret);
}

OTTL_FN(to_upper_case)
{
    return convert_case(c, env, case_upper, ret);
}

OTTL_FN(to_snake_case)
{
    return convert_case(c, env, case_snake, ret);
}

OTTL_FN(to_camel_case)
{
    return convert_case(c, env, case_camel, ret);
}

static const struct {
    const char *name;
    int (*put)(struct bytes, struct buf *);
} cases[] = {
    {"lower", case_lower},
    {"upper", case_upper},
    {"snake", case_snake},
    {"camel", case_camel},
};

static size_t find_case(struct bytes name)
{
    size_t i = 0;
    while (i < ARRAY_SIZE(cases) && !bytes_eq_str(name, cases[i].name))
        i++;
    return i;
}

OTTL_PREPARE(convert_case)
{
    struct bytes name = c->args[1].literal.bytes;
    if (find_case(name) < ARRAY_SIZE(cases))
        return 0;
    return err_set(reterr, -EINVAL,
                   "invalid case: %.*s, allowed cases are: lower, upper, snake, camel",
                   (int)name.len, name.data);
}

OTTL_FN(convert_case)
{
    return convert_case(c, env, cases[find_case(c->args[1].literal.bytes)].put, ret);
}

/* ---- patterns ---- */

OTTL_FN(is_match)
{
    _cleanup_(ottl_pattern_done) struct ottl_pattern p = {0};
    struct ottl_value v;
    int r = ottl_fn_pattern(c, 1, env, &p);
    if (r == 0)
        r = ottl_arg_value(c, 0, env, &v);
    if (r == 0)
        *ret = ottl_bool(v.kind != OTTL_NIL && regex_match(p.re, v.bytes));
    return r;
}

static bool has_named_group(const struct regex *re)
{
    for (unsigned i = 1; i <= regex_groups(re); i++)
        if (*regex_group_name(re, i))
            return true;
    return false;
}

static int put_groups(struct ottl_env *env, const struct regex *re, struct bytes s,
                      const struct regex_span *spans, struct ottl_map *m)
{
    int r = 0;
    for (unsigned i = 1; r == 0 && i <= regex_groups(re); i++) {
        const char *name = regex_group_name(re, i);
        char *key = *name ? arena_strdup(env->arena, name) : NULL;
        if (!*name)
            continue;
        bool unset = spans[i].from == REGEX_UNSET;
        struct bytes text = unset ? bytes_of("", 0) : cut(s, spans[i].from, spans[i].to);
        r = key ? ottl_map_put(env->arena, m, bytes_str(key), ottl_string(text)) : -ENOMEM;
    }
    return r;
}

OTTL_FN(extract_patterns)
{
    _cleanup_(ottl_pattern_done) struct ottl_pattern p = {0};
    struct bytes s = {0};
    int r = ottl_fn_pattern(c, 1, env, &p);
    if (r < 0)
        return r;
    if (!has_named_group(p.re))
        return err_set(env->err, -EINVAL,
                       "at least 1 named capture group must be supplied in the given regex");
    r = ottl_fn_string(c, 0, env, &s);
    if (r < 0)
        return r;
    unsigned n = regex_groups(p.re) + 1;
    struct regex_span *spans = arena_alloc(env->arena, n * sizeof(*spans));
    struct ottl_map *m = ottl_map_new(env->arena);
    if (!spans || !m)
        return -ENOMEM;
    *ret = ottl_map_value(m);
    return regex_search(p.re, s, 0, spans, n) ? put_groups(env, p.re, s, spans, m) : 0;
}

/* ---- hashes and encodings ---- */

static int hash(const struct ottl_call *c, struct ottl_env *env,
                void (*digest)(struct bytes text, uint8_t *ret), size_t n, struct ottl_value *ret)
{
    uint8_t sum[SHA512_BYTES];
    struct bytes s = bytes_of("", 0);
    int r = ottl_fn_string(c, 0, env, &s);
    if (r < 0)
        return r;
    char *hex = arena_alloc(env->arena, 2 * n);
    if (!hex)
        return -ENOMEM;
    digest(s, sum);
    encode_hex(bytes_of(sum, n), hex);
    *ret = ottl_string(bytes_of(hex, 2 * n));
    return 0;
}

OTTL_FN(md5)
{
    return hash(c, env, digest_md5, MD5_BYTES, ret);
}

OTTL_FN(sha1)
{
    return hash(c, env, digest_sha1, SHA1_BYTES, ret);
}

OTTL_FN(sha256)
{
    return hash(c, env, digest_sha256, SHA256_BYTES, ret);
}

OTTL_FN(sha512)
{
    return hash(c, env, digest_sha512, SHA512_BYTES, ret);
}

/* FNV-1a, 64 bits. */
OTTL_FN(fnv)
{
    struct bytes s = {0};
    uint64_t hash = 0xcbf29ce484222325;
    int r = ottl_fn_string(c, 0, env, &s);
    for (size_t i = 0; i < s.len; i++)
        hash = (hash ^ s.data[i]) * 0x100000001b3;
    *ret = ottl_int((int64_t)hash);
    return r;
}

OTTL_FN(hex)
{
    struct ottl_value v;
    int r = ottl_arg_value(c, 0, env, &v);
    if (r < 0)
        return r;
    struct bytes b = v.kind == OTTL_NIL ? bytes_of("", 0) : v.bytes;
    char *hex = arena_alloc(env->arena, 2 * b.len + 1);
    if (!hex)
        return -ENOMEM;
    encode_hex(b, hex);
    *ret = ottl_string(bytes_of(hex, 2 * b.len));
    return 0;
}
