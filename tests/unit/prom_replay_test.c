/* A replayed page gives the request that parsing and mapping it gives, and pages that are no replay
 * are found out. */
#include "prom_rules.h"

#include "prom_page.h"
#include "receivers/prometheus/recorder.h"

#define LATER_MS (PAGE_TIME_MS + 15000)

struct world {
    struct prom_page page;
    struct series_table series;
    struct buf *scratch;
};

static void open_world(struct world *w)
{
    *w = (struct world){.scratch = buf_new(0)};
    prom_page_open(&w->page);
}

static void close_world(struct world *w)
{
    prom_page_close(&w->page);
    prom_series_done(&w->series);
    buf_unref(w->scratch);
}

static int nothing_gone(void *ctx, const struct series *s)
{
    (void)ctx;
    (void)s;
    return 0;
}

static void add_sample(struct world *w, struct prom_parser *p, const struct prom_entry *e,
                       int64_t time_ms, struct prom_recorder *rec)
{
    struct prom_sample s = {.value = e->value, .time_ms = time_ms};
    assert_int_equal(prom_parser_labels(p, &s.labels), 0);
    assert_true(prom_mapper_add(w->page.mapper, &s, NULL) >= 0);
    struct series *known = prom_series_find(&w->series, e->raw);
    if (known)
        prom_series_see(&w->series, known);
    else
        assert_non_null(prom_series_add(&w->series, e->raw, s.labels, false, w->scratch));
    if (rec)
        prom_recorder_sample(rec, e->raw, w->page.mapper);
}

static void add_up(struct world *w, int64_t time_ms, double value, struct prom_recorder *rec)
{
    static const struct prom_label label = {{(const uint8_t *)"__name__", 8},
                                            {(const uint8_t *)"up", 2}};
    const struct prom_sample up = {.labels = {&label, 1}, .value = value, .time_ms = time_ms};
    assert_int_equal(prom_mapper_add(w->page.mapper, &up, NULL), 1);
    if (rec)
        prom_recorder_report(rec, 3, w->page.mapper);
}

/* A batch of the page, by the long way. */
static struct batch *scrape(struct world *w, enum prom_format format, const char *text,
                            int64_t time_ms, double up, struct prom_recorder *rec)
{
    struct prom_parser *p = prom_parser_new(format, bytes_str(text));
    struct prom_entry e;
    struct buf *wire;
    struct batch *b;
    uint32_t points;
    int r;
    prom_series_begin(&w->series);
    prom_series_page(&w->series, format);
    prom_mapper_begin(w->page.mapper, &w->page.origin);
    while ((r = prom_parser_next(p, &e, NULL)) > 0)
        if (e.kind == PROM_SAMPLE)
            add_sample(w, p, &e, time_ms, rec);
        else
            assert_int_equal(prom_metadata_note(w->page.metadata, &e), 0);
    assert_int_equal(r, 0);
    prom_parser_free(p);
    if (rec)
        prom_mapper_record(w->page.mapper, rec);
    prom_series_end(&w->series, false, nothing_gone, NULL);
    add_up(w, time_ms, up, rec);
    assert_int_equal(prom_mapper_finish(w->page.mapper, &wire, &points, NULL), 0);
    assert_int_equal(batch_from_wire(SIGNAL_METRICS, wire, &b, NULL), 0);
    return b;
}

static struct prom_replay *record(struct world *w, enum prom_format format, const char *text)
{
    struct prom_recorder rec;
    batch_unref(scrape(w, format, text, PAGE_TIME_MS, 1, NULL)); /* with that everything is known */
    prom_recorder_init(&rec, format, bytes_str(text));
    struct batch *b = scrape(w, format, text, PAGE_TIME_MS, 1, &rec);
    struct prom_replay *replay = prom_recorder_replay(&rec, &w->series, b, PAGE_TIME_MS);
    prom_recorder_done(&rec);
    batch_unref(b);
    return replay;
}

