/*
 * Files of /proc as other processes, other kernels and containers may show them. The first byte
 * chooses which; what must hold of every answer is checked.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "receivers/gym_memory/discovery.h"
#include "tests/fuzz/fuzz.h"

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void stat_line(struct bytes in)
{
    struct proc_stat s, again;
    memset(&s, 0, sizeof(s));
    if (procfs_parse_stat(in, &s) < 0)
        return;
    must(s.ppid >= 0 && memrchr(in.data, ')', in.len));
    must(procfs_parse_stat(in, &again) == 0 && again.start == s.start && again.pages == s.pages);
}

static void environment(struct bytes in)
{
    const char *value = environ_value(in, GYM_SERVER_VARIABLE);
    if (!value)
        return;
    const uint8_t *p = (const uint8_t *)value;
    must(p > in.data && p < in.data + in.len && p[-1] == '=');
    must(memchr(p, '\0', in.len - (size_t)(p - in.data)) != NULL);
}

static void config(struct bytes in)
{
    char type[16], *text = strndup((const char *)in.data, in.len);
    must(text != NULL);
    gym_server_type(text, "a", type, sizeof(type));
    must(strlen(type) < sizeof(type));
    free(text);
}

/* A /proc with one process, whose files are written anew for every input. */
static const struct procfs *folder(void)
{
    static struct procfs fs;
    static char root[] = "/tmp/proc_fuzz_XXXXXX";
    struct err e;
    if (fs.page_bytes)
        return &fs;
    must(mkdtemp(root) != NULL);
    int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(mkdirat(dir, "proc", 0755) == 0 && mkdirat(dir, "proc/1", 0755) == 0);
    close(dir);
    must(procfs_open(&fs, root, &e) == 0 && !fs.real && !fs.own);
    return &fs;
}

static void put(const struct procfs *fs, const char *file, struct bytes in)
{
    int fd = openat(fs->dir, file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    must(fd >= 0 && write(fd, in.data, in.len) == (ssize_t)in.len);
    close(fd);
}

static void memory(struct bytes in, const char *file)
{
    const struct procfs *fs = folder();
    int64_t rss = 0, pss = 0;
    put(fs, "1/statm", bytes_str("5 3 1"));
    put(fs, "1/smaps_rollup", bytes_str(""));
    put(fs, file, in);
    int r = procfs_memory(fs, 1, &rss, &pss);
    must(r <= 0 && (r < 0 || (rss >= 0 && pss >= PSS_UNKNOWN)));
    unlinkat(fs->dir, file, 0);
}

static void host(struct bytes in)
{
    struct host_memory m;
    put(folder(), "meminfo", in);
    if (procfs_host(folder(), &m) == 0)
        must(m.available >= 0 && m.available <= m.total);
    unlinkat(folder()->dir, "meminfo", 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct bytes in = size ? bytes_of(data + 1, size - 1) : bytes_of("", 0);
    if (size == 0)
        return 0;
    switch (data[0]) {
    case 's': stat_line(in); break;
    case 'e': environment(in); break;
    case 'c': config(in); break;
    case 'r': memory(in, "1/smaps_rollup"); break;
    case 'm': memory(in, "1/statm"); break;
    case 'h': host(in); break;
    default: break;
    }
    return 0;
}
