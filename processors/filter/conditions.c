#include "processors/filter/conditions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "processors/filter/functions.h"

const char *const filter_error_modes[] = {"ignore", "silent", "propagate", NULL};

static const struct cfg_field item_fields[] = {
    {.key = "context",
     .kind = BIND_STRING,
     CFG_AT(struct filter_item, context),
     .help = "What the conditions are asked of: resource, scope, span, spanevent, metric, "
             "datapoint or log. Without it, the lowest one that the paths name."},
    {.key = "conditions",
     .kind = BIND_LIST,
     CFG_AT(struct filter_item, conditions),
     .elem = &cfg_elem_string,
     .help = "Items for which one of them holds are dropped."},
    {.key = "error_mode",
     .kind = BIND_ENUM,
     CFG_AT(struct filter_item, error_mode),
     .values = (const char *const[]){"ignore", "silent", "propagate", "", NULL},
     .def = "\"\"",
     .help = "Instead of the processor's."},
    {0}};

const struct cfg_field filter_item_elem = {.kind = BIND_STRUCT,
                                           .fields = item_fields,
                                           CFG_NESTED(struct filter_item),
                                           CFG_MORE(CFG_TEXT(struct filter_item, text))};

static const struct ottl_function *const tables[] = {ottl_converters, filter_functions, NULL};

/* Where the compiler is. */
struct place {
    const char *key;
    size_t index;
    struct err *err;
    const struct cfg_value *list;
};

/* Puts the place into the error; `member`: the list in the item that element `i` is of, or NULL. */
static int locate(const struct place *at, const char *member, size_t i)
{
    struct err *e = at->err;
    char inside[64] = "";
    if (member)
        snprintf(inside, sizeof(inside), "%s[%zu]", member, i);
    if (cfg_item_secret(at->list, at->index, inside))
        ottl_hide_text(e);
    else if (e->column > 0) {
        const int column = e->column;
        char text[sizeof(e->text)];
        snprintf(text, sizeof(text), "%s", e->text);
        err_set(e, -EINVAL, "%.950s (column %d)", text, column);
    }
    if (member)
        snprintf(e->path, sizeof(e->path), "%s[%zu]::%s[%zu]", at->key, at->index, member, i);
    else
        snprintf(e->path, sizeof(e->path), "%s[%zu]", at->key, at->index);
    return -EINVAL;
}

/* A new empty group; NULL when out of memory. */
static struct filter_group *add_group(struct filter_groups *g, enum ottl_context context,
                                      enum filter_errors errors, size_t room)
{
    struct filter_group *items = reallocarray(g->items, g->n + 1, sizeof(*items));
    if (!items)
        return NULL;
    g->items = items;
    struct filter_group *new = &items[g->n];
    *new = (struct filter_group){.context = context, .errors = errors};
    new->conditions = calloc(room + 1, sizeof(*new->conditions));
    if (!new->conditions)
        return NULL;
    g->n++;
    return new;
}

static unsigned contexts_of(enum signal s)
{
    static const unsigned own[SIGNAL_COUNT] = {
        [SIGNAL_TRACES] = OTTL_CONTEXT_BIT(OTTL_SPAN) | OTTL_CONTEXT_BIT(OTTL_SPANEVENT),
        [SIGNAL_METRICS] = OTTL_CONTEXT_BIT(OTTL_METRIC) | OTTL_CONTEXT_BIT(OTTL_DATAPOINT),
        [SIGNAL_LOGS] = OTTL_CONTEXT_BIT(OTTL_LOG),
    };
    return own[s] | OTTL_CONTEXT_BIT(OTTL_RESOURCE) | OTTL_CONTEXT_BIT(OTTL_SCOPE);
}

/* A condition that stands alone finds its own context. */
static int add_flat(struct filter_groups *g, const struct place *at, const char *text,
                    struct ottl_dialect *d, enum filter_errors errors)
{
    struct ottl_condition *c = NULL;
    d->prefix_required = true;
    int r = ottl_condition_parse(bytes_str(text), d, &c, at->err);
    if (r < 0)
        return r == -EINVAL ? locate(at, NULL, 0) : r;
    struct filter_group *new = add_group(g, ottl_condition_context(c), errors, 1);
    if (!new) {
        ottl_condition_free(c);
        return -ENOMEM;
    }
    new->conditions[new->n++] = c;
    return 0;
}

