/* The commands that print something and end. */
#include "agent/commands.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "agent/base/secrets.h"
#include "agent/config/tree.h"
#include "agent/config/value_json.h"
#include "agent/doctor.h"
#include "agent/explain.h"
#include "agent/gym/replay.h"
#include "agent/gym/report_command.h"
#include "agent/gym/telemetry.h"
#include "agent/health.h"
#include "agent/load.h"
#include "agent/pipeline/graph.h"
#include "agent/report.h"

/* Output that could not be written (a full disk, a closed pipe) is a failure too. */
static int finish(FILE *f)
{
    if (fflush(f) == 0 && !ferror(f))
        return 0;
    fprintf(stderr, "Error: cannot write to stdout: %s\n", strerror(errno));
    return 1;
}

int command_usage_exit(const struct command_line *cl)
{
    switch (cl->topic) {
    case COMMAND_JOB: return EXIT_NOT_RUN;
    case COMMAND_REPLAY:
    case COMMAND_REPORT: return EXIT_USAGE;
    default: return 1;
    }
}

static int usage(const struct command_line *cl, const char *text)
{
    fprintf(stderr, "Error: %s\n", text);
    return command_usage_exit(cl);
}

/* ---- validate ---- */

/* Instances and edges are made as for a run, and dropped again: nothing is bound or started. */
static int try_graph(const struct loaded *l, struct cfg_errors *errs)
{
    struct host *h = host_new(&l->motel);
    struct graph *g = NULL;
    if (!h)
        return -ENOMEM;
    int r = graph_build(h, l->service, errs, &g);
    graph_free(g);
    host_free(h);
    return r;
}

static int validate(const struct command_line *cl)
{
    if (cl->nsources == 0 && cl->ngym_configs == 0)
        return report_error(&(struct err){.text =
                                              "at least one config flag must be provided: motel "
                                              "validate --config FILE"});
    struct cfg_errors errs = {0};
    struct loaded l;
    int r = load(cl, &l, &errs);
    report_warnings(l.config);
    if (r == 0)
        r = try_graph(&l, &errs);
    int code = r < 0 ? report_errors(&errs) : r > 0 ? report_idle(l.idle) : 0;
    loaded_done(&l);
    cfg_errors_done(&errs);
    return code;
}

/* ---- print-config ---- */

static void print_yaml(FILE *f, const struct loaded *l)
{
    service_settings_print(f, l->service);
    fputs("motel:\n", f);
    cfg_print(f, motel_fields, &l->motel, 2);
}

/* The YAML form, read back and written as JSON: one printer knows the fields. */
static int print_json(const struct loaded *l, struct cfg_errors *errs)
{
    _cleanup_free_ char *yaml = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&yaml, &len);
    if (!f)
        return -errno;
    print_yaml(f, l);
    if (fclose(f) != 0)
        return -ENOMEM;
    _cleanup_(arena_freep) struct arena *arena = arena_new(0);
    _cleanup_buf_ struct buf *json = buf_new(0);
    struct cfg_value *v =
        arena ? cfg_yaml_parse(arena, "print-config", yaml, len, errs, NULL) : NULL;
    int r = v && json ? cfg_value_json(json, v, VALUE_JSON_LINES) : -ENOMEM;
    if (r == 0)
        printf("%.*s\n", (int)json->len, (const char *)json->data);
    return r;
}

static int print_config(const struct command_line *cl)
{
    if (cl->nsources == 0 && cl->ngym_configs == 0 && cl->nflags == 0 &&
        cl->format == FORMAT_YAML) {
        fputs(load_default_config, stdout); /* with its comment: a file to start from */
        return finish(stdout);
    }
    struct cfg_errors errs = {0};
    struct loaded l;
    int r = load(cl, &l, &errs);
    report_warnings(l.config);
    if (r == 0 && !cl->unchecked)
        r = try_graph(&l, &errs);
    if (r == 0 && cl->format == FORMAT_JSON)
        r = print_json(&l, &errs);
    else if (r == 0)
        print_yaml(stdout, &l);
    int code = r < 0 ? report_errors(&errs) : r > 0 ? report_idle(l.idle) : finish(stdout);
    loaded_done(&l);
    cfg_errors_done(&errs);
    return code;
}

/* ---- explain ---- */

/* The telemetry block alone. */
static int explain_block(const struct command_line *cl)
{
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    struct cfg_errors errs = {0};
    struct gym_telemetry t;
    const struct cfg_value *block =
        a ? gym_block_read(a, cl->gym_configs, cl->ngym_configs, &errs) : NULL;
    int r = block ? gym_telemetry_read(a, block, environ, &errs, &t) : -EINVAL;
    for (size_t i = 0; r == 0 && i < t.nwarnings; i++)
        fprintf(stderr, "Warning: %s\n", t.warnings[i]);
    if (r == 0)
        gym_explain(stdout, &t);
    int code = r < 0 ? report_errors(&errs) : finish(stdout);
    cfg_errors_done(&errs);
    return code;
}

