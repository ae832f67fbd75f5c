/* Parsing the command line: --flag value, --flag=value, in any order with the command. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands_parts.h"

#define COMMANDS_WITH_WORDS                                                                        \
    (COMMAND_BIT(COMMAND_REPLAY) | COMMAND_BIT(COMMAND_REPORT) | COMMAND_BIT(COMMAND_COMPONENTS))

struct parser {
    int argc;
    char *const *argv;
    int i;
    struct command_line *cl;
    struct err *err;
    unsigned allowed;      /* the commands for which all flags so far are known */
    const char *last_flag; /* the one that narrowed `allowed` */
    bool named;            /* a command was given */
    bool over;             /* after "--" */
};

const struct command_word command_words[] = {
    {"run", COMMAND_JOB},
    {"replay", COMMAND_REPLAY},
    {"report", COMMAND_REPORT},
    {"validate", COMMAND_VALIDATE},
    {"components", COMMAND_COMPONENTS},
    {"print-config", COMMAND_PRINT_CONFIG},
    {"print-initial-config", COMMAND_PRINT_CONFIG},
    {"explain", COMMAND_EXPLAIN},
    {"health", COMMAND_HEALTH},
    {"doctor", COMMAND_DOCTOR},
    {"featuregate", COMMAND_FEATUREGATE},
    {"version", COMMAND_VERSION},
    {"help", COMMAND_HELP},
};
const size_t command_nwords = ARRAY_SIZE(command_words);

/* The value of a flag: behind its equals sign, or the next argument. */
static int take_value(struct parser *p, const char *arg, const char *equals, bool bare,
                      const char **ret)
{
    if (equals)
        *ret = equals + 1;
    else if (bare)
        *ret = "true";
    else if (p->i + 1 < p->argc)
        *ret = p->argv[++p->i];
    else
        return err_set(p->err, -EINVAL, "flag needs an argument: %s", arg);
    return 0;
}

/* The name that begins with `word` when there is one such name only. */
static const char *completed(const char *word, const char *const *names)
{
    const char *found = NULL;
    for (; *names; names++)
        if (strncmp(*names, word, strlen(word)) == 0) {
            if (found)
                return NULL;
            found = *names;
        }
    return found;
}

