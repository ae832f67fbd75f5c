/* Attribute actions at work; what is allowed in their configuration is in attr_actions_check.c. */
#include "agent/pipeline/attr_actions.h"

#include <errno.h>

#include "agent/base/digest.h"
#include "agent/base/number.h"
#include "agent/pipeline/attr_actions_parts.h"

/* Where insert, update and upsert have their value from; false = nowhere, nothing is done. */
static bool source(const struct attr_action *a, const struct attr_list *l, struct bytes *ret)
{
    const struct attr *from = a->from.len ? attr_list_find(l, a->from) : NULL;
    if (a->value)
        *ret = buf_bytes(a->value);
    else if (from)
        *ret = from->value;
    else if (a->fallback)
        *ret = buf_bytes(a->fallback);
    else
        return false;
    return true;
}

static int run_set(const struct attr_action *a, struct attr_list *l)
{
    struct bytes value;
    if (!source(a, l, &value))
        return 0;
    bool present = attr_list_find(l, a->key) != NULL;
    if (present ? a->kind == ACTION_INSERT : a->kind == ACTION_UPDATE)
        return 0;
    return attr_list_put(l, a->key, value);
}

static bool matches(void *ctx, struct bytes key)
{
    return regex_match(ctx, key);
}

static int run_delete(const struct attr_action *a, struct attr_list *l)
{
    if (a->key.len)
        attr_list_remove(l, a->key);
    if (a->regex)
        attr_list_remove_if(l, matches, a->regex);
    return 0;
}

static int set_any(struct attr_list *l, struct attr *at, const struct any_value *v)
{
    struct bytes encoded;
    int r = attr_list_encode(l, v, &encoded);
    if (r == 0)
        attr_list_set(l, at, encoded);
    return r;
}

/* ---- hash ---- */

/* The bytes that are hashed, in `room` when they are not in the value itself; false = a kind that
 * has none. */
static bool hash_input(const struct any_value *v, uint8_t room[8], struct bytes *ret)
{
    uint64_t bits = v->kind == ANY_BOOL ? v->b : (uint64_t)v->i;
    if (v->kind == ANY_DOUBLE)
        memcpy(&bits, &v->d, sizeof(bits));
    for (int i = 0; i < 8; i++)
        room[i] = (uint8_t)(bits >> (8 * i));
    switch (v->kind) {
    case ANY_STRING: *ret = v->bytes; return true;
    case ANY_BOOL: *ret = bytes_of(room, 1); return true;
    case ANY_INT:
    case ANY_DOUBLE: *ret = bytes_of(room, 8); return true;
    default: return false;
    }
}

static int hash_one(struct attr_list *l, struct attr *at)
{
    struct any_value v = any_value_read(at->value);
    uint8_t room[8];
    char hex[2 * SHA256_BYTES];
    struct bytes input;
    size_t len = 0;
    if (hash_input(&v, room, &input)) {
        digest_sha256_hex(input, hex);
        len = sizeof(hex);
    }
    return set_any(l, at, &(struct any_value){ANY_STRING, .bytes = bytes_of(hex, len)});
}

static int run_hash(const struct attr_action *a, struct attr_list *l)
{
    struct attr *at = a->key.len ? attr_list_find(l, a->key) : NULL;
    int r = at ? hash_one(l, at) : 0;
    for (size_t i = 0; r == 0 && a->regex && i < l->n; i++)
        if (regex_match(a->regex, l->items[i].key))
            r = hash_one(l, &l->items[i]);
    return r;
}

/* ---- extract ---- */

static int run_extract(const struct attr_action *a, struct attr_list *l)
{
    const struct attr *at = attr_list_find(l, a->key);
    struct any_value v = at ? any_value_read(at->value) : (struct any_value){ANY_EMPTY};
    unsigned n = regex_groups(a->regex) + 1;
    _cleanup_free_ struct regex_span *spans = malloc(n * sizeof(*spans));
    if (!spans)
        return -ENOMEM;
    if (v.kind != ANY_STRING || !regex_search(a->regex, v.bytes, 0, spans, n))
        return 0;
    int r = 0;
    for (unsigned i = 1; r == 0 && i < n; i++) {
        struct any_value part = {ANY_STRING, .bytes = bytes_of("", 0)};
        struct bytes encoded;
        if (spans[i].from != REGEX_UNSET)
            part.bytes = bytes_of(v.bytes.data + spans[i].from, spans[i].to - spans[i].from);
        r = attr_list_encode(l, &part, &encoded);
        if (r == 0)
            r = attr_list_put(l, bytes_str(regex_group_name(a->regex, i)), encoded);
    }
    return r;
}

/* ---- convert ---- */

static bool to_int(const struct any_value *v, struct any_value *ret)
{
    *ret = (struct any_value){ANY_INT};
    switch (v->kind) {
    case ANY_DOUBLE: ret->i = number_double_to_int(v->d); return true;
    case ANY_BOOL: ret->i = v->b; return true;
    case ANY_STRING: return number_parse_int(v->bytes, &ret->i);
    default: return false;
    }
}

static bool to_double(const struct any_value *v, struct any_value *ret)
{
    *ret = (struct any_value){ANY_DOUBLE};
    switch (v->kind) {
    case ANY_INT: ret->d = (double)v->i; return true;
    case ANY_BOOL: ret->d = v->b; return true;
    case ANY_STRING: return number_parse_double(v->bytes, &ret->d);
    default: return false;
    }
}

static int to_string(struct attr_list *l, struct attr *at)
{
    _cleanup_buf_ struct buf *text = buf_new(0);
    int r = text ? any_value_text(at->value, text) : -ENOMEM;
    return r < 0 ? r : set_any(l, at, &(struct any_value){ANY_STRING, .bytes = buf_bytes(text)});
}

static int run_convert(const struct attr_action *a, const struct logger *lg, struct attr_list *l)
{
    struct attr *at = attr_list_find(l, a->key);
    struct any_value v = at ? any_value_read(at->value) : (struct any_value){ANY_EMPTY}, converted;
    if (!at || v.kind == a->target)
        return 0;
    if (a->target == ANY_STRING)
        return to_string(l, at);
    if (a->target == ANY_INT ? to_int(&v, &converted) : to_double(&v, &converted))
        return set_any(l, at, &converted);
    log_debug(lg, "Attribute cannot be converted, left as it is",
              LOG_STR("key", (const char *)a->key.data),
              LOG_STR("converted_type", a->target == ANY_INT ? "int" : "double"));
    return 0;
}

static int run_one(const struct attr_action *a, const struct logger *lg, struct attr_list *l)
{
    switch (a->kind) {
    case ACTION_INSERT:
    case ACTION_UPDATE:
    case ACTION_UPSERT: return run_set(a, l);
    case ACTION_DELETE: return run_delete(a, l);
    case ACTION_HASH: return run_hash(a, l);
    case ACTION_EXTRACT: return run_extract(a, l);
    case ACTION_CONVERT: return run_convert(a, lg, l);
    }
    return -EINVAL;
}

int attr_actions_run(const struct attr_actions *as, struct attr_list *l)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < as->n; i++)
        r = run_one(&as->items[i], as->lg, l);
    return r;
}
