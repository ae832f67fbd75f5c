/*
 * The prometheus receiver: scrapes the metrics pages of targets. One thread makes all requests, so
 * that a slow target delays no other, and turns every answer into one batch of points. When the
 * process stops every target is scraped once more.
 */
#include "receivers/prometheus/prometheus.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "agent/base/clock.h"
#include "receivers/prometheus/probe.h"

extern const struct component_type receiver_prometheus;

#define FINAL_NS (5 * NS_PER_S) /* for the last scrape of all targets */
#define MAX_IDLE_CONNECTIONS 1000

struct prometheus {
    struct component base;
    struct scraper scraper;
    struct discovery *discovery;
    pthread_t thread;
    bool started;
    atomic_bool stopping;
    uint64_t deadline_ns; /* of the stop; set before `stopping` */
};

/* ---- the thread ---- */

/* The next one is due one interval later; scrapes that were missed are not made up for. */
static void move_on(struct target *t, uint64_t now)
{
    t->next_ns += t->spec.interval_ns;
    if (t->next_ns <= now)
        t->next_ns +=
            (now - t->next_ns) / t->spec.interval_ns * t->spec.interval_ns + t->spec.interval_ns;
}

static bool is_busy(const struct target *t)
{
    return t->caller && http_caller_busy(t->caller);
}

/* Stale points of a target that discovery does not know any more. */
static void say_goodbye(struct scraper *s, struct target *t, uint64_t now)
{
    const uint64_t ago = now > t->next_ns ? now - t->next_ns : 0;
    if (t->scraped)
        prom_scrape_forget(s, t, (int64_t)((clock_wall_ns() - ago) / NS_PER_MS));
}

