/* What doctor's checks say of files, addresses, servers. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/base/clock.h"
#include "agent/pipeline/probe.h"

#define FOUND_MOST 16

static struct {
    struct {
        enum probe_grade grade;
        char check[32], subject[300], detail[600], advice[300];
    } items[FOUND_MOST];
    unsigned n;
} found;

static void on_found(void *ctx, const struct probe_finding *f)
{
    (void)ctx;
    assert_true(found.n < FOUND_MOST);
    assert_string_equal(f->component, "exporters::x");
    found.items[found.n].grade = f->grade;
    snprintf(found.items[found.n].check, 32, "%s", f->check);
    snprintf(found.items[found.n].subject, 300, "%s", f->subject);
    snprintf(found.items[found.n].detail, 600, "%s", f->detail);
    snprintf(found.items[found.n].advice, 300, "%s", f->advice);
    found.n++;
}

static struct probe fresh(struct probe_ports *ports)
{
    memset(&found, 0, sizeof(found));
    return (struct probe){.component = "exporters::x",
                          .timeout_ns = 20 * NS_PER_S,
                          .ports = ports,
                          .found = on_found};
}

static void assert_last(enum probe_grade grade, const char *check, const char *words)
{
    assert_true(found.n > 0);
    const unsigned i = found.n - 1;
    assert_int_equal(found.items[i].grade, grade);
    assert_string_equal(found.items[i].check, check);
    if (!strstr(found.items[i].detail, words))
        fail_msg("\"%s\" is not in \"%s\"", words, found.items[i].detail);
    assert_true(grade != PROBE_FAIL || found.items[i].advice[0]);
}

/* ---- files ---- */

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/motel-probe-XXXXXX");
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1; /* fails when something was left in it */
}

static void put(const char *name, const char *text, mode_t mode)
{
    const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void test_output_files(void **state)
{
    (void)state;
    struct probe p = fresh(NULL);
    probe_output_file(&p, "new", false, "");
    assert_last(PROBE_OK, "file", "can be made");
    probe_output_file(&p, "a/b/c", false, "");
    assert_last(PROBE_FAIL, "file", "no directory a/b");
    probe_output_file(&p, "a/b/c", true, "");
    assert_last(PROBE_OK, "file", "the directory is made at the start");
    probe_output_file(&p, ".", false, "");
    assert_last(PROBE_FAIL, "file", "it is a directory");
    probe_output_file(&p, "/dev/null", false, "");
    assert_last(PROBE_OK, "file", "not an ordinary file");
    put("there", "text", 0640);
    probe_output_file(&p, "there", false, "is emptied");
    assert_last(PROBE_OK, "file", "mode 0640; the file that is there is emptied");
    probe_output_file(&p, "there/x", false, "");
    assert_last(PROBE_FAIL, "file", "there is not a directory");
    probe_output_file(&p, "there/x/y", true, "");
    assert_last(PROBE_FAIL, "file", "not a directory");
    struct stat st;
    assert_int_equal(stat("there", &st), 0);
    assert_int_equal(st.st_size, 4);
    unlink("there");
}

static void test_directories(void **state)
{
    (void)state;
    struct probe p = fresh(NULL);
    probe_directory(&p, ".", false);
    assert_last(PROBE_OK, "directory", "writable");
    probe_directory(&p, "none", false);
    assert_last(PROBE_FAIL, "directory", "no directory none");
    probe_directory(&p, "none/below", true);
    assert_last(PROBE_OK, "directory", "made at the start");
    probe_directory(&p, "/dev/null", false);
    assert_last(PROBE_FAIL, "directory", "not a directory");
}

static void test_input_files(void **state)
{
    (void)state;
    struct probe p = fresh(NULL);
    assert_false(probe_input_file(&p, "none", false));
    assert_last(PROBE_FAIL, "file", "cannot read it: No such file");
    assert_false(probe_input_file(&p, ".", false));
    assert_last(PROBE_FAIL, "file", "it is a directory");
    put("f", "", 0600);
    assert_false(probe_input_file(&p, "f", true));
    assert_last(PROBE_FAIL, "file", "it is empty");
    put("f", "x", 0600);
    assert_true(probe_input_file(&p, "f", true));
    assert_last(PROBE_OK, "file", "readable");
    put("f", "x", 0644);
    assert_true(probe_input_file(&p, "f", true));
    assert_last(PROBE_WARN, "file", "every user");
    assert_true(probe_input_file(&p, "f", false));
    assert_last(PROBE_OK, "file", "readable");
    unlink("f");
}

/* ---- certificates ---- */

static void test_validity(void **state)
{
    (void)state;
    struct probe p = fresh(NULL);
    const int64_t now = (int64_t)(clock_wall_ns() / NS_PER_S), day = 86400;
    struct certificate_info c = {.subject = "CN=s", .issuer = "CN=i"};
    c.begins_s = now - day;
    c.expires_s = now + 100 * day;
    probe_certificate(&p, "certificate", "f", &c);
    assert_last(PROBE_OK, "certificate", "CN=s, by CN=i, is valid until");
    c.expires_s = now + 3 * day;
    probe_certificate(&p, "certificate", "f", &c);
    assert_last(PROBE_WARN, "certificate", "expires on");
    c.expires_s = now - 1;
    probe_certificate(&p, "certificate", "f", &c);
    assert_last(PROBE_FAIL, "certificate", "expired on");
    c.expires_s = now + 100 * day;
    c.begins_s = now + day;
    probe_certificate(&p, "certificate", "f", &c);
    assert_last(PROBE_FAIL, "certificate", "from");
}

static void test_dates(void **state)
{
    (void)state;
    char text[16];
    certificate_date(0, text);
    assert_string_equal(text, "1970-01-01");
    certificate_date(1787313600, text);
    assert_string_equal(text, "2026-08-21");
}

static void test_what_is_no_certificate(void **state)
{
    (void)state;
    struct certificate_info c;
    struct err e = {0};
    assert_int_equal(certificate_info_read("text", 4, true, &c, &e), -EINVAL);
    assert_non_null(strstr(e.text, "not a certificate"));
    assert_int_equal(certificate_info_load("none.pem", NULL, &c, &e), -ENOENT);
}

/* ---- addresses ---- */

static void test_our_addresses(void **state)
{
    (void)state;
    _cleanup_(probe_ports_freep) struct probe_ports *ports = probe_ports_new();
    struct probe p = fresh(ports);
    probe_server(&p, "http", &(struct server_settings){.endpoint = "127.0.0.1:0"}, false);
    assert_last(PROBE_OK, "address", "free");
    assert_false(probe_ports_have(ports, "127.0.0.1", "0"));
    p.step = PROBE_OUTSIDE; /* nothing to do any more */
    probe_server(&p, "http", &(struct server_settings){.endpoint = "127.0.0.1:0"}, false);
    assert_int_equal(found.n, 1);
}

/* A port of 127.0.0.1 with a listening socket. */
static int listen_somewhere(char endpoint[32], char port[8])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    snprintf(port, 8, "%u", ntohs(a.sin_port));
    snprintf(endpoint, 32, "127.0.0.1:%s", port);
    return fd;
}

