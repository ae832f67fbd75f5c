/*
 * ${...} in values. The innermost reference that ends first is replaced, and the text is looked at
 * again, until none is left. A reference that is the whole value is read as YAML and may become
 * anything; one inside a text is replaced as text.
 */
#include <errno.h>

#include "agent/base/buf.h"
#include "agent/base/secrets.h"
#include "agent/config/load.h"

#define MAX_ROUNDS 1000       /* of one text */
#define MAX_REFERENCES 100000 /* of one configuration */
#define MAX_TEXT_BYTES (16u << 20)

#define TYPE_OPEN ((enum cfg_type)(CFG_MAP + 1)) /* of a reference whose value is not there yet */

struct expander {
    struct config *c;
    struct cfg_errors *errs;
    struct cfg_path path;
    unsigned references; /* expanded so far */
    unsigned quiet;      /* above 0: mistakes are not reported */
    unsigned secretive;  /* above 0: inside a header or auth block */
    unsigned credential; /* above 0: under a key such as "password" */
    bool stop;           /* without end, or out of memory: nothing more is expanded */
    struct seen *unset;  /* variables that were warned of */
    struct seen *noted;  /* variables and files whose values are in the secrets */
};

struct seen {
    struct seen *next;
    const char *name;
};

/* A text that is being expanded. */
struct text {
    struct buf *b;
    struct cfg_pos pos;
    bool whole;   /* it came from one reference that was the whole value */
    bool foreign; /* it holds something from a variable or a file: a mistake does not show it */
    unsigned rounds;
};

/* "${" and "}" of a reference, as offsets of the first and last byte. */
struct span {
    size_t first, last;
};

static struct cfg_value *expand_value(struct expander *e, struct cfg_value *v, int depth);

static void report(struct expander *e, struct cfg_pos pos, const char *fmt, const char *arg)
{
    if (!e->quiet)
        cfg_error(e->errs, pos, e->path.text, fmt, arg);
}

/* Reports what makes going on pointless; returns NULL. */
static struct cfg_value *give_up(struct expander *e, struct cfg_pos pos, const char *why)
{
    if (!e->stop)
        cfg_error(e->errs, pos, e->path.text, "%s", why);
    e->stop = true;
    return NULL;
}

/* An odd number of "$" before "${" takes its meaning away. */
static bool is_escaped(const uint8_t *from, const uint8_t *open)
{
    size_t n = 0;
    while (open - n > from && open[-(ptrdiff_t)n - 1] == '$')
        n++;
    return n % 2 == 1;
}

static const uint8_t *last_open(const uint8_t *from, const uint8_t *close)
{
    for (size_t n = (size_t)(close - from); n >= 2; n--)
        if (from[n - 2] == '$' && from[n - 1] == '{')
            return from + n - 2;
    return NULL;
}

/* The reference to expand next: the one that ends first and is not escaped. */
static bool find_reference(struct bytes text, struct span *ret)
{
    const uint8_t *from = text.data, *end = text.data + text.len, *close;
    while (from < end && (close = memchr(from, '}', (size_t)(end - from)))) {
        const uint8_t *open = last_open(from, close);
        if (open && !is_escaped(from, open)) {
            *ret = (struct span){(size_t)(open - text.data), (size_t)(close - text.data)};
            return true;
        }
        from = close + 1;
    }
    return false;
}

/* "$$" becomes "$". */
static void unescape(struct buf *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->len; i++) {
        b->data[n++] = b->data[i];
        if (b->data[i] == '$' && i + 1 < b->len && b->data[i + 1] == '$')
            i++;
    }
    buf_truncate(b, n);
}

static int replace(struct buf *b, struct span at, const char *text, size_t len)
{
    size_t old = at.last + 1 - at.first;
    if (len > old) {
        int r = buf_insert_gap(b, at.last + 1, len - old);
        if (r < 0)
            return r;
    } else {
        memmove(b->data + at.first + len, b->data + at.last + 1, b->len - at.last - 1);
        buf_truncate(b, b->len - (old - len));
    }
    if (len)
        memcpy(b->data + at.first, text, len);
    return 0;
}

/* True when the name is new to the list; it is put there. */
static bool first_time(struct expander *e, struct seen **list, const char *name)
{
    for (struct seen *s = *list; s; s = s->next)
        if (strcmp(s->name, name) == 0)
            return false;
    struct seen *s = arena_alloc(e->c->arena, sizeof(*s));
    if (s) {
        *s = (struct seen){*list, name};
        *list = s;
    }
    return true;
}

static void warn_unset(struct expander *e, struct cfg_pos pos, const char *name)
{
    if (first_time(e, &e->unset, name))
        cfg_warn(e->c, "%s:%d:%d: %s: the environment variable \"%s\" is not set, so this is empty",
                 pos.file, pos.line, pos.column, e->path.text, name);
}

