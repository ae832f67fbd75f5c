/* The nop receiver: never produces anything. It stands where a pipeline needs a receiver. */
#include <errno.h>

#include "agent/pipeline/component.h"

extern const struct component_type receiver_nop;

static int nop_create(const struct component_args *args, struct component **ret, struct err *reterr)
{
    struct component *c = calloc(1, sizeof(*c));
    if (!c)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(c, &receiver_nop, args);
    *ret = c;
    return 0;
}

static void nop_destroy(struct component *c)
{
    free(c);
}

const struct component_type receiver_nop = {
    .kind = KIND_RECEIVER,
    .name = "nop",
    .emits = SIGNALS_ALL,
    .stability = {"beta", "beta", "beta"},
    .help = "Produces nothing; stands where a pipeline needs a receiver.",
    .create = nop_create,
    .destroy = nop_destroy,
};
