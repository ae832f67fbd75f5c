/*
 * Where a writer puts records: its open files (one, or with group_by as many as are allowed, the least recently used closed
 * first) and the text that is collected for the next write. Not thread safe.
 */
#ifndef MOTEL_EXPORTERS_FILE_OUTPUT_H
#define MOTEL_EXPORTERS_FILE_OUTPUT_H

#include "exporters/file/outfile.h"
#include "exporters/file/render.h"

struct output_options {
    struct host *host;
    struct renderer *renderer;   /* borrowed */
    struct outfile_options file; /* path: the one file; or, with group_by, the pattern */
    bool grouped;
    mode_t directory_mode;       /* grouped: of directories that are made */
    size_t max_open_files;       /* grouped */
};

struct output;
struct output *output_new(const struct output_options *o); /* NULL: no memory */
struct output *output_free(struct output *o);              /* closes the files; NULL ok; returns NULL */
/* Makes the file of `segment` (grouped; else NULL) the one that is written to. 0 or a negative errno with reterr. */
int output_select(struct output *o, const char *segment, struct err *reterr);
/* Renders one more record; a long one goes to the file as it is rendered. 0 or a negative errno; -EAGAIN: the file was changed by somebody
 * meanwhile, and the record is to be added again after the flush. */
int output_add(struct output *o, const struct batch *b);
/* True when enough is collected for a write. */
bool output_full(const struct output *o);
/* Writes what was added. *ret_written: how many records are in the file, the first ones. The rest is forgotten. 0 or a negative
 * errno with reterr. */
int output_flush(struct output *o, size_t *ret_written, struct err *reterr);

#endif
