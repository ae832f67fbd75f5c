/* File names by patterns: * ? [a-z] within a name, ** for any number of folders. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>

#include "receivers/console/console.h"

/* An absolute form of `pattern`, without "." and empty parts; "**" at the end is all below. */
static char *absolute(const char *pattern)
{
    char cwd[PATH_MAX] = "";
    if (pattern[0] != '/' && !getcwd(cwd, sizeof(cwd)))
        return NULL;
    char *whole = NULL, *out;
    size_t len = strlen(pattern);
    bool all = len >= 2 && strcmp(pattern + len - 2, "**") == 0;
    if (asprintf(&whole, "%s/%s%s", cwd, pattern, all ? "/*" : "") < 0)
        return NULL;
    out = whole;
    for (const char *p = whole; *p;) {
        const char *end = strchrnul(p + 1, '/');
        size_t n = (size_t)(end - p);
        if (n > 1 && !(n == 2 && p[1] == '.')) {
            memmove(out, p, n);
            out += n;
        }
        p = end;
    }
    *out = 0;
    return whole;
}

int patterns_init(struct patterns *p, const struct cfg_list *list)
{
    const char *const *items = list->items;
    *p = (struct patterns){0};
    if (list->n && !(p->items = calloc(list->n, sizeof(*p->items))))
        return -ENOMEM;
    for (; p->n < list->n; p->n++)
        if (!(p->items[p->n] = absolute(items[p->n])))
            return errno == ENOENT ? -ENOENT : -ENOMEM;
    return 0;
}

void patterns_done(struct patterns *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->items[i]);
    free(p->items);
    *p = (struct patterns){0};
}

/* ---- matching ---- */

/* The length of the first part of "/a/b", without its slash; 0 at the end. */
static size_t part(const char *p)
{
    return *p ? (size_t)(strchrnul(p + 1, '/') - p - 1) : 0;
}

static bool is_any_depth(const char *pattern, size_t n)
{
    return n == 2 && pattern[1] == '*' && pattern[2] == '*';
}

static bool part_matches(const char *pattern, size_t n, const char *name)
{
    char one[NAME_MAX + 1];
    if (n > NAME_MAX)
        return false;
    memcpy(one, pattern + 1, n);
    one[n] = 0;
    return fnmatch(one, name, FNM_PERIOD) == 0;
}

static bool path_matches(const char *pattern, const char *path)
{
    char name[NAME_MAX + 1];
    size_t n = part(pattern), len = part(path);
    if (!*pattern || !*path)
        return *pattern == *path;
    if (is_any_depth(pattern, n))
        return path_matches(pattern + 1 + n, path) || path_matches(pattern, path + 1 + len);
    if (len > NAME_MAX)
        return false;
    memcpy(name, path + 1, len);
    name[len] = 0;
    return part_matches(pattern, n, name) && path_matches(pattern + 1 + n, path + 1 + len);
}

/* ---- walking ---- */

struct walk {
    const struct patterns *exclude;
    void (*found)(void *ctx, const char *path, const struct stat *st);
    void *ctx;
    char path[PATH_MAX];
};

static void walk(struct walk *w, size_t len, const char *pattern);

static void reached(struct walk *w)
{
    struct stat st;
    for (size_t i = 0; i < w->exclude->n; i++)
        if (path_matches(w->exclude->items[i], w->path))
            return;
    if (stat(w->path, &st) == 0 && S_ISREG(st.st_mode))
        w->found(w->ctx, w->path, &st);
}

/* Goes on in `name` of the folder that the path is, if it fits. */
static void enter(struct walk *w, size_t len, const char *name, size_t n, const char *rest)
{
    if (len + n + 2 > sizeof(w->path))
        return;
    w->path[len] = '/';
    memcpy(w->path + len + 1, name, n);
    w->path[len + 1 + n] = 0;
    walk(w, len + 1 + n, rest);
    w->path[len] = 0;
}

static bool is_folder(struct walk *w, size_t len, const struct dirent *e)
{
    struct stat st;
    if (e->d_type != DT_UNKNOWN)
        return e->d_type == DT_DIR;
    if (len + strlen(e->d_name) + 2 > sizeof(w->path))
        return false;
    snprintf(w->path + len, sizeof(w->path) - len, "/%s", e->d_name);
    bool folder = lstat(w->path, &st) == 0 && S_ISDIR(st.st_mode);
    w->path[len] = 0;
    return folder;
}

/* Each entry of the folder that matches the first part of `pattern`; under "**" each folder. */
static void each_entry(struct walk *w, size_t len, const char *pattern, size_t n)
{
    bool any_depth = is_any_depth(pattern, n);
    DIR *dir = opendir(len ? w->path : "/");
    if (!dir)
        return;
    for (struct dirent *e; (e = readdir(dir));) {
        bool fits = any_depth ? e->d_name[0] != '.' && is_folder(w, len, e)
                              : part_matches(pattern, n, e->d_name);
        if (fits)
            enter(w, len, e->d_name, strlen(e->d_name), any_depth ? pattern : pattern + 1 + n);
    }
    closedir(dir);
}

static bool has_wildcard(const char *p, size_t n)
{
    for (size_t i = 1; i <= n; i++)
        if (strchr("*?[\\", p[i]))
            return true;
    return false;
}

static void walk(struct walk *w, size_t len, const char *pattern)
{
    size_t n = part(pattern);
    if (!*pattern) {
        reached(w);
    } else if (is_any_depth(pattern, n)) {
        walk(w, len, pattern + 1 + n);
        each_entry(w, len, pattern, n);
    } else if (has_wildcard(pattern, n)) {
        each_entry(w, len, pattern, n);
    } else {
        enter(w, len, pattern + 1, n, pattern + 1 + n);
    }
}

void patterns_walk(const struct patterns *include, const struct patterns *exclude,
                   void (*found)(void *ctx, const char *path, const struct stat *st), void *ctx)
{
    struct walk *w = malloc(sizeof(*w));
    if (!w)
        return;
    *w = (struct walk){.exclude = exclude, .found = found, .ctx = ctx};
    for (size_t i = 0; i < include->n; i++) {
        w->path[0] = 0;
        walk(w, 0, include->items[i]);
    }
    free(w);
}
