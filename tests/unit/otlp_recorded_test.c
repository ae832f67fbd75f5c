/* The OTLP receiver over real sockets against what the reference collector answered and exported.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "otlp_world.h"

/* Of proto/json.h, whose names clash with jansson's. */
int json_write_batch(const struct batch *b, unsigned flags, struct buf *out);

static const char *string_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static struct buf *base64_of(const json_t *v)
{
    struct buf *b = buf_new(0);
    assert_int_equal(grpc_bin_decode(bytes_str(json_string_value(v)), b), 0);
    return b;
}

/* Cases that differ on purpose: both protocols on both ports, U+FFFD for bad UTF-8, stricter
 * framing, identity taken. */
static bool differs_on_purpose(const char *name)
{
    static const char *const names[] = {"grpc-http11-on-grpc-port",
                                        "http-h2c-prior-knowledge-on-http-port",
                                        "http-raw-h2c-preface-on-http",
                                        "grpc-ct-json",
                                        "grpc-ct-protobuf",
                                        "http-json-bad-utf8",
                                        "http-protobuf-bad-utf8",
                                        "http-raw-both-cl-te",
                                        "http-identity"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static void same_http_answer(const char *name, const struct raw_answer *got, const json_t *want)
{
    _cleanup_buf_ struct buf *body = base64_of(json_object_get(want, "body"));
    int status = (int)json_integer_value(json_object_get(want, "status"));
    const char *type = string_of(want, "type");
    bool ok = got->status == status && strcmp(got->type, type) == 0 &&
              strcmp(got->location, string_of(want, "location")) == 0;
    if (ok && status < 300)
        ok = bytes_eq(got->body, buf_bytes(body));
    else if (ok)
        ok = rpc_code_of(type, got->body) == rpc_code_of(type, buf_bytes(body));
    if (!ok)
        fail_msg("%s: %d %s %s %.*s", name, got->status, got->type, got->location,
                 (int)got->body.len, (const char *)got->body.data);
}

static void replay_http(struct world *w, const char *name, const json_t *c)
{
    _cleanup_buf_ struct buf *body = base64_of(json_object_get(c, "body")), *more = buf_new(0),
                             *all = NULL;
    json_t *h;
    size_t i;
    json_array_foreach(json_object_get(c, "headers"), i, h)
        buf_printf(more, "%s: %s\r\n", json_string_value(json_array_get(h, 0)),
                   json_string_value(json_array_get(h, 1)));
    struct raw_answer a = ask(w->http,
                              (struct request){string_of(c, "method"), string_of(c, "path"), NULL,
                                               buf_str(more), buf_bytes(body)},
                              &all);
    if (!differs_on_purpose(name))
        same_http_answer(name, &a, json_object_get(c, "want"));
}

static void replay_raw(struct world *w, const char *name, const json_t *c)
{
    _cleanup_buf_ struct buf *out = base64_of(json_object_get(c, "bytes"));
    const json_t *want = json_object_get(c, "want");
    bool closed = json_is_true(json_object_get(want, "closed"));
    const char *raw = string_of(want, "raw");
    if (differs_on_purpose(name))
        return;
    struct raw_result r =
        raw_exchange(strcmp(string_of(c, "port"), "grpc") == 0 ? w->grpc : w->http, buf_bytes(out),
                     NULL, closed ? 3000 : 300);
    struct bytes got_in = buf_bytes(r.got), want_in = bytes_str(raw);
    struct raw_answer got, wanted;
    bool same = (r.end == RAW_CLOSED) == closed;
    while (raw_next_answer(&want_in, false, &wanted)) {
        same = same && raw_next_answer(&got_in, false, &got) && got.version == wanted.version &&
               got.status == wanted.status && strcmp(got.type, wanted.type) == 0;
        if (same && wanted.status < 400)
            same = bytes_eq(got.body, wanted.body);
    }
    if (!same || got_in.len)
        fail_msg("%s: end %d: %s", name, r.end, buf_str(r.got));
    buf_unref(r.got);
}

static void same_grpc_answer(const char *name, const struct h2_peer *p, const struct h2_answer *a,
                             const json_t *want)
{
    const json_t *reset = json_object_get(want, "reset"),
                 *grpc = json_object_get(want, "grpc_status");
    char hex[64] = "";
    for (size_t i = 0; i < a->data->len && i < 30; i++)
        snprintf(hex + 2 * i, 3, "%02x", a->data->data[i]);
    bool ok = a->status == (int)json_integer_value(json_object_get(want, "status")) &&
              strcmp(a->type, string_of(want, "type")) == 0 &&
              strcmp(a->grpc_status, json_is_string(grpc) ? json_string_value(grpc) : "") == 0 &&
              strcmp(a->encoding, string_of(want, "encoding")) == 0 &&
              a->reset == (json_is_integer(reset) ? (int)json_integer_value(reset) : -1) &&
              !p->closed;
    if (ok && a->encoding[0] == 0) /* compressed bytes are another library's */
        ok = strcmp(hex, string_of(want, "data")) == 0;
    if (!ok)
        fail_msg("%s: status %d, %s, grpc-status %s (%s), reset %d, %s", name, a->status, a->type,
                 a->grpc_status, a->grpc_message, a->reset, hex);
}

static void replay_h2(struct world *w, const char *name, const json_t *c)
{
    _cleanup_buf_ struct buf *body = buf_new(0);
    const char *fields[64] = {NULL};
    json_t *v;
    size_t i;
    json_array_foreach(json_object_get(c, "chunks"), i, v)
    {
        _cleanup_buf_ struct buf *chunk = base64_of(v);
        buf_append(body, chunk->data, chunk->len);
    }
    json_array_foreach(json_object_get(c, "headers"), i, v)
    {
        fields[2 * i] = json_string_value(json_array_get(v, 0));
        fields[2 * i + 1] = json_string_value(json_array_get(v, 1));
    }
    struct h2_peer *p = h2_open(strcmp(string_of(c, "port"), "http") == 0 ? w->http : w->grpc);
    struct h2_answer a = {.out = buf_bytes(body), .end = json_is_true(json_object_get(c, "end"))};
    h2_begin(p, fields, &a);
    h2_run(p, &a.done, 4000);
    if (!differs_on_purpose(name))
        same_grpc_answer(name, p, &a, json_object_get(c, "want"));
    assert_true(a.done); /* also the ones that differ are answered */
    h2_answer_done(&a);
    h2_close(p);
}

/* What the pipelines got, as the lines of a file exporter. */
static void same_export(struct world *w, const char *name, const json_t *want)
{
    _cleanup_buf_ struct buf *lines = buf_new(0), *wanted = buf_new(0);
    const char *signal;
    json_t *v;
    for (unsigned i = 0; i < sink(w)->ntaken; i++) {
        assert_int_equal(json_write_batch(sink(w)->taken[i], 0, lines), 0);
        buf_putc(lines, '\n');
    }
    json_object_foreach((json_t *)want, signal, v) buf_append_str(wanted, json_string_value(v));
    if (!differs_on_purpose(name) && !bytes_eq(buf_bytes(lines), buf_bytes(wanted)))
        fail_msg("%s: exported\n%s\nwant\n%s", name, buf_str(lines), buf_str(wanted));
    forget_taken(w);
}

static void test_recorded_cases(void **state)
{
    (void)state;
    struct world w;
    json_error_t error;
    json_t *cases =
               json_load_file(TEST_DATA "/golden/otlp-errors/cases.json", JSON_ALLOW_NUL, &error),
           *c;
    size_t i;
    if (!cases)
        fail_msg("%s", error.text);
    open_world(&w, BOTH, ALL);
    json_array_foreach(cases, i, c)
    {
        const char *name = string_of(c, "name"), *via = string_of(c, "via");
        (strcmp(via, "http") == 0  ? replay_http
         : strcmp(via, "raw") == 0 ? replay_raw
                                   : replay_h2)(&w, name, c);
        same_export(&w, name, json_object_get(c, "exported"));
    }
    assert_true(i > 80);
    close_world(&w);
    json_decref(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
