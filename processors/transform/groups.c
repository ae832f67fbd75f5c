#include "processors/transform/groups.h"

#include <errno.h>
#include <stdarg.h>
#include <strings.h>

/* ---- configuration ---- */

static const char *const mode_names[] = {"ignore", "silent", "propagate"};

int transform_error_mode(const char *text, enum error_mode def, enum error_mode *ret,
                         struct err *reterr)
{
    *ret = def;
    if (!*text)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(mode_names); i++)
        if (strcasecmp(text, mode_names[i]) == 0) {
            *ret = (enum error_mode)i;
            return 0;
        }
    return err_set(reterr, -EINVAL, "unknown error mode %s; one of ignore, silent, propagate",
                   text);
}

static const struct cfg_field group_fields[] = {
    {.key = "context",
     .kind = BIND_STRING,
     CFG_AT(struct group_config, context),
     .help = "What the statements run on: resource, scope, span, spanevent, metric, datapoint, "
             "exemplar or log. Without it, the lowest one that the paths name."},
    {.key = "conditions",
     .kind = BIND_LIST,
     CFG_AT(struct group_config, conditions),
     .elem = &cfg_elem_string,
     .help = "Items for which one of them holds are taken; none: all items."},
    {.key = "statements",
     .kind = BIND_LIST,
     CFG_AT(struct group_config, statements),
     .elem = &cfg_elem_string,
     .help = "Run in this order on each item."},
    {.key = "error_mode",
     .kind = BIND_STRING,
     CFG_AT(struct group_config, error_mode),
     .help = "Instead of the processor's."},
    {.key = "shared_cache",
     .kind = BIND_BOOL,
     CFG_AT(struct group_config, shared_cache),
     .help = "The cache is one for all groups of this context that say so, and lasts as long as "
             "the processor; such a group runs on one thread at a time."},
    {0}};

const struct cfg_field transform_group_elem = {.kind = BIND_STRUCT,
                                               .fields = group_fields,
                                               CFG_NESTED(struct group_config),
                                               CFG_MORE(CFG_TEXT(struct group_config, text))};

/* ---- compiling ---- */

/* Where the compiler is. */
struct place {
    const struct cfg_list *list;
    const char *key;
    enum signal signal;
    enum error_mode mode;
    struct err *err;
};

/* What one group is compiled from. */
struct source {
    size_t index; /* of its first item in the list */
    bool flat;    /* the items themselves are the statements */
    struct bytes *statements, *conditions;
    size_t nstatements, nconditions;
};

static const struct group_config *item(const struct place *at, size_t i)
{
    return (const struct group_config *)at->list->items + i;
}

/* Puts the place in front of an error about item `index`; `member` is a list in it, or NULL. */
static int locate(const struct place *at, size_t index, const char *member, size_t i)
{
    struct err *e = at->err;
    char inside[64] = "";
    if (member)
        snprintf(inside, sizeof(inside), "%s[%zu]", member, i);
    if (cfg_item_secret(at->list->value, index, inside))
        ottl_hide_text(e);
    else if (e->column > 0 && !strstr(e->text, "(column ") && !strstr(e->text, " at 1:")) {
        char text[sizeof(e->text)];
        snprintf(text, sizeof(text), "%s", e->text);
        int column = e->column;
        err_set(e, -EINVAL, "%.900s (column %d)", text, column);
    }
    if (member)
        snprintf(e->path, sizeof(e->path), "%s[%zu]::%s[%zu]", at->key, index, member, i);
    else
        snprintf(e->path, sizeof(e->path), "%s[%zu]", at->key, index);
    e->column = 0;
    return -EINVAL;
}

static int _printf_(3, 4) fail(const struct place *at, size_t index, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    err_set(at->err, -EINVAL, "%s", text);
    return locate(at, index, NULL, 0);
}

static unsigned contexts_of(enum signal s)
{
    static const unsigned own[SIGNAL_COUNT] = {
        [SIGNAL_TRACES] = OTTL_CONTEXT_BIT(OTTL_SPAN) | OTTL_CONTEXT_BIT(OTTL_SPANEVENT),
        [SIGNAL_METRICS] = OTTL_CONTEXT_BIT(OTTL_METRIC) | OTTL_CONTEXT_BIT(OTTL_DATAPOINT) |
                           OTTL_CONTEXT_BIT(OTTL_EXEMPLAR),
        [SIGNAL_LOGS] = OTTL_CONTEXT_BIT(OTTL_LOG),
    };
    return own[s] | OTTL_CONTEXT_BIT(OTTL_RESOURCE) | OTTL_CONTEXT_BIT(OTTL_SCOPE);
}

static const struct ottl_function *const tables[] = {ottl_editors, ottl_converters,
                                                     ottl_metric_editors, NULL};

static int infer(const struct place *at, const struct source *s, struct ottl_dialect *d)
{
    enum ottl_context context;
    d->prefix_required = true;
    int r = ottl_infer_context(s->statements, s->nstatements, s->conditions, s->nconditions, d,
                               &context, at->err);
    if (r == -EINVAL)
        return locate(at, s->index, NULL, 0);
    d->context = (int)context;
    return r;
}

static int choose_context(const struct place *at, const struct source *s, struct ottl_dialect *d)
{
    const char *name = s->flat ? "" : item(at, s->index)->context;
    *d = (struct ottl_dialect){
        .context = -1, .allowed = contexts_of(at->signal), .functions = tables};
    if (!*name)
        return infer(at, s, d);
    d->context = ottl_context_find(bytes_str(name));
    if (d->context < 0 || strcasecmp(name, "instrumentation_scope") == 0)
        return fail(at, s->index, "unknown context %s", name);
    if (!(d->allowed & OTTL_CONTEXT_BIT(d->context)))
        return fail(at, s->index, "unknown context \"%s\" for statements: %s have none",
                    ottl_context_name((enum ottl_context)d->context), signal_name(at->signal));
    return 0;
}

