/* Servers by NEMO_GYM_CONFIG_PATH below a root process, and by command-line patterns. */
#include "receivers/gym_memory/discovery.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "agent/base/utf8.h"
#include "agent/config/tree.h"

#define YOUNG_S 10
#define OLD_IN_TURN 64 /* older processes that are looked at again after each refresh */
#define NAME_MAX_BYTES 1024

int discovery_init(struct discovery *d, const struct procfs *fs, struct servers *servers)
{
    *d = (struct discovery){.fs = fs, .servers = servers};
    for (size_t i = 0; i < servers->n; i++)
        d->patterns |= servers->items[i]->pattern != NULL;
    d->text = buf_new(0);
    return d->text ? 0 : -ENOMEM;
}

void discovery_done(struct discovery *d)
{
    buf_unref(d->text);
    free(d->queue);
    *d = (struct discovery){0};
}

/* ---- texts ---- */

const char *environ_value(struct bytes text, const char *name)
{
    const size_t len = strlen(name);
    while (text.len) {
        const uint8_t *end = memchr(text.data, '\0', text.len);
        if (!end)
            return NULL;
        if ((size_t)(end - text.data) > len && memcmp(text.data, name, len) == 0 &&
            text.data[len] == '=')
            return (const char *)text.data + len + 1;
        text = bytes_of(end + 1, text.len - (size_t)(end + 1 - text.data));
    }
    return NULL;
}

void gym_server_type(const char *config, const char *name, char *ret, size_t size)
{
    struct cfg_errors errors = {0};
    _cleanup_(arena_freep) struct arena *arena = arena_new(65536);
    const struct cfg_value *root =
        arena ? cfg_yaml_parse(arena, GYM_CONFIG_VARIABLE, config, strlen(config), &errors, NULL)
              : NULL;
    const struct cfg_value *server = cfg_get(root, name);
    const bool known =
        server && server->type == CFG_MAP && server->n && strlen(server->keys[0]) < size;
    snprintf(ret, size, "%s", known ? server->keys[0] : "");
    cfg_errors_done(&errors);
}

/* The command line with blanks between the arguments, repaired where it is no UTF-8. 0 or a
 * negative errno. */
static int read_command(struct discovery *d, int pid, struct buf *out)
{
    int r = procfs_text(d->fs, pid, "cmdline", d->text);
    while (d->text->len && d->text->data[d->text->len - 1] == '\0')
        buf_truncate(d->text, d->text->len - 1);
    for (size_t i = 0; i < d->text->len; i++)
        if (d->text->data[i] == '\0')
            d->text->data[i] = ' ';
    return r < 0 ? r : utf8_append(buf_bytes(d->text), out);
}

/* ---- what to look at ---- */

static uint64_t young_since(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    const uint64_t seconds = now.tv_sec > YOUNG_S ? (uint64_t)now.tv_sec - YOUNG_S : 0;
    return seconds * (uint64_t)sysconf(_SC_CLK_TCK);
}

/* Whether another program may run in `p` than at the last look. */
static bool is_due(const struct discovery *d, struct proc_table *t, struct proc *p,
                   const struct look *last)
{
    const size_t turns = 1 + t->n / OLD_IN_TURN;
    const bool young = !p->has_stat || p->stat.start >= d->young;
    if (!last->done || !d->fs->real)
        return true;
    if (!young && ((size_t)p->pid + t->refreshes) % turns)
        return false;
    return proc_table_look(t, p, young) &&
           (!p->stat.env_start || p->stat.env_start != last->env_start);
}

/* After a look at what began with `env_start`; `r` is what came of it. Returns -ENOMEM when it has
 * to be done again. */
static int look_done(struct look *look, uint64_t env_start, int r)
{
    *look = (struct look){.done = r != -ENOMEM, .env_start = env_start};
    return r == -ENOMEM ? r : 0;
}

/* ---- by the environment ---- */

/* Gym starts a server through a shell, `bash -c "… NEMO_GYM_CONFIG_PATH=name python app.py"`, and
 * takes that shell for the root of the server. It is one when it starts one server only. */
static bool is_wrapper(struct discovery *d, const struct proc *p)
{
    static const char assignment[] = GYM_SERVER_VARIABLE "=";
    const size_t len = sizeof(assignment) - 1;
    if (procfs_text(d->fs, p->pid, "cmdline", d->text) < 0)
        return false;
    const uint8_t *end = d->text->data + d->text->len;
    const uint8_t *first = memmem(d->text->data, d->text->len, assignment, len);
    return first && !memmem(first + len, (size_t)(end - first) - len, assignment, len);
}

static struct proc *root_of(struct discovery *d, struct proc *p)
{
    while (p->pid != d->root_pid && p->parent && p->parent->pid != d->root_pid &&
           is_wrapper(d, p->parent))
        p = p->parent;
    return p;
}

