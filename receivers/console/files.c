/*
 * Which files there are and which of them are the same as before: renamed, copied away and cut, cut
 * in place, or written anew. A file that is found is, in this order: one that is open already (by
 * device and inode); one that was read by an earlier run; a copy of one whose content was cut
 * since; a copy of one that is still there, which is looked at again later; a new one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "receivers/console/console.h"

#define COPY_NS (3 * NS_PER_S)  /* a copy whose original is not cut by then is a file of its own */
#define GONE_NS (60 * NS_PER_S) /* a file without its name that is quiet so long is over */
#define TELLING_BYTES 16        /* fewer say nothing about where a file comes from */

/* ---- one file ---- */

static void warn_errno(struct console *c, const char *what, const char *path, int error)
{
    log_warn(&c->c.logger, what, LOG_STR("path", path), LOG_STR("error", strerror(error)));
}

/* A source for the file, at its beginning and not in the list yet. NULL when it cannot be opened.
 */
static struct source *open_file(struct console *c, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        if (fd < 0 && errno != ENOENT)
            warn_errno(c, "Cannot open a file", path, errno);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    struct source *s = source_new(c, SOURCE_FILE, path, fd);
    if (!s)
        return NULL;
    s->mark.dev = st.st_dev;
    s->mark.ino = st.st_ino;
    s->size = st.st_size;
    s->more = true;
    s->seen = true;
    return s;
}

static void begin(struct source *s, const struct console_range *held, size_t nheld, uint64_t offset)
{
    int r = source_resume(s, held, nheld, offset);
    if (r < 0)
        warn_errno(s->owner,
                   "Cannot go on where reading stopped; the file is read from its beginning",
                   s->path, -r);
    if (r < 0)
        source_restart(s);
    log_info(&s->owner->c.logger, "Reading file", LOG_STR("path", s->path),
             LOG_INT("offset", s->offset));
}

static void begin_at_mark(struct source *s, const struct mark *m)
{
    begin(s, m->held, m->nheld, m->offset);
}

/* ---- copies ---- */

/* Whether `s` holds what `other` held when it was read up to its mark, and `other` does no more. */
static bool was_cut_from(const struct source *s, const struct source *other)
{
    return other != s && other->kind == SOURCE_FILE && other->fd >= 0 && !other->copy &&
           !other->moved && other->mark.head_len >= TELLING_BYTES &&
           mark_matches(&other->mark, s->fd) && !mark_matches(&other->mark, other->fd);
}

/* Whether all that `s` holds is the beginning of `other`. */
static bool is_beginning_of(const struct mark *whole, const struct source *other)
{
    return other->kind == SOURCE_FILE && other->fd >= 0 && !other->copy && other->offset > 0 &&
           mark_matches(whole, other->fd);
}

/* Goes on in `s` where `other`, which was cut, was. */
static void take_over(struct source *s, struct source *other)
{
    struct mark now = {0};
    if (mark_hold(&now, other->reader) < 0)
        return;
    other->moved = true;
    begin(s, now.held, now.nheld, other->offset);
    mark_done(&now);
}

/* True while `s` looks like a copy that is being made. */
static bool still_copy(struct console *c, struct source *s)
{
    struct stat st;
    struct mark whole = {0};
    if (fstat(s->fd, &st) < 0 || mark_set(&whole, s->fd, (uint64_t)st.st_size) < 0)
        return false;
    if (!s->copy || st.st_size != s->size)
        s->quiet_ns = clock_now_ns();
    s->size = st.st_size;
    if (clock_now_ns() - s->quiet_ns > COPY_NS)
        return false;
    for (struct source *o = c->sources; o; o = o->next)
        if (o != s && is_beginning_of(&whole, o))
            return true;
    return false;
}

/* Goes on in `s` where a file was that was cut since it was copied to `s`. False if none was. */
static bool take_over_cut(struct console *c, struct source *s)
{
    for (struct source *o = c->sources; o; o = o->next) {
        if (was_cut_from(s, o)) {
            s->copy = false;
            take_over(s, o);
            return true;
        }
    }
    return false;
}

/* Where a file that is not known by its inode begins. The original may be cut between two looks at
 * it: then it is the beginning of none, and was not cut a moment ago. */
static void place(struct console *c, struct source *s)
{
    if (take_over_cut(c, s))
        return;
    bool copy = still_copy(c, s);
    if (!copy && take_over_cut(c, s))
        return;
    if (s->copy != copy || !copy) {
        s->copy = copy;
        if (!copy)
            begin(s, NULL, 0, 0);
    }
}

/* ---- files of an earlier run ---- */

static struct stored_file *stored_by_inode(struct console *c, const struct source *s)
{
    for (size_t i = 0; i < c->stored.n; i++) {
        struct stored_file *f = &c->stored.files[i];
        if (!f->used && f->mark.dev == s->mark.dev && f->mark.ino == s->mark.ino)
            return f;
    }
    return NULL;
}

static struct stored_file *stored_by_content(struct console *c, const struct source *s)
{
    for (size_t i = 0; i < c->stored.n; i++) {
        struct stored_file *f = &c->stored.files[i];
        if (!f->used && f->mark.head_len >= TELLING_BYTES && mark_matches(&f->mark, s->fd))
            return f;
    }
    return NULL;
}

static bool go_on(struct source *s, struct stored_file *f)
{
    if (!f || !mark_matches(&f->mark, s->fd))
        return false;
    f->used = true;
    begin_at_mark(s, &f->mark);
    return true;
}

/* Files that were renamed while nobody looked are read to their end, under whatever name they have
 * beside the old one. */
