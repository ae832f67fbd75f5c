/* Which series get a stale point, which are forgotten, and what order a page is expected in. */
#include "prom_rules.h"

#include "agent/base/buf.h"

struct gone {
    char text[400];
};

static int note_gone(void *ctx, const struct series *s)
{
    struct gone *g = ctx;
    struct prom_label items[8];
    const struct prom_labels l = prom_series_labels(s, items);
    const size_t at = strlen(g->text);
    snprintf(g->text + at, sizeof(g->text) - at, "%s%.*s", at ? " " : "", (int)l.items[0].value.len,
             (const char *)l.items[0].value.data);
    return 0;
}

/* A page: words are series; "x'" is another text of the series x, "x@" one with a time of its own,
 * "x!" one that the rules drop. */
static unsigned scrape(struct series_table *t, const char *page, bool failed, struct gone *gone)
{
    _cleanup_buf_ struct buf *scratch = buf_new(0);
    unsigned added = 0;
    prom_series_begin(t);
    for (const char *p = page; *p;) {
        const size_t n = strcspn(p, " ");
        const bool dropped = p[n - 1] == '!', own_time = p[n - 1] == '@';
        const struct prom_label label = {bytes_str("n"), bytes_of(p, strcspn(p, "' @!"))};
        struct series *s = prom_series_find(t, bytes_of(p, n));
        if (s) {
            added += prom_series_is_back(t, s);
            prom_series_see(t, s);
        } else {
            added++;
            s = prom_series_add(t, bytes_of(p, n), (struct prom_labels){&label, 1}, dropped,
                                scratch);
        }
        assert_non_null(s);
        if (!dropped && !own_time)
            prom_series_track(t, s);
        p += n + (p[n] == ' ');
    }
    gone->text[0] = 0;
    assert_int_equal(prom_series_end(t, failed, note_gone, gone), 0);
    return added;
}

static void test_stale(void **state)
{
    (void)state;
    struct series_table t = {.scrape = 0};
    struct gone g;
    assert_int_equal(scrape(&t, "a b c@ d!", false, &g), 4);
    assert_string_equal(g.text, "");
    assert_int_equal(scrape(&t, "a b", false, &g), 0);
    assert_string_equal(g.text, ""); /* c@ has times of its own, d! never came out */
    scrape(&t, "a", false, &g);
    assert_string_equal(g.text, "b");
    scrape(&t, "a", false, &g);
    assert_string_equal(g.text, "");                   /* once */
    assert_int_equal(scrape(&t, "b a", false, &g), 1); /* it counts as new */
    assert_string_equal(g.text, "");
    scrape(&t, "a' b", false, &g); /* the same labels in another order */
    assert_string_equal(g.text, "");
    scrape(&t, "b", false, &g);
    assert_string_equal(g.text, "a");
    prom_series_done(&t);
}

static void test_failed(void **state)
{
    (void)state;
    struct series_table t = {.scrape = 0};
    struct gone g;
    scrape(&t, "a b", false, &g);
    scrape(&t, "a x", true, &g); /* x was never sent, for the page was bad */
    assert_true(strcmp(g.text, "a b") == 0 || strcmp(g.text, "b a") == 0);
    scrape(&t, "", true, &g);
    assert_string_equal(g.text, "");
    assert_int_equal(scrape(&t, "a b", false, &g), 0); /* they were kept meanwhile */
    assert_string_equal(g.text, "");
    scrape(&t, "b", false, &g);
    assert_string_equal(g.text, "a");
    prom_series_done(&t);
}

/* Series that come once and never again do not pile up, in good pages or in bad ones. */
static void test_bounded(void **state)
{
    (void)state;
    struct series_table t = {.scrape = 0};
    struct gone g;
    char page[9000];
    const size_t before = mem_used();
    for (int i = 0; i < 300; i++) {
        size_t at = 0;
        for (int k = 0; k < 100; k++)
            at += (size_t)snprintf(page + at, sizeof(page) - at, "%ss%d", k ? " " : "",
                                   k < 80 ? k : 1000 * i + k);
        scrape(&t, page, i >= 200, &g);
        assert_in_range(t.table.n, 100, i < 200 ? 200 : 1400);
    }
    assert_in_range(mem_used() - before, 1, 400000);
    prom_series_done(&t);
    assert_int_equal(mem_used(), before);
}

static void expect_next(const struct series_table *t, const char *want)
{
    assert_true(bytes_eq_str(prom_series_expected(t), want));
}

static void test_order(void **state)
{
    (void)state;
    struct series_table t = {.scrape = 0};
    struct gone g;
    expect_next(&t, "");
    scrape(&t, "a b c", false, &g);
    prom_series_begin(&t);
    prom_series_page(&t, PROM_TEXT);
    expect_next(&t, "a");
    prom_series_see(&t, prom_series_find(&t, bytes_str("a")));
    expect_next(&t, "b");
    prom_series_see(&t, prom_series_find(&t, bytes_str("c"))); /* b is gone */
    expect_next(&t, "");
    prom_series_end(&t, false, note_gone, &g);
    prom_series_begin(&t);
    prom_series_page(&t, PROM_OPENMETRICS); /* its texts may mean something else */
    expect_next(&t, "");
    prom_series_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stale), cmocka_unit_test(test_failed),
                                       cmocka_unit_test(test_bounded),
                                       cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
