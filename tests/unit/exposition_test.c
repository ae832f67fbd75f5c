/* The exposition parser: what it reads out of pages, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>

#include "receivers/prometheus/exposition.h"

static void show_labels(struct prom_labels l, struct buf *out)
{
    buf_putc(out, '{');
    for (size_t i = 0; i < l.n; i++)
        buf_printf(out, "%s%.*s=%.*s", i ? "," : "", (int)l.items[i].name.len,
                   (const char *)l.items[i].name.data, (int)l.items[i].value.len,
                   (const char *)l.items[i].value.data);
    buf_putc(out, '}');
}

static void show_sample(struct prom_parser *p, const struct prom_entry *e, struct buf *out)
{
    struct prom_labels labels;
    struct prom_exemplar x;
    assert_int_equal(prom_parser_labels(p, &labels), 0);
    show_labels(labels, out);
    buf_printf(out, " %.17g", e->value);
    if (e->has_time)
        buf_printf(out, " @%lld", (long long)e->time_ms);
    if (prom_parser_exemplar(p, &x) > 0) {
        buf_append_str(out, " # ");
        show_labels(x.labels, out);
        buf_printf(out, " %.17g", x.value);
        if (x.has_time)
            buf_printf(out, " @%lld", (long long)x.time_ms);
    }
}

/* One line for each entry; the error last. */
static void show_page(enum prom_format format, struct bytes text, struct buf *out)
{
    struct prom_parser *p = prom_parser_new(format, text);
    struct prom_entry e;
    struct err err = {0};
    int r;
    while ((r = prom_parser_next(p, &e, &err)) > 0) {
        static const char *const words[] = {[PROM_HELP] = "HELP", [PROM_UNIT] = "UNIT"};
        if (e.kind == PROM_SAMPLE)
            show_sample(p, &e, out);
        else if (e.kind == PROM_TYPE)
            buf_printf(out, "TYPE %.*s %s", (int)e.family.len, (const char *)e.family.data,
                       prom_type_name(e.type));
        else
            buf_printf(out, "%s %.*s [%.*s]", words[e.kind], (int)e.family.len,
                       (const char *)e.family.data, (int)e.text.len, (const char *)e.text.data);
        buf_putc(out, '\n');
    }
    if (r < 0) {
        assert_int_equal(r, -EINVAL);
        buf_printf(out, "%d:%d %s\n", err.line, err.column, err.text);
        assert_int_equal(prom_parser_next(p, &e, &err), 0);
    }
    prom_parser_free(p);
}

static void assert_page(enum prom_format format, const char *text, const char *expected)
{
    char *exact = strlen(text) ? malloc(strlen(text)) : NULL; /* so that ASan sees a read too far */
    struct buf *out = buf_new(0);
    if (exact)
        memcpy(exact, text, strlen(text));
    show_page(format, bytes_of(exact, strlen(text)), out);
    if (strcmp(buf_str(out), expected) != 0)
        fail_msg("%s\n got %s\nwant %s", text, buf_str(out), expected);
    buf_unref(out);
    free(exact);
}

struct good {
    const char *page, *entries;
};

