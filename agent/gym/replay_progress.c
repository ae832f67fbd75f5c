/* The line of progress on a terminal. It ends with a carriage return, so that a log line takes its
 * place. */
#include <string.h>

#include "agent/base/clock.h"
#include "agent/gym/replay_parts.h"

#define EVERY_NS (200 * NS_PER_MS)

const char *grouped(uint64_t n, char *ret)
{
    char digits[24];
    const int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
    char *to = ret;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = 0;
    return ret;
}

void progress_start(struct progress *p, uint64_t total_bytes)
{
    *p = (struct progress){
        .on = isatty(STDERR_FILENO) == 1, .start_ns = clock_now_ns(), .total_bytes = total_bytes};
}

bool progress_due(const struct progress *p)
{
    return p->on && clock_now_ns() - p->shown_ns >= EVERY_NS;
}

/* "2 h 05 min left"; nothing when it cannot be told. */
static void time_left(const struct progress *p, const struct progress_now *n, double seconds,
                      char *ret, size_t size)
{
    ret[0] = 0;
    if (!p->total_bytes || n->bytes == 0 || n->bytes > p->total_bytes || seconds < 1)
        return;
    const double left = seconds * (double)(p->total_bytes - n->bytes) / (double)n->bytes;
    const unsigned long s = (unsigned long)(left + 0.5);
    if (s >= 3600)
        snprintf(ret, size, "  %lu h %02lu min left", s / 3600, s % 3600 / 60);
    else if (s >= 60)
        snprintf(ret, size, "  %lu min %02lu s left", s / 60, s % 60);
    else
        snprintf(ret, size, "  %lu s left", s);
}

void progress_show(struct progress *p, const struct progress_now *n)
{
    char share[16] = "", records[32], rate[32], left[48];
    const uint64_t now_ns = clock_now_ns();
    const double seconds = (double)(now_ns - p->start_ns) / 1e9;
    if (p->total_bytes)
        snprintf(share, sizeof(share), "%3u%%  ",
                 (unsigned)(n->bytes >= p->total_bytes ? 100 : n->bytes * 100 / p->total_bytes));
    time_left(p, n, seconds, left, sizeof(left));
    grouped(n->records, records);
    grouped(seconds > 0 ? (uint64_t)((double)n->records / seconds) : 0, rate);
    if (n->waiting[0])
        fprintf(stderr, "%s%s records, waiting: %.60s\033[K\r", share, records, n->waiting);
    else
        fprintf(stderr, "%s%s records  %s/s%s  (file %zu of %zu: %.40s)\033[K\r", share, records,
                rate, left, n->file, n->nfiles, n->name);
    fflush(stderr);
    p->shown_ns = now_ns;
}

void progress_clear(struct progress *p)
{
    if (p->on && p->shown_ns)
        fputs("\033[K", stderr);
}
