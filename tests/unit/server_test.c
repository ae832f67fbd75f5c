/* Listeners over real sockets: early and late answers, deadlines, taking over, stopping. */
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/net/limits.h"
#include "tests/unit/server_world.h"

/* ---- early and late answers ---- */

static struct buf *with_body(const char *head, size_t n)
{
    struct buf *b = buf_new(0);
    buf_append_str(b, head);
    buf_reserve(b, n);
    memset(buf_tail(b), 'B', n);
    buf_commit(b, n);
    return b;
}

/* A refused body is never taken for a request: small ones are read away, large ones end the
 * connection after the answer. */
static void test_early_answers(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        size_t body;
        int status;
        bool goes_on;
    } rows[] = {
        {HEAD("/refuse") "Content-Length: 1000\r\n\r\n", 1000, 404, true},
        {HEAD("/refuse") "Content-Length: 1000000\r\n\r\n", 1000000, 404, false},
        {HEAD("/refuse") "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n", 0, 404, false},
        {HEAD("/close") "Content-Length: 10\r\n\r\n", 10, 503, false},
        {HEAD("/ten") "Content-Length: 11\r\n\r\n", 11, 413, false},
        {HEAD("/ten") "Content-Length: 8000000\r\n\r\n", 8000000, 413, false},
        {HEAD("/x") "Content-Length: 1048577\r\n\r\n", 1048577, 413, false},
        {HEAD("/ten") "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n400000\r\n", 4194304, 413,
         false},
        {HEAD("/refuse") "Transfer-Encoding: chunked\r\n\r\n400000\r\n", 4194304, 404, false},
    };
    struct world w;
    open_world(&w, (struct server_settings){0});
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_buf_ struct buf *out = with_body(rows[i].head, rows[i].body);
        struct raw_answer a;
        buf_append_str(out, GOOD);
        struct raw_result r = raw_exchange(listener_address(w.l), buf_bytes(out), NULL, 3000);
        struct bytes in = buf_bytes(r.got);
        if (!raw_next_answer(&in, false, &a) || a.status != rows[i].status || r.end != RAW_CLOSED)
            fail_msg("row %zu: end %d, %s", i, r.end, buf_str(r.got));
        if (raw_next_answer(&in, false, &a) != rows[i].goes_on || in.len)
            fail_msg("row %zu: %s", i, buf_str(r.got));
        buf_unref(r.got);
    }
    close_world(&w);
}

static void test_limits_are_exact(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct server_settings){0});
    struct raw_result r =
        say(&w, HEAD("/ten") "Content-Length: 10\r\nConnection: close\r\n\r\n0123456789", NULL);
    assert_true(raw_has(r.got, "200 OK"));
    buf_unref(r.got);
    r = say(&w,
            HEAD("/ten") "Transfer-Encoding: chunked\r\nConnection: "
                         "close\r\n\r\na\r\n0123456789\r\n0\r\n\r\n",
            NULL);
    assert_true(raw_has(r.got, "200 OK"));
    buf_unref(r.got);
    _cleanup_buf_ struct buf *out =
        with_body(HEAD("/x") "Content-Length: 1048576\r\nConnection: close\r\n\r\n", LIMIT);
    r = raw_exchange(listener_address(w.l), buf_bytes(out), NULL, 3000);
    assert_true(raw_has(r.got, "200 OK"));
    assert_int_equal(atomic_load(&w.last_body), LIMIT);
    buf_unref(r.got);
    close_world(&w);
}

static void test_late_answers(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct server_settings){0});
    for (int i = 0; i < 200; i++) {
        struct raw_result r =
            say(&w, HEAD("/late") "Content-Length: 2\r\nConnection: close\r\n\r\nab", NULL);
        assert_true(raw_has(r.got, "late"));
        buf_unref(r.got);
    }
    close_world(&w);
}

static void test_large_answer(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct server_settings){0});
    struct raw_result r =
        say(&w, "GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", NULL);
    assert_true(r.got->len > 8u << 20);
    buf_unref(r.got);
    close_world(&w);
}

