/*
 * The bearertokenauth extension: servers let in who sends one of its tokens, clients send the first
 * one. Tokens stand in the config or in a file, which is read again when it changes.
 */
#include <errno.h>
#include <pthread.h>

#include "agent/base/secrets.h"
#include "agent/pipeline/auth.h"
#include "agent/pipeline/probe.h"
#include "agent/pipeline/secret_file.h"

extern const struct component_type extension_bearertokenauth;

struct retry_config {
    bool enabled;
    int64_t max_retries, interval_ns;
};
struct bearer_config {
    const char *header, *scheme, *token, *filename;
    struct cfg_list tokens;
    struct retry_config retry;
};

/* The header values that are good now. Replaced as a whole. */
struct values {
    unsigned n;
    char *first;
    uint8_t (*digests)[AUTH_DIGEST_BYTES];
};

struct bearer {
    struct component c; /* first */
    const struct bearer_config *config;
    struct server_auth server;
    struct client_auth client;
    char *header; /* in lower case */
    char *missing;
    struct auth_key key;
    pthread_mutex_t lock; /* what follows */
    struct secret_file file;
    struct values values;
};

static const char mismatch[] = "provided authorization does not match expected scheme or token";

/* ---- the tokens ---- */

static void values_done(struct values *v)
{
    if (v->first)
        explicit_bzero(v->first, strlen(v->first));
    free(v->first);
    free(v->digests);
    *v = (struct values){0};
}

static int values_add(const struct bearer *b, struct values *v, const char *token)
{
    const char *scheme = b->config->scheme;
    char *value;
    void *digests = realloc(v->digests, (v->n + 1) * sizeof(*v->digests));
    if (!digests)
        return -ENOMEM;
    v->digests = digests;
    if (asprintf(&value, "%s%s%s", scheme, *scheme ? " " : "", token) < 0)
        return -ENOMEM;
    auth_digest(&b->key, bytes_str(value), bytes_of("", 0), v->digests[v->n]);
    secrets_add(token);
    if (v->n++ == 0) {
        v->first = value;
        return 0;
    }
    explicit_bzero(value, strlen(value));
    free(value);
    return 0;
}

/* The first word of every line; what follows it is a comment. */
static int values_parse(const struct bearer *b, char *text, struct values *ret)
{
    char *line_end, *word_end;
    int r = 0;
    for (char *line = strtok_r(text, "\n", &line_end); line && r == 0;
         line = strtok_r(NULL, "\n", &line_end)) {
        char *token = strtok_r(line, " \t\r\v\f", &word_end);
        if (token)
            r = values_add(b, ret, token);
    }
    return r;
}

static bool printable(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    return true;
}

/* Under the lock. */
static void take_file(struct bearer *b, struct buf *text)
{
    struct values v = {0};
    const char *s = buf_str(text);
    int r = s ? values_parse(b, (char *)s, &v) : -ENOMEM;
    if (r == 0 && v.n && printable(v.first)) {
        values_done(&b->values);
        b->values = v;
        log_info(&b->c.logger, "refresh token", LOG_STR("filename", b->config->filename),
                 LOG_INT("tokens", v.n));
        return;
    }
    values_done(&v);
    log_error(&b->c.logger, "failed to read credentials file, keeping last value",
              LOG_STR("file", b->config->filename),
              LOG_STR("error", r < 0 ? "out of memory" : "a token holds control characters"));
}

/* Under the lock: looks at the file. What was read before stays good while it cannot be read. */
static void refresh(struct bearer *b)
{
    struct err e = {0};
    _cleanup_buf_ struct buf *text = NULL;
    if (!b->file.path)
        return;
    int r = secret_file_poll(&b->file, &text, &e);
    if (r == 1)
        take_file(b, text);
    else if (r < 0 && r != -EALREADY)
        log_error(&b->c.logger,
                  b->values.n ? "failed to reload credentials file, keeping last value"
                              : "there is no token until the credentials file can be read",
                  LOG_STR("file", b->config->filename), LOG_STR("error", e.text));
}

/* ---- for servers ---- */

static enum admission admit(const struct server_auth *self, struct http_exchange *x,
                            const char **ret_reason, struct auth_check **ret_check _unused_)
{
    struct bearer *b = container_of(self, struct bearer, server);
    uint8_t digest[AUTH_DIGEST_BYTES];
    const struct bytes given = auth_header(x, b->header);
    unsigned good = 0;
    *ret_reason = given.data ? mismatch : b->missing;
    if (!given.data)
        return ADMIT_REFUSE;
    auth_digest(&b->key, given, bytes_of("", 0), digest);
    pthread_mutex_lock(&b->lock);
    refresh(b);
    for (unsigned i = 0; i < b->values.n; i++) /* all of them, so that time tells nothing */
        good |= auth_digest_equal(digest, b->values.digests[i]);
    pthread_mutex_unlock(&b->lock);
    return good ? ADMIT_PASS : ADMIT_REFUSE;
}

