/* Parsing the command line: --flag value, --flag=value, in any order with the command. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands.h"

#define ON(command) (1u << (command))
#define LOADS (ON(COMMAND_RUN) | ON(COMMAND_VALIDATE) | ON(COMMAND_PRINT_CONFIG))

struct flag {
    const char *name;
    char letter;       /* 0 = none */
    bool bare;         /* may stand without a value, which then is "true" */
    unsigned commands; /* where it is known */
    int (*apply)(struct command_line *cl, const char *value, struct err *reterr);
};

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

static const struct {
    const char *name;
    enum command command;
} commands[] = {
    {"validate", COMMAND_VALIDATE},         {"components", COMMAND_COMPONENTS},
    {"print-config", COMMAND_PRINT_CONFIG}, {"print-initial-config", COMMAND_PRINT_CONFIG},
    {"explain", COMMAND_EXPLAIN},           {"featuregate", COMMAND_FEATUREGATE},
    {"version", COMMAND_VERSION},           {"help", COMMAND_HELP},
};

static int add_source(struct command_line *cl, const char *uri, bool is_set, struct err *reterr)
{
    struct config_source *grown = realloc(cl->sources, (cl->nsources + 1) * sizeof(*grown));
    if (!grown)
        return err_set(reterr, -ENOMEM, "out of memory");
    cl->sources = grown;
    const size_t at = is_set ? cl->nsources : cl->nconfigs++;
    memmove(&grown[at + 1], &grown[at], (cl->nsources - at) * sizeof(*grown));
    grown[at] = (struct config_source){.uri = uri, .is_set = is_set};
    cl->nsources++;
    return 0;
}

static int apply_config(struct command_line *cl, const char *value, struct err *reterr)
{
    return add_source(cl, value, false, reterr);
}

static int apply_gym_config(struct command_line *cl, const char *value, struct err *reterr)
{
    const char **grown = realloc(cl->gym_configs, (cl->ngym_configs + 1) * sizeof(*grown));
    if (!grown)
        return err_set(reterr, -ENOMEM, "out of memory");
    cl->gym_configs = grown;
    grown[cl->ngym_configs++] = value;
    return 0;
}

static int apply_set(struct command_line *cl, const char *value, struct err *reterr)
{
    if (!strchr(value, '='))
        return err_set(reterr, -EINVAL,
                       "invalid argument \"%s\" for \"--set\" flag: missing equal sign", value);
    return add_source(cl, value, true, reterr);
}

static int apply_gates(struct command_line *cl _unused_, const char *value, struct err *reterr)
{
    return feature_gates_check(value, reterr);
}

static int apply_format(struct command_line *cl, const char *value, struct err *reterr)
{
    cl->format = strcmp(value, "json") == 0 ? FORMAT_JSON : FORMAT_YAML;
    if (cl->format == FORMAT_YAML && strcmp(value, "yaml") != 0)
        return err_set(reterr, -EINVAL,
                       "invalid argument \"%s\" for \"--format\" flag: expected yaml or json",
                       value);
    return 0;
}

static int apply_mode(struct command_line *cl _unused_, const char *value, struct err *reterr)
{
    if (strcmp(value, "redacted") == 0)
        return 0;
    return err_set(reterr, -EINVAL,
                   "invalid argument \"%s\" for \"--mode\" flag: motel never prints secrets; "
                   "expected redacted",
                   value);
}

static int parse_bool(const char *name, const char *value, bool *ret, struct err *reterr)
{
    *ret = strcmp(value, "true") == 0;
    if (!*ret && strcmp(value, "false") != 0)
        return err_set(reterr, -EINVAL,
                       "invalid argument \"%s\" for \"--%s\" flag: expected true or false", value,
                       name);
    return 0;
}

static int apply_validate(struct command_line *cl, const char *value, struct err *reterr)
{
    bool on = false;
    int r = parse_bool("validate", value, &on, reterr);
    cl->unchecked = r == 0 && !on;
    return r;
}

static int apply_version(struct command_line *cl, const char *value, struct err *reterr)
{
    bool on = false;
    int r = parse_bool("version", value, &on, reterr);
    if (r == 0 && on && cl->command != COMMAND_HELP)
        cl->command = COMMAND_VERSION;
    return r;
}

