#include "receivers/prometheus/relabel.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <pthread.h>
#include <wctype.h>

#include "agent/base/digest.h"
#include "agent/base/encode.h"
#include "agent/base/regex_replace.h"
#include "agent/base/utf8.h"

#define DEFAULT_REGEX "(.*)"
#define DEFAULT_REPLACEMENT "$1"
#define DEFAULT_SEPARATOR ";"
#define MAX_GROUPS 100 /* of a regex that replacements can name by number */

struct rule {
    const struct relabel_config *config;
    struct regex *regex;
    bool any; /* the default regex, which matches everything */
};
struct relabel_rules {
    size_t n;
    struct rule items[];
};

int prom_relabel_regex(const char *text, struct regex **ret, struct err *reterr)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    if (!b || buf_printf(b, "^(?s:%s)$", text) < 0)
        return err_set(reterr, -ENOMEM, "out of memory");
    return regex_new(buf_bytes(b), ret, reterr);
}

/* ---- checking ---- */

static bool names_group(const char *text)
{
    return strchr(text, '$') != NULL;
}

static bool only_regex_given(const struct relabel_config *c)
{
    return c->source_labels.n == 0 && !*c->target_label && c->modulus == 0 &&
           strcmp(c->separator, DEFAULT_SEPARATOR) == 0 &&
           strcmp(c->replacement, DEFAULT_REPLACEMENT) == 0;
}

/* For "%.*s": the name of the action. */
#define ACTION_NAME(c)                                                                             \
    (int)strcspn(prom_relabel_actions[(c)->action], "|"), prom_relabel_actions[(c)->action]

static int check_equal(const struct relabel_config *c, struct err *reterr)
{
    if (strcmp(c->regex, DEFAULT_REGEX) != 0 || c->modulus != 0 ||
        strcmp(c->separator, DEFAULT_SEPARATOR) != 0 ||
        strcmp(c->replacement, DEFAULT_REPLACEMENT) != 0)
        return err_set(reterr, -EINVAL,
                       "%.*s action requires only 'source_labels' and 'target_label', and no other "
                       "fields",
                       ACTION_NAME(c));
    return 0;
}

static int check_case(const struct relabel_config *c, struct err *reterr)
{
    return strcmp(c->replacement, DEFAULT_REPLACEMENT) == 0
               ? 0
               : err_at(reterr, "replacement", "'replacement' can not be set for %.*s action",
                        ACTION_NAME(c));
}

static bool needs_target(int action)
{
    return action == RELABEL_REPLACE || action == RELABEL_HASHMOD || action == RELABEL_LOWERCASE ||
           action == RELABEL_UPPERCASE || action == RELABEL_KEEPEQUAL ||
           action == RELABEL_DROPEQUAL;
}

int prom_relabel_check(const struct relabel_config *c, struct err *reterr)
{
    if (c->action == RELABEL_HASHMOD && c->modulus == 0)
        return err_at(reterr, "action",
                      "relabel configuration for hashmod requires non-zero modulus");
    if (c->modulus < 0)
        return err_at(reterr, "modulus", "expected 1 or more, got %" PRId64, c->modulus);
    if (needs_target(c->action) && !*c->target_label)
        return err_at(reterr, "action",
                      "relabel configuration for %.*s action requires 'target_label' value",
                      ACTION_NAME(c));
    switch (c->action) {
    case RELABEL_LOWERCASE:
    case RELABEL_UPPERCASE: return check_case(c, reterr);
    case RELABEL_KEEPEQUAL:
    case RELABEL_DROPEQUAL: return check_equal(c, reterr);
    case RELABEL_LABELDROP:
    case RELABEL_LABELKEEP:
        return only_regex_given(c)
                   ? 0
                   : err_set(reterr, -EINVAL,
                             "%.*s action requires only 'regex', and no other fields",
                             ACTION_NAME(c));
    default: return 0;
    }
}

/* ---- compiling ---- */

