/* A job: its settings, rules, and the head of its requests. */
#include <errno.h>
#include <inttypes.h>

#include "agent/base/clock.h"
#include "agent/base/encode.h"
#include "agent/base/secrets.h"
#include "receivers/prometheus/prometheus.h"

#define IDLE_NS (5 * 60 * (int64_t)NS_PER_S)
#define MAX_HEADERS 200

static bool given(const char *s)
{
    return s && *s;
}

static void set_tls(struct job *j, const struct prom_tls_config *t)
{
    static const char *const versions[] = {"", "1.0", "1.1", "1.2", "1.3"};
    j->tls = (struct tls_client_settings){.insecure_skip_verify = t->insecure_skip_verify,
                                          .ca_file = t->ca_file,
                                          .ca_pem = t->ca,
                                          .cert_file = t->cert_file,
                                          .cert_pem = t->cert,
                                          .key_file = t->key_file,
                                          .key_pem = t->key,
                                          .server_name_override = t->server_name,
                                          .min_version = versions[t->min_version],
                                          .max_version = versions[t->max_version]};
}

int prom_job_init(struct job *j, const struct prom_file_config *file, const struct scrape_config *c,
                  struct err *reterr)
{
    *j = (struct job){.ntargets = 0};
    int r = prom_job_settings(file, c, &j->settings, reterr);
    if (r == 0)
        r = prom_relabel_new(&c->relabel_configs, &j->target_rules, reterr);
    if (r == 0)
        r = prom_relabel_new(&c->metric_relabel_configs, &j->sample_rules, reterr);
    set_tls(j, &c->tls);
    j->http = (struct http_client_settings){.tls = &j->tls,
                                            .proxy_url = c->proxy_url,
                                            .no_proxy = c->no_proxy,
                                            .no_env_proxy = !c->proxy_from_environment,
                                            .user_agent = "motel/" MOTEL_VERSION,
                                            .idle_timeout_ns = IDLE_NS,
                                            .http2 = c->enable_http2,
                                            .no_redirects = !c->follow_redirects};
    return r;
}

void prom_job_done(struct job *j)
{
    j->target_rules = prom_relabel_free(j->target_rules);
    j->sample_rules = prom_relabel_free(j->sample_rules);
}

/* ---- the head of a request ---- */

struct head {
    struct arena *arena;
    const char **lines;
    size_t n;
    struct err *reterr;
    int error;
};

static void add_line(struct head *h, const char *text)
{
    if (!text || h->n + 1 >= MAX_HEADERS) {
        h->error = h->error ? h->error
                   : text ? err_set(h->reterr, -EINVAL, "more than %d request headers", MAX_HEADERS)
                          : err_set(h->reterr, -ENOMEM, "out of memory");
        return;
    }
    h->lines[h->n++] = text;
    h->lines[h->n] = NULL;
}

/* The text of a file without the white space around it, which is a secret from now on; NULL, noted
 * in `h`, when it cannot be had. */
static const char *read_secret(struct head *h, const char *path)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    int r = b ? tls_read_file(path, b, h->reterr) : err_set(h->reterr, -ENOMEM, "out of memory");
    if (r < 0) {
        h->error = h->error ? h->error : r;
        return NULL;
    }
    const char *p = (const char *)b->data;
    size_t n = b->len;
    while (n && strchr(" \t\r\n", *p)) {
        p++;
        n--;
    }
    while (n && strchr(" \t\r\n", p[n - 1]))
        n--;
    const char *text = arena_strndup(h->arena, n ? p : "", n);
    if (text && memchr(text, 0, n))
        h->error = err_set(h->reterr, -EINVAL, "%s: expected a text, got a NUL byte", path);
    if (text && strpbrk(text, "\r\n"))
        h->error = err_set(h->reterr, -EINVAL, "%s: expected one line, got several", path);
    if (text && !h->error)
        secrets_add(text);
    if (secrets_lost())
        h->error = err_set(h->reterr, -ENOMEM, "out of memory");
    return text;
}

static const char *text_or_file(struct head *h, const char *text, const char *file)
{
    return given(file) ? read_secret(h, file) : text;
}

static void add_basic(struct head *h, const struct basic_auth_config *b)
{
    const char *user = text_or_file(h, b->username, b->username_file),
               *password = text_or_file(h, b->password, b->password_file);
    const char *both = user && password ? arena_printf(h->arena, "%s:%s", user, password) : NULL;
    char *code = both ? arena_calloc(h->arena, base64_size(strlen(both)) + 1) : NULL;
    if (h->error)
        return;
    if (code)
        encode_base64(bytes_str(both), code);
    add_line(h, code ? arena_printf(h->arena, "Authorization: Basic %s", code) : NULL);
}

static void add_credentials(struct head *h, const char *type, const char *text, const char *file)
{
    const char *credentials = text_or_file(h, text, file);
    if (!h->error)
        add_line(h, credentials ? arena_printf(h->arena, "Authorization: %s %s", type, credentials)
                                : NULL);
}

static void add_authorization(struct head *h, const struct scrape_config *c)
{
    if (c->basic_auth)
        add_basic(h, c->basic_auth);
    else if (c->authorization)
        add_credentials(h, c->authorization->type, c->authorization->credentials,
                        c->authorization->credentials_file);
    else if (given(c->bearer_token) || given(c->bearer_token_file))
        add_credentials(h, "Bearer", c->bearer_token, c->bearer_token_file);
}

static void add_values(struct head *h, const char *name, const struct cfg_list *l, bool files)
{
    const char *const *texts = l->items;
    for (size_t i = 0; i < l->n && !h->error; i++) {
        const char *v = files ? read_secret(h, texts[i]) : texts[i];
        if (!h->error && strpbrk(v, "\r\n"))
            h->error =
                err_set(h->reterr, -EINVAL, "http_headers: a value of %s has several lines", name);
        if (!h->error)
            add_line(h, arena_printf(h->arena, "%s: %s", name, v));
    }
}

static void add_configured(struct head *h, const struct cfg_map *m)
{
    const struct http_header_config *c = m->values;
    for (size_t i = 0; i < m->n; i++) {
        add_values(h, m->keys[i], &c[i].values, false);
        add_values(h, m->keys[i], &c[i].secrets, false);
        add_values(h, m->keys[i], &c[i].files, true);
    }
}

const char *const *prom_job_request_headers(const struct job *j, uint64_t timeout_ns,
                                            struct arena *a, struct err *reterr)
{
    const struct scrape_config *c = j->settings.config;
    struct head h = {.arena = a, .reterr = reterr};
    h.lines = arena_calloc(a, MAX_HEADERS * sizeof(*h.lines));
    if (!h.lines) {
        err_set(reterr, -ENOMEM, "out of memory");
        return NULL;
    }
    add_line(&h, arena_printf(a, "Accept: %s", j->settings.accept));
    add_line(&h, c->enable_compression ? "Accept-Encoding: gzip" : "Accept-Encoding: identity");
    add_line(
        &h, arena_printf(a, "X-Prometheus-Scrape-Timeout-Seconds: %.9g", (double)timeout_ns / 1e9));
    add_authorization(&h, c);
    add_configured(&h, &c->http_headers);
    return h.error ? NULL : h.lines;
}
