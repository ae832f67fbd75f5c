/* The forward connector: joins pipelines of one signal, or splits one into several. */
#include <errno.h>

#include "agent/pipeline/component.h"

extern const struct component_type connector_forward;

static int forward_create(const struct component_args *args, struct component **ret,
                          struct err *reterr)
{
    struct component *c = calloc(1, sizeof(*c));
    if (!c)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(c, &connector_forward, args);
    *ret = c;
    return 0;
}

static void forward_stop(struct component *c, uint64_t deadline_ns)
{
    (void)c, (void)deadline_ns;
}

static void forward_destroy(struct component *c)
{
    free(c);
}

const struct component_type connector_forward = {
    .kind = KIND_CONNECTOR,
    .name = "forward",
    .accepts = SIGNALS_ALL,
    .emits = SIGNALS_ALL,
    .same_signal = true,
    .stability = {"beta", "beta", "beta"},
    .help = "Passes data from one pipeline on to others of the same signal.",
    .create = forward_create,
    .stop = forward_stop,
    .destroy = forward_destroy,
    .consume = component_emit,
};
