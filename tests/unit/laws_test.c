/* The laws of tests/laws on real payloads and on thousands of mutations of them. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/laws/laws.h"

#define PAYLOADS TEST_DATA "/golden/otlp"
#define ORDERED TEST_DATA "/golden/wire_order"
#define MUTATIONS 600 /* of each payload */

struct payload {
    enum signal signal;
    struct buf *wire;
};
static struct payload payloads[64];
static size_t npayloads;

static struct buf *load(const char *path)
{
    _cleanup_fclose_ FILE *f = fopen(path, "rb");
    struct buf *b = buf_new(0);
    assert_non_null(f);
    while (buf_reserve(b, 4096) == 0) {
        size_t n = fread(buf_tail(b), 1, 4096, f);
        if (n == 0)
            break;
        buf_commit(b, n);
    }
    return b;
}

static int load_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return -1;
    for (struct dirent *e; (e = readdir(dir)) && npayloads < ARRAY_SIZE(payloads);) {
        char path[512];
        if (!strstr(e->d_name, ".pb"))
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        enum signal s = strstr(e->d_name, "traces") ? SIGNAL_TRACES
                        : strstr(e->d_name, "logs") ? SIGNAL_LOGS
                                                    : SIGNAL_METRICS;
        payloads[npayloads++] = (struct payload){s, load(path)};
    }
    closedir(dir);
    return 0;
}

/* As clients send them, and as the reference's exporters do. */
static int load_all(void **state)
{
    (void)state;
    return load_folder(PAYLOADS) < 0 || load_folder(ORDERED) < 0 || !npayloads ? -1 : 0;
}

static int free_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < npayloads; i++)
        buf_unref(payloads[i].wire);
    return 0;
}

static void test_payloads(void **state)
{
    (void)state;
    for (size_t i = 0; i < npayloads; i++) {
        assert_true(law_check(payloads[i].signal, buf_bytes(payloads[i].wire)));
        law_all(payloads[i].signal, buf_bytes(payloads[i].wire));
    }
}

/* Batches of several segments are split and rewritten like one. */
static void test_segments(void **state)
{
    (void)state;
    for (enum signal s = 0; s < SIGNAL_COUNT; s++) {
        struct buf *segs[64];
        unsigned n = 0;
        uint32_t records = 0;
        for (size_t i = 0; i < npayloads; i++) {
            struct batch *one;
            if (payloads[i].signal != s)
                continue;
            assert_int_equal(batch_from_wire(s, buf_ref(payloads[i].wire), &one, NULL), 0);
            records += one->records;
            segs[n++] = buf_ref(one->segs[0]);
            batch_unref(one);
        }
        struct batch *b = batch_new(s, segs, n, records);
        law_rewrite_nothing(b);
        law_rewrite_edits(b, 1);
        for (uint32_t max = 1; max <= records + 1; max++)
            law_split(b, max, 0);
        for (size_t max = 100; max < 2 * b->bytes; max += max / 3)
            law_split(b, 0, max);
        batch_unref(b);
    }
}

static uint32_t random_state = 1;

static uint32_t random_below(size_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return n ? (uint32_t)(random_state % n) : 0;
}

static void mutate(struct buf *b)
{
    static const uint8_t bytes[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0x08, 0x0a, 0x0b, 0x12, 0x1a};
    size_t at = random_below(b->len), n = 1 + random_below(random_below(8) ? 8 : 64);
    if (at + n > b->len)
        n = b->len - at;
    switch (random_below(5)) {
    case 0: b->data[at] ^= (uint8_t)(1u << random_below(8)); break;
    case 1: b->data[at] = bytes[random_below(sizeof(bytes))]; break;
    case 2: memmove(b->data + at, b->data + at + n, b->len - at - n), buf_truncate(b, b->len - n); break;
    case 3: /* the same bytes once more */
        assert_int_equal(buf_insert_gap(b, at, n), 0);
        memmove(b->data + at, b->data + at + n, n);
        break;
    default: memmove(b->data + at, b->data + random_below(b->len - n + 1), n);
    }
}

static void test_mutations(void **state)
{
    (void)state;
    unsigned valid = 0;
    for (size_t i = 0; i < npayloads; i++) {
        for (unsigned k = 0; k < MUTATIONS; k++) {
            _cleanup_buf_ struct buf *b = law_copy(buf_bytes(payloads[i].wire));
            for (unsigned times = 1 + random_below(3); times > 0 && b->len; times--)
                mutate(b);
            buf_shrink(b);
            bool ok = law_check(payloads[i].signal, buf_bytes(b));
            valid += ok;
            if (ok && k % 16 == 0)
                law_all(payloads[i].signal, buf_bytes(b));
        }
    }
    assert_true(valid > 100); /* mutations are not all nonsense */
    assert_true(valid < npayloads * MUTATIONS);
}

/* A field of a random message is doubled with the lengths around it put right, so that the result is valid. */
static void double_field(struct bytes in, unsigned depth, struct buf *out)
{
    struct wire_reader r = wire_reader(in), count = r;
    struct wire_field f;
    unsigned n = 0, i = 0;
    while (wire_next(&count, &f) > 0)
        n++;
    unsigned chosen = random_below(n);
    for (; wire_next(&r, &f) > 0; i++) {
        if (i == chosen && depth > 0 && f.type == WIRE_LEN && f.bytes.len > 2) {
            size_t mark;
            assert_int_equal(wire_begin(out, f.number, &mark), 0);
            double_field(f.bytes, depth - 1, out);
            assert_int_equal(wire_end(out, mark), 0);
            continue;
        }
        for (int times = i == chosen ? 2 : 1; times > 0; times--)
            assert_int_equal(buf_append(out, f.whole.data, f.whole.len), 0);
    }
}

static void test_doubled_fields(void **state)
{
    (void)state;
    unsigned odd = 0;
    for (size_t i = 0; i < npayloads; i++) {
        for (unsigned k = 0; k < MUTATIONS; k++) {
            _cleanup_buf_ struct buf *b = buf_new(0);
            double_field(buf_bytes(payloads[i].wire), k % 9, b);
            struct batch *batch;
            if (!law_check(payloads[i].signal, buf_bytes(b)))
                continue; /* text looks like fields, too */
            if (k % 16 == 0)
                law_all(payloads[i].signal, buf_bytes(b));
            assert_int_equal(batch_from_wire(payloads[i].signal, buf_ref(b), &batch, NULL), 0);
            odd += batch->segs[0] != b;
            batch_unref(batch);
        }
    }
    assert_true(odd > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_payloads),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_doubled_fields),
    };
    return cmocka_run_group_tests(tests, load_all, free_all);
}
