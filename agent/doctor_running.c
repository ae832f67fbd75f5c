/* Whether another process is a motel with the same configuration. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "agent/doctor_parts.h"

#define MAX_ARGUMENTS 256

struct arguments {
    struct buf *text;
    char *argv[MAX_ARGUMENTS + 1];
    int argc;
};

static int read_file(const char *path, struct buf *out)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : buf_append_fd(out, fd);
}

static int read_arguments(pid_t pid, struct arguments *ret)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    ret->text = buf_new(1 << 20);
    int r = ret->text ? read_file(path, ret->text) : -ENOMEM;
    if (r < 0 || !buf_str(ret->text))
        return -EIO;
    for (char *p = (char *)ret->text->data, *end = p + ret->text->len;
         p < end && ret->argc < MAX_ARGUMENTS; p += strlen(p) + 1)
        ret->argv[ret->argc++] = p;
    return ret->argc ? 0 : -ENOENT;
}

/* A path of that process, seen from here. */
static bool same_file(const char *theirs, const char *cwd, const char *ours)
{
    char at[PATH_MAX];
    theirs = strncmp(theirs, "file:", 5) == 0 ? theirs + 5 : theirs;
    ours = strncmp(ours, "file:", 5) == 0 ? ours + 5 : ours;
    if (*theirs == '/')
        snprintf(at, sizeof(at), "%s", theirs);
    else
        snprintf(at, sizeof(at), "%s/%s", cwd, theirs);
    _cleanup_free_ char *a = realpath(at, NULL), *b = realpath(ours, NULL);
    return a && b ? strcmp(a, b) == 0 : strcmp(theirs, ours) == 0;
}

static bool same_sources(const struct command_line *theirs, const char *cwd,
                         const struct command_line *ours)
{
    if (theirs->nsources != ours->nsources || theirs->nconfigs != ours->nconfigs ||
        theirs->ngym_configs != ours->ngym_configs)
        return false;
    for (size_t i = 0; i < ours->nsources; i++)
        if (ours->sources[i].is_set ? strcmp(theirs->sources[i].uri, ours->sources[i].uri) != 0
                                    : !same_file(theirs->sources[i].uri, cwd, ours->sources[i].uri))
            return false;
    for (size_t i = 0; i < ours->ngym_configs; i++)
        if (!same_file(theirs->gym_configs[i], cwd, ours->gym_configs[i]))
            return false;
    return true;
}

static bool is_motel(pid_t pid)
{
    char path[64], name[64] = "", own[PATH_MAX], theirs[PATH_MAX];
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    const ssize_t a = readlink("/proc/self/exe", own, sizeof(own)),
                  b = readlink(path, theirs, sizeof(theirs));
    if (a > 0 && a == b && memcmp(own, theirs, (size_t)a) == 0)
        return true;
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    _cleanup_fclose_ FILE *f = fopen(path, "re");
    return f && fgets(name, sizeof(name), f) && strncmp(name, "motel", 5) == 0;
}

enum probe_likeness doctor_likeness(const struct command_line *cl, pid_t pid)
{
    struct arguments a = {NULL};
    struct command_line theirs;
    struct err ignored;
    char link[64], cwd[PATH_MAX] = "";
    if (!is_motel(pid))
        return PROBE_STRANGER;
    snprintf(link, sizeof(link), "/proc/%d/cwd", (int)pid);
    const ssize_t n = readlink(link, cwd, sizeof(cwd) - 1);
    cwd[n > 0 ? n : 0] = 0;
    enum probe_likeness like = PROBE_MOTEL;
    if (read_arguments(pid, &a) == 0) {
        if (command_line_parse(a.argc, a.argv, &theirs, &ignored) == 0 &&
            same_sources(&theirs, cwd, cl))
            like = PROBE_SAME;
        command_line_done(&theirs);
    }
    buf_unref(a.text);
    return like;
}
