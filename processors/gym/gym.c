/*
 * The gym processor: what every span, metric and log of a NeMo Gym run should carry, on its
 * resource: the run, the group of services, and the server that it came from.
 */
#include <errno.h>

#include "agent/gym/run_id.h"
#include "agent/pipeline/component.h"
#include "agent/pipeline/resource_editor.h"

#define UNKNOWN_SERVICE "unknown_service" /* what SDKs report when nobody named the service */

extern const struct component_type processor_gym;

struct gym_config {
    const char *run_id, *service_name, *service_group, *server_name, *server_type, *version;
    bool service_name_per_server;
    bool override;
};

struct gym {
    struct component base;
    const struct gym_config *config;
    char *run_id;
    struct resource_editor *editor;
};

/* ---- one resource ---- */

/* The text of an attribute; empty when it is absent or no text. */
static struct bytes text_of(const struct attr_list *l, const char *key)
{
    const struct attr *a = attr_list_find(l, bytes_str(key));
    const struct any_value v = a ? any_value_read(a->value) : (struct any_value){.kind = ANY_EMPTY};
    return v.kind == ANY_STRING ? v.bytes : bytes_of("", 0);
}

/* Whether there is a value that an insert leaves alone: anything but an empty text. */
static bool is_set(const struct attr_list *l, const char *key)
{
    const struct attr *a = attr_list_find(l, bytes_str(key));
    const struct any_value v = a ? any_value_read(a->value) : (struct any_value){.kind = ANY_EMPTY};
    return v.kind == ANY_STRING ? v.bytes.len > 0 : v.kind != ANY_EMPTY;
}

static int put(struct attr_list *l, const char *key, struct bytes text)
{
    struct bytes value;
    int r = attr_list_encode(l, &(struct any_value){.kind = ANY_STRING, .bytes = text}, &value);
    return r < 0 ? r : attr_list_put(l, bytes_str(key), value);
}

static int stamp(const struct gym *g, struct attr_list *l, const char *key, struct bytes text)
{
    if (text.len == 0 || (!g->config->override && is_set(l, key)))
        return 0;
    return put(l, key, text);
}

/* `name` without "/server" at its end. */
static struct bytes without_server(struct bytes name, struct bytes server)
{
    const size_t tail = server.len + 1;
    if (server.len && name.len > tail && name.data[name.len - tail] == '/' &&
        bytes_eq(bytes_of(name.data + name.len - server.len, server.len), server))
        name.len -= tail;
    return name;
}

static bool is_unknown(struct bytes name)
{
    const size_t n = strlen(UNKNOWN_SERVICE);
    return name.len == 0 || (name.len >= n && memcmp(name.data, UNKNOWN_SERVICE, n) == 0 &&
                             (name.len == n || name.data[n] == ':'));
}

/* The name of the service without that of the server: `old`, as the producer has it, or `new`. */
static struct bytes base_name(const struct gym_config *c, struct bytes given, struct bytes old,
                              struct bytes new)
{
    const struct bytes own = bytes_str(c->service_name);
    if (own.len && (c->override || is_unknown(given)))
        return own;
    const struct bytes base = without_server(given, old);
    return base.len < given.len ? base : without_server(given, new);
}

static int put_service_name(struct attr_list *l, struct bytes base, struct bytes server)
{
    _cleanup_buf_ struct buf *name = buf_new(0);
    struct bytes kept;
    int r = name ? buf_append(name, base.data, base.len) : -ENOMEM;
    if (r == 0 && server.len)
        r = buf_putc(name, '/');
    if (r == 0)
        r = buf_append(name, server.data, server.len);
    if (r == 0)
        r = attr_list_keep(l, buf_bytes(name), &kept);
    return r < 0 ? r : put(l, "service.name", kept);
}

/* service.name becomes SERVICE/SERVER, unless the producer wrote it so. */
static int name_service(const struct gym *g, struct attr_list *l, struct bytes old_server)
{
    const struct gym_config *c = g->config;
    const struct bytes given = text_of(l, "service.name"),
                       server = text_of(l, "nemo.gym.server.name"),
                       base = base_name(c, given, old_server, server);
    if (base.len == 0 || (given.len == 0 && is_set(l, "service.name") && !c->override))
        return 0;
    if (c->service_name_per_server)
        return put_service_name(l, base, server);
    return base.data == given.data ? 0 : put_service_name(l, base, bytes_of("", 0));
}

