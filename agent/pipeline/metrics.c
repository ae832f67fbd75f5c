/* Self metrics: families of counters, gauges and histograms, rendered as Prometheus text. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/base/clock.h"
#include "agent/base/secrets.h"
#include "agent/pipeline/host_parts.h"

struct metric {
    struct metric *next; /* by labels */
    char *labels;
    _Atomic int64_t value; /* histogram: the sum */
    const int64_t *bounds; /* histogram: upper limits of the buckets */
    size_t nbounds;
    _Atomic int64_t *buckets;   /* histogram: nbounds + 1 */
    int64_t (*read)(void *ctx); /* NULL = `value` */
    void *ctx;
};

struct family {
    struct family *next; /* by name */
    char *name, *help;
    const char *type; /* "counter", "gauge", "histogram"; static */
    struct metric *metrics;
};

struct metrics {
    pthread_mutex_t lock;
    struct family *families;
    char *target;
    uint64_t start_ns;
};

/* Room is kept for the closing quote and the NUL; an escape is written whole or not at all. */
void metric_label(char labels[METRIC_LABELS_MAX], const char *name, const char *value)
{
    size_t at = strlen(labels), room = METRIC_LABELS_MAX - 2;
    int n = snprintf(labels + at, METRIC_LABELS_MAX - at, "%s%s=\"", at ? "," : "", name);
    if (at + (size_t)n > room) {
        labels[at] = '\0';
        return;
    }
    at += (size_t)n;
    for (; *value && at + 2 <= room; value++) {
        if (*value == '"' || *value == '\\' || *value == '\n')
            labels[at++] = '\\';
        labels[at++] = *value == '\n' ? 'n' : *value;
    }
    labels[at++] = '"';
    labels[at] = '\0';
}

struct metrics *metrics_new(void)
{
    struct metrics *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    pthread_mutex_init(&m->lock, NULL);
    m->start_ns = clock_now_ns();
    return m;
}

static void metric_free(struct metric *m)
{
    free(m->labels);
    free(m->buckets);
    free(m);
}

static void family_free(struct family *f)
{
    while (f->metrics) {
        struct metric *m = f->metrics;
        f->metrics = m->next;
        metric_free(m);
    }
    free(f->name);
    free(f->help);
    free(f);
}

struct metrics *metrics_free(struct metrics *m)
{
    if (!m)
        return NULL;
    while (m->families) {
        struct family *f = m->families;
        m->families = f->next;
        family_free(f);
    }
    pthread_mutex_destroy(&m->lock);
    free(m->target);
    free(m);
    return NULL;
}

int metrics_set_target(struct metrics *m, const char *labels)
{
    char *copy = strdup(labels);
    if (!copy)
        return -ENOMEM;
    pthread_mutex_lock(&m->lock);
    free(m->target);
    m->target = copy;
    pthread_mutex_unlock(&m->lock);
    return 0;
}

static struct family *family_new(const char *name, const char *help, const char *type)
{
    struct family *f = calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    f->name = strdup(name);
    f->help = strdup(help);
    f->type = type;
    if (f->name && f->help)
        return f;
    family_free(f);
    return NULL;
}

/* The family of `name`, made where it belongs; NULL when out of memory. */
static struct family *family_get(struct metrics *m, const char *name, const char *help,
                                 const char *type)
{
    struct family **at = &m->families;
    int order = 1;
    while (*at && (order = strcmp((*at)->name, name)) < 0)
        at = &(*at)->next;
    if (*at && order == 0)
        return *at;
    struct family *f = family_new(name, help, type);
    if (!f)
        return NULL;
    f->next = *at;
    return *at = f;
}

/* Puts a new series before others of the same labels; NULL when out of memory. */
static struct metric *metric_insert(struct family *f, const char *labels)
{
    struct metric *m = calloc(1, sizeof(*m)), **at = &f->metrics;
    if (!m || !(m->labels = strdup(labels))) {
        free(m);
        return NULL;
    }
    while (*at && strcmp((*at)->labels, labels) < 0)
        at = &(*at)->next;
    m->next = *at;
    return *at = m;
}

