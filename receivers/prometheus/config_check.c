/* Rules over several keys, and what a job takes from `global`. */
#include <errno.h>
#include <inttypes.h>
#include <strings.h>

#include "agent/base/clock.h"
#include "receivers/prometheus/config.h"
#include "receivers/prometheus/relabel.h"

#define DEFAULT_TIMEOUT_NS (10 * NS_PER_S)

static bool given(const char *s)
{
    return s && *s;
}

/* ---- what a job is to do ---- */

/* By Prometheus' rules: a job without its own takes the one of `global`, cut at its interval. */
static int job_times(const struct global_config *g, const struct scrape_config *s,
                     struct job_settings *j, struct err *reterr)
{
    uint64_t global_interval = 0, global_timeout = 0;
    j->interval_ns = j->timeout_ns = 0;
    if (prom_parse_duration(g->scrape_interval, &global_interval, reterr) < 0 ||
        (given(g->scrape_timeout) &&
         prom_parse_duration(g->scrape_timeout, &global_timeout, reterr) < 0) ||
        (given(s->scrape_interval) &&
         prom_parse_duration(s->scrape_interval, &j->interval_ns, reterr) < 0) ||
        (given(s->scrape_timeout) &&
         prom_parse_duration(s->scrape_timeout, &j->timeout_ns, reterr) < 0))
        return -EINVAL;
    if (global_interval == 0)
        global_interval = 60 * NS_PER_S;
    if (global_timeout > global_interval)
        return err_set(reterr, -EINVAL, "global scrape timeout greater than scrape interval");
    if (global_timeout == 0)
        global_timeout =
            global_interval < DEFAULT_TIMEOUT_NS ? global_interval : DEFAULT_TIMEOUT_NS;
    if (j->interval_ns == 0)
        j->interval_ns = global_interval;
    if (j->timeout_ns > j->interval_ns)
        return err_set(reterr, -EINVAL,
                       "scrape timeout greater than scrape interval for scrape config with job "
                       "name \"%s\"",
                       s->job_name);
    if (j->timeout_ns == 0)
        j->timeout_ns = global_timeout < j->interval_ns ? global_timeout : j->interval_ns;
    return 0;
}

static uint64_t limit_of(int64_t own, int64_t global)
{
    return (uint64_t)(own ? own : global);
}

static int job_limits(const struct scrape_limits *global, const struct scrape_limits *own,
                      struct job_settings *j, struct err *reterr)
{
    int r = given(own->body_size_limit)
                ? prom_parse_size(own->body_size_limit, &j->body_size_limit, reterr)
                : 0;
    if (r == 0 && j->body_size_limit == 0 && given(global->body_size_limit))
        r = prom_parse_size(global->body_size_limit, &j->body_size_limit, reterr);
    j->sample_limit = limit_of(own->sample_limit, global->sample_limit);
    j->target_limit = limit_of(own->target_limit, global->target_limit);
    j->label_limit = limit_of(own->label_limit, global->label_limit);
    j->label_name_length_limit =
        limit_of(own->label_name_length_limit, global->label_name_length_limit);
    j->label_value_length_limit =
        limit_of(own->label_value_length_limit, global->label_value_length_limit);
    return r;
}

/* Weights fall by their place in the list, as Prometheus gives them. */
static void make_accept(const struct cfg_list *protocols, int escaping, char *ret, size_t size)
{
    static const int all[] = {PROTO_OPENMETRICS_1_0_0, PROTO_OPENMETRICS_0_0_1, PROTO_TEXT_1_0_0,
                              PROTO_TEXT_0_0_4};
    static const char *const types[] = {
        [PROTO_TEXT_0_0_4] = "text/plain;version=0.0.4",
        [PROTO_TEXT_1_0_0] = "text/plain;version=1.0.0",
        [PROTO_OPENMETRICS_0_0_1] = "application/openmetrics-text;version=0.0.1",
        [PROTO_OPENMETRICS_1_0_0] = "application/openmetrics-text;version=1.0.0"};
    static const char *const escapings[] = {"allow-utf-8", "allow-utf-8", "underscores", "dots",
                                            "values"};
    const int *list = protocols->n ? protocols->items : all;
    const size_t n = protocols->n ? protocols->n : ARRAY_SIZE(all);
    int weight = 6;
    size_t at = 0;
    for (size_t i = 0; i < n && at < size && weight > 1; i++) {
        const bool escapes = list[i] == PROTO_TEXT_1_0_0 || list[i] == PROTO_OPENMETRICS_1_0_0;
        if (list[i] == PROTO_PROTOBUF)
            continue;
        at += (size_t)snprintf(ret + at, size - at, "%s%s%s;q=0.%d,", types[list[i]],
                               escapes ? ";escaping=" : "", escapes ? escapings[escaping] : "",
                               weight--);
    }
    if (at < size)
        snprintf(ret + at, size - at, "*/*;q=0.%d", weight);
}

