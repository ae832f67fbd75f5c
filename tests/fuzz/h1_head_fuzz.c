/* A later request of a connection, whose head libmicrohttpd has cut up, is taken only when it would have been taken as the first
 * one, which the peek phase judges by its bytes. */
#include <microhttpd.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/net/h1_layout.h"
#include "agent/net/head.h"
#include "tests/fuzz/fuzz.h"

struct seen {
    struct h1_layout layout;
    struct head_framing framing;
    struct bytes target;
    bool called, ok;
};

static void *on_target(void *cls, const char *target, struct MHD_Connection *mc)
{
    (void)mc;
    ((struct seen *)cls)->target = h1_layout_target(target);
    return NULL;
}

static enum MHD_Result on_field(void *cls, enum MHD_ValueKind kind, const char *name, size_t n, const char *value, size_t m)
{
    struct seen *s = cls;
    (void)kind;
    s->ok = s->ok && h1_layout_field(&s->layout, bytes_of(name, n), bytes_of(value, m)) &&
            http_head_field(&s->framing, bytes_of(name, n), bytes_of(value, m));
    return s->ok ? MHD_YES : MHD_NO;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *mc, const char *url, const char *method, const char *version,
                                  const char *data, size_t *len, void **state)
{
    struct seen *s = cls;
    const uint8_t *body;
    (void)url, (void)data, (void)len, (void)state;
    s->called = true;
    s->ok = strlen(method) <= 32 && h1_layout_line(&s->layout, bytes_str(method), s->target, bytes_str(version));
    MHD_get_connection_values_n(mc, MHD_HEADER_KIND, on_field, s);
    s->ok = s->ok && h1_layout_end(&s->layout, h1_layout_head(mc, method), &body) && http_head_framing_ok(&s->framing, strcmp(version, "HTTP/1.0") == 0);
    return MHD_NO; /* closes */
}

/* NUL and LF, or a colon and LF, leave what CR and LF leave; a body that begins with NUL behind a bare LF is looked at later. */
static bool looks_sound(const uint8_t *data, size_t size)
{
    return memmem(data, size, "\n\n", 3) || memmem(data, size, "\n:\n", 3) || memmem(data, size, "\0\n", 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct sockaddr local = {.sa_family = AF_UNIX};
    struct seen s = {.ok = false};
    int pair[2];
    if (!data)
        return 0;
    while (size && (*data == '\r' || *data == '\n'))
        data++, size--;
    const struct bytes in = bytes_of(data, size);
    const enum head_kind first = http_head_sniff(in, 16384);
    if (size == 0 || size > 4000 || looks_sound(data, size) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0)
        return 0;
    struct MHD_Daemon *d = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, on_request, &s,
                                            MHD_OPTION_URI_LOG_CALLBACK, on_target, &s, MHD_OPTION_END);
    if (!d || send(pair[0], data, size, 0) != (ssize_t)size || MHD_add_connection(d, pair[1], &local, sizeof(sa_family_t)) != MHD_YES)
        abort();
    shutdown(pair[0], SHUT_WR);
    for (int i = 0; i < 4 && !s.called; i++)
        MHD_run(d);
    MHD_stop_daemon(d);
    close(pair[0]);
    if (s.called && s.ok && first != HEAD_HTTP1)
        abort();
    if (s.called && !s.ok && first == HEAD_HTTP1)
        abort();
    return 0;
}
