/* HTTP/1 connections between two requests: the memory that they do not need, and the first bytes of
 * the next head. */
#include "agent/net/h1_idle.h"

#include "agent/base/clock.h"
#include "agent/base/pages.h"
#include "agent/net/h1_probe.h"

/* When they are used again, the pages of a connection cost more than the rest of a request, so a
 * few connections keep theirs between two exports. */
#define FEW_POOLS 64
#define TIDY_FEW_NS (10 * NS_PER_S)
#define TIDY_MANY_NS (500 * NS_PER_MS)
#define TIDY_EVERY_NS (250 * NS_PER_MS)
#define POOL_MARGIN_BYTES 512 /* kept at its end, should it begin a little before a request */

/* libmicrohttpd keeps the pool of a connection as long as that lasts, reads each
 * request to its start, and overwrites it with zeros behind each answer. */
void h1_idle_ends(struct conn *c, const char *method)
{
    const bool known = c->pool_first && h1_pool_known();
    if (known)
        c->pool = (uint8_t *)method;
    c->pool_first = false;
    if (c->tidy)
        conn_charge(c, sizeof(*c) + c->loop->pool_bytes);
    c->loop->npools += known;
    c->tidy = false;
}

void h1_idle_forget(struct conn *c)
{
    c->loop->npools -= c->pool != NULL;
    c->pool = NULL;
}

static uint64_t tidy_at(const struct conn *c)
{
    return c->idle_ns + (c->loop->npools > FEW_POOLS ? TIDY_MANY_NS : TIDY_FEW_NS);
}

static void tidy(struct conn *c)
{
    const size_t bytes = c->loop->pool_bytes;
    const size_t given = pages_give_back(c->pool, bytes - POOL_MARGIN_BYTES);
    c->tidy = true;
    conn_charge(c, sizeof(*c) + bytes - given);
}

void h1_tidy(struct loop *l, uint64_t now_ns)
{
    uint64_t at = UINT64_MAX;
    for (struct conn *c = l->conns; c; c = c->next) {
        if (!c->pool || c->tidy || !c->idle_ns)
            continue;
        if (tidy_at(c) <= now_ns)
            tidy(c);
        else if (tidy_at(c) < at)
            at = tidy_at(c);
    }
    l->tidy_at_ns = at == UINT64_MAX || at > now_ns + TIDY_EVERY_NS ? at : now_ns + TIDY_EVERY_NS;
}

/* ---- the next head ---- */

/* The head of a later request has begun, and has its time from now on. */
static void head_begins(struct conn *c)
{
    conn_deadline_for(c, clock_now_ns() + timeout_ns(c->limits.read_header_timeout_ns),
                      CLOSED_HEADER_TIMEOUT);
}

static bool can_read(const struct conn *c)
{
    char first;
    return recv(c->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static void look_soon(struct conn *c)
{
    if (c->woken)
        return;
    c->woken = true;
    c->next_woken = c->loop->woken;
    c->loop->woken = c;
}

/* Most requests come whole, and are answered in a moment: whether a part of a head is left is
 * looked at behind that. Where the memory is not known it is now or never. */
void h1_look_later(struct conn *c)
{
    if (c->pool)
        look_soon(c);
    else if (can_read(c))
        head_begins(c);
}

/* A part of the next head may have come together with the request that was answered. */
void h1_idle_begins(struct conn *c)
{
    if (!c->pool)
        return;
    look_soon(c);
    if (tidy_at(c) < c->loop->tidy_at_ns)
        c->loop->tidy_at_ns = tidy_at(c);
}

/* What has been read of a request stands at the start of the memory, where there were zeros. */
void h1_look_at_woken(struct loop *l, bool ran)
{
    while (l->woken) {
        struct conn *c = l->woken;
        l->woken = c->next_woken;
        c->woken = false;
        if (c->listener && c->pool && c->idle_ns && c->why == CLOSED_IDLE &&
            ((ran && c->pool[0]) || (!ran && can_read(c))))
            head_begins(c);
    }
}