int prom_job_settings(const struct prom_file_config *file, const struct scrape_config *job,
                      struct job_settings *ret, struct err *reterr)
{
    const struct global_config *g = &file->global;
    const struct cfg_value *extra = job->extra_scrape_metrics;
    *ret = (struct job_settings){
        .config = job,
        .extra_metrics = extra && extra->type == CFG_BOOL ? extra->b : g->extra_scrape_metrics};
    int r = job_times(g, job, ret, reterr);
    if (r == 0)
        r = job_limits(&g->limits, &job->limits, ret, reterr);
    make_accept(job->scrape_protocols.n ? &job->scrape_protocols : &g->scrape_protocols,
                job->limits.name_escaping ? job->limits.name_escaping : g->limits.name_escaping,
                ret->accept, sizeof(ret->accept));
    return r;
}

/* ---- checks ---- */

static int check_protocols(const struct cfg_list *l, struct err *reterr)
{
    const int *p = l->items;
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < i; k++)
            if (p[i] == p[k])
                return err_at(reterr, "scrape_protocols", "a protocol is given twice");
    if (l->n == 1 && p[0] == PROTO_PROTOBUF)
        return err_at(reterr, "scrape_protocols", "PrometheusProto is not supported");
    return 0;
}

static int check_basic_auth(const struct basic_auth_config *b, struct err *reterr)
{
    if (b && given(b->username) && given(b->username_file))
        return err_at(reterr, "basic_auth::username_file",
                      "at most one of basic_auth username & username_file must be configured");
    if (b && given(b->password) && given(b->password_file))
        return err_at(reterr, "basic_auth::password_file",
                      "at most one of basic_auth password & password_file must be configured");
    return 0;
}

static int check_authorization(const struct authorization_config *a, struct err *reterr)
{
    if (a && given(a->credentials) && given(a->credentials_file))
        return err_at(
            reterr, "authorization::credentials_file",
            "at most one of authorization credentials & credentials_file must be configured");
    if (a && strcasecmp(a->type, "basic") == 0)
        return err_at(reterr, "authorization::type",
                      "authorization type cannot be set to \"basic\", use \"basic_auth\" instead");
    return 0;
}

static int check_auth(const struct scrape_config *s, struct err *reterr)
{
    const bool bearer = given(s->bearer_token) || given(s->bearer_token_file);
    if (given(s->bearer_token) && given(s->bearer_token_file))
        return err_at(reterr, "bearer_token_file",
                      "at most one of bearer_token & bearer_token_file must be configured");
    if ((s->basic_auth != NULL) + (s->authorization != NULL) + bearer > 1)
        return err_at(reterr,
                      bearer ? given(s->bearer_token) ? "bearer_token" : "bearer_token_file"
                             : "authorization",
                      "at most one of basic_auth, authorization, bearer_token & bearer_token_file "
                      "must be configured");
    int r = check_basic_auth(s->basic_auth, reterr);
    return r < 0 ? r : check_authorization(s->authorization, reterr);
}

static int check_tls(const struct prom_tls_config *t, struct err *reterr)
{
    const bool cert = given(t->cert) || given(t->cert_file),
               key = given(t->key) || given(t->key_file);
    if (given(t->ca) && given(t->ca_file))
        return err_at(reterr, "tls_config::ca_file",
                      "at most one of ca & ca_file must be configured");
    if (given(t->cert) && given(t->cert_file))
        return err_at(reterr, "tls_config::cert_file",
                      "at most one of cert & cert_file must be configured");
    if (given(t->key) && given(t->key_file))
        return err_at(reterr, "tls_config::key_file",
                      "at most one of key & key_file must be configured");
    if (cert != key)
        return err_at(reterr, cert ? "tls_config::cert_file" : "tls_config::key_file",
                      "exactly one of %s must be configured when a client %s is",
                      cert ? "key or key_file" : "cert or cert_file", cert ? "certificate" : "key");
    return 0;
}

