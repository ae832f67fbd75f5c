/* prom_bench FILE [ROUNDS]: CPU time of parsing a scraped page and of mapping it to OTLP; without ROUNDS, the request as JSON. A
 * name with ".om." or "openmetrics" is an OpenMetrics page. */
#include <stdio.h>
#include <time.h>

#include "proto/json.h"
#include "receivers/prometheus/mapping.h"

#define JOB "job"
#define INSTANCE "127.0.0.1:9100"

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
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

struct page {
    enum prom_format format;
    struct buf *text;
    struct prom_metadata *metadata;
    struct prom_mapper *mapper;
};

static int map_sample(struct page *page, struct prom_parser *parser, const struct prom_entry *e,
                      struct err *err)
{
    struct prom_exemplar exemplar;
    struct prom_sample s = {.value = e->value,
                            .time_ms = e->has_time ? e->time_ms : 1700000000000};
    int r = prom_parser_labels(parser, &s.labels);
    if (r == 0 && prom_parser_exemplar(parser, &exemplar) > 0)
        s.exemplar = &exemplar;
    return r < 0 ? r : prom_mapper_add(page->mapper, &s, err);
}

/* Without a mapper only the parser runs. */
static int read_page(struct page *page, bool map, struct err *err)
{
    struct prom_parser *p = prom_parser_new(page->format, buf_bytes(page->text));
    struct prom_entry e;
    int r = 0;
    while (r >= 0 && (r = prom_parser_next(p, &e, err)) > 0) {
        if (e.kind != PROM_SAMPLE)
            r = prom_metadata_note(page->metadata, &e);
        else if (map)
            r = map_sample(page, p, &e, err);
    }
    prom_parser_free(p);
    return r;
}

static int scrape(struct page *page, struct buf **ret, uint32_t *points, struct err *err)
{
    static const struct prom_origin empty;
    struct prom_origin origin = empty;
    struct prom_left_out left_out;
    origin.job = bytes_str(JOB);
    origin.instance = bytes_str(INSTANCE);
    origin.scheme = bytes_str("http");
    origin.metadata = page->metadata;
    prom_mapper_begin(page->mapper, &origin);
    int r = read_page(page, true, err);
    if (r == 0)
        r = prom_mapper_finish(page->mapper, ret, points, &left_out);
    prom_metadata_end_scrape(page->metadata);
    if (r == 0 && left_out.samples)
        fprintf(stderr, "left out %llu: %s\n", (unsigned long long)left_out.samples,
                left_out.first);
    return r;
}

static int print(struct page *page)
{
    struct err err = {0};
    struct buf *wire = NULL;
    uint32_t points;
    if (scrape(page, &wire, &points, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    if (!wire)
        return 0;
    struct batch *b = batch_new(SIGNAL_METRICS, &wire, 1, points);
    struct buf *out = buf_new(0);
    json_write_batch(b, 0, out);
    puts(buf_str(out));
    buf_unref(out);
    batch_unref(b);
    return 0;
}

static int bench(struct page *page, unsigned rounds)
{
    uint32_t points = 0;
    double start = cpu_us();
    for (unsigned i = 0; i < rounds; i++)
        if (read_page(page, false, NULL) < 0)
            return 1;
    const double parsed = cpu_us() - start;
    start = cpu_us();
    for (unsigned i = 0; i < rounds; i++) {
        struct buf *wire;
        if (scrape(page, &wire, &points, NULL) < 0)
            return 1;
        buf_unref(wire);
    }
    printf("%u points, %zu bytes: read %.1f us, read and mapped %.1f us\n", points,
           page->text->len, parsed / rounds, (cpu_us() - start) / rounds);
    return 0;
}

int main(int argc, char **argv)
{
    struct page page = {.text = argc > 1 ? load(argv[1]) : NULL};
    page.metadata = prom_metadata_new();
    page.mapper = prom_mapper_new("0.161.0");
    if (!page.text || !page.metadata || !page.mapper) {
        fprintf(stderr, "prom_bench FILE [ROUNDS]\n");
        return 1;
    }
    page.format =
        strstr(argv[1], ".om.") || strstr(argv[1], "openmetrics") ? PROM_OPENMETRICS : PROM_TEXT;
    int r = argc > 2 ? bench(&page, (unsigned)strtoul(argv[2], NULL, 10)) : print(&page);
    prom_mapper_free(page.mapper);
    prom_metadata_free(page.metadata);
    buf_unref(page.text);
    return r;
}
