/* Graphs of fake components: who is made, how data flows, the order of start and stop, and what is
 * undone. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/pipeline/graph_parts.h"
#include "agent/pipeline/queue_parts.h"
#include "fake_pipeline.h"

/* ---- components that write down what happens to them ---- */

static char diary[4000];
static const char *fail_create, *fail_start; /* an id */
static uint64_t stop_deadlines_ns[64];
static unsigned nstops;

static void note(const char *what, const struct component *c)
{
    size_t n = strlen(diary);
    const char *pipeline = c->logger.pipeline;
    snprintf(diary + n, sizeof(diary) - n, "%s%s %s%s%s", n ? ", " : "", what, c->id,
             pipeline ? "@" : "", pipeline ? pipeline : "");
}

struct fake {
    struct component base;
    enum verdict verdict;
    unsigned records[SIGNAL_COUNT];
    bool through; /* was told to hand requests through */
};

static struct fake *made[64];
static unsigned nmade;

/* The n-th instance of an id; NULL = there are not so many. */
static struct fake *find(const char *id, unsigned n)
{
    for (unsigned i = 0; i < nmade; i++)
        if (strcmp(made[i]->base.id, id) == 0 && n-- == 0)
            return made[i];
    return NULL;
}

static const struct component_type types[KIND_COUNT];

static int fake_create_kind(const struct component_args *args, enum component_kind kind,
                            const struct component_type *type, struct component **ret,
                            struct err *reterr)
{
    (void)kind;
    if (fail_create && strcmp(args->id, fail_create) == 0)
        return err_at(reterr, "deep::key", "is wrong");
    struct fake *f = calloc(1, sizeof(*f));
    component_init(&f->base, type, args);
    made[nmade++] = f;
    *ret = &f->base;
    note("create", &f->base);
    return 0;
}

static int fake_start(struct component *c, struct err *reterr)
{
    note("start", c);
    return fail_start && strcmp(c->id, fail_start) == 0 ? err_set(reterr, -EADDRINUSE, "no luck")
                                                        : 0;
}

static void fake_stop(struct component *c, uint64_t deadline_ns)
{
    note("stop", c);
    stop_deadlines_ns[nstops++] = deadline_ns;
}

static void fake_destroy(struct component *c)
{
    if (!c)
        return;
    note("destroy", c);
    free(container_of(c, struct fake, base));
}

static void fake_ready(struct component *c, bool ready)
{
    note(ready ? "ready" : "unready", c);
}

static const void *fake_capability(struct component *c, enum capability kind)
{
    static const struct store_settings settings = {.directory = "/nonexistent"};
    if (kind == CAP_STORAGE)
        return strcmp(c->id, "x") == 0 ? &settings : NULL;
    return kind == CAP_CLIENT_AUTH ? c->id : NULL;
}

static enum verdict fake_pass(struct component *c, struct batch *b, struct ack *ack)
{
    container_of(c, struct fake, base)->records[b->signal] += b->records;
    return component_emit(c, b, ack);
}

/* A connector that makes something else of what it gets. */
static enum verdict fake_connect(struct component *c, struct batch *b, struct ack *ack)
{
    enum signal to = c->next[SIGNAL_METRICS] ? SIGNAL_METRICS : b->signal;
    struct batch *made_of = fake_batch(to, b->records);
    container_of(c, struct fake, base)->records[b->signal] += b->records;
    batch_unref(b);
    return component_emit(c, made_of, ack);
}

static enum verdict fake_take(struct component *c, struct batch *b, struct ack *ack)
{
    struct fake *f = container_of(c, struct fake, base);
    enum verdict v = f->verdict;
    if (v == VERDICT_OK)
        f->records[b->signal] += b->records;
    batch_unref(b);
    ack->now = (struct outcome){0};
    return v;
}

static enum verdict fake_send(struct component *c, const struct batch *b, uint64_t deadline_ns,
                              struct outcome *out)
{
    (void)deadline_ns;
    *out = (struct outcome){0};
    metric_add(metric_counter(c->host, "fake_sent", "", signal_name(b->signal)), b->records);
    return VERDICT_OK;
}

