/*
 * Scraped pages. The first byte chooses format and options. Whatever the page: reading it twice
 * gives the same, labels or not; what is mapped is a request that the check leaves as it is, with
 * as many points as the mapper says; bucket counts add up; all memory is given back; what the
 * parser is told to expect changes nothing.
 */
#include <errno.h>

#include "proto/check.h"
#include "proto/otlp_fields.h"
#include "proto/wire.h"
#include "receivers/prometheus/mapping.h"
#include "tests/fuzz/fuzz.h"
#include "tests/laws/laws.h"

enum { OPENMETRICS = 1, TRIM = 2 };

static void need(bool good)
{
    if (!good)
        abort();
}

struct world {
    unsigned options;
    struct bytes page;
    struct prom_metadata *metadata;
    struct prom_mapper *mapper;
    struct prom_origin origin;
};

/* ---- what was read ---- */

static void need_sorted(struct prom_labels l)
{
    for (size_t i = 1; i < l.n; i++) {
        const struct bytes a = l.items[i - 1].name, b = l.items[i].name;
        const int c = memcmp(a.data, b.data, a.len < b.len ? a.len : b.len);
        need(a.len && b.len && (c < 0 || (c == 0 && a.len <= b.len)));
    }
}

/* 0, or that the sample is bad or the scrape over. */
static int take_sample(struct world *w, struct prom_parser *p, const struct prom_entry *e,
                       bool stale)
{
    struct prom_exemplar exemplar;
    struct prom_sample s = {.value = e->value, .stale = stale, .time_ms = e->time_ms};
    struct err err = {0};
    need(prom_parser_labels(p, &s.labels) == 0);
    need_sorted(s.labels);
    const int has = prom_parser_exemplar(p, &exemplar);
    need(has >= 0);
    s.exemplar = has ? &exemplar : NULL;
    const int r = prom_mapper_add(w->mapper, &s, &err);
    need(r >= 0 || (r == -EINVAL && *err.text));
    return r < 0 ? r : 0;
}

static int read_page(struct world *w, bool map, bool stale, uint64_t *ret_entries)
{
    struct prom_parser *p =
        prom_parser_new(w->options & OPENMETRICS ? PROM_OPENMETRICS : PROM_TEXT, w->page);
    struct prom_entry e;
    struct err err = {0};
    int r, bad = 0;
    need(p != NULL);
    *ret_entries = 0;
    while ((r = prom_parser_next(p, &e, &err)) > 0) {
        ++*ret_entries;
        if (e.kind != PROM_SAMPLE)
            need(prom_metadata_note(w->metadata, &e) == 0);
        else if (map && !bad)
            bad = take_sample(w, p, &e, stale);
    }
    need(r == 0 || (r == -EINVAL && err.line > 0 && err.column > 0));
    prom_parser_free(p);
    return r < 0 ? r : bad;
}

static void need_same(const struct prom_entry *a, const struct prom_entry *b)
{
    need(a->kind == b->kind && a->raw.data == b->raw.data && a->raw.len == b->raw.len);
    need(memcmp(&a->value, &b->value, sizeof(a->value)) == 0);
    need(a->has_time == b->has_time && a->time_ms == b->time_ms);
}

/* `right`: the parser is told what comes; else what came last, which may be another series. */
static void read_expecting(const struct world *w, bool right)
{
    const enum prom_format format = w->options & OPENMETRICS ? PROM_OPENMETRICS : PROM_TEXT;
    struct prom_parser *plain = prom_parser_new(format, w->page),
                       *told = prom_parser_new(format, w->page);
    struct prom_entry a, b;
    struct bytes last = bytes_str("");
    struct err err = {0};
    int r;
    need(plain && told);
    do {
        r = prom_parser_next(plain, &a, &err);
        prom_parser_expect(told, !right ? last : r > 0 ? a.raw : bytes_str(""));
        need(prom_parser_next(told, &b, &err) == r);
        if (r > 0)
            need_same(&a, &b);
        if (r > 0 && a.kind == PROM_SAMPLE)
            last = a.raw;
    } while (r > 0);
    prom_parser_free(plain);
    prom_parser_free(told);
}

