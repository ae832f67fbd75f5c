/* Value trees: lookup, building, paths. */
#include "agent/config/value.h"

#include <errno.h>

#include "agent/config/tree.h"

const char *cfg_type_name(enum cfg_type t)
{
    static const char *const names[] = {
        [CFG_NULL] = "null", [CFG_BOOL] = "bool",           [CFG_INT] = "int",
        [CFG_UINT] = "int",  [CFG_DOUBLE] = "float",        [CFG_STRING] = "string",
        [CFG_LIST] = "list", [CFG_TIMESTAMP] = "timestamp", [CFG_MAP] = "map",
    };
    return names[t];
}

size_t cfg_index(const struct cfg_value *v, const char *key)
{
    size_t i = 0;
    while (i < v->n && strcmp(v->keys[i], key) != 0)
        i++;
    return i;
}

const struct cfg_value *cfg_get(const struct cfg_value *v, const char *key)
{
    if (!v || v->type != CFG_MAP)
        return NULL;
    size_t i = cfg_index(v, key);
    return i < v->n ? v->items[i] : NULL;
}

/* The value whose key is the first `len` bytes of `key`. */
static const struct cfg_value *get_key(const struct cfg_value *v, const char *key, size_t len)
{
    if (v->type != CFG_MAP)
        return NULL;
    for (size_t i = 0; i < v->n; i++)
        if (strncmp(v->keys[i], key, len) == 0 && v->keys[i][len] == 0)
            return v->items[i];
    return NULL;
}

/* The value at "key", "key[3]" or "key[3][0]", which is `len` bytes long. */
static const struct cfg_value *get_part(const struct cfg_value *v, const char *part, size_t len)
{
    const char *bracket = memchr(part, '[', len), *end = part + len;
    const struct cfg_value *found = get_key(v, part, len);
    if (found || !bracket)
        return found;
    v = bracket > part ? get_key(v, part, (size_t)(bracket - part)) : v;
    while (v && bracket < end && *bracket == '[') {
        char *close;
        size_t i = strtoul(bracket + 1, &close, 10);
        if (v->type != CFG_LIST || i >= v->n || *close != ']')
            return NULL;
        v = v->items[i];
        bracket = close + 1;
    }
    return bracket == end ? v : NULL;
}

const struct cfg_value *cfg_find(const struct cfg_value *v, const char *path, bool *ret_exact)
{
    *ret_exact = v != NULL;
    while (v && *path) {
        const char *end = strstr(path, "::");
        size_t len = end ? (size_t)(end - path) : strlen(path);
        const struct cfg_value *next = get_part(v, path, len);
        if (!next) {
            *ret_exact = false;
            break;
        }
        v = next;
        path += len + (end ? 2 : 0);
    }
    return v;
}

static bool any_secret(const struct cfg_value *v)
{
    bool found = v->secret;
    for (size_t i = 0; !found && i < v->n; i++)
        found = any_secret(v->items[i]);
    return found;
}

bool cfg_item_secret(const struct cfg_value *list, size_t i, const char *path)
{
    bool exact;
    const struct cfg_value *v = list && i < list->n ? cfg_find(list->items[i], path, &exact) : NULL;
    return v && any_secret(v);
}

struct cfg_value *cfg_new(struct arena *a, enum cfg_type type, struct cfg_pos pos)
{
    struct cfg_value *v = arena_calloc(a, sizeof(*v));
    if (v) {
        v->type = type;
        v->pos = pos;
        v->text = "";
    }
    return v;
}

struct cfg_value *cfg_new_string(struct arena *a, struct cfg_pos pos, const char *text, size_t len)
{
    struct cfg_value *v = cfg_new(a, CFG_STRING, pos);
    if (!v || !(v->text = arena_strndup(a, text, len)))
        return NULL;
    v->text_len = len;
    return v;
}

struct cfg_value *cfg_new_plain(struct arena *a, struct cfg_pos pos, const char *text, size_t len)
{
    struct cfg_value *v = cfg_new_string(a, pos, text, len);
    if (v)
        cfg_resolve(v);
    return v;
}

struct cfg_value *cfg_copy(struct arena *a, const struct cfg_value *v)
{
    struct cfg_value *copy = arena_alloc(a, sizeof(*copy));
    if (copy)
        *copy = *v;
    return copy;
}

static void *grown(struct arena *a, const void *old, size_t n, size_t size)
{
    void *p = arena_alloc(a, (n ? 2 * n : 4) * size);
    if (p && n)
        memcpy(p, old, n * size);
    return p;
}

/* Room for one more: the capacity is 4, 8, 16 …, so it is used up when n is 0 or such a number. */
static int make_room(struct arena *a, struct cfg_value *v)
{
    if (v->n && (v->n < 4 || (v->n & (v->n - 1))))
        return 0;
    v->items = grown(a, v->items, v->n, sizeof(*v->items));
    if (v->type == CFG_MAP) {
        v->keys = grown(a, v->keys, v->n, sizeof(*v->keys));
        v->key_pos = grown(a, v->key_pos, v->n, sizeof(*v->key_pos));
    }
    return v->items && (v->type != CFG_MAP || (v->keys && v->key_pos)) ? 0 : -ENOMEM;
}

int cfg_append(struct arena *a, struct cfg_value *v, const char *key, struct cfg_pos key_pos,
               struct cfg_value *item)
{
    if (make_room(a, v) < 0)
        return -ENOMEM;
    v->items[v->n] = item;
    if (v->type == CFG_MAP) {
        v->keys[v->n] = key;
        v->key_pos[v->n] = key_pos;
    }
    v->n++;
    return 0;
}

void cfg_path_set(struct cfg_path *p, const char *text)
{
    p->len = 0;
    p->text[0] = 0;
    cfg_path_push(p, text);
}

size_t cfg_path_push(struct cfg_path *p, const char *key)
{
    size_t mark = p->len, room = sizeof(p->text) - p->len;
    int n = snprintf(p->text + p->len, room, "%s%s", p->len ? "::" : "", key);
    p->len += (size_t)n < room ? (size_t)n : room - 1;
    return mark;
}

size_t cfg_path_push_index(struct cfg_path *p, size_t i)
{
    size_t mark = p->len, room = sizeof(p->text) - p->len;
    int n = snprintf(p->text + p->len, room, "[%zu]", i);
    p->len += (size_t)n < room ? (size_t)n : room - 1;
    return mark;
}

void cfg_path_pop(struct cfg_path *p, size_t mark)
{
    p->len = mark;
    p->text[mark] = 0;
}

size_t cfg_decode_utf8(const unsigned char *p, size_t len, uint32_t *ret)
{
    size_t n = *p >= 0xf0 && *p < 0xf5   ? 4
               : *p >= 0xe0 && *p < 0xf0 ? 3
               : *p >= 0xc2 && *p < 0xe0 ? 2
                                         : 0;
    if (n == 0 || n > len)
        return 0;
    *ret = *p & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        *ret = *ret << 6 | (p[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    return *ret >= least[n] && *ret <= 0x10ffff ? n : 0;
}