static const struct exporter_settings *fake_settings(const void *config)
{
    static struct queue_settings queue = {.num_consumers = 1, .queue_size = 10};
    static const struct exporter_settings settings = {.queue = &queue};
    (void)config;
    return &settings;
}

#define CREATE(kind)                                                                               \
    static int create_##kind(const struct component_args *a, struct component **ret,               \
                             struct err *reterr)                                                   \
    {                                                                                              \
        return fake_create_kind(a, kind, &types[kind], ret, reterr);                               \
    }
CREATE(KIND_RECEIVER)
CREATE(KIND_PROCESSOR)
CREATE(KIND_CONNECTOR)
CREATE(KIND_EXPORTER)
CREATE(KIND_EXTENSION)

static const struct component_type types[KIND_COUNT] = {
    [KIND_RECEIVER] = {.kind = KIND_RECEIVER,
                       .name = "r",
                       .emits = SIGNALS_ALL,
                       .create = create_KIND_RECEIVER,
                       .start = fake_start,
                       .stop = fake_stop,
                       .destroy = fake_destroy},
    [KIND_PROCESSOR] = {.kind = KIND_PROCESSOR,
                        .name = "p",
                        .accepts = SIGNALS_ALL,
                        .create = create_KIND_PROCESSOR,
                        .start = fake_start,
                        .stop = fake_stop,
                        .destroy = fake_destroy,
                        .consume = fake_pass},
    [KIND_CONNECTOR] = {.kind = KIND_CONNECTOR,
                        .name = "c",
                        .accepts = SIGNALS_ALL,
                        .emits = SIGNALS_ALL,
                        .create = create_KIND_CONNECTOR,
                        .start = fake_start,
                        .stop = fake_stop,
                        .destroy = fake_destroy,
                        .consume = fake_connect},
    [KIND_EXPORTER] = {.kind = KIND_EXPORTER,
                       .name = "e",
                       .accepts = SIGNALS_ALL,
                       .create = create_KIND_EXPORTER,
                       .start = fake_start,
                       .stop = fake_stop,
                       .destroy = fake_destroy,
                       .consume = fake_take},
    [KIND_EXTENSION] = {.kind = KIND_EXTENSION,
                        .name = "x",
                        .create = create_KIND_EXTENSION,
                        .start = fake_start,
                        .stop = fake_stop,
                        .destroy = fake_destroy,
                        .ready = fake_ready,
                        .capability = fake_capability},
};

static int create_queued(const struct component_args *a, struct component **ret,
                         struct err *reterr);
static const struct component_type queued_type = {.kind = KIND_EXPORTER,
                                                  .name = "q",
                                                  .accepts = SIGNALS_ALL,
                                                  .create = create_queued,
                                                  .start = fake_start,
                                                  .stop = fake_stop,
                                                  .destroy = fake_destroy,
                                                  .send = fake_send,
                                                  .settings = fake_settings};
static int create_queued(const struct component_args *a, struct component **ret, struct err *reterr)
{
    return fake_create_kind(a, KIND_EXPORTER, &queued_type, ret, reterr);
}
/* An exporter with a queue on disk, and one that is so for nothing: its requests are never queued.
 */
static const struct exporter_settings *disk_settings(const void *config)
{
    static struct queue_settings queue = {
        .num_consumers = 1, .queue_size = 10, .storage = {.id = "x"}};
    static const struct exporter_settings settings = {.queue = &queue};
    (void)config;
    return &settings;
}
static int create_disk(const struct component_args *a, struct component **ret, struct err *reterr);
static const struct component_type disk_type = {.kind = KIND_EXPORTER,
                                                .name = "d",
                                                .accepts = SIGNALS_ALL,
                                                .create = create_disk,
                                                .destroy = fake_destroy,
                                                .send = fake_send,
                                                .settings = disk_settings};
static int create_disk(const struct component_args *a, struct component **ret, struct err *reterr)
{
    return fake_create_kind(a, KIND_EXPORTER, &disk_type, ret, reterr);
}
static int create_forward(const struct component_args *a, struct component **ret,
                          struct err *reterr);
