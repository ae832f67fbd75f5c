/* Loading: the sources in order, merged, then expanded. */
#include "agent/config/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>

#include "agent/base/buf.h"
#include "agent/base/secrets.h"
#include "agent/config/load.h"

struct loader {
    struct config *c;
    struct cfg_errors *errs;
    struct cfg_value *root; /* merged so far; NULL = nothing yet */
};

void cfg_warn(struct config *c, const char *fmt, ...)
{
    char text[1200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < c->nwarnings; i++)
        if (strcmp(c->warnings[i], text) == 0)
            return;
    const char **all = arena_alloc(c->arena, (c->nwarnings + 1) * sizeof(*all));
    char *copy = arena_strdup(c->arena, text);
    if (!all || !copy)
        return;
    if (c->nwarnings)
        memcpy(all, c->warnings, c->nwarnings * sizeof(*all));
    all[c->nwarnings++] = copy;
    c->warnings = all;
}

static int fail(struct loader *l, const char *file, const char *fmt, const char *arg)
{
    cfg_error(l->errs, (struct cfg_pos){.file = file}, "", fmt, arg);
    return -EINVAL;
}

static int add_document(struct loader *l, const char *name, struct cfg_value *v)
{
    if (l->root && v->type == CFG_NULL)
        return 0;
    l->root = l->root ? cfg_merge(l->c->arena, l->root, v) : v;
    return l->root ? 0 : fail(l, name, "%s", "out of memory");
}

/* Merges one more document. `name` and the text are in the arena. */
static int add_text(struct loader *l, const char *name, const char *text, size_t len)
{
    bool more;
    struct cfg_value *v = cfg_yaml_parse(l->c->arena, name, text, len, l->errs, &more);
    if (!v)
        return -EINVAL;
    if (more)
        cfg_warn(l->c, "%s: only the first of its YAML documents is read", name);
    if (v->type != CFG_MAP && v->type != CFG_NULL) {
        cfg_error(l->errs, v->pos, "", "expected a map of sections, got %s",
                  cfg_type_name(v->type));
        return -EINVAL;
    }
    int r = cfg_nest(l->c->arena, v, 1, &v);
    if (r < 0)
        return fail(l, name, "%s", r == -E2BIG ? "nested too deeply" : "out of memory");
    return add_document(l, name, v);
}

/* Merges a document that is made in memory. */
static int add_made(struct loader *l, const struct config_source *s)
{
    struct cfg_value *v = s->make(s->ctx, l->c->arena, l->errs);
    return v ? add_document(l, NULL, v) : -EINVAL;
}

/* "a.b.c=v" is the document "a::b::c: v". */
static int add_setting(struct loader *l, const char *setting)
{
    const char *equal = strchr(setting, '=');
    size_t key = equal ? (size_t)(equal - setting) : 0;
    if (!equal)
        return fail(l, "--set", "\"%.100s\" has no \"=\": expected KEY=VALUE", setting);
    _cleanup_buf_ struct buf *b = buf_new(0);
    int r = b ? 0 : -ENOMEM;
    while (key && isspace((unsigned char)setting[key - 1]))
        key--;
    for (size_t i = strspn(setting, " \t"); r == 0 && i < key; i++)
        r = setting[i] == '.' ? buf_append_str(b, "::") : buf_putc(b, setting[i]);
    if (r == 0)
        r = buf_printf(b, ": %s", equal + 1);
    if (r < 0)
        return fail(l, "--set", "%s", "out of memory");
    return add_text(l, "--set", (const char *)b->data, b->len);
}

/* A path when it has no colon or cannot be a URI ("/a:b", "./a:b", "c:\\a"). */
static bool is_path(const char *uri)
{
    return !strchr(uri, ':') || *uri == '/' || *uri == '.' ||
           (isalpha((unsigned char)*uri) && uri[1] == ':');
}

static int add_uri(struct loader *l, const char *uri)
{
    struct err err = {0};
    struct retrieved r;
    const char *full = is_path(uri) ? arena_printf(l->c->arena, "file:%s", uri) : uri;
    if (!full)
        return fail(l, uri, "%s", "out of memory");
    if (cfg_retrieve(l->c->arena, full, &r, &err) < 0)
        return fail(l, NULL, "%s", err.text);
    if (r.unset)
        cfg_warn(l->c, "--config %s: the environment variable \"%s\" is not set", uri, r.unset);
    return add_text(l, r.name, r.text, r.len);
}

static void finish(struct loader *l)
{
    struct config *c = l->c;
    if (l->root && l->root->type == CFG_NULL)
        l->root = cfg_new(c->arena, CFG_MAP, l->root->pos);
    if (l->root)
        l->root = cfg_expand(c, l->root, l->errs);
    if (l->root)
        cfg_note_numbers(l->root);
    if (secrets_lost() || (!l->root && l->errs->n == 0))
        fail(l, NULL, "%s", "out of memory");
    c->root = l->root;
}

static struct config *new_config(void)
{
    struct config *c = calloc(1, sizeof(*c));
    if (c && !(c->arena = arena_new(0)))
        return config_free(c);
    return c;
}

struct config *config_load(const struct config_source *sources, size_t n, struct cfg_errors *errs)
{
    struct loader l = {.c = new_config(), .errs = errs};
    size_t files = 0, before = errs->n + errs->dropped;
    secrets_lost(); /* not of this one */
    if (!l.c) {
        fail(&l, NULL, "%s", "out of memory");
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        if (!sources[i].is_set) {
            if (sources[i].make)
                add_made(&l, &sources[i]);
            else
                add_uri(&l, sources[i].uri);
            files++;
        }
    if (files == 0)
        fail(&l, NULL, "%s", "at least one --config is needed");
    for (size_t i = 0; i < n; i++)
        if (sources[i].is_set)
            add_setting(&l, sources[i].uri);
    if (errs->n + errs->dropped == before)
        finish(&l);
    return errs->n + errs->dropped == before ? l.c : config_free(l.c);
}

struct config *config_load_text(const char *name, const char *text, struct cfg_errors *errs)
{
    struct loader l = {.c = new_config(), .errs = errs};
    size_t before = errs->n + errs->dropped;
    const char *copy = l.c ? arena_strdup(l.c->arena, name) : NULL;
    if (!copy) {
        fail(&l, NULL, "%s", "out of memory");
        return config_free(l.c);
    }
    if (add_text(&l, copy, text, strlen(text)) == 0)
        finish(&l);
    return errs->n + errs->dropped == before ? l.c : config_free(l.c);
}

struct config *config_free(struct config *c)
{
    if (c)
        arena_free(c->arena);
    free(c);
    return NULL;
}
