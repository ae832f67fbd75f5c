/*
 * The basicauth extension: user name and password (RFC 7617), checked by servers against lines of
 * htpasswd, or sent by clients. Files are read again when they change.
 */
#include <errno.h>
#include <pthread.h>

#include "agent/base/encode.h"
#include "agent/base/secrets.h"
#include "agent/pipeline/probe.h"
#include "agent/pipeline/secret_file.h"
#include "extensions/basicauth/verifier.h"

#define CREDENTIALS_MAX 768 /* decoded */
#define REFUSED_KEPT 64     /* wrong credentials that are remembered */
#define SECRETS_MAX 256

extern const struct component_type extension_basicauth;

struct htpasswd_config {
    const char *file, *inline_text;
};
struct client_config {
    const char *username, *username_file, *password, *password_file;
};
struct basic_config {
    struct htpasswd_config *htpasswd;
    struct client_config *client;
};

struct word { /* of a client: from the config or a file */
    struct secret_file file;
    char *text; /* NULL = not known yet */
};

struct basic {
    struct component c; /* first */
    const struct basic_config *config;
    struct server_auth server;
    struct client_auth client;
    struct verifier *verifier;
    struct auth_key key;
    pthread_mutex_t lock; /* what follows */
    struct secret_file file;
    struct htpasswd users;
    uint8_t refused[REFUSED_KEPT][AUTH_DIGEST_BYTES];
    struct word username, password;
};

static const char invalid[] = "invalid credentials", bad_format[] = "invalid authorization format";

/* ---- users of a server ---- */

/* Who has shown the right password already need not be checked again. Most stand where they stood,
 * seen from the one before: with many users, looking for each of them would keep requests waiting.
 */
static void keep_proofs(struct htpasswd *new, const struct htpasswd *old)
{
    size_t guess = 0;
    for (size_t i = 0; i < old->n; i++, guess++) {
        const struct htpasswd_user *from = &old->users[i];
        struct htpasswd_user *to = guess < new->n ? &new->users[guess] : NULL;
        if (!from->proven)
            continue;
        if (!to || strcmp(to->name, from->name) != 0)
            to = htpasswd_find(new, bytes_str(from->name));
        if (!to || strcmp(from->code, to->code) != 0)
            continue;
        guess = (size_t)(to - new->users);
        to->proven = true;
        memcpy(to->proof, from->proof, sizeof(to->proof));
    }
}

/* Passwords in plain text are blanked out where they turn up. Not beyond some: each is looked for
 * in every text. */
static void keep_secret(const struct htpasswd *h)
{
    unsigned left = SECRETS_MAX;
    for (size_t i = 0; i < h->n && left; i++)
        if (htpasswd_is_plain(h->users[i].code) && left--)
            secrets_add(h->users[i].code);
}

/* Under the lock: `text` of the file (NULL = none), then the config's, which so counts more. */
static int load_users(struct basic *b, const char *text)
{
    struct htpasswd h = {0};
    _cleanup_free_ char *all = NULL;
    if (asprintf(&all, "%s\n%s", text ? text : "", b->config->htpasswd->inline_text) < 0) {
        all = NULL;
        return -ENOMEM;
    }
    int r = htpasswd_parse(&h, all);
    explicit_bzero(all, strlen(all));
    if (r < 0) {
        htpasswd_done(&h);
        return r;
    }
    keep_secret(&h);
    keep_proofs(&h, &b->users);
    htpasswd_done(&b->users);
    b->users = h;
    memset(b->refused, 0, sizeof(b->refused));
    if (h.bad)
        log_warn(&b->c.logger, "lines of htpasswd are malformed, or too slow, and were left out",
                 LOG_INT("lines", h.bad));
    return 0;
}

/* Under the lock. 0, or -errno with reterr about a file that could not be read. */
static int refresh_users(struct basic *b, struct err *reterr)
{
    _cleanup_buf_ struct buf *text = NULL;
    if (!b->file.path)
        return 0;
    int r = secret_file_poll(&b->file, &text, reterr);
    if (r <= 0)
        return r;
    const char *s = buf_str(text);
    r = s ? load_users(b, s) : -ENOMEM;
    if (r == 0)
        log_info(&b->c.logger, "htpasswd file was read", LOG_STR("file", b->file.path),
                 LOG_INT("users", b->users.n));
    return r < 0 ? err_set(reterr, r, "out of memory") : 0;
}

