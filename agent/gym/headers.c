/* OTEL_EXPORTER_OTLP_HEADERS: "name=value,name=value" with percent-encoded values. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "agent/gym/pipeline.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A copy without the white space around it, "%41" as "A"; what is no valid code stays as it is. */
static char *decode(struct arena *a, const char *text, size_t len)
{
    while (len && isspace((unsigned char)*text)) {
        text++;
        len--;
    }
    while (len && isspace((unsigned char)text[len - 1]))
        len--;
    char *ret = arena_alloc(a, len + 1), *out = ret;
    for (size_t i = 0; ret && i < len; i++) {
        const bool code = text[i] == '%' && i + 2 < len && hex_digit(text[i + 1]) >= 0 &&
                          hex_digit(text[i + 2]) >= 0;
        *out++ = code ? (char)(hex_digit(text[i + 1]) << 4 | hex_digit(text[i + 2])) : text[i];
        i += code ? 2 : 0;
    }
    if (ret)
        *out = 0;
    return ret;
}

static bool is_blank(const char *text, size_t len)
{
    while (len && isspace((unsigned char)text[len - 1]))
        len--;
    return len == 0;
}

static void put(struct gym_header *all, size_t *n, struct gym_header h)
{
    size_t i = 0;
    while (i < *n && strcasecmp(all[i].name, h.name) != 0)
        i++;
    all[i] = h;
    *n += i == *n;
}

int gym_headers_parse(struct arena *a, const char *list, struct gym_header **ret, size_t *ret_n,
                      struct err *reterr)
{
    size_t entries = 1, nth = 0;
    for (const char *p = list; *p; p++)
        entries += *p == ',';
    *ret_n = 0;
    if (!(*ret = arena_calloc(a, entries * sizeof(**ret))))
        return err_set(reterr, -ENOMEM, "out of memory");
    for (const char *p = list; *p;) {
        const size_t len = strcspn(p, ",");
        const char *equals = memchr(p, '=', len);
        nth++;
        if (!is_blank(p, len)) {
            if (!equals || is_blank(p, (size_t)(equals - p)))
                return err_set(reterr, -EINVAL,
                               "expected headers as name=value,name=value, but number %zu has %s",
                               nth, equals ? "no name" : "no \"=\"");
            const struct gym_header h = {decode(a, p, (size_t)(equals - p)),
                                         decode(a, equals + 1, len - (size_t)(equals + 1 - p))};
            if (!h.name || !h.value)
                return err_set(reterr, -ENOMEM, "out of memory");
            put(*ret, ret_n, h);
        }
        p += len + (p[len] == ',');
    }
    return 0;
}
