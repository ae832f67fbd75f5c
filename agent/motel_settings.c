#include "agent/motel_settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/base/cgroup.h"
#include "agent/config/tree.h"
#include "agent/pipeline/settings.h"

#define VARIABLE_PREFIX "MOTEL_"
#define MEMORY_LIMIT_MIN (8 << 20) /* less than the program itself needs */

const struct cfg_field motel_fields[] = {
    {.key = "redact",
     .kind = BIND_BOOL,
     CFG_AT(struct motel_settings, redact),
     .def = "true",
     .help = "Writes [REDACTED] in place of secrets in files, console output and logs."},
    {.key = "shutdown_timeout",
     .kind = BIND_DURATION,
     CFG_AT(struct motel_settings, shutdown_timeout_ns),
     .def = "25s",
     CFG_MORE(.min = 0, .max = 3600e9),
     .help = "Longest time that a stop may take to deliver what was received."},
    {.key = "stop_delay",
     .kind = BIND_DURATION,
     CFG_AT(struct motel_settings, stop_delay_ns),
     .def = "0s",
     CFG_MORE(.min = 0, .max = 3600e9),
     .help = "How long everything goes on after SIGTERM, for clients that were told to end at the "
             "same time; part of shutdown_timeout. SIGINT stops at once."},
    {.key = "file_mode",
     .kind = BIND_OCTAL,
     CFG_AT(struct motel_settings, file_mode),
     .help = "Permissions of files that exporters create, such as \"0600\"; the umask applies."},
    {.key = "spill_directory",
     .kind = BIND_STRING,
     CFG_AT(struct motel_settings, spill_directory),
     .use = CFG_KEEPS_FILE,
     .help = "Directory where full sending queues go on, and where what a stop could not deliver "
             "waits for the next start. It is created. Without it full queues refuse data."},
    {.key = "memory_limit",
     .kind = BIND_STRING,
     CFG_AT(struct motel_settings, memory_limit_text),
     .any_scalar = true,
     .help = "Most memory that the process may use, in MiB or with a unit (512MiB, 1GiB) or as a "
             "share of the machine or container (25%); from 80 % of it on new data is refused. "
             "none = no limit. Without it 80 % of the container's limit, if there is one."},
    {.key = "summary",
     .kind = BIND_STRING,
     CFG_AT(struct motel_settings, summary),
     .help = "File for the summary of the run; none = no file. Without it summary.json beside the "
             "file of "
             "the first file exporter, if there is one."},
    {.key = "max_connections",
     .kind = BIND_INT,
     CFG_AT(struct motel_settings, max_connections),
     CFG_MORE(.min = 0, .max = 1e+06),
     .help = "Connections of clients that all listeners together take; 0 means three "
             "quarters of the open files allowed."},
    {.key = "max_header_bytes",
     .kind = BIND_INT,
     CFG_AT(struct motel_settings, max_header_bytes),
     .def = "16384",
     CFG_MORE(.unit = "bytes", .min = 1024, .max = 65536),
     .help = "Largest head of an HTTP/1 request; HTTP/2 has four times that."},
    {.key = "max_nesting",
     .kind = BIND_INT,
     CFG_AT(struct motel_settings, max_nesting),
     .def = "64",
     CFG_MORE(.min = 1, .max = 64),
     .help = "Lists and maps inside each other in one value."},
    {.key = "max_attributes",
     .kind = BIND_INT,
     CFG_AT(struct motel_settings, max_attributes),
     .def = "65536",
     CFG_MORE(.min = 1, .max = 1e+06),
     .help = "Attributes of one record, resource or scope, and entries of one map."},
    {.key = "max_decompression_ratio",
     .kind = BIND_INT,
     CFG_AT(struct motel_settings, max_decompression_ratio),
     .def = "2000",
     CFG_MORE(.min = 1, .max = 1e+06),
     .help = "How many times larger than it came a request of more than 1 MiB may be when it "
             "is decompressed."},
    {.key = "client_timeout",
     .kind = BIND_DURATION,
     CFG_AT(struct motel_settings, client_timeout_ns),
     .def = "60s",
     CFG_MORE(.min = 1e9, .max = 3600e9),
     .help = "Time for the head of a request, for a body without progress and for an answer "
             "to be taken, where a receiver does not say otherwise."},
    {.key = "request_timeout",
     .kind = BIND_DURATION,
     CFG_AT(struct motel_settings, request_timeout_ns),
     .def = "10m",
     CFG_MORE(.min = 1e9, .max = 86400e9),
     .help = "Longest time that a client may take to send one request."},
    {.key = "stream_reset_burst",
     .kind = BIND_INT,
     CFG_AT(struct motel_settings, stream_reset_burst),
     .def = "10000",
     CFG_MORE(.min = 1, .max = 1e+06),
     .help = "Frames without use, such as resets and pings, that a client may send on one HTTP/2 "
             "connection before stream_reset_rate applies."},
    {.key = "stream_reset_rate",
     .kind = BIND_INT,
     CFG_AT(struct motel_settings, stream_reset_rate),
     .def = "500",
     CFG_MORE(.min = 1, .max = 1e+06),
     .help = "The same, a second, from then on."},
    {0}};