/* Reads what a reference stands for. 0, or -EINVAL after a report. */
static int resolve(struct expander *e, const struct text *t, struct span at, struct retrieved *ret)
{
    struct err err = {0};
    size_t len = at.last - at.first - 2;
    const char *inner = (const char *)t->b->data + at.first + 2;
    const char *scheme = memchr(inner, ':', len) ? "" : "env:";
    char *uri = arena_printf(e->c->arena, "%s%.*s", scheme, (int)len, inner);
    if (!uri) {
        give_up(e, t->pos, "out of memory");
        return -EINVAL;
    }
    int r = -EINVAL;
    if (strchr(uri, '$'))
        err_set(&err, r, "\"%.200s\" has a \"$\" inside the braces", uri);
    else if ((r = cfg_retrieve(e->c->arena, uri, ret, &err)) == 0)
        return 0;
    if (r == -ENOMEM)
        give_up(e, t->pos, "out of memory");
    else
        report(e, t->pos, "%s",
               t->foreign ? "the reference that its variables make is not valid" : err.text);
    return -EINVAL;
}

static int expand_text(struct expander *e, struct text *t);

/* Adds a value to the secrets as it is sent: without references, after "$$". */
static void note_as_sent(struct expander *e, struct cfg_pos pos, const char *raw)
{
    _cleanup_buf_ struct buf *b = buf_new(MAX_TEXT_BYTES);
    struct text t = {.b = b, .pos = pos};
    if (!b || buf_append_str(b, raw) < 0) {
        give_up(e, pos, "out of memory");
        return;
    }
    e->quiet++;
    if (expand_text(e, &t) == 0) {
        unescape(b);
        const char *sent = buf_str(b);
        if (sent)
            secrets_add(sent);
        else
            give_up(e, pos, "out of memory");
    }
    e->quiet--;
}

/* Adds a value that is sent as a credential to the secrets. */
static void note_secret(struct expander *e, struct cfg_pos pos, const struct retrieved *r)
{
    size_t len = cfg_trimmed_len(r);
    if (!e->secretive || e->quiet || (!r->from_env && !r->from_file) || len == 0)
        return;
    if (!first_time(e, &e->noted, r->name))
        return;
    char *raw = arena_strndup(e->c->arena, r->text, len);
    if (!raw) {
        give_up(e, pos, "out of memory");
        return;
    }
    if (!secrets_add(raw))
        cfg_warn(e->c,
                 "%s:%d:%d: %s: the value of %s is too short to be blanked out of logs and output",
                 pos.file, pos.line, pos.column, e->path.text, r->name);
    if (strchr(raw, '$'))
        note_as_sent(e, pos, raw);
}

/* Keeps a reference for who asks what the configuration depends on. Its type is that of the value
 * in the end: set_types(). */
static void remember(struct expander *e, struct cfg_pos pos, const struct retrieved *r, bool whole)
{
    struct config *c = e->c;
    if (c->nreferences == c->references_cap) {
        const size_t cap = c->references_cap ? 2 * c->references_cap : 16;
        struct cfg_reference *grown = arena_alloc(c->arena, cap * sizeof(*grown));
        if (!grown)
            return;
        if (c->nreferences)
            memcpy(grown, c->references, c->nreferences * sizeof(*grown));
        c->references = grown;
        c->references_cap = cap;
    }
    const char *path = arena_strdup(c->arena, e->path.text);
    if (path)
        c->references[c->nreferences++] =
            (struct cfg_reference){.name = r->name,
                                   .pos = pos,
                                   .path = path,
                                   .from_env = r->from_env,
                                   .from_file = r->from_file,
                                   .unset = r->unset != NULL,
                                   .whole = whole,
                                   .secret = e->secretive || e->credential,
                                   .type = TYPE_OPEN,
                                   .text = r->text};
}

/* The references from index `first` on have become a value of this type, but for those inside it.
 */
static void set_types(struct expander *e, size_t first, enum cfg_type type)
{
    for (size_t i = first; i < e->c->nreferences; i++)
        if (e->c->references[i].type == TYPE_OPEN)
            e->c->references[i].type = type;
}

/* What has to be said about a reference whose text is used. */
static void note_reference(struct expander *e, struct cfg_pos pos, const struct retrieved *r,
                           bool whole)
{
    if (e->quiet)
        return;
    remember(e, pos, r, whole);
    note_secret(e, pos, r);
    if (r->unset)
        warn_unset(e, pos, r->unset);
    if (cfg_trimmed_len(r) != r->len)
        cfg_warn(e->c, "%s:%d:%d: %s: the newline at the end of \"%s\" is left out", pos.file,
                 pos.line, pos.column, e->path.text, r->name);
}

