/* Most KeyValues begin with a key of less than 128 bytes and end with a value: those are read in
 * place. */
#include "connectors/span_metrics/attributes.h"

#include <errno.h>

enum { KEY_TAG = 1 << 3 | WIRE_LEN, VALUE_TAG = 2 << 3 | WIRE_LEN };

void attributes_done(struct attributes *a)
{
    free(a->items);
    *a = (struct attributes){0};
}

int attributes_grow(struct attributes *a)
{
    size_t cap = a->cap ? 2 * a->cap : 32;
    struct attribute *items = realloc(a->items, cap * sizeof(*items));
    if (!items)
        return -ENOMEM;
    a->items = items;
    a->cap = cap;
    return 0;
}

/* key and value, each with a length of one byte, and nothing else. */
static bool simple(struct bytes kv, struct key_value *ret)
{
    const uint8_t *p = kv.data;
    if (kv.len < 4 || p[0] != KEY_TAG || p[1] >= 0x80 || (size_t)p[1] + 4 > kv.len)
        return false;
    const uint8_t *value = p + 2 + p[1];
    const size_t left = kv.len - 2 - p[1];
    if (value[0] != VALUE_TAG || value[1] >= 0x80 || (size_t)value[1] + 2 != left)
        return false;
    *ret = (struct key_value){bytes_of(p + 2, p[1]), bytes_of(value + 2, value[1])};
    return true;
}

int attributes_add_kv(struct attributes *a, struct bytes kv)
{
    struct key_value v;
    if (!simple(kv, &v))
        v = key_value_read(kv);
    return attributes_add(a, v.key, v.value) < 0 ? -ENOMEM : 0;
}

int attributes_read(struct attributes *a, struct bytes msg, uint32_t number)
{
    struct wire_reader r = wire_reader(msg);
    struct bytes kv;
    while (wire_each(&r, number, &kv))
        if (attributes_add_kv(a, kv) < 0)
            return -ENOMEM;
    return 0;
}

const struct attribute *attributes_find(const struct attributes *a, struct bytes key)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->items[i].key.len == key.len && bytes_eq(a->items[i].key, key))
            return &a->items[i];
    return NULL;
}

int attributes_put(struct attributes *a, struct bytes key, struct bytes value)
{
    const struct attribute *there = attributes_find(a, key);
    if (!there)
        return attributes_add(a, key, value) < 0 ? -ENOMEM : 0;
    a->items[there - a->items].value = value;
    return 0;
}

static int compare(struct bytes a, struct bytes b)
{
    const size_t len = a.len < b.len ? a.len : b.len;
    int c = len ? memcmp(a.data, b.data, len) : 0;
    return c ? c : (a.len > b.len) - (a.len < b.len);
}

static void swap(struct attribute *a, struct attribute *b)
{
    struct attribute t = *a;
    *a = *b;
    *b = t;
}

/* Equal keys: in the order of their places in memory, which is that of the message. */
static bool before(const struct attribute *a, const struct attribute *b)
{
    int c = compare(a->key, b->key);
    return c < 0 || (c == 0 && a->key.data < b->key.data);
}

static void sift(struct attribute *items, size_t i, size_t n)
{
    for (size_t k; (k = 2 * i + 1) < n; i = k) {
        if (k + 1 < n && before(&items[k], &items[k + 1]))
            k++;
        if (!before(&items[i], &items[k]))
            return;
        swap(&items[i], &items[k]);
    }
}

/* Heap sort: a list may be long, and comes from outside. */
void attributes_sort(struct attributes *a, size_t from)
{
    const size_t n = a->n - from;
    if (n < 2)
        return;
    struct attribute *items = a->items + from;
    for (size_t i = n / 2; i-- > 0;)
        sift(items, i, n);
    for (size_t last = n; last-- > 1;) {
        swap(&items[0], &items[last]);
        sift(items, 0, last);
    }
}