static void need_same(const struct batch *a, const struct batch *b)
{
    assert_int_equal(a->records, b->records);
    assert_int_equal(a->bytes, b->bytes);
    assert_memory_equal(a->segs[0]->data, b->segs[0]->data, a->bytes);
    assert_true(a->times.first_ns == b->times.first_ns && a->times.last_ns == b->times.last_ns);
}

/* `held`: the request of the page before is still somewhere below. */
static void need_replay(struct prom_replay *r, struct world *w, enum prom_format format,
                        const char *text, bool held)
{
    struct buf *before = held ? buf_ref(r->request) : NULL;
    struct buf *copy = buf_new(0);
    buf_append(copy, r->request->data, r->request->len);
    assert_true(prom_replay_page(r, &w->series, format, bytes_str(text), LATER_MS));
    prom_replay_report(r, 3, 0.5);
    struct batch *got = prom_replay_batch(r), *want = scrape(w, format, text, LATER_MS, 0.5, NULL);
    need_same(got, want);
    if (before)
        assert_memory_equal(before->data, copy->data, copy->len);
    batch_unref(got);
    batch_unref(want);
    buf_unref(before);
    buf_unref(copy);
}

#define HIST(a, b, inf, sum, count)                                                                \
    "# TYPE h histogram\nh_bucket{x=\"1\",le=\"0.5\"} " a "\nh_bucket{x=\"1\",le=\"2\"} " b        \
    "\nh_bucket{x=\"1\",le=\"+Inf\"} " inf "\nh_sum{x=\"1\"} " sum "\nh_count{x=\"1\"} " count     \
    "\n"
#define SUMM(q, sum, count)                                                                        \
    "# HELP s text\n# TYPE s summary\ns{quantile=\"0.5\"} " q "\ns_sum " sum "\ns_count " count "\n"
#define OM(created, v)                                                                             \
    "# TYPE c counter\nc_total{a=\"1\"} " v "\nc_created{a=\"1\"} " created "\n# EOF\n"

