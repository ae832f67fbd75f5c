/* Which format a scraped body has: RFC 9110, 8.3.1, as strictly as Go's mime.ParseMediaType() reads
 * it. */
#include <errno.h>
#include <strings.h>

#include "receivers/prometheus/exposition.h"

/* RFC 9110, 5.6.2 */
static size_t token_length(const char *s)
{
    return strspn(s,
                  "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
}

static const char *skip_blanks(const char *s)
{
    return s + strspn(s, " \t\r\n");
}

/* Behind the closing quote; NULL = there is none. */
static const char *skip_quoted(const char *s)
{
    for (s++; *s && *s != '"'; s++)
        if (*s == '\\' && s[1])
            s++;
    return *s ? s + 1 : NULL;
}

/* `; name=value` at `s`: what follows it; NULL = malformed. */
static const char *skip_parameter(const char *s)
{
    if (*s++ != ';')
        return NULL;
    s = skip_blanks(s);
    if (!*s)
        return s; /* a semicolon at the end is fine */
    size_t n = token_length(s);
    if (n == 0 || s[n] != '=')
        return NULL;
    s += n + 1;
    if (*s == '"')
        return skip_quoted(s);
    n = token_length(s);
    return n ? s + n : NULL;
}

/* Length of the type/subtype at the front of a well-formed Content-Type; 0 = it is none. */
static size_t media_type_length(const char *s)
{
    size_t n = token_length(s), subtype = s[n] == '/' ? token_length(s + n + 1) : 0;
    if (n == 0 || (s[n] == '/' && subtype == 0))
        return 0;
    n += subtype ? 1 + subtype : 0;
    for (const char *p = skip_blanks(s + n); *p; p = skip_blanks(p))
        if (!(p = skip_parameter(p)))
            return 0;
    return n;
}

static const struct {
    const char *type;
    int format; /* -1: one that we know and cannot read */
} known[] = {
    {"application/openmetrics-text", PROM_OPENMETRICS},
    {"application/vnd.google.protobuf", -1},
    {"text/plain", PROM_TEXT},
};

bool prom_format_of(const char *content_type, const enum prom_format *fallback,
                    enum prom_format *ret, struct err *reterr)
{
    const char *s = skip_blanks(content_type ? content_type : "");
    const size_t n = media_type_length(s);
    for (size_t i = 0; n && i < ARRAY_SIZE(known); i++) {
        if (strlen(known[i].type) != n || strncasecmp(s, known[i].type, n) != 0)
            continue;
        if (known[i].format < 0) {
            err_set(reterr, -EINVAL,
                    "the answer is in protobuf (Content-Type \"%.100s\"); expected "
                    "text/plain or application/openmetrics-text",
                    s);
            return false;
        }
        *ret = (enum prom_format)known[i].format;
        return true;
    }
    if (fallback) {
        *ret = *fallback;
        return true;
    }
    err_set(reterr, -EINVAL,
            *s ? "expected a Content-Type of text/plain or application/openmetrics-text, "
                 "got \"%.100s\", and there is no fallback_scrape_protocol"
               : "expected a Content-Type, got "
                 "none%s, and there is no fallback_scrape_protocol",
            s);
    return false;
}
