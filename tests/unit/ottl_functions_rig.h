/* One log record, an editor show(value), and how values are shown in
 * tests/golden/ottl/functions.tsv. */
#ifndef MOTEL_TESTS_OTTL_FUNCTIONS_RIG_H
#define MOTEL_TESTS_OTTL_FUNCTIONS_RIG_H

#include <errno.h>

#include "agent/base/encode.h"
#include "ottl/ottl.h"
#include "ottl/walk.h"
#include "proto/json.h"

/* ---- the record ---- */

static const struct {
    const char *key, *value;
} attributes[] = {
    {"s", "{\"stringValue\":\"str\"}"},
    {"i", "{\"intValue\":\"5\"}"},
    {"d", "{\"doubleValue\":1.5}"},
    {"b", "{\"boolValue\":true}"},
    {"y", "{\"bytesValue\":\"AQL/\"}"},
    {"y0", "{\"bytesValue\":\"\"}"},
    {"e", "{}"},
    {"m",
     "{\"kvlistValue\":{\"values\":[{\"key\":\"z\",\"value\":{\"stringValue\":\"<&>\"}},"
     "{\"key\":\"a\",\"value\":{\"intValue\":1}},{\"key\":\"f\",\"value\":{\"doubleValue\":1e-7}},"
     "{\"key\":\"y\",\"value\":{\"bytesValue\":\"AQL/\"}},"
     "{\"key\":\"y0\",\"value\":{\"bytesValue\":\"\"}},{\"key\":\"e\",\"value\":{}}]}}"},
    {"l", "{\"arrayValue\":{\"values\":[{\"intValue\":3},{\"intValue\":1},{\"stringValue\":\"x\"},"
          "{\"doubleValue\":2},{\"boolValue\":true},{}]}}"},
    {"n",
     "{\"kvlistValue\":{\"values\":[{\"key\":\"l\",\"value\":{\"arrayValue\":{\"values\":["
     "{\"intValue\":1},{\"arrayValue\":{\"values\":[{\"intValue\":2},{\"arrayValue\":{\"values\":["
     "{\"intValue\":3},{\"intValue\":4}]}}]}},{\"kvlistValue\":{\"values\":[{\"key\":\"x\","
     "\"value\":{\"kvlistValue\":{\"values\":[{\"key\":\"y\",\"value\":{\"intValue\":1}}]}}}]}}]}}}"
     ","
     "{\"key\":\"a\",\"value\":{\"kvlistValue\":{\"values\":[{\"key\":\"b\",\"value\":"
     "{\"kvlistValue\":{\"values\":[{\"key\":\"c\",\"value\":{\"intValue\":1}}]}}}]}}},"
     "{\"key\":\"a.b.c\",\"value\":{\"intValue\":5}},{\"key\":\"l.0\",\"value\":{\"intValue\":6}}]}"
     "}"},
    {"long", "{\"stringValue\":\"a\\u00e9\\u20ac\\ud83d\\ude00\"}"},
    {"q", "{\"stringValue\":\"k=v a=\\\"b c\\\" x='y=z' n=\"}"},
};

/* Whether `key` is in the list "a,b,c"; NULL has all. */
static bool listed(const char *keys, const char *key)
{
    size_t n = strlen(key);
    for (const char *p = keys; p && *p; p += strcspn(p, ","), p += *p == ',')
        if (strncmp(p, key, n) == 0 && (p[n] == ',' || p[n] == 0))
            return true;
    return !keys;
}

