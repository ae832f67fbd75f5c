/* proto_bench SIGNAL FILE [ROUNDS]: CPU time per record of check, count, split and so on, on one encoded
 * request. */
#include <stdio.h>
#include <time.h>

#include "proto/check.h"
#include "proto/json.h"
#include "proto/rewrite.h"
#include "proto/wire_order.h"

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
    printf("%-14s %8.1f ns/record\n", what, ns / rounds / (records ? records : 1));
}

static void bench_check(struct batch *b, unsigned rounds)
{
    struct otlp_checked c;
    double start = cpu_ns();
    for (unsigned i = 0; i < rounds; i++)
        otlp_check(b->signal, buf_bytes(b->segs[0]), &c, NULL);
    report("check", cpu_ns() - start, rounds, b->records);
}

static void bench_count(struct batch *b, unsigned rounds)
{
    volatile uint32_t sum = 0;
    double start = cpu_ns();
    for (unsigned i = 0; i < rounds; i++)
        sum += otlp_count(b->signal, buf_bytes(b->segs[0]));
    report("count", cpu_ns() - start, rounds, b->records);
}

static void bench_order(struct batch *b, unsigned rounds)
{
    struct buf *out = buf_new(0);
    double start = cpu_ns();
    for (unsigned i = 0; i < rounds; i++) {
        buf_truncate(out, 0);
        otlp_wire_order(schema_request(b->signal), buf_bytes(b->segs[0]), out);
    }
    report("wire order", cpu_ns() - start, rounds, b->records);
    buf_unref(out);
}

static void bench_json(struct batch *b, unsigned rounds)
{
    struct buf *out = buf_new(0);
    double start = cpu_ns();
    for (unsigned i = 0; i < rounds; i++) {
        buf_truncate(out, 0);
        json_write_batch(b, JSON_REDACT, out);
    }
    report("JSON", cpu_ns() - start, rounds, b->records);
    buf_unref(out);
}

static enum edit append_attribute(struct bytes in, uint32_t number, struct buf *out)
{
    buf_append(out, in.data, in.len);
    wire_put_bytes(out, number, bytes_str("\x0a\x01k\x12\x03\x0a\x01v"));
    return EDIT_REPLACE;
}

static enum edit new_resource(void *ctx, struct bytes resource, struct buf *out)
{
    (void)ctx;
    return append_attribute(resource, 1, out);
}

static enum edit new_record(void *ctx, struct bytes resource, struct bytes scope,
                            struct bytes record, struct buf *out)
{
    (void)ctx, (void)resource, (void)scope;
    return append_attribute(record, 9, out);
}

static enum edit keep_record(void *ctx, struct bytes resource, struct bytes scope,
                             struct bytes record, struct buf *out)
{
    (void)ctx, (void)resource, (void)scope, (void)record, (void)out;
    return EDIT_KEEP;
}

static void bench_rewrite(struct batch *b, unsigned rounds, const char *what,
                          struct otlp_rewriter rw)
{
    double start = cpu_ns();
    for (unsigned i = 0; i < rounds; i++) {
        struct batch *out;
        if (otlp_rewrite(&rw, b, &out) == 0)
            batch_unref(out);
    }
    report(what, cpu_ns() - start, rounds, b->records);
}

static void bench_split(struct batch *b, unsigned rounds)
{
    double start = cpu_ns();
    for (unsigned i = 0; i < rounds; i++) {
        struct batch **pieces;
        size_t n;
        if (otlp_split_all(b, 10, 0, &pieces, &n) < 0)
            return;
        while (n-- > 0)
            batch_unref(pieces[n]);
        free(pieces);
    }
    report("split by 10", cpu_ns() - start, rounds, b->records);
}

int main(int argc, char **argv)
{
    int s = argc > 2 ? find_signal(argv[1]) : -1;
    struct buf *wire = s >= 0 ? load(argv[2]) : NULL;
    unsigned rounds = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 1000;
    struct batch *b = NULL;
    struct err err = {0};
    if (!wire || batch_from_wire((enum signal)s, wire, &b, &err) < 0) {
        fprintf(stderr, "proto_bench traces|metrics|logs FILE [ROUNDS]: %s\n", err.text);
        return 1;
    }
    printf("%u records, %zu bytes\n", b->records, b->bytes);
    bench_check(b, rounds);
    bench_count(b, rounds);
    bench_order(b, rounds);
    bench_json(b, rounds);
    bench_rewrite(b, rounds, "keep records", (struct otlp_rewriter){.record = keep_record});
    bench_rewrite(b, rounds, "new resources", (struct otlp_rewriter){.resource = new_resource});
    bench_rewrite(b, rounds, "new records", (struct otlp_rewriter){.record = new_record});
    bench_split(b, rounds);
    batch_unref(b);
    return 0;
}