/* A client that leaves before the answer costs nothing but the answer. */
static void test_client_leaves(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct server_settings){0});
    int fd = connect_world(&w);
    struct raw_result r =
        raw_talk(fd, bytes_str(HEAD("/hold") "Content-Length: 1\r\n\r\n1"), NULL, 0, 100);
    buf_unref(r.got);
    assert_soon(atomic_load(&w.held) != NULL);
    close(fd);
    reply(atomic_load(&w.held), 200, text("too late"), false);
    fd = connect_world(&w); /* and in the middle of a body */
    r = raw_talk(fd, bytes_str(HEAD("/x") "Content-Length: 100\r\n\r\n1"), NULL, 0, 100);
    buf_unref(r.got);
    close(fd);
    assert_soon(atomic_load(&w.gone) == 1);
    close_world(&w);
}

/* A client that ends its side at once, as simple ones do, gets its answer, and nothing waits for it
 * afterwards. */
static void test_half_close(void **state)
{
    (void)state;
    static const struct {
        const char *request, *answer; /* NULL = none */
    } rows[] = {
        {HEAD("/x") "Content-Length: 3\r\n\r\nabc", "hello"},
        {HEAD("/late") "Content-Length: 3\r\n\r\nabc", "late"},
        {"GET /x HTTP/1.0\r\n\r\n", "hello"},
        {HEAD("/x") "Content-Length: 0\r\n\r\n" HEAD("/late") "Content-Length: 0\r\n\r\n", "late"},
        {HEAD("/x") "Content-Length: 30\r\n\r\nabc", NULL},
        {HEAD("/x") "Content-Le", NULL},
        {"", NULL},
    };
    struct world w;
    open_world(&w, (struct server_settings){0});
    for (size_t i = 0; i < ARRAY_SIZE(rows) * 5; i++) {
        size_t k = i % ARRAY_SIZE(rows);
        uint64_t start = clock_now_ns();
        int fd = connect_world(&w);
        assert_true(send(fd, rows[k].request, strlen(rows[k].request), 0) >= 0);
        shutdown(fd, SHUT_WR);
        struct raw_result r = raw_talk(fd, bytes_of("", 0), NULL, 0, 3000);
        if (r.end != RAW_CLOSED || clock_now_ns() - start > 2 * NS_PER_S ||
            (rows[k].answer ? !raw_has(r.got, rows[k].answer) : r.got->len > 0))
            fail_msg("row %zu: end %d, %s", k, r.end, buf_str(r.got));
        buf_unref(r.got);
        close(fd);
    }
    close_world(&w);
}

/* ---- deadlines ---- */

static struct server_settings quick(void)
{
    return (struct server_settings){.read_header_timeout_ns = 300 * (int64_t)NS_PER_MS,
                                    .read_timeout_ns = 400 * (int64_t)NS_PER_MS,
                                    .write_timeout_ns = 500 * (int64_t)NS_PER_MS,
                                    .idle_timeout_ns = 400 * (int64_t)NS_PER_MS};
}

/* Sends `text` a byte every 20 ms until the server closes; how long that took, in ms. */
static uint64_t dribble(const struct world *w, const char *text)
{
    int fd = connect_world(w);
    uint64_t start = clock_now_ns();
    for (const char *s = text; *s; s++) {
        if (send(fd, s, 1, MSG_NOSIGNAL) < 0)
            break;
        struct raw_result r = raw_talk(fd, bytes_of("", 0), NULL, 0, 20);
        enum raw_end end = r.end;
        buf_unref(r.got);
        if (end == RAW_CLOSED)
            break;
    }
    close(fd);
    return (clock_now_ns() - start) / NS_PER_MS;
}

static const char slow_head[] =
    "POST "
    "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

static void test_slow_clients(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, quick());
    uint64_t ms = dribble(&w, slow_head);
    assert_in_range(ms, 250, 1500);
    /* a good client meanwhile */
    int slow[50];
    for (size_t i = 0; i < ARRAY_SIZE(slow); i++) {
        slow[i] = connect_world(&w);
        assert_int_equal(send(slow[i], "PO", 2, 0), 2);
    }
    struct raw_result r = say(&w, GOOD, NULL);
    assert_true(raw_has(r.got, "200 OK"));
    buf_unref(r.got);
    for (size_t i = 0; i < ARRAY_SIZE(slow); i++) {
        r = raw_talk(slow[i], bytes_of("", 0), NULL, 0, 2000);
        assert_int_equal(r.end, RAW_CLOSED);
        buf_unref(r.got);
        close(slow[i]);
    }
    close_world(&w);
}

