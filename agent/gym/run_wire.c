#include "agent/gym/run_wire.h"

#include <ctype.h>
#include <errno.h>

#include "agent/config/tree.h"
#include "agent/gym/pipeline.h"

#define CONSOLE "console/motel_run"
#define MEMORY "gym_memory/motel_run"

static const struct cfg_pos here = {.file = "motel run"};

/* ---- changing trees, of which parts are shared ---- */

/* A copy of the map (NULL or null: an empty one) with `v` under `key`. */
static struct cfg_value *with(struct arena *a, const struct cfg_value *map, const char *key,
                              struct cfg_value *v)
{
    struct cfg_value *copy = cfg_new(a, CFG_MAP, map ? map->pos : here);
    bool put = false;
    for (size_t i = 0; copy && map && map->type == CFG_MAP && i < map->n; i++) {
        const bool it = strcmp(map->keys[i], key) == 0;
        put = put || it;
        if (cfg_append(a, copy, map->keys[i], map->key_pos[i], it ? v : map->items[i]) < 0)
            return NULL;
    }
    if (copy && !put && cfg_append(a, copy, key, here, v) < 0)
        return NULL;
    return copy;
}

/* The same for a path of keys, NULL ended. */
static struct cfg_value *with_path(struct arena *a, const struct cfg_value *map,
                                   const char *const *path, struct cfg_value *v)
{
    if (path[1])
        v = with_path(a, cfg_get(map, path[0]), path + 1, v);
    return v ? with(a, map, path[0], v) : NULL;
}

static struct cfg_value *list_with(struct arena *a, const struct cfg_value *list, const char *text)
{
    struct cfg_value *copy = cfg_new(a, CFG_LIST, list ? list->pos : here);
    for (size_t i = 0; copy && list && list->type == CFG_LIST && i < list->n; i++)
        if (cfg_append(a, copy, NULL, list->items[i]->pos, list->items[i]) < 0)
            return NULL;
    struct cfg_value *item = cfg_new_string(a, here, text, strlen(text));
    return copy && item && cfg_append(a, copy, NULL, here, item) == 0 ? copy : NULL;
}

static int put(struct config *c, const char *const *path, struct cfg_value *v)
{
    struct cfg_value *root = v ? with_path(c->arena, c->root, path, v) : NULL;
    if (!root)
        return -ENOMEM;
    c->root = root;
    return 0;
}

/* ---- pipelines ---- */

static bool is_type(const char *id, const char *type)
{
    const size_t len = strlen(type);
    while (isspace((unsigned char)*id))
        id++;
    return strncmp(id, type, len) == 0 && strchr("/ \t", id[len]) != NULL;
}

static bool receives(const struct cfg_value *pipeline, const char *type)
{
    const struct cfg_value *list = cfg_get(pipeline, "receivers");
    for (size_t i = 0; list && list->type == CFG_LIST && i < list->n; i++)
        if (list->items[i]->text && is_type(list->items[i]->text, type))
            return true;
    return false;
}

static const struct cfg_value *pipelines_of(const struct config *c)
{
    const struct cfg_value *v = cfg_get(cfg_get(c->root, "service"), "pipelines");
    return v && v->type == CFG_MAP ? v : NULL;
}

static bool any_receives(const struct config *c, const char *type)
{
    const struct cfg_value *all = pipelines_of(c);
    for (size_t i = 0; all && i < all->n; i++)
        if (receives(all->items[i], type))
            return true;
    return false;
}

static bool is_first_of_signal(const struct cfg_value *all, size_t i)
{
    const size_t len = strcspn(all->keys[i], "/");
    for (size_t k = 0; k < i; k++)
        if (strcspn(all->keys[k], "/") == len && strncmp(all->keys[k], all->keys[i], len) == 0)
            return false;
    return true;
}

/* Adds the receiver to pipeline `name`. */
static int add_receiver(struct config *c, const char *name, const char *receiver)
{
    const char *const path[] = {"service", "pipelines", name, "receivers", NULL};
    const struct cfg_value *list = cfg_get(cfg_get(pipelines_of(c), name), "receivers");
    return put(c, path, list_with(c->arena, list, receiver));
}

static int define(struct config *c, const char *receiver, struct cfg_value *settings)
{
    const char *const path[] = {"receivers", receiver, NULL};
    return put(c, path, settings);
}

/* ---- what is put in ---- */

static int wire_console(struct config *c)
{
    const struct cfg_value *all = pipelines_of(c);
    const bool with_otlp = any_receives(c, "otlp");
    if (!all || any_receives(c, "console"))
        return 0;
    int r = define(c, CONSOLE, cfg_new(c->arena, CFG_MAP, here));
    for (size_t i = 0; r == 0 && i < all->n; i++)
        if (with_otlp ? receives(all->items[i], "otlp") : is_first_of_signal(all, i))
            r = add_receiver(c, all->keys[i], CONSOLE);
    return r;
}

