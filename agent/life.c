#include "agent/life.h"
#include "agent/job.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/base/secrets.h"
#include "agent/load.h"
#include "agent/memory.h"
#include "agent/net/limits.h"
#include "agent/notify.h"
#include "agent/pipeline/graph.h"
#include "agent/report.h"
#include "agent/self_metrics.h"
#include "agent/server_metrics.h"
#include "agent/summary.h"
#include "proto/check.h"

#define HANG_GRACE_NS                                                                              \
    (2 * NS_PER_S) /* beyond the shutdown timeout, before a stop that hangs is given up */

#define SAVE_NS (10 * NS_PER_S) /* a second signal leaves this for what is to be written */

#define STOP_SIGNAL                                                                                \
    (SIGRTMIN + 1) /* the supervisor of motel run says stop; nobody sends it from outside */

/* A graph that a reload has replaced: it drains on a thread of its own. */
struct retired {
    struct retired *next;
    struct loaded loaded;
    struct graph *graph;
    pthread_t thread;
    atomic_bool done;
};

struct life {
    const struct command_line *cl;
    const struct run_link *link; /* NULL = on our own */
    struct host *host;
    struct loaded loaded;
    struct graph *graph;
    struct self_metrics *metrics;
    struct retired *retired;
};

/* ---- putting a configuration to use ---- */

static void log_warnings(const struct config *c)
{
    for (size_t i = 0; c && i < c->nwarnings; i++)
        log_warn(NULL, c->warnings[i]);
}

static void set_limits(const struct motel_settings *m)
{
    const struct server_limits servers = {
        .max_connections = m->max_connections,
        .max_header_bytes = m->max_header_bytes,
        .client_timeout_ns = m->client_timeout_ns,
        .request_timeout_ns = m->request_timeout_ns,
        .stream_reset_burst = m->stream_reset_burst,
        .stream_reset_rate = m->stream_reset_rate,
    };
    server_limits_set(&servers);
    otlp_limits_set((unsigned)m->max_nesting, (unsigned)m->max_attributes);
}

/* Log, secrets and host follow `l`; `g` answers for extensions. */
static int apply(struct life *life, const struct loaded *l, struct graph *g, struct err *reterr)
{
    const struct telemetry_settings *t = &l->service->telemetry;
    secrets_enable(l->motel.redact);
    memory_limit_to(l->motel.memory_limit_bytes);
    int r = log_configure(&t->logs, reterr);
    if (r < 0) {
        err_prefix(reterr, "service::telemetry::logs::output_paths: ");
        return r;
    }
    host_set_settings(life->host, &l->motel);
    set_limits(&l->motel);
    host_set_graph(life->host, g);
    r = host_set_resource(life->host, t->resource);
    return r < 0 ? err_set(reterr, r, "out of memory") : 0;
}

/* The page of own metrics at its present address: an unchanged one stays open. */
static int follow_metrics(struct life *life, const struct loaded *l, struct err *reterr)
{
    const char *endpoint = l->service->telemetry.metrics_endpoint;
    const char *present = life->metrics ? self_metrics_endpoint(life->metrics) : NULL;
    if (endpoint && present && strcmp(endpoint, present) == 0)
        return 0;
    struct self_metrics *next = NULL;
    if (endpoint) {
        int r = self_metrics_start(life->host, endpoint, &next, reterr);
        if (r < 0)
            return r;
    }
    self_metrics_stop(life->metrics);
    life->metrics = next;
    return 0;
}

/* ---- start ---- */

static int print_error(const struct life *life, int r, const struct err *e)
{
    report_error(e);
    if (r == -EADDRINUSE)
        fputs(
            command_line_configured(life->cl)
                ? "Another program has this port, or the configuration names it twice; "
                  "\"ss -ltnp\" shows who.\n"
                : "Another collector may be running; \"ss -ltnp\" shows who has the port. Stop it, "
                  "or choose other ports:\n"
                  "  motel print-config > motel.yaml, edit the endpoints, motel --config "
                  "motel.yaml\n",
            stderr);
    return 1;
}

/* A text of the configuration; --set may have changed the built-in one. */
static const char *text_at(const struct life *life, const char *path)
{
    bool exact = false;
    const struct cfg_value *v = cfg_find(life->loaded.config->root, path, &exact);
    return exact && v && v->text ? v->text : "(off)";
}

