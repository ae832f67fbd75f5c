/* No room: nothing is lost, deletions always work, it goes on when there is room again, and room is
 * given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sys/resource.h>

#include "tests/unit/store_rig.h"

#define MIB ((size_t)1 << 20)

/* A limit on the size of files is a small disk. 0 = none. */
static void limit_files(size_t bytes)
{
    struct rlimit l;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &l), 0);
    l.rlim_cur = bytes ? bytes : l.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static size_t file_size(const struct rig *r)
{
    struct stat st;
    assert_int_equal(stat(rig_path(r), &st), 0);
    return (size_t)st.st_size;
}

/* Puts until there is no room; how many went in. */
static unsigned fill(struct store *st, size_t size)
{
    for (unsigned n = 0;; n++) {
        const uint64_t id = store_next_id(st);
        const int r = try_put(st, id, size);
        if (r < 0) {
            assert_int_equal(r, -ENOSPC);
            assert_int_equal(store_next_id(st), id);
            return n;
        }
    }
}

static void drain(struct store *st)
{
    const struct list l = *rig_list(st);
    for (size_t i = 0; i < l.n; i++)
        assert_int_equal(delete_one(st, l.items[i].id), 0);
    assert_int_equal(rig_list(st)->n, 0);
    assert_int_equal(store_live_bytes(st), 0);
}

static void test_full_disk(void **state)
{
    (void)state;
    static const size_t sizes[] = {10, 2000, 57000, 290000};
    for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
        struct rig r;
        rig_init(&r);
        struct store *st = rig_open(&r);
        limit_files(MIB);
        for (int cycle = 0; cycle < (sizes[s] < 1000 ? 2 : 5); cycle++) {
            const unsigned n = fill(st, sizes[s]);
            if (n == 0 || (sizes[s] > 2500 && n * sizes[s] < MIB / 2))
                fail_msg("only %u of %zu bytes in cycle %d", n, sizes[s], cycle);
            assert_int_equal(fill(st, sizes[s]), 0);
            assert_true(file_size(&r) <= MIB);
            const struct list l = *rig_list(st);
            for (size_t i = 0; i < l.n; i++)
                assert_stored(st, l.items[i].id, sizes[s]);
            if (cycle % 4 == 1) {
                rig_reopen(&r); /* on the full disk */
                st = r.store;
            }
            for (size_t i = 0; i < l.n; i++)
                assert_int_equal(delete_one(st, l.items[cycle % 2 ? l.n - 1 - i : i].id), 0);
            while (rig_list(st)->n > 0) /* more than a list takes */
                drain(st);
            assert_true(file_size(&r) <= MIB);
        }
        fill(st, sizes[s]);
        limit_files(0);
        for (int i = 0; i < 20; i++)
            put_next(st, 100000);
        rig_done(&r);
    }
}

/* A put and a deletion in turn at the edge: what deletions need is never used up. */
static void test_at_the_edge(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    struct store *st = rig_open(&r);
    limit_files(2 * MIB);
    fill(st, 57000);
    unsigned x = 7;
    for (int i = 0; i < 120; i++) {
        const struct list l = *rig_list(st);
        x = x * 1664525u + 1013904223u;
        if (l.n > 0)
            assert_int_equal(delete_one(st, l.items[(x >> 8) % l.n].id), 0);
        fill(st, 1000 + (x >> 8) % 90000);
    }
    drain(st);
    assert_true(fill(st, 57000) > 20);
    limit_files(0);
    rig_done(&r);
}

/* Deletions and puts in one transaction: with too little room for it, nothing is changed, and the
 * deletions work alone. */
static void test_mixed(void **state)
{
    (void)state;
    struct rig r;
    struct err e;
    rig_init(&r);
    struct store *st = rig_open(&r);
    limit_files(MIB);
    const size_t n = fill(st, 57000);
    const uint64_t first = rig_list(st)->items[0].id;
    struct batch *b = batch_of(1, 200000);
    const struct store_put put = {store_next_id(st), b};
    assert_int_equal(store_write(st, &put, 1, &first, 1, &e), -ENOSPC);
    assert_non_null(strstr(e.text, rig_path(&r)));
    assert_int_equal(rig_list(st)->n, n);
    assert_stored(st, first, 57000);
    assert_int_equal(delete_one(st, first), 0);
    batch_unref(b);
    limit_files(0);
    rig_done(&r);
}

