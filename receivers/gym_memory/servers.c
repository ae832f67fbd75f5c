/* Roots, members and sums of servers. */
#include "receivers/gym_memory/servers.h"

#include <errno.h>

/* ---- life cycle ---- */

static void server_free(struct server *v)
{
    free(v->name);
    free(v->type);
    regex_free(v->pattern);
    free(v->roots);
    free(v->members);
    free(v);
}

void servers_done(struct servers *s)
{
    for (size_t i = 0; i < s->n; i++)
        server_free(s->items[i]);
    free(s->items);
    free(s->all);
    *s = (struct servers){0};
}

static struct server *server_new(const char *name, const char *type)
{
    struct server *v = calloc(1, sizeof(*v));
    if (!v)
        return NULL;
    v->peak_rss = v->peak_pss = -1;
    v->name = strdup(name);
    v->type = strdup(type);
    if (v->name && v->type)
        return v;
    server_free(v);
    return NULL;
}

static int add(struct servers *s, struct server *v)
{
    struct server **items = realloc(s->items, (s->n + 1) * sizeof(*items));
    if (!items)
        return -ENOMEM;
    s->items = items;
    s->items[s->n++] = v;
    s->changed = true;
    return 0;
}

struct server *servers_named(struct servers *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->items[i]->name, name) == 0)
            return s->items[i];
    struct server *v = s->n < SERVERS_MAX ? server_new(name, "") : NULL;
    if (!v || add(s, v) == 0)
        return v;
    server_free(v);
    return NULL;
}

static int take_pids(struct server *v, const struct cfg_list *pids)
{
    const int64_t *pid = pids->items;
    v->roots = calloc(pids->n + 1, sizeof(*v->roots));
    if (!v->roots)
        return -ENOMEM;
    for (size_t i = 0; i < pids->n; i++)
        v->roots[v->nroots++].pid = (int)pid[i];
    v->fixed = pids->n > 0;
    v->pid = v->fixed ? v->roots[0].pid : 0;
    return 0;
}

static int configure(struct servers *s, const struct server_config *c, struct err *reterr)
{
    struct server *v = server_new(c->name, c->type);
    int r = v ? take_pids(v, &c->pids) : -ENOMEM;
    if (r == 0 && *c->command_pattern)
        r = regex_new(bytes_str(c->command_pattern), &v->pattern, reterr);
    if (r == 0)
        r = add(s, v);
    if (r < 0 && v)
        server_free(v);
    return r == -ENOMEM ? err_set(reterr, r, "out of memory") : r;
}

int servers_init(struct servers *s, const struct cfg_list *config, struct err *reterr)
{
    const struct server_config *c = config->items;
    *s = (struct servers){.changed = true};
    for (size_t i = 0; i < config->n; i++) {
        int r = configure(s, &c[i], reterr);
        if (r < 0) {
            servers_done(s);
            return r;
        }
    }
    return 0;
}

/* ---- roots ---- */

static struct root *find_root(const struct server *v, const struct proc *p)
{
    for (size_t i = 0; i < v->nroots; i++)
        if (v->roots[i].pid == p->pid && v->roots[i].start == p->stat.start)
            return &v->roots[i];
    return NULL;
}

bool server_has_root(const struct server *server, const struct proc *p)
{
    return find_root(server, p) != NULL;
}

int server_add_root(struct servers *s, struct server *server, const struct proc *p)
{
    if (find_root(server, p))
        return 0;
    struct root *roots = realloc(server->roots, (server->nroots + 1) * sizeof(*roots));
    if (!roots)
        return -ENOMEM;
    server->roots = roots;
    server->roots[server->nroots++] = (struct root){p->pid, p->stat.start};
    s->changed = true;
    return 0;
}

static void drop(struct servers *s, struct server *v, struct root *r)
{
    *r = v->roots[--v->nroots];
    s->changed = true;
}

void server_drop_root(struct servers *s, struct server *server, const struct proc *p)
{
    struct root *r = find_root(server, p);
    if (r)
        drop(s, server, r);
}

/* The process of a root; NULL when it has ended. A pid that is given is that of the first process
 * that is seen with it. */
static struct proc *root_proc(const struct proc_table *t, struct root *r)
{
    struct proc *p = proc_table_find(t, r->pid);
    if (!p || (r->start && r->start != p->stat.start))
        return NULL;
    r->start = p->stat.start;
    return p;
}

static bool is_zombie(struct proc_table *t, struct proc *p)
{
    return proc_table_look(t, p, true) && p->has_stat && p->stat.state == 'Z';
}

