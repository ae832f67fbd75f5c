/* proto_bench SIGNAL FILE [ROUNDS]: CPU time per record of check, count and split on one encoded request. */
#include <stdio.h>
#include <time.h>

#include "proto/check.h"

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct buf *load(const char *path)
{
    _cleanup_fclose_ FILE *f = fopen(path, "rb");
    struct buf *b = buf_new(0);
    if (!f || !b)
        return buf_unref(b);
    while (buf_reserve(b, 1 << 16) == 0) {
        size_t n = fread(buf_tail(b), 1, 1 << 16, f);
        if (n == 0)
            break;
        buf_commit(b, n);
    }
    return b;
}

static int find_signal(const char *name)
{
    for (enum signal s = 0; s < SIGNAL_COUNT; s++)
        if (strcmp(name, signal_name(s)) == 0)
            return (int)s;
    return -1;
}

static void report(const char *what, double ns, unsigned rounds, uint32_t records)
{
    printf("%-10s %8.1f ns/record\n", what, ns / rounds / (records ? records : 1));
}

int main(int argc, char **argv)
{
    int s = argc > 2 ? find_signal(argv[1]) : -1;
    _cleanup_buf_ struct buf *b = s >= 0 ? load(argv[2]) : NULL;
    unsigned rounds = argc > 3 ? (unsigned)atoi(argv[3]) : 1000;
    struct otlp_checked c;
    struct err err = {0};
    if (!b || otlp_check((enum signal)s, buf_bytes(b), &c, &err) < 0) {
        fprintf(stderr, "proto_bench traces|metrics|logs FILE [ROUNDS]: %s\n", err.text);
        return 1;
    }
    double start = cpu_ns();
    for (unsigned i = 0; i < rounds; i++)
        otlp_check((enum signal)s, buf_bytes(b), &c, &err);
    report("check", cpu_ns() - start, rounds, c.records);
    uint32_t sum = 0;
    start = cpu_ns();
    for (unsigned i = 0; i < rounds; i++)
        sum += otlp_count((enum signal)s, buf_bytes(b));
    report("count", cpu_ns() - start, rounds, c.records);
    printf("%u records, %s\n", sum / rounds, c.canonical ? "canonical" : "odd");
    return 0;
}