/* Each phase of a connection ends by itself: the wait for a body, the wait for the next request, a
 * preface and silence. */
static void test_silence(void **state)
{
    (void)state;
    static const char *const openings[] = {
        "",
        HEAD("/x") "Content-Length: 10\r\n\r\n123",
        HEAD("/x") "Content-Length: 1\r\n\r\n1",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "PRI * HTTP/2.0\r\n",
    };
    struct world w;
    open_world(&w, quick());
    for (size_t i = 0; i < ARRAY_SIZE(openings); i++) {
        uint64_t start = clock_now_ns();
        struct raw_result r = say(&w, openings[i], NULL);
        if (r.end != RAW_CLOSED || clock_now_ns() - start > 2 * NS_PER_S)
            fail_msg("opening %zu: still open", i);
        buf_unref(r.got);
    }
    close_world(&w);
}

/* The head of a later request has its time from its first byte on, however slowly it comes; the
 * idle time before it is another. */
static void test_slow_later_head(void **state)
{
    (void)state;
    struct world w;
    struct server_settings s = quick();
    s.idle_timeout_ns = 30 * (int64_t)NS_PER_S;
    open_world(&w, s);
    const int64_t before = server_counted(CLOSED_HEADER_TIMEOUT);
    int fd = connect_world(&w);
    struct raw_result r =
        raw_talk(fd, bytes_str("GET /x HTTP/1.1\r\nHost: x\r\n\r\n"), "hello", 1, 3000);
    assert_true(raw_has(r.got, "hello"));
    buf_unref(r.got);
    r = raw_talk(fd, bytes_of("", 0), NULL, 0, 700); /* longer than the time for a head */
    assert_int_equal(r.end, RAW_OPEN);
    buf_unref(r.got);
    const uint64_t start = clock_now_ns();
    for (enum raw_end end = RAW_OPEN; end == RAW_OPEN && clock_now_ns() - start < 10 * NS_PER_S;) {
        send(fd, "G", 1, MSG_NOSIGNAL);
        r = raw_talk(fd, bytes_of("", 0), NULL, 0, 50);
        end = r.end;
        buf_unref(r.got);
    }
    assert_true(clock_now_ns() - start < 8 * NS_PER_S);
    assert_int_equal(server_counted(CLOSED_HEADER_TIMEOUT), before + 1);
    close(fd);
    close_world(&w);
}

/* The same when its first bytes come together with the request before: nothing more comes then. */
static void test_head_behind_a_request(void **state)
{
    (void)state;
    struct world w;
    struct server_settings s = quick();
    s.idle_timeout_ns = 30 * (int64_t)NS_PER_S;
    open_world(&w, s);
    const int64_t before = server_counted(CLOSED_HEADER_TIMEOUT);
    struct raw_result r = say(&w, HEAD("/x") "Content-Length: 2\r\n\r\nabPOST /e", NULL);
    assert_true(raw_has(r.got, "hello"));
    assert_int_equal(r.end, RAW_CLOSED);
    assert_int_equal(server_counted(CLOSED_HEADER_TIMEOUT), before + 1);
    buf_unref(r.got);
    close_world(&w);
}