static int quiet(struct config *c, const char *section, const char *level)
{
    const char *const path[] = {"service", "telemetry", section, "level", NULL};
    const struct cfg_value *telemetry = cfg_get(cfg_get(c->root, "service"), "telemetry");
    const struct cfg_value *v = cfg_get(telemetry, section);
    const bool said = strcmp(section, "logs") == 0 ? cfg_get(v, "level") != NULL : v != NULL;
    return said ? 0 : put(c, path, cfg_new_string(c->arena, here, level, strlen(level)));
}

/* Ports that neither a file nor a flag names: free ones, so that several runs on a machine do not
 * meet. The command finds them in its environment. */
static int free_port(struct config *c, const char *const *path)
{
    const struct cfg_value *v = c->root;
    for (size_t i = 0; v && path[i]; i++)
        v = cfg_get(v, path[i]);
    return v && v->pos.file && strcmp(v->pos.file, GYM_PIPELINE_FILE) == 0
               ? put(c, path, cfg_new_string(c->arena, here, "127.0.0.1:0", 11))
               : 0;
}

static int free_ports(struct config *c)
{
    static const char *const paths[][6] = {
        {"receivers", "otlp", "protocols", "grpc", "endpoint"},
        {"receivers", "otlp", "protocols", "http", "endpoint"},
        {"extensions", "health_check", "endpoint"},
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(paths); i++)
        r = free_port(c, paths[i]);
    return r;
}

bool run_measures(const struct gym_telemetry *t)
{
    return t && t->fields[GYM_MEMORY_ENABLED].on && t->fields[GYM_METRICS_ENABLED].on;
}

static int wire_memory(struct config *c, const struct gym_telemetry *t, pid_t job)
{
    const char *const root_pid[] = {"receivers", MEMORY, "discover", "root_pid", NULL};
    const char *const interval[] = {"receivers", MEMORY, "interval", NULL};
    const struct cfg_value *all = pipelines_of(c);
    char text[40];
    if (!run_measures(t) || !cfg_get(all, "metrics") || any_receives(c, "gym_memory"))
        return 0;
    snprintf(text, sizeof(text), "%d", (int)job);
    int r = put(c, root_pid, cfg_new_plain(c->arena, here, text, strlen(text)));
    snprintf(text, sizeof(text), "%.0fms", t->fields[GYM_MEMORY_INTERVAL].number * 1e3);
    if (r == 0)
        r = put(c, interval, cfg_new_string(c->arena, here, text, strlen(text)));
    return r == 0 ? add_receiver(c, "metrics", MEMORY) : r;
}

int run_wire(struct config *c, const struct gym_telemetry *t, pid_t job, struct cfg_errors *errs)
{
    int r = wire_console(c);
    if (r == 0)
        r = wire_memory(c, t, job);
    if (r == 0 && t)
        r = free_ports(c);
    if (r == 0)
        r = quiet(c, "logs", "warn");
    if (r == 0)
        r = quiet(c, "metrics", "none");
    if (r < 0)
        cfg_error(errs, (struct cfg_pos){0}, "", "out of memory");
    return r;
}

/* ---- without a configuration ---- */

int run_default_file(const char *run_id, char **ret)
{
    char safe[65];
    size_t n = 0;
    for (; run_id[n] && n < sizeof(safe) - 1; n++)
        safe[n] = isalnum((unsigned char)run_id[n]) || strchr("-_.", run_id[n]) ? run_id[n] : '_';
    safe[n] = 0;
    return asprintf(ret, "motel-%s.jsonl", safe) < 0 ? -ENOMEM : 0;
}

char *run_default_config(const char *file)
{
    char *text;
    const int n = asprintf(&text,
                           "receivers:\n"
                           "  otlp: {protocols: {http: {endpoint: \"127.0.0.1:0\"}}}\n"
                           "  console:\n"
                           "processors: {gym: }\n"
                           "exporters: {file: {path: \"%s\", append: true}}\n"
                           "motel: {summary: none}\n" /* several runs share a folder */
                           "service:\n"
                           "  telemetry: {logs: {level: warn}, metrics: {level: none}}\n"
                           "  pipelines:\n"
                           "    traces: &all {receivers: [otlp, console], processors: [gym], "
                           "exporters: [file]}\n"
                           "    metrics: *all\n"
                           "    logs: *all\n",
                           file);
    return n < 0 ? NULL : text;
}
