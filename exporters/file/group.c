#include "exporters/file/group.h"

#include <errno.h>
#include <string.h>

#include "agent/base/secrets.h"
#include "proto/any_value.h"
#include "proto/check.h"

/* ---- taking apart ---- */

/* The entry's string attribute of that name; false = none that can be (a part of) a file name. */
static bool segment_of(struct bytes entry, const char *attribute, struct bytes *ret)
{
    struct wire_field head, f;
    if (!wire_find(entry, 1, &head))
        return false;
    struct wire_reader r = wire_reader(head.bytes);
    while (wire_next(&r, &f) > 0) {
        if (f.number != 1)
            continue;
        struct key_value kv = key_value_read(f.bytes);
        if (!bytes_eq_str(kv.key, attribute))
            continue;
        struct any_value v = any_value_read(kv.value);
        *ret = v.bytes;
        return v.kind == ANY_STRING && !(v.bytes.len && memchr(v.bytes.data, 0, v.bytes.len));
    }
    return false;
}

/* Collects entries of one group. */
struct part {
    struct bytes segment;
    struct buf *entries;
};
struct parts {
    struct part *items;
    size_t n, cap;
    struct buf *without;
};

static struct part *part_of(struct parts *ps, struct bytes segment)
{
    for (size_t i = 0; i < ps->n; i++)
        if (bytes_eq(ps->items[i].segment, segment))
            return &ps->items[i];
    if (ps->n == ps->cap) {
        size_t cap = ps->cap ? 2 * ps->cap : 8;
        struct part *items = realloc(ps->items, cap * sizeof(*items));
        if (!items)
            return NULL;
        ps->items = items;
        ps->cap = cap;
    }
    struct buf *entries = buf_new(0);
    if (!entries)
        return NULL;
    ps->items[ps->n] = (struct part){segment, entries};
    return &ps->items[ps->n++];
}

static int add_entry(struct parts *ps, const struct wire_field *entry, const char *attribute)
{
    struct bytes segment;
    struct buf *to = ps->without;
    if (segment_of(entry->bytes, attribute, &segment)) {
        struct part *p = part_of(ps, segment);
        to = p ? p->entries : NULL;
    }
    return to ? buf_append(to, entry->whole.data, entry->whole.len) : -ENOMEM;
}

static int collect(const struct batch *b, const char *attribute, struct parts *ps)
{
    int e = ps->without ? 0 : -ENOMEM;
    for (unsigned i = 0; e == 0 && i < b->nsegs; i++) {
        struct wire_reader r = wire_reader(buf_bytes(b->segs[i]));
        struct wire_field f;
        while (e == 0 && wire_next(&r, &f) > 0)
            if (f.number == OTLP_ENTRIES)
                e = add_entry(ps, &f, attribute);
    }
    return e;
}

/* The segment as it stands in a file name; a name is no place for a secret either. */
static char *name_of(struct bytes segment)
{
    _cleanup_buf_ struct buf *clean = secrets_found(segment) ? buf_new(0) : NULL;
    if (!clean)
        return strndup((const char *)segment.data, segment.len);
    return secrets_redact(segment, clean) < 0 ? NULL
                                              : strndup((const char *)clean->data, clean->len);
}

/* The parts as batches. When there is one and nothing is left out it is the batch itself. */
static int to_groups(struct batch *b, struct parts *ps, struct groups *ret)
{
    ret->without = otlp_count(b->signal, buf_bytes(ps->without));
    ret->items = calloc(ps->n ? ps->n : 1, sizeof(*ret->items));
    if (!ret->items)
        return -ENOMEM;
    for (; ret->n < ps->n; ret->n++) {
        struct group *g = &ret->items[ret->n];
        struct part *p = &ps->items[ret->n];
        g->segment = name_of(p->segment);
        bool whole = ps->n == 1 && ps->without->len == 0;
        uint32_t records = whole ? 0 : otlp_count(b->signal, buf_bytes(p->entries));
        g->batch = whole ? batch_ref(b) : batch_new(b->signal, &p->entries, 1, records);
        if (!whole)
            p->entries = NULL;
        if (!g->segment || !g->batch) {
            ret->n++;
            return -ENOMEM;
        }
    }
    return 0;
}