/* Starts what is due. Returns when the next target is. */
static uint64_t run_targets(struct scraper *s, uint64_t now)
{
    uint64_t next = UINT64_MAX;
    for (struct target **at = &s->targets; *at;) {
        struct target *t = *at;
        if (t->gone_at_ns && t->gone_at_ns <= now) {
            *at = t->next;
            say_goodbye(s, t, now);
            prom_target_free(t);
            continue;
        }
        if (!t->gone_at_ns && t->next_ns <= now) {
            if (!is_busy(t))
                prom_target_scrape(t, UINT64_MAX);
            move_on(t, now);
        }
        const uint64_t due = t->gone_at_ns ? t->gone_at_ns : t->next_ns;
        next = due < next ? due : next;
        at = &t->next;
    }
    return next;
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void run_until_stop(struct prometheus *p)
{
    struct scraper *s = &p->scraper;
    uint64_t look = 0;
    while (!atomic_load(&p->stopping)) {
        const uint64_t now = clock_now_ns();
        if (look <= now)
            look = prom_discovery_run(p->discovery, now);
        const uint64_t next = run_targets(s, now), offer = prom_outbox_offer(&s->outbox, now);
        http_async_run(s->async, earliest(earliest(next, offer), look));
    }
}

/* ---- the end ---- */

/* A last scrape of every target, begun after the stop was asked for. False when all are done. */
static bool run_final(struct scraper *s, uint64_t until)
{
    bool busy = false;
    for (struct target *t = s->targets; t; t = t->next) {
        if (t->final_owed && !is_busy(t)) {
            t->final_owed = false;
            prom_target_scrape(t, until);
        }
        busy |= is_busy(t);
    }
    return busy;
}

static void scrape_all_once_more(struct prometheus *p)
{
    struct scraper *s = &p->scraper;
    const uint64_t until = earliest(clock_now_ns() + FINAL_NS, p->deadline_ns);
    for (struct target *t = s->targets; t; t = t->next)
        t->final_owed = !t->gone_at_ns;
    while (run_final(s, until) && clock_now_ns() < until)
        http_async_run(s->async, until);
    http_async_run(s->async, 0); /* what ends with the deadline */
}

static void drain(struct prometheus *p)
{
    struct prom_outbox *o = &p->scraper.outbox;
    prom_outbox_closing(o);
    while (!prom_outbox_empty(o) && clock_now_ns() < p->deadline_ns) {
        const uint64_t offer = prom_outbox_offer(o, clock_now_ns());
        if (!prom_outbox_empty(o))
            http_async_run(p->scraper.async, earliest(offer, p->deadline_ns));
    }
}

static void cancel_all(struct scraper *s)
{
    for (struct target *t = s->targets; t; t = t->next)
        if (t->caller)
            http_caller_cancel(t->caller);
}

/* After a reload of the configuration the new receiver goes on with the targets: there is no last
 * scrape then. */
static void *run(void *arg)
{
    struct prometheus *p = arg;
    run_until_stop(p);
    if (p->scraper.config->scrape_on_shutdown && host_stopping(p->base.host))
        scrape_all_once_more(p);
    cancel_all(&p->scraper);
    drain(p);
    return NULL;
}

/* ---- life cycle ---- */

static void wake(void *ctx)
{
    http_async_wake(((struct prometheus *)ctx)->scraper.async);
}

static void scraper_done(struct scraper *s)
{
    prom_outbox_done(&s->outbox);
    for (struct target *t; (t = s->targets);) {
        s->targets = t->next;
        prom_target_free(t);
    }
    http_async_free(s->async);
    for (size_t i = 0; i < s->njobs; i++)
        prom_job_done(&s->jobs[i]);
    free(s->jobs);
    prom_mapper_free(s->mapper);
    prom_builder_done(&s->labels);
    buf_unref(s->scratch);
    free(s->items);
    free(s->external);
}

static void prometheus_destroy(struct component *c)
{
    struct prometheus *p = (struct prometheus *)c;
    if (!p)
        return;
    prom_discovery_free(p->discovery);
    scraper_done(&p->scraper);
    free(p);
}

static int make_jobs(struct scraper *s, struct err *reterr)
{
    const struct cfg_list *l = &s->config->file.scrape_configs;
    const struct scrape_config *c = l->items;
    s->jobs = calloc(l->n + 1, sizeof(*s->jobs));
    if (!s->jobs)
        return err_set(reterr, -ENOMEM, "out of memory");
    for (size_t i = 0; i < l->n; i++) {
        int r = prom_job_init(&s->jobs[s->njobs++], &s->config->file, &c[i], reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

static int make_external(struct scraper *s)
{
    const struct cfg_map *m = &s->config->file.global.external_labels;
    const char *const *values = m->values;
    s->external = calloc(m->n + 1, sizeof(*s->external));
    if (!s->external)
        return -ENOMEM;
    for (size_t i = 0; i < m->n; i++)
        s->external[s->nexternal++] =
            (struct prom_label){bytes_str(m->keys[i]), bytes_str(values[i])};
    return 0;
}

static int make_tools(struct scraper *s)
{
    s->mapper = prom_mapper_new(MOTEL_VERSION);
    s->scratch = buf_new(0);
    if (!s->mapper || !s->scratch || prom_builder_init(&s->labels) < 0 || make_external(s) < 0)
        return -ENOMEM;
    return 0;
}

static int prometheus_create(const struct component_args *args, struct component **ret,
                             struct err *reterr)
{
    struct prometheus *p = calloc(1, sizeof(*p));
    if (!p)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&p->base, &receiver_prometheus, args);
    struct scraper *s = &p->scraper;
    s->owner = &p->base;
    s->config = args->config;
    prom_outbox_init(&s->outbox, &p->base, wake, p);
    int r = make_jobs(s, reterr);
    if (r == 0 && (r = make_tools(s)) < 0)
        err_set(reterr, r, "out of memory");
    if (r == 0 && !(p->discovery = prom_discovery_new(s)))
        r = err_set(reterr, -ENOMEM, "out of memory");
    if (r < 0)
        prometheus_destroy(&p->base);
    else
        *ret = &p->base;
    return r;
}

static void warn_renames(const struct scraper *s)
{
    for (size_t i = 0; i < s->njobs; i++)
        if (prom_relabel_renames(s->jobs[i].sample_rules))
            log_warn(&s->owner->logger,
                     "metric renaming using metric_relabel_configs will result in unknown-typed "
                     "metrics without a unit or description",
                     LOG_STR("job", s->jobs[i].settings.config->job_name));
}

/* Every target may have a connection of its own. */
static void raise_file_limit(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur >= r.rlim_max)
        return;
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
}

static int prometheus_start(struct component *c, struct err *reterr)
{
    struct prometheus *p = (struct prometheus *)c;
    struct scraper *s = &p->scraper;
    raise_file_limit();
    warn_renames(s);
    memory_gate_get(c, SIGNAL_METRICS, "http", &s->memory);
    s->async = http_async_new(MAX_IDLE_CONNECTIONS, reterr);
    if (!s->async)
        return -ENOMEM;
    int r = pthread_create(&p->thread, NULL, run, p);
    if (r)
        return err_set(reterr, -r, "cannot start a thread: %s", strerror(r));
    p->started = true;
    return 0;
}

static void prometheus_stop(struct component *c, uint64_t deadline_ns)
{
    struct prometheus *p = (struct prometheus *)c;
    if (!p->started)
        return;
    const uint64_t now = clock_now_ns();
    p->deadline_ns =
        deadline_ns > now ? now + (deadline_ns - now) / 2 : now; /* those behind need time, too */
    atomic_store(&p->stopping, true);
    http_async_wake(p->scraper.async);
    pthread_join(p->thread, NULL);
    p->started = false;
}

/* ---- doctor ---- */

static void prometheus_probe(struct component *c, struct probe *p)
{
    struct prometheus *r = (struct prometheus *)c;
    if (p->step != PROBE_OUTSIDE)
        return;
    prom_discovery_run(r->discovery, clock_now_ns());
    prom_probe(p, &r->scraper);
}

const struct component_type receiver_prometheus = {
    .kind = KIND_RECEIVER,
    .name = "prometheus",
    .emits = SIGNAL_BIT(SIGNAL_METRICS),
    .stability = {[SIGNAL_METRICS] = "beta"},
    .help = "Scrapes the metrics pages of targets, by a Prometheus configuration.",
    .fields = prom_fields,
    .config_size = sizeof(struct prom_config),
    .check = prom_config_check,
    .create = prometheus_create,
    .start = prometheus_start,
    .stop = prometheus_stop,
    .destroy = prometheus_destroy,
    .probe = prometheus_probe,
};
