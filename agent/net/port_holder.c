#include "agent/net/port_holder.h"

#include <arpa/inet.h>
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

/* Who listens where: several may have the port, each at another address. */
struct search {
    char address[33]; /* as the kernel's tables have it; "" = a name, or every address */
    unsigned port;
    int rank; /* of what was found: this address, or all of them, before another one */
    unsigned long inode;
};

static void begin_search(const char *endpoint, struct search *s)
{
    uint32_t words[4] = {0};
    char host[64];
    const char *colon = strrchr(endpoint, ':'), *start = *endpoint == '[' ? endpoint + 1 : endpoint;
    *s = (struct search){.port = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0};
    snprintf(host, sizeof(host), "%.*s", (int)strcspn(start, *endpoint == '[' ? "]" : ":"), start);
    if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, words) == 1)
        snprintf(s->address, sizeof(s->address), "%08X", words[0]);
    else if (inet_pton(AF_INET6, host, words) == 1)
        snprintf(s->address, sizeof(s->address), "%08X%08X%08X%08X", words[0], words[1], words[2],
                 words[3]);
}

static void look_in(const char *table, struct search *s)
{
    char line[512], address[33];
    _cleanup_fclose_ FILE *f = fopen(table, "re");
    while (f && fgets(line, sizeof(line), f)) {
        unsigned local, state;
        unsigned long inode;
        if (sscanf(line, " %*d: %32[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*s %*s %lu", address, &local,
                   &state, &inode) != 4 ||
            local != s->port || state != LISTENING)
            continue;
        const int rank = strcmp(address, s->address) == 0     ? 3
                         : address[strspn(address, "0")] == 0 ? 2
                                                              : 1;
        if (rank > s->rank) {
            s->rank = rank;
            s->inode = inode;
        }
    }
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

void port_holder_find(const char *endpoint, struct port_holder *ret)
{
    struct search s;
    memset(ret, 0, sizeof(*ret));
    begin_search(endpoint, &s);
    look_in("/proc/net/tcp", &s);
    look_in("/proc/net/tcp6", &s);
    ret->found = s.inode != 0;
    if (s.inode)
        find_process(s.inode, ret);
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
