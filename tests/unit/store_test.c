/* The queue on disk: what was put is there, in order, also after a restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/store_rig.h"

static const size_t sizes[] = {0,     1,     100,   1900,   2100,       4080,          16328,
                               16344, 16345, 20000, 100000, 5u * 16368, 5u * 16368 + 1};

static void test_put_get_delete(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    struct store *st = rig_open(&r);
    struct err e;
    assert_int_equal(rig_list(st)->n, 0);
    assert_int_equal(store_next_id(st), 1);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        assert_int_equal(put_next(st, sizes[i]), i + 1);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
            assert_stored(st, i + 1, sizes[i]);
        assert_int_equal(try_read(st, 99, &e), -ENOENT);
        rig_reopen(&r);
        st = r.store;
    }
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i += 2)
        assert_int_equal(delete_one(st, i + 1), 0);
    assert_int_equal(delete_one(st, 1), 0); /* not there: no error */
    rig_reopen(&r);
    st = r.store;
    const struct list *l = rig_list(st);
    assert_int_equal(l->n, ARRAY_SIZE(sizes) / 2);
    size_t live = 0;
    for (size_t i = 0; i < l->n; i++) {
        struct batch *b = batch_of(0, sizes[2 * i + 1]);
        assert_int_equal(l->items[i].id, 2 * i + 2);
        assert_int_equal(l->items[i].records, 1);
        assert_int_equal(l->items[i].bytes, b->bytes);
        live += b->bytes;
        batch_unref(b);
        assert_stored(st, 2 * i + 2, sizes[2 * i + 1]);
    }
    assert_int_equal(store_live_bytes(st), live);
    assert_int_equal(try_read(st, 1, &e), -ENOENT);
    rig_done(&r);
}

static void test_segments_and_signals(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    struct store *st = rig_open(&r);
    struct batch *one = batch_of(1, 30000), *two = batch_of(2, 17), *three = batch_of(3, 40000),
                 *got;
    struct buf *segs[] = {buf_ref(one->segs[0]), buf_ref(two->segs[0]), buf_ref(three->segs[0])};
    struct batch *all = batch_new(SIGNAL_LOGS, segs, 3, 3);
    struct err e;
    assert_int_equal(put_batch(st, 1, all, &e), 0);
    if (store_read(st, 1, &got, &e) < 0)
        fail_msg("%s", e.text);
    assert_true(same_batch(all, got));
    batch_unref(got);
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        struct batch *none = batch_new((enum signal)s, NULL, 0, 0);
        assert_int_equal(put_batch(st, 2 + (uint64_t)s, none, &e), 0);
        assert_int_equal(store_read(st, 2 + (uint64_t)s, &got, &e), 0);
        assert_int_equal(got->signal, s);
        assert_int_equal(got->records, 0);
        batch_unref(got);
        batch_unref(none);
    }
    batch_unref(one);
    batch_unref(two);
    batch_unref(three);
    batch_unref(all);
    rig_done(&r);
}

/* All or nothing, ids that rise, and one transaction for many. */
static void test_group(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    struct store *st = rig_open(&r);
    struct batch *b = batch_of(1, 10), *c = batch_of(2, 10);
    const struct store_put good[] = {{5, b}, {9, c}}, bad[] = {{10, b}, {10, c}}, low[] = {{9, b}};
    const uint64_t five = 5;
    struct err e;
    assert_int_equal(store_write(st, good, 2, NULL, 0, &e), 0);
    assert_int_equal(store_next_id(st), 10);
    assert_int_equal(store_write(st, bad, 2, &five, 1, &e), -EEXIST);
    assert_int_equal(store_write(st, low, 1, &five, 1, &e), -EEXIST);
    assert_int_equal(rig_list(st)->n, 2);
    assert_int_equal(store_next_id(st), 10);
    const struct store_put next = {10, c};
    assert_int_equal(store_write(st, &next, 1, &five, 1, &e), 0);
    const struct list *l = rig_list(st);
    assert_int_equal(l->n, 2);
    assert_int_equal(l->items[0].id, 9);
    assert_int_equal(l->items[1].id, 10);
    assert_int_equal(store_write(st, NULL, 0, NULL, 0, &e), 0);
    struct batch *large = batch_of(3, 50000);
    const struct store_put late = {7, large}; /* by somebody who had the id for a while */
    assert_int_equal(store_write(st, &late, 1, NULL, 0, &e), 0);
    assert_int_equal(store_next_id(st), 11);
    assert_int_equal(rig_list(st)->items[0].id, 7);
    rig_reopen(&r);
    assert_int_equal(try_read(r.store, 7, &e), 0);
    assert_int_equal(rig_list(r.store)->n, 3);
    batch_unref(large);
    batch_unref(b);
    batch_unref(c);
    rig_done(&r);
}

/* Two users of one process share it, as at a reload; the newer settings count. */
static void test_shared(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    struct store *first = rig_open(&r), *second;
    struct err e;
    r.settings.fsync = true;
    assert_int_equal(store_open(r.host, &r.settings, "exporter_x_traces", &second, &e), 0);
    assert_ptr_equal(first, second);
    put_next(second, 10);
    store_close(first);
    put_next(second, 10);
    assert_int_equal(rig_list(second)->n, 2);
    rig_done(&r);
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *name, *file;
    } cases[] = {
        {"exporter_otlp_http__traces", "exporter_otlp_http__traces.mdb"},
        {"exporter_otlp_http_a/b~c d_logs", "exporter_otlp_http_a~002Fb~007Ec~0020d_logs.mdb"},
        {"../../x", "..~002F..~002Fx.mdb"},
        {"é€😀", "~00E9~20AC~1F600.mdb"},
        {"\xff\xc3", "~00FF~00C3.mdb"},
    };
    struct rig r;
    struct store *st;
    struct err e;
    rig_init(&r);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(store_open(r.host, &r.settings, cases[i].name, &st, &e), 0);
        assert_string_equal(strrchr(store_path(st), '/') + 1, cases[i].file);
        store_close(st);
    }
    char name[600];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(store_open(r.host, &r.settings, name, &st, &e), 0);
    assert_int_equal(strlen(strrchr(store_path(st), '/') + 1), 64 + 4);
    store_close(st);
    static const char *const names[][2] = {
        {"otlp_http/backend", "exporter_otlp_http_backend_traces"},
        {"otlp_http", "exporter_otlp_http__traces"}};
    for (size_t i = 0; i < 2; i++) {
        char *n = store_name("exporter", names[i][0], "traces");
        assert_string_equal(n, names[i][1]);
        free(n);
    }
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_get_delete), cmocka_unit_test(test_segments_and_signals),
        cmocka_unit_test(test_group),          cmocka_unit_test(test_shared),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
