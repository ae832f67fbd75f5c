#include "ottl/value_json.h"

#include <errno.h>

#include "agent/base/encode.h"
#include "agent/base/number.h"
#include "agent/base/utf8.h"
#include "proto/check.h"

struct json {
    struct arena *arena;
    const uint8_t *start, *p, *end;
    struct err *err;
    int depth;
};

static int read_value(struct json *j, struct ottl_value *ret);

static int fail(struct json *j, const char *expected)
{
    size_t at = (size_t)(j->p - j->start);
    if (j->p == j->end)
        return err_set(j->err, -EINVAL, "not JSON: expected %s at byte %zu, got the end", expected,
                       at);
    return err_set(j->err, -EINVAL, "not JSON: expected %s at byte %zu, got '%.1s'", expected, at,
                   *j->p < 0x80 ? (const char *)j->p : "?");
}

static void skip_space(struct json *j)
{
    while (j->p < j->end && memchr(" \t\r\n", *j->p, 4))
        j->p++;
}

/* Takes the character when it is next. */
static bool take(struct json *j, char c)
{
    if (j->p == j->end || *j->p != (uint8_t)c)
        return false;
    j->p++;
    return true;
}

static bool take_word(struct json *j, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(j->end - j->p) < n || memcmp(j->p, word, n) != 0)
        return false;
    j->p += n;
    return true;
}

/* ---- strings ---- */

/* Four hex digits. */
static bool take_unit(struct json *j, uint32_t *ret)
{
    uint8_t b[2];
    if (j->end - j->p < 4 || !decode_hex(bytes_of(j->p, 4), b))
        return false;
    *ret = (uint32_t)b[0] << 8 | b[1];
    j->p += 4;
    return true;
}

static size_t put_char(uint32_t c, uint8_t *out)
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i > 1; i--, c >>= 6)
        out[i - 1] = (uint8_t)(0x80 | (c & 0x3f));
    out[0] = (uint8_t)(n == 1 ? c : (0xf00u >> n & 0xff) | c);
    return n;
}

/* Behind "\u"; a surrogate without its other half is U+FFFD. */
static bool take_escaped_char(struct json *j, uint32_t *ret)
{
    uint32_t low;
    if (!take_unit(j, ret))
        return false;
    if (*ret < 0xd800 || *ret > 0xdfff)
        return true;
    const uint8_t *behind = j->p;
    if (*ret < 0xdc00 && take_word(j, "\\u") && take_unit(j, &low) && low >= 0xdc00 &&
        low <= 0xdfff) {
        *ret = 0x10000 + ((*ret - 0xd800) << 10 | (low - 0xdc00));
        return true;
    }
    j->p = behind;
    *ret = 0xfffd;
    return true;
}

/* Behind the backslash; *out moves behind what it stands for. */
static bool take_escape(struct json *j, uint8_t **out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    uint32_t c;
    if (take(j, 'u')) {
        if (!take_escaped_char(j, &c))
            return false;
        *out += put_char(c, *out);
        return true;
    }
    const char *known = j->p < j->end && *j->p ? strchr(from, *j->p) : NULL;
    if (!known)
        return false;
    j->p++;
    *(*out)++ = (uint8_t)to[known - from];
    return true;
}

/* The text is never longer than what is written for it. */
static int read_string(struct json *j, struct bytes *ret)
{
    const uint8_t *close = j->p;
    while (close < j->end && *close != '"')
        close += *close == '\\' ? 2 : 1;
    size_t most = (size_t)((close < j->end ? close : j->end) - j->p);
    uint8_t *text = arena_alloc(j->arena, most + 1), *out = text;
    if (!text)
        return -ENOMEM;
    while (j->p < j->end && *j->p != '"') {
        if (*j->p != '\\')
            *out++ = *j->p++;
        else if (j->p++, !take_escape(j, &out))
            return fail(j, "an escape");
    }
    *ret = bytes_of(text, (size_t)(out - text));
    return take(j, '"') ? 0 : fail(j, "\"");
}

/* ---- lists and maps ---- */

static int read_list(struct json *j, struct ottl_value *ret)
{
    struct ottl_list *l = ottl_list_new(j->arena);
    int r = l ? 0 : -ENOMEM;
    *ret = (struct ottl_value){.kind = OTTL_LIST, .list = l};
    skip_space(j);
    if (r < 0 || take(j, ']'))
        return r;
    do {
        struct ottl_value v = ottl_nil();
        r = read_value(j, &v);
        if (r == 0)
            r = ottl_list_append(j->arena, l, v);
        skip_space(j);
    } while (r == 0 && take(j, ','));
    return r < 0 || take(j, ']') ? r : fail(j, ", or ]");
}

