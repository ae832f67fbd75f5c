/* What came back of a target, as points: samples, stale points, and what is said of the scrape
 * itself. */
#include <errno.h>
#include <inttypes.h>

#include "agent/base/clock.h"
#include "agent/net/codec.h"
#include "receivers/prometheus/prometheus.h"
#include "receivers/prometheus/recorder.h"

#define REPLAY_TRIES 3     /* so many replays may fail one after the other... */
#define REPLAY_MAX_WAIT 64 /* ...before the next page is recorded only so many scrapes later */

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
    struct prom_recorder *recorder; /* NULL = the page is not recorded */
    struct counts counts;
    uint64_t appended;
    bool over_limit;
    bool odd;     /* a sample with a time of its own or an exemplar, or a series that is gone */
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
    x->odd |= has != 0 || e->has_time;
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

static int take_known(struct reading *x, const struct prom_entry *e, struct series *known)
{
    const bool back = prom_series_is_back(&x->t->series, known);
    const bool again = prom_series_see(&x->t->series, known);
    if (known->dropped)
        return 0;
    if (room_for(x->s, known->nlabels) < 0)
        return -ENOMEM;
    x->counts.added += back;
    return take_kept(x, e, prom_series_labels(known, x->s->items), known, again);
}

static int take_sample(struct reading *x, const struct prom_entry *e)
{
    struct series *known = prom_series_find(&x->t->series, e->raw);
    const bool dropped = known && known->dropped;
    x->counts.scraped++;
    const int r = known ? take_known(x, e, known) : take_new(x, e);
    if (x->recorder)
        prom_recorder_sample(x->recorder, e->raw, dropped ? NULL : x->s->mapper);
    return r;
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

/* A page as it came, ready to be read. */
struct body {
    struct buf *inflated; /* NULL = the response has the text */
    struct bytes text;
    enum prom_format format;
};

static void body_done(struct body *b)
{
    buf_unref(b->inflated);
}

static int open_body(struct reading *x, const struct http_client_response *res, struct body *ret)
{
    static const enum prom_format formats[] = {[PROTO_TEXT_0_0_4] = PROM_TEXT,
                                               [PROTO_TEXT_1_0_0] = PROM_TEXT,
                                               [PROTO_OPENMETRICS_0_0_1] = PROM_OPENMETRICS,
                                               [PROTO_OPENMETRICS_1_0_0] = PROM_OPENMETRICS};
    const enum prom_format fallback = formats[x->t->job->settings.config->fallback_scrape_protocol];
    int r = check_size(x, res->body->len);
    if (r == 0 && codec_find(bytes_str(res->content_encoding)) == CODEC_GZIP) {
        r = inflate(x, res, &ret->inflated);
        r = r == -EMSGSIZE ? check_size(x, SIZE_MAX)
            : r < 0        ? r
                           : check_size(x, ret->inflated->len);
    }
    ret->text = buf_bytes(ret->inflated ? ret->inflated : res->body);
    x->nothing = ret->text.len == 0;
    if (r < 0 || x->nothing)
        return r;
    return prom_format_of(res->content_type, &fallback, &ret->format, &x->why) ? 0 : -EINVAL;
}

static int open_response(struct reading *x, const struct page *p, struct body *ret)
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
    return open_body(x, p->response, ret);
}

/* ---- stale points ---- */

static int put_stale(void *ctx, const struct series *gone)
{
    struct reading *x = ctx;
    x->odd = true;
    if (room_for(x->s, gone->nlabels) < 0)
        return -ENOMEM;
    const struct prom_sample p = {
        .labels = prom_series_labels(gone, x->s->items), .stale = true, .time_ms = x->t->time_ms};
    const int r = prom_mapper_add(x->s->mapper, &p, NULL);
    return r < 0 ? r : 0;
}

/* ---- what is said of the scrape ---- */

static const struct {
    const char *name;
    bool extra;
} reports[PROM_MAX_REPORTS] = {{"up", false},
                               {"scrape_duration_seconds", false},
                               {"scrape_samples_scraped", false},
                               {"scrape_samples_post_metric_relabeling", false},
                               {"scrape_series_added", false},
                               {"scrape_timeout_seconds", true},
                               {"scrape_sample_limit", true},
                               {"scrape_body_size_bytes", true}};

static void report_values(const struct reading *x, bool up, double ret[PROM_MAX_REPORTS])
{
    const struct target *t = x->t;
    const uint64_t duration_ns = t->started_ns ? clock_now_ns() - t->started_ns : 0;
    const double values[PROM_MAX_REPORTS] = {up,
                                             (double)duration_ns / 1e9,
                                             (double)x->counts.scraped,
                                             (double)x->counts.remaining,
                                             (double)x->counts.added,
                                             (double)t->spec.timeout_ns / 1e9,
                                             (double)t->job->settings.sample_limit,
                                             (double)x->counts.body_bytes};
    memcpy(ret, values, sizeof(values));
}

static int put_report(struct reading *x, size_t number, double value, bool stale)
{
    struct label_builder *b = &x->s->labels;
    struct prom_labels l;
    prom_builder_reset(b, x->t->spec.labels);
    prom_builder_set(b, bytes_str("__name__"), bytes_str(reports[number].name));
    add_external(x->s, b);
    if (prom_builder_sorted(b, &l) < 0)
        return -ENOMEM;
    const struct prom_sample p = {
        .labels = l, .value = value, .stale = stale, .time_ms = x->t->time_ms};
    const int r = prom_mapper_add(x->s->mapper, &p, NULL);
    if (r >= 0 && x->recorder)
        prom_recorder_report(x->recorder, number, x->s->mapper);
    return r < 0 ? r : 0;
}

