/* A target: what its labels make of it, when it is scraped, and how. */
#include <errno.h>

#include "agent/base/clock.h"
#include "receivers/prometheus/prometheus.h"

/* ---- the labels of a target ---- */

static struct bytes get(const struct label_builder *b, const char *name)
{
    return prom_builder_get(b, bytes_str(name));
}

static void set_default(struct label_builder *b, const char *name, const char *value)
{
    if (get(b, name).len == 0)
        prom_builder_set(b, bytes_str(name), bytes_str(value));
}

static char *time_text(struct arena *a, uint64_t ns)
{
    char text[40];
    prom_format_duration(ns, text);
    return arena_strdup(a, text);
}

/* What rules see besides the discovered labels. */
static int add_own_labels(const struct job *j, struct label_builder *b)
{
    const struct scrape_config *c = j->settings.config;
    const struct cfg_list *values = c->params.values;
    const char *interval = time_text(b->arena, j->settings.interval_ns),
               *timeout = time_text(b->arena, j->settings.timeout_ns);
    if (!interval || !timeout)
        return -ENOMEM;
    set_default(b, "job", c->job_name);
    set_default(b, "__scrape_interval__", interval);
    set_default(b, "__scrape_timeout__", timeout);
    set_default(b, "__metrics_path__", c->metrics_path);
    set_default(b, "__scheme__", c->scheme ? "https" : "http");
    for (size_t i = 0; i < c->params.n; i++) {
        const char *name = arena_printf(b->arena, "__param_%s", c->params.keys[i]);
        if (!name)
            return -ENOMEM;
        if (values[i].n)
            set_default(b, name, *(const char *const *)values[i].items);
    }
    return 0;
}

/* ---- the URL: Go's url.URL and url.Values ---- */

static bool is_plain(uint8_t c, const char *also)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr(also, c));
}

static void escape(struct buf *out, struct bytes text, const char *also, bool plus)
{
    for (size_t i = 0; i < text.len; i++) {
        const uint8_t c = text.data[i];
        if (is_plain(c, also))
            buf_putc(out, (char)c);
        else if (plus && c == ' ')
            buf_putc(out, '+');
        else
            buf_printf(out, "%%%02X", c);
    }
}

struct param {
    struct bytes key, value;
    size_t order;
};

static int by_key(const void *a, const void *b)
{
    const struct param *x = a, *y = b;
    const size_t n = x->key.len < y->key.len ? x->key.len : y->key.len;
    const int r = n ? memcmp(x->key.data, y->key.data, n) : 0;
    if (r || x->key.len != y->key.len)
        return r ? r : x->key.len < y->key.len ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* The parameters of the job, the first value of each from its label, and those that only labels
 * have. */
static size_t collect_params(const struct job *j, const struct label_builder *b, struct param *out)
{
    static const char prefix[] = "__param_";
    const struct cfg_map *m = &j->settings.config->params;
    const struct cfg_list *lists = m->values;
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 1; k < lists[i].n; k++) {
            out[n] = (struct param){bytes_str(m->keys[i]),
                                    bytes_str(((const char *const *)lists[i].items)[k]), n + 1};
            n++;
        }
    for (size_t i = 0; i < b->n; i++) {
        const struct prom_label *l = &b->items[i];
        if (l->value.len && prom_label_has_prefix(l->name, prefix))
            out[n++] = (struct param){
                bytes_of(l->name.data + sizeof(prefix) - 1, l->name.len - (sizeof(prefix) - 1)),
                l->value, 0};
    }
    qsort(out, n, sizeof(*out), by_key);
    return n;
}

static size_t params_max(const struct job *j, const struct label_builder *b)
{
    const struct cfg_map *m = &j->settings.config->params;
    const struct cfg_list *lists = m->values;
    size_t n = b->n + 1;
    for (size_t i = 0; i < m->n; i++)
        n += lists[i].n;
    return n;
}

static int make_url(const struct job *j, const struct label_builder *b, struct buf *out)
{
    const struct bytes scheme = get(b, "__scheme__"), address = get(b, "__address__"),
                       path = get(b, "__metrics_path__");
    struct param *params = calloc(params_max(j, b), sizeof(*params));
    if (!params)
        return -ENOMEM;
    const size_t n = collect_params(j, b, params);
    buf_printf(out, "%.*s://%.*s", (int)scheme.len, (const char *)scheme.data, (int)address.len,
               (const char *)address.data);
    if (path.len && path.data[0] != '/')
        buf_putc(out, '/');
    escape(out, path, "-_.~$&+,/:;=@!'()*", false);
    for (size_t i = 0; i < n; i++) {
        buf_putc(out, i ? '&' : '?');
        escape(out, params[i].key, "-_.~", true);
        buf_putc(out, '=');
        escape(out, params[i].value, "-_.~", true);
    }
    free(params);
    return buf_str(out) ? 0 : -ENOMEM;
}

/* ---- the spec ---- */