static int by_key(const void *a, const void *b)
{
    const struct ottl_entry *x = *(struct ottl_entry *const *)a;
    const struct ottl_entry *y = *(struct ottl_entry *const *)b;
    if (x->key.len != y->key.len)
        return x->key.len < y->key.len ? -1 : 1;
    int d = x->key.len ? memcmp(x->key.data, y->key.data, x->key.len) : 0;
    return d ? d : x < y ? -1 : 1;
}

/* Of entries with the same key the first takes the value of the last, and the others go. */
static int drop_doubles(struct arena *a, struct ottl_map *m)
{
    struct ottl_entry **sorted = arena_alloc(a, (m->n + 1) * sizeof(*sorted));
    size_t kept = 0;
    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < m->n; i++)
        sorted[i] = &m->items[i];
    qsort(sorted, m->n, sizeof(*sorted), by_key);
    for (size_t i = 0, first = 0; i < m->n; i++) {
        if (!bytes_eq(sorted[i]->key, sorted[first]->key))
            first = i;
        if (i == first)
            continue;
        sorted[first]->value = sorted[i]->value;
        sorted[i]->key.data = NULL;
    }
    for (size_t i = 0; i < m->n; i++)
        if (m->items[i].key.data)
            m->items[kept++] = m->items[i];
    m->n = kept;
    return 0;
}

static int read_entry(struct json *j, struct ottl_map *m)
{
    struct ottl_value v = ottl_nil();
    struct bytes key;
    skip_space(j);
    if (!take(j, '"'))
        return fail(j, "a key in quotes");
    int r = read_string(j, &key);
    if (r < 0)
        return r;
    skip_space(j);
    if (!take(j, ':'))
        return fail(j, ":");
    r = read_value(j, &v);
    return r < 0 ? r : ottl_map_append(j->arena, m, key, v);
}

static int read_map(struct json *j, struct ottl_value *ret)
{
    struct ottl_map *m = ottl_map_new(j->arena);
    int r = m ? 0 : -ENOMEM;
    *ret = (struct ottl_value){.kind = OTTL_MAP, .map = m};
    skip_space(j);
    if (r < 0 || take(j, '}'))
        return r;
    do {
        r = read_entry(j, m);
        skip_space(j);
    } while (r == 0 && take(j, ','));
    if (r == 0 && !take(j, '}'))
        return fail(j, ", or }");
    return r < 0 ? r : drop_doubles(j->arena, m);
}

/* ---- values ---- */

static int read_number(struct json *j, struct ottl_value *ret)
{
    const uint8_t *from = j->p;
    double d;
    while (j->p < j->end && *j->p && strchr("0123456789+-.eE", *j->p))
        j->p++;
    struct bytes text = bytes_of(from, (size_t)(j->p - from));
    bool number = text.len && text.data[0] != '+' && number_parse_double(text, &d);
    if (number)
        *ret = ottl_double(d);
    else
        j->p = from;
    return number ? 0 : fail(j, "a value");
}

static int read_nested(struct json *j, bool map, struct ottl_value *ret)
{
    if (j->depth == OTLP_MAX_DEPTH)
        return err_set(j->err, -EINVAL, "JSON is nested deeper than %d lists and maps",
                       OTLP_MAX_DEPTH);
    j->depth++;
    int r = map ? read_map(j, ret) : read_list(j, ret);
    j->depth--;
    return r;
}

static int read_value(struct json *j, struct ottl_value *ret)
{
    struct bytes s = {0};
    skip_space(j);
    if (take(j, '{'))
        return read_nested(j, true, ret);
    if (take(j, '['))
        return read_nested(j, false, ret);
    if (take(j, '"')) {
        int r = read_string(j, &s);
        *ret = ottl_string(s);
        return r;
    }
    *ret = ottl_nil();
    if (take_word(j, "null"))
        return 0;
    *ret = ottl_bool(take_word(j, "true"));
    if (ret->b || take_word(j, "false"))
        return 0;
    return read_number(j, ret);
}

int ottl_value_from_json(struct arena *a, struct bytes text, struct ottl_value *ret,
                         struct err *reterr)
{
    struct json j = {a, text.data, text.data, text.data + text.len, reterr, 0};
    int r = read_value(&j, ret);
    skip_space(&j);
    return r < 0 || j.p == j.end ? r : fail(&j, "the end");
}