int prom_relabel_new(const struct cfg_list *configs, struct relabel_rules **ret, struct err *reterr)
{
    const struct relabel_config *c = configs->items;
    *ret = NULL;
    if (configs->n == 0)
        return 0;
    _cleanup_(prom_relabel_freep) struct relabel_rules *r =
        calloc(1, sizeof(*r) + configs->n * sizeof(r->items[0]));
    if (!r)
        return err_set(reterr, -ENOMEM, "out of memory");
    for (; r->n < configs->n; r->n++) {
        struct rule *u = &r->items[r->n];
        *u = (struct rule){.config = &c[r->n], .any = strcmp(c[r->n].regex, DEFAULT_REGEX) == 0};
        int e = prom_relabel_regex(u->config->regex, &u->regex, reterr);
        if (e < 0)
            return e;
    }
    *ret = TAKE_PTR(r);
    return 0;
}

struct relabel_rules *prom_relabel_free(struct relabel_rules *r)
{
    for (size_t i = 0; r && i < r->n; i++)
        regex_free(r->items[i].regex);
    free(r);
    return NULL;
}

bool prom_relabel_renames(const struct relabel_rules *r)
{
    for (size_t i = 0; r && i < r->n; i++)
        if (strcmp(r->items[i].config->target_label, "__name__") == 0)
            return true;
    return false;
}

/* ---- templates ---- */

struct match {
    struct regex_found found;
    struct regex_span spans[MAX_GROUPS];
};

static bool find(const struct rule *u, struct bytes subject, struct match *m)
{
    const unsigned groups = regex_groups(u->regex) + 1;
    m->found = (struct regex_found){u->regex, subject, m->spans,
                                    groups < MAX_GROUPS ? groups : MAX_GROUPS};
    return regex_search(u->regex, subject, 0, m->spans, m->found.n);
}

static bool matches(const struct rule *u, struct bytes subject)
{
    return u->any || regex_match(u->regex, subject);
}

/* A copy in the arena of the builder. */
static struct bytes keep(struct label_builder *b, struct bytes text)
{
    char *copy = text.len ? arena_strndup(b->arena, (const char *)text.data, text.len) : NULL;
    b->no_memory |= text.len && !copy;
    return bytes_of(copy, copy ? text.len : 0);
}

static struct bytes expanded(struct label_builder *b, const struct match *m, const char *template)
{
    if (!names_group(template))
        return bytes_str(template);
    _cleanup_buf_ struct buf *out = buf_new(0);
    if (!out) {
        b->no_memory = true;
        return bytes_of(NULL, 0);
    }
    b->no_memory |= regex_expand(&m->found, bytes_str(template), out) < 0;
    return keep(b, buf_bytes(out));
}

/* ---- actions ---- */

static struct bytes source(const struct rule *u, struct label_builder *b)
{
    const struct cfg_list *l = &u->config->source_labels;
    const char *const *names = l->items;
    const struct bytes only =
        l->n == 1 ? prom_builder_get(b, bytes_str(names[0])) : bytes_of(NULL, 0);
    if (only.len || l->n == 0)
        return only.len ? only : bytes_of("", 0);
    _cleanup_buf_ struct buf *out = buf_new(0);
    if (!out) {
        b->no_memory = true;
        return bytes_of("", 0);
    }
    for (size_t i = 0; i < l->n; i++) {
        const struct bytes v = prom_builder_get(b, bytes_str(names[i]));
        if (i)
            buf_append_str(out, u->config->separator);
        buf_append(out, v.data, v.len);
    }
    const struct bytes text = keep(b, buf_bytes(out));
    return text.len ? text : bytes_of("", 0);
}

static void replace(const struct rule *u, struct label_builder *b, struct bytes value)
{
    struct match m;
    if (!find(u, value, &m))
        return;
    const struct bytes target = expanded(b, &m, u->config->target_label);
    if (target.len && utf8_valid(target))
        prom_builder_set(b, target, expanded(b, &m, u->config->replacement));
}

static void hashmod(const struct rule *u, struct label_builder *b, struct bytes value)
{
    uint8_t sum[MD5_BYTES];
    char digits[24];
    uint64_t number = 0;
    digest_md5(value, sum);
    for (int i = 8; i < MD5_BYTES; i++)
        number = number << 8 | sum[i];
    const size_t n = encode_uint(number % (uint64_t)u->config->modulus, digits);
    prom_builder_set(b, bytes_str(u->config->target_label), keep(b, bytes_of(digits, n)));
}

