/* What came back of a target, as points: samples, stale points, and what is said of the scrape
 * itself. */
#include <errno.h>
#include <inttypes.h>

#include "agent/base/clock.h"
#include "agent/net/codec.h"
#include "receivers/prometheus/prometheus.h"

#define MAX_REPORTS 8

struct counts {
    uint64_t scraped;    /* samples in the page */
    uint64_t remaining;  /* after the rules */
    uint64_t added;      /* series that are new */
    uint64_t duplicates; /* the same series again */
    int64_t body_bytes;  /* -1: above the limit */
};

/* One scrape that is being turned into points. */
struct reading {
    struct scraper *s;
    struct target *t;
    struct prom_parser *parser;
    struct counts counts;
    uint64_t appended;
    bool over_limit;
    bool nothing; /* an empty page: as good as one, but it says nothing about series */
    struct err why;
};

static void origin_of(const struct scraper *s, const struct target *t, struct prom_origin *o)
{
    *o = (struct prom_origin){.job = t->spec.job,
                              .instance = t->spec.instance,
                              .scheme = bytes_str(t->spec.scheme),
                              .metadata = t->metadata,
                              .trim_suffixes = s->config->trim_metric_suffixes};
}

/* ---- labels ---- */

/* A label of the page that the target has, too, moves to a name with "exported_" in front, as often
 * as it takes. */
static void move_aside(struct label_builder *b, const struct prom_label *exposed)
{
    const struct bytes name = exposed->name;
    char *moved = NULL;
    for (size_t prefixes = 1; !moved || prom_builder_get(b, bytes_str(moved)).len; prefixes++) {
        moved = arena_alloc(b->arena, 9 * prefixes + name.len + 1);
        if (!moved) {
            b->no_memory = true;
            return;
        }
        for (size_t i = 0; i < prefixes; i++)
            memcpy(moved + 9 * i, "exported_", 9);
        memcpy(moved + 9 * prefixes, name.data, name.len);
        moved[9 * prefixes + name.len] = 0;
    }
    prom_builder_set(b, bytes_str(moved), exposed->value);
}

/* The page's label of a name; empty when it has none. */
static struct bytes exposed_value(struct prom_labels page, struct bytes name)
{
    for (size_t i = 0; i < page.n; i++)
        if (bytes_eq(page.items[i].name, name))
            return page.items[i].value;
    return bytes_of(NULL, 0);
}

static bool has_name(struct prom_labels page, struct bytes name)
{
    for (size_t i = 0; i < page.n; i++)
        if (bytes_eq(page.items[i].name, name))
            return true;
    return false;
}

/* Shorter names first, so that the result does not depend on the order of the page. */
static void resolve_conflicts(struct label_builder *b, struct prom_labels own,
                              struct prom_labels page)
{
    size_t next;
    for (size_t len = 0; len != SIZE_MAX; len = next) {
        next = SIZE_MAX;
        for (size_t i = 0; i < own.n; i++) {
            const struct bytes name = own.items[i].name, value = exposed_value(page, name);
            if (value.len && name.len == len)
                move_aside(b, &(struct prom_label){name, value});
            else if (value.len && name.len > len && name.len < next)
                next = name.len;
        }
    }
}

static void add_external(const struct scraper *s, struct label_builder *b)
{
    for (size_t i = 0; i < s->nexternal; i++)
        prom_builder_set(b, s->external[i].name, s->external[i].value);
}

/* The labels of the page with those of the target, after the rules. False: dropped. */
static bool mutate(struct reading *x, struct prom_labels page, struct prom_labels *ret)
{
    struct label_builder *b = &x->s->labels;
    const struct prom_labels own = x->t->spec.labels;
    const bool honor = x->t->job->settings.config->honor_labels;
    prom_builder_reset(b, page);
    for (size_t i = 0; i < own.n; i++)
        if (!honor || !has_name(page, own.items[i].name))
            prom_builder_set(b, own.items[i].name, own.items[i].value);
    if (!honor)
        resolve_conflicts(b, own, page);
    const bool kept = prom_relabel_apply(x->t->job->sample_rules, b);
    *ret = (struct prom_labels){NULL, 0};
    return kept && (prom_builder_sorted(b, ret) < 0 || ret->n > 0);
}

/* ---- limits ---- */

#define FIFTY(b) (int)((b).len < 50 ? (b).len : 50), (const char *)(b).data