/* Told by the verifier. */
static void on_compared(void *ctx, const char *user, const char *code, const uint8_t *digest,
                        bool good)
{
    struct basic *b = ctx;
    pthread_mutex_lock(&b->lock);
    struct htpasswd_user *u = htpasswd_find(&b->users, bytes_str(user));
    if (u && good && strcmp(u->code, code) == 0) {
        u->proven = true;
        memcpy(u->proof, digest, sizeof(u->proof));
    } else if (!good) {
        memcpy(b->refused[digest[0] % REFUSED_KEPT], digest, AUTH_DIGEST_BYTES);
    }
    pthread_mutex_unlock(&b->lock);
}

/* ---- requests to a server ---- */

struct credentials {
    uint8_t text[CREDENTIALS_MAX];
    struct bytes user, password;
};

/* NULL, or what is wrong with the header. */
static const char *read_header(const struct http_exchange *x, struct credentials *ret)
{
    struct bytes h = auth_header(x, "authorization");
    size_t len;
    if (h.len == 0)
        return "no basic auth provided";
    if (h.len < 6 || strncasecmp((const char *)h.data, "Basic ", 6) != 0)
        return "invalid authorization scheme prefix";
    h = bytes_of(h.data + 6, h.len - 6);
    if (h.len > CREDENTIALS_MAX || !decode_base64(h, ret->text, &len))
        return bad_format;
    const uint8_t *colon = memchr(ret->text, ':', len);
    if (!colon || memchr(ret->text, 0, len))
        return bad_format;
    ret->user = bytes_of(ret->text, (size_t)(colon - ret->text));
    ret->password = bytes_of(colon + 1, len - ret->user.len - 1);
    return ret->password.len > HTPASSWD_PASSWORD_MAX ? invalid : NULL;
}

static bool matches_now(const struct htpasswd_user *u, struct bytes password)
{
    char word[HTPASSWD_PASSWORD_MAX + 1];
    memcpy(word, password.data, password.len);
    word[password.len] = 0;
    const bool good = htpasswd_match(u->code, word);
    explicit_bzero(word, sizeof(word));
    return good;
}

/* Under the lock. The right password of a proven user is known, so nothing slow is left to do. */
static enum admission judge(struct basic *b, const char *peer, const struct credentials *c,
                            const char **ret_reason, struct auth_check **ret_check)
{
    uint8_t digest[AUTH_DIGEST_BYTES];
    const struct htpasswd_user *u = htpasswd_find(&b->users, c->user);
    if (!u)
        return ADMIT_REFUSE;
    if (!htpasswd_is_slow(u->code))
        return matches_now(u, c->password) ? ADMIT_PASS : ADMIT_REFUSE;
    auth_digest(&b->key, c->user, c->password, digest);
    if (u->proven)
        return auth_digest_equal(u->proof, digest) ? ADMIT_PASS : ADMIT_REFUSE;
    if (auth_digest_equal(b->refused[digest[0] % REFUSED_KEPT], digest))
        return ADMIT_REFUSE;
    *ret_check = verifier_submit(b->verifier, peer, c->user, u->code, c->password, digest);
    *ret_reason = "too many credentials are being checked";
    return *ret_check ? ADMIT_LATER : ADMIT_BUSY;
}

static enum admission admit(const struct server_auth *self, struct http_exchange *x,
                            const char **ret_reason, struct auth_check **ret_check)
{
    struct basic *b = container_of(self, struct basic, server);
    struct credentials c;
    struct err e = {0};
    if ((*ret_reason = read_header(x, &c)))
        return ADMIT_REFUSE;
    *ret_reason = invalid;
    pthread_mutex_lock(&b->lock);
    int r = refresh_users(b, &e);
    enum admission a = judge(b, http_peer(x), &c, ret_reason, ret_check);
    pthread_mutex_unlock(&b->lock);
    explicit_bzero(&c, sizeof(c));
    if (r < 0 && r != -EALREADY)
        log_error(&b->c.logger, "failed to reload htpasswd file, keeping the last users",
                  LOG_STR("error", e.text));
    return a;
}

/* ---- clients ---- */

/* Under the lock. */
static int refresh_word(struct word *w, struct err *reterr)
{
    _cleanup_buf_ struct buf *text = NULL;
    int r = w->file.path ? secret_file_poll(&w->file, &text, reterr) : 0;
    if (r != 1)
        return r;
    char *copy = buf_str(text) ? strdup(buf_str(text)) : NULL;
    if (!copy)
        return err_set(reterr, -ENOMEM, "out of memory");
    free(w->text);
    w->text = copy;
    return 0;
}

