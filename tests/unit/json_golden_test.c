/* Every recorded request becomes, byte for byte, the line that the reference collector wrote. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/json.h"

#define FOLDER TEST_DATA "/golden/otlp-file"

/* The whole of FOLDER/NAME.EXT, or NULL. */
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

static void assert_same(const char *name, struct buf *got, struct buf *want)
{
    size_t i = 0;
    if (bytes_eq(buf_bytes(got), buf_bytes(want)))
        return;
    while (i < got->len && i < want->len && got->data[i] == want->data[i])
        i++;
    size_t from = i < 100 ? 0 : i - 100;
    fail_msg("%s at byte %zu:\n got %.160s\nwant %.160s", name, i, buf_str(got) + from,
             buf_str(want) + from);
}

static int write_line(enum signal s, struct buf *wire, struct buf *out)
{
    _cleanup_batch_ struct batch *b = batch_new(s, (struct buf *[]){buf_ref(wire)}, 1, 0);
    int r = json_write_batch(b, 0, out);
    return r < 0 ? r : buf_putc(out, '\n');
}

static void check_protobuf(const char *name, struct buf *wire, struct buf *want)
{
    _cleanup_buf_ struct buf *got = buf_new(0);
    assert_int_equal(write_line(signal_of(name), wire, got), 0);
    assert_same(name, got, want);
    /* What was written reads back to the same. */
    _cleanup_buf_ struct buf *again = buf_new(0);
    buf_truncate(got, 0);
    assert_int_equal(json_read(schema_request(signal_of(name)), buf_bytes(want), again, NULL), 0);
    assert_int_equal(write_line(signal_of(name), again, got), 0);
    assert_same(name, got, want);
}

static void check_json(const char *name, struct buf *text, struct buf *want)
{
    _cleanup_buf_ struct buf *wire = buf_new(0);
    _cleanup_buf_ struct buf *got = buf_new(0);
    struct err e = {0};
    int r = json_read(schema_request(signal_of(name)), buf_bytes(text), wire, &e);
    if (want->len == 0) {
        assert_true(r < 0);
        return;
    }
    if (r < 0)
        fail_msg("%s: %s", name, e.text);
    assert_int_equal(write_line(signal_of(name), wire, got), 0);
    assert_same(name, got, want);
}

static void test_recorded(void **state)
{
    (void)state;
    DIR *d = opendir(FOLDER);
    int seen = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char name[256];
        snprintf(name, sizeof(name), "%s", e->d_name);
        char *dot = name + strlen(name) - strlen(".jsonl");
        if (strlen(e->d_name) < sizeof(".jsonl") || strcmp(dot, ".jsonl") != 0)
            continue;
        *dot = 0;
        _cleanup_buf_ struct buf *want = load(name, "jsonl");
        _cleanup_buf_ struct buf *wire = load(name, "pb");
        _cleanup_buf_ struct buf *text = load(name, "json");
        assert_true(wire || text);
        if (wire)
            check_protobuf(name, wire, want);
        else
            check_json(name, text, want);
        seen++;
    }
    closedir(d);
    assert_true(seen > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