static int read_times(const struct label_builder *b, struct target_spec *s, struct err *reterr)
{
    static const char *const names[] = {"__scrape_interval__", "__scrape_timeout__"};
    static const char *const words[] = {"interval", "timeout"};
    uint64_t ns[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        char text[64];
        const struct bytes v = get(b, names[i]);
        snprintf(text, sizeof(text), "%.*s", (int)v.len, v.len ? (const char *)v.data : "");
        if (prom_parse_duration(text, &ns[i], reterr) < 0) {
            err_prefix(reterr, "error parsing scrape %s: ", words[i]);
            return -EINVAL;
        }
        if (ns[i] == 0)
            return err_set(reterr, -EINVAL, "scrape %s cannot be 0", words[i]);
    }
    s->interval_ns = ns[0];
    s->timeout_ns = ns[1];
    return ns[1] <= ns[0]
               ? 0
               : err_set(reterr, -EINVAL, "scrape timeout cannot be greater than scrape interval");
}

static struct bytes copy(struct arena *a, struct bytes text)
{
    return bytes_of(arena_strndup(a, text.len ? (const char *)text.data : "", text.len), text.len);
}

/* What samples get: all labels without "__" in front. */
static int keep_labels(struct label_builder *b, struct target_spec *s)
{
    struct prom_labels all;
    int r = prom_builder_sorted(b, &all);
    struct prom_label *own = r == 0 ? arena_alloc(s->arena, (all.n + 1) * sizeof(*own)) : NULL;
    size_t n = 0;
    if (!own)
        return -ENOMEM;
    for (size_t i = 0; i < all.n; i++) {
        if (prom_label_has_prefix(all.items[i].name, "__"))
            continue;
        own[n] = (struct prom_label){copy(s->arena, all.items[i].name),
                                     copy(s->arena, all.items[i].value)};
        if (!own[n].name.data || !own[n].value.data)
            return -ENOMEM;
        n++;
    }
    s->labels = (struct prom_labels){own, n};
    s->job = prom_labels_get(s->labels, "job");
    s->instance = prom_labels_get(s->labels, "instance");
    return 0;
}

/* FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/; the same in every process, for it decides
 * when a target is scraped. */
static uint64_t fnv(uint64_t h, const void *data, size_t n)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3;
    return h;
}

static uint64_t identity(const struct target_spec *s)
{
    uint64_t h = fnv(0xcbf29ce484222325, s->url, strlen(s->url) + 1);
    h = fnv(h, &s->interval_ns, sizeof(s->interval_ns));
    h = fnv(h, &s->timeout_ns, sizeof(s->timeout_ns));
    for (size_t i = 0; i < s->labels.n; i++) {
        const struct prom_label *l = &s->labels.items[i];
        h = fnv(fnv(h, l->name.data, l->name.len), "\xff", 1);
        h = fnv(fnv(h, l->value.data, l->value.len), "\xff", 1);
    }
    h ^= h >> 32; /* the low bits alone decide little */
    return h * 0x9e3779b97f4a7c15;
}

static int check_address(const struct label_builder *b, struct err *reterr)
{
    const struct bytes address = get(b, "__address__"), scheme = get(b, "__scheme__");
    if (address.len == 0)
        return err_set(reterr, -EINVAL, "no address");
    if (memchr(address.data, '/', address.len))
        return err_set(reterr, -EINVAL, "\"%.*s\" is not a valid hostname", (int)address.len,
                       (const char *)address.data);
    if (!prom_label_is(scheme, "http") && !prom_label_is(scheme, "https"))
        return err_set(reterr, -EINVAL, "expected the scheme http or https, got \"%.*s\"",
                       (int)scheme.len, (const char *)scheme.data);
    return 0;
}

static int fill(const struct job *j, struct label_builder *b, struct target_spec *s,
                struct err *reterr)
{
    _cleanup_buf_ struct buf *url = buf_new(0);
    const struct bytes address = get(b, "__address__");
    if (get(b, "instance").len == 0)
        prom_builder_set(b, bytes_str("instance"), address);
    s->arena = arena_new(512);
    if (!url || !s->arena || make_url(j, b, url) < 0 || keep_labels(b, s) < 0)
        return err_set(reterr, -ENOMEM, "out of memory");
    s->url = arena_strdup(s->arena, buf_str(url));
    s->scheme = prom_label_is(get(b, "__scheme__"), "https") ? "https" : "http";
    if (!s->url)
        return err_set(reterr, -ENOMEM, "out of memory");
    s->hash = identity(s);
    return 1;
}

int prom_target_spec_make(const struct job *j, struct label_builder *b, struct target_spec *ret,
                          struct err *reterr)
{
    *ret = (struct target_spec){.arena = NULL};
    if (add_own_labels(j, b) < 0)
        return err_set(reterr, -ENOMEM, "out of memory");
    if (!prom_relabel_apply(j->target_rules, b))
        return 0;
    int r = check_address(b, reterr);
    if (r == 0)
        r = read_times(b, ret, reterr);
    if (r == 0)
        r = fill(j, b, ret, reterr);
    if (r < 0)
        prom_target_spec_done(ret);
    return r;
}

void prom_target_spec_done(struct target_spec *s)
{
    arena_free(s->arena);
    *s = (struct target_spec){.arena = NULL};
}

/* ---- the life of a target ---- */