static int group_context(const struct place *at, const struct filter_item *item,
                         struct ottl_dialect *d)
{
    enum ottl_context context;
    if (*item->context) {
        d->context = ottl_context_find(bytes_str(item->context));
        if (d->context >= 0 && (d->allowed & OTTL_CONTEXT_BIT(d->context)))
            return 0;
        err_set(at->err, -EINVAL, "unknown context %s", item->context);
        return locate(at, NULL, 0);
    }
    _cleanup_free_ struct bytes *texts = calloc(item->conditions.n + 1, sizeof(*texts));
    if (!texts)
        return -ENOMEM;
    for (size_t i = 0; i < item->conditions.n; i++)
        texts[i] = bytes_str(((const char *const *)item->conditions.items)[i]);
    d->prefix_required = true;
    int r = ottl_infer_context(NULL, 0, texts, item->conditions.n, d, &context, at->err);
    if (r == 0)
        d->context = (int)context;
    return r == -EINVAL ? locate(at, NULL, 0) : r;
}

static int parse_list(struct filter_group *g, const struct place *at, const char *member,
                      const struct cfg_list *list, const struct ottl_dialect *d)
{
    const char *const *texts = list->items;
    for (size_t i = 0; i < list->n; i++) {
        int r = ottl_condition_parse(bytes_str(texts[i]), d, &g->conditions[g->n], at->err);
        if (r < 0)
            return r == -EINVAL ? locate(at, member, i) : r;
        g->n++;
    }
    return 0;
}

static int add_item(struct filter_groups *g, const struct place *at, const struct filter_item *item,
                    enum signal s, enum filter_errors def)
{
    struct ottl_dialect d = {.context = -1, .allowed = contexts_of(s), .functions = tables};
    if (item->text)
        return add_flat(g, at, item->text, &d, def);
    const enum filter_errors errors =
        item->error_mode == FILTER_ERRORS_DEFAULT ? def : (enum filter_errors)item->error_mode;
    if (item->conditions.n == 0)
        return 0;
    int r = group_context(at, item, &d);
    if (r < 0)
        return r;
    struct filter_group *new =
        add_group(g, (enum ottl_context)d.context, errors, item->conditions.n);
    return new ? parse_list(new, at, "conditions", &item->conditions, &d) : -ENOMEM;
}

/* Conditions alone, or groups; not both. */
static int check_style(struct place *at, const struct cfg_list *list)
{
    const struct filter_item *items = list->items;
    for (at->index = 0; at->index < list->n; at->index++) {
        if (list->value && list->value->items[at->index]->type == CFG_NULL) {
            err_set(at->err, -EINVAL, "condition cannot be empty");
            return locate(at, NULL, 0);
        }
        if (!items[at->index].text != !items[0].text) {
            err_set(at->err, -EINVAL,
                    "configuring multiple configuration styles is not supported, please use only "
                    "conditions, or only groups of them");
            return locate(at, NULL, 0);
        }
    }
    return 0;
}

int filter_groups_add(struct filter_groups *g, const struct cfg_list *list, const char *key,
                      enum signal s, enum filter_errors def, struct err *reterr)
{
    const struct filter_item *items = list->items;
    struct place at = {key, 0, reterr, list->value};
    int r = check_style(&at, list);
    for (at.index = 0; r == 0 && at.index < list->n; at.index++)
        r = add_item(g, &at, &items[at.index], s, def);
    return r;
}

int filter_groups_add_list(struct filter_groups *g, const struct cfg_list *list, const char *key,
                           enum ottl_context context, enum filter_errors errors, struct err *reterr)
{
    const char *const *texts = list->items;
    struct place at = {key, 0, reterr, list->value};
    const struct ottl_dialect d = {
        .context = (int)context, .allowed = ottl_context_reach(context), .functions = tables};
    if (list->n == 0)
        return 0;
    struct filter_group *new = add_group(g, context, errors, list->n);
    if (!new)
        return -ENOMEM;
    for (at.index = 0; at.index < list->n; at.index++) {
        int r =
            ottl_condition_parse(bytes_str(texts[at.index]), &d, &new->conditions[new->n], reterr);
        if (r < 0)
            return r == -EINVAL ? locate(&at, NULL, 0) : r;
        new->n++;
    }
    return 0;
}

void filter_groups_done(struct filter_groups *g)
{
    for (size_t i = 0; i < g->n; i++) {
        for (size_t k = 0; k < g->items[i].n; k++)
            ottl_condition_free(g->items[i].conditions[k]);
        free(g->items[i].conditions);
    }
    free(g->items);
    *g = (struct filter_groups){0};
}
