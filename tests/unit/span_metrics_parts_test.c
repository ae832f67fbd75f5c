/* The parts of the span_metrics connector: exponential histograms, tracestate, globs, tables,
 * spans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>

#include "tsv.h"

#include "connectors/span_metrics/exponential.h"
#include "connectors/span_metrics/glob.h"
#include "connectors/span_metrics/series.h"
#include "connectors/span_metrics/span.h"
#include "connectors/span_metrics/stamps.h"
#include "connectors/span_metrics/tracestate.h"
#include "proto/otlp_fields.h"

#define GOLDEN TEST_DATA "/golden/spanmetrics/"

/* ---- golden files: fields separated by tabs ---- */

static unsigned each_line(const char *path, void (*line)(char **fields))
{
    _cleanup_fclose_ FILE *f = fopen(path, "r");
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    unsigned n = 0;
    assert_non_null(f);
    for (; getline(&text, &size, f) > 0; n++) {
        char *fields[TSV_COLUMNS] = {0};
        tsv_split(text, fields);
        line(fields);
    }
    return n;
}

/* ---- exponential histograms ---- */

static void add_values(struct exponential *e, char *values)
{
    for (char *v; (v = strsep(&values, " "));) {
        char *times;
        const double value = strtod(v, &times);
        exponential_add(e, value, strtoull(times + 1, NULL, 10));
    }
}

static void assert_counts(const struct exponential *e, char *counts)
{
    uint32_t i = 0;
    for (char *c; *counts && (c = strsep(&counts, " ")); i++) {
        assert_true(i < e->n);
        assert_int_equal(e->counts[i], strtoull(c, NULL, 10));
        if (!counts)
            counts = c + strlen(c);
    }
    assert_int_equal(i, e->n);
}

static void check_exponential(char **f)
{
    struct exponential *e = exponential_new(atoll(f[0]));
    add_values(e, f[1]);
    assert_int_equal(e->n ? e->scale : 0, atoi(f[2]));
    assert_int_equal(e->n ? e->first : 0, atoi(f[3]));
    assert_int_equal(e->zeros, strtoull(f[4], NULL, 10));
    assert_true(e->lowest == strtod(f[5], NULL));
    assert_true(e->highest == strtod(f[6], NULL));
    assert_counts(e, f[7]);
    exponential_free(e);
}

static void test_exponential(void **state)
{
    (void)state;
    const size_t before = mem_used();
    assert_true(each_line(GOLDEN "exponential.txt", check_exponential) > 100);
    assert_int_equal(mem_used(), before);
}

/* A bucket holds what is above its lower bound and up to its upper one. */
static void test_exponential_index(void **state)
{
    static const struct {
        int32_t scale;
        double value;
        int32_t index;
    } t[] = {{0, 1, -1},
             {0, 1.0001, 0},
             {0, 2, 0},
             {0, 2.1, 1},
             {1, 1, -1},
             {1, 1.4, 0},
             {1, 1.42, 1},
             {1, 2, 1},
             {1, 4, 3},
             {-1, 1, -1},
             {-1, 4, 0},
             {-1, 4.1, 1},
             {-1, 0.25, -2},
             {-1, 0.26, -1},
             {20, 1, -1},
             {20, 2, (1 << 20) - 1},
             {0, 0x1p-1074, -1023},
             {3, 0x1p-1074, -1022 * 8 - 1},
             {20, 1.7976931348623157e308, (1 << 30) - 1},
             {0, 1.7976931348623157e308, 1023},
             {-10, 1e300, 0},
             {-10, 1e-300, -1}};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(t); i++)
        assert_int_equal(exponential_index(t[i].scale, t[i].value), t[i].index);
}

/* ---- tracestate ---- */

static void check_tracestate(char **f)
{
    uint64_t got = 0;
    tsv_unescape(f[0]);
    const bool found = tracestate_threshold(bytes_str(f[0]), &got);
    if (found != (f[1][0] != '-') || (found && got != strtoull(f[1], NULL, 10)))
        fail_msg("%s: %d %llu, want %s", f[0], found, (unsigned long long)got, f[1]);
}

