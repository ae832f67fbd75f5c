/* A scraped page through parser and mapping, as the receiver sends it. Include after cmocka.h. */
#ifndef MOTEL_TESTS_PROM_PAGE_H
#define MOTEL_TESTS_PROM_PAGE_H

#include "proto/check.h"
#include "proto/json.h"
#include "receivers/prometheus/mapping.h"

#define PAGE_TIME_MS 1700000000000

struct prom_page {
    struct prom_metadata *metadata;
    struct prom_mapper *mapper;
    struct prom_origin origin;
    struct prom_left_out left_out;
    uint32_t points;
};

static inline void prom_page_open(struct prom_page *p)
{
    *p = (struct prom_page){.metadata = prom_metadata_new(), .mapper = prom_mapper_new("0.161.0")};
    assert_non_null(p->metadata);
    assert_non_null(p->mapper);
    p->origin.job = bytes_str("job");
    p->origin.instance = bytes_str("127.0.0.1:9100");
    p->origin.scheme = bytes_str("http");
    p->origin.metadata = p->metadata;
    prom_mapper_begin(p->mapper, &p->origin);
}

static inline void prom_page_close(struct prom_page *p)
{
    prom_mapper_free(p->mapper);
    prom_metadata_free(p->metadata);
}

/* All samples of a page into the mapper; `stale`: as if they were gone. 0 or what failed. */
static inline int prom_page_read(struct prom_page *p, enum prom_format format, struct bytes text, bool stale, struct err *err)
{
    struct prom_parser *parser = prom_parser_new(format, text);
    struct prom_entry e;
    int r = 0;
    assert_non_null(parser);
    while (r >= 0 && (r = prom_parser_next(parser, &e, err)) > 0) {
        struct prom_sample s = {.value = e.value, .stale = stale, .time_ms = e.has_time ? e.time_ms : PAGE_TIME_MS};
        struct prom_exemplar exemplar;
        if (e.kind != PROM_SAMPLE) {
            r = prom_metadata_note(p->metadata, &e);
            continue;
        }
        assert_int_equal(prom_parser_labels(parser, &s.labels), 0);
        if (prom_parser_exemplar(parser, &exemplar) > 0)
            s.exemplar = &exemplar;
        r = prom_mapper_add(p->mapper, &s, err);
    }
    prom_parser_free(parser);
    return r < 0 ? r : 0;
}

/* Ends the scrape, begins the next: the request as JSON, "" when there is none. The bytes are checked to be canonical. */
static inline struct buf *prom_page_json(struct prom_page *p)
{
    struct buf *wire, *out = buf_new(0);
    struct otlp_checked checked = {0};
    assert_int_equal(prom_mapper_finish(p->mapper, &wire, &p->points, &p->left_out), 0);
    prom_metadata_end_scrape(p->metadata);
    prom_mapper_begin(p->mapper, &p->origin);
    if (!wire)
        return out;
    assert_int_equal(otlp_check(SIGNAL_METRICS, buf_bytes(wire), &checked, NULL), 0);
    assert_true(checked.canonical);
    assert_int_equal(checked.records, p->points);
    struct batch *b = batch_new(SIGNAL_METRICS, &wire, 1, p->points);
    assert_non_null(b);
    assert_int_equal(json_write_batch(b, 0, out), 0);
    batch_unref(b);
    return out;
}

#endif
