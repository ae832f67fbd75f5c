#include "receivers/prometheus/probe.h"

#include <errno.h>

#include "agent/base/clock.h"
#include "agent/net/codec.h"

#define TARGETS_MOST 100 /* that are looked at: each may take its time-out */

/* A target under the eye. */
struct looked {
    struct probe *p;
    const struct target *t;
    char url[300]; /* without secrets */
};

/* The page, decompressed; NULL = `res` has it as it is. 0 or -errno. */
static int unpack(const struct http_client_response *res, struct buf **ret, struct err *reterr)
{
    if (codec_find(bytes_str(res->content_encoding)) != CODEC_GZIP)
        return 0;
    *ret = buf_new(MAX_PAGE_BYTES);
    return *ret ? codec_decompress(CODEC_GZIP, buf_bytes(res->body), *ret, reterr)
                : err_set(reterr, -ENOMEM, "out of memory");
}

/* The number of samples, or -errno. */
static int64_t count_samples(enum prom_format format, struct bytes text, struct err *reterr)
{
    _cleanup_(prom_parser_freep) struct prom_parser *parser = prom_parser_new(format, text);
    struct prom_entry e;
    int64_t n = 0;
    int r = parser ? 1 : err_set(reterr, -ENOMEM, "out of memory");
    while (r > 0 && (r = prom_parser_next(parser, &e, reterr)) == 1)
        n += e.kind == PROM_SAMPLE;
    return r < 0 ? r : n;
}

static void read_page(const struct looked *l, const struct http_client_response *res,
                      const char *took)
{
    const int fallback = l->t->job->settings.config->fallback_scrape_protocol;
    const bool text = fallback == PROTO_TEXT_0_0_4 || fallback == PROTO_TEXT_1_0_0;
    const enum prom_format other = text ? PROM_TEXT : PROM_OPENMETRICS;
    enum prom_format format;
    struct err e = {0};
    _cleanup_buf_ struct buf *unpacked = NULL;
    int r = unpack(res, &unpacked, &e);
    if (r == 0 && !prom_format_of(res->content_type, &other, &format, &e))
        r = -EINVAL;
    const int64_t n =
        r < 0 ? r : count_samples(format, buf_bytes(unpacked ? unpacked : res->body), &e);
    if (n < 0)
        probe_fail(l->p, "scrape", l->url, "is this the metrics page (metrics_path) of the target?",
                   "what it answers is no metrics page: %s", e.text);
    else if (n == 0)
        probe_warn(l->p, "scrape", l->url, "", "the page has no samples");
    else
        probe_ok(l->p, "scrape", l->url, "%lld sample%s (%s)", (long long)n, n == 1 ? "" : "s",
                 took);
}

static void read_answer(const struct looked *l, const struct http_client_response *res,
                        const char *took)
{
    const int status = res->status;
    if (status == 200)
        read_page(l, res, took);
    else
        probe_fail(l->p, "scrape", l->url,
                   status == 401 || status == 403
                       ? "set authorization or basic_auth to what the target expects"
                   : status == 404 ? "correct metrics_path"
                                   : "look at the log of the target",
                   "the target answers with status %d %s", status, prom_status_text(status));
}

static void scrape(const struct looked *l, const struct probe_peer *peer)
{
    char took[32];
    struct err e = {0};
    struct http_client_response res;
    const struct target *t = l->t;
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    _cleanup_(http_client_freep) struct http_client *client = http_client_new(&t->job->http, &e);
    const uint64_t begin = clock_now_ns(), own = t->spec.timeout_ns;
    const char *const *headers = a && client ? prom_job_request_headers(t->job, own, a, &e) : NULL;
    if (!headers) {
        probe_fail(l->p, "scrape", l->url, "", "%s", *e.text ? e.text : "out of memory");
        return;
    }
    const uint64_t patience = own < l->p->timeout_ns ? own : l->p->timeout_ns;
    const struct http_client_request q = {.method = "GET",
                                          .url = t->spec.url,
                                          .headers = headers,
                                          .deadline_ns = begin + patience,
                                          .max_response_bytes = MAX_PAGE_BYTES};
    if (http_client_send(client, &q, &res, &e) < 0) {
        probe_unanswered(l->p, peer, "scrape", l->url, e.text);
        return;
    }
    read_answer(l, &res, probe_took(begin, took));
    buf_unref(res.body);
}

static void look(struct probe *p, const struct target *t)
{
    struct looked l = {.p = p, .t = t};
    struct probe_peer peer;
    struct http_url room;
    http_url_redact(t->spec.url, l.url, sizeof(l.url));
    if (t->job->too_many)
        probe_fail(p, "scrape", l.url, "raise target_limit",
                   "target_limit is exceeded: %zu targets", t->job->ntargets);
    else if (strncmp(t->spec.url, "https:", 6) != 0 || probe_client_tls(p, &t->job->tls)) {
        if (probe_reach_url(p, &t->job->http, t->spec.url, &peer, &room))
            scrape(&l, &peer);
    }
}

void prom_probe(struct probe *p, const struct scraper *s)
{
    size_t n = 0;
    for (const struct target *t = s->targets; t; t = t->next)
        if (n++ < TARGETS_MOST)
            look(p, t);
    if (n == 0)
        probe_warn(p, "scrape", "", "give static_configs, or files that file_sd_configs finds",
                   "there is no target");
    else if (n > TARGETS_MOST)
        probe_warn(p, "scrape", "", "", "%zu more targets were not looked at", n - TARGETS_MOST);
}