static struct metric *metric_find(struct family *f, const char *labels)
{
    struct metric *m = f->metrics;
    while (m && (m->read || strcmp(m->labels, labels) != 0))
        m = m->next;
    return m;
}

/* Stands in for a series that could not be made: counted, never shown. */
static struct metric nowhere;

static struct metric *metric_get(struct host *h, const char *name, const char *help,
                                 const char *labels, const char *type)
{
    struct metrics *all = host_metrics(h);
    struct metric *m = NULL;
    pthread_mutex_lock(&all->lock);
    struct family *f = family_get(all, name, help, type);
    if (f && !(m = metric_find(f, labels)))
        m = metric_insert(f, labels);
    pthread_mutex_unlock(&all->lock);
    return m ? m : &nowhere;
}

struct metric *metric_counter(struct host *h, const char *name, const char *help,
                              const char *labels)
{
    return metric_get(h, name, help, labels, "counter");
}

struct metric *metric_gauge(struct host *h, const char *name, const char *help, const char *labels)
{
    return metric_get(h, name, help, labels, "gauge");
}

/* Gives a new series its buckets; false when out of memory. */
static bool add_buckets(struct metric *m, const int64_t *bounds, size_t n)
{
    if (m->buckets)
        return true;
    m->buckets = calloc(n + 1, sizeof(*m->buckets));
    m->bounds = bounds;
    m->nbounds = n;
    return m->buckets != NULL;
}

struct metric *metric_histogram(struct host *h, const char *name, const char *help,
                                const char *labels, const int64_t *bounds, size_t n)
{
    struct metric *m = metric_get(h, name, help, labels, "histogram");
    struct metrics *all = host_metrics(h);
    if (m == &nowhere)
        return m;
    pthread_mutex_lock(&all->lock);
    bool complete = add_buckets(m, bounds, n);
    pthread_mutex_unlock(&all->lock);
    return complete ? m : &nowhere;
}

void metric_record(struct metric *m, int64_t v)
{
    size_t i = 0;
    metric_add(m, v);
    while (i < m->nbounds && v > m->bounds[i])
        i++;
    if (m->buckets)
        atomic_fetch_add_explicit(&m->buckets[i], 1, memory_order_relaxed);
}

void metric_add(struct metric *m, int64_t n)
{
    atomic_fetch_add_explicit(&m->value, n, memory_order_relaxed);
}

void metric_set(struct metric *m, int64_t v)
{
    atomic_store_explicit(&m->value, v, memory_order_relaxed);
}

int64_t metric_value(const struct metric *m)
{
    return atomic_load_explicit(&m->value, memory_order_relaxed);
}

static void observe(struct host *h, const char *name, const char *help, const char *type,
                    const char *labels, int64_t (*read)(void *ctx), void *ctx)
{
    struct metrics *all = host_metrics(h);
    pthread_mutex_lock(&all->lock);
    struct family *f = family_get(all, name, help, type);
    struct metric *m = f ? metric_insert(f, labels) : NULL;
    if (m) {
        m->read = read;
        m->ctx = ctx;
    }
    pthread_mutex_unlock(&all->lock);
}

void metric_observe(struct host *h, const char *name, const char *help, const char *labels,
                    int64_t (*read)(void *ctx), void *ctx)
{
    observe(h, name, help, "gauge", labels, read, ctx);
}

void metric_observe_counter(struct host *h, const char *name, const char *help, const char *labels,
                            int64_t (*read)(void *ctx), void *ctx)
{
    observe(h, name, help, "counter", labels, read, ctx);
}

void metric_unobserve(struct host *h, void *ctx)
{
    struct metrics *all = host_metrics(h);
    pthread_mutex_lock(&all->lock);
    for (struct family *f = all->families; f; f = f->next) {
        for (struct metric **at = &f->metrics; *at;) {
            struct metric *m = *at;
            if (!m->read || m->ctx != ctx) {
                at = &m->next;
                continue;
            }
            *at = m->next;
            metric_free(m);
        }
    }
    pthread_mutex_unlock(&all->lock);
}