static const struct component_type forward_type = {.kind = KIND_CONNECTOR,
                                                   .name = "f",
                                                   .accepts = SIGNALS_ALL,
                                                   .emits = SIGNALS_ALL,
                                                   .same_signal = true,
                                                   .create = create_forward,
                                                   .destroy = fake_destroy,
                                                   .consume = fake_pass};
static int create_forward(const struct component_args *a, struct component **ret,
                          struct err *reterr)
{
    return fake_create_kind(a, KIND_CONNECTOR, &forward_type, ret, reterr);
}
static int create_holder(const struct component_args *a, struct component **ret,
                         struct err *reterr);
static void holder_through(struct component *c, struct batch_limits *ret)
{
    container_of(c, struct fake, base)->through = true;
    *ret = (struct batch_limits){.timeout_ns = 5, .min_records = 2, .max_records = 3};
}
static const struct component_type holder_type = {.kind = KIND_PROCESSOR,
                                                  .name = "ph",
                                                  .accepts = SIGNALS_ALL,
                                                  .create = create_holder,
                                                  .destroy = fake_destroy,
                                                  .consume = fake_pass,
                                                  .hand_through = holder_through};
static int create_holder(const struct component_args *a, struct component **ret, struct err *reterr)
{
    return fake_create_kind(a, KIND_PROCESSOR, &holder_type, ret, reterr);
}
static const struct component_type traces_only = {.kind = KIND_EXPORTER,
                                                  .name = "t",
                                                  .accepts = SIGNAL_BIT(SIGNAL_TRACES),
                                                  .create = create_queued,
                                                  .destroy = fake_destroy};

/* ---- settings out of one line: "traces/a: r p -> e c; metrics: c -> e; x y" (extensions) ---- */

struct world {
    struct host *host;
    struct component_settings components[32];
    size_t ncomponents;
    struct pipeline_settings pipelines[8];
    const struct component_settings *lists[128];
    size_t nlists;
    struct service_settings service;
    struct cfg_errors errs;
    struct graph *graph;
    char text[400];
};

static const struct component_type *type_of(const char *id)
{
    if (strncmp(id, "ph", 2) == 0)
        return &holder_type;
    switch (*id) {
    case 'd': return &disk_type;
    case 'f': return &forward_type;
    case 'r': return &types[KIND_RECEIVER];
    case 'p': return &types[KIND_PROCESSOR];
    case 'c': return &types[KIND_CONNECTOR];
    case 'q': return &queued_type;
    case 't': return &traces_only;
    case 'x': return &types[KIND_EXTENSION];
    default: return &types[KIND_EXPORTER];
    }
}

static const struct component_settings *settings_of(struct world *w, const char *id)
{
    for (size_t i = 0; i < w->ncomponents; i++)
        if (strcmp(w->components[i].id, id) == 0)
            return &w->components[i];
    struct component_settings *s = &w->components[w->ncomponents++];
    *s = (struct component_settings){
        .id = id, .type = type_of(id), .pos = {"c.yaml", (int)w->ncomponents, 3}};
    return s;
}

static void parse_pipeline(struct world *w, char *text)
{
    char *save = NULL, *word = strtok_r(text, " ", &save);
    if (word[strlen(word) - 1] != ':') { /* extensions */
        w->service.extensions = &w->lists[w->nlists];
        for (; word; word = strtok_r(NULL, " ", &save), w->service.nextensions++)
            w->lists[w->nlists++] = settings_of(w, word);
        return;
    }
    struct pipeline_settings *p = &w->pipelines[w->service.npipelines++];
    word[strlen(word) - 1] = '\0';
    p->name = word;
    p->signal = *word == 't' ? SIGNAL_TRACES : *word == 'm' ? SIGNAL_METRICS : SIGNAL_LOGS;
    p->receivers = &w->lists[w->nlists];
    bool after = false;
    while ((word = strtok_r(NULL, " ", &save))) {
        if (strcmp(word, "->") == 0) {
            p->exporters = &w->lists[w->nlists];
            after = true;
            continue;
        }
        bool processor = !after && *word == 'p';
        if (processor && !p->nprocessors)
            p->processors = &w->lists[w->nlists];
        w->lists[w->nlists++] = settings_of(w, word);
        *(after ? &p->nexporters : processor ? &p->nprocessors : &p->nreceivers) += 1;
    }
}