static int explain(const struct command_line *cl)
{
    struct cfg_errors errs = {0};
    struct loaded l;
    if (cl->ngym_configs && cl->nsources == 0 && cl->format != FORMAT_JSON)
        return explain_block(cl);
    int r = load(cl, &l, &errs);
    if (r == 0)
        r = try_graph(&l, &errs);
    if (r < 0)
        report_warnings(l.config);
    if (r == 0)
        r = explain_print(stdout, cl, &l, cl->format == FORMAT_JSON);
    int code = r < 0 ? report_errors(&errs) : r > 0 ? report_idle(l.idle) : finish(stdout);
    loaded_done(&l);
    cfg_errors_done(&errs);
    return code;
}

/* ---- health ---- */

/* 0; 1 = no collector runs with this configuration, which is said; or -EINVAL, said too. */
static int configured_target(const struct command_line *cl, struct health_target *ret)
{
    struct cfg_errors errs = {0};
    struct err e = {0};
    struct loaded l;
    int r = load(cl, &l, &errs);
    if (r < 0)
        report_errors(&errs);
    else if (r > 0)
        report_idle(l.idle);
    else if ((r = health_target_of(l.service, ret, &e)) < 0)
        report_error(&e);
    loaded_done(&l);
    cfg_errors_done(&errs);
    return r;
}

static int health(const struct command_line *cl)
{
    const struct health_flags *f = &cl->health;
    _cleanup_(health_target_done) struct health_target target = {0};
    struct err e = {0};
    int r = 0;
    if (cl->nwords && (cl->nsources || cl->ngym_configs))
        return usage(cl, "either an address or a configuration that has it: motel health "
                         "[ADDRESS | --config FILE]");
    for (size_t i = 0; i < cl->replay.nheaders; i++)
        if (!strchr(cl->replay.headers[i], '='))
            return usage(cl, "--header: expected NAME=VALUE");
    if (cl->nsources || cl->ngym_configs)
        r = configured_target(cl, &target);
    else if (health_target_parse(cl->nwords ? cl->words[0] : HEALTH_DEFAULT_URL, &target, &e) < 0)
        return usage(cl, e.text);
    if (r)
        return r < 0;
    target.insecure |= f->insecure;
    const int code = health_ask(&(struct health_question){
        .target = &target,
        .headers = cl->replay.headers,
        .nheaders = cl->replay.nheaders,
        .timeout_ns = f->timeout_ns ? f->timeout_ns : HEALTH_DEFAULT_TIMEOUT_NS,
        .wait_ns = f->wait_ns});
    return finish(stdout) ? 1 : code;
}

/* ---- components ---- */

static void print_word(const char *key, const char *word)
{
    printf("        %s: %c%s\n", key, toupper((unsigned char)word[0]), word + 1);
}

static void print_stability(const struct component_type *t)
{
    if (t->kind == KIND_EXTENSION) {
        print_word("extension", t->stability[0] ? t->stability[0] : "stable");
        return;
    }
    for (int from = SIGNAL_COUNT - 1; from >= 0; from--) {
        const char *word = t->stability[from] ? t->stability[from] : "undefined";
        if (t->kind != KIND_CONNECTOR) {
            print_word(signal_name((enum signal)from), word);
            continue;
        }
        for (int to = SIGNAL_COUNT - 1; to >= 0; to--)
            if (t->accepts & SIGNAL_BIT(from) && t->emits & SIGNAL_BIT(to) &&
                (!t->same_signal || from == to)) {
                char key[32];
                snprintf(key, sizeof(key), "%s-to-%s", signal_name((enum signal)from),
                         signal_name((enum signal)to));
                print_word(key, word);
            }
    }
}

static void print_component(const struct component_type *t)
{
    printf("    - name: %s\n", t->name);
    if (t->aliases && t->aliases[0]) {
        fputs("      aliases: [", stdout);
        for (const char *const *a = t->aliases; *a; a++)
            printf("%s%s", a == t->aliases ? "" : ", ", *a);
        fputs("]\n", stdout);
    }
    fputs("      stability:\n", stdout);
    print_stability(t);
}

static int component_list(void)
{
    printf("buildinfo:\n    command: motel\n    description: mini OpenTelemetry collector\n"
           "    version: %s\n",
           MOTEL_VERSION);
    static const enum component_kind order[] = {KIND_RECEIVER, KIND_PROCESSOR, KIND_EXPORTER,
                                                KIND_CONNECTOR, KIND_EXTENSION};
    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        bool any = false;
        for (const struct component_type *const *t = component_types; *t; t++)
            if ((*t)->kind == order[i]) {
                if (!any)
                    printf("%s:\n", component_kind_section(order[i]));
                any = true;
                print_component(*t);
            }
        if (!any)
            printf("%s: []\n", component_kind_section(order[i]));
    }
    return finish(stdout);
}

