/* A config value in the notation of tests/golden/config. */
#ifndef MOTEL_TESTS_CONFIG_SHOW_H
#define MOTEL_TESTS_CONFIG_SHOW_H

#include <inttypes.h>
#include <math.h>

#include "agent/base/buf.h"
#include "agent/config/errors.h"

/* What cfg_errors_print() writes; cut at `size`. */
static inline void show_errors(const struct cfg_errors *errs, char *ret, size_t size)
{
    FILE *f = fmemopen(ret, size, "w");
    *ret = 0;
    cfg_errors_print(errs, f);
    fclose(f);
}

static inline void show_string(struct buf *b, struct bytes s)
{
    static const char short_names[] = "\bb\ff\nn\rr\tt\"\"\\\\";
    buf_putc(b, '"');
    for (size_t i = 0; i < s.len; i++) {
        const char *p = s.data[i] ? strchr(short_names, s.data[i]) : NULL;
        if (p && (p - short_names) % 2 == 0)
            buf_printf(b, "\\%c", p[1]);
        else if (s.data[i] < 0x20)
            buf_printf(b, "\\u%04x", s.data[i]);
        else
            buf_putc(b, (char)s.data[i]);
    }
    buf_putc(b, '"');
}

static inline int show_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static inline void show_value(struct buf *b, const struct cfg_value *v);

static inline void show_map(struct buf *b, const struct cfg_value *v)
{
    const char **keys = calloc(v->n + 1, sizeof(*keys));
    for (size_t i = 0; i < v->n; i++)
        keys[i] = v->keys[i];
    qsort(keys, v->n, sizeof(*keys), show_order);
    buf_putc(b, '{');
    for (size_t i = 0; i < v->n; i++) {
        if (i)
            buf_putc(b, ',');
        show_string(b, bytes_str(keys[i]));
        buf_putc(b, ':');
        show_value(b, cfg_get(v, keys[i]));
    }
    buf_putc(b, '}');
    free(keys);
}

static inline void show_list(struct buf *b, const struct cfg_value *v)
{
    buf_putc(b, '[');
    for (size_t i = 0; i < v->n; i++) {
        if (i)
            buf_putc(b, ',');
        show_value(b, v->items[i]);
    }
    buf_putc(b, ']');
}

static inline void show_double(struct buf *b, double d)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof(bits));
    if (isnan(d))
        buf_append_str(b, "f:nan");
    else
        buf_printf(b, "f:%" PRIx64, bits);
}

static inline void show_value(struct buf *b, const struct cfg_value *v)
{
    switch (v->type) {
    case CFG_NULL: buf_append_str(b, "null"); break;
    case CFG_BOOL: buf_append_str(b, v->b ? "true" : "false"); break;
    case CFG_INT: buf_printf(b, "i:%" PRId64, v->i); break;
    case CFG_UINT: buf_printf(b, "i:%" PRIu64, v->u); break;
    case CFG_DOUBLE: show_double(b, v->d); break;
    case CFG_STRING: show_string(b, bytes_of(v->text, v->text_len)); break;
    case CFG_TIMESTAMP: buf_append_str(b, "time"); break;
    case CFG_LIST: show_list(b, v); break;
    case CFG_MAP: show_map(b, v); break;
    }
}

#endif
