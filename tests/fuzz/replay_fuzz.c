/*
 * Pages like the one before. The first byte chooses the format; a page follows, then a zero byte
 * and changes of the page: two bytes of place and a new byte each. Whatever is taken for a replay
 * is the request that parsing and mapping the changed page gives.
 */
#include "proto/check.h"
#include "receivers/prometheus/recorder.h"
#include "tests/fuzz/fuzz.h"
#include "tests/laws/laws.h"

#define TIME_MS 1700000000000
#define LATER_MS 1700000015000

static void need(bool good)
{
    if (!good)
        abort();
}

struct world {
    enum prom_format format;
    struct prom_metadata *metadata;
    struct prom_mapper *mapper;
    struct prom_origin origin;
    struct series_table series;
    struct buf *scratch;
    bool odd; /* of the last page: it is not to be recorded */
};

static int nothing_gone(void *ctx, const struct series *s)
{
    (void)ctx;
    (void)s;
    return 0;
}

/* As the receiver does it, less rules. */
static int add_sample(struct world *w, struct prom_parser *p, const struct prom_entry *e,
                      int64_t time_ms, struct prom_recorder *rec)
{
    struct prom_exemplar exemplar;
    struct prom_sample s = {.value = e->value, .time_ms = e->has_time ? e->time_ms : time_ms};
    struct series *known = prom_series_find(&w->series, e->raw);
    need(prom_parser_labels(p, &s.labels) == 0);
    const bool again = known && prom_series_see(&w->series, known);
    const int has = prom_parser_exemplar(p, &exemplar);
    s.exemplar = has ? &exemplar : NULL;
    w->odd |= again || e->has_time || has;
    const int r = prom_mapper_add(w->mapper, &s, NULL);
    if (r >= 0 && !known)
        need(prom_series_add(&w->series, e->raw, s.labels, false, w->scratch) != NULL);
    if (r >= 0 && rec)
        prom_recorder_sample(rec, e->raw, w->mapper);
    return r < 0 ? r : 0;
}

static int read_page(struct world *w, struct bytes page, int64_t time_ms, struct prom_recorder *rec)
{
    struct prom_parser *p = prom_parser_new(w->format, page);
    struct prom_entry e;
    int r;
    need(p != NULL);
    while ((r = prom_parser_next(p, &e, NULL)) > 0) {
        r = e.kind == PROM_SAMPLE ? add_sample(w, p, &e, time_ms, rec)
                                  : prom_metadata_note(w->metadata, &e);
        if (r < 0)
            break;
    }
    prom_parser_free(p);
    return r;
}

/* NULL: the page is bad, or has no points. */
static struct batch *scrape(struct world *w, struct bytes page, int64_t time_ms,
                            struct prom_recorder *rec)
{
    const uint64_t changes = prom_metadata_changes(w->metadata);
    struct buf *wire = NULL;
    struct batch *b = NULL;
    uint32_t points;
    w->odd = false;
    prom_series_begin(&w->series);
    prom_series_page(&w->series, w->format);
    prom_mapper_begin(w->mapper, &w->origin);
    const int r = read_page(w, page, time_ms, rec);
    if (r == 0 && rec)
        prom_mapper_record(w->mapper, rec);
    prom_series_end(&w->series, r < 0, nothing_gone, NULL);
    if (r == 0)
        need(prom_mapper_finish(w->mapper, &wire, &points, NULL) == 0);
    if (wire)
        need(batch_from_wire(SIGNAL_METRICS, wire, &b, NULL) == 0);
    w->odd |= r < 0 || prom_metadata_changes(w->metadata) != changes ||
              !prom_metadata_is_complete(w->metadata);
    prom_metadata_end_scrape(w->metadata);
    return b;
}

static struct prom_replay *record(struct world *w, struct bytes page)
{
    struct prom_recorder rec;
    struct prom_replay *replay = NULL;
    batch_unref(scrape(w, page, TIME_MS, NULL));
    prom_recorder_init(&rec, w->format, page);
    struct batch *b = scrape(w, page, TIME_MS, &rec);
    if (b && !w->odd)
        replay = prom_recorder_replay(&rec, &w->series, b, TIME_MS);
    prom_recorder_done(&rec);
    batch_unref(b);
    return replay;
}

static void replay_it(struct world *w, struct prom_replay *r, struct bytes page)
{
    if (!prom_replay_page(r, &w->series, w->format, page, LATER_MS))
        return;
    struct batch *got = prom_replay_batch(r), *want = scrape(w, page, LATER_MS, NULL);
    need(got && want && got->records == want->records);
    need(bytes_eq(buf_bytes(got->segs[0]), buf_bytes(want->segs[0])));
    need(got->times.first_ns == want->times.first_ns && got->times.last_ns == want->times.last_ns);
    batch_unref(got);
    batch_unref(want);
}

static void change(struct buf *page, struct bytes changes)
{
    for (size_t i = 0; i + 2 < changes.len; i += 3) {
        const size_t at = (size_t)changes.data[i] << 8 | changes.data[i + 1];
        if (at < page->len)
            page->data[at] = changes.data[i + 2];
    }
}

static void run(struct world *w, struct bytes input)
{
    const uint8_t *zero = input.len ? memchr(input.data, 0, input.len) : NULL;
    const size_t n = zero ? (size_t)(zero - input.data) : input.len;
    struct buf *page = law_copy(bytes_of(input.data, n));
    struct prom_replay *r = record(w, buf_bytes(page));
    if (r && zero)
        change(page, bytes_of(zero + 1, input.len - n - 1));
    if (r)
        replay_it(w, r, buf_bytes(page));
    prom_replay_free(r);
    buf_unref(page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t before = mem_used();
    if (size < 1)
        return 0;
    struct world w = {.format = data[0] & 1 ? PROM_OPENMETRICS : PROM_TEXT, .scratch = buf_new(0)};
    w.metadata = prom_metadata_new();
    w.mapper = prom_mapper_new("1");
    need(w.metadata && w.mapper && w.scratch);
    w.origin = (struct prom_origin){.job = bytes_str("j"),
                                    .instance = bytes_str("i:1"),
                                    .scheme = bytes_str("http"),
                                    .metadata = w.metadata};
    run(&w, bytes_of(data + 1, size - 1));
    prom_mapper_free(w.mapper);
    prom_metadata_free(w.metadata);
    prom_series_done(&w.series);
    buf_unref(w.scratch);
    need(mem_used() == before);
    return 0;
}
