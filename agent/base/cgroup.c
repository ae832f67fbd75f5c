#include "agent/base/cgroup.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/cleanup.h"

#define UNLIMITED (1ull << 60) /* version 1 writes a huge number for "none" */

/* The first number of a file; false when there is none ("max"). */
static bool read_number(const char *folder, const char *name, uint64_t *ret)
{
    char path[640];
    unsigned long long n = 0;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    _cleanup_fclose_ FILE *f = fopen(path, "re");
    if (!f || fscanf(f, "%llu", &n) != 1)
        return false;
    *ret = n;
    return true;
}

/* Goes from a folder up to the mount point and keeps the smallest limit. */
static void climb(const char *mount, const char *group, const char *name, bool v2,
                  struct cgroup_memory *ret)
{
    char folder[512];
    uint64_t limit = 0;
    const size_t top = strlen(mount);
    if (snprintf(folder, sizeof(folder), "%s%s", mount, group) >= (int)sizeof(folder))
        return;
    for (;;) {
        if (read_number(folder, name, &limit) && limit < UNLIMITED && limit < ret->limit_bytes) {
            ret->limit_bytes = limit;
            ret->v2 = v2;
            snprintf(ret->path, sizeof(ret->path), "%s", folder);
        }
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < top)
            return;
        *slash = 0;
    }
}

/* One line of /proc/self/cgroup, "0::/a/b" or "4:memory:/a/b". */
static void take_line(const char *root, char *line, struct cgroup_memory *ret)
{
    char mount[256];
    line[strcspn(line, "\n")] = 0;
    strsep(&line, ":");
    const char *controllers = strsep(&line, ":");
    if (!controllers || !line)
        return;
    const char *group = strcmp(line, "/") == 0 ? "" : line;
    if (!*controllers) {
        snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup", root);
        climb(mount, group, "memory.max", true, ret);
        return;
    }
    for (char *list = (char *)controllers, *one; (one = strsep(&list, ","));)
        if (strcmp(one, "memory") == 0) {
            snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/memory", root);
            climb(mount, group, "memory.limit_in_bytes", false, ret);
        }
}

void cgroup_memory_find(const char *root, struct cgroup_memory *ret)
{
    char path[256], line[1024];
    *ret = (struct cgroup_memory){.limit_bytes = UINT64_MAX};
    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    _cleanup_fclose_ FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        take_line(root, line, ret);
    if (!ret->path[0])
        ret->limit_bytes = 0;
}

/* Counts what cannot be dropped, which has other names in version 1. */
bool cgroup_memory_left_in(const struct cgroup_memory *g, uint64_t *ret_bytes)
{
    static const char *const kept[][3] = {{"total_rss", "total_shmem", ""},
                                          {"anon", "shmem", "kernel"}};
    char path[640], name[64];
    unsigned long long n = 0, sum = 0;
    if (!g->path[0])
        return false;
    snprintf(path, sizeof(path), "%s/memory.stat", g->path);
    _cleanup_fclose_ FILE *f = fopen(path, "re");
    if (!f)
        return false;
    while (fscanf(f, "%63s %llu", name, &n) == 2)
        for (unsigned i = 0; i < ARRAY_SIZE(kept[0]); i++)
            if (strcmp(name, kept[g->v2][i]) == 0)
                sum += n;
    *ret_bytes = sum < g->limit_bytes ? g->limit_bytes - sum : 0;
    return true;
}

static struct cgroup_memory own;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

static void find_own(void)
{
    cgroup_memory_find("", &own);
}

bool cgroup_memory_limit(uint64_t *ret_bytes)
{
    pthread_once(&own_once, find_own);
    *ret_bytes = own.limit_bytes;
    return own.path[0];
}

bool cgroup_memory_left(uint64_t *ret_bytes)
{
    pthread_once(&own_once, find_own);
    return cgroup_memory_left_in(&own, ret_bytes);
}

uint64_t machine_memory(void)
{
    uint64_t limit = 0;
    const uint64_t built_in = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    return cgroup_memory_limit(&limit) && limit < built_in ? limit : built_in;
}
