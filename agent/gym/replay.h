/* `motel replay`: what files hold is sent to a backend, or written to another file or to stdout. */
#ifndef MOTEL_GYM_REPLAY_H
#define MOTEL_GYM_REPLAY_H

#include "agent/pipeline/host.h"

struct replay_command {
    const char *const *files; /* "-" = stdin */
    size_t nfiles;
    const char *to;           /* URL, file:PATH, PATH or "-"; NULL = OTEL_EXPORTER_OTLP_ENDPOINT */
    const char *protocol;     /* "grpc", "http/protobuf", "http/json"; NULL = by the variable or the URL */
    const char *compression;  /* NULL = the exporter's default */
    const char *const *headers, *const *attributes; /* "name=value"; for the backend; for every resource */
    size_t nheaders, nattributes;
    int64_t rate;             /* records a second; 0 = as fast as it goes */
    const char *state;        /* file that remembers what was delivered; NULL = none */
    const struct motel_settings *settings;
};
/* The exit code: 0 = all was delivered, 1 = something was not, 2 = nothing was tried: the command line or a file is no use. */
int replay_run(const struct replay_command *c);

#endif
