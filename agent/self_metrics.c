#include "agent/self_metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/net/server.h"

#define STOP_NS (200 * NS_PER_MS) /* a scrape under way may end */

struct self_metrics {
    struct host *host;
    struct listener *listener;
    char *endpoint;
};

static void reply(struct http_exchange *x, int status, const char *type, struct buf *body)
{
    const struct http_header_out header = {"content-type", type};
    http_reply(x, status, &header, 1, body, NULL, 0, false);
}

static void reply_text(struct http_exchange *x, int status, const char *text)
{
    struct buf *body = buf_new(0);
    if (body)
        buf_append_str(body, text);
    reply(x, status, "text/plain; charset=utf-8", body);
}

/* Scrapes have no body. */
static size_t on_headers(void *ctx _unused_, struct http_exchange *x _unused_)
{
    return 0;
}

static void on_request(void *ctx, struct http_exchange *x)
{
    const struct self_metrics *m = ctx;
    _cleanup_buf_ struct buf *page = buf_new(0);
    if (!bytes_eq_str(http_path(x), "/metrics"))
        reply_text(x, 404, "404 page not found\n");
    else if (!page || metrics_render(m->host, page) < 0)
        reply_text(x, 500, "out of memory\n");
    else
        reply(x, 200, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
              TAKE_PTR(page));
}

static void on_too_large(void *ctx _unused_, struct http_exchange *x)
{
    reply_text(x, 413, "a scrape has no body\n");
}

static int serve(struct self_metrics *m, struct err *reterr)
{
    const struct server_settings settings = {.endpoint = m->endpoint, .transport = "tcp"};
    const struct http_service service = {on_headers, on_request, on_too_large, NULL, m};
    int r = listener_open(&settings, &m->listener, reterr);
    if (r == 0)
        r = listener_serve(m->listener, &service, reterr);
    if (r < 0)
        err_prefix(reterr, "binding address %s for motel's own metrics: ", m->endpoint);
    return r;
}

int self_metrics_start(struct host *h, const char *endpoint, struct self_metrics **ret,
                       struct err *reterr)
{
    struct self_metrics *m = calloc(1, sizeof(*m));
    if (m)
        *m = (struct self_metrics){.host = h, .endpoint = strdup(endpoint)};
    if (!m || !m->endpoint) {
        self_metrics_stop(m);
        return err_set(reterr, -ENOMEM, "out of memory");
    }
    int r = serve(m, reterr);
    if (r < 0)
        self_metrics_stop(m);
    else
        *ret = m;
    return r;
}

const char *self_metrics_endpoint(const struct self_metrics *m)
{
    return m->endpoint;
}

struct self_metrics *self_metrics_stop(struct self_metrics *m)
{
    if (!m)
        return NULL;
    if (m->listener)
        listener_stop(m->listener, clock_now_ns() + STOP_NS);
    listener_free(m->listener);
    free(m->endpoint);
    free(m);
    return NULL;
}
