/* Text outputs by name, for exporters that write lines. */
#ifndef MOTEL_PIPELINE_OUTPUT_H
#define MOTEL_PIPELINE_OUTPUT_H

#include "agent/base/outlet.h"
#include "agent/pipeline/host.h"

/* The output "stdout", "stderr" or a file, which is made when it is not there and appended to: one writer for all who ask for the same
 * name, so that their lines do not mix. NULL with reterr when it cannot be opened. */
struct shared *output_share(struct host *h, const char *name, struct err *reterr);
struct outlet *output_outlet(const struct shared *s);

#endif
