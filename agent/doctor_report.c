/* Findings as lines or as JSON. */
#include <string.h>

#include "agent/base/json_text.h"
#include "agent/base/plain_text.h"
#include "agent/base/secrets.h"
#include "agent/doctor_parts.h"

static const char *const grades[] = {
    [PROBE_OK] = "ok", [PROBE_WARN] = "warn", [PROBE_FAIL] = "fail"};

/* `text` without secrets. */
static int put_clean(struct buf *b, const char *text)
{
    return secrets_active() ? secrets_redact(bytes_str(text), b) : buf_append_str(b, text);
}

/* The same on one line, whatever a backend, a certificate or the name of a process may hold. */
static void put_plain(struct buf *b, const char *text)
{
    _cleanup_buf_ struct buf *clean = buf_new(0);
    if (clean && put_clean(clean, text) == 0)
        plain_text(b, buf_bytes(clean), ' ', "");
}

static void put_text(struct buf *b, const struct probe_finding *f)
{
    buf_printf(b, "%-4s  %s  %s", grades[f->grade], f->component, f->check);
    if (*f->subject)
        buf_putc(b, ' ');
    put_plain(b, f->subject);
    buf_append_str(b, ": ");
    put_plain(b, f->detail);
    if (*f->advice) {
        buf_append_str(b, "\n      -> ");
        put_plain(b, f->advice);
    }
    buf_putc(b, '\n');
}

static void put_member(struct buf *b, const char *name, const char *text)
{
    _cleanup_buf_ struct buf *clean = buf_new(0);
    buf_printf(b, ", \"%s\": ", name);
    if (clean && put_clean(clean, text) == 0)
        json_text(b, buf_bytes(clean));
    else
        buf_append_str(b, "\"\"");
}

static void put_json(struct buf *b, const struct probe_finding *f, bool first)
{
    buf_printf(b, "%s\n    {\"grade\": \"%s\"", first ? "{\"checks\": [" : ",", grades[f->grade]);
    put_member(b, "component", f->component);
    put_member(b, "check", f->check);
    put_member(b, "subject", f->subject);
    put_member(b, "detail", f->detail);
    put_member(b, "advice", f->advice);
    buf_putc(b, '}');
}

void doctor_report_finding(struct doctor_report *r, const struct probe_finding *f)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    if (!b)
        return;
    const bool first = !r->counts[PROBE_OK] && !r->counts[PROBE_WARN] && !r->counts[PROBE_FAIL];
    r->counts[f->grade]++;
    if (r->json)
        put_json(b, f, first);
    else
        put_text(b, f);
    fwrite(b->data, 1, b->len, r->out);
    fflush(r->out);
}

void doctor_report_end(struct doctor_report *r)
{
    const unsigned ok = r->counts[PROBE_OK], warn = r->counts[PROBE_WARN],
                   fail = r->counts[PROBE_FAIL];
    if (r->json) {
        fprintf(r->out, "%s],\n \"ok\": %u, \"warn\": %u, \"fail\": %u}\n",
                ok + warn + fail ? "\n" : "{\"checks\": [", ok, warn, fail);
        return;
    }
    fprintf(r->out, "doctor: %u ok, %u warning%s, %u failed%s\n", ok, warn, warn == 1 ? "" : "s",
            fail, fail ? "" : ": ready to start");
}