static int unknown_flag(struct parser *p, const char *name)
{
    const char *names[COMMAND_FLAGS_MAX + 64] = {0};
    char settings[64][48];
    size_t n = 0;
    for (; n < command_nflags; n++)
        names[n] = command_flags[n].name;
    for (size_t i = 0; motel_fields[i].key && i < ARRAY_SIZE(settings) - 1; i++) {
        motel_flag_name(&motel_fields[i], settings[i], sizeof(settings[i]));
        names[n++] = settings[i] + 2;
    }
    const char *near = completed(name, names);
    if (!near)
        near = cfg_suggest(name, names);
    return err_set(p->err, -EINVAL, "unknown flag: --%s%s%s%s", name,
                   near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
}

static int add_setting(struct parser *p, const struct cfg_field *field, const char *arg,
                       const char *value)
{
    struct command_line *cl = p->cl;
    struct motel_flag *grown = realloc(cl->flags, (cl->nflags + 1) * sizeof(*grown));
    if (!grown)
        return err_set(p->err, -ENOMEM, "out of memory");
    cl->flags = grown;
    cl->flags[cl->nflags++] = (struct motel_flag){.field = field, .flag = arg, .value = value};
    return 0;
}

static void narrow(struct parser *p, unsigned known, const char *arg)
{
    p->allowed &= known;
    if (known != ~0u)
        p->last_flag = arg;
}

static int parse_long(struct parser *p, const char *arg)
{
    const char *equals = strchr(arg, '='), *value = NULL;
    _cleanup_free_ char *name = strndup(arg + 2, equals ? (size_t)(equals - arg - 2) : strlen(arg));
    if (!name)
        return err_set(p->err, -ENOMEM, "out of memory");
    for (const struct command_flag *f = command_flags; f < command_flags + command_nflags; f++) {
        if (strcmp(f->name, name) != 0)
            continue;
        narrow(p, f->commands, arg);
        int r = take_value(p, arg, equals, f->bare, &value);
        return r < 0 ? r : f->apply(p->cl, value, p->err);
    }
    const struct cfg_field *setting = motel_setting_of_flag(name);
    if (!setting)
        return unknown_flag(p, name);
    narrow(p, COMMANDS_THAT_LOAD, arg);
    int r = take_value(p, arg, equals, false, &value);
    return r < 0 ? r : add_setting(p, setting, arg, value);
}

static int parse_short(struct parser *p, const char *arg)
{
    for (const struct command_flag *f = command_flags; f < command_flags + command_nflags; f++)
        if (f->letter && f->letter == arg[1] && !arg[2]) {
            narrow(p, f->commands, arg);
            return f->apply(p->cl, "true", p->err);
        }
    return err_set(p->err, -EINVAL, "unknown shorthand flag: '%c' in %s; motel --help lists all",
                   arg[1], arg);
}

static int add_word(struct command_line *cl, const char *arg, struct err *reterr)
{
    const char **grown = realloc(cl->words, (cl->nwords + 2) * sizeof(*grown));
    if (!grown)
        return err_set(reterr, -ENOMEM, "out of memory");
    cl->words = grown;
    grown[cl->nwords++] = arg;
    grown[cl->nwords] = NULL;
    return 0;
}

/* The command that is to be run; everything behind it is its own. */
static int take_job(struct parser *p)
{
    int r = 0;
    for (; r == 0 && p->i < p->argc; p->i++)
        r = add_word(p->cl, p->argv[p->i], p->err);
    return r;
}

/* motel help COMMAND */
static int set_topic(struct parser *p, const char *arg)
{
    for (size_t i = 0; i < ARRAY_SIZE(command_words); i++)
        if (strcmp(command_words[i].name, arg) == 0) {
            p->cl->topic = command_words[i].command;
            return 0;
        }
    return err_set(p->err, -EINVAL, "unknown command \"%s\"; motel help lists them", arg);
}

static int parse_word(struct parser *p, const char *arg)
{
    if (p->named && p->cl->topic == COMMAND_HELP)
        return set_topic(p, arg);
    if (p->named && p->cl->command == COMMAND_JOB)
        return take_job(p);
    const enum command c = p->cl->command;
    if (p->named &&
        (COMMANDS_WITH_WORDS & COMMAND_BIT(c) || (c == COMMAND_HEALTH && p->cl->nwords == 0)))
        return add_word(p->cl, arg, p->err);
    if (p->named && p->cl->command == COMMAND_FEATUREGATE && !p->cl->gate) {
        p->cl->gate = arg;
        return 0;
    }
    const bool topic = p->cl->command == COMMAND_HELP; /* "help validate" */
    for (size_t i = 0; (!p->named || topic) && i < ARRAY_SIZE(command_words); i++)
        if (strcmp(command_words[i].name, arg) == 0) {
            p->named = true;
            p->cl->topic = command_words[i].command;
            if (p->cl->command == COMMAND_RUN)
                p->cl->command = command_words[i].command;
            return 0;
        }
    if (access(arg, F_OK) == 0)
        return err_set(p->err, -EINVAL, "unknown command \"%s\"; did you mean --config %s?", arg,
                       arg);
    if (p->named)
        return err_set(p->err, -EINVAL, "unexpected argument \"%s\"", arg);
    const char *names[ARRAY_SIZE(command_words) + 1] = {0};
    for (size_t i = 0; i < ARRAY_SIZE(command_words); i++)
        names[i] = command_words[i].name;
    const char *near = cfg_suggest(arg, names);
    return err_set(p->err, -EINVAL, "unknown command \"%s\" for \"motel\"%s%s%s", arg,
                   near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static int parse_one(struct parser *p)
{
    const char *arg = p->argv[p->i];
    if (p->over || arg[0] != '-' || !arg[1])
        return parse_word(p, arg);
    if (strcmp(arg, "--") == 0) {
        p->over = true;
        return 0;
    }
    return arg[1] == '-' ? parse_long(p, arg) : parse_short(p, arg);
}

int command_line_parse(int argc, char *const *argv, struct command_line *ret, struct err *reterr)
{
    *ret = (struct command_line){0};
    struct parser p = {.argc = argc, .argv = argv, .cl = ret, .err = reterr, .allowed = ~0u};
    int r = 0;
    for (p.i = 1; r == 0 && p.i < argc; p.i++)
        r = parse_one(&p);
    if (r == 0 && ret->command != COMMAND_HELP && ret->command != COMMAND_VERSION &&
        !(p.allowed & COMMAND_BIT(ret->command)))
        r = err_set(reterr, -EINVAL, "unknown flag: %.*s here", (int)strcspn(p.last_flag, "="),
                    p.last_flag);
    return r;
}

void command_line_done(struct command_line *cl)
{
    free(cl->sources);
    free(cl->gym_configs);
    free(cl->flags);
    free(cl->words);
    free(cl->replay.headers);
    free(cl->replay.attributes);
    *cl = (struct command_line){0};
}
