/* Attribute actions: what their configuration may hold, and how it is compiled. */
#include <errno.h>
#include <stdarg.h>
#include <strings.h>

#include "agent/pipeline/any_config.h"
#include "agent/pipeline/attr_actions_parts.h"

static const char *const kind_names[] = {"insert", "update",  "upsert", "delete",
                                         "hash",   "extract", "convert"};

static const struct cfg_field fields[] = {
    {.key = "key",
     .kind = BIND_STRING,
     CFG_AT(struct attr_action_config, key),
     .help = "Name of the attribute."},
    {.key = "action",
     .kind = BIND_STRING,
     CFG_AT(struct attr_action_config, action),
     .help = "insert, update, upsert, delete, hash, extract or convert, in any case."},
    {.key = "value",
     .kind = BIND_ANY,
     CFG_AT(struct attr_action_config, value),
     .help = "Value to set; its type is that of the YAML value."},
    {.key = "default_value",
     .kind = BIND_ANY,
     CFG_AT(struct attr_action_config, default_value),
     .help = "Value to set when from_attribute names an attribute that is absent."},
    {.key = "from_attribute",
     .kind = BIND_STRING,
     CFG_AT(struct attr_action_config, from_attribute),
     .help = "Attribute to copy the value from."},
    {.key = "from_context",
     .kind = BIND_REFUSED,
     .def = "\"\"",
     .help =
         "values from client metadata, auth data or the client address are not kept with the data"},
    {.key = "pattern",
     .kind = BIND_STRING,
     CFG_AT(struct attr_action_config, pattern),
     .help = "RE2 expression; delete, hash: matched against keys; extract: its named groups become "
             "attributes."},
    {.key = "converted_type",
     .kind = BIND_STRING,
     CFG_AT(struct attr_action_config, converted_type),
     .help = "convert: string, int or double."},
    {0}};

const struct cfg_field attr_action_elem = {
    .kind = BIND_STRUCT, .fields = fields, .size = sizeof(struct attr_action_config)};

/* Where the compiler is, for error texts. */
struct place {
    const char *list_key;
    size_t index;
    const struct attr_action_config *config;
    struct err *err;
};

static int _printf_(3, 4) fail(const struct place *at, const char *member, const char *fmt, ...)
{
    char path[sizeof(at->err->path)];
    va_list ap;
    snprintf(path, sizeof(path), "%s[%zu]%s%s", at->list_key, at->index, *member ? "::" : "",
             member);
    va_start(ap, fmt);
    const int r = err_vat(at->err, path, fmt, ap);
    va_end(ap);
    err_prefix(at->err, "key \"%s\" (action %zu%s%s): ", at->config->key, at->index,
               *at->config->action ? ", " : "", at->config->action);
    return r;
}

static bool given(const struct cfg_value *v)
{
    return v && v->type != CFG_NULL;
}

/* Whether a value is nothing because a variable is. */
static bool is_unset(const struct cfg_value *v)
{
    return v && v->type == CFG_NULL && v->expanded;
}

static int encode(const struct place *at, const char *member, const struct cfg_value *v,
                  struct buf **ret)
{
    if (!given(v))
        return 0;
    *ret = buf_new(0);
    if (!*ret)
        return -ENOMEM;
    struct err why;
    int r = any_config_write(v, *ret, &why);
    buf_shrink(*ret);
    return r == -EINVAL ? fail(at, member, "%s", why.text) : r;
}

/* ---- rules ---- */

static int unused(const struct place *at, const char *member, bool is_given)
{
    return is_given
               ? fail(at, member, "\"%s\" is not used by this action and must not be given", member)
               : 0;
}

static int compile_pattern(const struct place *at, struct attr_action *a)
{
    struct err why;
    int r = regex_new(bytes_str(at->config->pattern), &a->regex, &why);
    return r == -EINVAL
               ? fail(at, "pattern", "invalid pattern \"%s\": %s", at->config->pattern, why.text)
               : r;
}

static int compile_set(const struct place *at, struct attr_action *a)
{
    const struct attr_action_config *c = at->config;
    bool value = given(c->value), from = *c->from_attribute, fallback = given(c->default_value);
    int r = 0;
    if (!from && !fallback && is_unset(c->value))
        return fail(at, "value",
                    "the variable of \"value\" is not set or empty; a default is written "
                    "${env:NAME:-text}");
    if (!value && !from && !fallback)
        return fail(at, "",
                    "one of \"value\", \"from_attribute\" or \"default_value\" must be given");
    if (value && from)
        return fail(at, "", "\"value\" and \"from_attribute\" exclude each other");
    if ((r = unused(at, "pattern", *c->pattern)) < 0 ||
        (r = unused(at, "converted_type", *c->converted_type)) < 0 ||
        (r = encode(at, "value", c->value, &a->value)) < 0)
        return r;
    return encode(at, "default_value", c->default_value, &a->fallback);
}

