/*
 * The writing thread of one file exporter. Batches wait in a bounded queue, so that a slow disk never holds up a receiver;
 * the thread renders and writes them, many in one write(2), and keeps them while the disk refuses.
 */
#ifndef MOTEL_EXPORTERS_FILE_WRITER_H
#define MOTEL_EXPORTERS_FILE_WRITER_H

#include "exporters/file/output.h"

struct writer;
/* Takes `output`. `flush_ns`: the longest time that a batch waits for others. `attribute`: of group_by, NULL = one file. The thread runs
 * when it returns. 0 or a negative errno with reterr. */
int writer_start(struct component *owner, struct output *output, uint64_t flush_ns, const char *attribute,
                 struct writer **ret, struct err *reterr);
/*
 * Takes `b`. OK: it is queued, and will be written unless the disk refuses until the deadline of the stop. PENDING: the same, but the
 * queue is long and the client is to wait. RETRY: the disk refuses, or the queue is at its limit.
 */
enum verdict writer_offer(struct writer *w, struct batch *b, struct ack *ack);
/* Writes what is queued, ends the thread and closes the files. What the disk does not take before the deadline is counted, logged and
 * dropped. True when everything is gone; false: the thread hangs in the system and is left behind with all it holds. */
bool writer_stop(struct writer *w, uint64_t deadline_ns);

#endif