/* Many deletions at once, and one of a large request, need more than the reserve: they are done in
 * pieces. */
static void test_many_deletions(void **state)
{
    (void)state;
    for (int large = 0; large < 2; large++) {
        struct rig r;
        struct err e;
        rig_init(&r);
        struct store *st = rig_open(&r);
        limit_files(12 * MIB);
        if (large)
            put_next(st, 11 * MIB);
        const unsigned n = fill(st, large ? 100 : 3000);
        uint64_t *ids = calloc(n + 1, sizeof(*ids));
        size_t nids = 0;
        for (uint64_t id = 1; id < store_next_id(st); id++)
            if (large ? id == 1 : id % 2)
                ids[nids++] = id;
        assert_int_equal(store_write(st, NULL, 0, ids, nids, &e), 0);
        for (size_t i = 0; i < nids; i++)
            assert_int_equal(try_read(st, ids[i], &e), -ENOENT);
        if (!large)
            assert_stored(st, 2, 3000);
        rig_reopen(&r);
        const unsigned more = fill(r.store, 3000);
        if (more < 100)
            fail_msg("%u of %u after %zu deletions", more, n, nids);
        free(ids);
        limit_files(0);
        rig_done(&r);
    }
}

static void test_max_bytes(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    r.settings.max_bytes = 3 * (int64_t)MIB + 77;
    struct store *st = rig_open(&r);
    for (int cycle = 0; cycle < 10; cycle++) {
        assert_true(fill(st, 57000) > 30);
        assert_true(file_size(&r) <= 3 * MIB + 77);
        assert_int_equal(store_file_bytes(st), file_size(&r));
        drain(st);
        assert_true(file_size(&r) < 2 * MIB);
    }
    rig_done(&r);
}

static void test_file_gets_small_again(void **state)
{
    (void)state;
    for (int fsync_it = 0; fsync_it < 2; fsync_it++) {
        struct rig r;
        rig_init(&r);
        r.settings.fsync = fsync_it;
        struct store *st = rig_open(&r);
        for (int i = 0; i < 100; i++)
            put_next(st, 100000);
        assert_true(file_size(&r) > 9 * MIB);
        drain(st);
        assert_true(file_size(&r) < 2 * MIB);
        const uint64_t next = store_next_id(st);
        assert_int_equal(next, 101); /* ids go on */
        put_next(st, 100);
        rig_reopen(&r);
        assert_stored(r.store, next, 100);
        rig_done(&r);
    }
}

static void test_compaction(void **state)
{
    (void)state;
    for (int on_start = 0; on_start < 2; on_start++) {
        struct rig r;
        char other[100];
        rig_init(&r);
        snprintf(other, sizeof(other), "%s/compact", r.folder);
        assert_int_equal(mkdir(other, 0700), 0);
        r.settings.compact_directory = other;
        r.settings.compact_on_start = on_start;
        r.settings.compact_on_rebound = !on_start;
        r.settings.rebound_needed_bytes = 8 * (int64_t)MIB;
        r.settings.rebound_trigger_bytes = 3 * (int64_t)MIB;
        r.settings.compact_max_items = 7;
        struct store *st = rig_open(&r);
        for (int i = 0; i < 100; i++)
            put_next(st, 100000);
        for (uint64_t id = 1; id <= 75; id++)
            if (id != 50)
                assert_int_equal(delete_one(st, id), 0);
        if (on_start) {
            assert_true(file_size(&r) > 9 * MIB);
            rig_reopen(&r);
        }
        st = r.store;
        assert_true(file_size(&r) < 5 * MIB);
        assert_int_equal(rig_list(st)->n, 26);
        put_next(st, 5);
        assert_int_equal(rmdir(other), 0); /* nothing is left there */
        rig_reopen(&r);
        assert_int_equal(rig_list(r.store)->n, 27);
        assert_stored(r.store, 50, 100000);
        for (uint64_t id = 76; id <= 100; id++)
            assert_stored(r.store, id, 100000);
        rig_done(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_disk),  cmocka_unit_test(test_at_the_edge),
        cmocka_unit_test(test_mixed),      cmocka_unit_test(test_many_deletions),
        cmocka_unit_test(test_max_bytes),  cmocka_unit_test(test_file_gets_small_again),
        cmocka_unit_test(test_compaction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
