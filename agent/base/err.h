/* What went wrong, in words for a person; filled by the callee, owned by the caller. Log it or return it, never both. */
#ifndef MOTEL_BASE_ERR_H
#define MOTEL_BASE_ERR_H

#include <stdarg.h>

#include "agent/base/cleanup.h"

struct err {
    char text[1024];
    char path[160];  /* the config key it is about, relative to the component ("protocols::grpc::endpoint"); "" = none */
    char file[256];  /* place in a config or input file; "" = none */
    int line, column; /* 1-based; 0 = none */
};

/* Sets the text (cut at its size) and returns `code`, a negative errno. `e` may be NULL. Path and place are cleared. */
int err_set(struct err *e, int code, const char *fmt, ...) _printf_(3, 4);
/* The same about one config key. */
int err_at(struct err *e, const char *path, const char *fmt, ...) _printf_(3, 4); /* returns -EINVAL */
int err_vat(struct err *e, const char *path, const char *fmt, va_list ap) _printf_(3, 0);
/* Says which config key it is about, and returns `code`. */
int err_about(struct err *e, int code, const char *path);
/* Puts text before the present one ("cannot open \"x\": " + "Permission denied"). */
void err_prefix(struct err *e, const char *fmt, ...) _printf_(2, 3);

#endif