static int build(struct world *w, const char *text)
{
    char *save = NULL;
    *diary = '\0';
    nmade = nstops = 0;
    fail_start = NULL;
    *w = (struct world){.host = host_new(NULL)};
    snprintf(w->text, sizeof(w->text), "%s", text);
    for (char *part = strtok_r(w->text, ";", &save), *next; part; part = next) {
        next = strtok_r(NULL, ";", &save);
        parse_pipeline(w, part);
    }
    w->service.pipelines = w->pipelines;
    return graph_build(w->host, &w->service, &w->errs, &w->graph);
}

static void end(struct world *w)
{
    w->graph = graph_free(w->graph);
    cfg_errors_done(&w->errs);
    host_free(w->host);
}

static void assert_diary(const char *want)
{
    assert_string_equal(diary, want);
    *diary = '\0';
}

static uint64_t in_ms(uint64_t ms)
{
    return clock_now_ns() + ms * NS_PER_MS;
}

/* A new batch from a receiver. */
static enum verdict emit(const char *receiver, enum signal s, uint32_t records, struct ack *ack)
{
    *ack = (struct ack){.owed = ACK_ALL};
    return component_emit(&find(receiver, 0)->base, fake_batch(s, records), ack);
}

/* ---- order ---- */

static void test_life(void **state)
{
    (void)state;
    struct world w;
    struct err e = {0};
    assert_int_equal(build(&w, "traces: r p1 p2 -> e; x1 x2"), 0);
    assert_diary("create x1, create x2, create e, create p2@traces, create p1@traces, create r");
    assert_int_equal(graph_start(w.graph, &e), 0);
    assert_diary("start x1, start x2, start e, start p2@traces, start p1@traces, start r, ready "
                 "x1, ready x2");
    graph_stop(w.graph, in_ms(1000));
    assert_diary(
        "unready x1, unready x2, stop r, stop p1@traces, stop p2@traces, stop e, stop x2, stop x1");
    graph_stop(w.graph, in_ms(1000));
    assert_diary("");
    graph_free(TAKE_PTR(w.graph));
    assert_diary(
        "destroy r, destroy p2@traces, destroy p1@traces, destroy e, destroy x1, destroy x2");
    end(&w);
}

static void test_flow_order_through_connectors(void **state)
{
    (void)state;
    struct world w;
    struct err e = {0};
    assert_int_equal(build(&w, "metrics: c p -> e;traces/1: r p -> c;traces/2: r -> c e"), 0);
    *diary = '\0';
    assert_int_equal(graph_start(w.graph, &e), 0);
    assert_diary("start e, start p@metrics, start c, start p@traces/1, start r");
    graph_stop(w.graph, in_ms(1000));
    assert_diary("stop r, stop p@traces/1, stop c, stop p@metrics, stop e");
    end(&w);
}

static void test_stop_shares_the_time(void **state)
{
    (void)state;
    struct world w;
    struct err e = {0};
    assert_int_equal(build(&w, "traces: r p -> q e;x"), 0);
    assert_int_equal(graph_start(w.graph, &e), 0);
    *diary = '\0';
    uint64_t start_ns = clock_now_ns(), deadline_ns = start_ns + 100 * NS_PER_S;
    graph_stop(w.graph, deadline_ns);
    assert_diary("unready x, stop r, stop p@traces, stop e, stop q, stop x");
    const double want[] = {25, 75, 99.8, 99.8, 100};
    for (unsigned i = 0; i < 5; i++) {
        double got = (double)(stop_deadlines_ns[i] - start_ns) / 1e9;
        assert_true(got > want[i] - 0.1 && got < want[i] + 0.1);
    }
    end(&w);
}

