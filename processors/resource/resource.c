/*
 * The resource processor: attribute actions on every resource. Spans, points and records below are
 * copied as bytes; the resource itself is rebuilt only when an action changes something. A client
 * sends the same resource again and again, so the last few results are kept and given out without
 * running the actions.
 */
#include <errno.h>
#include <pthread.h>

#include "agent/pipeline/attr_actions.h"
#include "agent/pipeline/component.h"
#include "proto/rewrite.h"

#define CACHE_SLOTS 4
#define CACHE_MAX_BYTES 16384 /* of a resource that is remembered */

struct resource_config {
    struct cfg_list attributes; /* of struct attr_action_config */
};

struct slot {
    struct buf *in, *out; /* out = NULL: nothing changes */
};

struct resource {
    struct component base;
    struct attr_actions *actions;
    pthread_mutex_t lock; /* of the slots; who does not get it at once goes without them */
    struct slot slots[CACHE_SLOTS];
    unsigned next_slot;
};

extern const struct component_type processor_resource;

/* ---- life cycle ---- */

static int resource_check(const void *config, struct err *reterr)
{
    const struct resource_config *c = config;
    _cleanup_(attr_actions_freep) struct attr_actions *actions = NULL;
    if (c->attributes.n == 0)
        return err_at(reterr, "attributes", "at least one action must be given");
    return attr_actions_new(&c->attributes, "attributes", NULL, &actions, reterr);
}

static void resource_destroy(struct component *c)
{
    struct resource *p = (struct resource *)c;
    if (!p)
        return;
    for (size_t i = 0; i < CACHE_SLOTS; i++) {
        buf_unref(p->slots[i].in);
        buf_unref(p->slots[i].out);
    }
    attr_actions_free(p->actions);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static int resource_create(const struct component_args *args, struct component **ret,
                           struct err *reterr)
{
    const struct resource_config *c = args->config;
    struct resource *p = calloc(1, sizeof(*p));
    if (!p)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&p->base, &processor_resource, args);
    pthread_mutex_init(&p->lock, NULL);
    int r = attr_actions_new(&c->attributes, "attributes", &p->base.logger, &p->actions, reterr);
    if (r < 0)
        resource_destroy(&p->base);
    else
        *ret = &p->base;
    return r;
}

/* ---- data path ---- */

static bool recall(struct resource *p, struct bytes in, struct buf *out, enum edit *ret)
{
    bool found = false;
    if (pthread_mutex_trylock(&p->lock) != 0)
        return false;
    for (size_t i = 0; !found && i < CACHE_SLOTS; i++) {
        const struct slot *s = &p->slots[i];
        if (!s->in || !bytes_eq(buf_bytes(s->in), in))
            continue;
        *ret = s->out ? EDIT_REPLACE : EDIT_KEEP;
        if (s->out && buf_append(out, s->out->data, s->out->len) < 0)
            *ret = EDIT_ERROR;
        found = true;
    }
    pthread_mutex_unlock(&p->lock);
    return found;
}

static struct buf *copy_of(struct bytes b)
{
    _cleanup_buf_ struct buf *copy = buf_new(0);
    return copy && buf_reserve(copy, b.len) == 0 && buf_append(copy, b.data, b.len) == 0
               ? TAKE_PTR(copy)
               : NULL;
}

static void remember(struct resource *p, struct bytes in, const struct bytes *out)
{
    if (in.len > CACHE_MAX_BYTES || (out && out->len > CACHE_MAX_BYTES))
        return;
    struct slot new = {copy_of(in), out ? copy_of(*out) : NULL};
    bool complete = new.in && (!out || new.out);
    if (complete && pthread_mutex_trylock(&p->lock) == 0) {
        struct slot *s = &p->slots[p->next_slot++ % CACHE_SLOTS];
        struct slot old = *s;
        *s = new;
        new = old;
        pthread_mutex_unlock(&p->lock);
    }
    buf_unref(new.in);
    buf_unref(new.out);
}

/* Attributes first, then the other fields as they came. */
static int write_resource(const struct attr_list *l, struct bytes in, struct buf *out)
{
    struct wire_reader r = wire_reader(in);
    struct wire_field f;
    int e = attr_list_write(l, 1, out);
    while (e == 0 && wire_next(&r, &f) > 0)
        if (f.number != 1)
            e = buf_append(out, f.whole.data, f.whole.len);
    return e;
}

static enum edit edit_resource(void *ctx, struct bytes in, struct buf *out)
{
    struct resource *p = ctx;
    struct attr_list l;
    enum edit result = EDIT_KEEP;
    if (recall(p, in, out, &result))
        return result;
    int r = attr_list_read(&l, in, 1);
    if (r == 0)
        r = attr_actions_run(p->actions, &l);
    if (r == 0 && l.changed) {
        r = write_resource(&l, in, out);
        result = EDIT_REPLACE;
    }
    attr_list_done(&l);
    if (r < 0)
        return EDIT_ERROR;
    struct bytes new = buf_bytes(out);
    remember(p, in, result == EDIT_REPLACE ? &new : NULL);
    return result;
}

static enum verdict resource_consume(struct component *c, struct batch *b, struct ack *ack)
{
    const struct otlp_rewriter rw = {.resource = edit_resource, .ctx = c};
    struct batch *out = NULL;
    int r = otlp_rewrite(&rw, b, &out);
    batch_unref(b);
    if (r < 0)
        return ack_answer(ack, VERDICT_RETRY, 0, "out of memory");
    return component_emit(c, out, ack);
}

static const struct cfg_field fields[] = {
    {.key = "attributes",
     .kind = BIND_LIST,
     CFG_AT(struct resource_config, attributes),
     .elem = &attr_action_elem,
     .required = true,
     .help = "Actions, run in this order on the attributes of every resource."},
    {0}};

const struct component_type processor_resource = {
    .kind = KIND_PROCESSOR,
    .name = "resource",
    .accepts = SIGNALS_ALL,
    .emits = SIGNALS_ALL,
    .stability = {"beta", "beta", "beta"},
    .help = "Sets, changes and removes attributes of resources.",
    .fields = fields,
    .config_size = sizeof(struct resource_config),
    .check = resource_check,
    .create = resource_create,
    .destroy = resource_destroy,
    .consume = resource_consume,
};
