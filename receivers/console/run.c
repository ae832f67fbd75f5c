/* The thread that reads all sources in turn. */
#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "receivers/console/console.h"

#define END_NS (2 * NS_PER_S)     /* for the last text of a source to be written */
#define HELD_NS (100 * NS_PER_MS) /* between two looks whether there is memory again */
#define REST_NS (100 * NS_PER_MS) /* of a stream, before its last line is taken as it is */

static void lower(uint64_t *at_ns, uint64_t ns)
{
    *at_ns = ns < *at_ns ? ns : *at_ns;
}

/* ---- what was read where ---- */

static void save(struct console *c)
{
    const char *path = c->config->storage_file;
    if (!c->dirty || !path[0])
        return;
    int r = places_save(path, c->sources);
    if (r < 0 && !c->save_failed)
        log_error(&c->c.logger, "Cannot store where reading stopped", LOG_STR("path", path),
                  LOG_STR("error", strerror(-r)));
    c->save_failed = r < 0;
    c->dirty = r < 0;
}

static void load(struct console *c)
{
    struct err e;
    if (c->config->storage_file[0] && places_load(&c->stored, c->config->storage_file, &e) < 0)
        log_warn(&c->c.logger, "Stored places are of no use; beginning anew",
                 LOG_STR("error", e.text));
}

/* ---- a round ---- */

static bool is_waiting(const struct source *s)
{
    return !sending_empty(&s->sending) || s->plain->len || s->logs->len;
}

/* Whether there may be something to read. */
static bool is_due(struct source *s, bool look)
{
    if (s->copy)
        return false;
    if (s->kind == SOURCE_FILE)
        return (look && files_check(s)) || s->more;
    if (s->kind == SOURCE_PIPE && look)
        pipe_check(s);
    return s->fd >= 0;
}

/* Takes what is over out of the list. */
static void drop_ended(struct console *c)
{
    uint64_t until = clock_now_ns() + END_NS;
    for (struct source **at = &c->sources; *at;) {
        struct source *s = *at;
        bool over = s->kind == SOURCE_FILE ? files_is_over(s) : s->ended;
        if (is_waiting(s) || s->fd < 0) {
            at = &s->next;
        } else if (over) {
            *at = s->next;
            c->dirty |= s->kind == SOURCE_FILE;
            source_close(s, until);
            source_free(s);
        } else {
            if (s->ended)
                source_close(s, until);
            at = &s->next;
        }
    }
}

/* One source. */
static void visit(struct source *s, bool look, uint64_t *at_ns)
{
    uint64_t now = clock_now_ns();
    if (s->owner->held) {
        if (is_waiting(s))
            source_settle(s, at_ns);
    } else if (is_due(s, look) || is_waiting(s)) {
        bool good = source_turn(s, at_ns);
        if (good && s->more)
            *at_ns = 0;
    }
    if (s->kind == SOURCE_FILE || !s->rested_ns)
        return;
    if (now > s->rested_ns && now - s->rested_ns >= REST_NS) {
        source_rest(s);
        source_settle(s, at_ns);
    } else {
        lower(at_ns, s->rested_ns + REST_NS);
    }
}

/* While memory is short what is written waits where it is. A pause counts once. */
static bool look_at_memory(struct console *c)
{
    const struct memory_gate *a = &c->memory;
    c->held =
        c->held ? a->limit && !mem_room(a->limit, READ_BYTES) : !memory_gate_room(a, READ_BYTES);
    return c->held;
}

/* Reads what is there; lowers *at_ns to when to come back. */
static void visit_all(struct console *c, uint64_t *at_ns)
{
    uint64_t now = clock_now_ns();
    bool look = now >= c->look_ns;
    if (look_at_memory(c))
        lower(at_ns, now + HELD_NS);
    if (look) {
        files_scan(c);
        c->look_ns = now + (uint64_t)c->config->poll_interval_ns;
    }
    for (struct source *s = c->sources; s; s = s->next)
        visit(s, look, at_ns);
    drop_ended(c);
    save(c);
    if (c->include.n || c->config->pipes.n)
        lower(at_ns, c->look_ns);
}

/* ---- waiting ---- */

static int timeout_ms(uint64_t at_ns)
{
    uint64_t now = clock_now_ns();
    if (at_ns == UINT64_MAX)
        return -1;
    if (at_ns <= now)
        return 0;
    uint64_t ms = (at_ns - now + NS_PER_MS - 1) / NS_PER_MS;
    return ms > 60000 ? 60000 : (int)ms;
}

