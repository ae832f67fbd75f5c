/* What is stored between runs: where reading stopped in each file. */
#ifndef MOTEL_RECEIVERS_CONSOLE_PLACES_H
#define MOTEL_RECEIVERS_CONSOLE_PLACES_H

#include "receivers/console/source.h"

struct stored_file {
    char *path;
    struct mark mark;
    bool used;
};
struct places {
    struct stored_file *files;
    size_t n;
    bool dirty;
};
void places_done(struct places *st);
/* Reads the file; one that is not there or empty is a new one. 0, or -errno with reterr. */
int places_load(struct places *st, const char *path, struct err *reterr);
/* Writes the marks of all files, atomically. 0 or -errno. */
int places_save(const char *path, const struct source *sources);

#endif