struct target *prom_target_new(struct scraper *s, struct job *j, struct target_spec *spec)
{
    struct target *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    t->request = arena_new(0);
    t->metadata = prom_metadata_new();
    t->scraper = s;
    t->job = j;
    if (!t->request || !t->metadata)
        return prom_target_free(t);
    t->spec = *spec;
    *spec = (struct target_spec){.arena = NULL};
    char job[200], instance[200];
    snprintf(job, sizeof(job), "%.*s", (int)t->spec.job.len, (const char *)t->spec.job.data);
    snprintf(instance, sizeof(instance), "%.*s", (int)t->spec.instance.len,
             (const char *)t->spec.instance.data);
    scrape_metrics_get(s->owner->host, s->owner->id, job, instance, &t->counters);
    return t;
}

struct target *prom_target_free(struct target *t)
{
    if (!t)
        return NULL;
    http_caller_free(t->caller);
    arena_free(t->request);
    prom_replay_free(t->replay);
    prom_series_done(&t->series);
    prom_metadata_free(t->metadata);
    prom_target_spec_done(&t->spec);
    free(t);
    return NULL;
}

void prom_target_schedule(struct target *t, uint64_t now_ns)
{
    const struct prom_config *c = t->scraper->config;
    const uint64_t interval = t->spec.interval_ns, wall = clock_wall_ns();
    uint64_t wait = interval - wall % interval + t->spec.hash % interval;
    if (wait > interval)
        wait -= interval;
    if (c->initial_scrape_offset_given == CFG_GIVEN)
        wait = (uint64_t)c->initial_scrape_offset_ns;
    t->next_ns = now_ns + wait;
}

/* ---- a scrape ---- */

/* The present time in ms, or, within 2 ms of it, the one that is whole intervals after the last:
 * points stay evenly spaced. Two scrapes never have the same: the last one may come at once after
 * another. */
static int64_t stamp(struct target *t)
{
    const uint64_t now_ms = clock_wall_ns() / NS_PER_MS,
                   interval_ms = t->spec.interval_ns / NS_PER_MS, before_ms = t->aligned_ms;
    const uint64_t tolerance = interval_ms / 100 < 2 ? interval_ms / 100 : 2;
    if (t->aligned_ms && interval_ms && now_ms + tolerance >= t->aligned_ms)
        t->aligned_ms += (now_ms + tolerance - t->aligned_ms) / interval_ms * interval_ms;
    const uint64_t off = now_ms > t->aligned_ms ? now_ms - t->aligned_ms : t->aligned_ms - now_ms;
    if (off > tolerance || t->aligned_ms == 0)
        t->aligned_ms = now_ms;
    if (before_ms && t->aligned_ms == before_ms)
        t->aligned_ms = now_ms > before_ms ? now_ms : before_ms + 1;
    return (int64_t)t->aligned_ms;
}

static void on_done(void *ctx, int error, struct http_client_response *res,
                    const struct err *reason)
{
    struct target *t = ctx;
    if (!error)
        t->body_bytes = res->body->len + res->body->len / 16;
    const struct page p = {.error = error,
                           .reason = reason->text,
                           .response = error ? NULL : res,
                           .duration_ns = clock_now_ns() - t->started_ns};
    prom_scrape_finish(t->scraper, t, &p);
}

static int launch(struct target *t, uint64_t deadline_ns, struct err *reterr)
{
    arena_reset(t->request);
    const uint64_t limit = t->job->settings.body_size_limit;
    const char *const *headers =
        prom_job_request_headers(t->job, t->spec.timeout_ns, t->request, reterr);
    if (headers && !t->caller)
        t->caller = http_caller_new(t->scraper->async, &t->job->http, reterr);
    if (!headers || !t->caller)
        return -EIO;
    const struct http_client_request q = {
        .method = "GET",
        .url = t->spec.url,
        .headers = headers,
        .deadline_ns = deadline_ns,
        .max_response_bytes =
            (limit && limit < MAX_PAGE_BYTES ? (size_t)limit : MAX_PAGE_BYTES) + 1,
        .expected_bytes = t->body_bytes,
        .memory_limit = t->scraper->memory.limit,
        .repeatable = true};
    return http_caller_send(t->caller, &q, (struct http_done){on_done, t}, reterr);
}

void prom_target_scrape(struct target *t, uint64_t deadline_ns)
{
    struct err e = {.text = ""};
    if (!memory_gate_room(&t->scraper->memory, 0))
        return; /* the next one comes in its time */
    const uint64_t until = t->started_ns = clock_now_ns();
    const uint64_t own = until + t->spec.timeout_ns;
    t->time_ms = stamp(t);
    t->scraped = true;
    int r = 0;
    if (t->job->too_many)
        r = err_set(&e, -E2BIG, "target_limit exceeded (number of targets: %zu, limit: %llu)",
                    t->job->ntargets, (unsigned long long)t->job->settings.target_limit);
    else
        r = launch(t, own < deadline_ns ? own : deadline_ns, &e);
    if (r == 0)
        return;
    const struct page p = {.error = r, .reason = e.text};
    prom_scrape_finish(t->scraper, t, &p);
}