static int check_lengths(const struct job_settings *j, struct prom_labels l, struct err *reterr)
{
    const struct bytes metric = prom_labels_get(l, "__name__");
    for (size_t i = 0; i < l.n; i++) {
        const struct bytes name = l.items[i].name, value = l.items[i].value;
        if (j->label_name_length_limit && name.len > j->label_name_length_limit)
            return err_set(reterr, -E2BIG,
                           "label_name_length_limit exceeded (metric: %.*s, label name: %.*s, "
                           "length: %zu, limit: %" PRIu64 ")",
                           FIFTY(metric), FIFTY(name), name.len, j->label_name_length_limit);
        if (j->label_value_length_limit && value.len > j->label_value_length_limit)
            return err_set(reterr, -E2BIG,
                           "label_value_length_limit exceeded (metric: %.*s, label name: %.*s, "
                           "value: \"%.*s\", length: %zu, limit: %" PRIu64 ")",
                           FIFTY(metric), FIFTY(name), FIFTY(value), value.len,
                           j->label_value_length_limit);
    }
    return 0;
}

static int check_labels(const struct reading *x, struct prom_labels l, struct err *reterr)
{
    const struct job_settings *j = &x->t->job->settings;
    const struct bytes metric = prom_labels_get(l, "__name__");
    if (metric.len == 0)
        return err_set(reterr, -EINVAL, "metric name label is mandatory");
    if (j->label_limit && l.n > j->label_limit)
        return err_set(reterr, -E2BIG,
                       "label_limit exceeded (metric: %.*s, number of labels: %zu, limit: %" PRIu64
                       ")",
                       FIFTY(metric), l.n, j->label_limit);
    return j->label_name_length_limit || j->label_value_length_limit ? check_lengths(j, l, reterr)
                                                                     : 0;
}

/* ---- samples ---- */

static int room_for(struct scraper *s, size_t n)
{
    if (n <= s->nitems)
        return 0;
    struct prom_label *items = realloc(s->items, 2 * n * sizeof(*items));
    if (!items)
        return -ENOMEM;
    s->items = items;
    s->nitems = 2 * n;
    return 0;
}

/* Hands the sample to the mapper. Answers like it. */
static int put_point(struct reading *x, const struct prom_entry *e, struct prom_labels l,
                     bool own_time)
{
    struct prom_exemplar exemplar;
    const int has = prom_parser_exemplar(x->parser, &exemplar);
    const struct prom_sample p = {.labels = l,
                                  .value = e->value,
                                  .time_ms = own_time ? e->time_ms : x->t->time_ms,
                                  .exemplar = has == 1 ? &exemplar : NULL};
    return has < 0 ? has : prom_mapper_add(x->s->mapper, &p, &x->why);
}

/* A sample that is to become a point. `known` NULL: its series is new. */
static int take_kept(struct reading *x, const struct prom_entry *e, struct prom_labels l,
                     struct series *known, bool again)
{
    const struct scrape_config *c = x->t->job->settings.config;
    const uint64_t limit = x->t->job->settings.sample_limit;
    const bool own_time = e->has_time && c->honor_timestamps;
    if (again && !own_time) {
        x->counts.duplicates++;
        x->counts.remaining++;
        return 0;
    }
    x->over_limit = x->over_limit || (limit && ++x->appended > limit);
    if (x->over_limit) {
        x->counts.remaining++;
        return 0;
    }
    const int r = put_point(x, e, l, own_time);
    if (r < 0)
        return r;
    if (!known) {
        known = prom_series_add(&x->t->series, e->raw, l, false, x->s->scratch);
        x->counts.added++;
    }
    if (!known)
        return -ENOMEM;
    if (r == 1 && (!own_time || c->track_timestamps_staleness))
        prom_series_track(&x->t->series, known);
    x->counts.remaining++;
    return 0;
}

static int take_new(struct reading *x, const struct prom_entry *e)
{
    struct prom_labels page, l;
    int r = prom_parser_labels(x->parser, &page);
    if (r < 0)
        return r;
    if (!mutate(x, page, &l))
        return prom_series_add(&x->t->series, e->raw, l, true, x->s->scratch) ? 0 : -ENOMEM;
    r = check_labels(x, l, &x->why);
    if (r == 0 && x->s->nexternal) {
        add_external(x->s, &x->s->labels);
        r = prom_builder_sorted(&x->s->labels, &l);
    }
    return r < 0 ? r : take_kept(x, e, l, NULL, false);
}

static int take_sample(struct reading *x, const struct prom_entry *e)
{
    struct series *known = prom_series_find(&x->t->series, e->raw);
    x->counts.scraped++;
    if (!known)
        return take_new(x, e);
    const bool back = prom_series_is_back(&x->t->series, known);
    const bool again = prom_series_see(&x->t->series, known);
    if (known->dropped)
        return 0;
    if (room_for(x->s, known->nlabels) < 0)
        return -ENOMEM;
    x->counts.added += back;
    return take_kept(x, e, prom_series_labels(known, x->s->items), known, again);
}

