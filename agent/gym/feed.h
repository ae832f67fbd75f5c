/* Reading files of telemetry (consoles' logs, the file exporter's files) into batches. */
#ifndef MOTEL_GYM_FEED_H
#define MOTEL_GYM_FEED_H

#include "agent/gym/input.h"
#include "proto/console.h"

struct feed {
    struct input *input;
    struct console_reader *reader;
    bool keep; /* the file may grow: what is unfinished at its end stays, see console_held(); set it after feed_open() */
};
/* Opens `path` ("-" = stdin). 0 or a negative errno with reterr, as input_open(). feed_done() afterwards in any case. */
int feed_open(struct feed *f, const char *path, const struct console_sink *sink, struct err *reterr);
void feed_done(struct feed *f);
/* Reads the next piece of the file and hands what is whole to the sink: 1 = there may be more, 0 = the end. A negative errno with
 * reterr: as input_read(), or what the sink said. */
int feed_step(struct feed *f, struct err *reterr);
/* Goes on where an earlier reading ended: `offset` is the end of what was read, `held` what was left half read (console_held()). Returns as
 * feed_step() but for the 1; -ESPIPE = the file has become shorter. */
int feed_resume(struct feed *f, const struct console_range *held, size_t n, uint64_t offset, struct err *reterr);

#endif
