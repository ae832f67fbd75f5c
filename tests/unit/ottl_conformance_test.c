/*
 * The table of what the reference collector does with a few hundred statements, run here: tests/golden/ottl/README.md says what its
 * columns mean.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>

#include "ottl/ottl.h"
#include "ottl/walk.h"
#include "proto/json.h"
#include "tests/unit/tsv.h"

#define DIR TEST_DATA "/golden/ottl/"

enum { AREA, INPUT, KIND, TEXT, EXPECTED, MOTEL, REASON, COLUMNS };

/* ---- what a collector's JSON says, without the envelopes of values ---- */

static json_t *simple_value(json_t *v);

static json_t *simple_map(json_t *pairs)
{
    json_t *out = json_object(), *pair;
    size_t i;
    json_array_foreach(pairs, i, pair)
        json_object_set_new(out, json_string_value(json_object_get(pair, "key")),
                            simple_value(json_object_get(pair, "value")));
    return out;
}

static json_t *simple_list(json_t *values)
{
    json_t *out = json_array(), *value;
    size_t i;
    json_array_foreach(values, i, value)
        json_array_append_new(out, simple_value(value));
    return out;
}

static json_t *simple_value(json_t *v)
{
    json_t *x;
    if ((x = json_object_get(v, "stringValue")) || (x = json_object_get(v, "boolValue")))
        return json_incref(x);
    if ((x = json_object_get(v, "intValue")))
        return json_integer(strtoll(json_string_value(x), NULL, 10));
    if ((x = json_object_get(v, "doubleValue")))
        return json_is_string(x) ? json_pack("{s:O}", "double", x) : json_real(json_number_value(x));
    if ((x = json_object_get(v, "bytesValue")))
        return json_pack("{s:O}", "bytes", x);
    if ((x = json_object_get(v, "arrayValue")))
        return simple_list(json_object_get(x, "values"));
    if ((x = json_object_get(v, "kvlistValue")))
        return simple_map(json_object_get(x, "values"));
    return json_null();
}

static bool is_map_field(const char *key)
{
    return strcmp(key, "attributes") == 0 || strcmp(key, "filteredAttributes") == 0 || strcmp(key, "metadata") == 0;
}

static json_t *simple(json_t *j)
{
    const char *key;
    json_t *value, *out;
    size_t i;
    if (json_is_array(j)) {
        out = json_array();
        json_array_foreach(j, i, value)
            json_array_append_new(out, simple(value));
        return out;
    }
    if (json_is_real(j) && json_real_value(j) == (double)(long long)json_real_value(j))
        return json_integer((long long)json_real_value(j));
    if (!json_is_object(j))
        return json_incref(j);
    out = json_object();
    json_object_foreach(j, key, value)
        json_object_set_new(out, key,
                            is_map_field(key)           ? simple_map(value)
                            : strcmp(key, "body") == 0 ? simple_value(value)
                                                        : simple(value));
    return out;
}

/* ---- one row ---- */

struct row {
    char *columns[TSV_COLUMNS];
    json_t *input; /* of inputs.json */
    int context;   /* -1: inferred */
    enum signal signal;
};

static const char *const top_names[] = {"resourceSpans", "resourceMetrics", "resourceLogs"};
static const char *const middle_names[] = {"scopeSpans", "scopeMetrics", "scopeLogs"};
static const char *const signal_names[] = {"traces", "metrics", "logs"};

static const struct ottl_function *const plain_tables[] = {ottl_editors, ottl_converters, NULL};
static const struct ottl_function *const metric_tables[] = {ottl_editors, ottl_converters, ottl_metric_editors, NULL};

static void row_input(struct row *row, json_t *inputs)
{
    char *name = row->columns[INPUT], *context = strchr(name, '@');
    char plain[64];
    snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(name, "@"), name);
    row->input = json_object_get(inputs, plain);
    assert_non_null(row->input);
    const char *own = json_string_value(json_object_get(row->input, "context"));
    row->context = ottl_context_find(bytes_str(context ? context + 1 : own));
    for (unsigned s = 0; s < SIGNAL_COUNT; s++)
        if (strcmp(json_string_value(json_object_get(row->input, "signal")), signal_names[s]) == 0)
            row->signal = (enum signal)s;
}

static struct batch *row_batch(const struct row *row)
{
    struct buf *wire = buf_new(0);
    struct batch *b = NULL;
    struct err e;
    char *text = json_dumps(json_object_get(row->input, "request"), 0);
    assert_int_equal(json_read(schema_request(row->signal), bytes_str(text), wire, &e), 0);
    assert_int_equal(batch_from_wire(row->signal, wire, &b, &e), 0);
    free(text);
    return b;
}

static unsigned allowed_contexts(enum signal s)
{
    unsigned both = OTTL_CONTEXT_BIT(OTTL_RESOURCE) | OTTL_CONTEXT_BIT(OTTL_SCOPE);
    switch (s) {
    case SIGNAL_TRACES:
        return both | OTTL_CONTEXT_BIT(OTTL_SPAN) | OTTL_CONTEXT_BIT(OTTL_SPANEVENT);
    case SIGNAL_METRICS:
        return both | OTTL_CONTEXT_BIT(OTTL_METRIC) | OTTL_CONTEXT_BIT(OTTL_DATAPOINT) | OTTL_CONTEXT_BIT(OTTL_EXEMPLAR);
    default:
        return both | OTTL_CONTEXT_BIT(OTTL_LOG);
    }
}

