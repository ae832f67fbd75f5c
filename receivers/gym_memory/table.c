/* The table of processes: listing, identity, parents. */
#include "receivers/gym_memory/table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>

#define OPEN_MAX_FILES 4096
#define SKIP_MAX 16 /* there is a listing at least every so many refreshes */

/* Files of processes that may stay open: a quarter of what the process may have. */
static unsigned open_files_max(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return 0;
    return r.rlim_cur / 4 > OPEN_MAX_FILES ? OPEN_MAX_FILES : (unsigned)(r.rlim_cur / 4);
}

int proc_table_init(struct proc_table *t, const struct procfs *fs)
{
    *t = (struct proc_table){.fs = fs};
    int fd = openat(fs->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    t->dir = fdopendir(fd);
    if (t->dir)
        return 0;
    close(fd);
    return -ENOMEM;
}

static void close_file(struct proc_table *t, struct proc *p)
{
    if (p->fd < 0)
        return;
    close(p->fd);
    p->fd = -1;
    t->open_files--;
}

static void proc_free(struct proc_table *t, struct proc *p)
{
    close_file(t, p);
    free(p);
}

void proc_table_done(struct proc_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        proc_free(t, t->items[i]);
    free(t->items);
    free(t->next);
    free(t->dead);
    free(t->listed);
    if (t->dir)
        closedir(t->dir);
    *t = (struct proc_table){0};
}

struct proc *proc_table_find(const struct proc_table *t, int pid)
{
    size_t from = 0, to = t->n;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (t->items[mid]->pid == pid)
            return t->items[mid];
        if (t->items[mid]->pid < pid)
            from = mid + 1;
        else
            to = mid;
    }
    return NULL;
}

/* ---- looking at one process ---- */

static int read_stat(struct proc_table *t, struct proc *p, bool keep, struct proc_stat *ret)
{
    const bool was_open = p->fd >= 0;
    keep = was_open || (keep && t->fs->real && t->open_files < t->open_max);
    int r = procfs_stat(t->fs, p->pid, &p->fd, keep, ret);
    t->open_files += (unsigned)(p->fd >= 0) - (unsigned)was_open;
    return r;
}

static bool says_gone(const struct procfs *fs, int r)
{
    return r == -ESRCH || (r == -ENOENT && fs->real);
}

/* A stat that cannot be had is no reason to take it for gone: its memory may be readable. */
static void take_stat(const struct procfs *fs, struct proc *p, int r, const struct proc_stat *s)
{
    p->here = !says_gone(fs, r);
    if (!p->here)
        return;
    p->has_stat = r == 0;
    if (r == 0)
        p->stat = *s;
}

bool proc_table_look(struct proc_table *t, struct proc *p, bool keep)
{
    struct proc_stat s = {0};
    if (p->read_at == t->refreshes || !p->here)
        return p->here;
    p->read_at = t->refreshes;
    int r = read_stat(t, p, keep, &s);
    if (r == 0 && p->has_stat && s.start != p->stat.start)
        r = -ESRCH; /* another one with its pid; the next listing shows it */
    take_stat(t->fs, p, r, &s);
    return p->here;
}

/* ---- listing ---- */

/* Makes room for one more than `n` elements. */
static int grow(void *array, size_t *cap, size_t n, size_t size)
{
    if (n < *cap)
        return 0;
    size_t more = *cap ? 2 * *cap : 64;
    void *p = realloc(*(void **)array, more * size);
    if (!p)
        return -ENOMEM;
    *(void **)array = p;
    *cap = more;
    return 0;
}

