/* codec_floor FILE RECORDS: what bare compression of a payload costs, in ns of CPU a record, and
 * how many bytes are left: the least that an agent which receives, or sends, compressed requests
 * can spend. Median and least of 7 samples of 0.1 s. */
#include <libdeflate.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>
#ifdef HAVE_ISAL
#include <isa-l/igzip_lib.h>
#endif
#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

#define SAMPLES 7
#define SAMPLE_NS 1e8

struct block {
    uint8_t *data;
    size_t len;
};

struct work {
    struct block in, out, gzip,
        zstd; /* in: the payload; out: room; gzip, zstd: the payload compressed */
    int level;
};

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Each operation returns the bytes it wrote to w->out, 0 when it failed. */
static size_t copy(const struct work *w)
{
    memcpy(w->out.data, w->in.data, w->in.len);
    return w->in.len;
}

static size_t libdeflate_pack(const struct work *w)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(w->level);
    size_t n = c ? libdeflate_gzip_compress(c, w->in.data, w->in.len, w->out.data, w->out.len) : 0;
    libdeflate_free_compressor(c);
    return n;
}

static size_t libdeflate_unpack(const struct work *w)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    size_t n = 0;
    if (d && libdeflate_gzip_decompress(d, w->gzip.data, w->gzip.len, w->out.data, w->out.len,
                                        &n) != LIBDEFLATE_SUCCESS)
        n = 0;
    libdeflate_free_decompressor(d);
    return n;
}

static size_t zstd_pack(const struct work *w)
{
    size_t n = ZSTD_compress(w->out.data, w->out.len, w->in.data, w->in.len, w->level);
    return ZSTD_isError(n) ? 0 : n;
}

static size_t zstd_unpack(const struct work *w)
{
    size_t n = ZSTD_decompress(w->out.data, w->out.len, w->zstd.data, w->zstd.len);
    return ZSTD_isError(n) ? 0 : n;
}

#ifdef HAVE_ISAL
static size_t isal_pack(const struct work *w)
{
    static uint8_t room[ISAL_DEF_LVL1_DEFAULT];
    struct isal_zstream z;
    isal_deflate_init(&z);
    z.end_of_stream = 1;
    z.flush = NO_FLUSH;
    z.gzip_flag = IGZIP_GZIP;
    z.level = 1;
    z.level_buf = room;
    z.level_buf_size = sizeof(room);
    z.next_in = w->in.data;
    z.avail_in = (uint32_t)w->in.len;
    z.next_out = w->out.data;
    z.avail_out = (uint32_t)w->out.len;
    return isal_deflate(&z) == COMP_OK ? z.total_out : 0;
}
#endif

#ifdef HAVE_ZLIB
static size_t zlib_pack(const struct work *w)
{
    z_stream z = {.next_in = w->in.data,
                  .avail_in = (uInt)w->in.len,
                  .next_out = w->out.data,
                  .avail_out = (uInt)w->out.len};
    if (deflateInit2(&z, w->level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return 0;
    size_t n = deflate(&z, Z_FINISH) == Z_STREAM_END ? z.total_out : 0;
    deflateEnd(&z);
    return n;
}
#endif

static const struct operation {
    const char *name;
    int level;
    size_t (*run)(const struct work *w);
} operations[] = {
    {"memcpy", 0, copy},
    {"gzip -1, libdeflate", 1, libdeflate_pack},
    {"gzip -6, libdeflate", 6, libdeflate_pack},
#ifdef HAVE_ISAL
    {"gzip level 1, ISA-L", 1, isal_pack},
#endif
#ifdef HAVE_ZLIB
    {"gzip -1, zlib", 1, zlib_pack},
    {"gzip -6, zlib", 6, zlib_pack},
#endif
    {"gunzip, libdeflate", 0, libdeflate_unpack},
    {"zstd -1", 1, zstd_pack},
    {"zstd -3", 3, zstd_pack},
    {"unzstd", 0, zstd_unpack},
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ns of one run */
static double sample(const struct operation *o, const struct work *w)
{
    unsigned rounds = 0;
    double begin = cpu_ns(), now;
    do {
        o->run(w);
        rounds++;
        now = cpu_ns();
    } while (now - begin < SAMPLE_NS);
    return (now - begin) / rounds;
}

static bool measure(const struct operation *o, struct work *w, unsigned long records)
{
    double ns[SAMPLES];
    w->level = o->level;
    size_t n = o->run(w);
    if (n == 0) {
        fprintf(stderr, "%s failed\n", o->name);
        return false;
    }
    for (int i = 0; i < SAMPLES; i++)
        ns[i] = sample(o, w) / (double)records;
    qsort(ns, SAMPLES, sizeof(*ns), by_value);
    printf("%-22s %8.0f ns a record (%.0f), %6.1f bytes\n", o->name, ns[SAMPLES / 2], ns[0],
           (double)n / (double)records);
    return true;
}

static struct block room(size_t n)
{
    struct block b = {.data = malloc(n), .len = n};
    if (!b.data)
        exit(1);
    return b;
}

static struct block load(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) < 0) {
        perror(path);
        exit(1);
    }
    struct block b = room((size_t)ftell(f));
    rewind(f);
    if (fread(b.data, 1, b.len, f) != b.len) {
        perror(path);
        exit(1);
    }
    fclose(f);
    return b;
}

static struct block packed(struct work *w, size_t (*pack)(const struct work *w), int level)
{
    w->level = level;
    struct block b = room(w->out.len);
    b.len = pack(w);
    memcpy(b.data, w->out.data, b.len);
    return b;
}

int main(int argc, char **argv)
{
    unsigned long records = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (records == 0) {
        fprintf(stderr, "usage: codec_floor FILE RECORDS\n");
        return 2;
    }
    struct work w = {.in = load(argv[1])};
    w.out = room(w.in.len * 2 + 4096);
    w.gzip = packed(&w, libdeflate_pack, 6);
    w.zstd = packed(&w, zstd_pack, 3);
    for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++)
        if (!measure(&operations[i], &w, records))
            return 1;
    return 0;
}