static int group_service(const struct gym *g, struct attr_list *l)
{
    struct bytes group = bytes_str(g->config->service_group);
    if (group.len == 0) {
        group = text_of(l, "service.name");
        const uint8_t *slash = group.len ? memchr(group.data, '/', group.len) : NULL;
        if (slash)
            group.len = (size_t)(slash - group.data);
    }
    return stamp(g, l, "nemo.gym.service_group", group);
}

static int edit(void *ctx, struct attr_list *l)
{
    const struct gym *g = ctx;
    const struct gym_config *c = g->config;
    const struct bytes old_server = text_of(l, "nemo.gym.server.name");
    int r = stamp(g, l, "nemo.run.id", bytes_str(g->run_id));
    if (r == 0)
        r = stamp(g, l, "nemo.gym.version", bytes_str(c->version));
    if (r == 0)
        r = stamp(g, l, "nemo.gym.server.name", bytes_str(c->server_name));
    if (r == 0)
        r = stamp(g, l, "nemo.gym.server.type", bytes_str(c->server_type));
    if (r == 0)
        r = name_service(g, l, old_server);
    return r == 0 ? group_service(g, l) : r;
}

/* ---- life cycle ---- */

static void gym_destroy(struct component *c)
{
    struct gym *g = (struct gym *)c;
    if (!g)
        return;
    resource_editor_free(g->editor);
    free(g->run_id);
    free(g);
}

static int gym_create(const struct component_args *args, struct component **ret, struct err *reterr)
{
    struct gym *g = calloc(1, sizeof(*g));
    if (!g)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&g->base, &processor_gym, args);
    g->config = args->config;
    g->run_id = gym_run_id(g->config->run_id);
    g->editor = resource_editor_new(edit, g);
    if (!g->run_id || !g->editor) {
        gym_destroy(&g->base);
        return err_set(reterr, -ENOMEM, "out of memory");
    }
    *ret = &g->base;
    return 0;
}

/* ---- data path ---- */

static enum verdict gym_consume(struct component *c, struct batch *b, struct ack *ack)
{
    struct batch *out = NULL;
    int r = resource_editor_run(((struct gym *)c)->editor, b, &out);
    batch_unref(b);
    if (r < 0)
        return ack_answer(ack, VERDICT_RETRY, 0, "out of memory");
    return component_emit(c, out, ack);
}

static const struct cfg_field fields[] = {
    {.key = "run_id",
     .kind = BIND_STRING,
     CFG_AT(struct gym_config, run_id),
     .help = "nemo.run.id. Without it NEMO_GYM_OTEL_RUN_ID, NEMO_LENS_RUN_ID or SLURM_JOB_ID of "
             "the environment, or 12 hexadecimal digits made once per start."},
    {.key = "service_name",
     .kind = BIND_STRING,
     CFG_AT(struct gym_config, service_name),
     .help = "service.name of a resource that has none, or only the unknown_service of an SDK; "
             "with override, of every resource."},
    {.key = "service_group",
     .kind = BIND_STRING,
     CFG_AT(struct gym_config, service_group),
     .help = "nemo.gym.service_group. Without it the part of service.name before the first /."},
    {.key = "service_name_per_server",
     .kind = BIND_BOOL,
     CFG_AT(struct gym_config, service_name_per_server),
     .def = "true",
     .help = "Appends / and nemo.gym.server.name to service.name, unless it ends so."},
    {.key = "server_name",
     .kind = BIND_STRING,
     CFG_AT(struct gym_config, server_name),
     .help = "nemo.gym.server.name."},
    {.key = "server_type",
     .kind = BIND_STRING,
     CFG_AT(struct gym_config, server_type),
     .help = "nemo.gym.server.type."},
    {.key = "version",
     .kind = BIND_STRING,
     CFG_AT(struct gym_config, version),
     .help = "nemo.gym.version."},
    {.key = "override",
     .kind = BIND_BOOL,
     CFG_AT(struct gym_config, override),
     .def = "false",
     .help = "Replaces what the producer set. Otherwise only what it left out is added."},
    {0}};

const struct component_type processor_gym = {
    .kind = KIND_PROCESSOR,
    .name = "gym",
    .accepts = SIGNALS_ALL,
    .emits = SIGNALS_ALL,
    .stability = {"beta", "beta", "beta"},
    .help = "Stamps the resources of a NeMo Gym run: run id, service, server.",
    .fields = fields,
    .config_size = sizeof(struct gym_config),
    .create = gym_create,
    .destroy = gym_destroy,
    .consume = gym_consume,
};