static bool is_older(const struct proc *a, const struct proc *b)
{
    if (a->stat.start != b->stat.start)
        return a->stat.start < b->stat.start;
    return a->pid < b->pid;
}

/* Drops the roots that have ended, unless they are given, and names the oldest, above which no
 * other is. */
static void check_roots(struct servers *s, struct server *v, struct proc_table *t)
{
    const struct proc *first = NULL;
    for (size_t i = v->nroots; i-- > 0 && !v->fixed;) {
        struct proc *p = root_proc(t, &v->roots[i]);
        if (!p || is_zombie(t, p))
            drop(s, v, &v->roots[i]);
        else if (!first || is_older(p, first))
            first = p;
    }
    if (first)
        v->pid = first->pid;
}

/* ---- members ---- */

static int push(struct proc ***list, size_t *n, size_t *cap, struct proc *p)
{
    if (*n == *cap) {
        size_t more = *cap ? 2 * *cap : 64;
        struct proc **items = realloc(*list, more * sizeof(*items));
        if (!items)
            return -ENOMEM;
        *list = items;
        *cap = more;
    }
    (*list)[(*n)++] = p;
    return 0;
}

static int push_member(struct server *v, struct proc *p, uint64_t mark)
{
    if (p->mark == mark)
        return 0;
    p->mark = mark;
    return push(&v->members, &v->nmembers, &v->cap, p);
}

static int collect(struct servers *s, struct server *v, struct proc_table *t)
{
    const uint64_t mark = proc_table_mark(t);
    int r = 0;
    v->nmembers = 0;
    check_roots(s, v, t);
    for (size_t i = 0; r == 0 && i < v->nroots; i++) {
        struct proc *p = root_proc(t, &v->roots[i]);
        r = p ? push_member(v, p, mark) : 0;
    }
    for (size_t i = 0; r == 0 && i < v->nmembers; i++)
        for (struct proc *c = v->members[i]->child; r == 0 && c; c = c->sibling)
            r = push_member(v, c, mark);
    return r;
}

/* When processes have come or gone, what the others share with them counts differently. */
static void note_relations(struct server *v, const struct proc_table *t)
{
    uint64_t identity = v->nmembers;
    for (size_t i = 0; i < v->nmembers; i++) {
        const uint64_t mixed = v->members[i]->serial * 0x9e3779b97f4a7c15;
        identity += (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9;
    }
    for (size_t i = 0; identity != v->identity && i < v->nmembers; i++)
        v->members[i]->related_at = t->refreshes;
    v->identity = identity;
}

static int collect_all(struct servers *s, struct proc_table *t)
{
    int r = 0;
    s->nall = 0;
    for (size_t i = 0; r == 0 && i < s->n; i++) {
        r = collect(s, s->items[i], t);
        note_relations(s->items[i], t);
    }
    const uint64_t mark = proc_table_mark(t);
    for (size_t i = 0; r == 0 && i < s->n; i++)
        for (size_t k = 0; r == 0 && k < s->items[i]->nmembers; k++) {
            struct proc *p = s->items[i]->members[k];
            if (p->mark != mark)
                r = push(&s->all, &s->nall, &s->all_cap, p);
            p->mark = mark;
        }
    return r;
}

int servers_collect(struct servers *s, struct proc_table *t)
{
    if (!s->changed && !t->changed)
        return 0;
    int r = collect_all(s, t);
    s->changed = r < 0;
    for (size_t i = 0; r < 0 && i < s->n; i++) /* they may have ended */
        s->items[i]->nmembers = 0;
    if (r < 0)
        s->nall = 0;
    return r;
}

/* ---- sums ---- */

static int64_t sum(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

static void sum_up(struct server *v)
{
    v->rss = v->pss = v->processes = 0;
    for (size_t i = 0; i < v->nmembers; i++) {
        const struct proc *p = v->members[i];
        if (!p->here || !p->measured)
            continue;
        v->processes++;
        v->rss = sum(v->rss, p->rss);
        v->pss = p->pss == PSS_UNKNOWN || v->pss == PSS_UNKNOWN ? PSS_UNKNOWN : sum(v->pss, p->pss);
    }
    v->peak_rss = v->rss > v->peak_rss ? v->rss : v->peak_rss;
    v->peak_pss = v->pss > v->peak_pss ? v->pss : v->peak_pss;
}

void servers_sum(struct servers *s)
{
    for (size_t i = 0; i < s->n; i++)
        sum_up(s->items[i]);
}
