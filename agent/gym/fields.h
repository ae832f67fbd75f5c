/* The table of the telemetry fields: names, kinds, where they are looked for. For the files of this folder. */
#ifndef MOTEL_GYM_FIELDS_H
#define MOTEL_GYM_FIELDS_H

#include "agent/gym/telemetry.h"

enum field_kind {
    KIND_SWITCH,
    KIND_TEXT,
    KIND_CHOICE,
    KIND_SECONDS,
    KIND_MILLISECONDS, /* whole */
    KIND_IGNORED,      /* anything */
};

struct field {
    const char *name; /* in the block, with a dot before a key of memory_profiling */
    enum field_kind kind;
    const char *variable; /* behind NEMO_GYM_OTEL_ and NEMO_LENS_, or OTEL_EXPORTER_OTLP_ */
    const char *standard; /* a whole name instead */
    const char *last;     /* a variable that counts after the block */
    const char *def;
    const char *const *choices;
    bool no_block; /* a variable only */
    const char *note;
};

extern const struct field gym_fields[GYM_FIELD_COUNT], gym_otlp_fields[GYM_OTLP_COUNT];

/* "otlp or console", "seconds above 0 such as 0.5", as error texts say it. */
void field_expects(const struct field *f, char *ret, size_t size);

#endif