/* `stale`: the target is gone, and with it what was said of it. */
static int put_reports(struct reading *x, bool up, bool stale)
{
    double values[PROM_MAX_REPORTS];
    int r = 0;
    report_values(x, up, values);
    for (size_t i = 0; r == 0 && i < PROM_MAX_REPORTS; i++)
        if (!reports[i].extra || x->t->job->settings.extra_metrics)
            r = put_report(x, i, values[i], stale);
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

/* NULL when there are none, or they are lost. */
static struct batch *make_batch(struct reading *x)
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
    if (left_out.samples)
        log_debug(&x->s->owner->logger, "Samples became no point.",
                  LOG_INT("samples", left_out.samples), LOG_STR("first", left_out.first));
    return b;
}

static void begin(struct reading *x, struct prom_origin *o)
{
    origin_of(x->s, x->t, o);
    prom_mapper_begin(x->s->mapper, o);
}

static void finish(struct reading *x, bool ok, struct batch *b)
{
    metric_add(ok ? x->t->counters.succeeded : x->t->counters.failed, 1);
    log_state(x, ok);
    if (x->counts.duplicates)
        log_debug(&x->s->owner->logger,
                  "A target gives samples of the same series more than once; the first one counts.",
                  LOG_STR("target", x->t->spec.url), LOG_INT("num_dropped", x->counts.duplicates));
    if (b)
        prom_outbox_send(&x->s->outbox, b);
}

/* ---- pages that are like the one before ---- */

/* True: that was all. */
static bool replay(struct reading *x, const struct body *body)
{
    struct target *t = x->t;
    struct prom_replay *r = t->replay;
    double values[PROM_MAX_REPORTS];
    struct batch *b = NULL;
    if (!r)
        return false;
    if (prom_replay_page(r, &t->series, body->format, body->text, t->time_ms)) {
        x->counts.scraped = r->scraped;
        x->counts.remaining = r->remaining;
        report_values(x, true, values);
        for (size_t i = 0; i < PROM_MAX_REPORTS; i++)
            prom_replay_report(r, i, values[i]);
        b = prom_replay_batch(r);
    }
    if (!b) {
        t->replay = prom_replay_free(r);
        t->replays_failed++;
        if (t->replays_failed > REPLAY_TRIES)
            t->replay_wait =
                t->replays_failed < REPLAY_MAX_WAIT ? t->replays_failed : REPLAY_MAX_WAIT;
        return false;
    }
    t->replays_failed = 0;
    finish(x, true, b);
    return true;
}

/* Whether this page is to be recorded. Those that change with every scrape are not worth it. */
static bool is_to_record(struct target *t)
{
    if (t->replay_wait) {
        t->replay_wait--;
        return false;
    }
    return t->steady;
}

/* The page, if it was a good one, had nothing new, and nothing that is not told by its text alone.
 */
static bool is_steady(const struct reading *x, int error, uint64_t changes_before)
{
    return error == 0 && !x->nothing && !x->odd && x->counts.added == 0 &&
           x->counts.duplicates == 0 && prom_metadata_changes(x->t->metadata) == changes_before &&
           prom_metadata_is_complete(x->t->metadata);
}

/* ---- a scrape ---- */

static void read_anew(struct reading *x, int error, const struct body *body)
{
    struct target *t = x->t;
    struct prom_origin origin;
    const uint64_t changes = prom_metadata_changes(t->metadata);
    prom_series_begin(&t->series);
    begin(x, &origin);
    if (error == 0 && !x->nothing)
        error = take_page(x, body->format, body->text);
    if (error < 0)
        begin(x, &origin);
    else if (x->recorder)
        prom_mapper_record(x->s->mapper, x->recorder);
    int lost = prom_series_end(&t->series, error < 0 || x->nothing, put_stale, x);
    if (lost == 0)
        lost = put_reports(x, error == 0, false);
    if (lost < 0)
        log_error(&x->s->owner->logger, "Points about a scrape are lost: out of memory.");
    struct batch *b = make_batch(x);
    t->steady = is_steady(x, error, changes);
    if (x->recorder && t->steady && b)
        t->replay = prom_recorder_replay(x->recorder, &t->series, b, t->time_ms);
    if (t->replay) {
        t->replay->scraped = x->counts.scraped;
        t->replay->remaining = x->counts.remaining;
    }
    finish(x, error == 0, b);
    prom_metadata_end_scrape(t->metadata);
}

void prom_scrape_finish(struct scraper *s, struct target *t, const struct page *p)
{
    struct reading x = {.s = s, .t = t};
    struct prom_recorder recorder;
    _cleanup_(body_done) struct body body = {.inflated = NULL};
    const int r = open_response(&x, p, &body);
    const bool readable = r == 0 && !x.nothing;
    if (readable && replay(&x, &body))
        return;
    t->replay = prom_replay_free(t->replay);
    if (!readable || !is_to_record(t)) {
        read_anew(&x, r, &body);
        return;
    }
    x.recorder = &recorder;
    prom_recorder_init(&recorder, body.format, body.text);
    read_anew(&x, r, &body);
    prom_recorder_done(&recorder);
}

void prom_scrape_forget(struct scraper *s, struct target *t, int64_t time_ms)
{
    struct reading x = {.s = s, .t = t};
    struct prom_origin origin;
    t->time_ms = time_ms;
    prom_series_begin(&t->series);
    begin(&x, &origin);
    if (prom_series_end(&t->series, true, put_stale, &x) == 0)
        put_reports(&x, false, true);
    struct batch *b = make_batch(&x);
    if (b)
        prom_outbox_send(&s->outbox, b);
}