static void test_failed_start_is_undone(void **state)
{
    (void)state;
    const struct {
        const char *id, *text, *diary;
    } cases[] = {
        {"x2", "failed to start extensions: failed to start \"x2\" extension: no luck",
         "start x1, start x2, stop x2, stop x1"},
        {"e", "cannot start pipelines: failed to start \"e\" exporter: no luck",
         "start x1, start x2, start e, stop e, stop x2, stop x1"},
        {"r", "cannot start pipelines: failed to start \"r\" receiver: no luck",
         "start x1, start x2, start e, start p@logs, start r, stop r, stop p@logs, stop e, stop "
         "x2, stop x1"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world w;
        struct err e = {0};
        assert_int_equal(build(&w, "logs: r p -> e; x1 x2"), 0);
        *diary = '\0';
        fail_start = cases[i].id;
        assert_int_equal(graph_start(w.graph, &e), -EADDRINUSE);
        assert_string_equal(e.text, cases[i].text);
        assert_diary(cases[i].diary);
        assert_null(host_extension(w.host, "x1", CAP_CLIENT_AUTH));
        end(&w);
    }
}

/* ---- mistakes ---- */

static void test_failed_create(void **state)
{
    (void)state;
    struct world w;
    fail_create = "p";
    assert_int_equal(build(&w, "traces: r p -> e"), -EINVAL);
    fail_create = NULL;
    assert_null(w.graph);
    assert_diary("create e, create r, destroy r, destroy e"); /* goes on, to find all mistakes */
    assert_int_equal(w.errs.n, 1);
    assert_non_null(strstr(w.errs.items[0].text,
                           "failed to create \"p\" processor, in pipeline \"traces\": is wrong"));
    assert_int_equal(w.errs.items[0].line, 2);
    end(&w);
}

static void test_cycles(void **state)
{
    (void)state;
    const struct {
        const char *config, *text; /* text NULL = good */
    } cases[] = {
        {"traces/a: r c1 -> c2;traces/b: c2 -> c1 e",
         "cycle detected: connector \"c2\" (traces to traces) -> connector \"c1\" (traces to "
         "traces) -> connector \"c2\" (traces to traces)"},
        {"traces: r -> c1;logs: c1 c2 -> c2",
         "cycle detected: connector \"c2\" (logs to logs) -> connector \"c2\" (logs to logs)"},
        {"traces: r -> c1 c2;logs/a: c1 -> e;logs/b: c2 -> e", NULL},
        {"traces: r -> c1 c2;logs/a: c1 c2 -> c3;logs/b: c3 -> e", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world w;
        assert_int_equal(build(&w, cases[i].config), cases[i].text ? -EINVAL : 0);
        assert_int_equal(w.errs.n, cases[i].text ? 1 : 0);
        if (cases[i].text)
            assert_non_null(strstr(w.errs.items[0].text, cases[i].text));
        end(&w);
    }
}

static void test_signal_not_supported(void **state)
{
    (void)state;
    struct world w;
    assert_int_equal(build(&w, "traces: r -> t;logs: r -> t"), -EINVAL);
    assert_int_equal(w.errs.n, 1);
    assert_non_null(strstr(w.errs.items[0].text, "failed to create \"t\" exporter"));
    assert_non_null(strstr(w.errs.items[0].text, "telemetry type is not supported"));
    end(&w);
}

/* ---- flow ---- */

static void test_instances_and_flow(void **state)
{
    (void)state;
    struct world w;
    struct ack ack = {0};
    assert_int_equal(build(&w, "traces/1: r p -> e1 e2;traces/2: r r2 -> e1;logs: r p -> e1"), 0);
    assert_null(find("r", 1));
    assert_null(find("e1", 1));
    assert_non_null(find("p", 1)); /* one per pipeline */
    assert_int_equal(emit("r", SIGNAL_TRACES, 3, &ack), VERDICT_OK);
    assert_int_equal(find("e1", 0)->records[SIGNAL_TRACES], 6); /* over both pipelines */
    assert_int_equal(find("e2", 0)->records[SIGNAL_TRACES], 3);
    assert_int_equal(emit("r2", SIGNAL_TRACES, 5, &ack), VERDICT_OK);
    assert_int_equal(find("e1", 0)->records[SIGNAL_TRACES], 11);
    assert_int_equal(find("e2", 0)->records[SIGNAL_TRACES], 3);
    assert_int_equal(emit("r2", SIGNAL_LOGS, 5, &ack), VERDICT_OK); /* r2 has no logs pipeline */
    assert_int_equal(emit("r", SIGNAL_LOGS, 1, &ack), VERDICT_OK);
    assert_int_equal(find("e1", 0)->records[SIGNAL_LOGS], 1);
    const char *labels = "otel_signal=\"traces\",processor=\"p\"";
    assert_int_equal(
        metric_value(metric_counter(w.host, "otelcol_processor_incoming_items", "", labels)), 3);
    assert_int_equal(
        metric_value(metric_counter(w.host, "otelcol_processor_outgoing_items", "", labels)), 3);
    end(&w);
}

/* Every edge to an exporter has a bit of its own, whatever lies between: repeated offers find only
 * those that refused. */
static void test_masks(void **state)
{
    (void)state;
    static const char *const exporters[] = {"e1", "e2", "e3", "e4"};
    for (unsigned refusing = 0; refusing < 16; refusing++) {
        struct world w;
        struct ack ack = {0};
        assert_int_equal(build(&w, "traces/1: r p -> e1 c;traces/2: r -> e2;metrics: c p -> e3 e4"),
                         0);
        for (unsigned i = 0; i < 4; i++)
            find(exporters[i], 0)->verdict = (refusing >> i) & 1 ? VERDICT_RETRY : VERDICT_OK;
        assert_int_equal(emit("r", SIGNAL_TRACES, 1, &ack), refusing ? VERDICT_RETRY : VERDICT_OK);
        for (unsigned i = 0; i < 4; i++)
            find(exporters[i], 0)->verdict = VERDICT_OK;
        if (refusing)
            assert_int_equal(
                component_emit(&find("r", 0)->base, fake_batch(SIGNAL_TRACES, 1), &ack),
                VERDICT_OK);
        for (unsigned i = 0; i < 4; i++) {
            const struct fake *f = find(exporters[i], 0);
            assert_int_equal(f->records[SIGNAL_TRACES] + f->records[SIGNAL_METRICS], 1);
        }
        end(&w);
    }
}

static void test_one_queue_per_signal(void **state)
{
    (void)state;
    struct world w;
    struct err e = {0};
    struct ack ack = {0};
    assert_int_equal(build(&w, "traces/1: r -> q;traces/2: r -> q;logs: r -> q"), 0);
    assert_int_equal(graph_start(w.graph, &e), 0);
    assert_int_equal(emit("r", SIGNAL_TRACES, 2, &ack), VERDICT_OK);
    assert_int_equal(emit("r", SIGNAL_LOGS, 7, &ack), VERDICT_OK);
    graph_stop(w.graph, in_ms(10000));
    assert_int_equal(metric_value(metric_counter(w.host, "fake_sent", "", "traces")), 4);
    assert_int_equal(metric_value(metric_counter(w.host, "fake_sent", "", "logs")), 7);
    assert_int_equal(
        metric_value(metric_counter(w.host, "otelcol_exporter_sent_spans", "", "exporter=\"q\"")),
        4);
    end(&w);
}

/* Who collects requests hands them through when every way from it ends in a queue on disk. */
static const struct {
    const char *pipelines,
        *through; /* "ph1 ph2@logs": ids, and pipelines where there are several */
} durable[] = {
    {"traces: r ph -> d", "ph@traces "},
    {"traces: r ph p -> d1 d2", "ph@traces "},
    {"traces: r p ph1 ph2 -> d", "ph2@traces ph1@traces "},
    {"traces: r ph -> q", ""},
    {"traces: r ph -> e", ""},
    {"traces: r ph -> d q", ""},
    {"traces: r ph -> d e", ""},
    {"traces: r ph -> d;logs: r ph -> d e", "ph@traces "},
    {"traces: r ph -> d;logs: r ph -> d", "ph@traces ph@logs "},
    {"traces: r ph -> c;metrics: c -> d", ""},
    {"traces: r ph -> f;traces/2: f -> d", "ph@traces "},
    {"traces: r ph -> f d1;traces/2: f p -> d2;traces/3: f ph -> d3", "ph@traces ph@traces/3 "},
    {"traces: r ph -> f d1;traces/2: f p -> q;traces/3: f ph -> d3", "ph@traces/3 "},
    {"traces: r ph -> f;traces/2: f -> c;logs: c ph -> d", "ph@logs "},
    {"traces: r ph -> f;traces/2: f -> f2;traces/3: f2 -> d", "ph@traces "},
    {"traces: r ph -> f;logs: r -> f;traces/2: f -> d;logs/2: f -> q", "ph@traces "},
};

static void test_hand_through(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(durable); i++) {
        struct world w;
        char got[200] = "", text[300];
        snprintf(text, sizeof(text), "%s;x", durable[i].pipelines);
        assert_int_equal(build(&w, text), 0);
        for (size_t k = 0; k < w.service.npipelines; k++)
            for (unsigned n = 0; n < nmade; n++) {
                const char *pipeline = made[n]->base.logger.pipeline;
                size_t len = strlen(got);
                if (made[n]->through && strcmp(pipeline, w.pipelines[k].name) == 0)
                    snprintf(got + len, sizeof(got) - len, "%s@%s ", made[n]->base.id, pipeline);
            }
        if (strcmp(got, durable[i].through) != 0)
            fail_msg("%s: %s", durable[i].pipelines, got);
        end(&w);
    }
}

static const struct queue *queue_of(const struct world *w, const char *id, enum signal s)
{
    for (size_t i = 0; i < w->graph->nnodes; i++)
        if (strcmp(w->graph->nodes[i].settings->id, id) == 0)
            return w->graph->nodes[i].queues[s];
    return NULL;
}

/* The queues batch in the place of those who hand through, and only these. */
static void test_limits_reach_the_queues(void **state)
{
    (void)state;
    struct world w;
    assert_int_equal(build(&w,
                           "traces: r ph -> f d1;traces/2: f -> d2;logs: r ph -> d1 q;logs/2: r -> "
                           "d3;metrics: r ph -> d3;x"),
                     0);
    const struct {
        const char *id;
        enum signal signal;
        bool batching;
    } want[] = {{"d1", SIGNAL_TRACES, true}, {"d2", SIGNAL_TRACES, true},
                {"d1", SIGNAL_LOGS, false},  {"q", SIGNAL_LOGS, false},
                {"d3", SIGNAL_LOGS, false},  {"d3", SIGNAL_METRICS, true}};
    for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
        const struct queue *q = queue_of(&w, want[i].id, want[i].signal);
        assert_non_null(q);
        assert_int_equal(q->batching, want[i].batching);
        if (q->batching)
            assert_true(q->batch.flush_timeout_ns == 5 && q->batch.min_size == 2 &&
                        q->batch.max_size == 3 && q->batch.sizer == SIZER_ITEMS);
    }
    end(&w);
}