/* Under the lock: both words as they are now. What was read before stays good. */
static int refresh_words(struct basic *b, struct err *reterr)
{
    struct word *const words[] = {&b->username, &b->password};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        struct err e = {0};
        int r = refresh_word(words[i], &e);
        if (r < 0 && r != -EALREADY && words[i]->text)
            log_warn(&b->c.logger, "failed to reload credentials file, keeping last value",
                     LOG_STR("error", e.text));
        if (words[i]->text)
            continue;
        return err_set(reterr, r == 0 ? -EAGAIN : r, "%s",
                       e.text[0] ? e.text : "a credentials file could not be read");
    }
    if (strchr(b->username.text, ':'))
        return err_set(reterr, -EINVAL, "%s: the user name holds a colon", bad_format);
    secrets_add(b->password.text);
    return 0;
}

/* Under the lock. */
static int give_header(const struct basic *b,
                       int (*each)(void *ctx, const char *name, const char *value), void *ctx)
{
    static const char scheme[] = "Basic ";
    char *pair = NULL;
    int n = asprintf(&pair, "%s:%s", b->username.text, b->password.text), r = -ENOMEM;
    size_t size = n < 0 ? 0 : sizeof(scheme) + base64_size((size_t)n);
    char *value = size ? calloc(1, size) : NULL;
    if (value) {
        memcpy(value, scheme, sizeof(scheme) - 1);
        encode_base64(bytes_of(pair, (size_t)n), value + sizeof(scheme) - 1);
        secrets_add(value);
        r = each(ctx, "Authorization", value);
        explicit_bzero(value, size);
        explicit_bzero(pair, (size_t)n);
    }
    if (n >= 0)
        free(pair);
    free(value);
    return r;
}

static int headers(const struct client_auth *self,
                   int (*each)(void *ctx, const char *name, const char *value), void *ctx,
                   struct err *reterr)
{
    struct basic *b = container_of(self, struct basic, client);
    pthread_mutex_lock(&b->lock);
    int r = refresh_words(b, reterr);
    if (r == 0)
        r = give_header(b, each, ctx);
    pthread_mutex_unlock(&b->lock);
    return r;
}

/* ---- life ---- */

static void basic_destroy(struct component *c)
{
    struct basic *b = (struct basic *)c;
    if (!b)
        return;
    verifier_free(b->verifier);
    htpasswd_done(&b->users);
    if (b->password.text)
        explicit_bzero(b->password.text, strlen(b->password.text));
    free(b->username.text);
    free(b->password.text);
    explicit_bzero(&b->key, sizeof(b->key));
    pthread_mutex_destroy(&b->lock);
    free(b);
}

static int set_word(struct word *w, const char *text, const char *file)
{
    if (*file)
        w->file.path = file;
    else if (!(w->text = strdup(text)))
        return -ENOMEM;
    return 0;
}

static int set_up(struct basic *b)
{
    const struct client_config *c = b->config->client;
    const struct htpasswd_config *h = b->config->htpasswd;
    int r = auth_key_make(&b->key);
    if (r == 0 && c)
        r = set_word(&b->username, c->username, c->username_file);
    if (r == 0 && c)
        r = set_word(&b->password, c->password, c->password_file);
    if (r < 0 || !h)
        return r;
    b->file.path = *h->file ? h->file : NULL;
    b->verifier = verifier_new(on_compared, b);
    return b->verifier ? load_users(b, NULL) : -ENOMEM;
}

static int basic_create(const struct component_args *args, struct component **ret,
                        struct err *reterr)
{
    struct basic *b = calloc(1, sizeof(*b));
    if (!b)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&b->c, &extension_basicauth, args);
    b->config = args->config;
    b->client.headers = headers;
    b->server = (struct server_auth){.admit = admit, .challenge = "Basic realm=\"motel\""};
    pthread_mutex_init(&b->lock, NULL);
    int r = set_up(b);
    if (r < 0) {
        basic_destroy(&b->c);
        return err_set(reterr, r, "%s", strerror(-r));
    }
    *ret = &b->c;
    return 0;
}

/* Files must be there, as in the reference. */
static int basic_start(struct component *c, struct err *reterr)
{
    struct basic *b = (struct basic *)c;
    pthread_mutex_lock(&b->lock);
    int r = b->config->htpasswd ? refresh_users(b, reterr) : refresh_words(b, reterr);
    pthread_mutex_unlock(&b->lock);
    if (r < 0 && b->config->htpasswd)
        err_prefix(reterr, "open htpasswd file: ");
    return r;
}

static void basic_stop(struct component *c, uint64_t deadline_ns _unused_)
{
    struct basic *b = (struct basic *)c;
    if (b->verifier)
        verifier_stop(b->verifier);
}

