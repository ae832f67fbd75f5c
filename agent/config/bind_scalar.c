/* Binding of single values: no weak typing, exact texts. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>

#include "agent/config/kinds.h"

const struct cfg_more bind_no_more = {0};

static const struct kind {
    const char *name, *expected;
    size_t size;
} kinds[] = {
    [BIND_BOOL] = {"bool", "true or false", sizeof(bool)},
    [BIND_INT] = {"int", "an int", sizeof(int64_t)},
    [BIND_DOUBLE] = {"float", "a number", sizeof(double)},
    [BIND_DURATION] = {"duration", "a duration such as \"5s\"", sizeof(int64_t)},
    [BIND_SIZE_MIB] = {"int (MiB)", "an int (MiB)", sizeof(int64_t)},
    [BIND_ENUM] = {"enum", "one of the names", sizeof(int)},
    [BIND_STRING] = {"string", "a string", sizeof(char *)},
    [BIND_OPAQUE] = {"string (secret)", "a string", sizeof(char *)},
    [BIND_OCTAL] = {"octal string", "octal digits in quotes such as \"0755\"", sizeof(int64_t)},
    [BIND_ANY] = {"any", "a value", sizeof(struct cfg_value *)},
    [BIND_ID] = {"component id", "a component id", sizeof(struct cfg_id)},
    [BIND_STRUCT] = {"map", "a map", 0},
    [BIND_BLOCK] = {"map", "a map", sizeof(void *)},
    [BIND_LIST] = {"list", "a list", sizeof(struct cfg_list)},
    [BIND_MAP] = {"map", "a map", sizeof(struct cfg_map)},
    [BIND_REFUSED] = {"not served", "nothing", 0},
};

const char *bind_expected(enum bind_kind kind)
{
    return kinds[kind].expected;
}

const char *bind_kind_name(enum bind_kind kind)
{
    return kinds[kind].name;
}

size_t bind_kind_size(enum bind_kind kind)
{
    return kinds[kind].size;
}

int bind_fail(struct binding *x, struct cfg_pos pos, const char *fmt, ...)
{
    char text[900];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    cfg_error(x->b->errors, pos, x->path.text, "%s", text);
    x->failed = true;
    return -EINVAL;
}

/* The start of a text in quotes, control characters as dots. */
static void quote(const char *text, char *ret, size_t size)
{
    size_t n = 0;
    ret[n++] = '"';
    for (; *text && n + 6 < size; text++)
        ret[n++] = (unsigned char)*text < 0x20 || *text == 0x7f ? '.' : *text;
    snprintf(ret + n, size - n, "%s", *text ? "…\"" : "\"");
}

/* Whether a value under this field may be a secret, also one in the wrong place. */
static bool takes_secret(const struct cfg_field *f)
{
    if (f->kind == BIND_OPAQUE)
        return true;
    const struct cfg_field *elem = bind_elem(f);
    if (elem && takes_secret(elem))
        return true;
    for (const struct cfg_field *sub = bind_nested(f); sub && sub->key; sub++)
        if (takes_secret(sub))
            return true;
    return false;
}

int bind_mismatch(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                  const char *want)
{
    char got[80] = "";
    bool hidden = v->secret || takes_secret(f);
    if (v->type == CFG_STRING && !hidden)
        quote(v->text, got, sizeof(got));
    else if (v->type != CFG_NULL && v->type != CFG_LIST && v->type != CFG_MAP && !hidden)
        snprintf(got, sizeof(got), "%.60s", v->text);
    return bind_fail(x, v->pos, "expected %s, got %s%s%s", want, cfg_type_name(v->type),
                     *got ? " " : "", got);
}

static int mismatch(struct binding *x, const struct cfg_field *f, const struct cfg_value *v)
{
    return bind_mismatch(x, f, v, kinds[f->kind].expected);
}

const char *bind_text(const struct cfg_value *v)
{
    return v->type == CFG_STRING || v->expanded ? v->text : NULL;
}

/* min and max of the field, which count in `unit`. */
static int check_range(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                       double number)
{
    const struct cfg_more *more = bind_more(f);
    if ((more->min == 0 && more->max == 0) || (number >= more->min && number <= more->max))
        return 0;
    char want[120], low[32], high[32];
    if (f->kind == BIND_DURATION) {
        cfg_format_duration((int64_t)more->min, low);
        cfg_format_duration(more->max >= 9.2e18 ? INT64_MAX : (int64_t)more->max, high);
    } else {
        snprintf(low, sizeof(low), "%.15g", more->min);
        snprintf(high, sizeof(high), "%.15g", more->max);
    }
    bool open = more->max >= 9.2e18 || isinf(more->max);
    if (open)
        snprintf(want, sizeof(want), "%s or more", low);
    else
        snprintf(want, sizeof(want), "%s to %s", low, high);
    return bind_mismatch(x, f, v, want);
}

static int bind_bool(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                     void *ret)
{
    if (v->type != CFG_BOOL)
        return mismatch(x, f, v);
    *(bool *)ret = v->b;
    return 0;
}

/* A whole number, also when it was written as one such as 1e3. */
static bool as_int(const struct cfg_value *v, int64_t *ret)
{
    if (v->type == CFG_INT)
        *ret = v->i;
    else if (v->type == CFG_DOUBLE && v->d == floor(v->d) && fabs(v->d) < 9e15)
        *ret = (int64_t)v->d;
    else
        return false;
    return true;
}

