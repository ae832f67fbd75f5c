#include "agent/net/http_async.h"

#include <errno.h>

#include "agent/base/clock.h"
#include "agent/net/http_client_impl.h"

#define LONGEST_WAIT_MS 60000

struct http_async {
    CURLM *multi;
};

struct http_caller {
    struct http_async *async;
    struct http_easy easy;
    bool busy;
    /* of the request under way */
    struct http_client_request request;
    struct http_client_response response;
    struct http_transfer transfer;
    struct http_done done;
};

struct http_async *http_async_new(unsigned max_idle, struct err *reterr)
{
    struct http_async *a = calloc(1, sizeof(*a));
    static const struct http_client_settings none;
    struct http_easy first; /* initialises libcurl */
    int r = a ? http_easy_init(&first, &none, reterr) : err_set(reterr, -ENOMEM, "out of memory");
    if (r == 0 && !(a->multi = curl_multi_init()))
        r = err_set(reterr, -ENOMEM, "out of memory");
    if (a)
        http_easy_done(&first);
    if (r < 0)
        return http_async_free(a);
    curl_multi_setopt(a->multi, CURLMOPT_MAXCONNECTS, (long)max_idle);
    return a;
}

struct http_async *http_async_free(struct http_async *a)
{
    if (a && a->multi)
        curl_multi_cleanup(a->multi);
    free(a);
    return NULL;
}

void http_async_wake(struct http_async *a)
{
    curl_multi_wakeup(a->multi);
}

/* ---- callers */

struct http_caller *http_caller_new(struct http_async *a, const struct http_client_settings *s,
                                    struct err *reterr)
{
    struct http_caller *c = calloc(1, sizeof(*c));
    if (!c) {
        err_set(reterr, -ENOMEM, "out of memory");
        return NULL;
    }
    c->async = a;
    if (http_easy_init(&c->easy, s, reterr) < 0)
        return http_caller_free(c);
    curl_easy_setopt(c->easy.curl, CURLOPT_PRIVATE, c);
    return c;
}

struct http_caller *http_caller_free(struct http_caller *c)
{
    if (!c)
        return NULL;
    http_caller_cancel(c);
    http_easy_done(&c->easy);
    free(c);
    return NULL;
}

bool http_caller_busy(const struct http_caller *c)
{
    return c->busy;
}

/* Puts the present hop on its way. */
static int launch(struct http_caller *c, struct err *reterr)
{
    const uint64_t now = clock_now_ns(), deadline = c->request.deadline_ns;
    if (deadline && deadline <= now)
        return err_set(reterr, -ETIMEDOUT, "context deadline exceeded");
    int r = http_transfer_begin(&c->transfer, reterr);
    if (r < 0)
        return r;
    curl_easy_setopt(c->easy.curl, CURLOPT_TIMEOUT_MS,
                     deadline ? (long)((deadline - now + NS_PER_MS - 1) / NS_PER_MS) : 0L);
    if (curl_multi_add_handle(c->async->multi, c->easy.curl) == CURLM_OK)
        return 0;
    http_transfer_end(&c->transfer);
    return err_set(reterr, -ENOMEM, "out of memory");
}

static void forget(struct http_caller *c)
{
    http_transfer_done(&c->transfer);
    c->response.body = buf_unref(c->response.body);
    c->busy = false;
}

int http_caller_send(struct http_caller *c, const struct http_client_request *q,
                     struct http_done done, struct err *reterr)
{
    if (c->busy)
        return err_set(reterr, -EBUSY, "a request is under way");
    c->request = *q;
    c->done = done;
    c->busy = true;
    int r = http_transfer_init(&c->transfer, &c->easy, &c->request, &c->response, reterr);
    if (r == 0)
        r = launch(c, reterr);
    if (r < 0)
        forget(c);
    return r;
}

void http_caller_cancel(struct http_caller *c)
{
    if (!c->busy)
        return;
    curl_multi_remove_handle(c->async->multi, c->easy.curl);
    http_transfer_end(&c->transfer);
    forget(c);
}

/* ---- moving on */

static void finish(struct http_caller *c, CURLcode code)
{
    struct err e = {.text = ""};
    int r = http_transfer_result(&c->transfer, code, &e);
    curl_multi_remove_handle(c->async->multi, c->easy.curl);
    http_transfer_end(&c->transfer);
    if (r == 0)
        r = http_transfer_follow(&c->transfer, &e);
    if (r == 1 && (r = launch(c, &e)) == 0)
        return;
    const struct http_done done = c->done;
    struct http_client_response res = c->response;
    c->response.body = NULL;
    forget(c);
    done.fn(done.ctx, r, &res, &e);
    buf_unref(res.body);
}

static int wait_ms(uint64_t until_ns)
{
    const uint64_t now = clock_now_ns();
    if (now >= until_ns)
        return 0;
    const uint64_t ms = (until_ns - now + NS_PER_MS - 1) / NS_PER_MS;
    return ms < LONGEST_WAIT_MS ? (int)ms : LONGEST_WAIT_MS;
}

static bool finish_all(struct http_async *a)
{
    bool any = false;
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(a->multi, &left));) {
        char *caller = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &caller);
        finish((struct http_caller *)(void *)caller, m->data.result);
        any = true;
    }
    return any;
}

void http_async_run(struct http_async *a, uint64_t until_ns)
{
    int running = 0;
    curl_multi_perform(a->multi, &running);
    if (finish_all(a))
        return;
    curl_multi_poll(a->multi, NULL, 0, wait_ms(until_ns), NULL);
    curl_multi_perform(a->multi, &running);
    finish_all(a);
}