/* Finds the next reference and reads it: 1, 0 when there is none, -EINVAL after a report. */
static int next_reference(struct expander *e, struct text *t, struct span *at, struct retrieved *r)
{
    if (e->stop || !find_reference(buf_bytes(t->b), at))
        return 0;
    if (t->rounds == MAX_ROUNDS || e->references == MAX_REFERENCES) {
        if (!e->quiet)
            give_up(e, t->pos, "too many expansions, one inside the other");
        return -EINVAL;
    }
    t->rounds++;
    e->references += e->quiet == 0;
    return resolve(e, t, *at, r) < 0 ? -EINVAL : 1;
}

/* Puts what a reference stands for in its place, as text. */
static int substitute(struct expander *e, struct text *t, struct span at, const struct retrieved *r)
{
    note_reference(e, t->pos, r, at.first == 0 && at.last + 1 == t->b->len);
    t->foreign = t->foreign || r->from_env || r->from_file;
    const int done = replace(t->b, at, r->text, cfg_trimmed_len(r));
    if (done == -ENOMEM)
        give_up(e, t->pos, "out of memory");
    else if (done < 0)
        report(e, t->pos, "%s", "expands to too long a text");
    return done < 0 ? -EINVAL : 0;
}

static int expand_text(struct expander *e, struct text *t)
{
    struct span at;
    struct retrieved r;
    int found;
    while ((found = next_reference(e, t, &at, &r)) == 1)
        if (substitute(e, t, at, &r) < 0)
            return -EINVAL;
    return found;
}

static bool is_container(const struct cfg_value *v)
{
    return v->type == CFG_LIST || v->type == CFG_MAP;
}

/* A value that is in its last form: what must not be shown is remembered. */
static struct cfg_value *finished(struct expander *e, struct cfg_value *v, bool embedded)
{
    if (e->quiet || v->type == CFG_NULL || v->type == CFG_BOOL || is_container(v))
        return v;
    if (!embedded && (e->credential || (e->secretive && v->secret)))
        secrets_add(v->text);
    if (v->type == CFG_STRING)
        cfg_note_url(v->text);
    return v;
}

/* The text of a map or list that came from a reference, for a string field. */
static void set_container_text(struct expander *e, struct cfg_value *v)
{
    _cleanup_buf_ struct buf *b = strchr(v->text, '$') ? buf_new(MAX_TEXT_BYTES) : NULL;
    struct text t = {.b = b, .pos = v->pos};
    if (!b || buf_append(b, v->text, v->text_len) < 0)
        return;
    e->quiet++;
    if (expand_text(e, &t) == 0) {
        unescape(b);
        char *text = arena_strndup(e->c->arena, (const char *)b->data, b->len);
        if (text) {
            v->text = text;
            v->text_len = b->len;
        }
    }
    e->quiet--;
}

static void mark_secret(struct cfg_value *v)
{
    v->secret = true;
    for (size_t i = 0; i < v->n; i++)
        mark_secret(v->items[i]);
}

/* What a reference stands for, read as YAML; NULL when that is a plain string, or no YAML at all.
 */
static struct cfg_value *parse(struct expander *e, const struct retrieved *r)
{
    struct cfg_errors ignored = {0};
    if (r->empty_string)
        return NULL;
    struct cfg_value *v = cfg_yaml_parse(e->c->arena, r->name, r->text, r->len, &ignored, NULL);
    cfg_errors_done(&ignored);
    return v && v->type != CFG_STRING ? v : NULL;
}

/* The value of a reference that is the whole value and is not a string. */
static struct cfg_value *typed_value(struct expander *e, const struct text *t, struct cfg_value *v,
                                     const struct retrieved *r, int depth)
{
    bool container = is_container(v);
    if (cfg_nest(e->c->arena, v, depth, &v) < 0 || !(v = cfg_copy(e->c->arena, v)))
        return give_up(e, t->pos, "nested too deeply");
    v->pos = t->pos;
    v->text = r->text;
    v->text_len = cfg_trimmed_len(r);
    if (v->text_len != r->len && !(v->text = arena_strndup(e->c->arena, r->text, v->text_len)))
        return give_up(e, t->pos, "out of memory");
    v->expanded = true;
    if (t->foreign || r->from_env || (r->from_file && (!container || e->secretive)))
        mark_secret(v);
    if (!container) {
        note_reference(e, t->pos, r, true);
        return finished(e, v, false);
    }
    remember(e, t->pos, r, true);
    set_types(e, e->c->nreferences - 1, v->type);
    note_secret(e, t->pos, r);
    set_container_text(e, v);
    return expand_value(e, v, depth);
}