static const struct good text_pages[] = {
    {"", ""},
    {"\n\n \t\n", ""},
    {"a 1\n", "{__name__=a} 1\n"},
    {"a 1", "{__name__=a} 1\n"},
    {"a 1\r\n\r\n# TYPE b gauge\r\nb 2 5\r\n", "{__name__=a} 1\nTYPE b gauge\n{__name__=b} 2 @5\n"},
    {"a 1\r", "{__name__=a} 1\n"},
    {"a:b_1{} -0\n", "{__name__=a:b_1} -0\n"},
    /* blanks nearly everywhere; those before a name belong to it */
    {"\ta \t{ x = \"1\" , y=\"2\", } \t 3 \t 4 \t\n", "{__name__=\ta,x=1,y=2} 3 @4\n"},
    {"a{x=\"1\"y=\"2\"}1\n", "{__name__=a,x=1,y=2} 1\n"},
    {"a{z=\"1\",b=\"2\",B=\"3\"} 1\n", "{B=3,__name__=a,b=2,z=1} 1\n"},
    {"a{x=\"\\\\ \\\" \\n \\t\"} 1\n", "{__name__=a,x=\\ \" \n \\t} 1\n"},
    {"a{x=\"line\nbreak\"} 1\n", "{__name__=a,x=line\nbreak} 1\n"},
    {"{\"my.name\",\"my label\"=\"x\"} 1\n", "{__name__=my.name,my label=x} 1\n"},
    {"{x=\"1\",\"n\\\"n\"} 1\n", "{__name__=n\"n,x=1} 1\n"},
    {"{\"\"} 1\n", "{__name__=} 1\n"}, /* refused as a sample */
    {"a NaN\nb +Inf\nc -inf\nd nan\n",
     "{__name__=a} nan\n{__name__=b} inf\n{__name__=c} -inf\n{__name__=d} nan\n"},
    {"a 1.5e-3\nb .5\nc 5.\nd +1E3\ne 12345678901234567\nf 0.12345678901234568\n",
     "{__name__=a} 0.0015\n{__name__=b} 0.5\n{__name__=c} 5\n{__name__=d} 1000\n"
     "{__name__=e} 12345678901234568\n{__name__=f} 0.12345678901234568\n"},
    {"a 9223372036854775807 9223372036854775807\n",
     "{__name__=a} 9.2233720368547758e+18 @9223372036854775807\n"},
    {"# a comment\n#another\n#\n# \n# HELPa b\n#HELP a b\n# EOF\n# UNIT a b\na 1\n",
     "{__name__=a} 1\n"},
    {"# HELP a  two \\\\ \\n \\\" \n# TYPE a untyped\n#  \tTYPE\t b\tcounter\n",
     "HELP a [ two \\ \n \\\" ]\nTYPE a unknown\nTYPE b counter\n"},
    {"# HELP a\n# HELP b   \n# HELP \"c d\" e\n", "HELP a []\nHELP b []\nHELP c d [e]\n"},
    {"# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"1e6\"} 1\nh_bucket{le=\"inf\"} 1\n"
     "h_bucket{le=\"x\"} 1\nx{quantile=\"1\"} 1\n",
     "TYPE h histogram\n{__name__=h_bucket,le=1.0} 1\n{__name__=h_bucket,le=1e+06} 1\n"
     "{__name__=h_bucket,le=+Inf} 1\n{__name__=h_bucket,le=x} 1\n{__name__=x,quantile=1} 1\n"},
    {"# TYPE s summary\ns{quantile=\"0\"} 1\ns{le=\"0\"} 1\n",
     "TYPE s summary\n{__name__=s,quantile=0.0} 1\n{__name__=s,le=0} 1\n"},
};

static void test_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(text_pages); i++)
        assert_page(PROM_TEXT, text_pages[i].page, text_pages[i].entries);
}

static const struct good openmetrics_pages[] = {
    {"", ""},
    {"# EOF", ""},
    {"# EOF\n", ""},
    {"a 1\n# EOF\n", "{__name__=a} 1\n"},
    {"a{} 1 1.5\n# EOF\n", "{__name__=a} 1 @1500\n"},
    {"a{x=\"1\",} 1 -1.0009\n# EOF\n", "{__name__=a,x=1} 1 @-1000\n"},
    {"# TYPE r counter\n# UNIT r_s s\n# UNIT r \n# HELP r q\\\"q \n# EOF\n",
     "TYPE r counter\nUNIT r_s [s]\nUNIT r []\nHELP r [q\"q ]\n"},
    {"# TYPE a gaugehistogram\n# TYPE b info\n# TYPE c stateset\n# TYPE d unknown\n# EOF\n",
     "TYPE a gaugehistogram\nTYPE b info\nTYPE c stateset\nTYPE d unknown\n"},
    {"a_total 1 # {trace_id=\"x\",b=\"\\\"\"} 2 3.25\na_total 1 2 # {} 1\n# EOF\n",
     "{__name__=a_total} 1 # {b=\",trace_id=x} 2 @3250\n{__name__=a_total} 1 @2000 # {} 1\n"},
    {"{\"u.n\",\"k.e\"=\"v\"} 1 # {\"url.scheme\"=\"abc\"} 1\n# EOF\n",
     "{__name__=u.n,k.e=v} 1 # {url.scheme=abc} 1\n"},
};

static void test_openmetrics(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(openmetrics_pages); i++)
        assert_page(PROM_OPENMETRICS, openmetrics_pages[i].page, openmetrics_pages[i].entries);
}