static int take_page(struct reading *x, enum prom_format format, struct bytes body)
{
    _cleanup_(prom_parser_freep) struct prom_parser *p = prom_parser_new(format, body);
    struct prom_entry e;
    int r = p ? 1 : -ENOMEM;
    x->parser = p;
    prom_series_page(&x->t->series, format);
    while (r > 0) {
        prom_parser_expect(p, prom_series_expected(&x->t->series));
        r = prom_parser_next(p, &e, &x->why);
        if (r != 1)
            break;
        const int taken =
            e.kind == PROM_SAMPLE ? take_sample(x, &e) : prom_metadata_note(x->t->metadata, &e);
        r = taken < 0 ? taken : 1;
    }
    if (r == -ENOMEM)
        err_set(&x->why, r, "out of memory");
    if (r == 0 && x->over_limit)
        r = err_set(&x->why, -E2BIG, "sample limit exceeded");
    return r;
}

/* ---- the body ---- */

static int inflate(struct reading *x, const struct http_client_response *res, struct buf **ret)
{
    const uint64_t limit = x->t->job->settings.body_size_limit;
    *ret = buf_new(limit && limit < MAX_PAGE_BYTES ? (size_t)limit : MAX_PAGE_BYTES);
    if (!*ret)
        return err_set(&x->why, -ENOMEM, "out of memory");
    buf_bound(*ret, x->s->memory.limit);
    return codec_decompress(CODEC_GZIP, buf_bytes(res->body), *ret, &x->why);
}

static int check_size(struct reading *x, size_t len)
{
    const uint64_t limit = x->t->job->settings.body_size_limit;
    if (len <= MAX_PAGE_BYTES && (!limit || len < limit)) {
        x->counts.body_bytes = (int64_t)len;
        return 0;
    }
    x->counts.body_bytes = -1;
    return err_set(&x->why, -EMSGSIZE, "body size limit exceeded");
}

static int take_body(struct reading *x, const struct http_client_response *res)
{
    static const enum prom_format formats[] = {[PROTO_TEXT_0_0_4] = PROM_TEXT,
                                               [PROTO_TEXT_1_0_0] = PROM_TEXT,
                                               [PROTO_OPENMETRICS_0_0_1] = PROM_OPENMETRICS,
                                               [PROTO_OPENMETRICS_1_0_0] = PROM_OPENMETRICS};
    const enum prom_format fallback = formats[x->t->job->settings.config->fallback_scrape_protocol];
    _cleanup_buf_ struct buf *inflated = NULL;
    enum prom_format format;
    int r = check_size(x, res->body->len);
    if (r == 0 && codec_find(bytes_str(res->content_encoding)) == CODEC_GZIP) {
        r = inflate(x, res, &inflated);
        r = r == -EMSGSIZE ? check_size(x, SIZE_MAX) : r < 0 ? r : check_size(x, inflated->len);
    }
    const struct bytes body = buf_bytes(inflated ? inflated : res->body);
    x->nothing = body.len == 0;
    if (r < 0 || x->nothing)
        return r;
    if (!prom_format_of(res->content_type, &fallback, &format, &x->why))
        return -EINVAL;
    return take_page(x, format, body);
}

static int take_response(struct reading *x, const struct page *p)
{
    if (p->error) {
        char url[500];
        http_url_redact(x->t->spec.url, url, sizeof(url));
        return err_set(&x->why, p->error, "Get \"%s\": %s", url, p->reason);
    }
    if (p->response->status != 200)
        return err_set(&x->why, -EIO, "server returned HTTP status %d%s%s", p->response->status,
                       *prom_status_text(p->response->status) ? " " : "",
                       prom_status_text(p->response->status));
    return take_body(x, p->response);
}

/* ---- stale points ---- */

static int put_stale(void *ctx, const struct series *gone)
{
    struct reading *x = ctx;
    if (room_for(x->s, gone->nlabels) < 0)
        return -ENOMEM;
    const struct prom_sample p = {
        .labels = prom_series_labels(gone, x->s->items), .stale = true, .time_ms = x->t->time_ms};
    const int r = prom_mapper_add(x->s->mapper, &p, NULL);
    return r < 0 ? r : 0;
}

/* ---- what is said of the scrape ---- */

static int put_report(struct reading *x, const char *name, double value, bool stale)
{
    struct label_builder *b = &x->s->labels;
    struct prom_labels l;
    prom_builder_reset(b, x->t->spec.labels);
    prom_builder_set(b, bytes_str("__name__"), bytes_str(name));
    add_external(x->s, b);
    if (prom_builder_sorted(b, &l) < 0)
        return -ENOMEM;
    const struct prom_sample p = {
        .labels = l, .value = value, .stale = stale, .time_ms = x->t->time_ms};
    const int r = prom_mapper_add(x->s->mapper, &p, NULL);
    return r < 0 ? r : 0;
}