static int compile_statements(const struct place *at, const struct source *s,
                              const struct ottl_dialect *d, struct transform_group *g)
{
    g->statements = calloc(s->nstatements + 1, sizeof(*g->statements));
    if (!g->statements)
        return -ENOMEM;
    for (size_t i = 0; i < s->nstatements; i++) {
        int r = ottl_statement_parse(s->statements[i], d, &g->statements[i], at->err);
        if (r == -EINVAL)
            return s->flat ? locate(at, s->index + i, NULL, 0)
                           : locate(at, s->index, "statements", i);
        if (r < 0)
            return r;
        g->nstatements++;
    }
    return 0;
}

static int compile_conditions(const struct place *at, const struct source *s,
                              const struct ottl_dialect *d, struct transform_group *g)
{
    g->conditions = calloc(s->nconditions + 1, sizeof(*g->conditions));
    if (!g->conditions)
        return -ENOMEM;
    for (size_t i = 0; i < s->nconditions; i++) {
        int r = ottl_condition_parse(s->conditions[i], d, &g->conditions[i], at->err);
        if (r == -EINVAL)
            return locate(at, s->index, "conditions", i);
        if (r < 0)
            return r;
        g->nconditions++;
    }
    return 0;
}

static int compile_group(const struct place *at, const struct source *s, struct transform_group *g)
{
    const struct group_config *config = item(at, s->index);
    struct ottl_dialect d;
    int r =
        transform_error_mode(s->flat ? "" : config->error_mode, at->mode, &g->error_mode, at->err);
    if (r < 0)
        return locate(at, s->index, NULL, 0);
    r = choose_context(at, s, &d);
    if (r < 0)
        return r;
    g->context = (enum ottl_context)d.context;
    g->shared_cache = !s->flat && config->shared_cache;
    r = compile_statements(at, s, &d, g);
    return r < 0 ? r : compile_conditions(at, s, &d, g);
}

static struct bytes *texts(const struct cfg_list *l)
{
    struct bytes *ret = calloc(l->n + 1, sizeof(*ret));
    for (size_t i = 0; ret && i < l->n; i++)
        ret[i] = bytes_str(((const char *const *)l->items)[i]);
    return ret;
}

static int add_group(const struct place *at, size_t index, struct transform_groups *g)
{
    const struct group_config *config = item(at, index);
    _cleanup_free_ struct bytes *statements = texts(&config->statements);
    _cleanup_free_ struct bytes *conditions = texts(&config->conditions);
    struct source s = {.index = index,
                       .statements = statements,
                       .nstatements = config->statements.n,
                       .conditions = conditions,
                       .nconditions = config->conditions.n};
    if (!statements || !conditions)
        return -ENOMEM;
    return compile_group(at, &s, &g->items[g->n++]);
}

/* The statements that stand alone, from `index` on. */
static int add_flat(const struct place *at, size_t index, struct transform_groups *g)
{
    size_t n = at->list->n - index;
    _cleanup_free_ struct bytes *statements = calloc(n, sizeof(*statements));
    struct source s = {.index = index, .flat = true, .statements = statements, .nstatements = n};
    if (!statements)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        statements[i] = bytes_str(item(at, index + i)->text);
    return compile_group(at, &s, &g->items[g->n++]);
}

/* Groups come first, if there are any; what follows them are statements alone. *ret_flat: the first
 * of these. */
static int check_style(const struct place *at, size_t *ret_flat)
{
    const struct cfg_list *l = at->list;
    *ret_flat = l->n;
    for (size_t i = 0; i < l->n; i++) {
        if (l->value && l->value->items[i]->type == CFG_NULL)
            return fail(at, i, "invalid %s item: empty statement list items are not supported",
                        at->key);
        if (item(at, i)->text && *ret_flat == l->n)
            *ret_flat = i;
        if (!item(at, i)->text && *ret_flat < i)
            return fail(at, i,
                        "configuring multiple configuration styles is not supported, please use "
                        "only Basic configuration or only Advanced configuration");
    }
    return 0;
}

static int compile(const struct place *at, struct transform_groups *g)
{
    size_t flat;
    int r = check_style(at, &flat);
    if (r < 0)
        return r;
    g->items = calloc(at->list->n + 1, sizeof(*g->items));
    if (!g->items)
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < flat; i++)
        r = add_group(at, i, g);
    return r == 0 && flat < at->list->n ? add_flat(at, flat, g) : r;
}

int transform_groups_new(const struct cfg_list *list, const char *key, enum signal s,
                         enum error_mode mode, struct transform_groups **ret, struct err *reterr)
{
    struct err unused;
    struct place at = {list, key, s, mode, reterr ? reterr : &unused};
    _cleanup_(transform_groups_freep) struct transform_groups *g = calloc(1, sizeof(*g));
    int r = g ? compile(&at, g) : -ENOMEM;
    if (r == -ENOMEM)
        return err_set(reterr, r, "out of memory");
    if (r == 0)
        *ret = TAKE_PTR(g);
    return r;
}

struct transform_groups *transform_groups_free(struct transform_groups *g)
{
    for (size_t i = 0; g && i < g->n; i++) {
        struct transform_group *group = &g->items[i];
        for (size_t n = 0; n < group->nstatements; n++)
            ottl_statement_free(group->statements[n]);
        for (size_t n = 0; n < group->nconditions; n++)
            ottl_condition_free(group->conditions[n]);
        free(group->statements);
        free(group->conditions);
    }
    if (g)
        free(g->items);
    free(g);
    return NULL;
}