/* A request as a whole has its time, although each part of it comes soon enough. */
static void test_slow_request(void **state)
{
    (void)state;
    static const struct server_limits few = {.request_timeout_ns = NS_PER_S}, usual;
    struct world w;
    server_limits_set(&few);
    open_world(&w, (struct server_settings){0});
    const int64_t before = server_counted(CLOSED_REQUEST_TIMEOUT);
    int fd = connect_world(&w);
    const char *head = HEAD("/x") "Content-Length: 100000\r\n\r\n";
    assert_true(send(fd, head, strlen(head), 0) > 0);
    const uint64_t start = clock_now_ns();
    for (enum raw_end end = RAW_OPEN; end == RAW_OPEN && clock_now_ns() - start < 20 * NS_PER_S;) {
        send(fd, "B", 1, MSG_NOSIGNAL);
        struct raw_result r = raw_talk(fd, bytes_of("", 0), NULL, 0, 50);
        end = r.end;
        buf_unref(r.got);
    }
    assert_in_range(clock_now_ns() - start, NS_PER_S / 2, 15 * NS_PER_S);
    assert_int_equal(server_counted(CLOSED_REQUEST_TIMEOUT), before + 1);
    close(fd);
    close_world(&w);
    server_limits_set(&usual);
}

static void test_reader_that_does_not_read(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, quick());
    int fd = connect_world(&w), small = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    assert_true(send(fd, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n", 30, 0) == 30);
    assert_soon(atomic_load(&w.bodies) == 1);
    assert_soon(mem_used() > 8u << 20);
    assert_soon(mem_used() < 1u << 20); /* its write deadline has passed */
    close(fd);
    close_world(&w);
}

static void test_head_too_large(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct server_settings){0});
    _cleanup_buf_ struct buf *line = with_body(HEAD("/x") "X: ", 65536), *many = text(HEAD("/x"));
    struct raw_result r = raw_exchange(listener_address(w.l), buf_bytes(line), NULL, 3000);
    assert_true(raw_has(r.got, "HTTP/1.1 431 ") && r.end == RAW_CLOSED);
    buf_unref(r.got);
    for (int i = 0; i < 10000; i++)
        buf_printf(many, "x-%d: y\r\n", i);
    buf_append_str(many, "\r\n");
    r = raw_exchange(listener_address(w.l), buf_bytes(many), NULL, 3000);
    assert_true(raw_has(r.got, "HTTP/1.1 431 ") && r.end == RAW_CLOSED);
    buf_unref(r.got);
    close_world(&w);
}

/* ---- descriptors ---- */