static void print_banner(const struct life *life)
{
    static const char text[] =
        "motel %s runs without --config: it prints what programs on this machine send.\n"
        "In the shell of such a program:\n"
        "\n"
        "  export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf\n"
        "  export OTEL_EXPORTER_OTLP_ENDPOINT=http://%s\n"
        "or, for gRPC:\n"
        "  export OTEL_EXPORTER_OTLP_PROTOCOL=grpc\n"
        "  export OTEL_EXPORTER_OTLP_ENDPOINT=http://%s\n"
        "\n"
        "Health:  http://%s/\n"
        "Stop:    Ctrl-C\n"
        "Change:  motel print-config > motel.yaml, then motel --config motel.yaml\n";
    fprintf(stderr, text, MOTEL_VERSION,
            text_at(life, "receivers::otlp::protocols::http::endpoint"),
            text_at(life, "receivers::otlp::protocols::grpc::endpoint"),
            text_at(life, "extensions::health_check::endpoint"));
}

/* For the service manager: what runs, on one line. */
static void tell_ready(const struct life *life, const char *how)
{
    const size_t n = life->loaded.service->npipelines;
    char text[160];
    snprintf(text, sizeof(text), "%s: %zu pipeline%s", how, n, n == 1 ? "" : "s");
    notify_ready(text);
}

static int start_graph(struct life *life)
{
    struct err e = {0};
    int r = apply(life, &life->loaded, life->graph, &e);
    if (r < 0)
        return print_error(life, r, &e);
    server_metrics_show(life->host);
    log_info(NULL, "Starting motel...", LOG_STR("Version", MOTEL_VERSION),
             LOG_INT("NumCPU", sysconf(_SC_NPROCESSORS_ONLN)));
    log_warnings(life->loaded.config);
    r = follow_metrics(life, &life->loaded, &e);
    if (r == 0)
        r = graph_start(life->graph, &e);
    if (r < 0)
        return print_error(life, r, &e);
    log_info(NULL, "Everything is ready. Begin running and processing data.");
    tell_ready(life, "Receiving");
    if (life->link)
        job_tell_ready(life->link, &life->loaded, life->host);
    else if (!command_line_configured(life->cl))
        print_banner(life);
    return 0;
}

static int say_idle(const struct life *life)
{
    if (!life->link) {
        notify_ready(life->loaded.idle);
        return report_idle(life->loaded.idle);
    }
    job_tell_ready(life->link, &life->loaded, NULL);
    return 0;
}

static int start(struct life *life)
{
    struct cfg_errors errs = {0};
    int r = life->link ? load_for_job(life->cl, life->link->job, &life->loaded, &errs)
                       : load(life->cl, &life->loaded, &errs);
    if (r == 0) {
        life->host = host_new(&life->loaded.motel);
        r = life->host ? graph_build(life->host, life->loaded.service, &errs, &life->graph)
                       : -ENOMEM;
    }
    if (r < 0)
        report_warnings(life->loaded.config);
    int code = r < 0 ? report_errors(&errs) : r > 0 ? say_idle(life) : start_graph(life);
    cfg_errors_done(&errs);
    return code;
}

/* ---- reload ---- */

static uint64_t stop_deadline(const struct loaded *l)
{
    return clock_now_ns() + (uint64_t)l->motel.shutdown_timeout_ns;
}

static void *drain_retired(void *arg)
{
    struct retired *r = arg;
    graph_stop(r->graph, stop_deadline(&r->loaded));
    r->graph = graph_free(r->graph);
    loaded_done(&r->loaded);
    log_info(NULL, "The old configuration has ended");
    atomic_store(&r->done, true);
    return NULL;
}

/* Lets the running graph end beside the new one. */
static void retire(struct life *life)
{
    struct retired *r = calloc(1, sizeof(*r));
    if (r) {
        *r = (struct retired){.next = life->retired, .loaded = life->loaded, .graph = life->graph};
        if (pthread_create(&r->thread, NULL, drain_retired, r) == 0) {
            life->retired = r;
            return;
        }
        free(r);
    }
    struct retired here = {.loaded = life->loaded,
                           .graph = life->graph}; /* no thread to be had: wait for it */
    drain_retired(&here);
}

/* Forgets the graphs that have ended, or waits for all to end. */
static void reap_retired(struct life *life, bool all)
{
    for (struct retired **at = &life->retired; *at;) {
        struct retired *r = *at;
        if (!all && !atomic_load(&r->done)) {
            at = &r->next;
            continue;
        }
        pthread_join(r->thread, NULL);
        *at = r->next;
        free(r);
    }
}

static void log_errors(const struct cfg_errors *errs)
{
    _cleanup_free_ char *text = errors_text(errs);
    char *rest = text;
    for (const char *line; (line = strsep(&rest, "\n")) != NULL;)
        if (*line)
            log_error(NULL, "Mistake in the configuration", LOG_STR("error", line));
}

