/* The command line: what was asked for, and the commands that do their work and end. */
#ifndef MOTEL_COMMANDS_H
#define MOTEL_COMMANDS_H

#include "agent/motel_settings.h"

enum command {
    COMMAND_RUN, /* none given: be a collector */
    COMMAND_JOB, /* "run": be one beside a command */
    COMMAND_REPLAY,
    COMMAND_REPORT,
    COMMAND_VALIDATE,
    COMMAND_COMPONENTS,
    COMMAND_PRINT_CONFIG,
    COMMAND_EXPLAIN,
    COMMAND_HEALTH,
    COMMAND_DOCTOR,
    COMMAND_FEATUREGATE,
    COMMAND_VERSION,
    COMMAND_HELP,
};
enum print_format { FORMAT_YAML, FORMAT_JSON };

/* Exit codes of a mistake on the command line; the others have 1. */
#define EXIT_USAGE 2     /* replay, report */
#define EXIT_NOT_RUN 125 /* run: as timeout(1) and env(1) have it */

struct command_line {
    enum command command;
    enum command topic;            /* the one that was named, also with --help */
    struct config_source *sources; /* every --config in order, then every --set */
    size_t nsources, nconfigs;     /* of these, how many are --config */
    const char **gym_configs;      /* every --gym-config in order */
    size_t ngym_configs;
    struct motel_flag *flags;      /* settings of the motel: section */
    size_t nflags;
    enum print_format format;
    bool unchecked;   /* print-config --validate=false */
    const char *gate; /* featuregate: the one to show; NULL = all */
    const char **words; /* run: the command and its arguments, NULL ended; replay, report: files; health: an address; components: names */
    size_t nwords;
    struct replay_flags {
        const char *to, *protocol, *compression, *state;
        const char **headers, **attributes; /* "name=value" */
        size_t nheaders, nattributes;
        int64_t rate;
    } replay;
    struct report_flags {
        bool json, all;
        size_t max_traces;
    } report;
    struct health_flags {
        int64_t timeout_ns, wait_ns; /* 0 = not given; the first is doctor's, too */
        bool insecure;
    } health; /* and replay.headers */
};
/* 0, or -EINVAL with a text that names what is wrong. The strings of `argv` are used, not copied. */
int command_line_parse(int argc, char *const *argv, struct command_line *ret, struct err *reterr);
void command_line_done(struct command_line *cl);
/* Whether it names a configuration; else the built-in one runs. */
static inline bool command_line_configured(const struct command_line *cl) { return cl->nconfigs || cl->ngym_configs; }

/* The exit code of a mistake on this command line. */
int command_usage_exit(const struct command_line *cl);
/* Runs any command but COMMAND_RUN and COMMAND_JOB; the exit code. */
int command_run(const struct command_line *cl);
/* What the program does, or one command (COMMAND_RUN: all). */
void command_help(FILE *f, enum command topic);
bool command_help_of(FILE *f, enum command topic); /* only when it has a text of its own; false otherwise */

/* The value of --feature-gates: 0, or -EINVAL for an unknown gate or one that motel cannot switch. */
int feature_gates_check(const char *list, struct err *reterr);
/* All gates as a table, or one (-ENOENT with reterr when it is unknown). */
int feature_gates_print(FILE *f, const char *id, struct err *reterr);

/* A text in lines of at most 100 bytes, each after `indent` spaces. */
void help_print_wrapped(FILE *f, const char *text, int indent);

#endif