static uint64_t cpu_ms(pid_t pid)
{
    char path[64], line[512] = "";
    unsigned long user = 0, sys = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    _cleanup_fclose_ FILE *f = fopen(path, "r");
    if (f && fgets(line, sizeof(line), f))
        sscanf(strrchr(line, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
               &sys);
    return (user + sys) * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* The server of a child process with few descriptors; its address comes through the pipe, it ends
 * when the pipe closes. */
static void few_descriptors(int to_parent, int from_parent)
{
    struct world w;
    char c;
    const struct rlimit r = {64, 64};
    setrlimit(RLIMIT_NOFILE, &r);
    open_world(&w, (struct server_settings){0});
    if (write(to_parent, listener_address(w.l), strlen(listener_address(w.l))) < 0)
        _exit(1);
    while (read(from_parent, &c, 1) > 0) {
        int fd = open("/dev/null", O_RDONLY); /* files can still be opened */
        c = fd >= 0 ? 'y' : 'n';
        close(fd);
        if (write(to_parent, &c, 1) < 0)
            _exit(1);
    }
    _exit(0);
}

static void test_too_many_connections(void **state)
{
    (void)state;
    int down[2], up[2], fds[200];
    char address[64] = "", c = 'x';
    assert_int_equal(pipe(down) | pipe(up), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(down[1]);
        few_descriptors(up[1], down[0]);
    }
    assert_true(read(up[0], address, sizeof(address) - 1) > 0);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fds[i] = raw_connect(address);
    uint64_t before = cpu_ms(pid);
    usleep(1000000);
    assert_in_range(cpu_ms(pid) - before, 0, 100);
    assert_int_equal(write(down[1], &c, 1), 1);
    assert_int_equal(read(up[0], &c, 1), 1);
    assert_int_equal(c, 'y');
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
    struct raw_result r = raw_exchange(address, bytes_str(GOOD), NULL, 5000);
    assert_true(raw_has(r.got, "200 OK"));
    buf_unref(r.got);
    close(down[1]);
    waitpid(pid, NULL, 0);
    close(down[0]);
    close(up[0]);
    close(up[1]);
}

/* With all places taken by connections that ask for nothing, a new one waits until they have been
 * idle for a while. Where all are at work it is told to come again. */
static void test_max_connections(void **state)
{
    (void)state;
    static const struct server_limits few = {.max_connections = 16}, usual;
    struct world w;
    int fds[14], busy[14]; /* what one listener may have of 16 */
    server_limits_set(&few);
    open_world(&w, (struct server_settings){0});
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fds[i] = connect_world(&w);
    assert_soon(server_connections() == 14);
    const int64_t evicted = server_counted(CLOSED_EVICTED), refused = server_counted(REFUSED_LIMIT);
    struct raw_result r = raw_exchange(listener_address(w.l), bytes_str(GOOD), NULL, 20000);
    assert_true(raw_has(r.got, "200 OK"));
    buf_unref(r.got);
    assert_true(server_counted(CLOSED_EVICTED) > evicted);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
    assert_soon(server_connections() == 0);
    for (size_t i = 0; i < ARRAY_SIZE(busy); i++) {
        busy[i] = connect_world(&w);
        r = raw_talk(busy[i], bytes_str(HEAD("/x") "Content-Length: 9\r\n\r\n"), NULL, 0, 50);
        buf_unref(r.got);
    }
    assert_soon(atomic_load(&w.requests) == 15);
    r = raw_exchange(listener_address(w.l), bytes_str(GOOD), NULL, 20000);
    assert_true(raw_has(r.got, "503 Service Unavailable") && r.end == RAW_CLOSED);
    buf_unref(r.got);
    assert_int_equal(server_counted(REFUSED_LIMIT), refused + 1);
    close(busy[0]);
    assert_soon(server_connections() == 13);
    r = raw_exchange(listener_address(w.l), bytes_str(GOOD), NULL, 20000);
    assert_true(raw_has(r.got, "200 OK"));
    buf_unref(r.got);
    for (size_t i = 1; i < ARRAY_SIZE(busy); i++)
        close(busy[i]);
    close_world(&w);
    server_limits_set(&usual);
}

/* How many connections have something to read, or ended. */
static unsigned count_answered(const int *fds, size_t n)
{
    unsigned answered = 0;
    for (size_t i = 0; i < n; i++) {
        struct pollfd p = {fds[i], POLLIN, 0};
        answered += poll(&p, 1, 0) == 1;
    }
    return answered;
}

/* Bodies that are not whole yet share one budget: beyond it requests are asked to come again. */
static void test_many_half_bodies(void **state)
{
    (void)state;
    struct world w;
    int fds[270];
    open_world(&w, (struct server_settings){0});
    _cleanup_buf_ struct buf *most =
        with_body(HEAD("/x") "Content-Length: 1048576\r\n\r\n", LIMIT - 1);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = connect_world(&w);
        struct raw_result r = raw_talk(fds[i], buf_bytes(most), NULL, 0, 5);
        buf_unref(r.got);
    }
    assert_soon(count_answered(fds, ARRAY_SIZE(fds)) > 0);
    assert_in_range(count_answered(fds, ARRAY_SIZE(fds)), 1, 30);
    assert_in_range(mem_used(), 200u << 20, 300u << 20);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
    assert_soon(mem_used() < 16u << 20);
    struct raw_result r = say(&w, GOOD, NULL);
    assert_true(raw_has(r.got, "200 OK"));
    buf_unref(r.got);
    close_world(&w);
}

/* ---- life ---- */

static bool is_refused(const char *address)
{
    int fd = raw_connect(address);
    if (fd >= 0)
        close(fd);
    return fd < 0;
}

static void test_stop_waits_for_requests(void **state)
{
    (void)state;
    struct world w;
    size_t before = mem_used();
    open_world(&w, (struct server_settings){0});
    char address[64];
    snprintf(address, sizeof(address), "%s", listener_address(w.l));
    int idle = connect_world(&w), fd = connect_world(&w);
    struct raw_result r =
        raw_talk(idle, bytes_str(HEAD("/x") "Content-Length: 0\r\n\r\n"), "hello", 1, 2000);
    buf_unref(r.got);
    r = raw_talk(fd, bytes_str(HEAD("/hold") "Content-Length: 1\r\n\r\n1"), NULL, 0, 50);
    buf_unref(r.got);
    assert_soon(atomic_load(&w.held) != NULL);
    pthread_t t;
    pthread_create(&t, NULL, close_world_thread, &w);
    r = raw_talk(idle, bytes_of("", 0), NULL, 0, 3000);
    assert_int_equal(r.end, RAW_CLOSED); /* nothing under way: closed at once */
    buf_unref(r.got);
    assert_soon(is_refused(address));
    reply(atomic_load(&w.held), 200, text("in time"), false);
    r = raw_talk(fd, bytes_of("", 0), NULL, 0, 3000);
    assert_true(raw_has(r.got, "in time") && raw_has(r.got, "Connection: close"));
    assert_int_equal(r.end, RAW_CLOSED);
    buf_unref(r.got);
    pthread_join(t, NULL);
    close(idle);
    close(fd);
    assert_int_equal(mem_used(), before);
}

static void test_stop_cuts_at_the_deadline(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct server_settings){0});
    int fd = connect_world(&w);
    struct raw_result r =
        raw_talk(fd, bytes_str(HEAD("/hold") "Content-Length: 1\r\n\r\n1"), NULL, 0, 50);
    buf_unref(r.got);
    assert_soon(atomic_load(&w.held) != NULL);
    uint64_t start = clock_now_ns();
    listener_stop(w.l, start + 200 * NS_PER_MS);
    assert_in_range((clock_now_ns() - start) / NS_PER_MS, 190, 1500);
    assert_int_equal(atomic_load(&w.gone), 1);
    listener_free(w.l);
    reply(atomic_load(&w.held), 200, text("after everything"), false);
    r = raw_talk(fd, bytes_of("", 0), NULL, 0, 1000);
    assert_int_equal(r.end, RAW_CLOSED);
    assert_int_equal(r.got->len, 0);
    buf_unref(r.got);
    close(fd);
}

