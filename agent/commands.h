/* The command line: what was asked for, and the commands that do their work and end. */
#ifndef MOTEL_COMMANDS_H
#define MOTEL_COMMANDS_H

#include "agent/motel_settings.h"

enum command {
    COMMAND_RUN, /* none given: be a collector */
    COMMAND_VALIDATE,
    COMMAND_COMPONENTS,
    COMMAND_PRINT_CONFIG,
    COMMAND_EXPLAIN,
    COMMAND_FEATUREGATE,
    COMMAND_VERSION,
    COMMAND_HELP,
};
enum print_format { FORMAT_YAML, FORMAT_JSON };

struct command_line {
    enum command command;
    struct config_source *sources; /* every --config in order, then every --set */
    size_t nsources, nconfigs;     /* of these, how many are --config */
    const char **gym_configs;      /* every --gym-config in order */
    size_t ngym_configs;
    struct motel_flag *flags;      /* settings of the motel: section */
    size_t nflags;
    enum print_format format;
    bool unchecked;   /* print-config --validate=false */
    const char *gate; /* featuregate: the one to show; NULL = all */
};
/* 0, or -EINVAL with a text that names what is wrong. The strings of `argv` are used, not copied. */
int command_line_parse(int argc, char *const *argv, struct command_line *ret, struct err *reterr);
void command_line_done(struct command_line *cl);
/* Whether it names a configuration; else the built-in one runs. */
static inline bool command_line_configured(const struct command_line *cl) { return cl->nconfigs || cl->ngym_configs; }

/* Runs any command but COMMAND_RUN; the exit code. */
int command_run(const struct command_line *cl);
void command_help(FILE *f);

/* The value of --feature-gates: 0, or -EINVAL for an unknown gate or one that motel cannot switch. */
int feature_gates_check(const char *list, struct err *reterr);
/* All gates as a table, or one (-ENOENT with reterr when it is unknown). */
int feature_gates_print(FILE *f, const char *id, struct err *reterr);

#endif
