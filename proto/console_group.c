/* Records that are ready: neighbours with the same resource share an entry of the request. */
#include <errno.h>

#include "proto/check.h"
#include "proto/console_parts.h"
#include "proto/wire.h"

#define FULL_BYTES ((size_t)256 << 10)

/* With a request there are items, too. */
static int make_room(struct console_group *g)
{
    if (!g->items)
        g->items = buf_new(0);
    if (g->items && !g->request)
        g->request = buf_new(0);
    return g->request ? 0 : -ENOMEM;
}

static void close_entry(struct console_group *g)
{
    g->entry = buf_unref(g->entry);
    g->url = buf_unref(g->url);
    buf_truncate(g->items, 0);
}

/* Puts the open entry into the request. */
static int finish_entry(struct console_group *g)
{
    if (!g->entry)
        return 0;
    const struct console_resource k = {.entry = g->entry, .url = g->url};
    size_t before = g->request->len;
    int r = console_put_entry(g->request, &k, buf_bytes(g->items));
    if (r < 0)
        buf_truncate(g->request, before);
    else
        close_entry(g);
    return r;
}

static int add_record(struct console_group *g, const struct console_mapper *m)
{
    if (g->entry != m->resource->entry) {
        int r = finish_entry(g);
        if (r < 0)
            return r;
        g->entry = buf_ref(m->resource->entry);
        g->url = buf_ref(m->resource->url);
    }
    return wire_put_bytes(g->items, ENTRY_ITEMS, buf_bytes(m->record));
}

int console_group_add(struct console_group *g, const struct console_mapper *m,
                      enum console_kind kind)
{
    int r = make_room(g);
    if (r == 0 && (kind == CONSOLE_SPAN || kind == CONSOLE_LOG))
        return add_record(g, m);
    if (r == 0)
        r = finish_entry(g);
    return r == 0 ? buf_append(g->request, m->record->data, m->record->len) : r;
}

bool console_group_full(const struct console_group *g)
{
    return g->request && g->request->len + g->items->len >= FULL_BYTES;
}

int console_group_take(struct console_group *g, enum signal s, struct batch **ret)
{
    *ret = NULL;
    if (!g->request)
        return 0;
    int r = finish_entry(g);
    if (r < 0 || g->request->len == 0)
        return r;
    buf_shrink(g->request);
    r = batch_from_wire(s, buf_ref(g->request), ret, NULL);
    if (r != -ENOMEM)
        g->request = buf_unref(g->request);
    return r;
}

void console_group_done(struct console_group *g)
{
    g->request = buf_unref(g->request);
    g->entry = buf_unref(g->entry);
    g->url = buf_unref(g->url);
    g->items = buf_unref(g->items);
}
