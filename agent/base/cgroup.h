/* Memory limits of the control groups that the process is in (versions 1 and 2). */
#ifndef MOTEL_BASE_CGROUP_H
#define MOTEL_BASE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/* The smallest limit of the groups from the process's own up to the root, in bytes; false when there is none. Read once. */
bool cgroup_memory_limit(uint64_t *ret_bytes);
/* What the group with that limit has left, not counting page cache, which gives way: its limit less anonymous, shared and kernel memory.
 * False without a limit. */
bool cgroup_memory_left(uint64_t *ret_bytes);
/* The memory that this process may think of as its machine's: the control group's limit or what is built in. */
uint64_t machine_memory(void);

/* The parts of the above, for any tree: `root` is where /sys/fs/cgroup and /proc stand ("" = here). */
struct cgroup_memory {
    char path[512]; /* of the limiting group's folder; "" = no limit */
    bool v2;
    uint64_t limit_bytes;
};
void cgroup_memory_find(const char *root, struct cgroup_memory *ret);
bool cgroup_memory_left_in(const struct cgroup_memory *g, uint64_t *ret_bytes);

#endif
