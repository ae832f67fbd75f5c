/*
 * Every component with every allocation failing once, from the text of its configuration to its
 * end: no crash, no leak, an error with words, and what it said that it took is there in the end or
 * was counted as lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <unistd.h>

#include "agent/base/secrets.h"
#include "alloc_failure.h"
#include "rig.h"

enum {
    STARTED = 1 << 0,    /* start() is part of it */
    KEEPS_ALL = 1 << 1,  /* a record that was taken comes out */
    NOTHING_IN = 1 << 2, /* takes no batches */
};

struct world {
    const char *name, *yaml;
    enum signal in, out;
    unsigned flags;
};

static struct batch *inputs[SIGNAL_COUNT];

static const struct component_type *type_of(const struct world *w)
{
    for (const struct component_type *const *t = component_types; *t; t++) {
        const char *kind = component_kind_name((*t)->kind);
        if (strncmp(w->name, kind, strlen(kind)) == 0 &&
            strcmp(w->name + strlen(kind) + 1, (*t)->name) == 0)
            return *t;
    }
    fail_msg("no component %s", w->name);
    return NULL;
}

/* One sink behind it, made without failures. */
static void add_sink(struct rig *r, enum signal s)
{
    const unsigned left = alloc_pause();
    r->sinks[0] = (struct sink){.base = {.type = &sink_type, .id = "sink"}};
    pthread_mutex_init(&r->sinks[0].lock, NULL);
    cond_init_monotonic(&r->sinks[0].offered);
    r->c->next[s] = fanout_new(1);
    fanout_set(r->c->next[s], 0, &r->sinks[0].base, NULL, 1);
    alloc_go_on(left);
}

static enum verdict offer(struct rig *r, struct batch *b)
{
    const struct component_type *t = r->c->type;
    if (!t->consume) {
        struct outcome out = {0};
        enum verdict v = t->send(r->c, b, clock_now_ns() + 10 * NS_PER_S, &out);
        batch_unref(b);
        return v;
    }
    struct fake_ack a;
    fake_ack_init(&a);
    return fake_ack_verdict(&a, t->consume(r->c, b, &a.ack));
}

/* Offers the input twice; returns how many records were taken. */
static uint64_t feed(struct rig *r, const struct world *w)
{
    uint64_t taken = 0;
    for (unsigned i = 0; i < 2; i++) {
        enum verdict v = offer(r, batch_ref(inputs[w->in]));
        assert_int_not_equal(v, VERDICT_REJECT);
        taken += v == VERDICT_OK ? inputs[w->in]->records : 0;
    }
    return taken;
}

static int use(struct rig *r, const struct world *w)
{
    struct err e = {.text = ""};
    uint64_t taken = 0;
    int code = 0;
    if (w->flags & STARTED && r->c->type->start)
        code = r->c->type->start(r->c, &e);
    if (code < 0)
        assert_int_not_equal(*e.text, 0);
    if (code == 0 && !(w->flags & NOTHING_IN))
        taken = feed(r, w);
    if (fail_rest)
        alloc_pause(); /* it was short for a while */
    if (r->c->type->stop)
        r->c->type->stop(r->c, clock_now_ns() + 10 * NS_PER_S);
    if (w->flags & KEEPS_ALL && r->sinks[0].records != taken)
        fail_msg("%s: allocation %u failed, %" PRIu64 " records were taken, %" PRIu64 " came out",
                 w->name, fail_number, taken, r->sinks[0].records);
    return code;
}

static void end(struct rig *r)
{
    const unsigned left = alloc_pause();
    if (r->c) {
        for (int s = 0; s < SIGNAL_COUNT; s++)
            fanout_free(r->c->next[s]);
        r->c->type->destroy(r->c);
    }
    for (unsigned k = 0; k < r->sinks[0].ntaken; k++)
        batch_unref(r->sinks[0].taken[k]);
    host_free(r->host);
    config_free(r->config);
    free(r);
    secrets_clear();
    alloc_go_on(left);
}

static int run(const void *arg)
{
    const struct world *w = arg;
    const struct component_type *t = type_of(w);
    struct err e = {.text = ""};
    void *bound = NULL;
    const unsigned left = alloc_pause();
    struct rig *r = calloc(1, sizeof(*r));
    r->host = host_new(&r->settings);
    alloc_go_on(left);
    int code = rig_bind(r, t, w->yaml, &bound, &e);
    struct component_args args = {
        .id = t->name, .signal = w->in, .pipeline = "p", .config = bound, .host = r->host};
    if (code == 0)
        code = t->create(&args, &r->c, &e);
    if (code == 0) {
        add_sink(r, w->out);
        code = use(r, w);
    }
    if (code < 0 && fail_number == 0)
        fail_msg("%s: %s %s", w->name, e.path, e.text);
    end(r);
    return code;
}

static const char actions[] =
    "[{key: a, value: b, action: insert}, {key: string, action: hash}, {key: c, value: [1, {d: "
    "e}], action: upsert}, {key: n, pattern: '^(?P<x>.)', action: extract}, "
    "{pattern: 'p.*', action: delete}, {key: d, converted_type: int, action: convert}]";
