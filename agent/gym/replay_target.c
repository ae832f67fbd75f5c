/* Where a replay goes, and the pipeline that leads there. */
#include <ctype.h>
#include <errno.h>

#include "agent/base/arena.h"
#include "agent/base/secrets.h"
#include "agent/config/load.h"
#include "agent/gym/embed.h"
#include "agent/gym/pipeline.h"
#include "agent/gym/replay_parts.h"

/* ---- the target ---- */

static const char *variable(const char *name)
{
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

/* "http://host:4317" and the like. */
static bool has_port(const char *url, const char *port)
{
    const char *host = strstr(url, "://") + 3;
    const size_t n = strcspn(host, "/"), len = strlen(port);
    return n > len && host[n - len - 1] == ':' && strncmp(host + n - len, port, len) == 0;
}

static int find_protocol(const struct replay_command *c, struct replay_target *t,
                         struct err *reterr)
{
    const char *p = c->protocol;
    if (!p && !c->to)
        p = variable("OTEL_EXPORTER_OTLP_PROTOCOL");
    if (!p)
        p = has_port(t->place, "4317") ? "grpc" : "http/protobuf";
    t->json = strcmp(p, "http/json") == 0;
    const bool grpc = strcmp(p, "grpc") == 0;
    if (!grpc && !t->json && strcmp(p, "http/protobuf") != 0)
        return err_set(reterr, -EINVAL,
                       "unknown protocol \"%s\": expected grpc, http/protobuf or http/json", p);
    t->kind = grpc ? TARGET_GRPC : TARGET_HTTP;
    t->exporter = grpc ? "otlp_grpc" : "otlp_http";
    return 0;
}

/* host:port without a scheme looks like a file name. */
static bool looks_like_address(const char *to)
{
    const char *colon = strrchr(to, ':');
    return colon && isdigit((unsigned char)colon[1]) && !strchr(to, '/');
}

/* The target without the password in its URL. */
static int show(const char *to, char *ret, size_t size)
{
    _cleanup_buf_ struct buf *clean = buf_new(0);
    cfg_note_url(to);
    if (!clean || secrets_redact(bytes_str(to), clean) < 0 || !buf_str(clean))
        return -ENOMEM;
    snprintf(ret, size, "%s", buf_str(clean));
    return 0;
}

int replay_target_find(const struct replay_command *c, struct replay_target *t, struct err *reterr)
{
    const char *to = c->to ? c->to : variable("OTEL_EXPORTER_OTLP_ENDPOINT");
    if (!to)
        return err_set(reterr, -EINVAL,
                       "say where to: --to http://HOST:4318 (a backend), --to FILE, or --to - "
                       "(stdout)");
    *t = (struct replay_target){.place = to};
    if (show(to, t->shown, sizeof(t->shown)) < 0)
        return err_set(reterr, -ENOMEM, "out of memory");
    if (strncmp(to, "http://", 7) == 0 || strncmp(to, "https://", 8) == 0)
        return find_protocol(c, t, reterr);
    if (strstr(to, "://"))
        return err_set(
            reterr, -EINVAL,
            "--to %s: expected http://HOST:PORT or https://HOST:PORT (with --protocol grpc, "
            "too), a file, or -",
            to);
    const bool named = strncmp(to, "file:", 5) == 0;
    if (!named && looks_like_address(to))
        return err_set(reterr, -EINVAL,
                       "--to %s: write http://%s for a backend, or file:%s for a file of that name",
                       to, to, to);
    if (c->protocol || c->compression || c->nheaders)
        return err_set(reterr, -EINVAL,
                       "--protocol, --compression and --header are for a backend, and --to %s is "
                       "none",
                       to);
    const bool is_stdout = strcmp(to, "-") == 0;
    t->kind = is_stdout ? TARGET_STDOUT : TARGET_FILE;
    t->exporter = is_stdout ? "console" : "file";
    if (named)
        t->place = to + 5;
    return 0;
}

/* ---- the pipeline ---- */

/* "name=value" as two strings. */
static int put_pair(const char *pair, const char *between, struct buf *out)
{
    const char *equals = strchr(pair, '=');
    _cleanup_free_ char *name = strndup(pair, (size_t)(equals - pair));
    int r = name ? embed_put_string(out, name) : -ENOMEM;
    if (r == 0)
        r = buf_append_str(out, between);
    return r == 0 ? embed_put_string(out, equals + 1) : r;
}

static int check_pairs(const char *flag, const char *const *pairs, size_t n, struct err *reterr)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(pairs[i], '=') || pairs[i][0] == '=')
            return err_set(reterr, -EINVAL, "--%s %s: expected NAME=VALUE", flag, pairs[i]);
    return 0;
}

static int put_attributes(const struct replay_command *c, struct buf *out)
{
    int r = buf_append_str(out, "processors: {resource: {attributes: [");
    for (size_t i = 0; r == 0 && i < c->nattributes; i++) {
        r = buf_append_str(out, i ? ", {action: upsert, key: " : "{action: upsert, key: ");
        if (r == 0)
            r = put_pair(c->attributes[i], ", value: ", out);
        if (r == 0)
            r = buf_putc(out, '}');
    }
    return r == 0 ? buf_append_str(out, "]}}\n") : r;
}

