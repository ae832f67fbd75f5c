/* All mistakes of a configuration, reported in one go. */
#ifndef MOTEL_CONFIG_ERRORS_H
#define MOTEL_CONFIG_ERRORS_H

#include "agent/base/err.h"
#include "agent/config/value.h"

struct cfg_errors {
    struct err *items;
    size_t n, cap;
    size_t dropped; /* beyond 100 */
};
/* Adds "path: text" at a place. `path` is the full one ("receivers::otlp::protocols::grpc::endpoint"). */
void cfg_error(struct cfg_errors *e, struct cfg_pos pos, const char *path, const char *fmt, ...) _printf_(4, 5);
void cfg_errors_done(struct cfg_errors *e);
/* One line each: "collector.yaml:12:7: receivers::otlp::…: expected a duration such as \"5s\", got int 5". */
void cfg_errors_print(const struct cfg_errors *e, FILE *f);
/* The nearest of the NULL-ended names by edit distance, close enough to suggest; NULL when none is. */
const char *cfg_suggest(const char *word, const char *const *names);

#endif
