/* group_by: a batch taken apart by the value of a resource attribute, which names the file. */
#ifndef MOTEL_EXPORTERS_FILE_GROUP_H
#define MOTEL_EXPORTERS_FILE_GROUP_H

#include "proto/batch.h"

struct group {
    char *segment; /* the attribute's value; no NUL in it */
    struct batch *batch;
};
struct groups {
    struct group *items;
    size_t n;
    uint32_t without; /* records of resources that have no such string attribute, or one that cannot be a file name */
};
/* Takes `b` (borrowed) apart by `attribute`; groups are in the order of their first resource. 0 or -ENOMEM; groups_done() either way. */
int group_batch(struct batch *b, const char *attribute, struct groups *ret);
void groups_done(struct groups *g);
/* Appends the path of a segment: `pattern` with its `*` replaced, cleaned; never outside of what stands before the `*`. 0 or -ENOMEM. */
int group_path(const char *pattern, const char *segment, struct buf *out);

#endif