static int name_type(struct server *v, struct bytes environment)
{
    const char *config = environ_value(environment, GYM_CONFIG_VARIABLE);
    char type[NAME_MAX_BYTES];
    if (!config || *v->type)
        return 0;
    gym_server_type(config, v->name, type, sizeof(type));
    char *copy = strdup(type);
    if (!copy)
        return -ENOMEM;
    free(v->type);
    v->type = copy;
    return 0;
}

static int add_server(struct discovery *d, struct proc_table *t, struct proc *p, const char *name)
{
    _cleanup_buf_ struct buf *clean = buf_new(0);
    if (!clean || utf8_append(bytes_str(name), clean) < 0 || !buf_str(clean))
        return -ENOMEM;
    struct server *v = servers_named(d->servers, buf_str(clean));
    if (!v || v->fixed || v->pattern) /* the config says otherwise */
        return 0;
    int r = name_type(v, buf_bytes(d->text));
    p->server_at = t->refreshes;
    return r < 0 ? r : server_add_root(d->servers, v, root_of(d, p));
}

static void look_hidden(struct discovery *d, struct proc *p)
{
    d->hidden += !p->hidden;
    p->hidden = true;
}

static int look_at_environment(struct discovery *d, struct proc_table *t, struct proc *p)
{
    const uint64_t env_start = p->stat.env_start;
    int r = procfs_text(d->fs, p->pid, "environ", d->text);
    const char *name = r == 0 ? environ_value(buf_bytes(d->text), GYM_SERVER_VARIABLE) : NULL;
    if (r == -EACCES || r == -EPERM)
        look_hidden(d, p);
    if (name && *name && strlen(name) <= NAME_MAX_BYTES)
        r = add_server(d, t, p, name);
    return look_done(&p->environment, env_start, r);
}

static void note_servers(struct discovery *d, struct proc_table *t)
{
    for (size_t i = 0; i < d->servers->n; i++) {
        const struct server *v = d->servers->items[i];
        for (size_t k = 0; !v->fixed && !v->pattern && k < v->nroots; k++) {
            struct proc *p = proc_table_find(t, v->roots[k].pid);
            if (p && p->stat.start == v->roots[k].start)
                p->server_at = t->refreshes;
        }
    }
}

/* What is below a server belongs to it. */
static int look_below_root(struct discovery *d, struct proc_table *t)
{
    const uint64_t mark = proc_table_mark(t);
    size_t n = 0;
    struct proc *root = proc_table_find(t, d->root_pid);
    if (root)
        d->queue[n++] = root;
    for (size_t i = 0; i < n; i++) {
        struct proc *p = d->queue[i];
        p->mark = mark;
        if (p->server_at == t->refreshes || p->stat.kernel_thread)
            continue;
        int r = is_due(d, t, p, &p->environment) ? look_at_environment(d, t, p) : 0;
        if (r < 0)
            return r;
        for (struct proc *c = p->server_at == t->refreshes ? NULL : p->child; c; c = c->sibling)
            if (c->mark != mark)
                d->queue[n++] = c;
    }
    return 0;
}

/* ---- by the command line ---- */

static int look_at_command(struct discovery *d, struct proc *p)
{
    _cleanup_buf_ struct buf *command = buf_new(0);
    const uint64_t env_start = p->stat.env_start;
    int r = command ? read_command(d, p->pid, command) : -ENOMEM;
    for (size_t i = 0; r == 0 && i < d->servers->n; i++) {
        struct server *v = d->servers->items[i];
        if (!v->pattern)
            continue;
        if (command->len && regex_match(v->pattern, buf_bytes(command)))
            r = server_add_root(d->servers, v, p);
        else
            server_drop_root(d->servers, v, p);
    }
    return look_done(&p->command, env_start, r);
}

static int look_at_all(struct discovery *d, struct proc_table *t)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < t->n; i++) {
        struct proc *p = t->items[i];
        if (p->here && !p->stat.kernel_thread && p->pid != d->own_pid &&
            is_due(d, t, p, &p->command))
            r = look_at_command(d, p);
    }
    return r;
}

/* ---- both ---- */

static int make_queue(struct discovery *d, const struct proc_table *t)
{
    if (d->queue_cap >= t->n + 1)
        return 0;
    struct proc **queue = realloc(d->queue, (2 * t->n + 1) * sizeof(*queue));
    if (!queue)
        return -ENOMEM;
    d->queue = queue;
    d->queue_cap = 2 * t->n + 1;
    return 0;
}

int discovery_run(struct discovery *d, struct proc_table *t)
{
    int r = make_queue(d, t);
    d->young = young_since();
    if (r == 0 && d->root_pid) {
        note_servers(d, t);
        r = look_below_root(d, t);
    }
    return r == 0 && d->patterns ? look_at_all(d, t) : r;
}
