/* Collected mistakes. */
#include "agent/config/errors.h"

#include <stdarg.h>
#include <string.h>

#include "agent/base/suggest.h"

#define MAX_ERRORS 100

static struct err *new_item(struct cfg_errors *e)
{
    if (e->n < MAX_ERRORS && e->n == e->cap) {
        size_t cap = e->cap ? 2 * e->cap : 4;
        struct err *items = realloc(e->items, cap * sizeof(*items));
        if (items) {
            e->items = items;
            e->cap = cap;
        }
    }
    if (e->n == MAX_ERRORS || e->n == e->cap) {
        e->dropped++;
        return NULL;
    }
    return memset(&e->items[e->n++], 0, sizeof(*e->items));
}

void cfg_error(struct cfg_errors *e, struct cfg_pos pos, const char *path, const char *fmt, ...)
{
    struct err *item = new_item(e);
    if (!item)
        return;
    snprintf(item->path, sizeof(item->path), "%s", path ? path : "");
    snprintf(item->file, sizeof(item->file), "%s", pos.file ? pos.file : "");
    item->line = pos.line;
    item->column = pos.column;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(item->text, sizeof(item->text), fmt, ap);
    va_end(ap);
}

void cfg_errors_done(struct cfg_errors *e)
{
    free(e->items);
    *e = (struct cfg_errors){0};
}

static void print_place(const struct err *item, FILE *f)
{
    if (item->file[0])
        fprintf(f, "%s:", item->file);
    if (item->file[0] && item->line)
        fprintf(f, "%d:%d:", item->line, item->column);
    if (item->file[0])
        fputc(' ', f);
}

void cfg_errors_print(const struct cfg_errors *e, FILE *f)
{
    for (size_t i = 0; i < e->n; i++) {
        const struct err *item = &e->items[i];
        print_place(item, f);
        fprintf(f, "%s%s%s\n", item->path, item->path[0] ? ": " : "", item->text);
    }
    if (e->dropped)
        fprintf(f, "and %zu more\n", e->dropped);
}

const char *cfg_suggest(const char *word, const char *const *names)
{
    struct suggest s;
    suggest_init(&s, bytes_str(word));
    for (; *names; names++)
        suggest_offer(&s, bytes_str(*names));
    return (const char *)s.best.data;
}