/* `stale`: the target is gone, and with it what was said of it. */
static int put_reports(struct reading *x, bool up, uint64_t duration_ns, bool stale)
{
    const struct job_settings *j = &x->t->job->settings;
    const struct {
        const char *name;
        double value;
        bool extra;
    } reports[MAX_REPORTS] = {
        {"up", up, false},
        {"scrape_duration_seconds", (double)duration_ns / 1e9, false},
        {"scrape_samples_scraped", (double)x->counts.scraped, false},
        {"scrape_samples_post_metric_relabeling", (double)x->counts.remaining, false},
        {"scrape_series_added", (double)x->counts.added, false},
        {"scrape_timeout_seconds", (double)x->t->spec.timeout_ns / 1e9, true},
        {"scrape_sample_limit", (double)j->sample_limit, true},
        {"scrape_body_size_bytes", (double)x->counts.body_bytes, true}};
    int r = 0;
    for (size_t i = 0; r == 0 && i < MAX_REPORTS; i++)
        if (!reports[i].extra || j->extra_metrics)
            r = put_report(x, reports[i].name, reports[i].value, stale);
    return r;
}

/* ---- the end ---- */

/* One line when a target goes down, one when it is back. */
static void log_state(struct reading *x, bool ok)
{
    char labels[1000];
    if (x->t->down == !ok)
        return;
    x->t->down = !ok;
    prom_labels_format(x->t->spec.labels, labels, sizeof(labels));
    if (ok)
        log_info(&x->s->owner->logger, "Scraping the Prometheus endpoint works again",
                 LOG_INT("scrape_timestamp", x->t->time_ms), LOG_STR("target_labels", labels));
    else
        log_warn(&x->s->owner->logger, "Failed to scrape Prometheus endpoint",
                 LOG_STR("error", x->why.text), LOG_INT("scrape_timestamp", x->t->time_ms),
                 LOG_STR("target_labels", labels));
}

static void send_points(struct reading *x)
{
    struct buf *wire = NULL;
    struct batch *b = NULL;
    struct prom_left_out left_out;
    uint32_t points = 0;
    struct err e = {.text = "out of memory"};
    int r = prom_mapper_finish(x->s->mapper, &wire, &points, &left_out);
    if (r == 0 && wire)
        r = batch_from_wire(SIGNAL_METRICS, wire, &b, &e);
    if (r < 0)
        log_error(&x->s->owner->logger, "The points of a scrape are lost.",
                  LOG_STR("error", e.text), LOG_INT("dropped_items", points));
    else if (b)
        prom_outbox_send(&x->s->outbox, b);
    if (left_out.samples)
        log_debug(&x->s->owner->logger, "Samples became no point.",
                  LOG_INT("samples", left_out.samples), LOG_STR("first", left_out.first));
}

static void begin(struct reading *x, struct prom_origin *o)
{
    origin_of(x->s, x->t, o);
    prom_mapper_begin(x->s->mapper, o);
}

void prom_scrape_finish(struct scraper *s, struct target *t, const struct page *p)
{
    struct reading x = {.s = s, .t = t};
    struct prom_origin origin;
    prom_series_begin(&t->series);
    begin(&x, &origin);
    const int r = take_response(&x, p);
    if (r < 0)
        begin(&x, &origin);
    int lost = prom_series_end(&t->series, r < 0 || x.nothing, put_stale, &x);
    const uint64_t duration = t->started_ns ? clock_now_ns() - t->started_ns : 0;
    if (lost == 0)
        lost = put_reports(&x, r == 0, duration, false);
    metric_add(r < 0 ? t->counters.failed : t->counters.succeeded, 1);
    log_state(&x, r == 0);
    if (x.counts.duplicates)
        log_debug(&s->owner->logger,
                  "A target gives samples of the same series more than once; the first one counts.",
                  LOG_STR("target", t->spec.url), LOG_INT("num_dropped", x.counts.duplicates));
    if (lost < 0)
        log_error(&s->owner->logger, "Points about a scrape are lost: out of memory.");
    send_points(&x);
    prom_metadata_end_scrape(t->metadata);
}

void prom_scrape_forget(struct scraper *s, struct target *t, int64_t time_ms)
{
    struct reading x = {.s = s, .t = t};
    struct prom_origin origin;
    t->time_ms = time_ms;
    prom_series_begin(&t->series);
    begin(&x, &origin);
    if (prom_series_end(&t->series, true, put_stale, &x) == 0)
        put_reports(&x, false, 0, true);
    send_points(&x);
}
