#include "agent/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "agent/base/secrets.h"

/* What vsnprintf() returned says whether `e` has all of the text. */
static void note_cut(struct err *e, int len)
{
    if (len >= (int)sizeof(e->text))
        secrets_trim(e->text);
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
    if (!e)
        return code;
    e->path[0] = e->file[0] = 0;
    e->line = e->column = 0;
    va_list ap;
    va_start(ap, fmt);
    note_cut(e, vsnprintf(e->text, sizeof(e->text), fmt, ap));
    va_end(ap);
    return code;
}

int err_vat(struct err *e, const char *path, const char *fmt, va_list ap)
{
    if (!e)
        return -EINVAL;
    err_set(e, -EINVAL, "%s", "");
    snprintf(e->path, sizeof(e->path), "%s", path);
    note_cut(e, vsnprintf(e->text, sizeof(e->text), fmt, ap));
    return -EINVAL;
}

int err_at(struct err *e, const char *path, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int r = err_vat(e, path, fmt, ap);
    va_end(ap);
    return r;
}

int err_about(struct err *e, int code, const char *path)
{
    if (e)
        snprintf(e->path, sizeof(e->path), "%s", path);
    return code;
}

void err_prefix(struct err *e, const char *fmt, ...)
{
    if (!e)
        return;
    char old[sizeof(e->text)];
    memcpy(old, e->text, sizeof(old));
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof(e->text))
        n += snprintf(e->text + n, sizeof(e->text) - (size_t)n, "%s", old);
    note_cut(e, n);
}