const struct cfg_field *motel_setting_of_flag(const char *name)
{
    for (const struct cfg_field *f = motel_fields; f->key; f++) {
        char flag[64];
        motel_flag_name(f, flag, sizeof(flag));
        if (strcmp(flag + 2, name) == 0)
            return f;
    }
    return NULL;
}

void motel_flag_name(const struct cfg_field *f, char *ret, size_t size)
{
    snprintf(ret, size, "--%s", f->key);
    for (char *p = ret; *p; p++)
        if (*p == '_')
            *p = '-';
}

void motel_variable_name(const struct cfg_field *f, char *ret, size_t size)
{
    snprintf(ret, size, VARIABLE_PREFIX "%s", f->key);
    for (char *p = ret; *p; p++)
        *p = (char)toupper((unsigned char)*p);
}

/* The settings as one map: the file's keys, and what variables and flags put in their place. */
struct merge {
    struct config *config;
    struct cfg_value *map;
    bool no_memory;
};

/* Text from outside YAML is read as the text of an ${env:…} is: numbers and truth values where a
 * setting wants one. */
static void put_text(struct merge *m, const struct cfg_field *f, const char *text,
                     const char *origin)
{
    struct arena *a = m->config->arena;
    const struct cfg_pos pos = {.file = arena_strdup(a, origin)};
    struct cfg_value *v = cfg_new_plain(a, pos, text, strlen(text));
    const size_t i = cfg_index(m->map, f->key);
    if (v)
        v->expanded = true;
    if (v && i < m->map->n)
        m->map->items[i] = v;
    else if (!v || cfg_append(a, m->map, f->key, pos, v) < 0)
        m->no_memory = true;
}

/* A map of the file's settings that may be changed. */
static struct cfg_value *copy_section(struct arena *a, const struct cfg_value *section)
{
    struct cfg_value *map = cfg_new(a, CFG_MAP, section ? section->pos : (struct cfg_pos){0});
    for (size_t i = 0; map && section && i < section->n; i++)
        if (cfg_append(a, map, section->keys[i], section->key_pos[i], section->items[i]) < 0)
            return NULL;
    return map;
}

