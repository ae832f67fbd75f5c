/* Every allocation of the store's own fails once: an error and the store as it was, no leak, no
 * crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/secrets.h"
#include "tests/unit/oom.h"
#include "tests/unit/store_rig.h"

struct world {
    struct rig r;
    struct batch *batch; /* with a secret and without */
    bool secret;
};

static int open_and_close(struct world *w)
{
    struct err e;
    const int r = rig_try_open(&w->r, &e);
    w->r.store = store_close(w->r.store);
    return r;
}

static int open_file_of_garbage(struct world *w)
{
    struct err e;
    char command[300];
    FILE *f = fopen(rig_path(&w->r), "wb");
    if (!f)
        return -ENOMEM;
    fputs("garbage", f);
    fclose(f);
    w->r.settings.recreate = true;
    const int r = rig_try_open(&w->r, &e);
    w->r.store = store_close(w->r.store);
    snprintf(command, sizeof(command), "rm -f '%s'/*", w->r.folder);
    const unsigned saved = fail_in;
    fail_in = 0;
    assert_int_equal(system(command), 0);
    fail_in = saved;
    return r;
}

static int put_and_delete(struct world *w)
{
    struct err e;
    const struct store_put put = {store_next_id(w->r.store), w->batch};
    int r = store_write(w->r.store, &put, 1, NULL, 0, &e);
    if (r == 0)
        r = store_write(w->r.store, NULL, 0, &put.id, 1, &e);
    return r;
}

static int read_it(struct world *w)
{
    struct batch *got;
    struct err e;
    const int r = store_read(w->r.store, 1, &got, &e);
    if (r < 0)
        return r;
    assert_true(same_batch(got, w->batch));
    batch_unref(got);
    return 0;
}

static int compact(struct world *w)
{
    struct err e;
    w->r.settings.compact_on_start = true;
    const int r = rig_try_open(&w->r, &e);
    if (r == 0)
        assert_int_equal(rig_list(w->r.store)->n, 1);
    w->r.store = store_close(w->r.store);
    return r;
}

static const struct {
    const char *what;
    int (*run)(struct world *w);
    bool filled, open, secret;
    bool survives; /* some of them are done without */
} cases[] = {
    {"open a new one", open_and_close, false, false, false, false},
    {"open one with requests", open_and_close, true, false, false, false},
    {"move aside", open_file_of_garbage, false, false, false, true},
    {"put and delete", put_and_delete, true, true, false, true},
    {"put and delete with a secret", put_and_delete, true, true, true, true},
    {"read", read_it, true, true, false, false},
    {"read with a secret", read_it, true, true, true, false},
    {"compact", compact, true, false, false, true},
};

static void make(struct world *w, size_t i)
{
    struct err e;
    *w = (struct world){.batch = batch_of_text(bytes_str("a body with sk-0123456789 in it"))};
    rig_init(&w->r);
    if (cases[i].secret)
        secrets_add("sk-0123456789");
    if (cases[i].filled) {
        rig_open(&w->r);
        assert_int_equal(put_batch(w->r.store, 1, w->batch, &e), 0);
        if (!cases[i].open)
            w->r.store = store_close(w->r.store);
    }
}

static void test_each_allocation(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world w;
        make(&w, i);
        const size_t before = mem_used();
        unsigned n = 0;
        bool all_done;
        do {
            fail_in = ++n;
            const int r = cases[i].run(&w);
            all_done = fail_in > 0;
            fail_in = 0;
            if (r != 0 && (all_done || r != -ENOMEM))
                fail_msg("%s, allocation %u: %d", cases[i].what, n, r);
            if (r == 0 && !all_done && !cases[i].survives)
                fail_msg("%s, allocation %u made no difference", cases[i].what, n);
            assert_int_equal(mem_used(), before);
            if (w.r.store)
                assert_true(rig_list(w.r.store)->n > 0);
        } while (!all_done);
        assert_true(n > 1);
        batch_unref(w.batch);
        secrets_clear();
        rig_done(&w.r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