static void test_extensions(void **state)
{
    (void)state;
    struct world w;
    struct err e = {0};
    assert_int_equal(build(&w, "logs: r -> e;x1 x2"), 0);
    assert_null(host_extension(w.host, "x1", CAP_CLIENT_AUTH)); /* not started */
    assert_int_equal(graph_start(w.graph, &e), 0);
    assert_string_equal(host_extension(w.host, "x2", CAP_CLIENT_AUTH), "x2");
    assert_null(host_extension(w.host, "x2", CAP_STORAGE));
    assert_null(host_extension(w.host, "x3", CAP_CLIENT_AUTH));
    graph_stop(w.graph, in_ms(1000));
    end(&w);
}

int main(void)
{
    log_configure(&(struct log_options){.level = LOG_OFF}, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_flow_order_through_connectors),
        cmocka_unit_test(test_stop_shares_the_time),
        cmocka_unit_test(test_failed_start_is_undone),
        cmocka_unit_test(test_failed_create),
        cmocka_unit_test(test_cycles),
        cmocka_unit_test(test_signal_not_supported),
        cmocka_unit_test(test_instances_and_flow),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_one_queue_per_signal),
        cmocka_unit_test(test_hand_through),
        cmocka_unit_test(test_limits_reach_the_queues),
        cmocka_unit_test(test_extensions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
