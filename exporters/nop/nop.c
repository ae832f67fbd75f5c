/* The nop exporter: takes everything and drops it. */
#include <errno.h>

#include "agent/pipeline/component.h"

extern const struct component_type exporter_nop;

static int nop_create(const struct component_args *args, struct component **ret, struct err *reterr)
{
    struct component *c = calloc(1, sizeof(*c));
    if (!c)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(c, &exporter_nop, args);
    *ret = c;
    return 0;
}

static void nop_destroy(struct component *c)
{
    free(c);
}

static enum verdict nop_consume(struct component *c _unused_, struct batch *b,
                                struct ack *ack _unused_)
{
    batch_unref(b);
    return VERDICT_OK;
}

const struct component_type exporter_nop = {
    .kind = KIND_EXPORTER,
    .name = "nop",
    .accepts = SIGNALS_ALL,
    .stability = {"beta", "beta", "beta"},
    .help = "Takes all data and drops it.",
    .create = nop_create,
    .destroy = nop_destroy,
    .consume = nop_consume,
};
