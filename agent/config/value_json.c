#include "agent/config/value_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/base/json_text.h"

struct writer {
    struct buf *out;
    enum value_json_style style;
    int depth;
    int status; /* the first error; nothing counts after it */
};

static void put_value(struct writer *w, const struct cfg_value *v);

static void note(struct writer *w, int r)
{
    if (r < 0 && w->status == 0)
        w->status = r;
}

static void put(struct writer *w, const char *text)
{
    note(w, buf_append_str(w->out, text));
}

/* The fewest digits that read back as the same number. */
static void put_double(struct writer *w, double d)
{
    char text[32];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, d);
        if (strtod(text, NULL) == d)
            break;
    }
    if (isfinite(d))
        put(w, text);
    else
        put(w, isnan(d) ? "\"NaN\"" : d > 0 ? "\"Infinity\"" : "\"-Infinity\"");
}

static void put_break(struct writer *w, bool comma)
{
    if (comma)
        put(w, w->style == VALUE_JSON_SPACED ? ", " : ",");
    if (w->style == VALUE_JSON_LINES)
        note(w, buf_printf(w->out, "\n%*s", 2 * w->depth, ""));
}

static void put_children(struct writer *w, const struct cfg_value *v)
{
    const bool map = v->type == CFG_MAP;
    put(w, map ? "{" : "[");
    w->depth++;
    for (size_t i = 0; i < v->n; i++) {
        put_break(w, i > 0);
        if (map) {
            note(w, json_text(w->out, bytes_str(v->keys[i])));
            put(w, w->style == VALUE_JSON_COMPACT ? ":" : ": ");
        }
        put_value(w, v->items[i]);
    }
    w->depth--;
    if (v->n)
        put_break(w, false);
    put(w, map ? "}" : "]");
}

static void put_value(struct writer *w, const struct cfg_value *v)
{
    switch (v ? v->type : CFG_NULL) {
    case CFG_NULL: put(w, "null"); break;
    case CFG_BOOL: put(w, v->b ? "true" : "false"); break;
    case CFG_INT: note(w, buf_printf(w->out, "%lld", (long long)v->i)); break;
    case CFG_UINT: note(w, buf_printf(w->out, "%llu", (unsigned long long)v->u)); break;
    case CFG_DOUBLE: put_double(w, v->d); break;
    case CFG_STRING:
    case CFG_TIMESTAMP: note(w, json_text(w->out, bytes_of(v->text, v->text_len))); break;
    case CFG_LIST:
    case CFG_MAP: put_children(w, v); break;
    }
}

int cfg_value_json(struct buf *out, const struct cfg_value *v, enum value_json_style style)
{
    struct writer w = {.out = out, .style = style};
    put_value(&w, v);
    return w.status;
}