struct bad {
    const char *page;
    int line, column;
    const char *text; /* part of the error */
};

static void assert_bad(enum prom_format format, const struct bad *b)
{
    struct prom_parser *p = prom_parser_new(format, bytes_str(b->page));
    struct prom_entry e;
    struct err err = {0};
    int r;
    while ((r = prom_parser_next(p, &e, &err)) > 0)
        continue;
    if (r != -EINVAL || err.line != b->line || err.column != b->column ||
        !strstr(err.text, b->text))
        fail_msg("%s: %d, %d:%d %s", b->page, r, err.line, err.column, err.text);
    assert_int_equal(prom_parser_next(p, &e, &err), 0); /* it is over */
    prom_parser_free(p);
}

static void test_bad_text(void **state)
{
    static const struct bad pages[] = {
        {"ok 1\n1a 1\n", 2, 1,
         "expected a metric's name, a comment or an empty line, got \"1a 1\""},
        {"a\n", 1, 2, "expected a value, got the end of the line"},
        {"a", 1, 2, "expected a value, got the end of the page"},
        {"a x\n", 1, 3, "expected a value, got \"x\""},
        {"a 0x10\n", 1, 3, "expected a value"},
        {"a 0x1p3\n", 1, 3, "expected a value"},
        {"a 1_0\n", 1, 3, "expected a value"},
        {"a 1e309\n", 1, 3, "expected a value"},
        {"a -NaN\n", 1, 3, "expected a value"},
        {"a 1 2 3\n", 1, 7, "expected a time in milliseconds or the end of the line, got \"3\""},
        {"a 1 -2\n", 1, 5, "end of the line"},
        {"a 1 99999999999999999999\n", 1, 5, "64 bits"},
        {"a 1 # {x=\"y\"} 1\n", 1, 5, "end of the line"},
        {"a{x=\"1\" 3\n", 1, 9, "expected a label name or \"}\", got \"3\""},
        {"a{,} 1\n", 1, 3, "expected a label name"},
        {"a{x=\"1\",,} 1\n", 1, 9, "expected a label name"},
        {"a{x} 1\n", 1, 4, "expected \"=\" behind the label name, got \"} 1\""},
        {"a{x=1} 1\n", 1, 5, "expected a label value in quotes"},
        {"a{x=\"1} 1\n", 1, 5, "closing quote"},
        {"a{x=\"1\\", 1, 5, "closing quote"},
        {"a{x=\"\xff\"} 1\n", 1, 5, "UTF-8"},
        {"a{\"\xff\"=\"1\"} 1\n", 1, 3, "UTF-8"},
        {"a{\"\"=\"1\"} 1\n", 1, 3, "at least one character"},
        {"{x=\"1\"} 1\n", 1, 1, "expected the metric's name in the braces"},
        {"a{\"b\"} 1\n", 1, 3, "has its name already"},
        {"{\"a\",\"b\"} 1\n", 1, 6, "has its name already"},
        {"# TYPE a info\n", 1, 10, "expected a metric type of this format, got \"info\""},
        {"# TYPE a\n", 1, 9, "expected a metric type"},
        {"# TYPE 1 gauge\n", 1, 8, "expected a metric's name"},
        {"# HELP \"a\n", 1, 8, "closing quote"},
        {"# HELP a \xff\n", 1, 10, "UTF-8"},
        {"a 1\rb 2\n", 1, 3, "expected a value"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++)
        assert_bad(PROM_TEXT, &pages[i]);
}

static void test_bad_openmetrics(void **state)
{
    static const struct bad pages[] = {
        {"a 1\n", 2, 1, "expected \"# EOF\" as the last line, got the end of the page"},
        {"a 1\n# EOF\nb", 3, 1, "expected nothing behind \"# EOF\", got \"b\""},
        {"# EOFx", 1, 6, "expected nothing"},
        {"a 1", 1, 4, "end of the line, got the end of the page"},
        {"a  1\n# EOF\n", 1, 3, "expected a value"},
        {"a 1 \n# EOF\n", 1, 5, "expected a time in seconds"},
        {"a 1 NaN\n# EOF\n", 1, 5, "expected a finite time"},
        {"a 1\r\n# EOF\n", 1, 3, "expected a value"},
        {"\na 1\n# EOF\n", 1, 1, "got the end of the line"},
        {"# hello\n# EOF\n", 1, 1, "HELP, UNIT or EOF, got \"# hello\""},
        {"a{x=\"1\", y=\"2\"} 1\n# EOF\n", 1, 9, "expected a label name"},
        {"a{x=\"1\"y=\"2\"} 1\n# EOF\n", 1, 8, "expected \",\" or \"}\""},
        {"a{x=\"1\"}1\n# EOF\n", 1, 9, "expected a space and a value"},
        {"a{x=\"1\n2\"} 1\n# EOF\n", 1, 5, "closing quote"},
        {"# TYPE a untyped\n# EOF\n", 1, 10, "expected a metric type of this format"},
        {"# TYPE a\n# EOF\n", 1, 9, "expected a space and a text"},
        {"# HELP a b", 1, 11, "expected a line end"},
        {"# UNIT a b\n# EOF\n", 1, 10, "the end of the metric's name"},
        {"# UNIT ab b\n# EOF\n", 1, 11, "the end of the metric's name"},
        {"a 1 # {\"x\"} 1\n# EOF\n", 1, 11, "expected \"=\" behind the label name"},
        {"a 1 # {x=\"1\"}\n# EOF\n", 1, 14, "expected a space and a value"},
        {"a 1 # {x=\"1\"} 1 2 3\n# EOF\n", 1, 18, "end of the line, got \" 3\""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++)
        assert_bad(PROM_OPENMETRICS, &pages[i]);
}

/* The same series has the same bytes in each scrape, whatever its value. */
static void test_raw(void **state)
{
    struct prom_parser *p =
        prom_parser_new(PROM_TEXT, bytes_str("a{x=\"1\"} 1\na{x=\"1\"}  2 3\na 1\n{\"b\"}1"));
    static const char *const raw[] = {"a{x=\"1\"}", "a{x=\"1\"}", "a", "{\"b\"}"};
    struct prom_entry e;
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(raw); i++) {
        assert_int_equal(prom_parser_next(p, &e, NULL), 1);
        assert_true(bytes_eq_str(e.raw, raw[i]));
    }
    assert_int_equal(prom_parser_next(p, &e, NULL), 0);
    prom_parser_free(p);
}

/* `count` labels in one sample. */
static int read_many(unsigned count, size_t *ret)
{
    struct buf *b = buf_new(0);
    struct prom_entry e;
    struct prom_labels labels = {0};
    buf_append_str(b, "a{");
    for (unsigned i = 0; i < count; i++)
        buf_printf(b, "l%06u=\"v\",", (i * 7919u) % count);
    buf_append_str(b, "} 1\n");
    struct prom_parser *p = prom_parser_new(PROM_TEXT, buf_bytes(b));
    int r = prom_parser_next(p, &e, NULL);
    if (r == 1)
        assert_int_equal(prom_parser_labels(p, &labels), 0);
    for (size_t i = 2; i < labels.n; i++)
        assert_true(memcmp(labels.items[i - 1].name.data, labels.items[i].name.data, 7) < 0);
    *ret = labels.n;
    prom_parser_free(p);
    buf_unref(b);
    return r;
}

static void test_many_labels(void **state)
{
    size_t n;
    const size_t before = mem_used();
    (void)state;
    assert_int_equal(read_many(25, &n), 1);
    assert_int_equal(n, 26);
    assert_int_equal(read_many(PROM_LABELS_MAX, &n), 1);
    assert_int_equal(n, PROM_LABELS_MAX + 1);
    assert_int_equal(read_many(PROM_LABELS_MAX + 1, &n), -EINVAL);
    assert_int_equal(mem_used(), before);
}

static void test_nan(void **state)
{
    struct prom_parser *p = prom_parser_new(PROM_TEXT, bytes_str("a nAn\n"));
    struct prom_entry e;
    uint64_t bits;
    (void)state;
    assert_int_equal(prom_parser_next(p, &e, NULL), 1);
    memcpy(&bits, &e.value, sizeof(bits));
    assert_true(bits == 0x7ff8000000000001);
    prom_parser_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),     cmocka_unit_test(test_openmetrics),
        cmocka_unit_test(test_bad_text), cmocka_unit_test(test_bad_openmetrics),
        cmocka_unit_test(test_raw),      cmocka_unit_test(test_many_labels),
        cmocka_unit_test(test_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
