/* Errors for the person at the terminal: "Error: …" on stderr, secrets blanked out. */
#ifndef MOTEL_REPORT_H
#define MOTEL_REPORT_H

#include "agent/config/config.h"
#include "agent/config/errors.h"

/* Both return the exit code 1. An empty list means that there was no memory for one. */
int report_error(const struct err *e);
int report_errors(const struct cfg_errors *errs);
/* "Warning: …", a line each; NULL ok. */
void report_warnings(const struct config *c);
/* Says why there is nothing to do; returns the exit code 0. */
int report_idle(const char *why);
/* The mistakes as text, one a line; to be freed. NULL when out of memory. */
char *errors_text(const struct cfg_errors *errs);

#endif
