/* Every allocation of a scrape fails once: -ENOMEM, nothing leaks, and the next scrape is whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "receivers/prometheus/mapping.h"
#include "tests/unit/oom.h"

static const char page[] =
    "# TYPE c counter\n# HELP c some \\\"help\\\"\n# UNIT c_s s\n"
    "c_total{job=\"j2\",x=\"\\n\"} 1 # {trace_id=\"0\",k=\"\\\"\"} 1\nc_created 5\n"
    "# TYPE h histogram\nh_bucket{le=\"1\",otel_scope_name=\"n\",otel_scope_k=\"v\"} 1\n"
    "h_count{otel_scope_name=\"n\",otel_scope_k=\"v\"} 1\n# TYPE s summary\n"
    "s{quantile=\"0.5\"} 1\ns_count 1\nu_total 1\ntarget_info{a=\"b\"} 1\n"
    "many{a=\"1\",b=\"1\",c=\"1\",d=\"1\",e=\"1\",f=\"1\",g=\"1\",h=\"1\",i=\"1\",j=\"1\",k=\"1\","
    "l=\"1\",m=\"1\",n=\"1\",o=\"1\",p=\"1\",q=\"1\"} 1\n# EOF\n";

struct world {
    struct prom_metadata *metadata;
    struct prom_mapper *mapper;
    struct prom_origin origin;
};

static int take(struct world *w, struct prom_parser *p, const struct prom_entry *e)
{
    struct prom_exemplar exemplar;
    struct prom_sample s = {.value = e->value};
    if (e->kind != PROM_SAMPLE)
        return prom_metadata_note(w->metadata, e);
    int r = prom_parser_labels(p, &s.labels);
    if (r < 0)
        return r;
    r = prom_parser_exemplar(p, &exemplar);
    s.exemplar = r > 0 ? &exemplar : NULL;
    return r < 0 ? r : prom_mapper_add(w->mapper, &s, NULL);
}

static int scrape(struct world *w, struct buf **ret)
{
    struct prom_parser *p = prom_parser_new(PROM_OPENMETRICS, bytes_str(page));
    struct prom_entry e;
    uint32_t points;
    int r = p ? 1 : -ENOMEM;
    *ret = NULL;
    prom_mapper_begin(w->mapper, &w->origin);
    while (r > 0 && (r = prom_parser_next(p, &e, NULL)) > 0) {
        r = take(w, p, &e);
        r = r < 0 ? r : 1;
    }
    if (r == 0)
        r = prom_mapper_finish(w->mapper, ret, &points, NULL);
    prom_parser_free(p);
    prom_metadata_end_scrape(w->metadata);
    return r;
}

static void open_world(struct world *w)
{
    *w = (struct world){.metadata = prom_metadata_new(), .mapper = prom_mapper_new("1")};
    w->origin = (struct prom_origin){.job = bytes_str("job"),
                                     .instance = bytes_str("host:1"),
                                     .scheme = bytes_str("http"),
                                     .metadata = w->metadata};
}

static void close_world(struct world *w)
{
    prom_mapper_free(w->mapper);
    prom_metadata_free(w->metadata);
}

/* True when the allocation `at` was reached, so that it failed. */
static bool fail_at(unsigned at, struct buf *whole)
{
    struct world w;
    struct buf *wire;
    open_world(&w);
    fail_in = at;
    const int r = scrape(&w, &wire);
    const bool failed = fail_in == 0;
    fail_in = 0;
    assert_int_equal(r, failed ? -ENOMEM : 0);
    assert_int_equal(wire == NULL, failed);
    buf_unref(wire);
    assert_int_equal(scrape(&w, &wire), 0);
    assert_true(bytes_eq(buf_bytes(wire), buf_bytes(whole)));
    buf_unref(wire);
    close_world(&w);
    return failed;
}

static void test_scrape(void **state)
{
    const size_t before = mem_used();
    struct world w;
    struct buf *whole;
    unsigned at = 1;
    (void)state;
    open_world(&w);
    assert_int_equal(scrape(&w, &whole), 0);
    assert_non_null(whole);
    while (fail_at(at, whole))
        at++;
    assert_true(at > 20);
    buf_unref(whole);
    close_world(&w);
    assert_int_equal(mem_used(), before);
}

static void test_new(void **state)
{
    const size_t before = mem_used();
    (void)state;
    for (unsigned at = 1; at <= 2; at++) {
        fail_in = at;
        assert_null(prom_parser_new(PROM_TEXT, bytes_str("a 1")));
        fail_in = at;
        assert_null(prom_mapper_new("1"));
    }
    fail_in = 1;
    assert_null(prom_metadata_new());
    fail_in = 0;
    assert_int_equal(mem_used(), before);
}

/* A table for the families that stay cannot be made: they are forgotten, no more. */
static void test_metadata(void **state)
{
    struct prom_metadata *m = prom_metadata_new();
    struct prom_entry e = {.kind = PROM_TYPE, .type = PROM_GAUGE};
    const size_t before = mem_used();
    char name[16];
    (void)state;
    for (unsigned i = 0; i < 2000; i++) {
        snprintf(name, sizeof(name), "m%u", i);
        e.family = bytes_str(name);
        assert_int_equal(prom_metadata_note(m, &e), 0);
    }
    for (unsigned scrape = 0; scrape < 20; scrape++) {
        e.family = bytes_str("stays");
        assert_int_equal(prom_metadata_note(m, &e), 0);
        fail_in = 1;
        prom_metadata_end_scrape(m);
        fail_in = 0;
    }
    assert_null(prom_metadata_find(m, bytes_str("m0")));
    assert_int_equal(prom_metadata_note(m, &e), 0);
    assert_non_null(prom_metadata_find(m, bytes_str("stays")));
    assert_true(mem_used() - before < 4096);
    prom_metadata_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scrape), cmocka_unit_test(test_new),
                                       cmocka_unit_test(test_metadata)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