static int check_headers(const struct cfg_map *m, struct err *reterr)
{
    static const char *const own[] = {"authorization",
                                      "host",
                                      "content-encoding",
                                      "content-length",
                                      "content-type",
                                      "user-agent",
                                      "connection",
                                      "keep-alive",
                                      "accept",
                                      "accept-encoding",
                                      "x-prometheus-scrape-timeout-seconds",
                                      "te",
                                      "trailer",
                                      "transfer-encoding",
                                      "upgrade"};
    for (size_t i = 0; i < m->n; i++) {
        const char *k = m->keys[i];
        char path[120];
        snprintf(path, sizeof(path), "http_headers::%.90s", k);
        if (!*k ||
            k[strspn(
                k,
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~")])
            return err_at(reterr, path, "not a name of a header");
        for (size_t o = 0; o < ARRAY_SIZE(own); o++)
            if (strcasecmp(own[o], k) == 0)
                return err_at(reterr, path, "setting header \"%s\" is not allowed", k);
    }
    return 0;
}

static int check_relabel_list(const struct cfg_list *l, const char *key, struct err *reterr)
{
    const struct relabel_config *c = l->items;
    for (size_t i = 0; i < l->n; i++) {
        struct err e = {.text = ""};
        char path[240];
        if (prom_relabel_check(&c[i], &e) == 0)
            continue;
        snprintf(path, sizeof(path), "%s[%zu]%s%s", key, i, *e.path ? "::" : "", e.path);
        return err_at(reterr, path, "%s", e.text);
    }
    return 0;
}

static int check_job(const struct prom_file_config *file, const struct scrape_config *s,
                     struct err *reterr)
{
    struct job_settings j;
    int r = prom_job_settings(file, s, &j, reterr);
    if (r == 0)
        r = check_protocols(&s->scrape_protocols, reterr);
    if (r == 0 && s->fallback_scrape_protocol == PROTO_PROTOBUF)
        r = err_at(reterr, "fallback_scrape_protocol", "PrometheusProto is not supported");
    if (r == 0 && s->extra_scrape_metrics && s->extra_scrape_metrics->type != CFG_BOOL &&
        s->extra_scrape_metrics->type != CFG_NULL)
        r = err_at(reterr, "extra_scrape_metrics", "expected true or false");
    if (r == 0)
        r = check_auth(s, reterr);
    if (r == 0)
        r = check_tls(&s->tls, reterr);
    if (r == 0)
        r = check_headers(&s->http_headers, reterr);
    if (r == 0)
        r = check_relabel_list(&s->relabel_configs, "relabel_configs", reterr);
    if (r == 0)
        r = check_relabel_list(&s->metric_relabel_configs, "metric_relabel_configs", reterr);
    return r;
}

static int check_unique(const struct scrape_config *s, size_t i, struct err *reterr)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(s[k].job_name, s[i].job_name) == 0)
            return err_at(reterr, "job_name", "found multiple scrape configs with job name \"%s\"",
                          s[i].job_name);
    return 0;
}

int prom_config_check(const void *config, struct err *reterr)
{
    const struct prom_config *c = config;
    const struct scrape_config *s = c->file.scrape_configs.items;
    if (c->file.scrape_configs.n == 0)
        return err_at(reterr, "config", "no Prometheus scrape_configs or target_allocator set");
    for (size_t i = 0; i < c->file.scrape_configs.n; i++) {
        struct err e = {.text = ""};
        char path[160];
        if (check_unique(s, i, &e) == 0 && check_job(&c->file, &s[i], &e) == 0)
            continue;
        snprintf(path, sizeof(path), "config::scrape_configs[%zu]%s%.100s", i, *e.path ? "::" : "",
                 e.path);
        return err_at(reterr, path, "%s", e.text);
    }
    return check_protocols(&c->file.global.scrape_protocols, reterr);
}
