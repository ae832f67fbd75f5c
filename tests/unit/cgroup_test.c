/* The memory limits of control groups, in folders made for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "agent/base/cgroup.h"
#include "agent/base/cleanup.h"

static char root[64];

static void make(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *p = full + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(full, 0700);
        *p = '/';
    }
    _cleanup_fclose_ FILE *f = fopen(full, "we");
    assert_non_null(f);
    fputs(text, f);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/motel-cgroup-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command);
}

/* Version 2: the smallest on the way up counts, page cache is no use of memory. */
static void test_version_2(void **state)
{
    (void)state;
    struct cgroup_memory g;
    uint64_t left = 0;
    make("/proc/self/cgroup", "0::/job/step\n");
    make("/sys/fs/cgroup/memory.max", "max\n");
    make("/sys/fs/cgroup/job/memory.max", "1000000\n");
    make("/sys/fs/cgroup/job/step/memory.max", "2000000\n");
    make("/sys/fs/cgroup/job/memory.stat",
         "anon 300000\nfile 500000\nkernel 40000\nshmem 5000\nslab 7000\n");
    cgroup_memory_find(root, &g);
    assert_true(g.v2);
    assert_int_equal(g.limit_bytes, 1000000);
    assert_non_null(strstr(g.path, "/job"));
    assert_null(strstr(g.path, "step"));
    assert_true(cgroup_memory_left_in(&g, &left));
    assert_int_equal(left, 1000000 - 345000);
    make("/sys/fs/cgroup/job/memory.stat", "anon 1300000\n");
    assert_true(cgroup_memory_left_in(&g, &left));
    assert_int_equal(left, 0);
}

/* Version 1, in a container that does not see the folder of its group but as the mount point. */
static void test_version_1(void **state)
{
    (void)state;
    struct cgroup_memory g;
    uint64_t left = 0;
    make("/proc/self/cgroup", "9:name=systemd:/x\n4:cpu,memory:/docker/abc\n0::/\n");
    make("/sys/fs/cgroup/memory/memory.limit_in_bytes", "64000000\n");
    make("/sys/fs/cgroup/memory/memory.stat",
         "cache 9\nrss 1\nshmem 1\ntotal_cache 50000000\ntotal_rss 4000000\ntotal_shmem 1000\n");
    cgroup_memory_find(root, &g);
    assert_false(g.v2);
    assert_int_equal(g.limit_bytes, 64000000);
    assert_true(cgroup_memory_left_in(&g, &left));
    assert_int_equal(left, 64000000 - 4001000);
}

static void test_none(void **state)
{
    (void)state;
    struct cgroup_memory g;
    uint64_t left;
    cgroup_memory_find(root, &g); /* nothing is there */
    assert_int_equal(g.path[0], 0);
    assert_false(cgroup_memory_left_in(&g, &left));
    make("/proc/self/cgroup", "4:memory:/\n0::/\nnonsense\n");
    make("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    make("/sys/fs/cgroup/memory.max", "max\n");
    cgroup_memory_find(root, &g);
    assert_int_equal(g.path[0], 0);
    assert_int_equal(g.limit_bytes, 0);
    assert_true(machine_memory() > 1 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_version_2, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_version_1, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_none, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