static enum probe_likeness likeness;
static enum probe_likeness on_process(void *ctx, pid_t pid)
{
    (void)ctx;
    assert_int_equal(pid, getpid());
    return likeness;
}

static void test_taken_addresses(void **state)
{
    (void)state;
    static const struct {
        enum probe_likeness like;
        enum probe_grade grade;
        const char *words;
    } cases[] = {{PROBE_STRANGER, PROBE_FAIL, "in use by process"},
                 {PROBE_MOTEL, PROBE_FAIL, "runs with another configuration"},
                 {PROBE_SAME, PROBE_OK, "runs with this configuration"}};
    char endpoint[32], port[8];
    _cleanup_close_ _unused_ int fd = listen_somewhere(endpoint, port);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(probe_ports_freep) struct probe_ports *ports = probe_ports_new();
        struct probe p = fresh(ports);
        p.likeness = on_process;
        likeness = cases[i].like;
        probe_server(&p, "", &(struct server_settings){.endpoint = endpoint}, true);
        assert_last(cases[i].grade, "address", cases[i].words);
        assert_true(probe_ports_have(ports, "localhost", port));
        assert_true(probe_ports_have(ports, "127.0.0.1", port));
        assert_false(probe_ports_have(ports, "backend.example", port));
        assert_false(probe_ports_have(ports, "127.0.0.1", "1"));
    }
}

/* ---- servers ---- */

struct answering {
    int fd;
    const char *answer;
    unsigned times;
};

/* Answers to whatever comes first on each of some connections. */
static void *answer_main(void *arg)
{
    const struct answering *a = arg;
    for (unsigned i = 0; i < a->times; i++) {
        char in[256];
        const int fd = accept(a->fd, NULL, NULL);
        if (fd < 0)
            return NULL;
        if (recv(fd, in, sizeof(in), 0) > 0)
            send(fd, a->answer, strlen(a->answer), MSG_NOSIGNAL);
        close(fd);
    }
    return NULL;
}

