/* Gauges in protobuf, opentelemetry/proto/metrics/v1/metrics.proto. */
#include "receivers/gym_memory/points.h"

#include "proto/writer.h"

#define SCOPE "nemo.lens" /* that of the library through which Gym reports */

enum { /* field numbers */
       REQUEST_RESOURCE_METRICS = 1,
       RESOURCE_METRICS_RESOURCE = 1,
       RESOURCE_METRICS_SCOPE_METRICS = 2,
       SCOPE_METRICS_SCOPE = 1,
       SCOPE_METRICS_METRICS = 2,
       SCOPE_NAME = 1,
       METRIC_NAME = 1,
       METRIC_DESCRIPTION = 2,
       METRIC_UNIT = 3,
       METRIC_GAUGE = 5,
       GAUGE_POINTS = 1,
       POINT_TIME = 3,
       POINT_AS_INT = 6,
       POINT_ATTRIBUTES = 7,
       ATTRIBUTE_KEY = 1,
       ATTRIBUTE_VALUE = 2,
       VALUE_STRING = 1,
       VALUE_INT = 3
};

struct writer {
    struct pb_writer pb;
    uint64_t time_ns;
};

/* ---- points ---- */

static void put_text_attribute(struct writer *w, const char *key, const char *value)
{
    size_t attribute = pb_begin(&w->pb, POINT_ATTRIBUTES);
    pb_str(&w->pb, ATTRIBUTE_KEY, key);
    size_t any = pb_begin(&w->pb, ATTRIBUTE_VALUE);
    pb_str(&w->pb, VALUE_STRING, value);
    pb_end(&w->pb, any);
    pb_end(&w->pb, attribute);
}

static void put_int_attribute(struct writer *w, const char *key, uint64_t value)
{
    size_t attribute = pb_begin(&w->pb, POINT_ATTRIBUTES);
    pb_str(&w->pb, ATTRIBUTE_KEY, key);
    size_t any = pb_begin(&w->pb, ATTRIBUTE_VALUE);
    pb_uint(&w->pb, VALUE_INT, value);
    pb_end(&w->pb, any);
    pb_end(&w->pb, attribute);
}

static void put_attributes(struct writer *w, const struct server *v, const char *memory_type)
{
    put_text_attribute(w, "nemo.gym.server.name", v->name);
    if (*v->type)
        put_text_attribute(w, "nemo.gym.server.type", v->type);
    put_int_attribute(w, "process.pid", (uint64_t)v->pid);
    if (memory_type)
        put_text_attribute(w, "memory.type", memory_type);
}

/* `v` NULL: without attributes. */
static void put_point(struct writer *w, int64_t value, const struct server *v,
                      const char *memory_type)
{
    size_t point = pb_begin(&w->pb, GAUGE_POINTS);
    pb_fixed64(&w->pb, POINT_TIME, w->time_ns);
    pb_fixed64(&w->pb, POINT_AS_INT, (uint64_t)value);
    if (v)
        put_attributes(w, v, memory_type);
    pb_end(&w->pb, point);
}

/* ---- metrics ---- */

struct open_metric {
    size_t metric, gauge;
};
static struct open_metric begin_metric(struct writer *w, const char *name, const char *unit,
                                       const char *description)
{
    struct open_metric m = {.metric = pb_begin(&w->pb, SCOPE_METRICS_METRICS)};
    pb_str(&w->pb, METRIC_NAME, name);
    pb_str(&w->pb, METRIC_DESCRIPTION, description);
    pb_str(&w->pb, METRIC_UNIT, unit);
    m.gauge = pb_begin(&w->pb, METRIC_GAUGE);
    return m;
}

static void end_metric(struct writer *w, struct open_metric m)
{
    pb_end(&w->pb, m.gauge);
    pb_end(&w->pb, m.metric);
}

static void put_host_metric(struct writer *w, const char *name, const char *description,
                            int64_t value)
{
    struct open_metric m = begin_metric(w, name, "By", description);
    put_point(w, value, NULL, NULL);
    end_metric(w, m);
}

static void put_host(struct writer *w, const struct host_sample *h)
{
    const struct host_memory *now = &h->now;
    put_host_metric(w, "gym.host.memory.usage", "Current host memory in use.",
                    now->total - now->available);
    put_host_metric(w, "gym.host.memory.available",
                    "Current host memory available without swapping.", now->available);
    put_host_metric(w, "gym.host.memory.total", "Total host memory.", now->total);
    put_host_metric(w, "gym.host.memory.sampled_peak", "Largest sampled host memory usage.",
                    h->peak);
}

static void put_processes(struct writer *w, const struct servers *s)
{
    struct open_metric m = begin_metric(w, "gym.server.processes", "{process}",
                                        "Processes currently attributed to a Gym server.");
    for (size_t i = 0; i < s->n; i++)
        if (s->items[i]->pid)
            put_point(w, s->items[i]->processes, s->items[i], NULL);
    end_metric(w, m);
}

static void put_memory(struct writer *w, const struct servers *s, bool peaks)
{
    struct open_metric m =
        peaks ? begin_metric(w, "gym.server.memory.sampled_peak", "By",
                             "Largest sampled memory usage for a Gym server and its descendants.")
              : begin_metric(w, "gym.server.memory.usage", "By",
                             "Current memory used by a Gym server and its descendants.");
    for (size_t i = 0; i < s->n; i++) {
        const struct server *v = s->items[i];
        if (!v->pid)
            continue;
        put_point(w, peaks ? v->peak_rss : v->rss, v, "rss");
        if (v->pss != PSS_UNKNOWN)
            put_point(w, peaks ? v->peak_pss : v->pss, v, "pss");
    }
    end_metric(w, m);
}

static bool any_found(const struct servers *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->items[i]->pid)
            return true;
    return false;
}

static void put_scope(struct writer *w)
{
    size_t scope = pb_begin(&w->pb, SCOPE_METRICS_SCOPE);
    pb_str(&w->pb, SCOPE_NAME, SCOPE);
    pb_end(&w->pb, scope);
}

int points_encode(const struct host_sample *host, const struct servers *servers, uint64_t time_ns,
                  struct buf *out)
{
    struct writer w = {.pb = {.out = out}, .time_ns = time_ns};
    const bool found = any_found(servers);
    if (host->peak < 0 && !found)
        return 0;
    size_t resource_metrics = pb_begin(&w.pb, REQUEST_RESOURCE_METRICS);
    pb_end(&w.pb, pb_begin(&w.pb, RESOURCE_METRICS_RESOURCE));
    size_t scope_metrics = pb_begin(&w.pb, RESOURCE_METRICS_SCOPE_METRICS);
    put_scope(&w);
    if (host->peak >= 0)
        put_host(&w, host);
    if (found) {
        put_processes(&w, servers);
        put_memory(&w, servers, false);
        put_memory(&w, servers, true);
    }
    pb_end(&w.pb, scope_metrics);
    pb_end(&w.pb, resource_metrics);
    return w.pb.error;
}