int group_batch(struct batch *b, const char *attribute, struct groups *ret)
{
    struct parts ps = {.without = buf_new(0)};
    *ret = (struct groups){0};
    int e = collect(b, attribute, &ps);
    if (e == 0)
        e = to_groups(b, &ps, ret);
    for (size_t i = 0; i < ps.n; i++)
        buf_unref(ps.items[i].entries);
    free(ps.items);
    buf_unref(ps.without);
    return e;
}

void groups_done(struct groups *g)
{
    for (size_t i = 0; i < g->n; i++) {
        free(g->items[i].segment);
        batch_unref(g->items[i].batch);
    }
    free(g->items);
    *g = (struct groups){0};
}

/* ---- paths ---- */

/*
 * Removes empty, "." and inner ".." elements; a ".." at the front of a relative path stays, at the
 * root it goes. In place: the result is never longer, but for "." that stands for nothing; so
 * `path` has room for 2 bytes.
 */
static void clean(char *path)
{
    char *out = path, *floor; /* floor: ".." takes nothing away below it */
    const char *p = path;
    const bool rooted = *path == '/';
    out += rooted;
    floor = out;
    while (*p) {
        size_t n = strcspn(p, "/");
        const char *next = p + n + (p[n] == '/');
        bool up = n == 2 && memcmp(p, "..", 2) == 0;
        if (up && out > floor) {
            while (out > floor && *--out != '/')
                ;
        } else if (n > 0 && !(n == 1 && *p == '.') && !(up && rooted)) {
            if (out > path + rooted)
                *out++ = '/';
            memmove(out, p, n);
            out += n;
            floor = up ? out : floor;
        }
        p = next;
    }
    if (out == path)
        *out++ = '.';
    *out = 0;
}

/* Cleaned "<a><b><c>"; NULL when out of memory. */
static char *clean_join(const char *a, const char *b, const char *c)
{
    char *path = malloc(strlen(a) + strlen(b) + strlen(c) + 2);
    if (!path)
        return NULL;
    char *end = stpcpy(stpcpy(path, a), b);
    memcpy(end, c, strlen(c) + 1);
    clean(path);
    return path;
}

/* The cleaned part before the `*`, with its slash. */
static char *prefix_of(const char *pattern)
{
    size_t n = (size_t)(strchr(pattern, '*') - pattern);
    char *prefix = malloc(n + 3);
    if (!prefix)
        return NULL;
    memcpy(prefix, pattern, n);
    prefix[n] = 0;
    clean(prefix);
    size_t len = strlen(prefix);
    if (n && pattern[n - 1] == '/' && prefix[len - 1] != '/')
        memcpy(prefix + len, "/", 2);
    return prefix;
}

int group_path(const char *pattern, const char *segment, struct buf *out)
{
    const char *suffix = strchr(pattern, '*') + 1;
    _cleanup_free_ char *prefix = prefix_of(pattern);
    if (strncmp(segment, "./", 2) == 0)
        segment += 1;
    else if (strncmp(segment, "../", 3) == 0)
        segment += 2;
    _cleanup_free_ char *path = prefix ? clean_join(prefix, segment, suffix) : NULL;
    if (!path)
        return -ENOMEM;
    if (strncmp(path, prefix, strlen(prefix)) == 0)
        return buf_append_str(out, path);
    _cleanup_free_ char *inside = clean_join("/", segment, suffix);
    _cleanup_free_ char *safe = inside ? clean_join(prefix, "", inside) : NULL;
    return safe ? buf_append_str(out, safe) : -ENOMEM;
}