static int apply_help(struct command_line *cl, const char *value, struct err *reterr)
{
    bool on = false;
    int r = parse_bool("help", value, &on, reterr);
    if (r == 0 && on)
        cl->command = COMMAND_HELP;
    return r;
}

static const struct flag flags[] = {
    {"config", 0, false, LOADS, apply_config},
    {"gym-config", 0, false, LOADS | ON(COMMAND_EXPLAIN), apply_gym_config},
    {"set", 0, false, LOADS, apply_set},
    {"feature-gates", 0, false, LOADS, apply_gates},
    {"format", 0, false, ON(COMMAND_PRINT_CONFIG), apply_format},
    {"mode", 0, false, ON(COMMAND_PRINT_CONFIG), apply_mode},
    {"validate", 0, true, ON(COMMAND_PRINT_CONFIG), apply_validate},
    {"help", 'h', true, ~0u, apply_help},
    {"version", 'v', true, ON(COMMAND_RUN), apply_version},
};

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

static int unknown_flag(struct parser *p, const char *name)
{
    const char *names[ARRAY_SIZE(flags) + 64] = {0};
    char settings[64][48];
    size_t n = 0;
    for (; n < ARRAY_SIZE(flags); n++)
        names[n] = flags[n].name;
    for (size_t i = 0; motel_fields[i].key && i < ARRAY_SIZE(settings) - 1; i++) {
        motel_flag_name(&motel_fields[i], settings[i], sizeof(settings[i]));
        names[n++] = settings[i] + 2;
    }
    const char *near = cfg_suggest(name, names);
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
    for (const struct flag *f = flags; f < flags + ARRAY_SIZE(flags); f++) {
        if (strcmp(f->name, name) != 0)
            continue;
        narrow(p, f->commands, arg);
        int r = take_value(p, arg, equals, f->bare, &value);
        return r < 0 ? r : f->apply(p->cl, value, p->err);
    }
    const struct cfg_field *setting = motel_setting_of_flag(name);
    if (!setting)
        return unknown_flag(p, name);
    narrow(p, LOADS, arg);
    int r = take_value(p, arg, equals, false, &value);
    return r < 0 ? r : add_setting(p, setting, arg, value);
}

static int parse_short(struct parser *p, const char *arg)
{
    for (const struct flag *f = flags; f < flags + ARRAY_SIZE(flags); f++)
        if (f->letter && f->letter == arg[1] && !arg[2]) {
            narrow(p, f->commands, arg);
            return f->apply(p->cl, "true", p->err);
        }
    return err_set(p->err, -EINVAL, "unknown shorthand flag: '%c' in %s; motel --help lists all",
                   arg[1], arg);
}

static int parse_word(struct parser *p, const char *arg)
{
    if (p->named && p->cl->command == COMMAND_FEATUREGATE && !p->cl->gate) {
        p->cl->gate = arg;
        return 0;
    }
    const bool topic = p->cl->command == COMMAND_HELP; /* "help validate" */
    for (size_t i = 0; (!p->named || topic) && i < ARRAY_SIZE(commands); i++)
        if (strcmp(commands[i].name, arg) == 0) {
            p->named = true;
            if (p->cl->command == COMMAND_RUN)
                p->cl->command = commands[i].command;
            return 0;
        }
    if (access(arg, F_OK) == 0)
        return err_set(p->err, -EINVAL, "unknown command \"%s\"; did you mean --config %s?", arg,
                       arg);
    if (p->named)
        return err_set(p->err, -EINVAL, "unexpected argument \"%s\"", arg);
    const char *names[ARRAY_SIZE(commands) + 1] = {0};
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        names[i] = commands[i].name;
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
        !(p.allowed & ON(ret->command)))
        r = err_set(reterr, -EINVAL, "unknown flag: %.*s here", (int)strcspn(p.last_flag, "="),
                    p.last_flag);
    return r;
}

void command_line_done(struct command_line *cl)
{
    free(cl->sources);
    free(cl->gym_configs);
    free(cl->flags);
    *cl = (struct command_line){0};
}