static void test_tracestate(void **state)
{
    (void)state;
    uint64_t threshold;
    assert_true(each_line(GOLDEN "tracestate.txt", check_tracestate) > 60);
    assert_false(tracestate_threshold(bytes_str(""), &threshold));
}

static void test_adjusted_count(void **state)
{
    (void)state;
    uint64_t rng = 1, sum = 0;
    assert_int_equal(tracestate_adjusted_count(0, &rng), 1);
    assert_int_equal(tracestate_adjusted_count(1ull << 55, &rng), 2);
    assert_int_equal(tracestate_adjusted_count((1ull << 56) - 1, &rng), 1ull << 56);
    for (int i = 0; i < 30000; i++) { /* 1.5, half of the time each */
        const uint64_t n = tracestate_adjusted_count((1ull << 56) / 3, &rng);
        assert_true(n == 1 || n == 2);
        sum += n;
    }
    assert_in_range(sum, 44000, 46000);
}

/* ---- globs ---- */

static void check_glob(char **f)
{
    _cleanup_(regex_freep) struct regex *glob = NULL;
    struct err e;
    const int r = glob_compile(f[0], &glob, &e);
    if (f[2][0] == '!') {
        /* A few that the reference collector refuses have an obvious meaning and are taken. */
        assert_true(r == 0 || r == -EINVAL);
        return;
    }
    assert_int_equal(r, 0);
    if (regex_match(glob, bytes_str(f[1])) != (f[2][0] == '1'))
        fail_msg("glob \"%s\" and \"%s\": want %s", f[0], f[1], f[2]);
}

static void test_globs(void **state)
{
    static const char *const bad[] = {"[ab", "[]", "[a-", "[!]", "[b-a]"};
    (void)state;
    assert_true(each_line(GOLDEN "glob.txt", check_glob) > 2000);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct regex *glob = NULL;
        struct err e;
        assert_int_equal(glob_compile(bad[i], &glob, &e), -EINVAL);
    }
}

/* ---- tables ---- */

/* Against a plain list: every hash from a small range, so that they collide and wrap. */
static void test_table(void **state)
{
    (void)state;
    struct sm_table t = {0};
    static char things[64];
    bool there[64] = {0};
    const size_t before = mem_used();
    uint32_t random = 1;
    for (int round = 0; round < 20000; round++) {
        random = random * 1664525 + 1013904223;
        const size_t i = random >> 26, hash = i % 7;
        if (there[i]) {
            sm_table_remove(&t, hash, &things[i]);
        } else {
            assert_int_equal(sm_table_reserve(&t), 0);
            sm_table_put(&t, hash, &things[i]);
        }
        there[i] = !there[i];
        for (size_t k = 0; k < 64; k++) {
            bool found = false;
            for (size_t at = sm_table_first(&t, k % 7); t.slots[at].item;
                 at = sm_table_next(&t, at))
                found |= t.slots[at].item == &things[k];
            assert_int_equal(found, there[k]);
        }
    }
    sm_table_done(&t);
    assert_int_equal(mem_used(), before);
}

static void test_stamps(void **state)
{
    (void)state;
    struct stamps s = {.max = 2};
    assert_int_equal(stamps_get(&s, 1, 1), 0);
    stamps_set(&s, 1, 1, 10);
    stamps_set(&s, 1, 2, 20);
    assert_int_equal(stamps_get(&s, 1, 1), 10); /* the newest now */
    stamps_set(&s, 2, 1, 30);
    assert_int_equal(stamps_get(&s, 1, 2), 0);
    assert_int_equal(stamps_get(&s, 1, 1), 10);
    stamps_set(&s, 1, 1, 40);
    assert_int_equal(stamps_get(&s, 1, 1), 40);
    assert_int_equal(stamps_get(&s, 2, 1), 30);
    stamps_done(&s);
}

/* ---- spans ---- */

/* Long names and values, far fields, unknown ones, any order: the quick way and the long one see
 * the same. */
