/* Splitting by hand: what comes out byte for byte. The general laws: laws_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/rewrite.h"
#include "tests/unit/wire_text.h"

#define MAX_PIECES 5

static const struct {
    const char *what;
    enum signal signal;
    const char *in;
    uint32_t max_records;
    size_t max_bytes;
    const char *pieces[MAX_PIECES];
} cases[] = {
    {"headers are repeated", SIGNAL_TRACES,
     "0a{0a{1001}12{0a{0a{'s'}}12{2a{'a'}}12{2a{'b'}}12{2a{'c'}}1a{'u'}}1a{'v'}}", 2, 0,
     {"0a{0a{1001}1a{'v'}12{0a{0a{'s'}}1a{'u'}12{2a{'a'}}12{2a{'b'}}}}",
      "0a{0a{1001}1a{'v'}12{0a{0a{'s'}}1a{'u'}12{2a{'c'}}}}"}},
    {"whole scopes stay as they are", SIGNAL_LOGS, "0a{12{0a{}12{}1a{'u'}}12{0a{}12{}12{}1a{'u'}}}", 1, 0,
     {"0a{12{0a{}12{}1a{'u'}}}", "0a{12{0a{}1a{'u'}12{}}}", "0a{12{0a{}1a{'u'}12{}}}"}},
    {"cut between scopes", SIGNAL_LOGS, "0a{0a{1001}12{0a{}12{}}12{1a{'u'}12{}}}", 1, 0,
     {"0a{0a{1001}12{0a{}12{}}}", "0a{0a{1001}12{1a{'u'}12{}}}"}},
    {"cut between resources", SIGNAL_LOGS, "0a{0a{1001}12{12{}}}0a{0a{1002}12{12{}}}", 1, 0,
     {"0a{0a{1001}12{12{}}}", "0a{0a{1002}12{12{}}}"}},
    {"entries without records go along", SIGNAL_LOGS, "0a{}0a{12{12{}}}0a{12{}}0a{12{12{}12{}}}", 2, 0,
     {"0a{}0a{12{12{}}}0a{12{}}0a{12{12{}}}", "0a{12{12{}}}"}},
    {"no limit, no cut", SIGNAL_METRICS,
     "0a{12{12{0a{'m'}3a{0a{4001}0a{4002}0a{4003}1002 1801}1a{'By'}}}}", 0, 0, {NULL}},
    {"points of a sum by 2", SIGNAL_METRICS,
     "0a{12{12{0a{'m'}3a{0a{4001}0a{4002}0a{4003}1002 1801}1a{'By'}}12{0a{'g'}2a{0a{4004}}}}}", 2, 0,
     {"0a{12{12{0a{'m'}1a{'By'}3a{1002 1801 0a{4001}0a{4002}}}}}",
      "0a{12{12{0a{'m'}1a{'By'}3a{1002 1801 0a{4003}}}12{0a{'g'}2a{0a{4004}}}}}"}},
    {"metric without points", SIGNAL_METRICS, "0a{12{12{0a{'e'}}12{0a{'m'}4a{0a{}0a{}}}12{0a{'f'}4a{}}}}", 1, 0,
     {"0a{12{12{0a{'e'}}12{0a{'m'}4a{0a{}}}}}", "0a{12{12{0a{'m'}4a{0a{}}}12{0a{'f'}4a{}}}}"}},
    {"by bytes: the big one alone", SIGNAL_LOGS,
     "0a{12{12{1a{'a'}}12{1a{'a text that is longer than what a piece may hold, however it is cut'}}12{1a{'c'}}}}", 0, 50,
     {"0a{12{12{1a{'a'}}}}", "0a{12{12{1a{'a text that is longer than what a piece may hold, however it is cut'}}}}",
      "0a{12{12{1a{'c'}}}}"}},
};

static void assert_pieces(size_t i, struct batch *const *pieces, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        struct buf *flat = batch_flatten(pieces[k]);
        assert_true(k < MAX_PIECES && cases[i].pieces[k]);
        assert_wire(flat, cases[i].pieces[k]);
        buf_unref(flat);
    }
    assert_null(n < MAX_PIECES ? cases[i].pieces[n] : NULL);
}

static struct batch *batch_of(enum signal s, const char *text)
{
    struct batch *b;
    struct err err = {0};
    if (batch_from_wire(s, wire_text(text), &b, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return b;
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct batch *in = batch_of(cases[i].signal, cases[i].in), **pieces;
        size_t n;
        assert_int_equal(otlp_split_all(in, cases[i].max_records, cases[i].max_bytes, &pieces, &n), 0);
        if (cases[i].pieces[0])
            assert_pieces(i, pieces, n);
        else
            assert_ptr_equal(pieces[0], in);
        for (size_t k = 0; k < n; k++)
            batch_unref(pieces[k]);
        free(pieces);
        batch_unref(in);
    }
}

/* Ten, ten and five of 25 records in three resources; segments that need no cut are shared. */
static void test_head_and_tail(void **state)
{
    (void)state;
    struct buf *segs[5];
    for (int i = 0; i < 5; i++)
        segs[i] = wire_text("0a{0a{1001}12{12{2a{'a'}}12{}12{}12{}12{2a{'e'}}}}");
    struct batch *in = batch_new(SIGNAL_TRACES, segs, 5, 25), *head, *tail;
    for (uint32_t expected = 25; expected > 0; in = tail) {
        assert_int_equal(in->records, expected);
        assert_int_equal(otlp_split(in, 10, &head, &tail), 0);
        assert_int_equal(head->records, expected < 10 ? expected : 10);
        assert_ptr_equal(head->segs[0], in->segs[0]);
        expected -= head->records;
        batch_unref(head);
        batch_unref(in);
        if (!tail)
            assert_int_equal(expected, 0);
    }
    assert_null(in);
}

