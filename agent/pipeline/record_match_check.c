/* Matching of records: the keys, what they may hold, and how they are compiled. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "agent/pipeline/any_config.h"
#include "agent/pipeline/record_match_parts.h"

#define LIST(name, member, text)                                                                   \
    {                                                                                              \
        .key = name, .kind = BIND_LIST, CFG_AT(struct match_config, member),                       \
        .elem = &cfg_elem_string, .help = text                                                     \
    }
#define TYPE                                                                                       \
    {                                                                                              \
        .key = "match_type", .kind = BIND_STRING, CFG_AT(struct match_config, match_type),         \
        .help = "strict (texts are equal) or regexp (RE2, found anywhere in the text)."            \
    }
#define CACHE                                                                                      \
    {                                                                                              \
        .key = "regexp", .kind = BIND_ANY, CFG_AT(struct match_config, regexp),                    \
        .use = CFG_NO_EFFECT,                                                                      \
        .help = "Accepted without effect: expressions are compiled once, nothing is cached."       \
    }

static const struct cfg_field severity_fields[] = {
    {.key = "min",
     .kind = BIND_ANY,
     CFG_AT(struct match_severity, min),
     .help = "Lowest severity number; also by name (INFO, WARN2)."},
    {.key = "match_undefined",
     .kind = BIND_BOOL,
     CFG_AT(struct match_severity, match_undefined),
     .help = "Whether records without a severity number match."},
    {0}};

static const struct cfg_field attribute_fields[] = {
    {.key = "key",
     .kind = BIND_STRING,
     CFG_AT(struct match_attribute, key),
     .help = "Name of the attribute; it has to be there."},
    {.key = "value",
     .kind = BIND_ANY,
     CFG_AT(struct match_attribute, value),
     .help = "strict: the value, type and all; regexp: an expression for its text."},
    {0}};
static const struct cfg_field attribute_elem = {
    .kind = BIND_STRUCT, .fields = attribute_fields, .size = sizeof(struct match_attribute)};

static const struct cfg_field library_fields[] = {{.key = "name",
                                                   .kind = BIND_STRING,
                                                   CFG_AT(struct match_library, name),
                                                   .help = "Name of the scope."},
                                                  {.key = "version",
                                                   .kind = BIND_STRING,
                                                   CFG_AT(struct match_library, version),
                                                   .nullable = true,
                                                   .help = "Version of the scope; absent: any."},
                                                  {0}};
static const struct cfg_field library_elem = {
    .kind = BIND_STRUCT, .fields = library_fields, .size = sizeof(struct match_library)};

#define ATTRIBUTES(name, member, text)                                                             \
    {                                                                                              \
        .key = name, .kind = BIND_LIST, CFG_AT(struct match_config, member),                       \
        .elem = &attribute_elem, .help = text                                                      \
    }
#define SEVERITY(name)                                                                             \
    {                                                                                              \
        .key = name, .kind = BIND_BLOCK, CFG_AT(struct match_config, severity),                    \
        .fields = severity_fields, CFG_NESTED(struct match_severity), .null_absent = true,         \
        .help = "Range of severities."                                                             \
    }

const struct cfg_field match_fields[] = {
    TYPE,
    CACHE,
    LIST("services", services, "Values of service.name. Spans only."),
    LIST("span_names", span_names, "Names of spans."),
    LIST("span_kinds", span_kinds, "Kinds of spans: SPAN_KIND_SERVER …"),
    LIST("log_bodies", log_bodies, "Bodies of log records; one that is no text by its text form."),
    LIST("log_severity_texts", log_severity_texts, "Severity texts of log records."),
    SEVERITY("log_severity_number"),
    LIST("metric_names", metric_names, "Names of metrics."),
    ATTRIBUTES("attributes", attributes,
               "Attributes of the span or log record; all have to match."),
    ATTRIBUTES("resources", resources, "Attributes of the resource; all have to match."),
    {.key = "libraries",
     .kind = BIND_LIST,
     CFG_AT(struct match_config, libraries),
     .elem = &library_elem,
     .help = "Instrumentation scopes. Spans and log records."},
    {0}};

const struct cfg_field match_log_fields[] = {
    TYPE,
    CACHE,
    ATTRIBUTES("resource_attributes", resources, "Attributes of the resource; all have to match."),
    ATTRIBUTES("record_attributes", attributes, "Attributes of the record; all have to match."),
    LIST("severity_texts", log_severity_texts, "Severity texts."),
    LIST("bodies", log_bodies, "Bodies; one that is no text by its text form."),
    SEVERITY("severity_number"),
    {0}};

const struct cfg_field match_metric_fields[] = {
    TYPE,
    CACHE,
    LIST("metric_names", metric_names, "Names of metrics."),
    ATTRIBUTES("resource_attributes", resources, "Attributes of the resource; all have to match."),
    {.key = "expressions",
     .kind = BIND_REFUSED,
     .def = "[]",
     .help = "the expression language of match_type expr is not built in; write a condition under "
             "metric_conditions"},
    {0}};

/* ---- compilation ---- */

