#include "agent/net/port_holder.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/cleanup.h"

#define LISTENING 0x0a  /* TCP_LISTEN in /proc/net/tcp */
#define ACCEPTS 0x10000 /* __SO_ACCEPTCON in /proc/net/unix; connections have the path, too */

static void cleanup_dir(DIR **d)
{
    if (*d)
        closedir(*d);
}

/* The inode of the socket that listens; 0 = none. */
static unsigned long listening_inode(const char *table, unsigned port)
{
    char line[512];
    _cleanup_fclose_ FILE *f = fopen(table, "re");
    while (f && fgets(line, sizeof(line), f)) {
        unsigned local, state;
        unsigned long inode;
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*s %*s %lu", &local, &state,
                   &inode) == 3 &&
            local == port && state == LISTENING)
            return inode;
    }
    return 0;
}

/* The path is the rest of the line, and may have spaces in it. */
static unsigned long unix_inode(const char *path)
{
    char line[512];
    _cleanup_fclose_ FILE *f = fopen("/proc/net/unix", "re");
    while (f && fgets(line, sizeof(line), f)) {
        unsigned long inode, flags;
        int at = 0;
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "%*s %*s %*s %lx %*s %*s %lu %n", &flags, &inode, &at) == 2 && at &&
            flags & ACCEPTS && strcmp(line + at, path) == 0)
            return inode;
    }
    return 0;
}

static bool process_has(const char *pid, const char *wanted)
{
    char path[300], target[64];
    snprintf(path, sizeof(path), "/proc/%s/fd", pid);
    _cleanup_(cleanup_dir) DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        const ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = 0;
        if (n > 0 && strcmp(target, wanted) == 0)
            return true;
    }
    return false;
}

static void read_name(const char *pid, char *ret, size_t size)
{
    char path[300];
    snprintf(path, sizeof(path), "/proc/%s/comm", pid);
    _cleanup_fclose_ FILE *f = fopen(path, "re");
    if (!f || !fgets(ret, (int)size, f))
        snprintf(ret, size, "?");
    ret[strcspn(ret, "\n")] = 0;
}

static void find_process(unsigned long inode, struct port_holder *ret)
{
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
    _cleanup_(cleanup_dir) DIR *d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!isdigit((unsigned char)e->d_name[0]) || !process_has(e->d_name, wanted))
            continue;
        ret->pid = (pid_t)strtol(e->d_name, NULL, 10);
        read_name(e->d_name, ret->name, sizeof(ret->name));
        return;
    }
}

void port_holder_find(unsigned port, struct port_holder *ret)
{
    memset(ret, 0, sizeof(*ret));
    unsigned long inode = listening_inode("/proc/net/tcp", port);
    if (!inode)
        inode = listening_inode("/proc/net/tcp6", port);
    ret->found = inode != 0;
    if (inode)
        find_process(inode, ret);
}

void port_holder_find_unix(const char *path, struct port_holder *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->is_unix = true;
    const unsigned long inode = unix_inode(path);
    ret->found = inode != 0;
    if (inode)
        find_process(inode, ret);
}