static const char *who(const struct world *w, int fd)
{
    static char name[16];
    struct raw_answer a;
    struct raw_result r =
        raw_talk(fd, bytes_str(HEAD("/x") "Content-Length: 0\r\n\r\n"), w->name, 1, 300);
    struct bytes in = buf_bytes(r.got);
    name[0] = 0;
    if (raw_next_answer(&in, false, &a))
        snprintf(name, sizeof(name), "%.*s", (int)a.body.len, (const char *)a.body.data);
    buf_unref(r.got);
    return name;
}

/* A reload: the new service takes over open connections, the old one may finish; a failed one gives
 * back. */
static void test_taking_over(void **state)
{
    (void)state;
    struct world a, b = {.name = "second"};
    struct err e;
    open_world(&a, (struct server_settings){0});
    a.name = "first";
    struct http_service second = service_of(&b);
    int fd = connect_world(&a), held = connect_world(&a);
    assert_string_equal(who(&a, fd), "first");
    struct raw_result r =
        raw_talk(held, bytes_str(HEAD("/hold") "Content-Length: 1\r\n\r\n1"), NULL, 0, 50);
    buf_unref(r.got);
    assert_soon(atomic_load(&a.held) != NULL);
    assert_int_equal(listener_serve(a.l, &second, &e), 0);
    assert_string_equal(who(&b, fd), "second");
    listener_leave(a.l, &b, clock_now_ns());
    assert_string_equal(who(&a, fd), "first"); /* given back */
    assert_int_equal(listener_serve(a.l, &second, &e), 0);
    reply(atomic_load(&a.held), 200, text("old one"), false);
    r = raw_talk(held, bytes_of("", 0), "old one", 1, 2000);
    assert_true(raw_has(r.got, "old one"));
    buf_unref(r.got);
    listener_leave(a.l, &a, clock_now_ns() + NS_PER_S);
    assert_string_equal(who(&b, fd), "second"); /* the listener goes on */
    listener_leave(a.l, &b, clock_now_ns() + NS_PER_S);
    assert_int_equal(listener_serve(a.l, &second, &e), -ESHUTDOWN);
    listener_free(a.l);
    close(fd);
    close(held);
}

