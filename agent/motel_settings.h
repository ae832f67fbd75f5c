/*
 * The settings that only motel knows: the `motel:` section of the configuration, each key also a flag (a_b is --a-b VALUE)
 * and a variable (MOTEL_A_B). A flag wins over a variable, a variable over the file.
 */
#ifndef MOTEL_MOTEL_SETTINGS_H
#define MOTEL_MOTEL_SETTINGS_H

#include "agent/config/config.h"
#include "agent/pipeline/host.h"

extern const struct cfg_field motel_fields[]; /* the one table */

struct motel_flag {
    const struct cfg_field *field;
    const char *flag; /* "--shutdown-timeout", for error texts */
    const char *value;
};
/* The setting of a flag name without its dashes ("shutdown-timeout"); NULL when there is none. */
const struct cfg_field *motel_setting_of_flag(const char *name);
/* "--shutdown-timeout" and "MOTEL_SHUTDOWN_TIMEOUT"; the result is cut at `size`. */
void motel_flag_name(const struct cfg_field *f, char *ret, size_t size);
void motel_variable_name(const struct cfg_field *f, char *ret, size_t size);

/* Fills `ret` from `section` (NULL = absent), the environment ("NAME=value" strings, NULL ended) and the flags. An unknown MOTEL_
 * variable becomes a warning of `c`, whose arena also holds the strings of `ret`. Mistakes go to errs; 0 or -EINVAL. */
int motel_settings_bind(struct config *c, const struct cfg_value *section, char *const *environment,
                        const struct motel_flag *flags, size_t nflags, struct cfg_errors *errs,
                        struct motel_settings *ret);

#endif