static int row_statement(const struct row *row, struct ottl_statement **ret, struct err *e)
{
    _cleanup_buf_ struct buf *text = buf_new(0);
    const struct ottl_dialect d = {.context = row->context, .allowed = allowed_contexts(row->signal), .prefix_required = row->context < 0,
                                   .functions = row->signal == SIGNAL_METRICS ? metric_tables : plain_tables};
    const char *kind = row->columns[KIND];
    buf_printf(text, strcmp(kind, "expr") == 0   ? "set(attributes[\"out\"], %s)"
                     : strcmp(kind, "cond") == 0 ? "set(attributes[\"out\"], true) where (%s)"
                                                 : "%s",
               row->columns[TEXT]);
    return ottl_statement_parse(buf_bytes(text), &d, ret, e);
}

struct running {
    const struct ottl_statement *statement;
    char error[1100];
};

static enum ottl_visit visit(void *ctx, struct ottl_env *env)
{
    struct running *x = ctx;
    int r = ottl_statement_run(x->statement, env, NULL);
    assert_int_not_equal(r, -ENOMEM);
    if (r < 0)
        snprintf(x->error, sizeof(x->error), "error: %s", env->err->text);
    return OTTL_KEEP;
}

/* What is compared: a value, a record, metrics, or resource and scope. NULL: the attribute is absent. */
static json_t *pick(const struct row *row, json_t *batch)
{
    json_t *resource = json_array_get(json_object_get(batch, top_names[row->signal]), 0);
    json_t *scope = json_array_get(json_object_get(resource, middle_names[row->signal]), 0);
    json_t *records = json_object_get(scope, json_string_value(json_object_get(row->input, "records")));
    if (strcmp(row->columns[KIND], "do") != 0) {
        json_t *attributes = simple_map(json_object_get(json_array_get(records, 0), "attributes"));
        json_t *out = json_incref(json_object_get(attributes, "out"));
        json_decref(attributes);
        return out;
    }
    if (row->context == OTTL_RESOURCE || row->context == OTTL_SCOPE) {
        json_t *both = json_pack("{s:O, s:O?}", "resource", json_object_get(resource, "resource"), "scope", json_object_get(scope, "scope"));
        json_t *out = simple(both);
        json_decref(both);
        return out;
    }
    return simple(row->signal == SIGNAL_METRICS ? records : json_array_get(records, 0));
}

/* "refused: …", "error: …", "absent", or JSON. */
static char *answer(const struct row *row)
{
    _cleanup_batch_ struct batch *in = row_batch(row), *out = NULL;
    _cleanup_(ottl_statement_freep) struct ottl_statement *s = NULL;
    _cleanup_buf_ struct buf *text = buf_new(0);
    struct err e;
    struct running x = {.error = ""};
    if (row_statement(row, &s, &e) < 0) {
        buf_printf(text, "refused: %s", e.text);
        return strdup(buf_str(text));
    }
    x.statement = s;
    struct ottl_walk walk = {ottl_statement_context(s), visit, &x};
    assert_int_equal(ottl_walk(&walk, in, &out, &e), 0);
    if (x.error[0])
        return strdup(x.error);
    assert_int_equal(json_write_batch(out, 0, text), 0);
    json_t *j = json_loads(buf_str(text), JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL); /* a double may be 1e20 in digits */
    assert_non_null(j);
    json_t *picked = pick(row, j);
    char *r = picked ? json_dumps(picked, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY) : strdup("absent");
    json_decref(picked);
    json_decref(j);
    return r;
}

/* Of refusals and errors only that they happen is compared: their texts are ours. */
static bool same(const char *got, const char *want)
{
    static const char *const words[] = {"refused: ", "error: ", "absent"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strncmp(want, words[i], strlen(words[i])) == 0)
            return strncmp(got, words[i], strlen(words[i])) == 0;
    json_t *a = json_loads(got, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL), *b = json_loads(want, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    bool r = a && b && json_equal(a, b);
    json_decref(a);
    json_decref(b);
    return r;
}

static bool check(char *line, json_t *inputs)
{
    struct row row = {.columns = {NULL}};
    size_t n = tsv_split(line, row.columns);
    if (!n || line[0] == '#' || !line[0])
        return true;
    assert_true(n > EXPECTED);
    for (size_t i = 0; i < n; i++)
        tsv_unescape(row.columns[i]);
    row_input(&row, inputs);
    const char *want = n > MOTEL && row.columns[MOTEL][0] ? row.columns[MOTEL] : row.columns[EXPECTED];
    char *got = answer(&row);
    bool good = same(got, want);
    if (!good)
        print_error("%s %s %s: %s\n  gave   %s\n  wanted %s\n", row.columns[AREA], row.columns[INPUT], row.columns[KIND], row.columns[TEXT], got,
                    want);
    free(got);
    return good;
}

static void test_table(void **state)
{
    (void)state;
    _cleanup_fclose_ FILE *f = fopen(DIR "conformance.tsv", "r");
    json_t *inputs = json_load_file(DIR "inputs.json", 0, NULL);
    char *line = NULL;
    size_t cap = 0, rows = 0, bad = 0;
    assert_non_null(f);
    assert_non_null(inputs);
    for (; getline(&line, &cap, f) >= 0; rows++)
        bad += !check(line, inputs);
    free(line);
    json_decref(inputs);
    assert_true(rows > 1000);
    if (bad)
        fail_msg("%zu of %zu rows differ", bad, rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table)};
    setenv("TZDIR", DIR "zoneinfo", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