static int by_pid(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static int list(struct proc_table *t)
{
    bool sorted = true;
    t->nlisted = 0;
    rewinddir(t->dir);
    for (const struct dirent *d; errno = 0, (d = readdir(t->dir));) {
        int pid = procfs_pid(d->d_name);
        if (!pid)
            continue;
        if (grow(&t->listed, &t->listed_cap, t->nlisted, sizeof(*t->listed)) < 0)
            return -ENOMEM;
        sorted = sorted && (!t->nlisted || t->listed[t->nlisted - 1].pid < pid);
        t->listed[t->nlisted++] = (struct listed){pid, d->d_ino};
    }
    if (errno)
        return -errno;
    if (!sorted)
        qsort(t->listed, t->nlisted, sizeof(*t->listed), by_pid);
    return 0;
}

/* ---- merging the listing with the table ---- */

static struct proc *proc_new(struct proc_table *t, const struct listed *l)
{
    struct proc *p = calloc(1, sizeof(*p));
    struct proc_stat s = {0};
    if (!p)
        return NULL;
    *p = (struct proc){.pid = l->pid,
                       .ino = l->ino,
                       .fd = -1,
                       .serial = ++t->serials,
                       .born = t->refreshes,
                       .read_at = t->refreshes};
    take_stat(t->fs, p, read_stat(t, p, false, &s), &s);
    return p;
}

/* Whether the process in the listing is the one that we know. The inode of its folder tells, unless
 * the kernel forgot it in between. */
static bool is_same(struct proc_table *t, struct proc *p, const struct listed *l)
{
    if (t->fs->real && p->ino == l->ino && p->here)
        return true;
    struct proc_stat s = {0};
    int r = read_stat(t, p, false, &s);
    if (says_gone(t->fs, r) || (p->has_stat && r == 0 && s.start != p->stat.start))
        return false;
    t->changed |= (r == 0) != p->has_stat || s.ppid != p->stat.ppid;
    take_stat(t->fs, p, r, &s);
    p->ino = l->ino;
    p->read_at = t->refreshes;
    return true;
}

/* With what is in t->next so far undone: the table is as before. */
static int undo(struct proc_table *t)
{
    for (size_t i = 0; i < t->nnext; i++)
        if (t->next[i]->born == t->refreshes)
            proc_free(t, t->next[i]);
    for (size_t i = 0; i < t->n; i++)
        t->items[i]->gone = false;
    return -ENOMEM;
}

/* Moves to t->next who is in both; who is not there any more is among t->dead. */
static int merge(struct proc_table *t)
{
    size_t old = 0;
    t->nnext = t->ndead = 0;
    for (size_t i = 0; i < t->nlisted || old < t->n;) {
        struct listed *l = i < t->nlisted ? &t->listed[i] : NULL;
        struct proc *p = old < t->n ? t->items[old] : NULL;
        if (grow(&t->next, &t->next_cap, t->nnext, sizeof(*t->next)) < 0 ||
            grow(&t->dead, &t->dead_cap, t->ndead, sizeof(*t->dead)) < 0)
            return undo(t);
        if (p && (!l || p->pid < l->pid || (p->pid == l->pid && !is_same(t, p, l)))) {
            p->gone = true;
            t->dead[t->ndead++] = p;
            old++;
            continue;
        }
        if (p && p->pid == l->pid)
            old++;
        else if (!(p = proc_new(t, l)))
            return undo(t);
        t->next[t->nnext++] = p;
        i++;
    }
    return 0;
}

static void swap_tables(struct proc_table *t)
{
    struct proc **items = t->items;
    size_t cap = t->cap;
    t->changed |= t->ndead || t->nnext != t->n;
    t->items = t->next;
    t->n = t->nnext;
    t->cap = t->next_cap;
    t->next = items;
    t->next_cap = cap;
}

/* ---- the tree ---- */

/* The system has given those whose parent ended another one. */
static void look_after_orphans(struct proc_table *t)
{
    for (size_t i = 0; t->ndead && i < t->n; i++) {
        struct proc *p = t->items[i];
        if (!p->parent || !p->parent->gone)
            continue;
        p->read_at = 0;
        proc_table_look(t, p, false);
    }
    for (size_t i = 0; i < t->ndead; i++)
        proc_free(t, t->dead[i]);
}

static void link_all(struct proc_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        t->items[i]->child = t->items[i]->sibling = t->items[i]->parent = NULL;
    for (size_t i = t->n; i-- > 0;) { /* backwards, so that children are in ascending order */
        struct proc *p = t->items[i];
        struct proc *parent = p->stat.ppid ? proc_table_find(t, p->stat.ppid) : NULL;
        if (!parent || parent == p)
            continue;
        p->parent = parent;
        p->sibling = parent->child;
        parent->child = p;
    }
}

struct family {
    struct proc_table *t;
    int parent;
    uint64_t mark;
};
/* The first parent that names it has it. */
static void adopt(void *ctx, int pid)
{
    const struct family *f = ctx;
    struct proc *p = proc_table_find(f->t, pid);
    if (!p || p->mark == f->mark || pid == f->parent)
        return;
    p->mark = f->mark;
    p->stat.ppid = f->parent;
}

/* Where there is no stat, or /proc is a copy, the lists of children count. */
static void ask_parents(struct proc_table *t)
{
    struct family f = {.t = t, .mark = proc_table_mark(t)};
    for (size_t i = 0; i < t->n; i++)
        if (!t->items[i]->has_stat)
            t->items[i]->stat.ppid = 0;
    for (size_t i = 0; i < t->n; i++) {
        f.parent = t->items[i]->pid;
        procfs_children(t->fs, f.parent, adopt, &f);
    }
    t->changed = true;
}

/* Whether a listing would show what the last one has shown. */
static bool nothing_new(struct proc_table *t, const char *population)
{
    return *population && strcmp(population, t->population) == 0 && ++t->skipped < SKIP_MAX;
}

int proc_table_refresh(struct proc_table *t)
{
    char population[POPULATION_SIZE];
    procfs_population(t->fs, population);
    t->refreshes++;
    t->changed = t->refreshes == 1;
    t->open_max = open_files_max();
    if (nothing_new(t, population))
        return 0;
    *t->population = '\0';
    int r = list(t);
    if (r == 0)
        r = merge(t);
    if (r < 0)
        return r;
    memcpy(t->population, population, sizeof(population));
    t->skipped = 0;
    swap_tables(t);
    look_after_orphans(t);
    if (!t->fs->real)
        ask_parents(t);
    if (t->changed)
        link_all(t);
    return 0;
}