/* Starts `next` beside the running graph. On failure all is as before. */
static int switch_to(struct life *life, const struct loaded *next, struct graph *g)
{
    struct err e = {0};
    int r = apply(life, next, g, &e);
    if (r == 0)
        r = follow_metrics(life, next, &e);
    if (r == 0)
        r = graph_start(g, &e);
    if (r == 0)
        return 0;
    log_error(NULL, "The new configuration does not start", LOG_STR("error", e.text));
    apply(life, &life->loaded, life->graph, &e);
    follow_metrics(life, &life->loaded, &e);
    return r;
}

static void reload(struct life *life)
{
    struct cfg_errors errs = {0};
    struct loaded next;
    struct graph *g = NULL;
    notify_reloading();
    log_info(NULL, "Reading the configuration again");
    int r = load(life->cl, &next, &errs);
    log_warnings(next.config);
    if (r > 0)
        log_warn(NULL, next.idle);
    if (r == 0)
        r = graph_build(life->host, next.service, &errs, &g);
    log_errors(&errs);
    cfg_errors_done(&errs);
    if (r == 0)
        r = switch_to(life, &next, g);
    if (r != 0) {
        graph_free(g);
        loaded_done(&next);
        log_error(NULL, "Reload failed; the old configuration keeps running");
        tell_ready(life, "Reload failed, receiving with the old configuration");
        return;
    }
    reap_retired(life, false);
    retire(life);
    life->loaded = next;
    life->graph = g;
    log_info(NULL, "The new configuration runs");
    tell_ready(life, "Receiving");
}

/* ---- stop ---- */

static sigset_t handled_signals(const struct run_link *link)
{
    sigset_t set;
    sigemptyset(&set);
    if (link) {
        sigaddset(&set, STOP_SIGNAL);
        return set;
    }
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    return set;
}

/* Signals come through sigwaitinfo() alone, also those that the parent ignored (as a shell does for
 * `motel &`). */
