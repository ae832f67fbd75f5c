/* YAML text to values; the only file that knows libyaml. */
#include <errno.h>
#include <yaml.h>

#include "agent/config/tree.h"

#define MAX_ALIASED 100000 /* values that aliases may add to a document */

struct anchor {
    struct anchor *next;
    const char *name;
    struct cfg_value *value; /* NULL while it is being read */
};

struct reader {
    yaml_parser_t parser;
    struct arena *arena;
    const char *name;
    struct bytes text;
    struct cfg_errors *errs;
    struct anchor *anchors; /* the latest first */
    size_t aliased;
    bool failed; /* something is in errs, or memory is out: reading has stopped */
};

static void delete_event(yaml_event_t *e)
{
    yaml_event_delete(e);
}
#define _cleanup_event_ _cleanup_(delete_event)

static struct cfg_pos position(const struct reader *r, yaml_mark_t mark)
{
    return (struct cfg_pos){r->name, (int)mark.line + 1, (int)mark.column + 1};
}

/* Reports and stops; returns NULL. */
static struct cfg_value *fail(struct reader *r, struct cfg_pos pos, const char *fmt,
                              const char *arg)
{
    if (!r->failed)
        cfg_error(r->errs, pos, "", fmt, arg);
    r->failed = true;
    return NULL;
}

static struct cfg_value *no_memory(struct reader *r)
{
    return fail(r, (struct cfg_pos){r->name}, "%s", "out of memory");
}

/* Whether the blanks before the first character of a line (from 0) have a tab among them. */
static bool has_tab_indent(struct bytes text, size_t line)
{
    const uint8_t *p = text.data, *end = text.data + text.len;
    for (; line && p < end; line--) {
        const uint8_t *lf = memchr(p, '\n', (size_t)(end - p));
        p = lf ? lf + 1 : end;
    }
    while (p < end && *p == ' ')
        p++;
    return p < end && *p == '\t';
}

