#include "proto/plain_attributes.h"

enum { KEY_TAG = 1 << 3 | WIRE_LEN, VALUE_TAG = 2 << 3 | WIRE_LEN };

/* Where the second of the two fields of the attribute [p, end) begins: NULL when it is not plain.
 */
static inline const uint8_t *middle(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *key, *value, *half = plain_field(p, end, KEY_TAG, &key);
    if (half)
        return half != key && plain_field(half, end, VALUE_TAG, &value) == end &&
                       is_plain_value(value, (size_t)(end - value))
                   ? half
                   : NULL;
    half = plain_field(p, end, VALUE_TAG, &value);
    return half && is_plain_value(value, (size_t)(half - value)) &&
                   plain_field(half, end, KEY_TAG, &key) == end && key != end
               ? half
               : NULL;
}

/* What is behind the tag and length of a value [v, end) of less than 128 bytes fills it: `n` bytes.
 */
static inline bool is_short_value(const uint8_t *v, size_t n)
{
    switch (v[0]) {
    case 0x0a:
    case 0x3a: return v[1] == n - 2;
    case 0x18: return v[1] < 0x80 ? n == 2 : is_plain_varint(v + 1, n - 1);
    case 0x10: return n == 2 && v[1] <= 1;
    case 0x21: return n == 9;
    default: return false;
    }
}

/* The usual attribute: less than 128 bytes, the key first. True when it was written. */
static inline bool swap_short(uint8_t *to, const uint8_t *from, size_t left)
{
    const size_t len = from[1], nkey = from[3] + 2u,
                 nvalue = len - nkey; /* with tags and lengths */
    const uint8_t *const value = from + 2 + nkey;
    if (from[1] >= 0x80 || from[2] != KEY_TAG || nkey == 2 || nkey + 4 > len ||
        value[0] != VALUE_TAG || value[1] != nvalue - 2 || !is_short_value(value + 2, nvalue - 2))
        return false;
    to[0] = from[0];
    to[1] = from[1];
    if (left - 2 - len >= 16) {
        copy_wide(to + 2, value, nvalue);
        copy_wide(to + 2 + nvalue, from + 2, nkey);
    } else {
        copy_short(to + 2, value, nvalue);
        copy_short(to + 2 + nvalue, from + 2, nkey);
    }
    return true;
}

/* Any plain attribute. Its size with tag and length, 0 when it is not plain. */
static size_t swap_any(uint8_t *to, const uint8_t *from, const uint8_t *end)
{
    const uint8_t *kv, *const after = plain_field(from, end, *from, &kv);
    const uint8_t *const half = after ? middle(kv, after) : NULL;
    if (!half)
        return 0;
    const size_t head = (size_t)(kv - from), a = (size_t)(half - kv), b = (size_t)(after - half);
    copy_short(to, from, head);
    if (*kv == KEY_TAG) {
        copy_short(to + head, half, b);
        copy_short(to + head + b, kv, a);
    } else { /* already in this order */
        copy_short(to + head, kv, a + b);
    }
    return head + a + b;
}

bool swap_attributes(uint8_t *to, const uint8_t *from, const uint8_t *end)
{
    if (from == end || *from >= 0x80)
        return from == end;
    const uint8_t tag = *from;
    while (from < end) {
        const size_t left = (size_t)(end - from);
        size_t n;
        if (*from != tag)
            return false;
        if (left >= 8 && from[1] <= left - 2 && swap_short(to, from, left))
            n = from[1] + 2u;
        else if (!(n = swap_any(to, from, end)))
            return false;
        to += n;
        from += n;
    }
    return true;
}
