/* The debug exporter's texts are those of the reference collector. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "exporters/debug/text.h"
#include "proto/json.h"

#define FOLDER TEST_DATA "/golden/debug"

/* FOLDER/NAME.EXT, or NULL. */
static struct buf *load(const char *name, const char *ext)
{
    char path[512];
    snprintf(path, sizeof(path), FOLDER "/%s.%s", name, ext);
    _cleanup_fclose_ FILE *f = fopen(path, "r");
    if (!f)
        return NULL;
    struct buf *b = buf_new(0);
    size_t n;
    do {
        assert_int_equal(buf_reserve(b, 65536), 0);
        n = fread(buf_tail(b), 1, 65536, f);
        buf_commit(b, n);
    } while (n > 0);
    return b;
}

static enum signal signal_of(const char *name)
{
    return strstr(name, "-traces") ? SIGNAL_TRACES
           : strstr(name, "-logs") ? SIGNAL_LOGS
                                   : SIGNAL_METRICS;
}

static struct batch *request(const char *name)
{
    enum signal s = signal_of(name);
    struct buf *wire = load(name, "pb");
    struct batch *b = NULL;
    struct err e = {0};
    if (!wire) {
        _cleanup_buf_ struct buf *text = load(name, "json");
        assert_non_null(text);
        wire = buf_new(0);
        assert_int_equal(json_read(schema_request(s), buf_bytes(text), wire, &e), 0);
    }
    assert_int_equal(batch_from_wire(s, wire, &b, &e), 0);
    return b;
}

static void assert_same(const char *name, struct buf *got, struct buf *want)
{
    size_t i = 0;
    while (i < got->len && i < want->len && got->data[i] == want->data[i])
        i++;
    size_t from = i < 60 ? 0 : i - 60;
    if (!bytes_eq(buf_bytes(got), buf_bytes(want)))
        fail_msg("%s at byte %zu:\n got %.160s\nwant %.160s", name, i, buf_str(got) + from,
                 buf_str(want) + from);
}

static void check(const char *name, const char *verbosity,
                  void (*make)(struct text *t, const struct batch *b))
{
    char ext[32];
    snprintf(ext, sizeof(ext), "%s.txt", verbosity);
    _cleanup_buf_ struct buf *want = load(name, ext);
    _cleanup_buf_ struct buf *got = buf_new(0);
    _cleanup_batch_ struct batch *b = request(name);
    struct text t = {.out = got};
    make(&t, b);
    assert_int_equal(t.error, 0);
    assert_same(name, got, want);
}

static void test_recorded(void **state)
{
    (void)state;
    int seen = 0;
    DIR *d = opendir(FOLDER);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char name[256];
        snprintf(name, sizeof(name), "%s", e->d_name);
        char *normal = strstr(name, ".normal.txt"), *detailed = strstr(name, ".detailed.txt");
        if (!normal && !detailed)
            continue;
        *(normal ? normal : detailed) = 0;
        check(name, normal ? "normal" : "detailed", normal ? normal_text : detailed_text);
        seen++;
    }
    closedir(d);
    assert_true(seen >= 18);
}

/* Numbers go on from segment to segment; a full buffer is an error, not a cut text. */
static void test_segments(void **state)
{
    (void)state;
    _cleanup_batch_ struct batch *one = request("odd-traces");
    _cleanup_batch_ struct batch *two = batch_new(
        SIGNAL_TRACES, (struct buf *[]){buf_ref(one->segs[0]), buf_ref(one->segs[0])}, 2, 10);
    _cleanup_buf_ struct buf *got = buf_new(0);
    struct text t = {.out = got};
    normal_text(&t, two);
    assert_non_null(strstr(buf_str(got), "\nResourceTraces #3\n"));
    _cleanup_buf_ struct buf *small = buf_new(100);
    t = (struct text){.out = small};
    detailed_text(&t, two);
    assert_int_equal(t.error, -EMSGSIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recorded),
                                       cmocka_unit_test(test_segments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