/* The labels are looked at as they were before the rule. */
static void labelmap(const struct rule *u, struct label_builder *b)
{
    const size_t n = b->n;
    struct prom_label *before = arena_alloc(b->arena, n * sizeof(*before) + 1);
    struct match m;
    b->no_memory |= !before;
    if (before && n)
        memcpy(before, b->items, n * sizeof(*before));
    for (size_t i = 0; before && i < n; i++)
        if (before[i].value.len && find(u, before[i].name, &m)) {
            const struct bytes name = expanded(b, &m, u->config->replacement);
            if (name.len)
                prom_builder_set(b, name, before[i].value);
        }
}

static void labels_filter(const struct rule *u, struct label_builder *b, bool drop)
{
    for (size_t i = 0; i < b->n; i++)
        if (matches(u, b->items[i].name) == drop)
            b->items[i].value = bytes_of(NULL, 0);
}

static locale_t unicode;
static void open_unicode(void)
{
    unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

static uint32_t decode(const uint8_t *p, int len)
{
    static const uint8_t first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = p[0] & first[len];
    for (int i = 1; i < len; i++)
        c = c << 6 | (p[i] & 0x3f);
    return c;
}

static void put_character(struct buf *out, uint32_t c)
{
    if (c < 0x80) {
        buf_putc(out, (char)c);
    } else if (c < 0x800) {
        buf_putc(out, (char)(0xc0 | c >> 6));
        buf_putc(out, (char)(0x80 | (c & 0x3f)));
    } else {
        if (c < 0x10000) {
            buf_putc(out, (char)(0xe0 | c >> 12));
        } else {
            buf_putc(out, (char)(0xf0 | c >> 18));
            buf_putc(out, (char)(0x80 | (c >> 12 & 0x3f)));
        }
        buf_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
        buf_putc(out, (char)(0x80 | (c & 0x3f)));
    }
}

static uint32_t change_case(uint32_t c, bool upper)
{
    if (c < 0x80) {
        const bool other = upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z';
        return other ? c ^ 0x20 : c;
    }
    if (!unicode)
        return c;
    return (uint32_t)(upper ? towupper_l((wint_t)c, unicode) : towlower_l((wint_t)c, unicode));
}

static void fold(const struct rule *u, struct label_builder *b, struct bytes value, bool upper)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_unicode);
    _cleanup_buf_ struct buf *out = buf_new(0);
    b->no_memory |= !out;
    while (out && value.len) {
        const int n = utf8_next(value);
        const size_t len = (size_t)(n > 0 ? n : -n);
        if (n > 0)
            put_character(out, change_case(decode(value.data, n), upper));
        else
            buf_append(out, value.data, len);
        value = bytes_of(value.data + len, value.len - len);
    }
    if (out)
        prom_builder_set(b, bytes_str(u->config->target_label), keep(b, buf_bytes(out)));
}

/* False: the label set is dropped. */
static bool apply_one(const struct rule *u, struct label_builder *b)
{
    const struct bytes value = source(u, b);
    switch ((enum relabel_action)u->config->action) {
    case RELABEL_REPLACE: replace(u, b, value); return true;
    case RELABEL_KEEP: return matches(u, value);
    case RELABEL_DROP: return !matches(u, value);
    case RELABEL_KEEPEQUAL:
        return bytes_eq(prom_builder_get(b, bytes_str(u->config->target_label)), value);
    case RELABEL_DROPEQUAL:
        return !bytes_eq(prom_builder_get(b, bytes_str(u->config->target_label)), value);
    case RELABEL_HASHMOD: hashmod(u, b, value); return true;
    case RELABEL_LABELMAP: labelmap(u, b); return true;
    case RELABEL_LABELDROP: labels_filter(u, b, true); return true;
    case RELABEL_LABELKEEP: labels_filter(u, b, false); return true;
    case RELABEL_LOWERCASE: fold(u, b, value, false); return true;
    case RELABEL_UPPERCASE: fold(u, b, value, true); return true;
    }
    return true;
}

bool prom_relabel_apply(const struct relabel_rules *r, struct label_builder *b)
{
    for (size_t i = 0; r && i < r->n; i++)
        if (!apply_one(&r->items[i], b))
            return false;
    return true;
}