/* ---- for clients ---- */

static int headers(const struct client_auth *self,
                   int (*each)(void *ctx, const char *name, const char *value), void *ctx,
                   struct err *reterr)
{
    struct bearer *b = container_of(self, struct bearer, client);
    pthread_mutex_lock(&b->lock);
    refresh(b);
    int r = b->values.n
                ? each(ctx, b->config->header, b->values.first)
                : err_set(reterr, -EAGAIN, "no bearer token: the file \"%s\" could not be read",
                          b->config->filename);
    pthread_mutex_unlock(&b->lock);
    return r;
}

/* ---- life ---- */

static void bearer_destroy(struct component *c)
{
    struct bearer *b = (struct bearer *)c;
    if (!b)
        return;
    values_done(&b->values);
    free(b->header);
    free(b->missing);
    explicit_bzero(&b->key, sizeof(b->key));
    pthread_mutex_destroy(&b->lock);
    free(b);
}

static int take_config(struct bearer *b)
{
    const struct bearer_config *config = b->config;
    const char *const *tokens = config->tokens.items;
    int r = 0;
    if (config->tokens.n) /* as in the reference: they come before the file */
        for (size_t i = 0; r == 0 && i < config->tokens.n; i++)
            r = values_add(b, &b->values, tokens[i]);
    else if (config->filename[0])
        b->file.path = config->filename;
    else
        r = values_add(b, &b->values, config->token);
    return r;
}

static int set_up(struct bearer *b)
{
    int r = auth_key_make(&b->key);
    b->header = strdup(b->config->header);
    if (!b->header ||
        asprintf(&b->missing, "missing or empty authorization header: %s", b->config->header) < 0) {
        b->missing = NULL;
        return -ENOMEM;
    }
    for (char *p = b->header; *p; p++)
        *p = *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p;
    return r == 0 ? take_config(b) : r;
}

static int bearer_create(const struct component_args *args, struct component **ret,
                         struct err *reterr)
{
    struct bearer *b = calloc(1, sizeof(*b));
    if (!b)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&b->c, &extension_bearertokenauth, args);
    b->config = args->config;
    b->client.headers = headers;
    b->server = (struct server_auth){.admit = admit, .challenge = "Bearer"};
    pthread_mutex_init(&b->lock, NULL);
    int r = set_up(b);
    if (r < 0) {
        bearer_destroy(&b->c);
        return err_set(reterr, r, "%s", strerror(-r));
    }
    *ret = &b->c;
    return 0;
}

/* A file that is not there yet may come later; it is looked for at every use. */
static int bearer_start(struct component *c, struct err *reterr _unused_)
{
    struct bearer *b = (struct bearer *)c;
    if (b->config->filename[0] && (b->config->token[0] || b->config->tokens.n))
        log_warn(&c->logger, b->config->tokens.n
                                 ? "tokens are given: the file is not read"
                                 : "a filename is specified. Configured token(s) is ignored!");
    pthread_mutex_lock(&b->lock);
    refresh(b);
    pthread_mutex_unlock(&b->lock);
    return 0;
}

static const void *capability(struct component *c, enum capability kind)
{
    struct bearer *b = (struct bearer *)c;
    return kind == CAP_SERVER_AUTH   ? &b->server
           : kind == CAP_CLIENT_AUTH ? (void *)&b->client
                                     : NULL;
}

static void probe(struct component *c, struct probe *p)
{
    struct bearer *b = (struct bearer *)c;
    if (p->step != PROBE_OUTSIDE || !b->file.path || !probe_input_file(p, b->file.path, true))
        return;
    pthread_mutex_lock(&b->lock);
    refresh(b);
    const unsigned n = b->values.n;
    pthread_mutex_unlock(&b->lock);
    if (n == 0)
        probe_fail(p, "token", b->file.path, "write the token into it, one on a line",
                   "there is no usable token in the file");
    else
        probe_ok(p, "token", b->file.path, n == 1 ? "1 token" : "%u tokens", n);
}

/* ---- configuration ---- */

