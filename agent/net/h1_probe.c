/* Heads that every reader takes, given to libmicrohttpd over a pair of sockets. */
#include "agent/net/h1_probe.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/log.h"
#include "agent/net/h1_layout.h"

#define PATIENCE 50 /* rounds of WAIT_MS at most */
#define WAIT_MS 100

static const char *const heads[] = {
    "GET /a HTTP/1.1\r\nHost: x\r\n\r\n",
    "POST /a?b=c&d HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "GET / HTTP/1.1\r\nhost:x\r\nA:\r\nB: \r\nC: \t c\r\nD: d e\tf \t\r\nE: \xc3\xa9\r\n\r\n",
    "GET http://x/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
};

struct probe {
    struct bytes target;
    struct h1_layout layout;
    bool ok;
    unsigned good, seen, in_place;
    const char *place; /* of the first one */
};

static enum MHD_Result look_at_field(void *cls, _unused_ enum MHD_ValueKind kind, const char *name,
                                     size_t name_len, const char *value, size_t value_len)
{
    struct probe *p = cls;
    p->ok = p->ok && h1_layout_field(&p->layout, bytes_of(name, name_len),
                                     bytes_of(value ? value : "", value_len));
    return p->ok ? MHD_YES : MHD_NO;
}

static void *on_target(void *cls, const char *target, _unused_ struct MHD_Connection *mc)
{
    ((struct probe *)cls)->target = h1_layout_target(target);
    return NULL;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *mc, _unused_ const char *url,
                                  const char *method, const char *version,
                                  _unused_ const char *data, _unused_ size_t *len, void **state)
{
    struct probe *p = cls;
    const uint8_t *body;
    if (*state) {
        struct MHD_Response *r = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
        enum MHD_Result queued = r ? MHD_queue_response(mc, 200, r) : MHD_NO;
        MHD_destroy_response(r);
        return queued;
    }
    *state = p;
    p->place = p->seen++ ? p->place : method;
    p->in_place += method == p->place;
    p->ok = h1_layout_line(&p->layout, bytes_str(method), p->target, bytes_str(version));
    MHD_get_connection_values_n(mc, MHD_HEADER_KIND, look_at_field, p);
    p->good += p->ok && h1_layout_end(&p->layout, h1_layout_head(mc, method), &body);
    return MHD_YES;
}

static struct MHD_Daemon *start_daemon(struct probe *p)
{
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, on_request, p,
                            MHD_OPTION_URI_LOG_CALLBACK, on_target, p, MHD_OPTION_END);
}

static void send_heads(int fd)
{
    for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
        if (send(fd, heads[i], strlen(heads[i]), MSG_NOSIGNAL) < 0)
            return;
}

/* Runs it until all requests were seen or nothing more happens. */
static void run(struct MHD_Daemon *d, const struct probe *p)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(d, MHD_DAEMON_INFO_EPOLL_FD);
    for (int i = 0; i < PATIENCE && info && p->seen < ARRAY_SIZE(heads); i++) {
        struct pollfd f = {.fd = info->epoll_fd, .events = POLLIN};
        MHD_UNSIGNED_LONG_LONG wait_ms;
        MHD_run(d);
        if (MHD_get_timeout(d, &wait_ms) != MHD_YES || wait_ms > 0)
            poll(&f, 1, WAIT_MS);
    }
}

static void probe(struct probe *p)
{
    const struct sockaddr local = {.sa_family = AF_UNIX};
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
        return;
    struct MHD_Daemon *d = start_daemon(p);
    if (!d)
        close(pair[1]);
    else if (MHD_add_connection(d, pair[1], &local, sizeof(sa_family_t)) == MHD_YES) {
        send_heads(pair[0]);
        run(d, p);
    }
    if (d)
        MHD_stop_daemon(d);
    close(pair[0]);
}

static bool as_expected, in_one_place;

static void probe_once(void)
{
    struct probe p = {0};
    probe(&p);
    as_expected = p.seen == ARRAY_SIZE(heads) && p.good == p.seen;
    in_one_place = as_expected && p.in_place == p.seen;
    if (!as_expected)
        log_warn(NULL,
                 "This libmicrohttpd hands out the heads of HTTP/1 requests in another way than "
                 "the versions that are known; they are checked less strictly",
                 LOG_STR("version", MHD_get_version()));
}

bool h1_layout_known(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, probe_once);
    return as_expected;
}

bool h1_pool_known(void)
{
    return h1_layout_known() && in_one_place;
}