/* What is usually behind a problem that the library found. */
static const char *likely_cause(const char *problem)
{
    static const struct {
        const char *problem, *cause;
    } known[] = {
        {"mapping values are not allowed in this context",
         "; is the line indented too far, or a text with \": \" not in quotes?"},
        {"did not find expected key", "; is the line indented like its neighbours?"},
        {"did not find expected <document start>", "; is the line indented like the first one?"},
        {"could not find expected ':'", "; is the \":\" or the blank behind it missing?"},
        {"found character that cannot start any token", "; put the text in quotes"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (strcmp(problem, known[i].problem) == 0)
            return known[i].cause;
    return "";
}

static void report_syntax(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    struct cfg_pos pos = position(r, p->problem_mark);
    const char *problem = p->problem ? p->problem : "not valid", *cause = likely_cause(problem);
    if (p->error != YAML_READER_ERROR && has_tab_indent(r->text, p->problem_mark.line)) {
        cfg_error(r->errs, pos, "", "not valid YAML: a tab cannot indent a line, use spaces");
    } else if (p->error == YAML_READER_ERROR) {
        cfg_error(r->errs, (struct cfg_pos){r->name}, "", "not valid YAML: %s at byte %zu", problem,
                  p->problem_offset);
    } else if (p->context) {
        cfg_error(r->errs, pos, "", "not valid YAML: %s (%s that starts at %zu:%zu)%s", problem,
                  p->context, p->context_mark.line + 1, p->context_mark.column + 1, cause);
    } else {
        cfg_error(r->errs, pos, "", "not valid YAML: %s%s", problem, cause);
    }
    r->failed = true;
}

static bool next_event(struct reader *r, yaml_event_t *e)
{
    if (r->failed)
        return false;
    if (yaml_parser_parse(&r->parser, e))
        return true;
    if (r->parser.error == YAML_MEMORY_ERROR)
        no_memory(r);
    else
        report_syntax(r);
    return false;
}

/* Opens an anchor when the event has one; NULL when it has none or memory is out. */
static struct anchor *open_anchor(struct reader *r, const yaml_char_t *name)
{
    if (!name)
        return NULL;
    struct anchor *a = arena_calloc(r->arena, sizeof(*a));
    if (!a || !(a->name = arena_strdup(r->arena, (const char *)name))) {
        no_memory(r);
        return NULL;
    }
    a->next = r->anchors;
    r->anchors = a;
    return a;
}

/* Values below and with `v`, counted as often as they are shown, up to `limit`; *depth: levels. */
static size_t measure(const struct cfg_value *v, size_t limit, int *depth)
{
    size_t count = 1;
    int deepest = 0;
    for (size_t i = 0; i < v->n && count < limit; i++) {
        int below;
        count += measure(v->items[i], limit - count, &below);
        deepest = below > deepest ? below : deepest;
    }
    *depth = deepest + 1;
    return count;
}

static struct cfg_value *read_alias(struct reader *r, const yaml_event_t *e, int depth)
{
    const char *name = (const char *)e->data.alias.anchor;
    struct cfg_pos pos = position(r, e->start_mark);
    struct anchor *a = r->anchors;
    while (a && strcmp(a->name, name) != 0)
        a = a->next;
    if (!a)
        return fail(r, pos, "unknown anchor \"%s\"", name);
    if (!a->value)
        return fail(r, pos, "anchor \"%s\" contains itself", name);
    int levels;
    r->aliased += measure(a->value, MAX_ALIASED + 1, &levels);
    if (r->aliased > MAX_ALIASED)
        return fail(r, pos, "%s", "aliases repeat too many values");
    if (depth + levels > CFG_MAX_DEPTH)
        return fail(r, pos, "%s", "nested too deeply");
    return a->value;
}

static const char *core_tag(const yaml_char_t *tag)
{
    static const char prefix[] = "tag:yaml.org,2002:";
    const char *t = (const char *)tag;
    return t && strncmp(t, prefix, sizeof(prefix) - 1) == 0 ? t + sizeof(prefix) - 1 : "";
}

static bool has_type(struct cfg_value *v, const char *tag)
{
    if (strcmp(tag, "float") == 0 && (v->type == CFG_INT || v->type == CFG_UINT)) {
        v->d = v->type == CFG_INT ? (double)v->i : (double)v->u;
        v->type = CFG_DOUBLE;
    }
    const char *type = v->type == CFG_STRING ? "str" : cfg_type_name(v->type);
    return strcmp(type, tag) == 0;
}

/* A scalar with a tag of YAML's own: !!str, !!int … */
static struct cfg_value *apply_tag(struct reader *r, struct cfg_value *v, const char *tag)
{
    static const char *const typed[] = {"null", "bool", "int", "float", "timestamp"};
    if (strcmp(tag, "binary") == 0)
        return fail(r, v->pos, "%s", "the tag !!binary is not supported");
    for (size_t i = 0; i < ARRAY_SIZE(typed); i++) {
        if (strcmp(tag, typed[i]) != 0)
            continue;
        cfg_resolve(v);
        return has_type(v, tag) ? v : fail(r, v->pos, "the value does not fit its tag !!%s", tag);
    }
    return v;
}

static struct cfg_value *read_scalar(struct reader *r, const yaml_event_t *e)
{
    const char *text = (const char *)e->data.scalar.value, *tag = core_tag(e->data.scalar.tag);
    struct anchor *anchor = open_anchor(r, e->data.scalar.anchor);
    struct cfg_value *v =
        cfg_new_string(r->arena, position(r, e->start_mark), text, e->data.scalar.length);
    if (!v)
        return no_memory(r);
    if (*tag)
        v = apply_tag(r, v, tag);
    else if (e->data.scalar.plain_implicit && e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        cfg_resolve(v);
    if (anchor)
        anchor->value = v;
    return r->failed ? NULL : v;
}

static struct cfg_value *read_node(struct reader *r, const yaml_event_t *e, int depth);

static struct cfg_value *read_list(struct reader *r, const yaml_event_t *start, int depth)
{
    struct anchor *anchor = open_anchor(r, start->data.sequence_start.anchor);
    struct cfg_value *v = cfg_new(r->arena, CFG_LIST, position(r, start->start_mark));
    if (!v)
        return no_memory(r);
    for (;;) {
        _cleanup_event_ yaml_event_t e = {0};
        if (!next_event(r, &e))
            return NULL;
        if (e.type == YAML_SEQUENCE_END_EVENT)
            break;
        struct cfg_value *item = read_node(r, &e, depth + 1);
        if (!item)
            return NULL;
        if (cfg_append(r->arena, v, NULL, (struct cfg_pos){0}, item) < 0)
            return no_memory(r);
    }
    if (anchor)
        anchor->value = v;
    return v;
}

static bool is_merge_key(const yaml_event_t *e)
{
    return e->type == YAML_SCALAR_EVENT && e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           strcmp((const char *)e->data.scalar.value, "<<") == 0;
}

/* The text under which a key is found: numbers in their plain spelling. */
static const char *key_text(struct reader *r, const struct cfg_value *key)
{
    if (key->type == CFG_INT)
        return arena_printf(r->arena, "%lld", (long long)key->i);
    return key->text;
}

/* Adds what `<<: from` brings to the map: keys that are not there yet. */
static bool merge_map(struct reader *r, struct cfg_value *into, const struct cfg_value *from)
{
    if (from->type != CFG_MAP) {
        fail(r, from->pos, "%s", "<< expects a map or a list of maps");
        return false;
    }
    for (size_t i = 0; i < from->n; i++) {
        if (cfg_index(into, from->keys[i]) < into->n)
            continue;
        if (cfg_append(r->arena, into, from->keys[i], from->key_pos[i], from->items[i]) < 0)
            return no_memory(r);
    }
    return true;
}

static bool merge_all(struct reader *r, struct cfg_value *into, const struct cfg_value *from)
{
    if (from->type != CFG_LIST)
        return merge_map(r, into, from);
    for (size_t i = 0; i < from->n; i++)
        if (!merge_map(r, into, from->items[i]))
            return false;
    return true;
}

struct seen_key {
    const char *key;
    struct cfg_pos pos;
};

static int by_key(const void *a, const void *b)
{
    const struct seen_key *x = a, *y = b;
    int order = strcmp(x->key, y->key);
    if (order == 0)
        order =
            x->pos.line != y->pos.line ? x->pos.line - y->pos.line : x->pos.column - y->pos.column;
    return order;
}

static void check_duplicates(struct reader *r, const struct cfg_value *map)
{
    _cleanup_free_ struct seen_key *seen = calloc(map->n + 1, sizeof(*seen));
    if (!seen) {
        no_memory(r);
        return;
    }
    for (size_t i = 0; i < map->n; i++)
        seen[i] = (struct seen_key){map->keys[i], map->key_pos[i]};
    qsort(seen, map->n, sizeof(*seen), by_key);
    for (size_t i = 1; i < map->n; i++) {
        if (strcmp(seen[i].key, seen[i - 1].key) != 0)
            continue;
        cfg_error(r->errs, seen[i].pos, "", "the key \"%.100s\" was already given at %d:%d",
                  seen[i].key, seen[i - 1].pos.line, seen[i - 1].pos.column);
    }
}

/* One key and its value; *merge is set to the value of `<<`. */
static bool read_entry(struct reader *r, struct cfg_value *map, const yaml_event_t *key_event,
                       int depth, struct cfg_value **merge)
{
    _cleanup_event_ yaml_event_t e = {0};
    struct cfg_pos pos = position(r, key_event->start_mark);
    struct cfg_value *key = read_node(r, key_event, depth + 1);
    if (!key || !next_event(r, &e))
        return false;
    if (key->type == CFG_LIST || key->type == CFG_MAP)
        return fail(r, pos, "expected a plain key, got a %s", cfg_type_name(key->type));
    struct cfg_value *v = read_node(r, &e, depth + 1);
    if (!v)
        return false;
    if (is_merge_key(key_event)) {
        if (*merge)
            return fail(r, pos, "%s", "the key \"<<\" was already given");
        *merge = v;
        return true;
    }
    const char *text = key_text(r, key);
    if (!text || cfg_append(r->arena, map, text, pos, v) < 0)
        return no_memory(r);
    return true;
}

static struct cfg_value *read_map(struct reader *r, const yaml_event_t *start, int depth)
{
    struct cfg_value *merge = NULL;
    struct anchor *anchor = open_anchor(r, start->data.mapping_start.anchor);
    struct cfg_value *v = cfg_new(r->arena, CFG_MAP, position(r, start->start_mark));
    if (!v)
        return no_memory(r);
    for (;;) {
        _cleanup_event_ yaml_event_t e = {0};
        if (!next_event(r, &e))
            return NULL;
        if (e.type == YAML_MAPPING_END_EVENT)
            break;
        if (!read_entry(r, v, &e, depth, &merge))
            return NULL;
    }
    check_duplicates(r, v);
    if (merge && !merge_all(r, v, merge))
        return NULL;
    if (anchor)
        anchor->value = v;
    return v;
}

static struct cfg_value *read_node(struct reader *r, const yaml_event_t *e, int depth)
{
    if (depth > CFG_MAX_DEPTH)
        return fail(r, position(r, e->start_mark), "%s", "nested too deeply");
    switch (e->type) {
    case YAML_ALIAS_EVENT: return read_alias(r, e, depth);
    case YAML_SCALAR_EVENT: return read_scalar(r, e);
    case YAML_SEQUENCE_START_EVENT: return read_list(r, e, depth);
    case YAML_MAPPING_START_EVENT: return read_map(r, e, depth);
    default: return fail(r, position(r, e->start_mark), "%s", "not valid YAML");
    }
}

/* Reads the end of the document; whether another one begins. What is wrong behind an explicit end
 * ("...") is nobody's concern. */
static bool read_end(struct reader *r)
{
    _cleanup_event_ yaml_event_t end = {0};
    _cleanup_event_ yaml_event_t next = {0};
    if (!next_event(r, &end))
        return false;
    if (!end.data.document_end.implicit && !yaml_parser_parse(&r->parser, &next))
        return true;
    return (next.type != YAML_NO_EVENT || next_event(r, &next)) &&
           next.type == YAML_DOCUMENT_START_EVENT;
}

static struct cfg_value *read_document(struct reader *r, bool *ret_more)
{
    _cleanup_event_ yaml_event_t stream = {0};
    _cleanup_event_ yaml_event_t document = {0};
    _cleanup_event_ yaml_event_t e = {0};
    if (!next_event(r, &stream) || !next_event(r, &document))
        return NULL;
    if (document.type == YAML_STREAM_END_EVENT)
        return cfg_new(r->arena, CFG_NULL, (struct cfg_pos){r->name, 1, 1});
    if (!next_event(r, &e))
        return NULL;
    struct cfg_value *v = read_node(r, &e, 1);
    bool more = v && read_end(r);
    if (ret_more)
        *ret_more = more;
    return v;
}

struct cfg_value *cfg_yaml_parse(struct arena *a, const char *name, const char *text, size_t len,
                                 struct cfg_errors *errs, bool *ret_more)
{
    struct reader r = {.arena = a, .name = name, .text = bytes_of(text, len), .errs = errs};
    size_t before = errs->n + errs->dropped;
    if (ret_more)
        *ret_more = false;
    if (!yaml_parser_initialize(&r.parser))
        return no_memory(&r);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    struct cfg_value *v = read_document(&r, ret_more);
    yaml_parser_delete(&r.parser);
    if (!v && !r.failed)
        no_memory(&r);
    return errs->n + errs->dropped == before ? v : NULL;
}
