/* The table of flags; for commands_flags.c and commands_line.c. */
#ifndef MOTEL_COMMANDS_PARTS_H
#define MOTEL_COMMANDS_PARTS_H

#include "agent/commands.h"

#define COMMAND_BIT(command) (1u << (command))
#define COMMANDS_THAT_LOAD \
    (COMMAND_BIT(COMMAND_RUN) | COMMAND_BIT(COMMAND_JOB) | COMMAND_BIT(COMMAND_VALIDATE) | COMMAND_BIT(COMMAND_PRINT_CONFIG) | \
     COMMAND_BIT(COMMAND_EXPLAIN) | COMMAND_BIT(COMMAND_HEALTH) | COMMAND_BIT(COMMAND_DOCTOR))

struct command_flag {
    const char *name;
    char letter;       /* 0 = none */
    bool bare;         /* may stand without a value, which then is "true" */
    unsigned commands; /* where it is known */
    int (*apply)(struct command_line *cl, const char *value, struct err *reterr); /* 0 or a negative errno that says what was expected */
    const char *choices; /* "yaml|json": what can be given, for completions; NULL = see the help */
};
extern const struct command_flag command_flags[];
extern const size_t command_nflags; /* at most: */
#define COMMAND_FLAGS_MAX 64

/* Help texts that stand in files of their own. */
extern const char command_explain_help[], command_health_help[], command_doctor_help[], command_print_config_help[];

struct command_word { /* what a command is called; a second name of it follows the first */
    const char *name;
    enum command command;
};
extern const struct command_word command_words[];
extern const size_t command_nwords;

#endif