static struct batch *make_batch(const char *keys)
{
    struct buf *text = buf_new(0), *wire = buf_new(0);
    struct batch *b = NULL;
    struct err e = {0};
    bool first = true;
    buf_append_str(text, "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{\"body\":"
                         "{\"stringValue\":\"hello\"},\"attributes\":[");
    for (size_t i = 0; i < ARRAY_SIZE(attributes); i++) {
        if (!listed(keys, attributes[i].key))
            continue;
        buf_printf(text, "%s{\"key\":\"%s\",\"value\":%s}", first ? "" : ",", attributes[i].key,
                   attributes[i].value);
        first = false;
    }
    buf_append_str(text, "]}]}]}]}");
    if (json_read(schema_request(SIGNAL_LOGS), buf_bytes(text), wire, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(batch_from_wire(SIGNAL_LOGS, wire, &b, &e), 0);
    buf_unref(text);
    return b;
}

/* ---- how values are shown ---- */

static void show(const struct ottl_value *v, struct buf *out);

static void show_string(struct bytes s, struct buf *out)
{
    buf_putc(out, '"');
    for (size_t i = 0; i < s.len; i++) {
        uint8_t c = s.data[i];
        bool cut = (c & 0xe0) == 0xc0 && (i + 1 == s.len || (s.data[i + 1] & 0xc0) != 0x80);
        cut = cut || ((c & 0xc0) == 0x80 && i == 0);
        cut =
            cut || ((c & 0xf0) == 0xe0 && i + 2 >= s.len) || ((c & 0xf8) == 0xf0 && i + 3 >= s.len);
        if (c == '\n')
            buf_append_str(out, "\\n");
        else if (c < 0x20 || c == 0x7f || cut)
            buf_printf(out, "\\x%02x", c);
        else
            buf_printf(out, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    buf_putc(out, '"');
}

static void show_hex(const char *before, struct bytes b, const char *behind, struct buf *out)
{
    buf_append_str(out, before);
    for (size_t i = 0; i < b.len; i++)
        buf_printf(out, "%02x", b.data[i]);
    buf_append_str(out, behind);
}

static int by_key(const void *a, const void *b)
{
    const struct ottl_entry *x = a, *y = b;
    struct ottl_value k = ottl_string(x->key), l = ottl_string(y->key);
    return ottl_compare(&k, OTTL_LT, &l) ? -1 : ottl_compare(&k, OTTL_GT, &l);
}

static void show_map(const struct ottl_map *m, struct buf *out)
{
    if (m->n)
        qsort(m->items, m->n, sizeof(*m->items), by_key);
    for (size_t i = 0; i < m->n; i++) {
        buf_append_str(out, i ? ", " : "{");
        show_string(m->items[i].key, out);
        buf_append_str(out, ": ");
        show(&m->items[i].value, out);
    }
    buf_append_str(out, m->n ? "}" : "{}");
}

static void show_double(double d, struct buf *out)
{
    char text[DOUBLE_MAX_BYTES];
    buf_putc(out, 'f');
    buf_append(out, text, double_text(d, DOUBLE_GO, text));
}

static void show(const struct ottl_value *v, struct buf *out)
{
    switch (v->kind) {
    case OTTL_NIL: buf_append_str(out, "nil"); break;
    case OTTL_BOOL: buf_append_str(out, v->b ? "true" : "false"); break;
    case OTTL_INT: buf_printf(out, "%lld", (long long)v->i); break;
    case OTTL_DOUBLE: show_double(v->d, out); break;
    case OTTL_STRING: show_string(v->bytes, out); break;
    case OTTL_BYTES: show_hex("x'", v->bytes, "'", out); break;
    case OTTL_TRACE_ID:
    case OTTL_SPAN_ID: show_hex("id(", v->bytes, ")", out); break;
    case OTTL_TIME: buf_printf(out, "t%lld", (long long)v->i); break;
    case OTTL_DURATION: buf_printf(out, "d%lld", (long long)v->i); break;
    case OTTL_MAP: show_map(v->map, out); break;
    case OTTL_ITEMS: buf_append_str(out, "items"); break;
    case OTTL_LIST:
        for (size_t i = 0; i < v->list->n; i++) {
            buf_append_str(out, i ? ", " : "[");
            show(&v->list->items[i], out);
        }
        buf_append_str(out, v->list->n ? "]" : "[]");
        break;
    }
}

/* show(value): an editor that writes what it is given into `shown`. */
static struct buf *shown;

static int show_call(const struct ottl_call *c, struct ottl_env *env, struct ottl_value *ret)
{
    struct ottl_value v;
    (void)ret;
    int r = ottl_arg_value(c, 0, env, &v);
    if (r == 0)
        show(&v, shown);
    return r;
}

static const struct ottl_param show_params[] = {{"value", OTTL_P_ANY, false}, {0}};
static const struct ottl_function show_table[] = {{"show", show_params, .call = show_call}, {0}};
static const struct ottl_function *const tables[] = {show_table, ottl_editors, ottl_converters,
                                                     NULL};
static const struct ottl_dialect dialect = {
    .context = OTTL_LOG,
    .allowed = OTTL_CONTEXT_BIT(OTTL_LOG),
    .functions = tables,
};

/* ---- lines of the table: "@keys statement", or an expression ---- */

struct table_line {
    char keys[64];   /* attributes of the record; "" = all */
    char text[8300]; /* the statement */
    bool statement;  /* what it did to body and attributes is shown, else the value */
};

static void read_line(const char *line, struct table_line *ret)
{
    *ret = (struct table_line){.statement = line[0] == '@'};
    if (ret->statement) {
        const char *space = strchr(line, ' ');
        snprintf(ret->keys, sizeof(ret->keys), "%.*s", (int)(space - line - 1), line + 1);
        line = space + 1;
    }
    snprintf(ret->text, sizeof(ret->text), ret->statement ? "%s" : "show(%s)", line);
}

static struct batch *batch_of(const struct table_line *l)
{
    return make_batch(l->statement ? l->keys : NULL);
}

static enum ottl_visit run_one(void *ctx, struct ottl_env *env)
{
    int r = ottl_statement_run(ctx, env, NULL);
    return r == -ENOMEM ? OTTL_NO_MEMORY : r < 0 ? OTTL_STOP : OTTL_KEEP;
}

/* Runs the statement on the batch; *ret = NULL and a negative errno when it fails, *ret_started
 * says where. */
static int run_statement(const char *text, struct batch *b, struct batch **ret, bool *ret_started,
                         struct err *e)
{
    _cleanup_(ottl_statement_freep) struct ottl_statement *s = NULL;
    *ret = NULL;
    int r = ottl_statement_parse(bytes_str(text), &dialect, &s, e);
    *ret_started = r == 0;
    struct ottl_walk w = {OTTL_LOG, run_one, s};
    return r < 0 ? r : ottl_walk(&w, b, ret, e);
}

#endif