/* OTEL_EXPORTER_OTLP_HEADERS goes with the endpoint of that family of variables. */
static int put_variable_headers(const struct replay_command *c, struct buf *out, struct err *reterr)
{
    const char *given = c->to ? NULL : variable("OTEL_EXPORTER_OTLP_HEADERS");
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    struct gym_header *headers;
    size_t n;
    if (!given)
        return 0;
    int r = a ? gym_headers_parse(a, given, &headers, &n, reterr) : -ENOMEM;
    if (r < 0) {
        err_prefix(reterr, "OTEL_EXPORTER_OTLP_HEADERS: ");
        return r;
    }
    for (size_t i = 0; r == 0 && i < n; i++) {
        r = embed_put_string(out, headers[i].name);
        if (r == 0)
            r = buf_append_str(out, ": ");
        if (r == 0)
            r = embed_put_string(out, headers[i].value);
        if (r == 0)
            r = buf_append_str(out, ", ");
    }
    return r;
}

static int put_headers(const struct replay_command *c, struct buf *out, struct err *reterr)
{
    int r = buf_append_str(out, ", headers: {");
    if (r == 0)
        r = put_variable_headers(c, out, reterr);
    for (size_t i = 0; r == 0 && i < c->nheaders; i++) {
        r = put_pair(c->headers[i], ": ", out);
        if (r == 0)
            r = buf_append_str(out, ", ");
    }
    return r == 0 ? buf_putc(out, '}') : r;
}

/* The answer of the backend is what counts, so it is waited for. */
static int put_backend(const struct replay_command *c, const struct replay_target *t,
                       struct buf *out, struct err *reterr)
{
    int r = buf_append_str(out, "endpoint: ");
    if (r == 0)
        r = embed_put_string(out, t->place);
    if (r == 0 && t->json)
        r = buf_append_str(out, ", encoding: json");
    if (r == 0 && c->compression)
        r = buf_append_str(out, ", compression: ");
    if (r == 0 && c->compression)
        r = embed_put_string(out, c->compression);
    if (r == 0)
        r = put_headers(c, out, reterr);
    return r == 0
               ? buf_append_str(out, ", timeout: 30s, sending_queue: {num_consumers: 4, "
                                     "block_on_overflow: true, wait_for_result: true}, "
                                     "retry_on_failure: {initial_interval: 1s, max_interval: 10s, "
                                     "max_elapsed_time: 2m}")
               : r;
}

static int put_exporter(const struct replay_command *c, const struct replay_target *t,
                        struct buf *out, struct err *reterr)
{
    int r = buf_printf(out, "exporters: {%s: {", t->exporter);
    if (r == 0 && t->kind == TARGET_FILE)
        r = buf_append_str(out, "append: true, path: ");
    if (r == 0 && t->kind == TARGET_FILE)
        r = embed_put_string(out, t->place);
    if (r == 0 && (t->kind == TARGET_HTTP || t->kind == TARGET_GRPC))
        r = put_backend(c, t, out, reterr);
    return r == 0 ? buf_append_str(out, "}}\n") : r;
}

static int put_service(const struct replay_command *c, const struct replay_target *t,
                       struct buf *out)
{
    int r = buf_append_str(out, "receivers: {replay: }\n"
                                "service:\n"
                                "  telemetry: {logs: {level: warn}, metrics: {level: none}}\n"
                                "  pipelines:\n");
    for (int s = 0; r == 0 && s < SIGNAL_COUNT; s++)
        r = buf_printf(out, "    %s: {receivers: [replay], processors: [%s], exporters: [%s]}\n",
                       signal_name((enum signal)s), c->nattributes ? "resource" : "", t->exporter);
    return r;
}

int replay_config(const struct replay_command *c, const struct replay_target *t, struct buf *out,
                  struct err *reterr)
{
    int r = check_pairs("header", c->headers, c->nheaders, reterr);
    if (r == 0)
        r = check_pairs("set-resource", c->attributes, c->nattributes, reterr);
    if (r < 0)
        return r;
    if (c->nattributes)
        r = put_attributes(c, out);
    if (r == 0)
        r = put_exporter(c, t, out, reterr);
    if (r == 0)
        r = put_service(c, t, out);
    return r == -ENOMEM ? err_set(reterr, r, "out of memory") : r;
}

/* ---- the source ---- */

static struct component *made;

static int source_create(const struct component_args *args, struct component **ret,
                         struct err *reterr)
{
    struct component *c = calloc(1, sizeof(*c));
    if (!c)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(c, &replay_source, args);
    *ret = made = c;
    return 0;
}

static void source_destroy(struct component *c)
{
    made = made == c ? NULL : made;
    free(c);
}

struct component *replay_source_made(void)
{
    return made;
}

const struct component_type replay_source = {
    .kind = KIND_RECEIVER,
    .name = "replay",
    .emits = SIGNALS_ALL,
    .stability = {"stable", "stable", "stable"},
    .help = "What motel replay reads.",
    .create = source_create,
    .destroy = source_destroy,
};