void metrics_each(struct host *h,
                  void (*see)(void *ctx, const char *name, const char *labels, int64_t value),
                  void *ctx)
{
    struct metrics *all = host_metrics(h);
    pthread_mutex_lock(&all->lock);
    for (const struct family *f = all->families; f; f = f->next)
        for (const struct metric *m = f->metrics; m; m = m->next)
            if (!m->read && !m->buckets)
                see(ctx, f->name, m->labels, metric_value(m));
    pthread_mutex_unlock(&all->lock);
}

/* Undoes the escapes of metric_label(); returns what is behind the closing quote. */
static const char *read_label(const char *s, char *ret, size_t size)
{
    size_t n = 0;
    for (; *s && *s != '"'; s++) {
        const bool escaped = *s == '\\' && s[1];
        s += escaped;
        if (n + 1 < size)
            ret[n++] = escaped && *s == 'n' ? '\n' : *s;
    }
    ret[n] = '\0';
    return *s ? s + 1 : s;
}

bool metric_label_value(const char *labels, const char *name, char *ret, size_t size)
{
    const size_t len = strlen(name);
    for (const char *s = labels; *s; s += *s == ',') {
        const bool found = strncmp(s, name, len) == 0 && s[len] == '=';
        const char *quote = strchr(s, '"');
        if (!quote)
            break;
        s = read_label(quote + 1, ret, size);
        if (found)
            return true;
    }
    *ret = '\0';
    return false;
}

uint64_t metrics_age_ns(struct host *h)
{
    return clock_now_ns() - host_metrics(h)->start_ns;
}

static int put_header(struct buf *out, const char *name, const char *help, const char *type)
{
    return buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Names of components and targets, and the resource, may hold a secret. */
static int put_labels(struct buf *out, const char *labels)
{
    return secrets_redact(bytes_str(labels), out);
}

static int put_series(struct buf *out, const char *name, const struct metric *m)
{
    int64_t value = m->read ? m->read(m->ctx) : metric_value(m);
    if (!*m->labels)
        return buf_printf(out, "%s %lld\n", name, (long long)value);
    int r = buf_printf(out, "%s{", name);
    if (r == 0)
        r = put_labels(out, m->labels);
    return r < 0 ? r : buf_printf(out, "} %lld\n", (long long)value);
}

/* The buckets count what is at or below their limit. */
static int put_histogram(struct buf *out, const char *name, const struct metric *m)
{
    const char *comma = *m->labels ? "," : "";
    long long count = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < m->nbounds; i++) {
        count += atomic_load_explicit(&m->buckets[i], memory_order_relaxed);
        r = buf_printf(out, "%s_bucket{%s%sle=\"%lld\"} %lld\n", name, m->labels, comma,
                       (long long)m->bounds[i], count);
    }
    count += atomic_load_explicit(&m->buckets[m->nbounds], memory_order_relaxed);
    if (r == 0)
        r = buf_printf(out, "%s_bucket{%s%sle=\"+Inf\"} %lld\n", name, m->labels, comma, count);
    if (r == 0)
        r = buf_printf(out, "%s_sum{%s} %lld\n", name, m->labels, (long long)metric_value(m));
    return r < 0 ? r : buf_printf(out, "%s_count{%s} %lld\n", name, m->labels, count);
}

static int put_family(struct buf *out, const struct family *f)
{
    int r = f->metrics ? put_header(out, f->name, f->help, f->type) : 0;
    const char *shown = NULL;
    for (const struct metric *m = f->metrics; m && r == 0; m = m->next) {
        if (!shown || strcmp(shown, m->labels) != 0)
            r = m->buckets ? put_histogram(out, f->name, m) : put_series(out, f->name, m);
        shown = m->labels;
    }
    return r;
}

