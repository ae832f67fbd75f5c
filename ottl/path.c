/* From a path as written to how it is read and set. */
#include "ottl/path.h"

#include <errno.h>

#include "agent/base/suggest.h"

#define DOCS                                                                                       \
    "https://github.com/open-telemetry/opentelemetry-collector-contrib/tree/main/pkg/ottl/"        \
    "contexts/ottl"

/* ---- at run time ---- */

int ottl_path_item(const struct ottl_path *p, struct ottl_env *env, struct ottl_item **ret)
{
    *ret = env->items[p->context];
    if (*ret)
        return 0;
    return err_set(env->err, -EINVAL, "there is no %s here", ottl_context_name(p->context));
}

uint32_t ottl_path_number(const struct ottl_path *p, const struct ottl_item *it)
{
    return ottl_path_self(p)->row->number[it->point];
}

const char *ottl_point_go_type(enum ottl_point p)
{
    static const char *const names[] = {"pmetric.NumberDataPoint", "pmetric.HistogramDataPoint",
                                        "pmetric.ExponentialHistogramDataPoint",
                                        "pmetric.SummaryDataPoint"};
    return names[p];
}

int ottl_wrong_point(const struct ottl_path *p, struct ottl_env *env, const struct ottl_item *it)
{
    const char *want = ottl_path_self(p)->row->point_type;
    if (want)
        return err_set(env->err, -EINVAL, "expects %s but got %s", want,
                       ottl_point_go_type(it->point));
    return err_set(env->err, -EINVAL, "unsupported data point type: %s",
                   ottl_point_go_type(it->point));
}

/* ---- resolving ---- */

/* The name that is nearest to `name` among the first names of a table, or the second ones after
 * `first`. */
static struct bytes nearest(const struct ottl_path_row *rows, const char *first, struct bytes name)
{
    struct suggest s;
    suggest_init(&s, name);
    for (const struct ottl_path_row *row = rows; row->name; row++)
        if (!first)
            suggest_offer(&s, bytes_str(row->name));
        else if (row->sub && strcmp(row->name, first) == 0)
            suggest_offer(&s, bytes_str(row->sub));
    return s.best;
}

static int unknown(const struct ottl_path_text *p, const struct ottl_segment *s, const char *first,
                   struct err *reterr)
{
    struct bytes near = nearest(ottl_path_rows[p->context], first, s->name);
    const char *context = ottl_context_name(p->context);
    err_set(reterr, -EINVAL,
            "segment \"%.*s\" from path \"%.*s\" is not a valid path nor a valid OTTL keyword for "
            "the %s context - review " DOCS "%s to see all valid paths%s%.*s%s",
            (int)s->name.len, s->name.data, (int)p->text.len, p->text.data, context, context,
            near.data ? "; did you mean \"" : "", (int)near.len, (const char *)near.data,
            near.data ? "\"?" : "");
    if (reterr)
        reterr->column = (int)s->column;
    return -EINVAL;
}

static const struct ottl_path_row *find_row(enum ottl_context c, struct bytes name,
                                            struct bytes sub)
{
    for (const struct ottl_path_row *row = ottl_path_rows[c]; row->name; row++)
        if (bytes_eq_str(name, row->name) &&
            (sub.len ? row->sub && bytes_eq_str(sub, row->sub) : !row->sub))
            return row;
    return NULL;
}

static bool has_subs(enum ottl_context c, const char *name)
{
    for (const struct ottl_path_row *row = ottl_path_rows[c]; row->name; row++)
        if (row->sub && strcmp(row->name, name) == 0)
            return true;
    return false;
}

static int find(const struct ottl_path_text *p, const struct ottl_path_row **ret,
                unsigned *ret_used, struct err *reterr)
{
    if (p->n == 0)
        return err_set(reterr, -EINVAL, "a path has no segment");
    const struct ottl_segment *s = p->segments;
    *ret = find_row(p->context, s->name, bytes_of("", 0));
    *ret_used = 1;
    if (!*ret)
        return unknown(p, s, NULL, reterr);
    if (p->n < 2 || !has_subs(p->context, (*ret)->name))
        return 0;
    const char *first = (*ret)->name;
    *ret = find_row(p->context, s->name, s[1].name);
    *ret_used = 2;
    return *ret ? 0 : unknown(p, &s[1], first, reterr);
}

static int unused(const struct ottl_segment *s, bool keys, struct err *reterr)
{
    if (keys)
        err_set(reterr, -EINVAL,
                "the keys indexing \"%.*s\" were not used by the context - this likely means you "
                "are trying to index a path that does not support indexing",
                (int)s->name.len, s->name.data);
    else
        err_set(reterr, -EINVAL,
                "the path section \"%.*s\" was not used by the context - this likely means you are "
                "using extra path sections",
                (int)s->name.len, s->name.data);
    if (reterr)
        reterr->column = (int)s->column;
    return -EINVAL;
}

static int check_used(const struct ottl_path_text *p, const struct ottl_path_row *row,
                      unsigned used, struct err *reterr)
{
    for (unsigned i = 0; i < p->n; i++) {
        const struct ottl_segment *s = &p->segments[i];
        if (i >= used)
            return unused(s, false, reterr);
        if (s->nkeys && !(i == 0 && row->keyed))
            return unused(s, true, reterr);
    }
    return 0;
}

/* One key of a trace state is a path of its own sort. */
static int check_trace_state(const struct ottl_path_text *p, struct ottl_path *ret,
                             struct err *reterr)
{
    const struct ottl_segment *s = &p->segments[0];
    if (p->context != OTTL_SPAN || s->nkeys == 0 || !bytes_eq_str(s->name, "trace_state"))
        return 0;
    ret->ops = &ottl_trace_state_ops;
    ret->kinds = 0;
    if (s->nkeys == 1)
        return 0;
    err_set(reterr, -EINVAL, "must provide exactly 1 key when accessing trace_state");
    if (reterr)
        reterr->column = (int)s->column;
    return -EINVAL;
}

static struct bytes keep(struct arena *a, struct bytes b)
{
    char *copy = arena_strndup(a, (const char *)b.data, b.len);
    return bytes_of(copy, copy ? b.len : 0);
}

static const struct ottl_key *keep_keys(struct arena *a, const struct ottl_segment *s)
{
    struct ottl_key *keys = arena_alloc(a, (s->nkeys + 1) * sizeof(*keys));
    for (unsigned i = 0; keys && i < s->nkeys; i++) {
        keys[i] = s->keys[i];
        if (keys[i].is_string)
            keys[i].s = keep(a, s->keys[i].s);
        if (keys[i].is_string && !keys[i].s.data)
            return NULL;
    }
    return keys;
}

int ottl_path_resolve(const struct ottl_path_text *p, struct arena *arena, struct ottl_path *ret,
                      struct err *reterr)
{
    const struct ottl_path_row *row;
    unsigned used = 0;
    int r = find(p, &row, &used, reterr);
    if (r == 0)
        r = check_used(p, row, used, reterr);
    if (r < 0)
        return r;
    struct ottl_path_self *self = arena_alloc(arena, sizeof(*self));
    const struct ottl_key *keys = keep_keys(arena, &p->segments[0]);
    struct bytes text = keep(arena, p->text);
    if (!self || !keys || !text.data)
        return -ENOMEM;
    *self = (struct ottl_path_self){row, keys, p->segments[0].nkeys};
    *ret = (struct ottl_path){.ops = row->ops, .self = self, .context = p->context, .text = text};
    ret->kinds = self->nkeys ? 0 : row->kinds;
    return check_trace_state(p, ret, reterr);
}
