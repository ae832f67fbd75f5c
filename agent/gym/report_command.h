/* `motel report`: from files to a verdict. */
#ifndef MOTEL_GYM_REPORT_COMMAND_H
#define MOTEL_GYM_REPORT_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

struct report_command {
    const char *const *files; /* "-" = stdin */
    size_t nfiles;
    bool json, all;
    size_t max_traces; /* 0 = the default */
};
/* Reads the files and prints the report on stdout. The exit code: 0 = propagation works, 1 = it is broken or nothing shows it, 2 = a file
 * could not be read or the report not be written. */
int report_files(const struct report_command *c);

#endif