static char attributes[2048], resource[2048];

static const char transform[] =
    "error_mode: ignore\n"
    "trace_statements: [{statements: ['set(resource.attributes[\"x\"], Concat([span.name, \"y\"], "
    "\"-\"))', "
    "'replace_pattern(span.name, \"a(.)\", \"$$1\")']}, "
    "{context: spanevent, conditions: ['name != \"\"'], statements: ['set(attributes[\"k\"], "
    "SHA256(name))']}]\n"
    "log_statements: ['merge_maps(log.attributes, ParseJSON(\"{\\\"a\\\": [1]}\"), \"upsert\")']\n";
static const char filter[] =
    "error_mode: ignore\n"
    "traces: {span: ['attributes[\"no\"] == \"such\"', 'IsMatch(name, \"^zz.*\")'], "
    "spanevent: ['name == \"none\"']}\n"
    "logs: {log_record: ['body == \"none\"']}\n"
    "metrics: {metric: ['name == \"none\"'], datapoint: ['attributes[\"x\"] == \"none\"']}\n";
static const char old_filter[] =
    "spans: {exclude: {match_type: regexp, services: ['^no.*$'], attributes: [{key: a, value: "
    "b}]}}\n"
    "logs: {exclude: {match_type: strict, bodies: [none]}}\n"
    "metrics: {exclude: {match_type: strict, metric_names: [none]}}\n";
static const char prometheus[] =
    "config:\n"
    "  global: {scrape_interval: 1h, external_labels: {a: b}}\n"
    "  scrape_configs:\n"
    "    - job_name: j\n"
    "      static_configs: [{targets: ['127.0.0.1:1'], labels: {x: y}}]\n"
    "      file_sd_configs: [{files: ['/nowhere/*.json']}]\n"
    "      basic_auth: {username: u, password: secret-1}\n"
    "      relabel_configs: [{source_labels: [__address__, x], regex: '(.*);y', target_label: z, "
    "replacement: 'a-$$1'}]\n"
    "      metric_relabel_configs: [{source_labels: [__name__], regex: 'go_.*', action: drop}]\n";
static const char otlp[] =
    "protocols:\n"
    "  grpc: {endpoint: '127.0.0.1:0', keepalive: {server_parameters: {time: 1h}}}\n"
    "  http: {endpoint: '127.0.0.1:0', cors: {allowed_origins: ['http://*.x'], allowed_headers: "
    "[a]}}\n";
static const char headers[] = ", headers: {Authorization: 'Bearer token-1', b: c}, sending_queue: "
                              "{queue_size: 5}, retry_on_failure: {max_elapsed_time: 1m}}";
static char http_exporter[512], json_exporter[512], grpc_exporter[512], plain_file[512],
    grouped_file[512], console_receiver[512], token_file[512];

static const struct world worlds[] = {
    {"connector forward", "{}", SIGNAL_TRACES, SIGNAL_TRACES, KEEPS_ALL},
    {"connector span_metrics", "{dimensions: [{name: a, default: b}], metrics_flush_interval: 1h}",
     SIGNAL_TRACES, SIGNAL_METRICS, 0},
    {"processor attributes", attributes, SIGNAL_TRACES, SIGNAL_TRACES, KEEPS_ALL},
    {"processor attributes", attributes, SIGNAL_METRICS, SIGNAL_METRICS, KEEPS_ALL},
    {"processor batch", "{timeout: 1h, send_batch_size: 1000}", SIGNAL_TRACES, SIGNAL_TRACES,
     STARTED | KEEPS_ALL},
    {"processor batch", "{timeout: 1h, send_batch_size: 2, send_batch_max_size: 3}", SIGNAL_METRICS,
     SIGNAL_METRICS, STARTED | KEEPS_ALL},
    {"processor filter", filter, SIGNAL_TRACES, SIGNAL_TRACES, KEEPS_ALL},
    {"processor filter", filter, SIGNAL_METRICS, SIGNAL_METRICS, KEEPS_ALL},
    {"processor filter", old_filter, SIGNAL_LOGS, SIGNAL_LOGS, KEEPS_ALL},
    {"processor gym", "{run_id: r, service_name: s, server_name: n, server_type: t}", SIGNAL_LOGS,
     SIGNAL_LOGS, KEEPS_ALL},
    {"processor resource", resource, SIGNAL_LOGS, SIGNAL_LOGS, KEEPS_ALL},
    {"processor transform", transform, SIGNAL_TRACES, SIGNAL_TRACES, KEEPS_ALL},
    {"processor transform", transform, SIGNAL_LOGS, SIGNAL_LOGS, KEEPS_ALL},
    {"exporter console", "{}", SIGNAL_TRACES, SIGNAL_TRACES, STARTED},
    {"exporter debug", "{verbosity: detailed}", SIGNAL_METRICS, SIGNAL_METRICS, STARTED},
    {"exporter debug", "{verbosity: normal}", SIGNAL_TRACES, SIGNAL_TRACES, STARTED},
    {"exporter nop", "{}", SIGNAL_LOGS, SIGNAL_LOGS, STARTED},
    {"exporter file", plain_file, SIGNAL_TRACES, SIGNAL_TRACES, STARTED},
    {"exporter file", grouped_file, SIGNAL_LOGS, SIGNAL_LOGS, STARTED},
    {"exporter otlp_http", http_exporter, SIGNAL_TRACES, SIGNAL_TRACES, STARTED},
    {"exporter otlp_http", json_exporter, SIGNAL_METRICS, SIGNAL_METRICS, STARTED},
    {"exporter otlp_grpc", grpc_exporter, SIGNAL_TRACES, SIGNAL_TRACES, STARTED},
    {"receiver otlp", otlp, SIGNAL_TRACES, SIGNAL_TRACES, STARTED | NOTHING_IN},
    {"receiver console", console_receiver, SIGNAL_LOGS, SIGNAL_LOGS, STARTED | NOTHING_IN},
    {"receiver nop", "{}", SIGNAL_LOGS, SIGNAL_LOGS, STARTED | NOTHING_IN},
    {"receiver prometheus", prometheus, SIGNAL_METRICS, SIGNAL_METRICS, STARTED | NOTHING_IN},
    {"receiver gym_memory", "{interval: 1h, servers: [{name: a, command_pattern: '^no .*$'}]}",
     SIGNAL_METRICS, SIGNAL_METRICS, STARTED | NOTHING_IN},
    {"extension bearertokenauth", "{tokens: [token-1, token-2]}", SIGNAL_LOGS, SIGNAL_LOGS,
     STARTED | NOTHING_IN},
    {"extension bearertokenauth", token_file, SIGNAL_LOGS, SIGNAL_LOGS, STARTED | NOTHING_IN},
    {"extension basicauth", "{htpasswd: {inline: 'user:password'}}", SIGNAL_LOGS, SIGNAL_LOGS,
     STARTED | NOTHING_IN},
    {"extension basicauth", "{client_auth: {username: u, password: password-1}}", SIGNAL_LOGS,
     SIGNAL_LOGS, STARTED | NOTHING_IN},
    {"extension health_check", "{endpoint: '127.0.0.1:0', path: /x}", SIGNAL_LOGS, SIGNAL_LOGS,
     STARTED | NOTHING_IN},
};