static int compile_keys(const struct place *at, struct attr_action *a)
{
    const struct attr_action_config *c = at->config;
    int r = 0;
    if ((r = unused(at, "value", given(c->value))) < 0 ||
        (r = unused(at, "from_attribute", *c->from_attribute)) < 0 ||
        (r = unused(at, "converted_type", *c->converted_type)) < 0)
        return r;
    return *c->pattern ? compile_pattern(at, a) : 0;
}

static int compile_extract(const struct place *at, struct attr_action *a)
{
    const struct attr_action_config *c = at->config;
    int r = 0;
    if (!*c->pattern)
        return fail(at, "", "\"pattern\" must be given");
    if ((r = compile_keys(at, a)) < 0)
        return r;
    if (regex_groups(a->regex) == 0)
        return fail(at, "pattern", "no named group (?P<name>…) in \"%s\"", c->pattern);
    for (unsigned i = 1; i <= regex_groups(a->regex); i++)
        if (!*regex_group_name(a->regex, i))
            return fail(at, "pattern", "group %u of \"%s\" has no name", i, c->pattern);
    return 0;
}

static int compile_convert(const struct place *at, struct attr_action *a)
{
    const struct attr_action_config *c = at->config;
    int r = 0;
    if ((r = unused(at, "value", given(c->value))) < 0 ||
        (r = unused(at, "from_attribute", *c->from_attribute)) < 0 ||
        (r = unused(at, "pattern", *c->pattern)) < 0)
        return r;
    if (strcmp(c->converted_type, "string") == 0)
        a->target = ANY_STRING;
    else if (strcmp(c->converted_type, "int") == 0)
        a->target = ANY_INT;
    else if (strcmp(c->converted_type, "double") == 0)
        a->target = ANY_DOUBLE;
    else
        return fail(at, "converted_type", "expected string, int or double, got \"%s\"",
                    c->converted_type);
    return 0;
}

static int find_kind(const struct place *at, enum action_kind *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(kind_names); i++)
        if (strcasecmp(at->config->action, kind_names[i]) == 0) {
            *ret = (enum action_kind)i;
            return 0;
        }
    char got[80] = "\"action\" must be given";
    if (*at->config->action)
        snprintf(got, sizeof(got), "unsupported action \"%.40s\"", at->config->action);
    return fail(at, "action",
                "%s: expected insert, update, upsert, delete, hash, extract or convert", got);
}

static int compile(const struct place *at, struct attr_action *a)
{
    const struct attr_action_config *c = at->config;
    int r = find_kind(at, &a->kind);
    if (r < 0)
        return r;
    bool by_pattern = a->kind == ACTION_DELETE || a->kind == ACTION_HASH;
    if (!*c->key && !(by_pattern && *c->pattern))
        return fail(at, "", "\"key\"%s must be given", by_pattern ? " or \"pattern\"" : "");
    a->key = bytes_str(c->key);
    a->from = bytes_str(c->from_attribute);
    switch (a->kind) {
    case ACTION_DELETE:
    case ACTION_HASH: return compile_keys(at, a);
    case ACTION_EXTRACT: return compile_extract(at, a);
    case ACTION_CONVERT: return compile_convert(at, a);
    default: return compile_set(at, a);
    }
}

int attr_actions_new(const struct cfg_list *list, const char *list_key, const struct logger *lg,
                     struct attr_actions **ret, struct err *reterr)
{
    const struct attr_action_config *configs = list->items;
    _cleanup_(attr_actions_freep) struct attr_actions *as =
        calloc(1, sizeof(*as) + list->n * sizeof(as->items[0]));
    if (!as)
        return err_set(reterr, -ENOMEM, "out of memory");
    as->lg = lg;
    as->n = list->n;
    for (size_t i = 0; i < list->n; i++) {
        struct place at = {list_key, i, &configs[i], reterr};
        int r = compile(&at, &as->items[i]);
        if (r < 0)
            return r == -ENOMEM ? err_set(reterr, r, "out of memory") : r;
    }
    *ret = TAKE_PTR(as);
    return 0;
}

struct attr_actions *attr_actions_free(struct attr_actions *as)
{
    for (size_t i = 0; as && i < as->n; i++) {
        buf_unref(as->items[i].value);
        buf_unref(as->items[i].fallback);
        regex_free(as->items[i].regex);
    }
    free(as);
    return NULL;
}