static void set_up_signals(const struct run_link *link)
{
    sigset_t set = handled_signals(link);
    sigaddset(&set, MEMORY_SIGNAL);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    for (int s = 1; s < NSIG; s++)
        if (sigismember(&set, s) == 1)
            signal(s, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
}

/* The next signal of `set`; 0 at `until_ns`. */
static int next_signal(const sigset_t *set, uint64_t until_ns)
{
    for (;;) {
        const uint64_t now = clock_now_ns(), left = now < until_ns ? until_ns - now : 0;
        const struct timespec t = {(time_t)(left / NS_PER_S), (long)(left % NS_PER_S)};
        const int s = until_ns == UINT64_MAX ? sigwaitinfo(set, NULL) : sigtimedwait(set, NULL, &t);
        if (s > 0)
            return s;
        if (errno == EAGAIN)
            return 0;
    }
}

/* When the main loop has something to do of its own accord. */
static uint64_t due_ns(void)
{
    const uint64_t memory = memory_due_ns(), watchdog = notify_watchdog_due_ns();
    return memory < watchdog ? memory : watchdog;
}

/* The next signal of `set`, 0 at `until_ns`; does meanwhile what is due. */
static int attend(const sigset_t *set, uint64_t until_ns)
{
    sigset_t all = *set;
    sigaddset(&all, MEMORY_SIGNAL);
    for (;;) {
        notify_watchdog();
        const uint64_t due = due_ns();
        const int s = next_signal(&all, due < until_ns ? due : until_ns);
        if (s == MEMORY_SIGNAL)
            memory_signalled();
        else if (s || clock_now_ns() >= until_ns)
            return s;
        else
            memory_work();
    }
}

struct stopping {
    uint64_t limit_ns;
    const struct run_link *link;
    bool saves; /* what is not delivered can be written to a spill directory */
    pthread_mutex_t lock;
    struct graph *graph; /* while it is being stopped */
};

/* The next request to stop; 0 = the time is over. */
static int next_stop(const struct stopping *s, uint64_t limit_ns)
{
    const sigset_t set = handled_signals(s->link);
    int signal = SIGHUP;
    while (signal == SIGHUP)
        signal = next_signal(&set, limit_ns);
    return signal;
}

/* No more deliveries; true when the process is to end at once all the same. */
static bool hurry(struct stopping *s)
{
    const uint64_t limit_ns = clock_now_ns() + SAVE_NS;
    log_warn(NULL, "Asked to stop again: what is not delivered is written to the spill directory.");
    pthread_mutex_lock(&s->lock);
    if (s->graph)
        graph_hurry(s->graph);
    pthread_mutex_unlock(&s->lock);
    return next_stop(s, limit_ns < s->limit_ns ? limit_ns : s->limit_ns) != 0;
}

/* Ends the process when a stop is asked for again, or when it hangs. */
static void *watch_stop(void *arg)
{
    struct stopping *stopping = arg;
    int s = next_stop(stopping, stopping->limit_ns);
    if (s && stopping->saves && !hurry(stopping))
        s = 0;
    if (s)
        log_warn(
            NULL,
            "Stopped at once by a second signal; undelivered data that is not on disk is lost.");
    else
        log_error(NULL, "The stop does not end; undelivered data that is not on disk is lost.");
    _exit(s ? 0 : 1);
}

/* A third of a second more than the watcher of the stop gives us. */
static void tell_stopping(const struct life *life)
{
    const uint64_t limit_ns = (uint64_t)life->loaded.motel.shutdown_timeout_ns;
    char text[120];
    snprintf(text, sizeof(text), "Delivering what was received, for at most %llu s",
             (unsigned long long)((limit_ns + NS_PER_S - 1) / NS_PER_S));
    notify_stopping(text, limit_ns + HANG_GRACE_NS + NS_PER_S / 3);
}

/* After SIGTERM everything goes on for `stop_delay`: who ends a whole job (Slurm's scancel) sends
 * it to clients and collector at once, and clients have a last batch to send. Another signal ends
 * the delay; a fifth of the time is left for what they sent. */
static void linger(const struct life *life, uint64_t deadline_ns)
{
    const struct motel_settings *m = &life->loaded.motel;
    const uint64_t now = clock_now_ns(), end = now + (uint64_t)m->stop_delay_ns,
                   latest = deadline_ns - (uint64_t)m->shutdown_timeout_ns / 5,
                   until = end < latest ? end : latest;
    const sigset_t set = handled_signals(life->link);
    if (until <= now)
        return;
    log_info(NULL, "Clients have until the end of stop_delay",
             LOG_INT("ms", (int64_t)((until - now) / NS_PER_MS)));
    while (attend(&set, until) == SIGHUP)
        ;
}

static int stop(struct life *life, int signal)
{
    /* read by a thread that lives as long as the process */
    static struct stopping stopping = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t watcher;
    const uint64_t deadline = stop_deadline(&life->loaded);
    if (!life->link)
        log_info(NULL, "Received signal from OS",
                 LOG_STR("signal", signal == SIGTERM  ? "terminated"
                                   : signal == SIGINT ? "interrupt"
                                                      : "hangup"));
    tell_stopping(life);
    if (signal == SIGTERM)
        linger(life, deadline);
    stopping.limit_ns = deadline + HANG_GRACE_NS;
    stopping.link = life->link;
    stopping.saves = *life->loaded.motel.spill_directory != '\0';
    stopping.graph = life->graph;
    if (pthread_create(&watcher, NULL, watch_stop, &stopping) == 0)
        pthread_detach(watcher);
    log_info(NULL, "Starting shutdown...");
    host_set_stopping(life->host, true);
    graph_stop(life->graph, deadline);
    pthread_mutex_lock(&stopping.lock);
    stopping.graph = NULL;
    pthread_mutex_unlock(&stopping.lock);
    reap_retired(life, true);
    summary_tell(life->host, life->loaded.service, &life->loaded.motel);
    if (life->link)
        job_tell_done(life->link, life->host);
    log_info(NULL, "Shutdown complete.");
    return 0;
}

static int wait_for_end(struct life *life)
{
    const sigset_t set = handled_signals(life->link);
    for (;;) {
        const int s = attend(&set, UINT64_MAX);
        if (s == SIGHUP && command_line_configured(life->cl))
            reload(life);
        else /* a terminal that closes ends a collector without a configuration */
            return stop(life, s);
    }
}

static void life_done(struct life *life)
{
    self_metrics_stop(life->metrics);
    graph_free(life->graph);
    host_free(life->host);
    loaded_done(&life->loaded);
}

int life_run(const struct command_line *cl, const struct run_link *link)
{
    struct life life = {.cl = cl, .link = link};
    if (link && run_link_watch(link, STOP_SIGNAL) < 0)
        return 1;
    set_up_signals(link);
    memory_set_up();
    if (!link) /* the service that runs under motel run speaks for itself */
        notify_set_up();
    int code = start(&life);
    if (code == 0 && !life.loaded.idle)
        code = wait_for_end(&life);
    life_done(&life);
    notify_done();
    return code;
}