static char folder[] = "/tmp/motel-alloc-XXXXXX";

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

/* Texts that depend on the folder of this run. */
static void make_texts(void)
{
    snprintf(attributes, sizeof(attributes),
             "include: {match_type: regexp, resources: [{key: service.name}]}\n"
             "actions: %s\n",
             actions);
    snprintf(resource, sizeof(resource), "attributes: %s\n", actions);
    snprintf(http_exporter, sizeof(http_exporter), "{endpoint: 'http://127.0.0.1:1'%s", headers);
    snprintf(json_exporter, sizeof(json_exporter),
             "{encoding: json, compression: zstd, endpoint: 'http://127.0.0.1:1'%s", headers);
    snprintf(grpc_exporter, sizeof(grpc_exporter),
             "{tls: {insecure: true}, endpoint: '127.0.0.1:1'%s", headers);
    snprintf(plain_file, sizeof(plain_file), "{path: %s/x.jsonl, rotation: {max_megabytes: 1}}",
             folder);
    snprintf(grouped_file, sizeof(grouped_file),
             "{path: '%s/*/x.jsonl', group_by: {enabled: true, resource_attribute: service.name}}",
             folder);
    snprintf(token_file, sizeof(token_file), "{filename: '%s/tokens'}", folder);
    snprintf(console_receiver, sizeof(console_receiver), "{include: ['%s/*.log']}", folder);
}

static void make_token_file(void)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/tokens", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("token-from-file\nanother-token comment\n", f);
    fclose(f);
}

static void test_components(void **state)
{
    (void)state;
    const char *only = getenv("ALLOC_FAILURE_CASE");
    for (size_t i = 0; i < ARRAY_SIZE(worlds); i++) {
        const struct alloc_case c = {
            .name = worlds[i].name, .run = run, .arg = &worlds[i], .step = 13};
        if (!only || strstr(worlds[i].name, only))
            alloc_case_check(&c);
    }
}

static int own_stdout; /* what the console exporter prints goes nowhere */

static int set_up(void **state)
{
    (void)state;
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    fflush(stdout);
    own_stdout = dup(STDOUT_FILENO);
    assert_true(own_stdout >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0);
    close(nowhere);
    assert_non_null(mkdtemp(folder));
    make_texts();
    make_token_file();
    for (int s = 0; s < SIGNAL_COUNT; s++)
        inputs[s] = rig_all_fields((enum signal)s);
    return 0;
}

static int clean_up(void **state)
{
    (void)state;
    fflush(stdout);
    dup2(own_stdout, STDOUT_FILENO);
    close(own_stdout);
    for (int s = 0; s < SIGNAL_COUNT; s++)
        batch_unref(inputs[s]);
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
    log_configure(&(struct log_options){.level = LOG_OFF}, NULL);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_components)};
    return cmocka_run_group_tests(tests, set_up, clean_up);
}
