/* The health_check extension: what a probe sees through start, run and stop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <time.h>

#include "agent/net/server.h"
#include "raw_client.h"
#include "rig.h"

extern const struct component_type extension_health_check;

/* A port that was free a moment ago. */
static int free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
    getsockname(fd, (struct sockaddr *)&a, &len);
    close(fd);
    return ntohs(a.sin_port);
}

struct world {
    struct rig r;
    char address[32];
};

static void make(struct world *w, const char *keys)
{
    char yaml[400];
    int port = free_port();
    memset(w, 0, sizeof(*w));
    snprintf(w->address, sizeof(w->address), "127.0.0.1:%d", port);
    snprintf(yaml, sizeof(yaml), "endpoint: %s\n%s\n", w->address, keys);
    rig_make(&w->r, &extension_health_check, "health_check", SIGNAL_TRACES, 0, yaml);
}

static void start(struct world *w)
{
    struct err e = {.text = ""};
    if (extension_health_check.start(w->r.c, &e) < 0)
        fail_msg("%s", e.text);
}

/* Status, body and type in one line: "200 application/json {…}"; "refused" without a server. */
static const char *probe(const struct world *w, const char *method, const char *path)
{
    static char line[512];
    char request[200];
    snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi",
             method, path);
    struct raw_result r = raw_exchange(w->address, bytes_str(request), NULL, 3000);
    struct bytes in = buf_bytes(r.got);
    struct raw_answer a;
    snprintf(line, sizeof(line), "refused");
    if (raw_next_answer(&in, false, &a))
        snprintf(line, sizeof(line), "%d %s %.*s", a.status, a.type, (int)a.body.len,
                 (const char *)a.body.data);
    buf_unref(r.got);
    return line;
}

#define DOWN                                                                                       \
    "503 application/json {\"status\":\"Server not "                                               \
    "available\",\"upSince\":\"0001-01-01T00:00:00Z\",\"uptime\":\"\"}"

/* {"status":"Server available","upSince":"2026-08-21T10:00:00.123456789Z","uptime":"1m2.3s"}, of a
 * moment ago. */
static void assert_up(const char *line)
{
    static const char head[] =
        "200 application/json {\"status\":\"Server available\",\"upSince\":\"";
    struct tm tm = {0};
    int64_t uptime;
    char duration[32] = "", zone = 0;
    if (strncmp(line, head, sizeof(head) - 1) != 0)
        fail_msg("%s", line);
    const char *rest = strptime(line + sizeof(head) - 1, "%Y-%m-%dT%H:%M:%S", &tm);
    assert_non_null(rest);
    if (*rest == '.')
        rest += 1 + strspn(rest + 1, "0123456789");
    assert_int_equal(sscanf(rest, "%c\",\"uptime\":\"%31[^\"]\"}", &zone, duration), 2);
    assert_int_equal(zone, 'Z');
    assert_in_range(timegm(&tm), time(NULL) - 5, time(NULL));
    assert_int_equal(cfg_parse_duration(duration, &uptime), 0);
    assert_in_range(uptime, 0, 5 * NS_PER_S);
}

static void test_life(void **state)
{
    (void)state;
    struct world w;
    setenv("TZ", "UTC", 1);
    make(&w, "");
    assert_string_equal(probe(&w, "GET", "/"), "refused");
    start(&w);
    assert_string_equal(probe(&w, "GET", "/"), DOWN);
    extension_health_check.ready(w.r.c, true);
    assert_up(probe(&w, "GET", "/"));
    assert_up(probe(&w, "POST", "/any/path"));
    assert_up(probe(&w, "DELETE", "/?a=b"));
    extension_health_check.ready(w.r.c, false);
    assert_string_equal(probe(&w, "GET", "/"), DOWN);
    extension_health_check.stop(w.r.c, clock_now_ns() + NS_PER_S);
    assert_string_equal(probe(&w, "GET", "/"), "refused");
    rig_done(&w.r);
}

static void test_time_zone(void **state)
{
    (void)state;
    struct world w;
    setenv("TZ", "<+0530>-5:30", 1);
    tzset();
    make(&w, "");
    start(&w);
    extension_health_check.ready(w.r.c, true);
    assert_non_null(strstr(probe(&w, "GET", "/"), "+05:30\",\"uptime\""));
    rig_done(&w.r);
    setenv("TZ", "UTC", 1);
    tzset();
}

static void test_path_and_bodies(void **state)
{
    (void)state;
    struct world w;
    make(&w, "path: /healthz\nresponse_body: {healthy: fine, unhealthy: wait}");
    start(&w);
    assert_string_equal(probe(&w, "GET", "/healthz"), "503 text/plain; charset=utf-8 wait");
    extension_health_check.ready(w.r.c, true);
    assert_string_equal(probe(&w, "GET", "/healthz"), "200 text/plain; charset=utf-8 fine");
    assert_string_equal(probe(&w, "GET", "/"),
                        "404 text/plain; charset=utf-8 404 page not found\n");
    assert_string_equal(probe(&w, "GET", "/healthz/x"),
                        "404 text/plain; charset=utf-8 404 page not found\n");
    rig_done(&w.r);
    make(&w, "path: /health/");
    start(&w);
    assert_string_equal(probe(&w, "GET", "/health/live"), DOWN);
    rig_done(&w.r);
}

static void test_port_in_use(void **state)
{
    (void)state;
    struct world w, other;
    struct err e;
    make(&w, "");
    start(&w);
    char yaml[64];
    snprintf(yaml, sizeof(yaml), "endpoint: %s", w.address);
    memset(&other, 0, sizeof(other));
    rig_make(&other.r, &extension_health_check, "health_check", SIGNAL_TRACES, 0,
             yaml); /* of another process */
    assert_int_equal(extension_health_check.start(other.r.c, &e), -EADDRINUSE);
    assert_non_null(strstr(e.text, w.address));
    assert_non_null(strstr(e.text, "bind: address already in use"));
    rig_done(&other.r);
    rig_done(&w.r);
}

static void test_configuration(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *error;
    } rows[] = {
        {"", NULL},
        {"check_collector_pipeline: {enabled: true, interval: 5m, exporter_failure_threshold: 5}",
         NULL},
        {"tls:\nauth:\nmiddlewares: []\nhttp:", NULL},
        {"path: healthz", "path must start with /"},
        {"endpoint: ''", "http endpoint required"},
        {"endpoint: 13133x", "missing port in address"},
        {"http: {endpoint: localhost:1}", "v2 healthcheck configuration"},
        {"grpc: {endpoint: localhost:1}", "v2 healthcheck configuration"},
        {"tls: {cert_file: x, key_file: y}", NULL},
        {"tls: {cert_file: x}", "must include both certificate and key (CertFile"},
        {"pth: /", "pth"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct rig r = {0};
        struct err e = {.text = ""};
        void *bound = NULL;
        int rc = rig_bind(&r, &extension_health_check, rows[i].yaml, &bound, &e);
        if ((rc == 0) != !rows[i].error || (rows[i].error && !strstr(e.text, rows[i].error)))
            fail_msg("%s: %d %s", rows[i].yaml, rc, e.text);
        config_free(r.config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_time_zone),
        cmocka_unit_test(test_path_and_bodies),
        cmocka_unit_test(test_port_in_use),
        cmocka_unit_test(test_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