static int check_token(const char *key, const char *token, struct err *reterr)
{
    if (!token[0])
        return err_at(reterr, key, "expected a token, got \"\"");
    return printable(token) ? 0
                            : err_at(reterr, key,
                                     "a token holds a line break or another control "
                                     "character");
}

static int check_header(const struct bearer_config *b, struct err *reterr)
{
    static const char token_chars[] = "!#$%&'*+-.^_`|~0123456789"
                                      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    if (!b->header[0] || b->header[strspn(b->header, token_chars)])
        return err_at(reterr, "header", "\"%s\" is not a header name", b->header);
    return printable(b->scheme) ? 0 : err_at(reterr, "scheme", "holds a control character");
}

static int check_retry(const struct bearer_config *b, struct err *reterr)
{
    if (!b->retry.enabled)
        return 0;
    if (!b->filename[0])
        return err_set(reterr, -EINVAL, "requires filename to be set");
    if (b->retry.max_retries < 0)
        return err_set(reterr, -EINVAL,
                       "retry_on_failure.max_retries must be greater or equal to 0 when "
                       "retry_on_failure.enabled is true");
    if (b->retry.interval_ns <= 0)
        return err_set(reterr, -EINVAL,
                       "retry_on_failure.interval must be greater than 0 when "
                       "retry_on_failure.enabled is true");
    return 0;
}

static int check(const void *config, struct err *reterr)
{
    const struct bearer_config *b = config;
    const char *const *tokens = b->tokens.items;
    if (!b->token[0] && b->tokens.n == 0 && !b->filename[0])
        return err_set(reterr, -EINVAL, "no bearer token provided");
    if (b->token[0] && b->tokens.n)
        return err_set(reterr, -EINVAL, "either tokens or token should be provided, not both");
    int r = b->token[0] ? check_token("token", b->token, reterr) : 0;
    for (size_t i = 0; r == 0 && i < b->tokens.n; i++)
        r = check_token("tokens", tokens[i], reterr);
    if (r == 0)
        r = check_header(b, reterr);
    return r == 0 ? check_retry(b, reterr) : r;
}

/* clang-format off */
static const struct cfg_field retry_fields[] = {
    {.key = "enabled", .kind = BIND_BOOL, CFG_AT(struct retry_config, enabled),
     .help = "Accepted: the file is looked for at every use in any case."},
    {.key = "max_retries", .kind = BIND_INT, CFG_AT(struct retry_config, max_retries), .use = CFG_NO_EFFECT, .help = "Accepted, has no effect."},
    {.key = "interval", .kind = BIND_DURATION, CFG_AT(struct retry_config, interval_ns), .use = CFG_NO_EFFECT, .help = "Accepted, has no effect."},
    {0}};
static const struct cfg_field fields[] = {
    {.key = "header", .kind = BIND_STRING, CFG_AT(struct bearer_config, header), .def = "Authorization",
     .help = "The header (gRPC: metadata) with the token."},
    {.key = "scheme", .kind = BIND_STRING, CFG_AT(struct bearer_config, scheme), .def = "Bearer",
     .help = "The word before the token; \"\" is none. It is compared as it is written."},
    {.key = "token", .kind = BIND_OPAQUE, CFG_AT(struct bearer_config, token),
     .help = "The token. Not used when filename is given."},
    {.key = "tokens", .kind = BIND_LIST, CFG_AT(struct bearer_config, tokens), .elem = &cfg_elem_opaque,
     .help = "Several tokens: servers take each of them, clients send the first. They come before filename."},
    {.key = "filename", .kind = BIND_STRING, CFG_AT(struct bearer_config, filename),
     .use = CFG_READS_FILE, .help = "File with tokens: the first word of every line; what follows it is a comment. It is read again when it changes."},
    {.key = "retry_on_failure", .kind = BIND_STRUCT, CFG_AT(struct bearer_config, retry), .fields = retry_fields,
     CFG_NESTED(struct retry_config), .help = "What to do when the file is not there at the start."},
    {.key = "wait_for_token_file", .kind = BIND_REFUSED, .def = "false",
     .help = "the start does not wait for the file; requests are refused, and data is kept, until it is there"},
    {0}};
/* clang-format on */

const struct component_type extension_bearertokenauth = {
    .kind = KIND_EXTENSION,
    .name = "bearertokenauth",
    .help = "Bearer tokens: lets clients in, and sends them to backends.",
    .fields = fields,
    .config_size = sizeof(struct bearer_config),
    .check = check,
    .create = bearer_create,
    .start = bearer_start,
    .destroy = bearer_destroy,
    .capability = capability,
    .probe = probe,
};
