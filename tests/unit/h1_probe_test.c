/* A libmicrohttpd that hands out the fields of a head in other places than those where they came:
 * sound requests are served, what can be seen to be unsound is refused, and one warning says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/log.h"
#include "agent/net/h1_probe.h"
#include "agent/net/server.h"
#include "tests/unit/raw_client.h"
#include "tests/unit/temp_dir.h"

/* ---- the other libmicrohttpd ---- */

static char copies[1 << 18]; /* they have to live as long as their request */
static atomic_size_t ncopies;

static const char *copy(const char *text, size_t len)
{
    size_t at = atomic_fetch_add(&ncopies, len + 2);
    assert_true(at + len + 2 < sizeof(copies));
    memcpy(copies + at, text, len);
    memcpy(copies + at + len, "\0#", 2);
    return copies + at;
}

struct visit {
    MHD_KeyValueIteratorN each;
    void *cls;
};

static enum MHD_Result hand_out(void *cls, enum MHD_ValueKind kind, const char *name, size_t n,
                                const char *value, size_t m)
{
    const struct visit *v = cls;
    return v->each(v->cls, kind, copy(name, n), n, copy(value, m), m);
}

int __real_MHD_get_connection_values_n(struct MHD_Connection *mc, enum MHD_ValueKind kind,
                                       MHD_KeyValueIteratorN each, void *cls);
int __wrap_MHD_get_connection_values_n(struct MHD_Connection *mc, enum MHD_ValueKind kind,
                                       MHD_KeyValueIteratorN each, void *cls)
{
    struct visit v = {each, cls};
    return __real_MHD_get_connection_values_n(mc, kind, hand_out, &v);
}

/* ---- a server ---- */

static size_t on_headers(void *ctx _unused_, struct http_exchange *x _unused_)
{
    return 1000;
}

static void on_request(void *ctx _unused_, struct http_exchange *x)
{
    http_reply(x, 200, NULL, 0, http_take_body(x), NULL, 0, false);
}

static void on_too_large(void *ctx _unused_, struct http_exchange *x)
{
    http_reply(x, 413, NULL, 0, NULL, NULL, 0, true);
}

static void on_gone(void *ctx _unused_, struct http_exchange *x _unused_) {}

#define FIRST "GET /first HTTP/1.1\r\nHost: x\r\n\r\n"
#define LINE "POST /x?a=b HTTP/1.1\r\n"
#define LAST "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nConnection: close\r\n\r\nMARK"

/* How many answers with 200 there are to FIRST, the request, and LAST. */
static const struct {
    const char *request;
    unsigned served;
} rows[] = {
    {LINE "Host: x\r\nContent-Length: 5\r\n\r\n12345", 3},
    {LINE "Host: x\r\nA: \t b \t\r\nB:\r\nContent-Length:5\r\n\r\n12345", 3},
    {LINE "Host: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n", 2},
    {LINE "Host: x\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n12345", 1},
    {LINE "Host: x\r\nContent-Length: +5\r\n\r\n12345", 1},
    {LINE "Host: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 1},
    {LINE "Host: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 1},
    {LINE "Host: x\r\nHost: y\r\nContent-Length: 5\r\n\r\n12345", 1},
    {LINE "Content-Length: 5\r\n\r\n12345", 1},
    {LINE "Host: x\r\nA : b\r\nContent-Length: 5\r\n\r\n12345", 1},
    {LINE "Host: x\r\nA: b\001c\r\nContent-Length: 5\r\n\r\n12345", 1},
    {"POST /x HTTP/1.2\r\nHost: x\r\nContent-Length: 5\r\n\r\n12345", 1},
};

static void test_served(void **state)
{
    (void)state;
    static const struct http_service service = {on_headers, on_request, on_too_large, on_gone, 0};
    const struct server_settings s = {.endpoint = "127.0.0.1:0"};
    struct listener *l;
    struct err e = {0};
    if (listener_open(&s, &l, &e) < 0 || listener_serve(l, &service, &e) < 0)
        fail_msg("%s", e.text);
    assert_false(h1_layout_known());
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_buf_ struct buf *out = buf_new(0);
        buf_printf(out, FIRST "%s" LAST, rows[i].request);
        struct raw_result r = raw_exchange(listener_address(l), buf_bytes(out), NULL, 30000);
        if (r.end != RAW_CLOSED || raw_count(r.got, "HTTP/1.1 200") != rows[i].served)
            fail_msg("row %zu: %s", i, buf_str(r.got));
        buf_unref(r.got);
    }
    listener_stop(l, clock_now_ns() + 2 * NS_PER_S);
    listener_free(l);
}

/* A head that is longer than allowed, as a later request. */
static void test_long_head(void **state)
{
    (void)state;
    static const struct http_service service = {on_headers, on_request, on_too_large, on_gone, 0};
    const struct server_settings s = {.endpoint = "127.0.0.1:0"};
    struct listener *l;
    struct err e = {0};
    _cleanup_buf_ struct buf *out = buf_new(0);
    if (listener_open(&s, &l, &e) < 0 || listener_serve(l, &service, &e) < 0)
        fail_msg("%s", e.text);
    buf_printf(out, FIRST LINE "Host: x\r\nA: %017000d\r\n\r\n" LAST, 0);
    struct raw_result r = raw_exchange(listener_address(l), buf_bytes(out), NULL, 30000);
    assert_int_equal(raw_count(r.got, "HTTP/1.1 200"), 1);
    assert_int_equal(raw_count(r.got, "HTTP/1.1 431"), 1);
    buf_unref(r.got);
    listener_stop(l, clock_now_ns() + 2 * NS_PER_S);
    listener_free(l);
}

/* The servers before have come and gone; the warning came once. */
static void test_warned_once(void **state)
{
    char text[4096] = "";
    FILE *f = fopen(*state, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    const char *at = n ? strstr(text, "libmicrohttpd") : NULL;
    assert_non_null(at);
    assert_null(strstr(strchr(at, '\n'), "libmicrohttpd"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_served),
        cmocka_unit_test(test_long_head),
        cmocka_unit_test(test_warned_once),
    };
    char dir[TEMP_DIR_BYTES], path[TEMP_DIR_BYTES + 8];
    struct err e = {0};
    temp_dir_make(dir);
    snprintf(path, sizeof(path), "%s/log", dir);
    const char *const paths[] = {path, NULL};
    if (log_configure(&(struct log_options){.level = LOG_INFO, .output_paths = paths}, &e) < 0)
        fail_msg("%s", e.text);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        ((struct CMUnitTest *)tests)[i].initial_state = path;
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    temp_dir_remove(dir);
    return r;
}
