#include "receivers/otlp/media_type.h"

#include <strings.h>

#define MAX_PARAMETERS 8

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_token(uint8_t c)
{
    return c > ' ' && c < 0x7f && !strchr("()<>@,;:\\\"/[]?=", c);
}

static struct bytes skip(struct bytes b, size_t n)
{
    return bytes_of(b.data + n, b.len - n);
}

static struct bytes skip_space(struct bytes b)
{
    while (b.len && is_space(b.data[0]))
        b = skip(b, 1);
    return b;
}

static struct bytes take_token(struct bytes *b)
{
    size_t n = 0;
    while (n < b->len && is_token(b->data[n]))
        n++;
    struct bytes t = bytes_of(b->data, n);
    *b = skip(*b, n);
    return t;
}

/* A token or a quoted string; false when there is neither. */
static bool take_value(struct bytes *b)
{
    if (!b->len)
        return false;
    if (b->data[0] != '"')
        return take_token(b).len > 0;
    size_t i = 1;
    while (i < b->len && b->data[i] != '"') {
        if (b->data[i] == '\r' || b->data[i] == '\n')
            return false;
        i += b->data[i] == '\\' && i + 1 < b->len ? 2 : 1;
    }
    if (i >= b->len)
        return false;
    *b = skip(*b, i + 1);
    return true;
}

/* "; name = value"; false when malformed. */
static bool take_parameter(struct bytes *b, struct bytes *ret_name)
{
    *b = skip_space(*b);
    if (!b->len || b->data[0] != ';')
        return false;
    *b = skip_space(skip(*b, 1));
    *ret_name = take_token(b);
    *b = skip_space(*b);
    if (!ret_name->len || !b->len || b->data[0] != '=')
        return false;
    *b = skip_space(skip(*b, 1));
    return take_value(b);
}

static bool same_name(struct bytes a, struct bytes b)
{
    return a.len == b.len && strncasecmp((const char *)a.data, (const char *)b.data, a.len) == 0;
}

static bool parameters_ok(struct bytes b)
{
    struct bytes names[MAX_PARAMETERS];
    for (size_t n = 0;; n++) {
        b = skip_space(b);
        if (!b.len || (b.data[0] == ';' && skip_space(skip(b, 1)).len == 0)) /* one may end it */
            return true;
        if (n == MAX_PARAMETERS || !take_parameter(&b, &names[n]))
            return false;
        for (size_t i = 0; i < n; i++)
            if (same_name(names[i], names[n]))
                return false;
    }
}

/* token or token/token */
static bool type_ok(struct bytes type)
{
    struct bytes rest = type;
    if (!take_token(&rest).len)
        return false;
    if (!rest.len)
        return true;
    if (rest.data[0] != '/')
        return false;
    rest = skip(rest, 1);
    return take_token(&rest).len && !rest.len;
}

void media_type_parse(struct bytes value, char ret[MEDIA_TYPE_BYTES])
{
    ret[0] = 0;
    if (!value.len)
        return;
    const uint8_t *semicolon = memchr(value.data, ';', value.len);
    struct bytes type = value;
    if (semicolon)
        type.len = (size_t)(semicolon - value.data);
    struct bytes parameters = bytes_of(value.data + type.len, value.len - type.len);
    type = skip_space(type);
    while (type.len && is_space(type.data[type.len - 1]))
        type.len--;
    if (type.len >= MEDIA_TYPE_BYTES || !type_ok(type) || !parameters_ok(parameters))
        return;
    for (size_t i = 0; i < type.len; i++)
        ret[i] =
            (char)(type.data[i] >= 'A' && type.data[i] <= 'Z' ? type.data[i] + 32 : type.data[i]);
    ret[type.len] = 0;
}