/* The value of a text without references. */
static struct cfg_value *string_value(struct expander *e, const struct text *t,
                                      const struct cfg_value *from)
{
    unescape(t->b);
    struct cfg_value *v =
        cfg_new_string(e->c->arena, from->pos, (const char *)t->b->data, t->b->len);
    if (!v)
        return give_up(e, from->pos, "out of memory");
    v->expanded = t->whole;
    v->secret = t->foreign;
    return finished(e, v, t->foreign && !t->whole && !from->secret);
}

static struct cfg_value *expand_buffer(struct expander *e, struct text *t, struct cfg_value *v,
                                       int depth)
{
    struct span at;
    struct retrieved r;
    int found;
    while ((found = next_reference(e, t, &at, &r)) == 1) {
        bool whole = at.first == 0 && at.last + 1 == t->b->len;
        struct cfg_value *typed = whole ? parse(e, &r) : NULL;
        if (typed)
            return typed_value(e, t, typed, &r, depth);
        t->whole = t->whole || whole;
        if (substitute(e, t, at, &r) < 0)
            return v;
    }
    return found < 0 || e->stop ? v : string_value(e, t, v);
}

static struct cfg_value *expand_string(struct expander *e, struct cfg_value *v, int depth)
{
    if (!memchr(v->text, '$', v->text_len))
        return finished(e, v, false);
    _cleanup_buf_ struct buf *b = buf_new(MAX_TEXT_BYTES);
    struct text t = {.b = b, .pos = v->pos, .foreign = v->secret};
    if (!b || buf_append(b, v->text, v->text_len) < 0)
        return give_up(e, v->pos, "out of memory");
    const size_t first = e->c->nreferences;
    struct cfg_value *r = expand_buffer(e, &t, v, depth);
    if (r)
        set_types(e, first, r->type);
    return r;
}

/* Whether entry i of a map is a credential: by its key, or as the value of {name: Authorization,
 * value: …} among headers. */
static bool is_credential(const struct expander *e, const struct cfg_value *v, size_t i)
{
    if (cfg_key_is_credential(v->keys[i]))
        return true;
    const struct cfg_value *name =
        e->secretive && strcmp(v->keys[i], "value") == 0 ? cfg_get(v, "name") : NULL;
    return name && name->type == CFG_STRING && cfg_key_is_credential(name->text);
}

static struct cfg_value *expand_item(struct expander *e, const struct cfg_value *v, size_t i,
                                     int depth)
{
    size_t mark = cfg_path_push_index(&e->path, i);
    struct cfg_value *item = expand_value(e, v->items[i], depth + 1);
    cfg_path_pop(&e->path, mark);
    return item;
}

static struct cfg_value *expand_entry(struct expander *e, const struct cfg_value *v, size_t i,
                                      int depth)
{
    unsigned secretive = cfg_key_holds_secrets(v->keys[i]), credential = is_credential(e, v, i);
    size_t mark = cfg_path_push(&e->path, v->keys[i]);
    e->secretive += secretive;
    const unsigned outside = e->credential;
    e->credential = cfg_key_names_file(v->keys[i]) ? 0 : outside + credential;
    struct cfg_value *item = expand_value(e, v->items[i], depth + 1);
    e->secretive -= secretive;
    e->credential = outside;
    cfg_path_pop(&e->path, mark);
    return item;
}

static struct cfg_value *expand_container(struct expander *e, struct cfg_value *v, int depth)
{
    if (depth > CFG_MAX_DEPTH)
        return give_up(e, v->pos, "nested too deeply");
    struct cfg_value *copy = cfg_copy(e->c->arena, v);
    if (!copy || !(copy->items = arena_alloc(e->c->arena, v->n * sizeof(*v->items))))
        return give_up(e, v->pos, "out of memory");
    for (size_t i = 0; i < v->n; i++) {
        copy->items[i] =
            v->type == CFG_LIST ? expand_item(e, v, i, depth) : expand_entry(e, v, i, depth);
        if (!copy->items[i])
            return NULL;
    }
    return copy;
}

/* The value without references; NULL when expansion was given up. */
static struct cfg_value *expand_value(struct expander *e, struct cfg_value *v, int depth)
{
    if (e->stop)
        return NULL;
    if (v->type == CFG_STRING)
        return expand_string(e, v, depth);
    return is_container(v) ? expand_container(e, v, depth) : finished(e, v, false);
}

struct cfg_value *cfg_expand(struct config *c, struct cfg_value *root, struct cfg_errors *errs)
{
    struct expander e = {.c = c, .errs = errs};
    return expand_value(&e, root, 1);
}