static int bind_int(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                    void *ret)
{
    int64_t i;
    if (!as_int(v, &i))
        return v->type == CFG_UINT ? bind_mismatch(x, f, v, "a smaller int") : mismatch(x, f, v);
    if (check_range(x, f, v, (double)i) < 0)
        return -EINVAL;
    *(int64_t *)ret = i;
    return 0;
}

static int bind_size(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                     void *ret)
{
    int64_t i = 0;
    if (bind_int(x, f, v, &i) < 0)
        return -EINVAL;
    if (__builtin_mul_overflow(i, (int64_t)1 << 20, (int64_t *)ret))
        return bind_mismatch(x, f, v, "a smaller int (MiB)");
    return 0;
}

static int bind_double(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                       void *ret)
{
    double d;
    if (v->type == CFG_DOUBLE)
        d = v->d;
    else if (v->type == CFG_INT)
        d = (double)v->i;
    else if (v->type == CFG_UINT)
        d = (double)v->u;
    else
        return mismatch(x, f, v);
    if (check_range(x, f, v, d) < 0)
        return -EINVAL;
    *(double *)ret = d;
    return 0;
}

static int bind_duration(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                         void *ret)
{
    int64_t ns = 0;
    bool bare_zero = v->type == CFG_INT && v->i == 0;
    if (!bare_zero && (v->type != CFG_STRING || cfg_parse_duration(v->text, &ns) < 0))
        return mismatch(x, f, v);
    if (check_range(x, f, v, (double)ns) < 0)
        return -EINVAL;
    *(int64_t *)ret = ns;
    return 0;
}

static int bind_octal(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                      void *ret)
{
    const char *text = bind_text(v);
    if (!text || !*text || text[strspn(text, "01234567")] || strlen(text) > 12)
        return mismatch(x, f, v);
    *(int64_t *)ret = strtoll(text, NULL, 8);
    return 0;
}

static int bind_string(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                       void *ret)
{
    struct err e = {0};
    const bool scalar = v->type != CFG_LIST && v->type != CFG_MAP;
    const char *text = f->any_scalar && scalar ? v->text : bind_text(v);
    if (!text)
        return mismatch(x, f, v);
    if (strlen(text) != v->text_len)
        return bind_fail(x, v->pos, "expected a string without NUL bytes");
    if (f->parse && f->parse(text, NULL, &e) < 0)
        return bind_fail(x, v->pos, "%s",
                         v->secret || f->kind == BIND_OPAQUE ? "not valid" : e.text);
    *(const char **)ret = text;
    return 0;
}

/* Whether `name` is one of the spellings in "gzip|default". */
static bool is_spelling(const char *spellings, const char *name, size_t len)
{
    for (;;) {
        size_t n = strcspn(spellings, "|");
        if (n == len && strncmp(spellings, name, len) == 0)
            return true;
        if (!spellings[n])
            return false;
        spellings += n + 1;
    }
}

int bind_enum_index(const struct cfg_field *f, const char *name)
{
    for (int i = 0; f->values[i]; i++)
        if (is_spelling(f->values[i], name, strlen(name)))
            return i;
    return -1;
}

/* "one of gzip, zstd, none", and what was meant perhaps. */
static int enum_mismatch(struct binding *x, const struct cfg_field *f, const struct cfg_value *v)
{
    char want[400] = "one of";
    size_t n = strlen(want);
    for (int i = 0; f->values[i] && n < sizeof(want); i++)
        n += (size_t)snprintf(want + n, sizeof(want) - n, "%s %.*s", i ? "," : "",
                              (int)strcspn(f->values[i], "|"), f->values[i]);
    return bind_mismatch(x, f, v, want);
}

static int bind_enum(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                     void *ret)
{
    const char *text = bind_text(v);
    if (text && !*text)
        return 0;
    int i = text ? bind_enum_index(f, text) : -1;
    if (i < 0)
        return enum_mismatch(x, f, v);
    *(int *)ret = i;
    return 0;
}

static int bind_any(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                    void *ret)
{
    (void)x;
    (void)f;
    *(const struct cfg_value **)ret = v;
    return 0;
}

static int bind_id(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                   void *ret)
{
    struct err e = {0};
    if (v->type != CFG_STRING)
        return mismatch(x, f, v);
    if (cfg_parse_id(v->text, &e) < 0)
        return bind_fail(x, v->pos, "%s", e.text);
    *(struct cfg_id *)ret = (struct cfg_id){cfg_trim_id(x->b->arena, v->text), v->pos};
    return 0;
}

int bind_scalar(struct binding *x, const struct cfg_field *f, const struct cfg_value *v, void *ret)
{
    static int (*const binders[])(struct binding *, const struct cfg_field *,
                                  const struct cfg_value *, void *) = {
        [BIND_BOOL] = bind_bool,         [BIND_INT] = bind_int,       [BIND_DOUBLE] = bind_double,
        [BIND_DURATION] = bind_duration, [BIND_SIZE_MIB] = bind_size, [BIND_ENUM] = bind_enum,
        [BIND_STRING] = bind_string,     [BIND_OPAQUE] = bind_string, [BIND_OCTAL] = bind_octal,
        [BIND_ANY] = bind_any,           [BIND_ID] = bind_id,
    };
    return binders[f->kind](x, f, v, ret);
}
