/*
 * Which context a group of texts is about: the lowest one that a path names; when that has not all
 * of the functions, the nearest below it that has.
 */
#include <errno.h>

#include "ottl/expr.h"

/* From the most to the least special. */
static const enum ottl_context priority[] = {OTTL_LOG,    OTTL_EXEMPLAR,  OTTL_DATAPOINT,
                                             OTTL_METRIC, OTTL_SPANEVENT, OTTL_SPAN,
                                             OTTL_SCOPE,  OTTL_RESOURCE};

struct hints {
    const struct ottl_dialect *dialect;
    unsigned named;        /* contexts that paths name */
    struct bytes unknown;  /* a first segment that is no context */
    unsigned supported;    /* contexts that have all functions */
    struct bytes function; /* the first one that is not everywhere */
};

static void look_at_path(struct hints *h, const struct ottl_node *path)
{
    const struct ottl_node *first = path->first;
    if (!first->next || first->keys)
        return;
    int context = ottl_context_find(first->name);
    if (context >= 0)
        h->named |= OTTL_CONTEXT_BIT(context);
    else if (!h->unknown.data)
        h->unknown = first->name;
}

/* What is unknown altogether is not judged here: compiling says it better. */
static void look_at_call(struct hints *h, struct bytes name)
{
    const struct ottl_function *f = ottl_function_find(h->dialect->functions, name);
    if (!f || !f->contexts)
        return;
    h->supported &= f->contexts;
    if (!h->function.data)
        h->function = name;
}

static void look(struct hints *h, const struct ottl_node *n)
{
    if (!n)
        return;
    if (n->kind == OTTL_N_PATH)
        look_at_path(h, n);
    else if (n->kind == OTTL_N_CALL)
        look_at_call(h, n->name);
    look(h, n->keys);
    for (const struct ottl_node *child = n->first; child; child = child->next)
        look(h, child);
}

static int lowest(unsigned contexts)
{
    for (size_t i = 0; i < ARRAY_SIZE(priority); i++)
        if (contexts & OTTL_CONTEXT_BIT(priority[i]))
            return (int)priority[i];
    return -1;
}

/* The contexts from which `context` can be reached. */
static unsigned below(int context)
{
    unsigned r = 0;
    for (unsigned i = 0; i < OTTL_CONTEXT_COUNT; i++)
        if (ottl_context_reach((enum ottl_context)i) & OTTL_CONTEXT_BIT(context))
            r |= OTTL_CONTEXT_BIT(i);
    return r;
}

static int nothing_to_infer_from(const struct hints *h, struct err *reterr)
{
    char list[256];
    struct bytes none = {NULL, 0};
    ottl_context_list(h->dialect->allowed, none, list, sizeof(list));
    if (h->unknown.data)
        return err_set(reterr, -EINVAL,
                       "context \"%.*s\" inferred from the paths is not a supported context: %s",
                       (int)h->unknown.len, (const char *)h->unknown.data, list);
    return err_set(reterr, -EINVAL,
                   "unable to infer context: path's first segment must be a valid context name: %s",
                   list);
}

int ottl_infer(const struct ottl_ast *texts, size_t n, const struct ottl_dialect *d,
               enum ottl_context *ret, struct err *reterr)
{
    struct hints h = {.dialect = d, .supported = d->allowed};
    char list[256];
    for (size_t i = 0; i < n; i++) {
        look(&h, texts[i].call);
        look(&h, texts[i].condition);
    }
    int named = lowest(h.named);
    if (named < 0)
        return nothing_to_infer_from(&h, reterr);
    if (!(d->allowed & OTTL_CONTEXT_BIT(named)))
        return err_set(reterr, -EINVAL,
                       "context \"%s\" inferred from the paths is not a supported context: %s",
                       ottl_context_name((enum ottl_context)named),
                       ottl_context_list(d->allowed, bytes_of(NULL, 0), list, sizeof(list)));
    int context =
        h.supported & OTTL_CONTEXT_BIT(named) ? named : lowest(h.supported & below(named));
    if (context < 0)
        return err_set(reterr, -EINVAL,
                       "inferred context \"%s\" does not support the function \"%.*s\"",
                       ottl_context_name((enum ottl_context)named), (int)h.function.len,
                       (const char *)h.function.data);
    *ret = (enum ottl_context)context;
    return 0;
}
