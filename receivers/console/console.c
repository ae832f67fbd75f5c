/*
 * The console receiver: telemetry that programs print, read from standard input, files, named pipes
 * and the outputs of child processes. The text is read by proto/console; what is no telemetry can
 * be passed on or become log records.
 */
#include <errno.h>

#include "agent/pipeline/probe.h"
#include "receivers/console/console.h"

#define STOP_SHARE_NS                                                                              \
    (5 * NS_PER_S) /* of the time for the whole stop; the rest is for what is downstream */

extern const struct component_type receiver_console;

/* ---- life ---- */

static void console_stop(struct component *component, uint64_t deadline_ns)
{
    struct console *c = (struct console *)component;
    uint64_t most = clock_now_ns() + STOP_SHARE_NS;
    if (!c->started)
        return;
    atomic_store(&c->deadline_ns, deadline_ns < most ? deadline_ns : most);
    atomic_store(&c->stopping, true);
    wake_up(c->wake);
    handover_wake(c);
    pthread_join(c->thread, NULL);
    c->started = false;
}

static void console_destroy(struct component *component)
{
    struct console *c = (struct console *)component;
    if (!c)
        return;
    console_stop(component, 0);
    host_unshare(c->c.host, c->handover);
    host_unshare(c->c.host, c->output);
    wake_unref(c->wake);
    patterns_done(&c->include);
    patterns_done(&c->exclude);
    patterns_done(&c->own);
    places_done(&c->stored);
    free(c->bytes);
    free(c);
}

static int console_create(const struct component_args *args, struct component **ret,
                          struct err *reterr)
{
    struct console *c = calloc(1, sizeof(*c));
    if (!c)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&c->c, &receiver_console, args);
    c->config = args->config;
    c->wake = wake_new();
    c->bytes = malloc(READ_BYTES);
    int r = c->wake && c->bytes ? patterns_init(&c->include, &c->config->include) : -ENOMEM;
    if (r == 0)
        r = patterns_init(&c->exclude, &c->config->exclude);
    if (r == 0 && c->config->storage_file[0])
        r = patterns_init(&c->own,
                          &(struct cfg_list){.items = (void *)&c->config->storage_file, .n = 1});
    if (r < 0) {
        console_destroy(&c->c);
        return err_set(reterr, r, "%s", strerror(-r));
    }
    *ret = &c->c;
    return 0;
}

static void get_metrics(struct console *c)
{
    struct host *h = c->c.host;
    char labels[METRIC_LABELS_MAX] = "";
    for (int s = 0; s < SIGNAL_COUNT; s++)
        receiver_metrics_get(h, c->c.id, "console", (enum signal)s, &c->metrics[s]);
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        struct memory_gate a;
        memory_gate_get(&c->c, (enum signal)s, "console", &a);
        if (s == 0 || a.limit < c->memory.limit)
            c->memory = a;
    }
    metric_label(labels, "receiver", c->c.id);
    c->plain_lines = metric_counter(h, "motel_receiver_console_plain_lines",
                                    "Lines that are no telemetry.", labels);
    c->malformed = metric_counter(h, "motel_receiver_console_malformed_objects",
                                  "Objects that look like telemetry and cannot be read.", labels);
    c->oversized = metric_counter(h, "motel_receiver_console_oversized_objects",
                                  "Objects or lines over max_record_bytes.", labels);
}

static int try_storage(const struct console *c, struct err *reterr)
{
    struct places st;
    if (!c->config->storage_file[0])
        return 0;
    int r = places_load(&st, c->config->storage_file, reterr);
    places_done(&st);
    return r == -EINVAL ? 0 : r; /* the thread says so and begins anew */
}

static int console_start(struct component *component, struct err *reterr)
{
    struct console *c = (struct console *)component;
    get_metrics(c);
    int r = try_storage(c, reterr);
    if (r == 0 && c->config->passthrough &&
        !(c->output = output_share(c->c.host, "stdout", reterr)))
        r = -EIO;
    if (r == 0)
        r = handover_open(c, reterr);
    if (r == 0)
        r = console_enter(c, false, reterr);
    if (r == 0 && (r = -pthread_create(&c->thread, NULL, console_run, c)) < 0)
        err_set(reterr, r, "cannot start a thread: %s", strerror(-r));
    c->started = r == 0;
    if (r < 0 && c->entered)
        console_leave(c);
    return r;
}

/* ---- doctor ---- */

struct matched {
    struct probe *p;
    size_t n;
    size_t unreadable;
    char first[300]; /* of those that cannot be read */
};

static void see_file(void *ctx, const char *path, const struct stat *st _unused_)
{
    struct matched *m = ctx;
    m->n++;
    if (access(path, R_OK) == 0)
        return;
    if (m->unreadable++ == 0)
        snprintf(m->first, sizeof(m->first), "%s", path);
}

