/* Values of attributes out of error texts: these go to logs and to clients. */
#include <errno.h>
#include <stdio.h>

#include "ottl/expr.h"
#include "ottl/ottl.h"

#define HIDDEN "\"…\""

/* Whether all that stands between quotes in [p, end), which begins and ends with a quote, is in the
 * statement as well. */
static bool all_known(const char *p, const char *end, struct bytes statement)
{
    while (p < end) {
        const char *close = memchr(p + 1, '"', (size_t)(end - p - 1));
        if (!close)
            return false;
        size_t n = (size_t)(close - p - 1);
        if (n && !memmem(statement.data, statement.len, p + 1, n))
            return false;
        const char *next = memchr(close + 1, '"', (size_t)(end - close - 1));
        p = next ? next : end;
    }
    return true;
}

/* A value may hold quotes itself, so that it cannot be told where it ends: all or nothing. */
void ottl_hide_values(struct err *e, struct bytes statement)
{
    char *first = strchr(e->text, '"'), *last = strrchr(e->text, '"');
    if (!first || last == first || all_known(first, last + 1, statement))
        return;
    char rest[sizeof(e->text)];
    snprintf(rest, sizeof(rest), "%s", last + 1);
    snprintf(first, sizeof(e->text) - (size_t)(first - e->text), HIDDEN "%s", rest);
}

void ottl_hide_text(struct err *e)
{
    char column[32] = "";
    if (e->column > 0)
        snprintf(column, sizeof(column), " (column %d)", e->column);
    err_set(e, -EINVAL,
            "unable to parse OTTL: a mistake in a text that holds the value of a variable and is "
            "not shown%s",
            column);
}