/* Until a stream has something, an answer comes, or it is time. */
static void wait_for(struct console *c, uint64_t at_ns, bool streams)
{
    uint64_t woken;
    size_t n = 1;
    for (struct source *s = c->sources; s; s = s->next)
        n++;
    struct pollfd *p = calloc(n, sizeof(*p)), one;
    if (!p)
        p = &one;
    p[0] = (struct pollfd){.fd = c->wake->fd, .events = POLLIN};
    n = 1;
    for (struct source *s = c->sources; s && streams && p != &one; s = s->next)
        if (s->kind != SOURCE_FILE && s->fd >= 0 && !is_waiting(s) && !s->ended)
            p[n++] = (struct pollfd){.fd = s->fd, .events = POLLIN};
    poll(p, n, timeout_ms(at_ns));
    if (p[0].revents && read(c->wake->fd, &woken, sizeof(woken)) < 0)
        woken = 0;
    if (p != &one)
        free(p);
}

/* ---- the end ---- */

/* Goes round until nothing moves any more. */
static void settle_all(struct console *c, bool reading)
{
    uint64_t deadline = atomic_load(&c->deadline_ns);
    for (bool busy = true; busy && clock_now_ns() < deadline;) {
        uint64_t at = deadline;
        busy = false;
        for (struct source *s = c->sources; s; s = s->next) {
            bool good = reading && is_due(s, true) ? source_turn(s, &at) : source_settle(s, &at);
            busy |= !good || (reading && s->more && s->fd >= 0 && !s->copy);
            at = good && s->more && reading ? 0 : at;
        }
        save(c);
        if (busy)
            wait_for(c, at, false);
    }
}

/* At the end of the program nobody goes on with halves, but for files whose places are stored. */
static void finish_all(struct console *c)
{
    for (struct source *s = c->sources; s; s = s->next) {
        bool stored = s->kind == SOURCE_FILE && c->config->storage_file[0];
        if (!s->ended)
            source_finish(s, stored);
    }
    settle_all(c, false);
}

/* Of a pipe or the like, which nobody reads after us. */
static uint64_t unread_bytes(const struct source *s)
{
    int there = 0;
    if (s->kind == SOURCE_FILE || s->borrowed || s->fd < 0 || ioctl(s->fd, FIONREAD, &there) < 0)
        there = 0;
    return s->rest->len + (uint64_t)there;
}

static void close_all(struct console *c)
{
    uint64_t lost = 0, unread = 0;
    while (c->sources) {
        struct source *s = c->sources;
        c->sources = s->next;
        lost += sending_done(&s->sending);
        unread += unread_bytes(s);
        source_close(s, atomic_load(&c->deadline_ns));
        source_free(s);
    }
    if (lost || unread)
        log_warn(&c->c.logger, "The pipelines did not take all records before the stop",
                 LOG_INT("records", lost), LOG_INT("bytes_not_read", unread));
}

void console_leave(struct console *c)
{
    c->held = false;
    files_scan(c);
    settle_all(c, true);
    if (host_stopping(c->c.host)) {
        finish_all(c);
        close_all(c);
    }
    for (struct source *s = c->sources; s; s = s->next)
        s->outlet = s->own_outlet ? s->outlet : NULL;
    handover_leave(c, c->sources);
    c->sources = NULL;
}

/* ---- the beginning ---- */

static void adopt(struct console *c, struct source *left)
{
    c->sources = left;
    c->scanned = left != NULL;
    for (struct source *s = left; s; s = s->next)
        source_adopt(s, c);
    if (!left)
        load(c);
}

int console_enter(struct console *c, bool wait, struct err *reterr)
{
    struct source *left;
    if (!handover_enter(c, wait, &left))
        return 0;
    adopt(c, left);
    int r = streams_open(c, reterr);
    files_scan(c);
    c->entered = true;
    return r;
}

void *console_run(void *arg)
{
    struct console *c = arg;
    struct err e;
    if (!c->entered && console_enter(c, true, &e) < 0)
        log_error(&c->c.logger, "Cannot read a source", LOG_STR("error", e.text));
    if (!c->entered)
        return NULL;
    if (!c->sources && c->include.n == 0)
        log_warn(&c->c.logger, "Nothing to read: give stdin, include or pipes");
    while (!atomic_load(&c->stopping)) {
        uint64_t at = UINT64_MAX;
        visit_all(c, &at);
        if (!atomic_load(&c->stopping))
            wait_for(c, at, !c->held);
    }
    console_leave(c);
    return NULL;
}