static const struct {
    enum prom_format format;
    const char *first, *second;
    bool same;
} pages[] = {
    {PROM_TEXT, "a 1\n", "a 2\n", true},
    {PROM_TEXT, "a 1\n", "a  -2.5e3 \n", true},
    {PROM_TEXT, "a 1\n", "a NaN\n", true},
    {PROM_TEXT, "a 1\n", "a\t+Inf\n", true},
    {PROM_TEXT, "a 1\n", "a 0\r\n", true},
    {PROM_TEXT, "a{b=\"c\"} 0\na{b=\"d\"} 0\n",
     "a{b=\"c\"} 1.7976931348623157e308\na{b=\"d\"} 5e-324\n", true},
    {PROM_TEXT, "# c\n\na 1\n# d\nb 2\n# e", "# c\n\na 1\n# d\nb 3\n# e", true},
    {PROM_TEXT, "up 7\na 1\n", "up 8\na 2\n", true}, /* what the scrape says comes last */
    {PROM_TEXT, "target_info{x=\"y\"} 1\na 1\n", "target_info{x=\"y\"} 1\na 3\n", true},
    {PROM_TEXT, HIST("1", "2", "3", "4.5", "3"), HIST("4", "5.9", "6", "0", "6"), true},
    {PROM_TEXT, HIST("1", "2", "3", "4.5", "3"), HIST("9", "5", "6", "NaN", "7"), true},
    {PROM_TEXT, HIST("0", "0", "0", "0", "0"), HIST("7", "0", "1", "-1", "0.5"), true},
    {PROM_TEXT, SUMM("1", "2", "3"), SUMM("NaN", "1e9", "4"), true},
    {PROM_TEXT, SUMM("0", "0", "0"), SUMM("0", "0", "0"), true},
    {PROM_OPENMETRICS, OM("1600000000.5", "1"), OM("1600000000.5", "2"), true},
    {PROM_OPENMETRICS, OM("0", "1"), OM("-1", "2"), true},
    {PROM_OPENMETRICS, "a 1\n# EOF\n", "a 2\n# EOF\n", true},

    {PROM_TEXT, "a 1\n", "a 2", false}, /* more care than it is worth */
    {PROM_TEXT, "a 1\n", "a 2 1700000000\n", false},
    {PROM_TEXT, "a 1\n", "a  {b=\"c\"} 2\n", false},
    {PROM_TEXT, "a 1\n", "ab 2\n", false},
    {PROM_TEXT, "a 1\n", "a 2x\n", false},
    {PROM_TEXT, "a 1\n", "a \n", false},
    {PROM_TEXT, "a 1\n", "a", false},
    {PROM_TEXT, "a 1\n", "\n", false},
    {PROM_TEXT, "a 1\n", "a 1\nb 1\n", false},
    {PROM_TEXT, "a 1\nb 1\n", "a 1\n", false},
    {PROM_TEXT, "a 1\nb 1\n", "b 1\na 1\n", false},
    {PROM_TEXT, "# c\na 1\n", "# d\na 1\n", false},
    {PROM_TEXT, "a 1\n# c\n", "a 1\n# cc\n", false},
    {PROM_TEXT, "a 1\n# c\n", "a 1\n", false},
    {PROM_TEXT, HIST("0", "0", "0", "0", "0"), HIST("1", "1", "1", "1", "1"), false},
    {PROM_TEXT, HIST("1", "1", "1", "1", "1"), HIST("0", "0", "0", "0", "0"), false},
    {PROM_TEXT, SUMM("0", "2", "3"), SUMM("1", "2", "3"), false},
    {PROM_TEXT, SUMM("1", "2", "3"), SUMM("1", "0", "3"), false},
    {PROM_TEXT, SUMM("1", "2", "3"), SUMM("1", "2", "0"), false},
    {PROM_OPENMETRICS, OM("1600000000.5", "1"), OM("1600000001.5", "2"), false},
    {PROM_OPENMETRICS, OM("0", "1"), OM("1600000001.5", "2"), false},
    {PROM_OPENMETRICS, "a 1\n# EOF\n", "a 2\n# EOF", false},
    {PROM_OPENMETRICS, "a 1\n# EOF\n", "a  2\n# EOF\n", false},
    {PROM_OPENMETRICS, "a 1\n# EOF\n", "a 2\r\n# EOF\n", false},
    {PROM_OPENMETRICS, "a 1\n# EOF\n", "a 2 # {} 1\n# EOF\n", false},
};

static void test_pages(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        struct world w;
        open_world(&w);
        struct prom_replay *r = record(&w, pages[i].format, pages[i].first);
        assert_non_null(r);
        need_replay(r, &w, pages[i].format, pages[i].first, i % 2);
        if (pages[i].same)
            need_replay(r, &w, pages[i].format, pages[i].second, i % 3);
        else
            assert_false(prom_replay_page(r, &w.series, pages[i].format, bytes_str(pages[i].second),
                                          LATER_MS));
        prom_replay_free(r);
        close_world(&w);
    }
}

/* Pages that are recorded in vain. */
static void test_unfit(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"1.0\"} 2\nh_count 3\n",
        "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 2\n",
        "# TYPE h histogram\nh_bucket{le=\"x\"} 1\nh_count 2\n",
        "a 1",
        "# nothing\n",
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct world w;
        open_world(&w);
        assert_null(record(&w, PROM_TEXT, texts[i]));
        close_world(&w);
    }
}

/* Another format is another page, whatever it says. */
static void test_format(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    struct prom_replay *r = record(&w, PROM_TEXT, "a 1\n# EOF\n");
    assert_false(
        prom_replay_page(r, &w.series, PROM_OPENMETRICS, bytes_str("a 1\n# EOF\n"), LATER_MS));
    prom_replay_free(r);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pages), cmocka_unit_test(test_unfit),
                                       cmocka_unit_test(test_format)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
