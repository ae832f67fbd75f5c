/*
 * span.trace_state["vendor"]: one member of a W3C trace state,
 * https://www.w3.org/TR/trace-context/#tracestate-header. A trace state that is not valid reads as
 * nil and is left alone.
 */
#include <errno.h>

#include "ottl/path.h"
#include "proto/otlp_fields.h"

#define MEMBERS_MAX 32
#define KEY_MAX 256
#define TENANT_MAX 241
#define SYSTEM_MAX 14
#define VALUE_MAX 256

struct member {
    struct bytes key, value;
};

static bool is_key_char(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("_-*/", c));
}

static bool is_key_part(struct bytes s, size_t max, bool digit_first)
{
    if (s.len == 0 || s.len > max)
        return false;
    bool letter = s.data[0] >= 'a' && s.data[0] <= 'z';
    bool digit = s.data[0] >= '0' && s.data[0] <= '9';
    if (!letter && !(digit && digit_first))
        return false;
    for (size_t i = 1; i < s.len; i++)
        if (!is_key_char(s.data[i]))
            return false;
    return true;
}

static bool is_key(struct bytes s)
{
    const uint8_t *at = s.len ? memchr(s.data, '@', s.len) : NULL;
    if (!at)
        return is_key_part(s, KEY_MAX, false);
    size_t n = (size_t)(at - s.data);
    return is_key_part(bytes_of(s.data, n), TENANT_MAX, true) &&
           is_key_part(bytes_of(at + 1, s.len - n - 1), SYSTEM_MAX, false);
}

static bool is_value(struct bytes s)
{
    if (s.len == 0 || s.len > VALUE_MAX || s.data[s.len - 1] == ' ')
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (s.data[i] < 0x20 || s.data[i] > 0x7e || s.data[i] == ',' || s.data[i] == '=')
            return false;
    return true;
}

static struct bytes trim(struct bytes s)
{
    while (s.len && (s.data[0] == ' ' || s.data[0] == '\t'))
        s = bytes_of(s.data + 1, s.len - 1);
    while (s.len && (s.data[s.len - 1] == ' ' || s.data[s.len - 1] == '\t'))
        s.len--;
    return s;
}

static bool read_member(struct bytes text, struct member *ret)
{
    const uint8_t *eq = memchr(text.data, '=', text.len);
    if (!eq)
        return false;
    size_t n = (size_t)(eq - text.data);
    *ret = (struct member){bytes_of(text.data, n), bytes_of(eq + 1, text.len - n - 1)};
    return is_key(ret->key) && is_value(ret->value);
}

static bool is_new(const struct member *m, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes_eq(m[i].key, m[n].key))
            return false;
    return true;
}

/* The members in their order; -1 when the text is no trace state. */
static int read_members(struct bytes text, struct member ret[MEMBERS_MAX])
{
    int n = 0;
    while (text.len) {
        const uint8_t *comma = memchr(text.data, ',', text.len);
        size_t len = comma ? (size_t)(comma - text.data) : text.len;
        struct bytes one = trim(bytes_of(text.data, len));
        text = bytes_of(text.data + len + (comma != NULL), text.len - len - (comma != NULL));
        if (one.len == 0)
            continue;
        if (n == MEMBERS_MAX || !read_member(one, &ret[n]) || !is_new(ret, (size_t)n))
            return -1;
        n++;
    }
    return n;
}

static int prepare(const struct ottl_path *p, struct ottl_env *env, struct ottl_item **ret_it,
                   struct member *ret_members, int *ret_n)
{
    struct wire_field f;
    int r = ottl_path_item(p, env, ret_it);
    if (r < 0)
        return r;
    bool there = ottl_item_find(*ret_it, SPAN_TRACE_STATE, &f);
    *ret_n = there ? read_members(f.bytes, ret_members) : 0;
    if (*ret_n >= 0 && !ottl_path_self(p)->keys[0].is_string)
        return err_set(env->err, -EINVAL, "trace_state indexing type must be a string");
    return 0;
}

static int trace_state_get(const struct ottl_path *p, struct ottl_env *env, struct ottl_value *ret)
{
    struct member members[MEMBERS_MAX];
    struct ottl_item *it;
    int n, r = prepare(p, env, &it, members, &n);
    *ret = ottl_nil();
    if (r < 0 || n < 0)
        return r;
    *ret = ottl_string(bytes_of("", 0));
    for (int i = 0; i < n; i++)
        if (bytes_eq(members[i].key, ottl_path_self(p)->keys[0].s))
            *ret = ottl_string(members[i].value);
    return 0;
}

static int put_member(struct buf *out, const struct member *m)
{
    int r = out->len ? buf_putc(out, ',') : 0;
    if (r == 0)
        r = buf_append(out, m->key.data, m->key.len);
    if (r == 0)
        r = buf_putc(out, '=');
    return r < 0 ? r : buf_append(out, m->value.data, m->value.len);
}

/* The one that is set comes first; the last one of too many goes. */
static int trace_state_set(const struct ottl_path *p, struct ottl_env *env,
                           const struct ottl_value *v)
{
    struct member members[MEMBERS_MAX], new = {ottl_path_self(p)->keys[0].s, v->bytes};
    struct ottl_item *it;
    int n;
    if (v->kind != OTTL_STRING)
        return ottl_expects(env, "string", v);
    int r = prepare(p, env, &it, members, &n);
    if (r < 0 || n < 0 || !is_key(new.key) || !is_value(new.value))
        return r;
    struct buf *out = it->mem->scratch;
    buf_truncate(out, 0);
    r = put_member(out, &new);
    for (int i = 0, kept = 1; r == 0 && i < n && kept < MEMBERS_MAX; i++)
        if (!bytes_eq(members[i].key, new.key)) {
            r = put_member(out, &members[i]);
            kept++;
        }
    return r < 0 ? -ENOMEM : ottl_item_set(it, SPAN_TRACE_STATE, WIRE_LEN, 0, buf_bytes(out));
}

const struct ottl_path_ops ottl_trace_state_ops = {trace_state_get, trace_state_set};
