/* The resource processor: attribute actions on every resource. */
#include <errno.h>

#include "agent/pipeline/attr_actions.h"
#include "agent/pipeline/component.h"
#include "agent/pipeline/resource_editor.h"

struct resource_config {
    struct cfg_list attributes; /* of struct attr_action_config */
};

struct resource {
    struct component base;
    struct attr_actions *actions;
    struct resource_editor *editor;
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
    resource_editor_free(p->editor);
    attr_actions_free(p->actions);
    free(p);
}

static int edit(void *actions, struct attr_list *l)
{
    return attr_actions_run(actions, l);
}

static int resource_create(const struct component_args *args, struct component **ret,
                           struct err *reterr)
{
    const struct resource_config *c = args->config;
    struct resource *p = calloc(1, sizeof(*p));
    if (!p)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&p->base, &processor_resource, args);
    int r = attr_actions_new(&c->attributes, "attributes", &p->base.logger, &p->actions, reterr);
    if (r == 0 && !(p->editor = resource_editor_new(edit, p->actions)))
        r = err_set(reterr, -ENOMEM, "out of memory");
    if (r < 0)
        resource_destroy(&p->base);
    else
        *ret = &p->base;
    return r;
}

/* ---- data path ---- */

static enum verdict resource_consume(struct component *c, struct batch *b, struct ack *ack)
{
    struct batch *out = NULL;
    int r = resource_editor_run(((struct resource *)c)->editor, b, &out);
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