static void test_no_keepalive(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct server_settings){.no_keepalive = true});
    struct raw_result r = say(&w, HEAD("/x") "Content-Length: 0\r\n\r\n", NULL);
    assert_true(raw_has(r.got, "Connection: close") && r.end == RAW_CLOSED);
    buf_unref(r.got);
    close_world(&w);
}

/* ---- addresses ---- */

static void test_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *endpoint, *transport, *address;
    } rows[] = {
        {"127.0.0.1:0", "tcp", "127.0.0.1:"},
        {"localhost:0", "tcp", "127.0.0.1:"},
        {"[::1]:0", "tcp", "[::1]:"},
        {":0", "tcp", "[::]:"},
        {"0.0.0.0:0", "tcp", "[::]:"},
        {":0", "tcp4", "0.0.0.0:"},
        {":0", "tcp6", "[::]:"},
        {"localhost:0", "tcp6", "[::1]:"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct world w;
        open_world(&w, (struct server_settings){.endpoint = rows[i].endpoint,
                                                .transport = rows[i].transport});
        const char *address = listener_address(w.l), *port = strrchr(address, ':') + 1;
        if (strncmp(address, rows[i].address, strlen(rows[i].address)) != 0)
            fail_msg("%s %s: %s", rows[i].transport, rows[i].endpoint, address);
        char to[64];
        snprintf(to, sizeof(to), "%s:%s", address[0] == '[' ? "[::1]" : "127.0.0.1", port);
        struct raw_result r = raw_exchange(to, bytes_str(GOOD), NULL, 2000);
        if (!raw_has(r.got, "200 OK"))
            fail_msg("%s %s: no answer on %s", rows[i].transport, rows[i].endpoint, to);
        buf_unref(r.got);
        if (strcmp(rows[i].transport, "tcp") == 0 &&
            strncmp(address, "[::]", 4) == 0) { /* every interface of both families */
            snprintf(to, sizeof(to), "127.0.0.1:%s", port);
            r = raw_exchange(to, bytes_str(GOOD), NULL, 2000);
            assert_true(raw_has(r.got, "200 OK"));
            buf_unref(r.got);
        }
        close_world(&w);
    }
}

struct knocker {
    struct sockaddr_in to;
    atomic_bool stop;
    atomic_uint times;
};

static void *knock_on(void *arg)
{
    struct knocker *k = arg;
    const struct linger now = {.l_onoff = 1, .l_linger = 0}; /* no port is left waiting */
    while (!atomic_load(&k->stop)) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        atomic_fetch_add(&k->times, 1);
        connect(fd, (struct sockaddr *)&k->to, sizeof(k->to));
        close(fd);
    }
    return NULL;
}

/* A listener ends in the same batch of events as somebody comes; nothing is taken from it after. */
static void test_stopped_while_clients_come(void **state)
{
    (void)state;
    struct world w, other; /* keeps the threads */
    open_world(&other, (struct server_settings){0});
    for (int i = 0; i < 20; i++) {
        struct knocker k = {.to = {.sin_family = AF_INET}};
        pthread_t t;
        open_world(&w, (struct server_settings){0});
        k.to.sin_port = htons((uint16_t)atoi(strrchr(listener_address(w.l), ':') + 1));
        k.to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        pthread_create(&t, NULL, knock_on, &k);
        while (atomic_load(&k.times) < 20)
            sched_yield();
        close_world(&w);
        atomic_store(&k.stop, true);
        pthread_join(t, NULL);
    }
    close_world(&other);
}

