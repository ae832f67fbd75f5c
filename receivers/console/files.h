/* Which files there are, and which of them are the same as before. */
#ifndef MOTEL_RECEIVERS_CONSOLE_FILES_H
#define MOTEL_RECEIVERS_CONSOLE_FILES_H

#include <sys/stat.h>

#include "agent/config/bind.h"
#include "receivers/console/source.h"

struct patterns {
    char **items;
    size_t n;
};
/* Absolute. 0 or -errno. */
int patterns_init(struct patterns *p, const struct cfg_list *list);
void patterns_done(struct patterns *p);
/* Calls `found` for each regular file that a pattern includes and none excludes; some may come twice. */
void patterns_walk(const struct patterns *include, const struct patterns *exclude,
                   void (*found)(void *ctx, const char *path, const struct stat *st), void *ctx);

/* Looks which files there are; new ones become sources. */
void files_scan(struct console *c);
/* Looks whether there is more in the file, and whether it was cut or written anew: it begins again then. True when it is worth a turn. */
bool files_check(struct source *s);
/* A file that has lost its name and is quiet: nobody writes to it any more. */
bool files_is_over(struct source *s);

#endif
