/* Components in a row without the program around them. */
#include "agent/pipeline/graph.h"
#include "tests/guard/guard.h"

#include <stdio.h>

struct host *guard_host(void)
{
    static const struct motel_settings settings;
    static struct host *h;
    if (!h)
        h = host_new(&settings);
    guard_must(h, "no host");
    return h;
}

const void *guard_bind(const struct cfg_field *fields, size_t size, const char *yaml,
                       struct config **ret)
{
    struct cfg_errors errs = {0};
    *ret = config_load_text("guard.yaml", yaml, &errs);
    guard_must(*ret, "the configuration is no YAML");
    struct cfg_binder binder = {.arena = (*ret)->arena, .errors = &errs};
    void *bound = arena_calloc((*ret)->arena, size + 1);
    const bool good = bound && cfg_bind(&binder, fields, (*ret)->root, "x", bound) == 0;
    if (!good && errs.n)
        fprintf(stderr, "%s: %s\n", errs.items[0].path, errs.items[0].text);
    guard_must(good, "the configuration is wrong");
    cfg_errors_done(&errs);
    return bound;
}

void made_init(struct made *m, const struct component_type *type, const char *yaml,
               struct component *next, enum signal emits)
{
    struct err e = {.text = ""};
    m->bound = guard_bind(type->fields, type->config_size, yaml, &m->config);
    const struct component_args args = {.id = type->name,
                                        .signal = SIGNAL_TRACES,
                                        .pipeline = "traces",
                                        .config = m->bound,
                                        .host = guard_host()};
    const bool good =
        (!type->check || type->check(m->bound, &e) == 0) && type->create(&args, &m->c, &e) == 0;
    guard_must(good, e.text);
    if (!next)
        return;
    m->c->next[emits] = fanout_new(1);
    guard_must(m->c->next[emits], "no memory");
    fanout_set(m->c->next[emits], 0, next, NULL, 1);
}

void made_done(struct made *m)
{
    if (m->c->type->stop)
        m->c->type->stop(m->c, 0);
    for (int s = 0; s < SIGNAL_COUNT; s++)
        fanout_free(m->c->next[s]);
    m->c->type->destroy(m->c);
    config_free(m->config);
}

/* ---- the end of the chain ---- */

static struct batch *last;

static enum verdict end_consume(struct component *c, struct batch *b, struct ack *ack)
{
    (void)c;
    batch_unref(last);
    last = b;
    ack->now = (struct outcome){0};
    return VERDICT_OK;
}

static const struct component_type end_type = {.kind = KIND_EXPORTER, .consume = end_consume};
struct component end_component = {.type = &end_type, .id = "end"};

struct batch *end_take(void)
{
    return TAKE_PTR(last);
}

static void never(struct ack *ack, enum verdict v, const struct outcome *out)
{
    (void)ack, (void)v, (void)out;
    guard_must(false, "an answer came late");
}

void guard_offer(struct component *c, struct batch *b)
{
    struct ack ack = {.done = never, .owed = ACK_ALL};
    guard_must(c->type->consume(c, b, &ack) == VERDICT_OK, "a batch was refused");
}
