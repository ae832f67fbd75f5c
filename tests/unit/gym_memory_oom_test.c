/* Every allocation of a sample fails once: nothing leaks or crashes, and the next sample is right.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>

#include "fake_proc.h"
#include "oom.h"
#include "receivers/gym_memory/discovery.h"
#include "receivers/gym_memory/points.h"

#define SERVER                                                                                     \
    "A=1\0NEMO_GYM_CONFIG_PATH=agent\0NEMO_GYM_CONFIG_DICT=agent: {responses_api_agents: {a: }}\n"

static void make_tree(struct fake_proc *f)
{
    fake_init(f);
    fake_process(f, 1, "10 20", 1, 1);
    fake_process(f, 10, "11", 1, 1);
    fake_put(f, 10, "cmdline", "sh -c NEMO_GYM_CONFIG_PATH=agent x");
    fake_process(f, 11, "", 2, 2);
    fake_put_bytes(f, 11, "environ", SERVER, sizeof(SERVER));
    fake_process(f, 20, "", 4, 4);
    fake_put(f, 20, "cmdline", "a-pattern");
    for (int pid = 100; pid < 180; pid++) /* the tables have to grow */
        fake_memory(f, pid, 1, 1);
}

struct world {
    struct procfs fs;
    struct proc_table t;
    struct servers servers;
    struct discovery d;
    struct meter meter;
};

static int make(struct world *w, const char *root, const struct cfg_list *config)
{
    struct err e = {.text = ""};
    *w = (struct world){.fs = {.dir = -1}};
    meter_init(&w->meter, 1000000000);
    int r = procfs_open(&w->fs, root, &e);
    if (r == 0)
        r = proc_table_init(&w->t, &w->fs);
    if (r == 0)
        r = servers_init(&w->servers, config, &e);
    if (r == 0)
        r = discovery_init(&w->d, &w->fs, &w->servers);
    w->d.root_pid = 1;
    return r;
}

static int sample(struct world *w, struct buf *out)
{
    struct host_sample none = {.peak = -1};
    int r = proc_table_refresh(&w->t);
    if (r == 0)
        r = discovery_run(&w->d, &w->t);
    if (r == 0)
        r = servers_collect(&w->servers, &w->t);
    if (r < 0)
        return r;
    meter_run(&w->meter, &w->t, w->servers.all, w->servers.nall, true, meter_now_ns());
    servers_sum(&w->servers);
    return points_encode(&none, &w->servers, 1, out);
}

static void done(struct world *w)
{
    discovery_done(&w->d);
    proc_table_done(&w->t);
    procfs_close(&w->fs);
    servers_done(&w->servers);
}

static void assert_right(struct world *w)
{
    static const char first[] = "gym.server.processes nemo.gym.server.name=p process.pid=20: 1\n"
                                "gym.server.processes nemo.gym.server.name=agent ";
    _cleanup_buf_ struct buf *out = buf_new(0), *text = buf_new(0);
    assert_int_equal(sample(w, out), 0);
    show_metrics(buf_bytes(out), "gym.server.processes", false, text);
    assert_int_equal(strncmp(buf_str(text), first, strlen(first)), 0);
    assert_non_null(strstr(buf_str(text), " process.pid=10: 2\n")); /* the type may be unknown */
}

/* One run with the n-th allocation failing; true when none did. */
static bool run(const char *root, const struct cfg_list *config, unsigned n)
{
    struct world w;
    struct buf *out = buf_new(0);
    fail_in = n;
    const bool made = make(&w, root, config) == 0;
    if (made)
        sample(&w, out);
    const bool all = fail_in > 0;
    fail_in = 0;
    if (made)
        assert_right(&w);
    done(&w);
    buf_unref(out);
    return all;
}

static void test_every_allocation(void **state)
{
    (void)state;
    struct fake_proc f;
    struct server_config p[] = {{.name = "p", .type = "", .command_pattern = "^a-pattern$"}};
    const struct cfg_list config = {.items = p, .n = 1};
    unsigned n = 1;
    make_tree(&f);
    while (!run(f.root, &config, n))
        n++;
    assert_true(n > 100);
    fake_done(&f);
}

/* The same while processes come and go: a table that could not be made anew is as it was. */
static void test_second_sample(void **state)
{
    (void)state;
    const struct cfg_list none = {0};
    for (unsigned n = 1, more = 1; more; n++) {
        struct fake_proc f;
        struct world w;
        _cleanup_buf_ struct buf *out = buf_new(0), *text = buf_new(0);
        make_tree(&f);
        assert_int_equal(make(&w, f.root, &none), 0);
        assert_int_equal(sample(&w, out), 0);
        fake_kill(&f, 120);
        fake_process(&f, 10, "11 15", 1, 1);
        for (int pid = 12; pid < 30; pid++)
            fake_memory(&f, pid, 1, 1);
        for (int pid = 500; pid < 540; pid++)
            fake_memory(&f, pid, 1, 1);
        fail_in = n;
        sample(&w, out);
        more = fail_in == 0;
        fail_in = 0;
        buf_truncate(out, 0);
        assert_int_equal(sample(&w, out), 0);
        show_metrics(buf_bytes(out), "gym.server.processes", false, text);
        assert_string_equal(buf_str(text),
                            "gym.server.processes nemo.gym.server.name=agent "
                            "nemo.gym.server.type=responses_api_agents process.pid=10: 3\n");
        done(&w);
        fake_done(&f);
        n += n > 20 ? 31 : 0; /* most of them are alike: the processes */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation),
                                       cmocka_unit_test(test_second_sample)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