static void probe_files(const struct console *c, struct probe *p)
{
    struct matched m = {.p = p};
    if (c->include.n == 0)
        return;
    patterns_walk(&c->include, &c->exclude, see_file, &m);
    if (m.unreadable)
        probe_fail(p, "files", "include", "change their owner or mode",
                   "%zu of %zu files cannot be read: %s%s", m.unreadable, m.n, m.first,
                   m.unreadable > 1 ? ", …" : "");
    else if (m.n == 0)
        probe_warn(p, "files", "include", "look at the patterns, unless the files come later",
                   "no file matches");
    else
        probe_ok(p, "files", "include", m.n == 1 ? "1 file" : "%zu files", m.n);
}

static void probe_pipe(struct probe *p, const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        probe_warn(p, "pipe", path, "mkfifo makes it, unless another program does",
                   "is not there yet");
    else if (!S_ISFIFO(st.st_mode))
        probe_fail(p, "pipe", path, "read files by include", "is not a named pipe");
    else if (access(path, R_OK | W_OK) < 0)
        probe_fail(p, "pipe", path, "change its owner or mode",
                   "this user (uid %u) may not read and write it", (unsigned)geteuid());
    else
        probe_ok(p, "pipe", path, "readable");
}

static void console_probe(struct component *component, struct probe *p)
{
    const struct console *c = (struct console *)component;
    const char *const *pipes = c->config->pipes.items;
    if (p->step != PROBE_OUTSIDE)
        return;
    probe_files(c, p);
    for (size_t i = 0; i < c->config->pipes.n; i++)
        probe_pipe(p, pipes[i]);
    if (c->config->storage_file[0])
        probe_output_file(p, c->config->storage_file, false, "is continued");
}

static int console_check(const void *config, struct err *reterr)
{
    const struct console_config *c = config;
    const char *const *pipes = c->pipes.items;
    for (size_t i = 0; i < c->pipes.n; i++)
        if (!pipes[i][0])
            return err_at(reterr, "pipes", "expected the path of a named pipe, got an empty text");
    if (c->storage_file[0] && c->include.n == 0)
        return err_at(reterr, "storage_file", "places are stored for files; give include as well");
    return 0;
}

/* ---- keys ---- */

static const char *const start_names[] = {"end", "beginning", NULL};
static const char *const plain_names[] = {"drop", "log", NULL};

static const struct cfg_field fields[] = {
    {.key = "stdin",
     .kind = BIND_BOOL,
     CFG_AT(struct console_config, from_stdin),
     .def = "false",
     .help = "Read standard input to its end."},
    {.key = "include",
     .kind = BIND_LIST,
     CFG_AT(struct console_config, include),
     .elem = &cfg_elem_string,
     .use = CFG_READS_FILE,
     .help = "Files to follow: patterns with *, ?, [a-z] and ** for any number of folders."},
    {.key = "exclude",
     .kind = BIND_LIST,
     CFG_AT(struct console_config, exclude),
     .elem = &cfg_elem_string,
     .help = "Patterns of files to leave out."},
    {.key = "start_at",
     .kind = BIND_ENUM,
     CFG_AT(struct console_config, start_at),
     .values = start_names,
     .def = "end",
     .help = "Where to begin in files that are there at the first start; files that come later are "
             "read from their beginning."},
    {.key = "follow",
     .kind = BIND_BOOL,
     CFG_AT(struct console_config, follow),
     .def = "true",
     .help = "Wait for more at the end of a file."},
    {.key = "poll_interval",
     .kind = BIND_DURATION,
     CFG_AT(struct console_config, poll_interval_ns),
     .def = "200ms",
     CFG_MORE(.min = 1e6, .max = 3.6e12),
     .help = "How often to look for new files and whether files have grown."},
    {.key = "storage_file",
     .kind = BIND_STRING,
     CFG_AT(struct console_config, storage_file),
     .use = CFG_KEEPS_FILE,
     .help = "File to keep in which places reading stopped, so that a restart goes on there."},
    {.key = "pipes",
     .kind = BIND_LIST,
     CFG_AT(struct console_config, pipes),
     .elem = &cfg_elem_string,
     .use = CFG_READS_FILE,
     .help = "Named pipes to read; one that is not there is waited for."},
    {.key = "passthrough",
     .kind = BIND_BOOL,
     CFG_AT(struct console_config, passthrough),
     .def = "false",
     .help = "Write lines that are no telemetry to standard output, unchanged."},
    {.key = "plain_lines",
     .kind = BIND_ENUM,
     CFG_AT(struct console_config, plain_lines),
     .values = plain_names,
     .def = "drop",
     .help = "What becomes of lines that are no telemetry: nothing, or log records."},
    {.key = "max_record_bytes",
     .kind = BIND_INT,
     CFG_AT(struct console_config, max_record_bytes),
     .def = "16777216",
     CFG_MORE(.unit = "bytes", .min = 1024, .max = 1 << 30),
     .help = "Longest object, and longest line, that is taken for telemetry."},
    {0},
};

const struct component_type receiver_console = {
    .kind = KIND_RECEIVER,
    .name = "console",
    .emits = SIGNALS_ALL,
    .stability = {"beta", "beta", "beta"},
    .help = "Reads telemetry that programs print: console exporters' JSON among other text.",
    .fields = fields,
    .config_size = sizeof(struct console_config),
    .check = console_check,
    .create = console_create,
    .start = console_start,
    .stop = console_stop,
    .destroy = console_destroy,
    .probe = console_probe,
};