static bool is_called(const struct component_type *t, const char *name)
{
    for (const char *const *a = t->aliases; a && *a; a++)
        if (strcmp(*a, name) == 0)
            return true;
    return strcmp(t->name, name) == 0;
}

/* The keys of the components of one name: there may be a receiver and an exporter. */
static int component_keys(const char *name, bool more)
{
    const char *names[128] = {0};
    size_t n = 0;
    bool found = false;
    for (const struct component_type *const *t = component_types; *t; t++) {
        if (n < ARRAY_SIZE(names) - 1)
            names[n++] = (*t)->name;
        if (!is_called(*t, name))
            continue;
        printf("%s## %s: %s\n\n%s\n\n", found || more ? "\n" : "",
               component_kind_section((*t)->kind), (*t)->name, (*t)->help ? (*t)->help : "");
        found = true;
        if ((*t)->fields && (*t)->fields[0].key)
            cfg_print_docs(stdout, (*t)->fields);
        else
            puts("It has no keys.");
    }
    if (found)
        return 0;
    const char *near = cfg_suggest(name, names);
    fprintf(stderr, "Error: unknown component \"%s\"%s%s%s; motel components lists them\n", name,
            near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    return 1;
}

static int components(const struct command_line *cl)
{
    for (size_t i = 0; i < cl->nwords; i++)
        if (component_keys(cl->words[i], i > 0) != 0)
            return 1;
    return cl->nwords ? finish(stdout) : component_list();
}

static int featuregate(const struct command_line *cl)
{
    struct err e = {0};
    return feature_gates_print(stdout, cl->gate, &e) < 0 ? report_error(&e) : finish(stdout);
}

/* motel's own settings as the variables have them: there is no file. NULL = a mistake, which is
 * said; what is bound lives in it. */
static struct config *bind_settings(const struct command_line *cl, struct motel_settings *ret)
{
    struct cfg_errors errs = {0};
    struct config *c = config_load_text("built-in", "{}", &errs);
    int r = c ? motel_settings_bind(c, NULL, environ, cl->flags, cl->nflags, &errs, ret) : -ENOMEM;
    report_warnings(c);
    if (r < 0) {
        report_errors(&errs);
        c = config_free(c);
    } else {
        secrets_enable(ret->redact);
    }
    cfg_errors_done(&errs);
    return c;
}

static int replay(const struct command_line *cl)
{
    const struct replay_flags *f = &cl->replay;
    struct motel_settings settings;
    if (cl->nwords == 0)
        return usage(cl, "name the files to be sent: motel replay FILE... --to URL; - is stdin");
    _cleanup_(config_freep) struct config *config = bind_settings(cl, &settings);
    if (!config)
        return EXIT_USAGE;
    return replay_run(&(struct replay_command){.files = cl->words,
                                               .nfiles = cl->nwords,
                                               .to = f->to,
                                               .protocol = f->protocol,
                                               .compression = f->compression,
                                               .headers = f->headers,
                                               .nheaders = f->nheaders,
                                               .attributes = f->attributes,
                                               .nattributes = f->nattributes,
                                               .rate = f->rate,
                                               .state = f->state,
                                               .settings = &settings});
}

static int report(const struct command_line *cl)
{
    const struct report_flags *f = &cl->report;
    const struct report_command c = {.files = cl->words,
                                     .nfiles = cl->nwords,
                                     .json = f->json,
                                     .all = f->all,
                                     .max_traces = f->max_traces};
    if (cl->nwords == 0)
        return usage(cl, "name the files to be looked at: motel report FILE..., or - for stdin");
    return report_files(&c);
}

int command_run(const struct command_line *cl)
{
    switch (cl->command) {
    case COMMAND_VALIDATE: return validate(cl);
    case COMMAND_PRINT_CONFIG: return print_config(cl);
    case COMMAND_EXPLAIN: return explain(cl);
    case COMMAND_HEALTH: return health(cl);
    case COMMAND_COMPONENTS: return components(cl);
    case COMMAND_DOCTOR: return doctor_run(cl);
    case COMMAND_FEATUREGATE: return featuregate(cl);
    case COMMAND_VERSION: puts("motel version " MOTEL_VERSION); return finish(stdout);
    case COMMAND_HELP: command_help(stdout, cl->topic); return finish(stdout);
    case COMMAND_REPORT: return report(cl);
    case COMMAND_REPLAY: return replay(cl);
    case COMMAND_RUN:
    case COMMAND_JOB: break; /* main's own */
    }
    return 1;
}