/* Where the compiler is, for error texts. */
struct place {
    const char *key;
    bool regexp;
    struct err *err;
};

static int _printf_(3, 4) fail(const struct place *at, const char *member, const char *fmt, ...)
{
    char path[sizeof(at->err->path)];
    va_list ap;
    snprintf(path, sizeof(path), "%s%s%s", at->key, *member ? "::" : "", member);
    va_start(ap, fmt);
    const int r = err_vat(at->err, path, fmt, ap);
    va_end(ap);
    return r;
}

static int compile_regex(const struct place *at, const char *member, struct bytes pattern,
                         struct regex **ret)
{
    struct err why;
    int r = regex_new(pattern, ret, &why);
    return r == -EINVAL ? fail(at, member, "invalid expression \"%.*s\": %s", (int)pattern.len,
                               (const char *)pattern.data, why.text)
                        : r;
}

static int compile_text(const struct place *at, const char *member, const char *text,
                        struct match_text *t)
{
    t->want = bytes_str(text);
    return at->regexp ? compile_regex(at, member, t->want, &t->regex) : 0;
}

static int compile_texts(const struct place *at, const char *member, const struct cfg_list *list,
                         struct match_texts *t)
{
    const char *const *texts = list->items;
    int r = 0;
    if (list->n && !(t->items = calloc(list->n, sizeof(*t->items))))
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        t->n = i + 1;
        char path[64];
        snprintf(path, sizeof(path), "%s[%zu]", member, i);
        r = compile_text(at, path, texts[i], &t->items[i]);
    }
    return r;
}

static int compile_value(const struct place *at, const char *member,
                         const struct match_attribute *c, struct match_value *v)
{
    struct err why;
    if (!*c->key)
        return fail(at, member, "\"key\" must be given");
    v->key = bytes_str(c->key);
    if (!c->value || c->value->type == CFG_NULL)
        return 0;
    if (at->regexp && c->value->type != CFG_STRING)
        return fail(at, member,
                    "with match_type regexp, \"value\" is an expression in quotes; got %s",
                    cfg_type_name(c->value->type));
    if (at->regexp)
        return compile_regex(at, member, bytes_of(c->value->text, c->value->text_len), &v->regex);
    v->want = buf_new(0);
    int r = v->want ? any_config_write(c->value, v->want, &why) : -ENOMEM;
    return r == -EINVAL ? fail(at, member, "%s", why.text) : r;
}

static int compile_values(const struct place *at, const char *member, const struct cfg_list *list,
                          struct match_values *vs)
{
    const struct match_attribute *c = list->items;
    int r = 0;
    if (list->n && !(vs->items = calloc(list->n, sizeof(*vs->items))))
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        vs->n = i + 1;
        char path[64];
        snprintf(path, sizeof(path), "%s[%zu]", member, i);
        r = compile_value(at, path, &c[i], &vs->items[i]);
    }
    return r;
}

static int compile_libraries(const struct place *at, const struct cfg_list *list,
                             struct record_match *m)
{
    const struct match_library *c = list->items;
    int r = 0;
    if (list->n && !(m->libraries = calloc(list->n, sizeof(*m->libraries))))
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        m->nlibraries = i + 1;
        struct match_scope *s = &m->libraries[i];
        s->any_version = c[i].version == NULL;
        r = compile_text(at, "libraries", c[i].name, &s->name);
        if (r == 0 && c[i].version)
            r = compile_text(at, "libraries", c[i].version, &s->version);
    }
    return r;
}

/* "INFO", "Warn2" … as a number; 0 when it is none. */
static int64_t severity_by_name(const char *text)
{
    static const char *const names[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const size_t n = strlen(names[i]);
        const char *rest = text + n;
        if (strncasecmp(text, names[i], n) == 0 &&
            (!*rest || (rest[0] >= '2' && rest[0] <= '4' && !rest[1])))
            return (int64_t)(1 + 4 * i) + (*rest ? rest[0] - '1' : 0);
    }
    return 0;
}

static int compile_severity(const struct place *at, const struct match_severity *c,
                            struct record_match *m)
{
    if (!c)
        return 0;
    m->severity = true;
    m->severity_undefined = c->match_undefined;
    if (!c->min || c->min->type == CFG_NULL)
        return 0;
    if (c->min->type == CFG_INT)
        m->severity_min = c->min->i;
    else if (c->min->type == CFG_STRING)
        m->severity_min = severity_by_name(c->min->text);
    if (m->severity_min < 1 || m->severity_min > 24)
        return fail(at, "log_severity_number::min",
                    "expected a number from 1 to 24 or a name such as INFO or WARN2, got %s",
                    c->min->text ? c->min->text : cfg_type_name(c->min->type));
    return 0;
}

/* ---- what goes with what ---- */

static int refuse(const struct place *at, bool given, const char *what, enum signal s)
{
    return given ? fail(at, what, "%s cannot be asked of %s", what,
                        s == SIGNAL_TRACES    ? "spans"
                        : s == SIGNAL_METRICS ? "metrics"
                                              : "log records")
                 : 0;
}