static void warn_unknown(struct merge *m, const char *name)
{
    char variables[32][64];
    const char *names[ARRAY_SIZE(variables) + 1] = {0};
    for (size_t i = 0; motel_fields[i].key && i < ARRAY_SIZE(variables); i++) {
        motel_variable_name(&motel_fields[i], variables[i], sizeof(variables[i]));
        names[i] = variables[i];
    }
    const char *near = cfg_suggest(name, names);
    config_warn(m->config, "the environment variable %s is not known to motel %s%s%s%s", name,
                MOTEL_VERSION, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

/* One "NAME=value" of the environment; an empty value counts as not set. */
static void put_variable(struct merge *m, const char *entry)
{
    const char *equals = strchr(entry, '=');
    if (!equals || strncmp(entry, VARIABLE_PREFIX, strlen(VARIABLE_PREFIX)) != 0)
        return;
    char *name = arena_strndup(m->config->arena, entry, (size_t)(equals - entry));
    m->no_memory = m->no_memory || !name;
    for (const struct cfg_field *f = motel_fields; name && f->key; f++) {
        char variable[64];
        motel_variable_name(f, variable, sizeof(variable));
        if (strcmp(variable, name) != 0)
            continue;
        if (equals[1])
            put_text(m, f, equals + 1, name);
        return;
    }
    if (name)
        warn_unknown(m, name);
}

/* "64", "64MiB", "1.5 GiB", "25%", "none". False when it is something else or nothing. */
static bool parse_memory(const char *text, int64_t *ret_bytes)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"", 1 << 20}, {"m", 1 << 20},   {"mb", 1e6},   {"mib", 1 << 20},
                 {"k", 1024},   {"kb", 1e3},      {"kib", 1024}, {"g", 1 << 30},
                 {"gb", 1e9},   {"gib", 1 << 30}, {"b", 1},      {"%", 0}};
    char *unit = NULL;
    *ret_bytes = 0;
    if (strcmp(text, "none") == 0)
        return true;
    const double n = *text >= '0' && *text <= '9' ? strtod(text, &unit) : -1;
    if (n <= 0 || n > 1e12)
        return false;
    while (*unit == ' ')
        unit++;
    for (unsigned i = 0; i < ARRAY_SIZE(units); i++)
        if (strcasecmp(unit, units[i].name) == 0) {
            const double of = units[i].bytes > 0 ? units[i].bytes : (double)machine_memory() / 100;
            *ret_bytes = (int64_t)(n * of);
            return n * of >= MEMORY_LIMIT_MIN && n * of < 1e18;
        }
    return false;
}

static int bind_memory_limit(const struct cfg_value *map, struct cfg_errors *errs,
                             struct motel_settings *ret)
{
    const struct cfg_value *v = cfg_get(map, "memory_limit");
    ret->memory_limit_bytes = -1;
    if (!ret->memory_limit_text || !*ret->memory_limit_text ||
        parse_memory(ret->memory_limit_text, &ret->memory_limit_bytes))
        return 0;
    cfg_error(errs, v ? v->pos : (struct cfg_pos){0}, "motel::memory_limit",
              "expected a size such as 64 (MiB), 512MiB, 1GiB or 25%%, of 8 MiB or more, or none, "
              "got \"%s\"",
              ret->memory_limit_text);
    return -EINVAL;
}

int motel_settings_bind(struct config *c, const struct cfg_value *section, char *const *environment,
                        const struct motel_flag *flags, size_t nflags, struct cfg_errors *errs,
                        struct motel_settings *ret)
{
    struct merge m = {.config = c};
    int r = 0;
    *ret = (struct motel_settings){0};
    if (section && section->type != CFG_MAP && section->type != CFG_NULL) {
        cfg_error(errs, section->pos, "motel", "expected a map of settings, got %s",
                  cfg_type_name(section->type));
        section = NULL;
        r = -EINVAL;
    }
    m.map = copy_section(c->arena, section);
    for (; m.map && *environment; environment++)
        put_variable(&m, *environment);
    for (size_t i = 0; m.map && i < nflags; i++)
        put_text(&m, flags[i].field, flags[i].value, flags[i].flag);
    if (!m.map || m.no_memory) {
        cfg_error(errs, (struct cfg_pos){0}, "motel", "out of memory");
        return -ENOMEM;
    }
    struct cfg_binder binder = {.arena = c->arena, .errors = errs};
    if (cfg_bind(&binder, motel_fields, m.map, "motel", ret) < 0)
        r = -EINVAL;
    const struct cfg_value *mode = cfg_get(m.map, "file_mode");
    if (!mode || mode->type == CFG_NULL)
        ret->file_mode = -1;
    if (bind_memory_limit(m.map, errs, ret) < 0)
        r = -EINVAL;
    return r;
}