static enum reach_speech speech_to(const char *answer)
{
    char endpoint[32], port[8];
    struct reach_addresses all;
    struct err e = {0};
    unsigned at;
    _cleanup_close_ int fd = listen_somewhere(endpoint, port);
    struct answering a = {fd, answer, 1};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, answer_main, &a), 0);
    assert_int_equal(reach_resolve("127.0.0.1", port, 20 * NS_PER_S, &all, &e), 0);
    assert_int_equal(all.n, 1);
    const uint64_t deadline = clock_now_ns() + 20 * NS_PER_S;
    _cleanup_close_ int peer = reach_connect(&all, deadline, &at);
    assert_true(peer >= 0);
    const enum reach_speech s = reach_listen(peer, false, deadline);
    pthread_join(thread, NULL);
    return s;
}

static void test_what_is_spoken(void **state)
{
    (void)state;
    assert_int_equal(speech_to("HTTP/1.1 400 Bad Request\r\n\r\n"), SPEAKS_HTTP1);
    assert_int_equal(speech_to("220 mail.example ESMTP\r\n"), SPEAKS_OTHER);
    assert_int_equal(speech_to("\x15\x03\x01"), SPEAKS_TLS);
    assert_int_equal(speech_to(""), SPEAKS_NOTHING);
}

static void test_reaching(void **state)
{
    (void)state;
    char endpoint[32], port[8];
    _cleanup_(probe_ports_freep) struct probe_ports *ports = probe_ports_new();
    struct probe p = fresh(ports);
    int fd = listen_somewhere(endpoint, port);
    struct probe_peer peer = {.host = "127.0.0.1", .port = port};
    assert_true(probe_reach(&p, &peer));
    assert_last(PROBE_OK, "connect", "took");
    close(fd);
    assert_false(probe_reach(&p, &peer));
    assert_last(PROBE_FAIL, "connect", "Connection refused");
    struct probe_peer nowhere = {.unix_path = "none.sock"};
    assert_false(probe_reach(&p, &nowhere));
    assert_last(PROBE_FAIL, "connect", "No such file");
}

static void test_too_long_socket_paths(void **state)
{
    (void)state;
    struct reach_addresses a;
    char path[200];
    memset(path, 'x', sizeof(path));
    path[sizeof(path) - 1] = 0;
    assert_int_equal(reach_unix(path, &a), -ENAMETOOLONG);
    assert_int_equal(reach_unix("s", &a), 0);
}

/* ---- URLs and proxies ---- */

static void test_urls(void **state)
{
    (void)state;
    static const struct {
        const char *url, *host, *port, *path;
        bool tls;
    } cases[] = {
        {"http://h", "h", "80", "/", false},
        {"https://u:p@h.example:4318/v1/traces?x=1", "h.example", "4318", "/v1/traces", true},
        {"https://[::1]:4318", "[::1]", "4318", "/", true},
        {"proxy:3128", "proxy", "3128", "/", false}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_url u;
        assert_int_equal(http_url_split(cases[i].url, &u), 0);
        assert_string_equal(u.host, cases[i].host);
        assert_string_equal(u.port, cases[i].port);
        assert_string_equal(u.path, cases[i].path);
        assert_int_equal(u.tls, cases[i].tls);
    }
    struct http_url bad;
    assert_int_equal(http_url_split("http://", &bad), -EINVAL);
}

static void test_proxies(void **state)
{
    (void)state;
    static const struct {
        const char *proxy, *except, *url, *host; /* host NULL = directly */
    } cases[] = {{"http://p:3128", NULL, "http://h/", "p"},
                 {"http://p:3128", "h", "http://h/", NULL},
                 {"http://p:3128", "example", "http://a.example/", NULL},
                 {"http://p:3128", ".example, other", "http://a.example/", NULL},
                 {"http://p:3128", "ample", "http://a.example/", "p"},
                 {"http://p:3128", "*", "http://a.example/", NULL},
                 {"http://u:s@p", NULL, "https://h/", "p"},
                 {"", NULL, "http://h/", NULL}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct http_client_settings s = {
            .proxy_url = cases[i].proxy, .no_proxy = cases[i].except, .no_env_proxy = true};
        struct http_url u;
        assert_int_equal(http_client_proxy(&s, cases[i].url, &u), cases[i].host != NULL);
        if (cases[i].host)
            assert_string_equal(u.host, cases[i].host);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_output_files),
        cmocka_unit_test(test_directories),
        cmocka_unit_test(test_input_files),
        cmocka_unit_test(test_validity),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_what_is_no_certificate),
        cmocka_unit_test(test_our_addresses),
        cmocka_unit_test(test_taken_addresses),
        cmocka_unit_test(test_what_is_spoken),
        cmocka_unit_test(test_reaching),
        cmocka_unit_test(test_too_long_socket_paths),
        cmocka_unit_test(test_urls),
        cmocka_unit_test(test_proxies),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
