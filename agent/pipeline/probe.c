/* Saying what was found. */
#include "agent/pipeline/probe.h"

#include "agent/base/clock.h"

static void say(struct probe *p, struct probe_finding *f, const char *fmt, va_list ap)
{
    char detail[1200];
    vsnprintf(detail, sizeof(detail), fmt, ap);
    f->component = p->component;
    f->detail = detail;
    f->subject = f->subject ? f->subject : "";
    f->advice = f->advice ? f->advice : "";
    p->found(p->ctx, f);
}

void probe_ok(struct probe *p, const char *check, const char *subject, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(p, &(struct probe_finding){.grade = PROBE_OK, .check = check, .subject = subject}, fmt, ap);
    va_end(ap);
}

void probe_warn(struct probe *p, const char *check, const char *subject, const char *advice,
                const char *fmt, ...)
{
    struct probe_finding f = {PROBE_WARN, .check = check, .subject = subject, .advice = advice};
    va_list ap;
    va_start(ap, fmt);
    say(p, &f, fmt, ap);
    va_end(ap);
}

void probe_fail(struct probe *p, const char *check, const char *subject, const char *advice,
                const char *fmt, ...)
{
    struct probe_finding f = {PROBE_FAIL, .check = check, .subject = subject, .advice = advice};
    va_list ap;
    va_start(ap, fmt);
    say(p, &f, fmt, ap);
    va_end(ap);
}

const char *probe_took(uint64_t since_ns, char ret[32])
{
    snprintf(ret, 32, "took %.1f ms", (double)(clock_now_ns() - since_ns) / 1e6);
    return ret;
}
