/* Every field of the telemetry settings, and which of its sources counts. */
#include "agent/gym/telemetry.h"

#include <ctype.h>
#include <errno.h>
#include <strings.h>

#include "agent/base/number.h"
#include "agent/gym/oc_env.h"

#define MAX_SECONDS 1e8 /* three years */

enum kind {
    KIND_SWITCH,
    KIND_TEXT,
    KIND_CHOICE,
    KIND_SECONDS,
    KIND_MILLISECONDS, /* whole */
    KIND_IGNORED,      /* anything */
};

struct field {
    const char *name; /* in the block, with a dot before a key of memory_profiling */
    enum kind kind;
    const char *variable; /* behind NEMO_GYM_OTEL_ and NEMO_LENS_, or OTEL_EXPORTER_OTLP_ */
    const char *standard; /* a whole name instead */
    const char *last;     /* a variable that counts after the block */
    const char *def;
    const char *const *choices;
    bool no_block; /* a variable only */
    const char *note;
};

static const char *const exporters[] = {"otlp", "console", NULL};
static const char *const protocols[] = {"grpc", "http/protobuf", "http/json", NULL};

#define PRODUCERS_ONLY "for Gym's own processes; motel takes what arrives"
#define NO_EFFECT "accepted, without effect"

static const struct field fields[GYM_FIELD_COUNT] = {
    [GYM_ENABLED] = {"enabled", KIND_SWITCH, "ENABLED", .def = "false"},
    [GYM_SERVICE_NAME] = {"service_name", KIND_TEXT, .standard = "OTEL_SERVICE_NAME",
                          .def = "nemo-gym"},
    [GYM_SERVICE_NAME_PER_SERVER] = {"service_name_per_server", KIND_SWITCH,
                                     "SERVICE_NAME_PER_SERVER", .def = "true"},
    [GYM_RUN_ID] = {"run_id", KIND_TEXT, "RUN_ID", .last = "SLURM_JOB_ID"},
    [GYM_EXPORTER] = {"exporter", KIND_CHOICE, "EXPORTER", .def = "otlp", .choices = exporters},
    [GYM_TRACES_ENABLED] = {"traces_enabled", KIND_SWITCH, "TRACES_ENABLED", .def = "true"},
    [GYM_METRICS_ENABLED] = {"metrics_enabled", KIND_SWITCH, "METRICS_ENABLED", .def = "true"},
    [GYM_LOGS_ENABLED] = {"logs_enabled", KIND_SWITCH, "LOGS_ENABLED", .def = "false"},
    [GYM_MEMORY_ENABLED] = {"memory_profiling.enabled", KIND_SWITCH, "MEMORY_PROFILING_ENABLED",
                            .def = "false"},
    [GYM_MEMORY_INTERVAL] = {"memory_profiling.interval_seconds", KIND_SECONDS,
                             "MEMORY_PROFILING_INTERVAL_SECONDS", .def = "1"},
    [GYM_SPAN_GROUPS] = {"span_groups", KIND_TEXT, "SPAN_GROUPS", .def = "default",
                         .note = PRODUCERS_ONLY},
    [GYM_INSTRUMENT_AIOHTTP] = {"instrument_aiohttp", KIND_SWITCH, "INSTRUMENT_AIOHTTP",
                                .def = "true", .note = PRODUCERS_ONLY},
    [GYM_EXPORT_STRATEGY] = {"export_strategy", KIND_IGNORED, "EXPORT_STRATEGY", .note = NO_EFFECT},
    [GYM_EXPORT_RANK] = {"export_rank", KIND_IGNORED, "EXPORT_RANK", .note = NO_EFFECT},
};

static const struct field otlp_fields[GYM_OTLP_COUNT] = {
    [GYM_OTLP_ENDPOINT] = {"otlp_endpoint", KIND_TEXT, "ENDPOINT"},
    [GYM_OTLP_PROTOCOL] = {"otlp_protocol", KIND_CHOICE, "PROTOCOL", .def = "grpc",
                           .choices = protocols},
    [GYM_OTLP_HEADERS] = {"otlp_headers", KIND_TEXT, "HEADERS"},
    [GYM_OTLP_TIMEOUT] = {"otlp_timeout", KIND_MILLISECONDS, "TIMEOUT", .def = "10000",
                          .no_block = true},
    [GYM_OTLP_COMPRESSION] = {"otlp_compression", KIND_TEXT, "COMPRESSION", .def = "none",
                              .no_block = true},
    [GYM_OTLP_CERTIFICATE] = {"otlp_certificate", KIND_TEXT, "CERTIFICATE", .no_block = true},
    [GYM_OTLP_CLIENT_KEY] = {"otlp_client_key", KIND_TEXT, "CLIENT_KEY", .no_block = true},
    [GYM_OTLP_CLIENT_CERTIFICATE] = {"otlp_client_certificate", KIND_TEXT, "CLIENT_CERTIFICATE",
                                     .no_block = true},
    [GYM_OTLP_INSECURE] = {"otlp_insecure", KIND_SWITCH, "INSECURE", .def = "false",
                           .no_block = true},
};

