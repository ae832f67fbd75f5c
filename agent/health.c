/* motel health: one GET, or one after the other until it is answered well. */
#include "agent/health.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "agent/base/clock.h"
#include "agent/base/number.h"
#include "agent/base/plain_text.h"
#include "agent/config/tree.h"
#include "agent/net/http_client.h"

#define MAX_ANSWER_BYTES 4096
#define FIRST_PAUSE_NS (50 * NS_PER_MS)
#define LONGEST_PAUSE_NS (500 * NS_PER_MS)
#define LAST_NS (100 * NS_PER_MS) /* for the last request */

struct answer {
    bool healthy;
    char text[2048]; /* the line that is printed */
};

/* The beginning of a text's first line. */
static void put_line(const char *text, char *ret, size_t size)
{
    snprintf(ret, size, "%.*s", (int)strcspn(text, "\r\n"), text);
}

/* One line, of which what a terminal could take for a command is "?". */
static void print_answer(const struct answer *a, const char *more, const char *waited)
{
    _cleanup_buf_ struct buf *line = buf_new(0);
    if (line && plain_text(line, bytes_str(a->text), '?', "") == 0)
        printf("%.*s%s%s\n", (int)line->len, (const char *)line->data, more, waited);
}

/* What the answer says of itself: "Server available, up 1m2.3s" of the extension's JSON, else the
 * first line. */
static void describe(const struct buf *body, char *ret, size_t size)
{
    _cleanup_(arena_freep) struct arena *arena = arena_new(0);
    struct cfg_errors errs = {0};
    const char *text = (const char *)body->data;
    const struct cfg_value *v = arena && body->len && *text == '{'
                                    ? cfg_yaml_parse(arena, "answer", text, body->len, &errs, NULL)
                                    : NULL;
    const struct cfg_value *status = cfg_get(v, "status"), *uptime = cfg_get(v, "uptime");
    char line[200] = "";
    if (status && status->type == CFG_STRING)
        snprintf(line, sizeof(line), "%s%s%s", status->text,
                 uptime && uptime->text && *uptime->text ? ", up " : "",
                 uptime && uptime->text ? uptime->text : "");
    else
        snprintf(line, sizeof(line), "%.*s", (int)(body->len < 160 ? body->len : 160), text);
    put_line(line, ret, size);
    cfg_errors_done(&errs);
}

static const char *hint(const struct health_question *q, int status)
{
    if ((status == 401 || status == 403) && q->nheaders == 0)
        return "; it asks for credentials: --header Authorization=...";
    return status >= 300 && status < 400 ? "; redirects are not followed" : "";
}

static const char *shown_target(const struct health_target *t, char *text, size_t size)
{
    if (t->socket)
        snprintf(text, size, "unix:%s", t->socket);
    else
        http_url_redact(t->url, text, size);
    return text;
}

static void judge(const struct health_question *q, const struct http_client_response *r,
                  struct answer *ret)
{
    char target[400], words[160] = "";
    if (r->body->len)
        describe(r->body, words, sizeof(words));
    ret->healthy = r->status >= 200 && r->status < 300;
    snprintf(ret->text, sizeof(ret->text), "%s: %s answers %d%s%s%s",
             ret->healthy ? "healthy" : "not healthy",
             shown_target(q->target, target, sizeof(target)), r->status, *words ? ": " : "", words,
             ret->healthy ? "" : hint(q, r->status));
}

static void no_answer(const struct health_question *q, int64_t timeout_ns, int code,
                      const struct err *e, struct answer *ret)
{
    char target[400], limit[32];
    duration_text(timeout_ns, limit);
    ret->healthy = false;
    snprintf(ret->text, sizeof(ret->text), "no answer: %s: %s%s",
             shown_target(q->target, target, sizeof(target)),
             code == -ETIMEDOUT ? "nothing came within " : e->text,
             code == -ETIMEDOUT ? limit : "");
}

static void ask_once(struct http_client *client, const struct health_question *q,
                     int64_t timeout_ns, const char *const *headers, struct answer *ret)
{
    struct err e = {0};
    struct http_client_response response = {0};
    const struct http_client_request request = {.method = "GET",
                                                .url = q->target->url,
                                                .headers = headers,
                                                .deadline_ns =
                                                    clock_now_ns() + (uint64_t)timeout_ns,
                                                .max_response_bytes = MAX_ANSWER_BYTES,
                                                .repeatable = true};
    int r = http_client_send(client, &request, &response, &e);
    if (r < 0)
        no_answer(q, timeout_ns, r, &e, ret);
    else
        judge(q, &response, ret);
    buf_unref(response.body);
}

static void pause_until(uint64_t at_ns)
{
    const struct timespec t = {(time_t)(at_ns / NS_PER_S), (long)(at_ns % NS_PER_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Everything that is not a healthy answer may become one: a program that starts refuses connections
 * first, and its name may not be known yet. The last request goes out when the time is over, and
 * has a moment. */
static void ask_until(struct http_client *client, const struct health_question *q,
                      const char *const *headers, struct answer *ret)
{
    uint64_t now = clock_now_ns(), pause = FIRST_PAUSE_NS;
    const uint64_t end = now + (uint64_t)q->wait_ns;
    for (;;) {
        const uint64_t left = end > now + LAST_NS ? end - now : LAST_NS;
        const bool capped = q->wait_ns && left < (uint64_t)q->timeout_ns;
        ask_once(client, q, capped ? (int64_t)left : q->timeout_ns, headers, ret);
        now = clock_now_ns();
        if (ret->healthy || q->wait_ns == 0 || now >= end)
            return;
        pause_until(sooner(now + pause, end));
        now = clock_now_ns();
        pause = sooner(2 * pause, LONGEST_PAUSE_NS);
    }
}

/* "name=value" as header lines, NULL ended. */
static const char **header_lines(struct arena *a, const struct health_question *q)
{
    const char **lines = arena_calloc(a, (q->nheaders + 1) * sizeof(*lines));
    for (size_t i = 0; lines && i < q->nheaders; i++) {
        const size_t n = strcspn(q->headers[i], "=");
        lines[i] = arena_printf(a, "%.*s: %s", (int)n, q->headers[i],
                                q->headers[i][n] ? q->headers[i] + n + 1 : "");
        if (!lines[i])
            return NULL;
    }
    return lines;
}

int health_ask(const struct health_question *q)
{
    const struct tls_client_settings tls = {.insecure_skip_verify = q->target->insecure};
    const struct http_client_settings settings = {.tls = &tls,
                                                  .unix_socket = q->target->socket,
                                                  .user_agent = "motel/" MOTEL_VERSION,
                                                  .no_keepalive = true,
                                                  .no_env_proxy = true,
                                                  .no_redirects = true};
    struct err e = {0};
    _cleanup_(arena_freep) struct arena *arena = arena_new(0);
    const char **headers = arena ? header_lines(arena, q) : NULL;
    _cleanup_(http_client_freep) struct http_client *client = http_client_new(&settings, &e);
    struct answer answer;
    if (!headers || !client) {
        fprintf(stderr, "Error: %s\n", client ? "out of memory" : e.text);
        return 1;
    }
    ask_until(client, q, headers, &answer);
    char waited[32];
    duration_text(q->wait_ns, waited);
    const bool late = !answer.healthy && q->wait_ns;
    print_answer(&answer, late ? "; asked for " : "", late ? waited : "");
    return answer.healthy ? 0 : 1;
}
