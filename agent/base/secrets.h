/*
 * The set of secret values that must not appear in rendered text. Filled once when the config is loaded (and added to
 * at a reload), read by log, the JSON writers and print-config. Lookups are lock free; an empty set costs one branch.
 */
#ifndef MOTEL_BASE_SECRETS_H
#define MOTEL_BASE_SECRETS_H

#include <stdbool.h>

#include "agent/base/buf.h"

#define SECRET_MIN_BYTES 6 /* a shorter value is not looked for: it would blank out ordinary text */
#define SECRET_PLACEHOLDER "[REDACTED]"

/* Adds a value; without a "Bearer " or "Basic " before it. It is also known as it stands in JSON strings and labels, after their escapes, and as a
 * number if it is one. Returns false when it is too short to be looked for. */
bool secrets_add(const char *value);
/* True once after there was no memory for a value or one of its forms: who adds secrets must not go on without them. */
bool secrets_lost(void);
/* Switches the lookups off or on (`motel: {redact}`); on at start. */
void secrets_enable(bool on);
/* True when there is anything to look for. */
bool secrets_active(void);
/* True when `text` holds a secret. */
bool secrets_found(struct bytes text);
/* True when the whole of `text` is a secret. */
bool secrets_equal(struct bytes text);
/* True when a secret is a number: then those in attributes have to be looked at, too. */
bool secrets_numeric(void);
/* True when the number, as text, is a secret. */
bool secrets_int(int64_t i);
bool secrets_double(double d);
/* Calls see() for each value, the longest first, also while the lookups are switched off; the values stay where they are. */
struct secret_view {
    struct bytes value;
    bool is_int, is_double; /* the numbers that secrets_int() and secrets_double() find */
    int64_t i;
    double d;
};
void secrets_each(void (*see)(void *ctx, const struct secret_view *v), void *ctx);
/* `text` was cut at its end: what may be the beginning of a secret there (SECRET_PART_BYTES or more) is taken away. */
#define SECRET_PART_BYTES 4
void secrets_trim(char *text);
/* Appends `text` with every secret replaced by the placeholder; 0, -ENOMEM or -EMSGSIZE. */
int secrets_redact(struct bytes text, struct buf *out);
/* Overwrites every secret in `text` with asterisks: for texts that strangers wrote and that are passed on. */
void secrets_blank(char *text);
/* Forgets all values (tests). */
void secrets_clear(void);

#endif