static void find_renamed(struct console *c, struct stored_file *f)
{
    char *slash = strrchr(f->path, '/');
    size_t len = slash ? (size_t)(slash - f->path) : 0;
    if (!slash)
        return;
    _cleanup_free_ char *folder = strndup(f->path, len ? len : 1);
    DIR *dir = folder ? opendir(folder) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        _cleanup_free_ char *path = NULL;
        if (e->d_ino != f->mark.ino || strcmp(e->d_name, slash + 1) == 0 ||
            asprintf(&path, "%s/%s", folder, e->d_name) < 0)
            continue;
        struct source *s = open_file(c, path);
        if (s && s->mark.dev == f->mark.dev && go_on(s, f)) {
            s->gone = true;
            s->quiet_ns = clock_now_ns();
            *sources_end(&c->sources) = s;
        } else {
            source_free(s);
        }
    }
    if (dir)
        closedir(dir);
}

/* ---- the scan ---- */

struct scan {
    struct console *c;
    struct source *found; /* new ones */
};

static struct source *by_inode(struct source *list, const struct stat *st)
{
    while (list && (list->kind != SOURCE_FILE || list->mark.ino != st->st_ino ||
                    list->mark.dev != st->st_dev))
        list = list->next;
    return list;
}

static void rename_source(struct source *s, const char *path)
{
    char *copy = strcmp(s->path, path) ? strdup(path) : NULL;
    if (!copy)
        return;
    log_debug(&s->owner->c.logger, "File was renamed", LOG_STR("from", s->path),
              LOG_STR("path", path));
    free(s->path);
    s->path = copy;
    s->owner->dirty = true;
}

/* The storage file, or the one that replaces it. */
static bool is_own(const struct console *c, const char *path)
{
    size_t len = c->own.n ? strlen(c->own.items[0]) : 0;
    return len && strncmp(path, c->own.items[0], len) == 0 &&
           (path[len] == 0 || strcmp(path + len, ".new") == 0);
}

static void on_found(void *ctx, const char *path, const struct stat *st)
{
    struct scan *scan = ctx;
    if (is_own(scan->c, path))
        return;
    struct source *s = by_inode(scan->c->sources, st);
    if (!s)
        s = by_inode(scan->found, st);
    else if (!s->seen)
        rename_source(s, path);
    if (s) {
        s->seen = true;
        s->gone = false;
    } else if (st->st_size > 0 ||
               !scan->c->scanned) { /* a copy is empty at first: wait for a byte */
        s = open_file(scan->c, path);
        if (s)
            *sources_end(&scan->found) = s;
    }
}

/* Puts those of the list into the instance's that `take` takes; the others stay. */
static void sort_out(struct scan *scan, bool (*take)(struct console *c, struct source *s))
{
    struct source **at = &scan->found;
    while (*at) {
        struct source *s = *at;
        if (!take(scan->c, s)) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        s->next = NULL;
        *sources_end(&scan->c->sources) = s;
    }
}

static bool take_known(struct console *c, struct source *s)
{
    return go_on(s, stored_by_inode(c, s));
}

static bool take_moved(struct console *c, struct source *s)
{
    return go_on(s, stored_by_content(c, s));
}

/* `start_at` is about files that were there before the first run; others are read whole. */
static bool take_new(struct console *c, struct source *s)
{
    if (c->scanned)
        place(c, s);
    else if (c->stored.n || c->config->start_at == START_AT_BEGINNING)
        begin(s, NULL, 0, 0);
    else
        begin(s, NULL, 0, (uint64_t)s->size);
    return true;
}

void files_scan(struct console *c)
{
    struct scan scan = {.c = c};
    if (c->include.n == 0)
        return;
    for (struct source *s = c->sources; s; s = s->next)
        s->seen = false;
    patterns_walk(&c->include, &c->exclude, on_found, &scan);
    sort_out(&scan, take_known);
    sort_out(&scan, take_moved);
    for (size_t i = 0; !c->scanned && i < c->stored.n; i++)
        if (!c->stored.files[i].used)
            find_renamed(c, &c->stored.files[i]);
    sort_out(&scan, take_new);
    for (struct source *s = c->sources; s; s = s->next) {
        if (s->kind == SOURCE_FILE && !s->seen && !s->gone) {
            s->gone = true;
            s->quiet_ns = clock_now_ns();
        }
        if (s->copy)
            place(c, s);
    }
    c->scanned = true;
}

/* ---- changes ---- */

static bool was_cut(struct source *s, const struct stat *st)
{
    if ((uint64_t)st->st_size < s->offset)
        return true;
    return s->mark.head_len && !mark_matches(&s->mark, s->fd);
}

bool files_check(struct source *s)
{
    struct stat st;
    if (s->copy || s->fd < 0 || fstat(s->fd, &st) < 0)
        return false;
    bool same = st.st_size == s->size && st.st_mtim.tv_sec == s->changed.tv_sec &&
                st.st_mtim.tv_nsec == s->changed.tv_nsec;
    if (same)
        return s->more;
    s->size = st.st_size;
    s->changed = st.st_mtim;
    if (s->gone)
        s->quiet_ns = clock_now_ns();
    if (was_cut(s, &st)) {
        files_scan(s->owner); /* a copy of what was cut may be there */
        log_info(&s->owner->c.logger, "File was cut or written anew; reading it from its beginning",
                 LOG_STR("path", s->path));
        return source_restart(s) == 0;
    }
    return true;
}

bool files_is_over(struct source *s)
{
    struct stat st;
    if (!s->gone || s->more || s->copy)
        return s->gone && s->copy;
    bool deleted = fstat(s->fd, &st) < 0 || st.st_nlink == 0;
    return clock_now_ns() - s->quiet_ns > (deleted ? COPY_NS : GONE_NS);
}