static int check_keys(const struct place *at, const struct match_config *c, enum signal s)
{
    const bool spans = s == SIGNAL_TRACES, logs = s == SIGNAL_LOGS, metrics = s == SIGNAL_METRICS;
    const struct {
        bool given;
        const char *what;
    } keys[] = {
        {!spans && c->services.n, "services"},
        {!spans && c->span_names.n, "span_names"},
        {!spans && c->span_kinds.n, "span_kinds"},
        {!logs && c->log_bodies.n, "log_bodies"},
        {!logs && c->log_severity_texts.n, "log_severity_texts"},
        {!logs && c->severity, "log_severity_number"},
        {!metrics && c->metric_names.n, "metric_names"},
        {metrics && c->attributes.n, "attributes"},
        {metrics && c->libraries.n, "libraries"},
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(keys); i++)
        r = refuse(at, keys[i].given, keys[i].what, s);
    if (r == 0 && !c->services.n && !c->span_names.n && !c->span_kinds.n && !c->log_bodies.n &&
        !c->log_severity_texts.n && !c->severity && !c->metric_names.n && !c->attributes.n &&
        !c->resources.n && !c->libraries.n)
        return fail(at, "", "at least one thing to match must be given");
    return r;
}

static int check_kinds(const struct place *at, const struct match_config *c)
{
    const char *const *kinds = c->span_kinds.items;
    static const char *const known[] = {"SPAN_KIND_INTERNAL", "SPAN_KIND_SERVER",
                                        "SPAN_KIND_CLIENT",   "SPAN_KIND_PRODUCER",
                                        "SPAN_KIND_CONSUMER", NULL};
    for (size_t i = 0; !at->regexp && i < c->span_kinds.n; i++) {
        size_t k = 0;
        while (known[k] && strcmp(known[k], kinds[i]) != 0)
            k++;
        if (!known[k])
            return fail(at, "span_kinds",
                        "expected SPAN_KIND_INTERNAL, _SERVER, _CLIENT, _PRODUCER or _CONSUMER, "
                        "got \"%s\"",
                        kinds[i]);
    }
    return 0;
}

static int compile(struct place *at, const struct match_config *c, struct record_match *m)
{
    int r = check_keys(at, c, m->signal);
    if (r < 0)
        return r;
    at->regexp = strcmp(c->match_type, "regexp") == 0;
    if (!at->regexp && strcmp(c->match_type, "strict") != 0)
        return fail(at, "match_type", "expected strict or regexp, got \"%s\"", c->match_type);
    if ((r = check_kinds(at, c)) < 0 ||
        (r = compile_texts(at, "services", &c->services, &m->services)) < 0 ||
        (r = compile_texts(at, "span_names", &c->span_names, &m->span_names)) < 0 ||
        (r = compile_texts(at, "span_kinds", &c->span_kinds, &m->span_kinds)) < 0 ||
        (r = compile_texts(at, "log_bodies", &c->log_bodies, &m->log_bodies)) < 0 ||
        (r = compile_texts(at, "log_severity_texts", &c->log_severity_texts, &m->severity_texts)) <
            0 ||
        (r = compile_texts(at, "metric_names", &c->metric_names, &m->metric_names)) < 0 ||
        (r = compile_values(at, "attributes", &c->attributes, &m->attributes)) < 0 ||
        (r = compile_values(at, "resources", &c->resources, &m->resources)) < 0 ||
        (r = compile_libraries(at, &c->libraries, m)) < 0)
        return r;
    return compile_severity(at, c->severity, m);
}

int record_match_new(const struct match_config *c, const char *key, enum signal s,
                     struct record_match **ret, struct err *reterr)
{
    struct place at = {.key = key, .err = reterr};
    _cleanup_(record_match_freep) struct record_match *m = calloc(1, sizeof(*m));
    if (!m)
        return err_set(reterr, -ENOMEM, "out of memory");
    m->signal = s;
    int r = compile(&at, c, m);
    if (r < 0)
        return r == -ENOMEM ? err_set(reterr, r, "out of memory") : r;
    *ret = TAKE_PTR(m);
    return 0;
}

/* ---- the end of it ---- */

static void texts_done(struct match_texts *t)
{
    for (size_t i = 0; i < t->n; i++)
        regex_free(t->items[i].regex);
    free(t->items);
}

static void values_done(struct match_values *vs)
{
    for (size_t i = 0; i < vs->n; i++) {
        buf_unref(vs->items[i].want);
        regex_free(vs->items[i].regex);
    }
    free(vs->items);
}

struct record_match *record_match_free(struct record_match *m)
{
    if (!m)
        return NULL;
    texts_done(&m->services);
    texts_done(&m->span_names);
    texts_done(&m->span_kinds);
    texts_done(&m->log_bodies);
    texts_done(&m->severity_texts);
    texts_done(&m->metric_names);
    values_done(&m->attributes);
    values_done(&m->resources);
    for (size_t i = 0; i < m->nlibraries; i++) {
        regex_free(m->libraries[i].name.regex);
        regex_free(m->libraries[i].version.regex);
    }
    free(m->libraries);
    free(m);
    return NULL;
}
