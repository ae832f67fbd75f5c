/* A /proc made of plain files in a temporary folder, and metrics as text. */
#ifndef FAKE_PROC_H
#define FAKE_PROC_H

#include <ftw.h>
#include <sys/stat.h>

#include "proto/wire.h"

struct fake_proc {
    char root[64]; /* what stands before /proc */
};

static inline void fake_init(struct fake_proc *f)
{
    char path[128];
    snprintf(f->root, sizeof(f->root), "/tmp/fake_proc_XXXXXX");
    assert_non_null(mkdtemp(f->root));
    snprintf(path, sizeof(path), "%s/proc", f->root);
    assert_int_equal(mkdir(path, 0755), 0);
}

static inline int fake_remove_one(const char *path, const struct stat *s, int type, struct FTW *w)
{
    (void)s, (void)type, (void)w;
    return remove(path);
}
static inline void fake_done(struct fake_proc *f)
{
    assert_int_equal(nftw(f->root, fake_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}
static inline void fake_kill(struct fake_proc *f, int pid)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/proc/%d", f->root, pid);
    assert_int_equal(nftw(path, fake_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Writes proc/PID/FILE, or proc/FILE for pid 0; the folders are made. `len` bytes. */
static inline void fake_put_bytes(struct fake_proc *f, int pid, const char *file, const void *data, size_t len)
{
    char path[256];
    int n = pid ? snprintf(path, sizeof(path), "%s/proc/%d/%s", f->root, pid, file)
                : snprintf(path, sizeof(path), "%s/proc/%s", f->root, file);
    assert_true(n < (int)sizeof(path));
    for (char *p = path + strlen(f->root) + 6; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(path, 0755);
        *p = '/';
    }
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(data, 1, len, out), len);
    assert_int_equal(fclose(out), 0);
}
static inline void fake_put(struct fake_proc *f, int pid, const char *file, const char *text)
{
    fake_put_bytes(f, pid, file, text, strlen(text));
}

/* smaps_rollup with these values in kB; pss -1 leaves its line out. */
static inline void fake_memory(struct fake_proc *f, int pid, long rss, long pss)
{
    char text[512], line[64] = "";
    if (pss >= 0)
        snprintf(line, sizeof(line), "Pss:             %8ld kB\n", pss);
    snprintf(text, sizeof(text),
             "55fafb47a000-7fff80089000 ---p 00000000 00:00 0                          [rollup]\n"
             "Rss:             %8ld kB\n%sPss_Dirty:            3 kB\nPss_Anon:             2 kB\nSwapPss:              1 kB\n",
             rss, line);
    fake_put(f, pid, "smaps_rollup", text);
}
static inline void fake_children(struct fake_proc *f, int pid, const char *children)
{
    char file[64];
    snprintf(file, sizeof(file), "task/%d/children", pid);
    fake_put(f, pid, file, children);
}
/* A process with memory and children, but without stat. */
static inline void fake_process(struct fake_proc *f, int pid, const char *children, long rss, long pss)
{
    fake_memory(f, pid, rss, pss);
    fake_children(f, pid, children);
}
/* stat as the kernel writes it. */
static inline void fake_stat(struct fake_proc *f, int pid, const char *name, char state, int ppid, unsigned long flags, unsigned long start)
{
    char text[512];
    snprintf(text, sizeof(text),
             "%d (%s) %c %d 1 1 0 -1 %lu 100 200 3 4 5 6 7 8 20 0 1 0 %lu 10000000 250 18446744073709551615 1 2 3 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 "
             "10 11 12 13 14 9%d 15 0\n",
             pid, name, state, ppid, flags, start, pid);
    fake_put(f, pid, "stat", text);
}

/* ---- metrics as text ---- */

static inline void show_attributes(struct bytes point, struct buf *out)
{
    struct wire_reader r = wire_reader(point);
    for (struct bytes a; wire_each(&r, 7, &a);) {
        struct wire_field text, number;
        struct bytes key = wire_bytes(a, 1), value = wire_bytes(a, 2);
        buf_printf(out, " %.*s=", (int)key.len, (const char *)key.data);
        if (wire_find(value, 1, &text))
            buf_printf(out, "%.*s", (int)text.bytes.len, (const char *)text.bytes.data);
        else if (wire_find(value, 3, &number))
            buf_printf(out, "%lld", (long long)number.value);
    }
}

/* One line a point, "name attribute=value …: number", of the gauges whose name starts with `prefix`; with `meta` a line "name unit: description"
 * before those of each metric. */
static inline void show_metrics(struct bytes request, const char *prefix, bool meta, struct buf *out)
{
    struct wire_reader resources = wire_reader(request);
    for (struct bytes rm; wire_each(&resources, 1, &rm);) {
        struct wire_reader scopes = wire_reader(rm);
        for (struct bytes sm; wire_each(&scopes, 2, &sm);) {
            struct wire_reader metrics = wire_reader(sm);
            for (struct bytes m; wire_each(&metrics, 2, &m);) {
                struct bytes name = wire_bytes(m, 1), text = wire_bytes(m, 2), unit = wire_bytes(m, 3), scope = wire_bytes(wire_bytes(sm, 1), 1);
                if (name.len < strlen(prefix) || memcmp(name.data, prefix, strlen(prefix)) != 0)
                    continue;
                if (meta)
                    buf_printf(out, "%.*s: %.*s %.*s: %.*s\n", (int)scope.len, (const char *)scope.data, (int)name.len, (const char *)name.data,
                               (int)unit.len, (const char *)unit.data, (int)text.len, (const char *)text.data);
                struct wire_reader points = wire_reader(wire_bytes(m, 5));
                for (struct bytes p; wire_each(&points, 1, &p);) {
                    struct wire_field value;
                    buf_printf(out, "%.*s", (int)name.len, (const char *)name.data);
                    show_attributes(p, out);
                    assert_true(wire_find(p, 6, &value)); /* as_int, also when it is 0 */
                    buf_printf(out, ": %lld\n", (long long)value.value);
                }
            }
        }
    }
}

#endif
