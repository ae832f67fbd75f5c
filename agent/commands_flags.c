/* The flags of the command line: what they are called, where they are known, what they do. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/duration.h"
#include "agent/base/number.h"
#include "agent/commands_parts.h"

#define MAX_TRACES 50000000   /* of report: some 100 GB */
#define MAX_RATE 1000000000ll /* of replay: records a second */
#define MAX_TIME_NS (24 * 3600 * (int64_t)1000000000)

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
    if (cl->format == FORMAT_YAML && strcmp(value, "yaml") != 0 && strcmp(value, "text") != 0)
        return err_set(reterr, -EINVAL,
                       "invalid argument \"%s\" for \"--format\" flag: expected yaml or json "
                       "(doctor and explain: text or json)",
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

/* ---- report ---- */

static int apply_json(struct command_line *cl, const char *value, struct err *reterr)
{
    return parse_bool("json", value, &cl->report.json, reterr);
}

static int apply_all(struct command_line *cl, const char *value, struct err *reterr)
{
    return parse_bool("all", value, &cl->report.all, reterr);
}

static int parse_count(const char *name, const char *value, int64_t max, int64_t *ret,
                       struct err *reterr)
{
    if (number_parse_int(bytes_str(value), ret) && *ret > 0 && *ret <= max)
        return 0;
    return err_set(reterr, -EINVAL,
                   "invalid argument \"%s\" for \"--%s\" flag: expected a number from 1 to %lld",
                   value, name, (long long)max);
}

static int apply_max_traces(struct command_line *cl, const char *value, struct err *reterr)
{
    int64_t n = 0;
    int r = parse_count("max-traces", value, MAX_TRACES, &n, reterr);
    cl->report.max_traces = (size_t)n;
    return r;
}

/* ---- replay ---- */

static int apply_to(struct command_line *cl, const char *value, struct err *reterr _unused_)
{
    cl->replay.to = value;
    return 0;
}

static int apply_protocol(struct command_line *cl, const char *value, struct err *reterr _unused_)
{
    cl->replay.protocol = value; /* replay knows which there are */
    return 0;
}

static int apply_compression(struct command_line *cl, const char *value,
                             struct err *reterr _unused_)
{
    cl->replay.compression = value; /* the exporter knows */
    return 0;
}

static int apply_state(struct command_line *cl, const char *value, struct err *reterr _unused_)
{
    cl->replay.state = value;
    return 0;
}

static int apply_rate(struct command_line *cl, const char *value, struct err *reterr)
{
    return parse_count("rate", value, MAX_RATE, &cl->replay.rate, reterr);
}

static int add_text(const char ***list, size_t *n, const char *value, struct err *reterr)
{
    const char **grown = realloc(*list, (*n + 1) * sizeof(*grown));
    if (!grown)
        return err_set(reterr, -ENOMEM, "out of memory");
    *list = grown;
    grown[(*n)++] = value;
    return 0;
}

static int apply_header(struct command_line *cl, const char *value, struct err *reterr)
{
    return add_text(&cl->replay.headers, &cl->replay.nheaders, value, reterr);
}

static int apply_set_resource(struct command_line *cl, const char *value, struct err *reterr)
{
    return add_text(&cl->replay.attributes, &cl->replay.nattributes, value, reterr);
}

/* ---- health ---- */

static int parse_time(const char *name, const char *value, int64_t *ret, struct err *reterr)
{
    if (duration_parse(value, ret) == 0 && *ret > 0 && *ret <= MAX_TIME_NS)
        return 0;
    return err_set(reterr, -EINVAL,
                   "invalid argument \"%s\" for \"--%s\" flag: expected a time such as 3s, at "
                   "most 24h",
                   value, name);
}

static int apply_timeout(struct command_line *cl, const char *value, struct err *reterr)
{
    return parse_time("timeout", value, &cl->health.timeout_ns, reterr);
}

static int apply_wait(struct command_line *cl, const char *value, struct err *reterr)
{
    return parse_time("wait", value, &cl->health.wait_ns, reterr);
}

static int apply_insecure(struct command_line *cl, const char *value, struct err *reterr)
{
    return parse_bool("insecure", value, &cl->health.insecure, reterr);
}

/* ---- all ---- */

#define REPLAY COMMAND_BIT(COMMAND_REPLAY)

#define REPORT COMMAND_BIT(COMMAND_REPORT)

#define HEALTH COMMAND_BIT(COMMAND_HEALTH)

const struct command_flag command_flags[] = {
    {"config", 0, false, COMMANDS_THAT_LOAD, apply_config},
    {"gym-config", 0, false, COMMANDS_THAT_LOAD, apply_gym_config},
    {"set", 0, false, COMMANDS_THAT_LOAD, apply_set},
    {"feature-gates", 0, false, COMMANDS_THAT_LOAD, apply_gates},
    {"format", 0, false,
     COMMAND_BIT(COMMAND_PRINT_CONFIG) | COMMAND_BIT(COMMAND_DOCTOR) | COMMAND_BIT(COMMAND_EXPLAIN),
     apply_format, "yaml|json|text"},
    {"mode", 0, false, COMMAND_BIT(COMMAND_PRINT_CONFIG), apply_mode, "redacted"},
    {"validate", 0, true, COMMAND_BIT(COMMAND_PRINT_CONFIG), apply_validate},
    {"to", 0, false, REPLAY, apply_to},
    {"protocol", 0, false, REPLAY, apply_protocol, "grpc|http/protobuf|http/json"},
    {"compression", 0, false, REPLAY, apply_compression, "gzip|zstd|snappy|zlib|deflate|lz4|none"},
    {"header", 0, false, REPLAY | HEALTH, apply_header},
    {"set-resource", 0, false, REPLAY, apply_set_resource},
    {"rate", 0, false, REPLAY, apply_rate},
    {"state", 0, false, REPLAY, apply_state},
    {"json", 0, true, REPORT, apply_json},
    {"all", 0, true, REPORT, apply_all},
    {"max-traces", 0, false, REPORT, apply_max_traces},
    {"timeout", 0, false, HEALTH | COMMAND_BIT(COMMAND_DOCTOR), apply_timeout},
    {"wait", 0, false, HEALTH, apply_wait},
    {"insecure", 0, true, HEALTH, apply_insecure},
    {"help", 'h', true, ~0u, apply_help},
    {"version", 'v', true, COMMAND_BIT(COMMAND_RUN), apply_version},
};
const size_t command_nflags = ARRAY_SIZE(command_flags);