static void test_span_read(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *b = buf_new(0), *name = buf_new(0);
    struct attributes attributes = {0};
    struct span s;
    size_t mark;
    for (int i = 0; i < 300; i++)
        buf_putc(name, 'n');
    wire_put_fixed32(b, SPAN_FLAGS, 7);
    wire_begin(b, SPAN_STATUS, &mark);
    wire_put_str(b, STATUS_MESSAGE, "m");
    wire_put_uint(b, STATUS_CODE, 2);
    wire_end(b, mark);
    wire_put_fixed64(b, SPAN_END, 5);
    wire_put_uint(b, 1000, 1);
    wire_put_bytes(b, SPAN_NAME, buf_bytes(name));
    wire_put_uint(b, SPAN_KIND, (uint64_t)-1);
    wire_begin(b, SPAN_ATTRIBUTES, &mark);
    wire_put_bytes(b, 2, bytes_str(""));
    wire_put_bytes(b, 1, buf_bytes(name));
    wire_end(b, mark);
    wire_put_bytes(b, SPAN_ATTRIBUTES, bytes_str(""));
    wire_put_fixed64(b, SPAN_START, 0x0123456789abcdef);
    assert_int_equal(span_read(buf_bytes(b), UINT64_MAX, &s, &attributes), 0);
    assert_int_equal(s.status, 2);
    assert_int_equal(s.end_ns, 5);
    assert_int_equal(s.start_ns, 0x0123456789abcdef);
    assert_int_equal(s.kind, SPAN_KIND_LAST + 1);
    assert_true(bytes_eq(s.name, buf_bytes(name)));
    assert_int_equal(attributes.n, 2);
    assert_true(bytes_eq(attributes.items[0].key, buf_bytes(name)));
    assert_non_null(attributes.items[1].value.data);
    attributes_done(&attributes);
}

/* Only names of the lengths that are asked for are read, wherever they stand. */
static void test_span_read_lengths(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 2, 63, 64, 65, 66, 100, 127, 128, 129, 130, 200};
    _cleanup_buf_ struct buf *b = buf_new(0), *name = buf_new(0);
    struct span s;
    for (int i = 0; i < 200; i++)
        buf_putc(name, 'n');
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        size_t kv;
        if (i % 5 == 4)
            wire_put_uint(b, SPAN_KIND, 1);
        wire_begin(b, SPAN_ATTRIBUTES, &kv);
        wire_put_bytes(b, 1, bytes_of(name->data, lengths[i]));
        wire_put_bytes(b, 2, bytes_str("\x10\x01"));
        wire_end(b, kv);
    }
    for (unsigned bit = 0; bit < 64; bit++) {
        struct attributes attributes = {0};
        size_t wanted = 0, found = 0;
        assert_int_equal(span_read(buf_bytes(b), 1ull << bit, &s, &attributes), 0);
        for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
            wanted += lengths[i] % 64 == bit;
        for (size_t i = 0; i < attributes.n; i++)
            found += attributes.items[i].key.len % 64 == bit;
        assert_int_equal(found, wanted);
        assert_true(attributes.n <= wanted + 4); /* of 128 bytes and more all are read */
        attributes_done(&attributes);
    }
    struct attributes none = {0};
    assert_int_equal(span_read(buf_bytes(b), 0, &s, &none), 0);
    assert_int_equal(none.n, 0);
}

static void test_sort(void **state)
{
    (void)state;
    struct attributes a = {0};
    static const char text[] = "bab\0aaba", want[] = "\0aaaabbb";
    for (size_t i = 0; i < 8; i++)
        attributes_add(&a, bytes_of(text + i, 1), bytes_str(""));
    attributes_add(&a, bytes_of(text, 0), bytes_str(""));
    attributes_add(&a, bytes_of(text, 2), bytes_str(""));
    attributes_sort(&a, 0);
    assert_int_equal(a.items[0].key.len, 0);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(a.items[i + 1].key.data[0], want[i]);
    for (size_t i = 2; i < 5; i++) /* equal ones keep their order */
        assert_true(a.items[i].key.data < a.items[i + 1].key.data);
    assert_int_equal(a.items[9].key.len, 2);
    attributes_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exponential),
        cmocka_unit_test(test_exponential_index),
        cmocka_unit_test(test_tracestate),
        cmocka_unit_test(test_adjusted_count),
        cmocka_unit_test(test_globs),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_stamps),
        cmocka_unit_test(test_span_read),
        cmocka_unit_test(test_span_read_lengths),
        cmocka_unit_test(test_sort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