struct reader {
    struct arena *arena;
    const struct cfg_value *block;
    char *const *environment;
    struct cfg_errors *errs;
    bool failed;
};

static void fail(struct reader *r, struct cfg_pos pos, const struct field *f, const char *text)
{
    char path[96] = "";
    if (pos.line) { /* in a file; a variable needs no path */
        const char *dot = strchr(f->name, '.');
        const int parent = dot ? (int)(dot - f->name) : 0;
        snprintf(path, sizeof(path), "telemetry::%.*s%s%s", parent, f->name, dot ? "::" : "",
                 dot ? dot + 1 : f->name);
    }
    cfg_error(r->errs, pos, path, "%s", text);
    r->failed = true;
}

/* ---- a text as the value of a field ---- */

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcasecmp(*words, text) == 0)
            return true;
    return false;
}

static bool parse_switch(struct gym_value *v)
{
    static const char *const on[] = {"1", "true", "yes", "on", NULL}, *const off[] = {"0", "false",
                                                                                      "no", "off",
                                                                                      NULL};
    v->on = is_one_of(v->text, on);
    if (!v->on && !is_one_of(v->text, off))
        return false;
    v->text = v->on ? "true" : "false";
    return true;
}

static bool parse_choice(const struct field *f, const struct gym_value *v)
{
    for (const char *const *c = f->choices; *c; c++)
        if (strcmp(*c, v->text) == 0)
            return true;
    return false;
}

static bool parse_seconds(struct gym_value *v)
{
    return number_parse_double(bytes_str(v->text), &v->number) && v->number >= 1e-9 &&
           v->number <= MAX_SECONDS;
}

static bool parse_milliseconds(struct gym_value *v)
{
    int64_t ms;
    if (!number_parse_int(bytes_str(v->text), &ms) || ms < 0 || (double)ms > MAX_SECONDS * 1e3)
        return false;
    v->number = (double)ms;
    return true;
}

static void expected(const struct field *f, char *ret, size_t size)
{
    size_t n = 0;
    switch (f->kind) {
    case KIND_SWITCH: snprintf(ret, size, "1, true, yes, on or 0, false, no, off"); return;
    case KIND_SECONDS: snprintf(ret, size, "seconds above 0 such as 0.5"); return;
    case KIND_MILLISECONDS: snprintf(ret, size, "whole milliseconds such as 10000"); return;
    case KIND_TEXT:
    case KIND_IGNORED: snprintf(ret, size, "a text"); return;
    case KIND_CHOICE: break;
    }
    for (const char *const *c = f->choices; *c && n < size; c++)
        n += (size_t)snprintf(ret + n, size - n, "%s%s",
                              c == f->choices ? ""
                              : c[1]          ? ", "
                                              : " or ",
                              *c);
}

/* Sets the rest of a value from its text. False, after a report, when the text does not fit. */
static bool parse(struct reader *r, const struct field *f, struct gym_value *v)
{
    const bool good = f->kind == KIND_SWITCH         ? parse_switch(v)
                      : f->kind == KIND_CHOICE       ? parse_choice(f, v)
                      : f->kind == KIND_SECONDS      ? parse_seconds(v)
                      : f->kind == KIND_MILLISECONDS ? parse_milliseconds(v)
                                                     : true;
    char want[120], text[300];
    if (good)
        return true;
    expected(f, want, sizeof(want));
    snprintf(text, sizeof(text), "expected %s, got \"%.100s\"", want, v->text);
    fail(r, v->pos, f, text);
    return false;
}

/* The text without white space around it; NULL when nothing is left. */
static const char *trimmed(struct reader *r, const char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    size_t len = strlen(text);
    while (len && isspace((unsigned char)text[len - 1]))
        len--;
    return len ? arena_strndup(r->arena, text, len) : NULL;
}

/* ---- the sources ---- */

static void set_default(struct reader *r, const struct field *f, struct gym_value *ret)
{
    *ret = (struct gym_value){.text = f->def};
    if (f->def)
        parse(r, f, ret);
}

