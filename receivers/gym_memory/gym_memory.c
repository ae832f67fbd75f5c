/*
 * The gym_memory receiver: the memory of the host and of the servers of a NeMo Gym run, measured
 * from outside. It sends what Gym's own memory profiling sends, by the same rules, also when that
 * is switched off, and for servers that are no Gym ones.
 */
#include <errno.h>
#include <limits.h>
#include <sys/resource.h>

#include "agent/base/clock.h"
#include "receivers/gym_memory/discovery.h"
#include "receivers/gym_memory/outbox.h"
#include "receivers/gym_memory/points.h"

extern const struct component_type receiver_gym_memory;

struct discover_config {
    int64_t root_pid;
};
struct gym_memory_config {
    int64_t interval_ns;
    const char *root_path;
    struct cfg_list servers; /* of struct server_config */
    const struct discover_config *discover;
};

struct gym_memory {
    struct component base;
    const struct gym_memory_config *config;
    struct outbox outbox;
    struct servers servers;

    /* Of the sampling thread. */
    struct procfs fs;
    struct proc_table table;
    struct discovery discovery;
    struct meter meter;
    struct host_sample host;
    bool failed; /* the log has said so */

    bool started; /* there is a thread, and all of the above */
    pthread_t thread;
    uint64_t deadline_ns; /* of the stop; set before the outbox is closed */
};

/* ---- checking ---- */

static bool same_name(const struct server_config *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(c[i].name, c[n].name) == 0)
            return true;
    return false;
}

static int check_server(const struct gym_memory_config *c, const struct server_config *s, size_t i,
                        struct err *reterr)
{
    char path[64];
    struct err e = {.text = ""};
    snprintf(path, sizeof(path), "servers[%zu]", i);
    if (same_name(c->servers.items, i))
        return err_at(reterr, path, "the name \"%s\" is used twice", s->name);
    if (s->pids.n && *s->command_pattern)
        return err_at(reterr, path, "either pids or command_pattern can be given, not both");
    if (!s->pids.n && !*s->command_pattern && !c->discover)
        return err_at(reterr, path,
                      "pids or command_pattern must be given, or discover beside servers");
    _cleanup_(regex_freep) struct regex *re = NULL;
    if (*s->command_pattern && regex_new(bytes_str(s->command_pattern), &re, &e) < 0) {
        snprintf(path, sizeof(path), "servers[%zu]::command_pattern", i);
        return err_at(reterr, path, "%s", e.text);
    }
    return 0;
}

static int gym_memory_check(const void *config, struct err *reterr)
{
    const struct gym_memory_config *c = config;
    const struct server_config *s = c->servers.items;
    int r = 0;
    for (size_t i = 0; r == 0 && i < c->servers.n; i++)
        r = check_server(c, &s[i], i, reterr);
    return r;
}

/* ---- samples ---- */

/* Says once that something fails, until it works again. */
static void tell(struct gym_memory *g, int r, const char *what)
{
    if (r < 0 && !g->failed)
        log_warn(&g->base.logger, what, LOG_STR("error", strerror(-r)));
    g->failed = r < 0;
}

static void sample_host(struct gym_memory *g)
{
    int r = procfs_host(&g->fs, &g->host.now);
    const int64_t used = g->host.now.total - g->host.now.available;
    if (r < 0)
        g->host.peak = -1;
    else if (used > g->host.peak)
        g->host.peak = used;
}

static int sample_servers(struct gym_memory *g, bool exact)
{
    const int64_t begun_ns = meter_now_ns();
    int r = proc_table_refresh(&g->table);
    if (r == 0)
        r = discovery_run(&g->discovery, &g->table);
    if (r == 0)
        r = servers_collect(&g->servers, &g->table);
    if (r < 0)
        return r;
    meter_run(&g->meter, &g->table, g->servers.all, g->servers.nall, exact || !g->fs.real,
              begun_ns);
    servers_sum(&g->servers);
    return 0;
}

static int send_sample(struct gym_memory *g)
{
    struct buf *wire = buf_new(0);
    struct batch *b = NULL;
    int r = wire ? points_encode(&g->host, &g->servers, clock_wall_ns(), wire) : -ENOMEM;
    if (r < 0 || wire->len == 0) {
        buf_unref(wire);
        return r;
    }
    r = batch_from_wire(SIGNAL_METRICS, wire, &b, NULL);
    if (r == 0)
        outbox_send(&g->outbox, b);
    return r;
}

/* `exact`: no process is spared for the sake of time. */
static void take_sample(struct gym_memory *g, bool exact)
{
    sample_host(g);
    int r = sample_servers(g, exact);
    if (r == 0)
        r = send_sample(g);
    tell(g, r, "A sample of the memory failed.");
}

static void *run(void *arg)
{
    struct gym_memory *g = arg;
    const uint64_t interval_ns = (uint64_t)g->config->interval_ns;
    uint64_t next_ns = clock_now_ns() + interval_ns;
    take_sample(g, true);
    if (g->discovery.hidden)
        log_info(
            &g->base.logger,
            "The environment of some processes may not be read. Servers among them are not found.",
            LOG_INT("processes", g->discovery.hidden));
    while (outbox_wait(&g->outbox, next_ns)) {
        take_sample(g, false);
        const uint64_t now = clock_now_ns();
        next_ns = next_ns + interval_ns > now ? next_ns + interval_ns : now + interval_ns;
    }
    take_sample(g, true);
    outbox_drain(&g->outbox, g->deadline_ns);
    return NULL;
}

/* ---- life cycle ---- */

static void gym_memory_destroy(struct component *c)
{
    struct gym_memory *g = (struct gym_memory *)c;
    if (!g)
        return;
    discovery_done(&g->discovery);
    proc_table_done(&g->table);
    procfs_close(&g->fs);
    servers_done(&g->servers);
    outbox_done(&g->outbox);
    free(g);
}

