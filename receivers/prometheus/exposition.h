/*
 * The text that a scraped target answers with: Prometheus text (0.0.4 and 1.0.0) and OpenMetrics (0.0.1 and 1.0.0), read line by
 * line without a copy of the page. https://prometheus.io/docs/instrumenting/exposition_formats/,
 * https://prometheus.io/docs/specs/om/open_metrics_spec/
 *
 * The first line that is not of the format ends the page: what came before it was not the page that the target meant, so
 * the caller drops the scrape. Text pages may end their lines with CR LF; OpenMetrics pages may not.
 */
#ifndef MOTEL_RECEIVERS_PROMETHEUS_EXPOSITION_H
#define MOTEL_RECEIVERS_PROMETHEUS_EXPOSITION_H

#include "agent/base/buf.h"
#include "agent/base/err.h"

enum prom_format { PROM_TEXT, PROM_OPENMETRICS };
enum prom_type {
    PROM_UNKNOWN, /* "untyped" of the text format, "unknown" of OpenMetrics, no TYPE line */
    PROM_COUNTER,
    PROM_GAUGE,
    PROM_HISTOGRAM,
    PROM_GAUGEHISTOGRAM,
    PROM_SUMMARY,
    PROM_INFO,
    PROM_STATESET,
};
/* "counter"; the word of the OpenMetrics TYPE line. */
const char *prom_type_name(enum prom_type t);

struct prom_label {
    struct bytes name, value;
};
/* Labels in the order of their names (bytes compared); a page may give a name twice, then both stand next to each other. */
struct prom_labels {
    const struct prom_label *items;
    size_t n;
};
/* The value of a label; empty when there is none, which means the same. */
struct bytes prom_labels_get(struct prom_labels l, const char *name);

struct prom_exemplar {
    struct prom_labels labels;
    double value;
    bool has_time;
    int64_t time_ms;
};

enum prom_entry_kind { PROM_SAMPLE, PROM_TYPE, PROM_HELP, PROM_UNIT };
/* One line of interest; comments and blank lines are passed over. All views are good until the next call of prom_parser_next(). */
struct prom_entry {
    enum prom_entry_kind kind;
    struct bytes raw;    /* SAMPLE: name and labels as they stand in the page: the same series has the same bytes in every scrape */
    double value;        /* SAMPLE; a not-a-number is always number_nan() */
    bool has_time;       /* SAMPLE: the line has a time */
    int64_t time_ms;
    struct bytes family; /* TYPE, HELP, UNIT: what the line is about */
    struct bytes text;   /* HELP, UNIT: unescaped, UTF-8 */
    enum prom_type type; /* TYPE */
};

#define PROM_LABELS_MAX 10000 /* of one sample; more is an error */

struct prom_parser;
/* Reads `body`, which has to outlive the parser. NULL when out of memory. Memory: that of the longest line's labels, at most 64
 * bytes each, and of its texts where they are escaped; charged. */
struct prom_parser *prom_parser_new(enum prom_format format, struct bytes body);
struct prom_parser *prom_parser_free(struct prom_parser *p); /* NULL ok; returns NULL */
DEFINE_CLEANUP(struct prom_parser *, prom_parser_free)

/*
 * 1 = an entry, 0 = the end of the page. -EINVAL: reterr has the place (line and column, in bytes from 1), what was expected, what was got;
 * nothing more can be read. -ENOMEM.
 */
int prom_parser_next(struct prom_parser *p, struct prom_entry *ret, struct err *reterr);
/*
 * Says what the next sample is likely to be, by its `raw` of an earlier page of the same format: when it is, its labels are not read again,
 * which is most of the work, and prom_parser_labels() has none for it. For one prom_parser_next(); `raw` has to last until then.
 */
void prom_parser_expect(struct prom_parser *p, struct bytes raw);
/*
 * The labels of the sample that prom_parser_next() gave last, `__name__` among them, unescaped, valid UTF-8, no name empty (values
 * may be, that of `__name__`, too). `le` of histograms and `quantile` of summaries are written as OpenMetrics wants it ("1.0"), by the last TYPE line. Costs time:
 * who knows `raw` already need not ask. 0 or -ENOMEM.
 */
int prom_parser_labels(struct prom_parser *p, struct prom_labels *ret);
/* The exemplar of that sample: 1, 0 = it has none, -ENOMEM. OpenMetrics only. */
int prom_parser_exemplar(struct prom_parser *p, struct prom_exemplar *ret);

/*
 * The format that a Content-Type asks for, whatever its version, after RFC 9110. `fallback` decides when it is empty, malformed or of
 * another kind; NULL = none. False: there is no format for it, and reterr says so.
 */
bool prom_format_of(const char *content_type, const enum prom_format *fallback, enum prom_format *ret, struct err *reterr);

#endif