/* False when the variable is not set or blank. */
static bool take_variable(struct reader *r, const struct field *f, const char *name,
                          struct gym_value *ret)
{
    const char *raw = name ? environment_get(r->environment, name) : NULL;
    const char *text = raw ? trimmed(r, raw) : NULL;
    if (!text)
        return false;
    *ret = (struct gym_value){.text = text, .pos = {.file = arena_strdup(r->arena, name)}};
    if (!parse(r, f, ret))
        set_default(r, f, ret);
    return true;
}

/* The value of the block under a name such as "memory_profiling.enabled". */
static const struct cfg_value *find(const struct reader *r, const char *name)
{
    const char *dot = strchr(name, '.');
    const struct cfg_value *parent = dot ? cfg_get(r->block, "memory_profiling") : r->block;
    return cfg_get(parent, dot ? dot + 1 : name);
}

static bool take_string(struct reader *r, const struct field *f, const struct cfg_value *v,
                        struct gym_value *ret)
{
    const struct oc_env o = {r->arena, r->environment, f == &otlp_fields[GYM_OTLP_HEADERS]};
    struct err e = {0};
    const char *text;
    if (oc_env_resolve(&o, v->text, &text, &e) < 0) {
        fail(r, v->pos, f, e.text);
        return false;
    }
    text = text ? trimmed(r, text) : NULL;
    *ret = (struct gym_value){.text = text, .pos = v->pos};
    return text && parse(r, f, ret);
}

static bool take_scalar(struct reader *r, const struct field *f, const struct cfg_value *v,
                        struct gym_value *ret)
{
    const bool number = v->type == CFG_INT || v->type == CFG_DOUBLE;
    *ret = (struct gym_value){.text = v->text, .pos = v->pos};
    if (f->kind == KIND_SECONDS && number) /* however it is written */
        ret->text = arena_printf(r->arena, "%.15g", v->type == CFG_INT ? (double)v->i : v->d);
    return ret->text && parse(r, f, ret);
}

/* False when the block does not have the field, or, after a report, not as it should be. */
static bool take_block(struct reader *r, const struct field *f, struct gym_value *ret)
{
    const struct cfg_value *v = f->no_block ? NULL : find(r, f->name);
    if (!v || v->type == CFG_NULL)
        return false;
    if (v->type == CFG_STRING)
        return take_string(r, f, v, ret);
    const bool container = v->type == CFG_LIST || v->type == CFG_MAP;
    const bool fits = f->kind == KIND_SWITCH ? v->type == CFG_BOOL || v->type == CFG_INT
                                             : v->type != CFG_BOOL && !container;
    if (f->kind == KIND_IGNORED && (container || v->type == CFG_BOOL)) {
        *ret = (struct gym_value){.text = container ? "…" : v->text, .pos = v->pos};
        return true;
    }
    if (fits)
        return take_scalar(r, f, v, ret);
    char want[120], text[300];
    expected(f, want, sizeof(want));
    snprintf(text, sizeof(text), "expected %s, got %s", want, cfg_type_name(v->type));
    fail(r, v->pos, f, text);
    return false;
}

static void read_field(struct reader *r, const struct field *f, struct gym_value *ret)
{
    char gym[80], lens[80];
    struct gym_value block;
    const bool in_block = take_block(r, f, &block);
    snprintf(gym, sizeof(gym), "NEMO_GYM_OTEL_%s", f->variable ? f->variable : "");
    snprintf(lens, sizeof(lens), "NEMO_LENS_%s", f->variable ? f->variable : "");
    const char *const names[] = {f->standard ? f->standard : gym, f->standard ? NULL : lens};
    if (take_variable(r, f, names[0], ret) || take_variable(r, f, names[1], ret))
        return;
    if (in_block)
        *ret = block;
    else if (!take_variable(r, f, f->last, ret))
        set_default(r, f, ret);
}

static void read_otlp(struct reader *r, struct gym_telemetry *t)
{
    static const char *const signals[SIGNAL_COUNT] = {"TRACES_", "METRICS_", "LOGS_"};
    for (int i = 0; i < GYM_OTLP_COUNT; i++) {
        const struct field *f = &otlp_fields[i];
        char name[80];
        struct gym_value block;
        const bool in_block = take_block(r, f, &block);
        snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_%s", f->variable);
        if (!take_variable(r, f, name, &t->otlp[i])) {
            if (in_block)
                t->otlp[i] = block;
            else
                set_default(r, f, &t->otlp[i]);
        }
        for (int s = 0; s < SIGNAL_COUNT; s++) {
            snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_%s%s", signals[s], f->variable);
            take_variable(r, f, name, &t->signal_otlp[s][i]);
        }
    }
}

/* ---- what is odd, but no mistake ---- */

static void warn(struct reader *r, struct gym_telemetry *t, const char *text)
{
    if (text && t->nwarnings < ARRAY_SIZE(t->warnings))
        t->warnings[t->nwarnings++] = arena_strdup(r->arena, text);
}