static int gym_memory_create(const struct component_args *args, struct component **ret,
                             struct err *reterr)
{
    struct gym_memory *g = calloc(1, sizeof(*g));
    if (!g)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&g->base, &receiver_gym_memory, args);
    g->config = args->config;
    g->fs.dir = -1;
    g->host.peak = -1;
    meter_init(&g->meter, g->config->interval_ns);
    int r = servers_init(&g->servers, &g->config->servers, reterr);
    if (r == 0 && (r = outbox_init(&g->outbox, &g->base)) < 0)
        err_set(reterr, r, "out of memory");
    if (r < 0)
        gym_memory_destroy(&g->base);
    else
        *ret = &g->base;
    return r;
}

/* The counters of every process that is measured are read through a file that stays open. */
static void raise_file_limit(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur >= r.rlim_max)
        return;
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
}

static int open_all(struct gym_memory *g, struct err *reterr)
{
    static const struct discover_config everywhere = {.root_pid = 1};
    const struct gym_memory_config *c = g->config;
    const struct discover_config *discover = c->discover    ? c->discover
                                             : c->servers.n ? NULL
                                                            : &everywhere;
    int r = procfs_open(&g->fs, c->root_path, reterr);
    if (r < 0)
        return r;
    r = proc_table_init(&g->table, &g->fs);
    if (r == 0)
        r = discovery_init(&g->discovery, &g->fs, &g->servers);
    if (r < 0)
        return err_set(reterr, r, "cannot list processes: %s", strerror(-r));
    g->discovery.root_pid = discover ? (int)discover->root_pid : 0;
    g->discovery.own_pid = *c->root_path ? 0 : getpid();
    return 0;
}

static int gym_memory_start(struct component *c, struct err *reterr)
{
    struct gym_memory *g = (struct gym_memory *)c;
    raise_file_limit();
    int r = open_all(g, reterr);
    if (r < 0)
        return r;
    r = pthread_create(&g->thread, NULL, run, g);
    if (r)
        return err_set(reterr, -r, "cannot start a thread: %s", strerror(r));
    g->started = true;
    return 0;
}

static void gym_memory_stop(struct component *c, uint64_t deadline_ns)
{
    struct gym_memory *g = (struct gym_memory *)c;
    if (!g->started)
        return;
    const uint64_t now = clock_now_ns();
    g->deadline_ns =
        deadline_ns > now ? now + (deadline_ns - now) / 2 : now; /* those behind need time, too */
    outbox_close(&g->outbox);
    pthread_join(g->thread, NULL);
    g->started = false;
}

/* ---- the table ---- */

static const struct cfg_field pid_elem = {.kind = BIND_INT, CFG_MORE(.min = 1, .max = INT_MAX)};
static const struct cfg_field server_fields[] = {
    {.key = "name",
     .kind = BIND_STRING,
     CFG_AT(struct server_config, name),
     .required = true,
     .help = "nemo.gym.server.name."},
    {.key = "type",
     .kind = BIND_STRING,
     CFG_AT(struct server_config, type),
     .help = "nemo.gym.server.type."},
    {.key = "pids",
     .kind = BIND_LIST,
     CFG_AT(struct server_config, pids),
     .elem = &pid_elem,
     .help = "Root processes of the server; process.pid is the first."},
    {.key = "command_pattern",
     .kind = BIND_STRING,
     CFG_AT(struct server_config, command_pattern),
     .help = "Instead of pids: a regular expression (RE2); every process in whose command line it "
             "is found "
             "is a root."},
    {0}};
static const struct cfg_field server_elem = {
    .kind = BIND_STRUCT, .fields = server_fields, CFG_NESTED(struct server_config)};

static const struct cfg_field discover_fields[] = {
    {.key = "root_pid",
     .kind = BIND_INT,
     CFG_AT(struct discover_config, root_pid),
     .def = "1",
     CFG_MORE(.min = 1, .max = INT_MAX),
     .help = "The process at and below which is searched."},
    {0}};

static const struct cfg_field fields[] = {
    {.key = "interval",
     .kind = BIND_DURATION,
     CFG_AT(struct gym_memory_config, interval_ns),
     .def = "1s",
     CFG_MORE(.min = 10e6, .max = 4e18),
     .help = "Time between two samples."},
    {.key = "root_path",
     .kind = BIND_STRING,
     CFG_AT(struct gym_memory_config, root_path),
     .use = CFG_READS_FILE,
     .help = "Stands before /proc: where a container sees the file system of its host."},
    {.key = "servers",
     .kind = BIND_LIST,
     CFG_AT(struct gym_memory_config, servers),
     .elem = &server_elem,
     .help = "Servers that are known by name."},
    {.key = "discover",
     .kind = BIND_BLOCK,
     CFG_AT(struct gym_memory_config, discover),
     .fields = discover_fields,
     CFG_NESTED(struct discover_config),
     .help = "Finds servers by NEMO_GYM_CONFIG_PATH in the environment of processes. Without it "
             "and without servers the whole machine is searched."},
    {0}};

const struct component_type receiver_gym_memory = {
    .kind = KIND_RECEIVER,
    .name = "gym_memory",
    .emits = SIGNAL_BIT(SIGNAL_METRICS),
    .stability = {[SIGNAL_METRICS] = "beta"},
    .help = "Measures the memory of the host and of the servers of a NeMo Gym run from outside.",
    .fields = fields,
    .config_size = sizeof(struct gym_memory_config),
    .check = gym_memory_check,
    .create = gym_memory_create,
    .start = gym_memory_start,
    .stop = gym_memory_stop,
    .destroy = gym_memory_destroy,
};
