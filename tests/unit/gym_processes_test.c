/* The table of processes, discovery and measuring on real processes, which are forked here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "receivers/gym_memory/discovery.h"

struct world {
    struct procfs fs;
    struct proc_table t;
};

static void open_world(struct world *w)
{
    struct err e = {.text = ""};
    assert_int_equal(procfs_open(&w->fs, "", &e), 0);
    assert_true(w->fs.real);
    assert_int_equal(proc_table_init(&w->t, &w->fs), 0);
    assert_int_equal(proc_table_refresh(&w->t), 0);
}

static void close_world(struct world *w)
{
    proc_table_done(&w->t);
    procfs_close(&w->fs);
}

/* A child that does nothing, of which we know that it runs. `pid` > 0: with this pid, or -1 when
 * that is not allowed. */
static pid_t child_as(pid_t pid, void (*body)(void))
{
    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
            set_tid_size, cgroup;
    } args = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1};
    int ready[2];
    char c;
    assert_int_equal(pipe(ready), 0);
    pid_t got = pid ? (pid_t)syscall(SYS_clone3, &args, sizeof(args)) : fork();
    if (got == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (body)
            body();
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    if (got > 0)
        assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    return got;
}

static pid_t child(void)
{
    return child_as(0, NULL);
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_come_and_go(void **state)
{
    (void)state;
    struct world w;
    pid_t pids[20];
    open_world(&w);
    struct proc *self = proc_table_find(&w.t, getpid());
    assert_non_null(self);
    assert_true(self->has_stat && self->here && !self->stat.kernel_thread);
    assert_int_equal(self->parent->pid, getppid());
    for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
        pids[i] = child();
    assert_int_equal(proc_table_refresh(&w.t), 0);
    assert_true(w.t.changed);
    assert_ptr_equal(proc_table_find(&w.t, getpid()), self);
    for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
        assert_ptr_equal(proc_table_find(&w.t, pids[i])->parent, self);
    for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
        end(pids[i]);
    assert_int_equal(proc_table_refresh(&w.t), 0);
    for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
        assert_null(proc_table_find(&w.t, pids[i]));
    assert_null(proc_table_find(&w.t, 0));
    assert_null(proc_table_find(&w.t, INT32_MAX));
    close_world(&w);
}

/* Without any change in between there is no listing, and with one there is. */
static void test_quiet(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    assert_true(w.fs.own);
    unsigned skipped = 0;
    for (int i = 0; i < 1000 && !skipped; i++) { /* others may be busy here */
        assert_int_equal(proc_table_refresh(&w.t), 0);
        skipped = w.t.skipped;
    }
    assert_true(skipped > 0);
    pid_t pid = child();
    assert_int_equal(proc_table_refresh(&w.t), 0);
    assert_int_equal(w.t.skipped, 0);
    assert_non_null(proc_table_find(&w.t, pid));
    end(pid);
    assert_int_equal(proc_table_refresh(&w.t), 0);
    assert_null(proc_table_find(&w.t, pid));
    for (int i = 0; i < 100; i++) { /* one now and then in any case */
        assert_int_equal(proc_table_refresh(&w.t), 0);
        assert_true(w.t.skipped < 16);
    }
    close_world(&w);
}

/* A process that ends between the listing and the look at it, with its file open and without. */
static void test_exit_races(void **state)
{
    (void)state;
    for (int open = 0; open < 2; open++) {
        struct world w;
        int64_t rss, pss;
        open_world(&w);
        pid_t pid = child();
        assert_int_equal(proc_table_refresh(&w.t), 0);
        struct proc *p = proc_table_find(&w.t, pid);
        p->read_at = 0;
        assert_true(proc_table_look(&w.t, p, open));
        assert_int_equal(w.t.open_files, open);
        end(pid);
        assert_true(proc_table_look(&w.t, p, open)); /* once a refresh */
        p->read_at = 0;
        assert_false(proc_table_look(&w.t, p, open));
        assert_int_equal(w.t.open_files, 0);
        assert_true(procfs_memory(&w.fs, pid, &rss, &pss) < 0);
        assert_int_equal(proc_table_refresh(&w.t), 0);
        assert_null(proc_table_find(&w.t, pid));
        close_world(&w);
    }
}

/* The children of a process that ends have another parent. */
static void test_orphans(void **state)
{
    (void)state;
    struct world w;
    int report[2];
    pid_t grandchild;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(pipe(report), 0);
    pid_t middle = fork();
    if (middle == 0) {
        pid_t pid = fork();
        if (pid > 0 && write(report[1], &pid, sizeof(pid)) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(report[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
    open_world(&w);
    assert_int_equal(proc_table_find(&w.t, grandchild)->parent->pid, middle);
    end(middle);
    assert_int_equal(proc_table_refresh(&w.t), 0);
    assert_int_equal(proc_table_find(&w.t, grandchild)->parent->pid, getpid());
    end(grandchild);
    close(report[0]);
    close(report[1]);
    close_world(&w);
}

/* Another process with the pid of one that has ended is another one, whether its file was open or
 * not. */
static void test_pid_used_again(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        const bool open = how & 1;
        struct world w;
        open_world(&w);
        pid_t pid = child();
        assert_int_equal(proc_table_refresh(&w.t), 0);
        struct proc *first = proc_table_find(&w.t, pid);
        const uint64_t serial = first->serial;
        first->read_at = 0;
        assert_true(proc_table_look(&w.t, first, open));
        end(pid);
        usleep(20000); /* start times have a resolution of 10 ms */
        pid_t again = child_as(pid, NULL);
        if (again < 0) { /* needs CAP_CHECKPOINT_RESTORE */
            close_world(&w);
            skip();
        }
        assert_int_equal(again, pid);
        *w.t.population = '\0'; /* the last pid stays the same when one is asked for */
        first->read_at = 0;
        if (how & 2)
            assert_false(proc_table_look(&w.t, first, open));
        assert_int_equal(proc_table_refresh(&w.t), 0);
        assert_true(w.t.changed);
        assert_int_not_equal(proc_table_find(&w.t, pid)->serial, serial);
        assert_true(proc_table_find(&w.t, pid)->here);
        end(pid);
        close_world(&w);
    }
}

/* ---- memory ---- */

static void hold_8_mib(void)
{
    char *p = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, 8 << 20, MADV_NOHUGEPAGE);
    memset(p, 1, 8 << 20);
}

static void test_memory(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    skip(); /* its shadow memory is part of what is resident */
#endif
    struct procfs fs;
    struct err e = {.text = ""};
    struct host_memory host;
    int64_t rss, pss, less_rss, less_pss;
    pid_t small = child(), large = child_as(0, hold_8_mib);
    assert_int_equal(procfs_open(&fs, "", &e), 0);
    assert_int_equal(procfs_memory(&fs, small, &less_rss, &less_pss), 0);
    assert_int_equal(procfs_memory(&fs, large, &rss, &pss), 0);
    assert_true(less_pss > 0 && less_pss <= less_rss);
    assert_in_range(rss - less_rss, 8 << 20, 9 << 20);
    assert_in_range(pss - less_pss, 7 << 20, 9 << 20);
    assert_int_equal(procfs_host(&fs, &host), 0);
    assert_true(host.available > 0 && host.available < host.total);
    kill(large, SIGKILL);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)large, &info, WEXITED | WNOWAIT), 0); /* a zombie now */
    assert_int_equal(procfs_memory(&fs, large, &rss, &pss), 0);
    assert_int_equal(rss, 0);
    assert_int_equal(pss, 0);
    end(large);
    end(small);
    procfs_close(&fs);
}

