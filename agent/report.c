#include "agent/report.h"

#include "agent/base/secrets.h"

static void print_redacted(const char *text)
{
    _cleanup_buf_ struct buf *clean = secrets_active() ? buf_new(0) : NULL;
    if (clean && secrets_redact(bytes_str(text), clean) == 0 && buf_str(clean))
        text = buf_str(clean);
    fputs(text, stderr);
}

int report_error(const struct err *e)
{
    fputs("Error: ", stderr);
    print_redacted(e->text);
    fputc('\n', stderr);
    return 1;
}

void report_warnings(const struct config *c)
{
    for (size_t i = 0; c && i < c->nwarnings; i++)
        fprintf(stderr, "Warning: %s\n", c->warnings[i]);
}

int report_idle(const char *why)
{
    fprintf(stderr, "%s. Nothing to do.\n", why);
    return 0;
}

char *errors_text(const struct cfg_errors *errs)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    if (!f)
        return NULL;
    cfg_errors_print(errs, f);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

int report_errors(const struct cfg_errors *errs)
{
    const size_t n = errs->n + errs->dropped;
    _cleanup_free_ char *text = n ? errors_text(errs) : NULL;
    fputs(n > 1 ? "Error: the configuration has these mistakes:\n" : "Error: ", stderr);
    print_redacted(text ? text : "out of memory\n");
    return 1;
}