static void test_unix_socket(void **state)
{
    (void)state;
    char path[64];
    struct stat st;
    struct world w;
    struct err e;
    snprintf(path, sizeof(path), "/tmp/server_test.%d.sock", getpid());
    const struct server_settings s = {.endpoint = path, .transport = "unix"};
    struct listener *left = NULL, *other = NULL;
    assert_int_equal(listener_open(&s, &left, &e), 0);
    assert_int_equal(listener_open(&s, &other, &e), -EADDRINUSE); /* in use: not touched */
    assert_non_null(strstr(e.text, "bind: address already in use"));
    listener_free(left);
    assert_int_equal(stat(path, &st), -1);
    int stale = socket(AF_UNIX, SOCK_STREAM, 0); /* left behind by a process that was killed */
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
    assert_int_equal(bind(stale, (struct sockaddr *)&un, sizeof(un)), 0);
    close(stale);
    open_world(&w, s);
    assert_string_equal(listener_address(w.l), path);
    struct raw_result r =
        say(&w, HEAD("/late") "Content-Length: 2\r\nConnection: close\r\n\r\nab", NULL);
    assert_true(raw_has(r.got, "late"));
    buf_unref(r.got);
    close_world(&w);
    assert_int_equal(stat(path, &st), -1);
}

static void test_address_in_use(void **state)
{
    (void)state;
    struct world w;
    struct listener *l = NULL;
    struct err e;
    char want[128];
    open_world(&w, (struct server_settings){0});
    const struct server_settings s = {.endpoint = listener_address(w.l), .transport = "tcp"};
    assert_int_equal(listener_open(&s, &l, &e), -EADDRINUSE);
    snprintf(want, sizeof(want), "listen tcp %s: bind: address already in use",
             listener_address(w.l));
    assert_string_equal(e.text, want);
    close_world(&w);
}

static void test_endpoint_check(void **state)
{
    (void)state;
    static const struct {
        const char *endpoint, *error;
    } rows[] = {
        {"localhost:4317", NULL},
        {":4317", NULL},
        {"[::1]:4317", NULL},
        {"0.0.0.0:0", NULL},
        {"host:http", NULL},
        {"x:", NULL},
        {"host:65535", NULL},
        {"host:65536", "address host:65536: invalid port"},
        {"host:99999999999999999999", "address host:99999999999999999999: invalid port"},
        {"foo", "address foo: missing port in address"},
        {"", "address : missing port in address"},
        {"a:b:1", "address a:b:1: too many colons in address"},
        {"::1", "address ::1: too many colons in address"},
        {"[::1", "address [::1: missing ']' in address"},
        {"[::1]", "address [::1]: missing port in address"},
        {"[::1]1:2", "address [::1]1:2: missing port in address"},
        {"a]:1", "address a]:1: unexpected bracket in address"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct err e = {0};
        int r = endpoint_check(rows[i].endpoint, &e);
        assert_int_equal(r, rows[i].error ? -EINVAL : 0);
        assert_string_equal(e.text, rows[i].error ? rows[i].error : "");
    }
    struct err e;
    struct listener *l = NULL;
    assert_int_equal(
        listener_open(&(struct server_settings){.endpoint = "127.0.0.1:99999"}, &l, &e), -EINVAL);
    assert_non_null(strstr(e.text, "invalid port"));
    assert_int_equal(
        listener_open(&(struct server_settings){.endpoint = "127.0.0.1:1", .transport = "udp"}, &l,
                      &e),
        -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_many_connections), /* first: it forks before there are threads */
        cmocka_unit_test(test_early_answers),
        cmocka_unit_test(test_limits_are_exact),
        cmocka_unit_test(test_late_answers),
        cmocka_unit_test(test_large_answer),
        cmocka_unit_test(test_client_leaves),
        cmocka_unit_test(test_half_close),
        cmocka_unit_test(test_slow_clients),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_slow_later_head),
        cmocka_unit_test(test_head_behind_a_request),
        cmocka_unit_test(test_slow_request),
        cmocka_unit_test(test_reader_that_does_not_read),
        cmocka_unit_test(test_head_too_large),
        cmocka_unit_test(test_max_connections),
        cmocka_unit_test(test_many_half_bodies),
        cmocka_unit_test(test_stop_waits_for_requests),
        cmocka_unit_test(test_stop_cuts_at_the_deadline),
        cmocka_unit_test(test_taking_over),
        cmocka_unit_test(test_no_keepalive),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_unix_socket),
        cmocka_unit_test(test_stopped_while_clients_come),
        cmocka_unit_test(test_address_in_use),
        cmocka_unit_test(test_endpoint_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