/* smaps_rollup of somebody else's process is not for us: RSS only. */
static void test_not_allowed(void **state)
{
    (void)state;
    pid_t reader, other = child();
    int status;
    if (geteuid() != 0)
        skip();
    if ((reader = fork()) == 0) {
        struct procfs fs;
        struct err e = {.text = ""};
        int64_t rss = 0, pss = 0;
        if (syscall(SYS_setresuid, 65534, 65534, 65534) < 0 || procfs_open(&fs, "", &e) < 0)
            _exit(9);
        _exit(procfs_memory(&fs, other, &rss, &pss) == 0 && rss > 0 && pss == PSS_UNKNOWN ? 0 : 1);
    }
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_int_equal(status, 0);
    end(other);
}

struct crowd {
    struct world w;
    pid_t pids[100];
    struct proc *procs[100];
    struct meter meter;
};

static void sample(struct crowd *c, bool exact)
{
    assert_int_equal(proc_table_refresh(&c->w.t), 0);
    for (size_t i = 0; i < ARRAY_SIZE(c->pids); i++)
        c->procs[i] = proc_table_find(&c->w.t, c->pids[i]);
    meter_run(&c->meter, &c->w.t, c->procs, ARRAY_SIZE(c->procs), exact, meter_now_ns());
}

static size_t count_measured(const struct crowd *c)
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(c->procs); i++)
        n += c->procs[i]->measured_at == c->w.t.refreshes;
    return n;
}

