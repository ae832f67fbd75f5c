#include "agent/net/http_client.h"

#include <errno.h>
#include <stdatomic.h>

#include "agent/base/clock.h"
#include "agent/net/http_client_impl.h"

struct http_client {
    struct http_easy easy;
    CURLM *multi;
    atomic_bool interrupted;
};

struct http_client *http_client_new(const struct http_client_settings *s, struct err *reterr)
{
    _cleanup_(http_client_freep) struct http_client *c = calloc(1, sizeof(*c));
    if (!c) {
        err_set(reterr, -ENOMEM, "out of memory");
        return NULL;
    }
    if (http_easy_init(&c->easy, s, reterr) < 0)
        return NULL;
    c->multi = curl_multi_init();
    if (!c->multi) {
        err_set(reterr, -ENOMEM, "out of memory");
        return NULL;
    }
    if (s->max_conns_per_host > 0)
        curl_multi_setopt(c->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)s->max_conns_per_host);
    return TAKE_PTR(c);
}

struct http_client *http_client_free(struct http_client *c)
{
    if (!c)
        return NULL;
    http_easy_done(&c->easy);
    if (c->multi)
        curl_multi_cleanup(c->multi);
    free(c);
    return NULL;
}

void http_client_interrupt(struct http_client *c)
{
    atomic_store(&c->interrupted, true);
    curl_multi_wakeup(c->multi);
}

/* Milliseconds to wait for at most; 0 = the deadline has passed. */
static int remaining_ms(uint64_t deadline_ns)
{
    uint64_t now = clock_now_ns();
    if (deadline_ns == 0)
        return 60000;
    if (now >= deadline_ns)
        return 0;
    uint64_t ms = (deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS;
    return ms > 60000 ? 60000 : (int)ms;
}

/* Drives the transfer that was added to the multi handle; it can end at any moment by deadline or
 * interrupt. */
static int drive(struct http_client *c, const struct http_transfer *x, struct err *reterr)
{
    for (;;) {
        int running = 0, left = 0;
        CURLMcode m = curl_multi_perform(c->multi, &running);
        CURLMsg *msg = curl_multi_info_read(c->multi, &left);
        if (m == CURLM_OK && msg && msg->msg == CURLMSG_DONE)
            return http_transfer_result(x, msg->data.result, reterr);
        int wait_ms = remaining_ms(x->q->deadline_ns);
        if (atomic_load(&c->interrupted))
            return err_set(reterr, -ECANCELED, "interrupted due to shutdown");
        if (wait_ms == 0)
            return err_set(reterr, -ETIMEDOUT, "context deadline exceeded");
        if (m != CURLM_OK || (m = curl_multi_poll(c->multi, NULL, 0, wait_ms, NULL)) != CURLM_OK)
            return err_set(reterr, -EIO, "%s", curl_multi_strerror(m));
    }
}

static int exchange_run(struct http_client *c, struct http_transfer *x, struct err *reterr)
{
    int r = http_transfer_begin(x, reterr);
    if (r < 0)
        return r;
    if (curl_multi_add_handle(c->multi, c->easy.curl) != CURLM_OK)
        r = err_set(reterr, -ENOMEM, "out of memory");
    else
        r = drive(c, x, reterr);
    curl_multi_remove_handle(c->multi, c->easy.curl);
    http_transfer_end(x);
    return r;
}

int http_client_send(struct http_client *c, const struct http_client_request *q,
                     struct http_client_response *ret, struct err *reterr)
{
    _cleanup_(http_transfer_done) struct http_transfer x;
    int r = http_transfer_init(&x, &c->easy, q, ret, reterr);
    if (r == 0)
        r = 1;
    while (r == 1) {
        r = exchange_run(c, &x, reterr);
        if (r == 0)
            r = http_transfer_follow(&x, reterr);
    }
    if (r < 0)
        ret->body = buf_unref(ret->body);
    return r;
}