/* ---- what came out ---- */

static void check_histogram_point(struct bytes point)
{
    struct wire_reader buckets = wire_reader(wire_bytes(point, HISTOGRAM_BUCKETS));
    const size_t bounds = wire_bytes(point, HISTOGRAM_BOUNDS).len / 8;
    uint64_t sum = 0, count, n = 0;
    while (wire_next_packed(&buckets, WIRE_I64, &count) > 0) {
        sum += count;
        n++;
    }
    need(sum == wire_uint(point, HISTOGRAM_COUNT) && n == bounds + 1);
}

static void check_metrics(struct bytes scope_entry)
{
    struct wire_reader metrics = wire_reader(scope_entry);
    struct bytes metric, point;
    while (wire_each(&metrics, ENTRY_ITEMS, &metric)) {
        struct bytes data = wire_bytes(metric, METRIC_HISTOGRAM);
        struct wire_reader points = wire_reader(data.len ? data : bytes_str(""));
        need(wire_bytes(metric, METRIC_NAME).len > 0);
        while (wire_each(&points, DATA_POINTS, &point))
            check_histogram_point(point);
    }
}

static void check_request(struct bytes wire, uint32_t points)
{
    struct otlp_checked c;
    struct wire_reader entries = wire_reader(wire);
    struct bytes entry, scope_entry;
    need(otlp_check(SIGNAL_METRICS, wire, &c, NULL) == 0);
    need(c.canonical && c.records == points);
    while (wire_each(&entries, OTLP_ENTRIES, &entry)) {
        struct wire_reader scopes = wire_reader(entry);
        while (wire_each(&scopes, ENTRY_ITEMS, &scope_entry))
            check_metrics(scope_entry);
    }
}

static struct buf *finish(struct world *w)
{
    struct buf *wire;
    uint32_t points;
    struct prom_left_out left_out;
    need(prom_mapper_finish(w->mapper, &wire, &points, &left_out) == 0);
    need((wire != NULL) == (points > 0));
    need((left_out.samples > 0) == (*left_out.first != 0));
    if (wire)
        check_request(buf_bytes(wire), points);
    return wire;
}

/* ---- scrapes ---- */

static struct buf *scrape(struct world *w, bool stale)
{
    uint64_t plain, mapped;
    read_page(w, false, false, &plain);
    prom_mapper_begin(w->mapper, &w->origin);
    read_page(w, true, stale, &mapped);
    need(plain == mapped);
    return finish(w);
}

static void scrapes(struct world *w)
{
    struct buf *first = scrape(w, false), *second = scrape(w, false);
    need(!first == !second && (!first || bytes_eq(buf_bytes(first), buf_bytes(second))));
    prom_metadata_end_scrape(w->metadata);
    buf_unref(first);
    buf_unref(second);
    buf_unref(scrape(w, true));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t before = mem_used();
    if (size < 1)
        return 0;
    struct buf *exact = law_copy(bytes_of(data + 1, size - 1));
    struct world w = {.options = data[0], .page = buf_bytes(exact)};
    w.metadata = prom_metadata_new();
    w.mapper = prom_mapper_new("1");
    need(w.metadata && w.mapper);
    w.origin = (struct prom_origin){.job = bytes_str("j"),
                                    .instance = bytes_str("i:1"),
                                    .scheme = bytes_str("http"),
                                    .metadata = w.metadata,
                                    .trim_suffixes = data[0] & TRIM};
    scrapes(&w);
    read_expecting(&w, true);
    read_expecting(&w, false);
    prom_mapper_free(w.mapper);
    prom_metadata_free(w.metadata);
    buf_unref(exact);
    need(mem_used() == before);
    return 0;
}