static void test_cut_inside_a_segment(void **state)
{
    (void)state;
    struct buf *segs[] = {wire_text("0a{12{12{}}}"), wire_text("0a{0a{1001}12{12{2a{'b'}}12{}}}"), wire_text("0a{12{12{}}}")};
    struct batch *in = batch_new(SIGNAL_TRACES, segs, 3, 4), *head, *tail;
    assert_int_equal(otlp_split(in, 2, &head, &tail), 0);
    assert_int_equal(head->nsegs, 2);
    assert_ptr_equal(head->segs[0], segs[0]);
    assert_wire(head->segs[1], "0a{0a{1001}12{12{2a{'b'}}}}");
    assert_int_equal(tail->nsegs, 2);
    assert_wire(tail->segs[0], "0a{0a{1001}12{12{}}}");
    assert_ptr_equal(tail->segs[1], segs[2]);
    batch_unref(head);
    batch_unref(tail);
    batch_unref(in);
}

/* Many small pieces take time in proportion to the input. */
static void test_many_pieces(void **state)
{
    (void)state;
    enum { RECORDS = 100000 };
    _cleanup_buf_ struct buf *scope = buf_new(0), *entry = buf_new(0);
    struct buf *wire = buf_new(0);
    for (int i = 0; i < RECORDS; i++)
        assert_int_equal(wire_put_str(scope, 2, "\x2a\x01x"), 0);
    assert_int_equal(wire_put_bytes(entry, 2, buf_bytes(scope)), 0);
    assert_int_equal(wire_put_bytes(wire, 1, buf_bytes(entry)), 0);
    struct batch *in = batch_new(SIGNAL_TRACES, &wire, 1, RECORDS), **pieces;
    size_t n;
    assert_int_equal(otlp_split_all(in, 3, 0, &pieces, &n), 0);
    assert_int_equal(n, RECORDS / 3 + 1);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(pieces[i]->records, i + 1 < n ? 3 : RECORDS % 3);
        batch_unref(pieces[i]);
    }
    free(pieces);
    batch_unref(in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_head_and_tail),
        cmocka_unit_test(test_cut_inside_a_segment),
        cmocka_unit_test(test_many_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