static int put_double(struct buf *out, const char *name, const char *help, const char *type,
                      double v)
{
    int r = put_header(out, name, help, type);
    return r < 0 ? r : buf_printf(out, "%s %.9g\n", name, v);
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* Pages of /proc/self/statm's second number; 0 when it cannot be read. */
static double rss_bytes(void)
{
    _cleanup_fclose_ FILE *f = fopen("/proc/self/statm", "re");
    unsigned long size = 0, resident = 0;
    if (!f || fscanf(f, "%lu %lu", &size, &resident) != 2)
        return 0;
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static int put_memory(struct buf *out)
{
    mem_look();
    int r = put_double(out, "motel_memory_used_bytes",
                       "Memory in use as limits see it: live bytes and what else is resident.",
                       "gauge", (double)mem_in_use());
    if (r == 0)
        r = put_double(out, "motel_memory_rss_bytes", "Anonymous resident memory of the process.",
                       "gauge", (double)mem_resident());
    if (r == 0 && mem_limit() != MEM_NO_LIMIT)
        r = put_double(out, "motel_memory_limit_bytes",
                       "Memory limit of the process; from 80 % of it on data is refused.", "gauge",
                       (double)mem_limit());
    return r;
}

static int put_process(struct buf *out, const struct metrics *m)
{
    int r = put_double(out, "otelcol_process_cpu_seconds",
                       "CPU time of the process in user and system mode, in seconds.", "counter",
                       cpu_seconds());
    if (r == 0)
        r = put_double(out, "otelcol_process_memory_rss",
                       "Resident memory of the process, in bytes.", "gauge", rss_bytes());
    if (r == 0)
        r = put_double(out, "otelcol_process_runtime_heap_alloc_bytes",
                       "Bytes of telemetry and requests that are held in memory.", "gauge",
                       (double)mem_used());
    if (r == 0)
        r = put_memory(out);
    if (r == 0)
        r = put_double(out, "otelcol_process_uptime", "Time since the process started, in seconds.",
                       "counter", (double)(clock_now_ns() - m->start_ns) / (double)NS_PER_S);
    return r;
}

static int put_target(struct buf *out, const struct metrics *m)
{
    if (!m->target)
        return 0;
    int r = put_header(out, "target_info", "What this process says of itself.", "gauge");
    if (r == 0)
        r = buf_append_str(out, "target_info{");
    if (r == 0)
        r = put_labels(out, m->target);
    return r < 0 ? r : buf_append_str(out, "} 1\n");
}

int metrics_render(struct host *h, struct buf *out)
{
    struct metrics *m = host_metrics(h);
    pthread_mutex_lock(&m->lock);
    int r = 0;
    for (const struct family *f = m->families; f && r == 0; f = f->next)
        r = put_family(out, f);
    if (r == 0)
        r = put_process(out, m);
    if (r == 0)
        r = put_target(out, m);
    pthread_mutex_unlock(&m->lock);
    return r;
}

static struct metric *receiver_metric(struct host *h, const char *what, const char *help,
                                      enum signal s, const char *labels)
{
    char name[64];
    snprintf(name, sizeof(name), "otelcol_receiver_%s_%s", what, signal_records_name(s));
    return metric_counter(h, name, help, labels);
}

void receiver_metrics_get(struct host *h, const char *receiver_id, const char *transport,
                          enum signal s, struct receiver_metrics *ret)
{
    char labels[METRIC_LABELS_MAX] = "";
    metric_label(labels, "receiver", receiver_id);
    metric_label(labels, "transport", transport);
    ret->accepted = receiver_metric(h, "accepted", "Records that the pipeline took.", s, labels);
    ret->refused =
        receiver_metric(h, "refused", "Records that the pipeline did not take.", s, labels);
    ret->failed = receiver_metric(
        h, "failed", "Records that were lost by a mistake inside the receiver.", s, labels);
}

void scrape_metrics_get(struct host *h, const char *receiver_id, const char *job,
                        const char *instance, struct scrape_metrics *ret)
{
    char labels[METRIC_LABELS_MAX] = "";
    metric_label(labels, "instance", instance);
    metric_label(labels, "job", job);
    metric_label(labels, "receiver", receiver_id);
    ret->succeeded = metric_counter(h, "motel_scrapes_succeeded",
                                    "Scrapes of the target that gave data.", labels);
    ret->failed = metric_counter(
        h, "motel_scrapes_failed",
        "Scrapes of the target that failed: no answer, or not a usable one.", labels);
}