/* Warns of keys that no field has; `prefix` is that of the fields of this map. */
static void check_keys(struct reader *r, struct gym_telemetry *t, const struct cfg_value *map,
                       const char *prefix)
{
    const char *names[GYM_FIELD_COUNT + GYM_OTLP_COUNT + 2] = {0};
    size_t n = 0;
    for (int i = 0; i < GYM_FIELD_COUNT; i++)
        if (strncmp(fields[i].name, prefix, strlen(prefix)) == 0 &&
            !strchr(fields[i].name + strlen(prefix), '.'))
            names[n++] = fields[i].name + strlen(prefix);
    for (int i = 0; !*prefix && i < GYM_OTLP_COUNT; i++)
        if (!otlp_fields[i].no_block)
            names[n++] = otlp_fields[i].name;
    if (!*prefix)
        names[n++] = "memory_profiling";
    for (size_t i = 0; map && map->type == CFG_MAP && i < map->n; i++) {
        bool known = false;
        for (size_t k = 0; k < n; k++)
            known = known || strcmp(names[k], map->keys[i]) == 0;
        const char *near = known ? NULL : cfg_suggest(map->keys[i], names);
        const struct cfg_pos at = map->key_pos[i];
        if (!known)
            warn(r, t,
                 arena_printf(r->arena, "%s:%d:%d: telemetry: unknown key \"%s%.60s\"%s%s%s",
                              at.file, at.line, at.column, prefix, map->keys[i],
                              near ? "; did you mean \"" : "", near ? near : "",
                              near ? "\"?" : ""));
    }
}

static void check_timeouts(struct reader *r, struct gym_telemetry *t)
{
    for (int s = -1; s < SIGNAL_COUNT; s++) {
        const struct gym_value *v =
            s < 0 ? &t->otlp[GYM_OTLP_TIMEOUT] : &t->signal_otlp[s][GYM_OTLP_TIMEOUT];
        if (v->text && v->pos.file && v->number > 0 && v->number < 1000)
            warn(r, t,
                 arena_printf(r->arena,
                              "%s is %s milliseconds, as the OpenTelemetry specification says; "
                              "the SDK for Python reads it as seconds",
                              v->pos.file, v->text));
    }
}

static void check_memory(struct reader *r)
{
    const struct cfg_value *v = cfg_get(r->block, "memory_profiling");
    if (!v || v->type == CFG_NULL || v->type == CFG_MAP)
        return;
    cfg_error(r->errs, v->pos, "telemetry::memory_profiling",
              "expected a map of enabled and interval_seconds, got %s", cfg_type_name(v->type));
    r->failed = true;
}

/* ---- all of it ---- */

int gym_enabled_read(struct arena *a, const struct cfg_value *block, char *const *environment,
                     struct cfg_errors *errs, struct gym_value *ret)
{
    struct reader r = {a, block, environment, errs, false};
    read_field(&r, &fields[GYM_ENABLED], ret);
    return r.failed ? -EINVAL : 0;
}

int gym_telemetry_read(struct arena *a, const struct cfg_value *block, char *const *environment,
                       struct cfg_errors *errs, struct gym_telemetry *ret)
{
    struct reader r = {a, block, environment, errs, false};
    *ret = (struct gym_telemetry){.nwarnings = 0};
    for (int i = 0; i < GYM_FIELD_COUNT; i++)
        read_field(&r, &fields[i], &ret->fields[i]);
    read_otlp(&r, ret);
    check_memory(&r);
    check_keys(&r, ret, block, "");
    check_keys(&r, ret, cfg_get(block, "memory_profiling"), "memory_profiling.");
    check_timeouts(&r, ret);
    return r.failed ? -EINVAL : 0;
}

const struct gym_value *gym_otlp_of(const struct gym_telemetry *t, enum signal s,
                                    enum gym_otlp field)
{
    return t->signal_otlp[s][field].text ? &t->signal_otlp[s][field] : &t->otlp[field];
}

const char *gym_field_name(enum gym_field f)
{
    return fields[f].name;
}

const char *gym_otlp_name(enum gym_otlp f)
{
    return otlp_fields[f].name;
}

const char *gym_field_note(enum gym_field f)
{
    return fields[f].note;
}

const char *gym_origin(const struct gym_value *v, char *ret, size_t size)
{
    if (!v->pos.file)
        snprintf(ret, size, "%s", v->text ? "default" : "not set");
    else if (v->pos.line)
        snprintf(ret, size, "%s:%d:%d", v->pos.file, v->pos.line, v->pos.column);
    else
        snprintf(ret, size, "%s", v->pos.file);
    return ret;
}
