/* motel doctor: the configuration is loaded and the pipelines are made as for a start; then each
 * component looks at what it needs. Nothing is started. */
#include "agent/doctor.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "agent/base/cgroup.h"
#include "agent/base/clock.h"
#include "agent/doctor_parts.h"
#include "agent/pipeline/graph.h"
#include "agent/report.h"

#define TIMEOUT_NS (5 * (int64_t)NS_PER_S)
#define EXIT_FAILED 2

struct doctor {
    const struct command_line *cl;
    struct doctor_report report;
    struct probe probe;
};

static void on_finding(void *ctx, const struct probe_finding *f)
{
    doctor_report_finding(&((struct doctor *)ctx)->report, f);
}

static enum probe_likeness on_process(void *ctx, pid_t pid)
{
    return doctor_likeness(((struct doctor *)ctx)->cl, pid);
}

/* A processor that refuses data from so much memory on. */
static void check_limiter(struct probe *p, struct component *c)
{
    const size_t limit = c->type->memory_limit ? c->type->memory_limit(c) : 0;
    const unsigned long long machine = machine_memory();
    if (limit == 0 || limit == MEM_NO_LIMIT || p->step != PROBE_OUTSIDE)
        return;
    if (limit > machine)
        probe_warn(p, "limit", "memory", "lower limit_mib, or use limit_percentage",
                   "refuses data from %zu MiB on, but there are only %llu MiB", limit >> 20,
                   machine >> 20);
    else
        probe_ok(p, "limit", "memory", "refuses data from %zu MiB on, of %llu MiB", limit >> 20,
                 machine >> 20);
}

static void see_component(void *ctx, const struct component_settings *s, struct component *c,
                          unsigned signals)
{
    struct doctor *d = ctx;
    char name[300];
    snprintf(name, sizeof(name), "%s::%s", component_kind_section(s->type->kind), s->id);
    d->probe.component = name;
    d->probe.signals = signals;
    check_limiter(&d->probe, c);
    if (s->type->probe)
        s->type->probe(c, &d->probe);
}

/* Addresses first: a backend or scrape target may be one of our own. */
static void look_around(struct doctor *d, struct graph *g, const struct loaded *l)
{
    d->probe.step = PROBE_SERVERS;
    graph_each(g, see_component, d);
    doctor_check_servers(&d->probe, l);
    probe_ports_close(d->probe.ports);
    d->probe.step = PROBE_OUTSIDE;
    graph_each(g, see_component, d);
    doctor_check_rest(&d->probe, l);
}

static int examine(struct doctor *d, const struct loaded *l, struct cfg_errors *errs)
{
    _cleanup_(probe_ports_freep) struct probe_ports *ports = probe_ports_new();
    struct host *h = host_new(&l->motel);
    struct graph *g = NULL;
    int r = h && ports ? graph_build(h, l->service, errs, &g) : -ENOMEM;
    if (r == 0) {
        host_set_graph(h, g);
        d->probe.ports = ports;
        d->probe.file_mode = l->motel.file_mode;
        look_around(d, g, l);
    }
    graph_free(g);
    host_free(h);
    return r;
}

static int finish(struct doctor *d)
{
    doctor_report_end(&d->report);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return d->report.counts[PROBE_FAIL] ? EXIT_FAILED : 0;
    fprintf(stderr, "Error: cannot write to stdout: %s\n", strerror(errno));
    return EXIT_FAILED;
}

int doctor_run(const struct command_line *cl)
{
    struct cfg_errors errs = {0};
    struct err ignored;
    struct loaded l;
    struct doctor d = {.cl = cl, .report = {stdout, cl->format == FORMAT_JSON, {0}}};
    d.probe = (struct probe){.found = on_finding, .likeness = on_process, .ctx = &d};
    d.probe.timeout_ns = (uint64_t)(cl->health.timeout_ns ? cl->health.timeout_ns : TIMEOUT_NS);
    signal(SIGPIPE, SIG_IGN);
    log_configure(&(struct log_options){.level = LOG_OFF}, &ignored); /* the findings say it */
    int r = load(cl, &l, &errs);
    if (r == 0)
        r = examine(&d, &l, &errs);
    if (r < 0)
        report_warnings(l.config);
    const int code = r < 0 ? report_errors(&errs) : r > 0 ? report_idle(l.idle) : finish(&d);
    loaded_done(&l);
    cfg_errors_done(&errs);
    return code;
}