static const void *capability(struct component *c, enum capability kind)
{
    struct basic *b = (struct basic *)c;
    if (kind == CAP_SERVER_AUTH && b->config->htpasswd)
        return &b->server;
    return kind == CAP_CLIENT_AUTH && b->config->client ? &b->client : NULL;
}

static void probe_words(struct basic *b, struct probe *p)
{
    struct err e = {0};
    const char *const files[] = {b->username.file.path, b->password.file.path};
    bool good = true;
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        if (files[i])
            good &= probe_input_file(p, files[i], i == 1);
    pthread_mutex_lock(&b->lock);
    const int r = good ? refresh_words(b, &e) : 0;
    pthread_mutex_unlock(&b->lock);
    if (r < 0)
        probe_fail(p, "credentials", "", "correct the files under client_auth", "%s", e.text);
}

static void probe(struct component *c, struct probe *p)
{
    struct basic *b = (struct basic *)c;
    struct err e = {0};
    if (p->step != PROBE_OUTSIDE)
        return;
    if (!b->config->htpasswd) {
        probe_words(b, p);
        return;
    }
    if (b->file.path && !probe_input_file(p, b->file.path, true))
        return;
    pthread_mutex_lock(&b->lock);
    const int r = refresh_users(b, &e);
    const size_t n = b->users.n;
    pthread_mutex_unlock(&b->lock);
    if (r < 0)
        probe_fail(p, "users", "", "the lines must be as htpasswd writes them", "%s", e.text);
    else if (n == 0)
        probe_fail(p, "users", "", "add lines of user:password, as htpasswd writes them",
                   "there is no user, so nobody may pass");
    else
        probe_ok(p, "users", "", n == 1 ? "1 user may pass" : "%zu users may pass", n);
}

/* ---- configuration ---- */

static int check(const void *config, struct err *reterr)
{
    const struct basic_config *b = config;
    if (b->htpasswd && b->client)
        return err_set(reterr, -EINVAL, "only one of `htpasswd` or `client_auth` can be specified");
    if (b->client && strchr(b->client->username, ':') && !*b->client->username_file)
        return err_at(reterr, "client_auth::username", "%s: the user name holds a colon",
                      bad_format);
    if (b->client || (b->htpasswd && (*b->htpasswd->file || *b->htpasswd->inline_text)))
        return 0;
    return err_set(reterr, -EINVAL, "no credential source provided");
}

/* clang-format off */
static const struct cfg_field htpasswd_fields[] = {
    {.key = "file", .kind = BIND_STRING, CFG_AT(struct htpasswd_config, file),
     .use = CFG_READS_FILE, .help = "File with lines of user:password, read again when it changes."},
    {.key = "inline", .kind = BIND_OPAQUE, CFG_AT(struct htpasswd_config, inline_text),
     .help = "Such lines; they count before those of the file. Write $$ for $."},
    {0}};
static const struct cfg_field client_fields[] = {
    {.key = "username", .kind = BIND_STRING, CFG_AT(struct client_config, username), .help = "User name."},
    {.key = "username_file", .kind = BIND_STRING, CFG_AT(struct client_config, username_file),
     .use = CFG_READS_FILE, .help = "File with the user name, instead; read again when it changes."},
    {.key = "password", .kind = BIND_OPAQUE, CFG_AT(struct client_config, password), .help = "Password."},
    {.key = "password_file", .kind = BIND_STRING, CFG_AT(struct client_config, password_file),
     .use = CFG_READS_FILE, .help = "File with the password, instead; read again when it changes."},
    {0}};
static const struct cfg_field fields[] = {
    {.key = "htpasswd", .kind = BIND_BLOCK, CFG_AT(struct basic_config, htpasswd), .fields = htpasswd_fields,
     CFG_NESTED(struct htpasswd_config), .null_absent = true, .help = "For servers: who may pass."},
    {.key = "client_auth", .kind = BIND_BLOCK, CFG_AT(struct basic_config, client), .fields = client_fields,
     CFG_NESTED(struct client_config), .null_absent = true, .help = "For clients: what they send."},
    {0}};
/* clang-format on */

const struct component_type extension_basicauth = {
    .kind = KIND_EXTENSION,
    .name = "basicauth",
    .help = "User names and passwords: lets clients in, or sends them to backends.",
    .fields = fields,
    .config_size = sizeof(struct basic_config),
    .check = check,
    .create = basic_create,
    .start = basic_start,
    .stop = basic_stop,
    .destroy = basic_destroy,
    .capability = capability,
    .probe = probe,
};
