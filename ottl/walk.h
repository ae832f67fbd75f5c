/* Runs something on every item of one context in a batch, and makes the new batch when anything changed. */
#ifndef MOTEL_OTTL_WALK_H
#define MOTEL_OTTL_WALK_H

#include "ottl/env.h"

/* What walks work in, kept from one to the next so that a small request costs no allocations; all zero at first. Some 10 KiB as a rule, 130 at most. */
struct ottl_walk_memory {
    _Atomic(void *) spare;
};
void ottl_walk_memory_done(struct ottl_walk_memory *m);

enum ottl_visit { OTTL_KEEP, OTTL_DROP, OTTL_STOP /* give the batch up: -EINVAL, env->err says why */, OTTL_NO_MEMORY };
struct ottl_walk {
    enum ottl_context context; /* visit() is called once per resource, scope, span … data point */
    /* `env` is good for this call only. Edits made through paths are in the result. OTTL_DROP removes the item (data points from their
     * metric, events from their span); scopes, metrics and resources left empty by that go too. */
    enum ottl_visit (*visit)(void *ctx, struct ottl_env *env);
    void *ctx;
    struct ottl_walk_memory *memory; /* of all walks of one component; NULL = nothing is kept */
    bool drop_empty; /* also what came with nothing in it goes: of what stands above the visited items, and of these themselves a resource or scope */
};
/*
 * Nothing changed: *ret is a reference of `in`. All dropped: *ret has 0 records. A context that the signal does not have visits nothing.
 * Thread safe; memory of a visit is given back after it. 0, -ENOMEM, or -EINVAL with reterr after OTTL_STOP.
 */
int ottl_walk(const struct ottl_walk *w, struct batch *in, struct batch **ret, struct err *reterr);

#endif
