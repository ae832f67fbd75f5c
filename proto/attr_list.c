#include "proto/attr_list.h"

#include <errno.h>

static int reserve(struct attr_list *l, size_t n)
{
    if (n <= l->cap)
        return 0;
    size_t cap = l->cap ? 2 * l->cap : 16;
    cap = cap < n ? n : cap;
    struct attr *items = realloc(l->items, cap * sizeof(*items));
    if (!items)
        return -ENOMEM;
    l->items = items;
    l->cap = cap;
    return 0;
}

static int append(struct attr_list *l, struct attr a)
{
    int r = reserve(l, l->n + 1);
    if (r == 0)
        l->items[l->n++] = a;
    return r;
}

int attr_list_read(struct attr_list *l, struct bytes msg, uint32_t number)
{
    struct wire_reader r = wire_reader(msg);
    struct wire_field f;
    *l = (struct attr_list){0};
    while (wire_next(&r, &f) > 0) {
        if (f.number != number)
            continue;
        struct key_value kv = key_value_read(f.bytes);
        if (append(l, (struct attr){kv.key, kv.value, f.whole}) < 0) {
            attr_list_done(l);
            return -ENOMEM;
        }
    }
    return 0;
}

void attr_list_done(struct attr_list *l)
{
    free(l->items);
    arena_free(l->arena);
    *l = (struct attr_list){0};
}

struct attr *attr_list_find(const struct attr_list *l, struct bytes key)
{
    for (size_t i = 0; i < l->n; i++)
        if (bytes_eq(l->items[i].key, key))
            return &l->items[i];
    return NULL;
}

void attr_list_set(struct attr_list *l, struct attr *a, struct bytes value)
{
    if (bytes_eq(a->value, value))
        return;
    a->value = value;
    a->whole = bytes_of(NULL, 0);
    l->changed = true;
}

int attr_list_put(struct attr_list *l, struct bytes key, struct bytes value)
{
    struct attr *a = attr_list_find(l, key);
    if (a) {
        attr_list_set(l, a, value);
        return 0;
    }
    l->changed = true;
    return append(l, (struct attr){key, value, bytes_of(NULL, 0)});
}

void attr_list_remove(struct attr_list *l, struct bytes key)
{
    for (size_t i = 0; i < l->n;) {
        if (!bytes_eq(l->items[i].key, key)) {
            i++;
            continue;
        }
        l->items[i] = l->items[--l->n];
        l->changed = true;
    }
}

void attr_list_remove_if(struct attr_list *l, bool (*drop)(void *ctx, struct bytes key), void *ctx)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->n; i++)
        if (!drop(ctx, l->items[i].key))
            l->items[kept++] = l->items[i];
    l->changed = l->changed || kept < l->n;
    l->n = kept;
}

int attr_list_keep(struct attr_list *l, struct bytes b, struct bytes *ret)
{
    if (!l->arena && !(l->arena = arena_new(1024)))
        return -ENOMEM;
    uint8_t *copy = arena_alloc(l->arena, b.len ? b.len : 1);
    if (!copy)
        return -ENOMEM;
    if (b.len)
        memcpy(copy, b.data, b.len);
    *ret = bytes_of(copy, b.len);
    return 0;
}

int attr_list_encode(struct attr_list *l, const struct any_value *v, struct bytes *ret)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    int r = b ? any_value_write(v, b) : -ENOMEM;
    return r < 0 ? r : attr_list_keep(l, buf_bytes(b), ret);
}

static int write_one(const struct attr *a, uint32_t number, struct buf *out)
{
    size_t mark;
    if (a->whole.data)
        return buf_append(out, a->whole.data, a->whole.len);
    int r = wire_begin(out, number, &mark);
    if (r == 0 && a->key.len)
        r = wire_put_bytes(out, 1, a->key);
    if (r == 0)
        r = wire_put_bytes(out, 2, a->value);
    return r < 0 ? r : wire_end(out, mark);
}

int attr_list_write(const struct attr_list *l, uint32_t number, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < l->n; i++)
        r = write_one(&l->items[i], number, out);
    return r;
}