/* Without time for it, the unchanged are measured in turn, and the changed are estimated. */
static void test_budget(void **state)
{
    (void)state;
    struct crowd *c = calloc(1, sizeof(*c));
    open_world(&c->w);
    for (size_t i = 0; i < ARRAY_SIZE(c->pids); i++)
        c->pids[i] = child_as(0, hold_8_mib);
    meter_init(&c->meter, 1000);
    assert_int_equal(c->meter.share_ns, 3000000);
    sample(c, false); /* all are new */
    assert_int_equal(count_measured(c), ARRAY_SIZE(c->pids));
    assert_true(c->meter.left_ns < 0);
    sample(c, false); /* which was too much */
    assert_int_equal(count_measured(c), 0);
    sample(c, true);
    assert_int_equal(count_measured(c), ARRAY_SIZE(c->pids));

    const uint64_t all_at = c->w.t.refreshes;
    for (size_t left = ARRAY_SIZE(c->pids), samples = 0; left > 0; samples++) {
        assert_true(samples < 1000);
        c->meter.left_ns = 0;
        sample(c, false);
        assert_in_range(count_measured(c), 1, ARRAY_SIZE(c->pids) - 1);
        left = 0;
        for (size_t i = 0; i < ARRAY_SIZE(c->procs); i++)
            left += c->procs[i]->measured_at <= all_at;
    }

    sample(c, true);
    c->procs[7]->measured_rss += 4096; /* not what it is now: to be found by a measure only */
    c->procs[7]->then.pages -= 2;
    const int64_t rss = c->procs[7]->measured_rss, pss = c->procs[7]->measured_pss;
    c->meter.left_ns = -100 * c->meter.share_ns;
    sample(c, false);
    assert_int_equal(c->procs[7]->rss, rss + 2 * c->w.fs.page_bytes);
    assert_int_equal(c->procs[7]->pss, pss + 2 * c->w.fs.page_bytes);
    c->meter.left_ns = 0;
    sample(c, false); /* the changed come first */
    assert_int_equal(c->procs[7]->rss, rss - 4096);
    for (size_t i = 0; i < ARRAY_SIZE(c->pids); i++)
        end(c->pids[i]);
    close_world(&c->w);
    free(c);
}

/* ---- discovery ---- */

static int go[2];
static void become_a_server(void)
{
    char c, *arguments[] = {"sh", "-c", "kill -STOP $$; :", "gym-test-pattern", NULL},
            *environment[] = {"NEMO_GYM_CONFIG_PATH=late", NULL};
    if (fork() == 0) { /* an old process, that is: one which is not young any more */
        if (read(go[0], &c, 1) == 1)
            execve("/bin/sh", arguments, environment);
        _exit(1);
    }
}

static void test_exec(void **state)
{
    (void)state;
    struct world w;
    struct servers servers;
    struct discovery d;
    struct cfg_list none = {0};
    struct err e = {.text = ""};
    assert_int_equal(pipe(go), 0);
    pid_t parent = child_as(0, become_a_server);
    open_world(&w);
    assert_int_equal(servers_init(&servers, &none, &e), 0);
    struct server *v = servers_named(&servers, "p");
    assert_int_equal(regex_new(bytes_str("gym-test-pattern"), &v->pattern, &e), 0);
    assert_int_equal(discovery_init(&d, &w.fs, &servers), 0);
    d.root_pid = parent;
    assert_true(d.patterns);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(discovery_run(&d, &w.t), 0);
        assert_int_equal(proc_table_refresh(&w.t), 0);
    }
    assert_int_equal(servers.n, 1);
    assert_int_equal(v->nroots, 0);
    assert_int_equal(write(go[1], "x", 1), 1);
    for (uint64_t i = 0; (servers.n < 2 || !v->nroots) && i < 10000; i++) {
        assert_int_equal(proc_table_refresh(&w.t), 0);
        assert_int_equal(discovery_run(&d, &w.t), 0);
        usleep(1000);
    }
    assert_int_equal(servers.n, 2);
    assert_string_equal(servers.items[1]->name, "late");
    assert_int_equal(v->nroots, 1);
    assert_int_equal(v->roots[0].pid, servers.items[1]->roots[0].pid);
    kill(v->roots[0].pid, SIGKILL);
    end(parent);
    discovery_done(&d);
    servers_done(&servers);
    close_world(&w);
    close(go[0]);
    close(go[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_come_and_go),    cmocka_unit_test(test_quiet),
        cmocka_unit_test(test_exit_races),     cmocka_unit_test(test_orphans),
        cmocka_unit_test(test_pid_used_again), cmocka_unit_test(test_memory),
        cmocka_unit_test(test_not_allowed),    cmocka_unit_test(test_budget),
        cmocka_unit_test(test_exec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
