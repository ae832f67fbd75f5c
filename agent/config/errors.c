/* Collected mistakes, and the nearest word for a misspelt one. */
#include "agent/config/errors.h"

#include <stdarg.h>
#include <string.h>

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

#define WORD_MAX 48

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;
    return m < c ? m : c;
}

/* Optimal string alignment: insertions, deletions, replacements, swaps of neighbours. */
static unsigned distance(const char *a, size_t na, const char *b, size_t nb)
{
    unsigned rows[3][WORD_MAX + 1];
    unsigned *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= nb; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= na; i++) {
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
        unsigned *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[nb];
}

const char *cfg_suggest(const char *word, const char *const *names)
{
    size_t n = strlen(word);
    if (n < 2 || n > WORD_MAX)
        return NULL;
    unsigned best = (unsigned)(n < 5 ? 1 : n < 12 ? 2 : 3) + 1;
    const char *found = NULL;
    for (; *names; names++) {
        size_t len = strlen(*names);
        if (len > WORD_MAX)
            continue;
        unsigned d = distance(word, n, *names, len);
        if (d < best) {
            best = d;
            found = *names;
        }
    }
    return found;
}
