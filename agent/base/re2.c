/*
 * Checks a pattern by the grammar of RE2 and writes the same expression for PCRE2, which knows far
 * more and reads some of it differently: every literal is written escaped, `$` becomes `\z`, `\s` a
 * class without VT, names go into a table.
 */
#include "agent/base/re2.h"

#include <ctype.h>
#include <errno.h>

#define MAX_DEPTH 200   /* nested groups; PCRE2 takes 250 */
#define MAX_REPEAT 1000 /* of one counted repetition, and of nested ones multiplied */
#define MAX_RUNE 0x10ffff

struct parser {
    const uint8_t *start, *p, *end;
    struct buf *out;
    struct re2_names *names;
    struct err *err;
    struct flags {
        bool multiline, fold; /* (?m), (?i) are on here */
    } flags;
    unsigned depth;
};

static int fail(struct parser *ps, const uint8_t *at, const char *what)
{
    size_t chars = 1;
    for (const uint8_t *p = ps->start; p < at; p++)
        chars += (*p & 0xc0) != 0x80;
    return err_set(ps->err, -EINVAL, "%s at character %zu of the pattern", what, chars);
}

static bool more(const struct parser *ps)
{
    return ps->p < ps->end;
}
static bool at_char(const struct parser *ps, char c)
{
    return more(ps) && *ps->p == (uint8_t)c;
}
static bool at_str(const struct parser *ps, const char *s)
{
    size_t n = strlen(s);
    return (size_t)(ps->end - ps->p) >= n && memcmp(ps->p, s, n) == 0;
}
static bool take(struct parser *ps, char c)
{
    if (!at_char(ps, c))
        return false;
    ps->p++;
    return true;
}
static bool is_word(uint8_t c)
{
    return c < 0x80 && (isalnum(c) || c == '_');
}

static int put(struct parser *ps, const char *s)
{
    return buf_append_str(ps->out, s);
}

/* One literal character, safe inside and outside a class. */
static int put_rune(struct parser *ps, uint32_t r)
{
    if (r < 0x80 && is_word((uint8_t)r))
        return buf_putc(ps->out, (char)r);
    return buf_printf(ps->out, "\\x{%x}", r);
}

/* The next character of the pattern, which is valid UTF-8 (checked before). */
static uint32_t take_rune(struct parser *ps)
{
    uint32_t c = *ps->p++;
    if (c < 0x80)
        return c;
    unsigned rest = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
    c &= 0x3fu >> rest;
    while (rest-- > 0)
        c = c << 6 | (*ps->p++ & 0x3f);
    return c;
}

static bool valid_utf8(struct bytes b)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    for (size_t i = 0; i < b.len; i++) {
        uint8_t c = b.data[i];
        if (c < 0x80)
            continue;
        unsigned rest = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
        if (c < 0xc2 || c > 0xf4 || rest > b.len - 1 - i)
            return false;
        uint32_t r = c & (0x3fu >> rest);
        for (unsigned k = 0; k < rest; k++) {
            if ((b.data[++i] & 0xc0) != 0x80)
                return false;
            r = r << 6 | (b.data[i] & 0x3f);
        }
        if (r < least[rest] || r > MAX_RUNE || (r >= 0xd800 && r <= 0xdfff))
            return false;
    }
    return true;
}

/* ---- escapes ---- */

static int hex_value(uint8_t c)
{
    return isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : -1;
}

/* Behind `\x`: two digits, or any number of them in braces. */
static int take_hex(struct parser *ps, const uint8_t *at, uint32_t *ret)
{
    bool braces = take(ps, '{');
    uint32_t r = 0;
    unsigned digits = 0;
    for (; more(ps) && hex_value(*ps->p) >= 0 && (braces || digits < 2); digits++) {
        r = r * 16 + (uint32_t)hex_value(*ps->p++);
        if (r > MAX_RUNE)
            return fail(ps, at, "character code above 10FFFF");
    }
    if (braces ? !take(ps, '}') || digits == 0 : digits != 2)
        return fail(ps, at, "bad \\x escape, expected \\x7F or \\x{10FFFF}");
    *ret = r;
    return 0;
}

/* Behind `\` and one octal digit: up to two more. */
static uint32_t take_octal(struct parser *ps, uint32_t r)
{
    for (int i = 0; i < 2 && more(ps) && *ps->p >= '0' && *ps->p <= '7'; i++)
        r = r * 8 + (uint32_t)(*ps->p++ - '0');
    return r;
}

/* At a `\` that stands for one character. */
static int take_escape(struct parser *ps, uint32_t *ret)
{
    static const char names[] = "aftnrv", values[] = "\a\f\t\n\r\v";
    const uint8_t *at = ps->p++;
    if (!more(ps))
        return fail(ps, at, "trailing backslash");
    uint32_t c = take_rune(ps);
    const char *named = c < 0x80 && c ? strchr(names, (int)c) : NULL;
    if (c >= '1' && c <= '7' && !(more(ps) && *ps->p >= '0' && *ps->p <= '7'))
        return fail(ps, at, "back-references are not supported");
    if (c >= '0' && c <= '7')
        *ret = take_octal(ps, c - '0');
    else if (c == 'x')
        return take_hex(ps, at, ret);
    else if (named)
        *ret = (uint8_t)values[named - names];
    else if (c < 0x80 && !isalnum((int)c))
        *ret = c;
    else
        return fail(ps, at, "invalid escape sequence");
    return 0;
}

/* At `\p` or `\P`: a Unicode category or script, as PCRE2 spells it. */
static int property(struct parser *ps)
{
    const uint8_t *at = ps->p++;
    char negated = (char)*ps->p++;
    char name[32] = "";
    size_t n = 0;
    if (take(ps, '{')) {
        if (take(ps, '^'))
            negated = negated == 'p' ? 'P' : 'p';
        while (more(ps) && is_word(*ps->p) && n < sizeof(name) - 1)
            name[n++] = (char)*ps->p++;
        if (!take(ps, '}') || n == 0)
            return fail(ps, at, "bad \\p, expected \\pL or \\p{Greek}");
    } else if (more(ps)) {
        name[n++] = (char)*ps->p++;
    }
    if (!isupper((unsigned char)name[0]) || name[0] == 'X')
        return fail(ps, at, "unknown character property");
    if (ps->flags.fold && n == 2 && name[0] == 'L' && strchr("ult", name[1]))
        name[1] = '&'; /* any case */
    bool script = n > 2 && strcmp(name, "Any") != 0;
    return buf_printf(ps->out, "\\%c{%s%s}", negated, script ? "sc:" : "", name);
}

/* At a `\` that may stand for a set (\d, \S, \pL). 1 = it was written, 0 = it is something else.
 * The sets are spelled out: PCRE2's \s has VT, and its \D and \W miss non-ASCII characters when JIT
 * and MATCH_INVALID_UTF meet (10.42). */
static int set_escape(struct parser *ps, bool in_class)
{
    static const struct {
        char name;
        const char *set, *complement;
    } sets[] = {
        {'d', "0-9", "\\x00-/:-\\x{10ffff}"},
        {'w', "0-9A-Z_a-z", "\\x00-/:-@\\x5b-\\x5e`\\x7b-\\x{10ffff}"},
        {'s', "\\t\\n\\f\\r\\x20", "\\x00-\\x08\\x0b\\x0e-\\x1f\\x21-\\x{10ffff}"},
    };
    uint8_t c = ps->end - ps->p < 2 ? 0 : ps->p[1];
    if (c == 'p' || c == 'P') {
        int r = property(ps);
        return r < 0 ? r : 1;
    }
    for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
        if (c != sets[i].name && c != sets[i].name - 32)
            continue;
        ps->p += 2;
        int r = buf_printf(ps->out, in_class ? "%s" : "[%s]",
                           c == sets[i].name ? sets[i].set : sets[i].complement);
        return r < 0 ? r : 1;
    }
    return 0;
}

/* ---- classes ---- */

/* At `[:` inside a class. 1 = a POSIX class was written, 0 = plain characters. */
static int posix_class(struct parser *ps)
{
    static const char *const known[] = {"alnum", "alpha", "ascii", "blank", "cntrl",
                                        "digit", "graph", "lower", "print", "punct",
                                        "space", "upper", "word",  "xdigit"};
    const uint8_t *close = memmem(ps->p + 2, (size_t)(ps->end - ps->p - 2), ":]", 2);
    if (!close)
        return 0;
    const uint8_t *name = ps->p + 2;
    if (name < close && *name == '^')
        name++;
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        if (!bytes_eq_str(bytes_of(name, (size_t)(close - name)), known[i]))
            continue;
        int r = buf_append(ps->out, ps->p, (size_t)(close + 2 - ps->p));
        ps->p = close + 2;
        return r < 0 ? r : 1;
    }
    return fail(ps, ps->p, "unknown character class name");
}

static int class_char(struct parser *ps, uint32_t *ret)
{
    if (at_char(ps, '\\'))
        return take_escape(ps, ret);
    *ret = take_rune(ps);
    return 0;
}

static int class_range(struct parser *ps)
{
    const uint8_t *at = ps->p;
    uint32_t lo, hi;
    int r = class_char(ps, &lo);
    if (r < 0)
        return r;
    if (!at_char(ps, '-') || ps->end - ps->p < 2 || ps->p[1] == ']')
        return put_rune(ps, lo);
    ps->p++;
    r = class_char(ps, &hi);
    if (r < 0)
        return r;
    if (hi < lo)
        return fail(ps, at, "character range is upside down");
    r = put_rune(ps, lo);
    if (r == 0)
        r = buf_putc(ps->out, '-');
    return r < 0 ? r : put_rune(ps, hi);
}

static int class_item(struct parser *ps)
{
    int r = at_str(ps, "[:") ? posix_class(ps) : at_char(ps, '\\') ? set_escape(ps, true) : 0;
    return r != 0 ? (r < 0 ? r : 0) : class_range(ps);
}

static int char_class(struct parser *ps)
{
    const uint8_t *at = ps->p++;
    int r = put(ps, take(ps, '^') ? "[^" : "[");
    for (bool first = true; r == 0 && more(ps) && (first || *ps->p != ']'); first = false)
        r = class_item(ps);
    if (r < 0)
        return r;
    return take(ps, ']') ? buf_putc(ps->out, ']') : fail(ps, at, "missing closing ]");
}

/* ---- groups ---- */

static int add_name(struct parser *ps, const uint8_t *name, size_t len)
{
    struct re2_names *ns = ps->names;
    char **items = realloc(ns->items, (ns->n + 1) * sizeof(*items));
    if (!items)
        return -ENOMEM;
    ns->items = items;
    items[ns->n] = strndup(len ? (const char *)name : "", len);
    if (!items[ns->n])
        return -ENOMEM;
    ns->n++;
    return 0;
}

static int group_name(struct parser *ps)
{
    const uint8_t *name = ps->p;
    while (more(ps) && is_word(*ps->p))
        ps->p++;
    size_t len = (size_t)(ps->p - name);
    if (len == 0 || !take(ps, '>'))
        return fail(ps, name, "bad group name, expected (?P<name>…)");
    int r = add_name(ps, name, len);
    return r < 0 ? r : buf_putc(ps->out, '(');
}

/* Behind `(?`: flags, then `:` (a group follows; *ret_group) or `)`. */
static int group_flags(struct parser *ps, bool *ret_group)
{
    const uint8_t *at = ps->p;
    bool on = true, seen = true; /* seen: a flag stands behind the `-` */
    for (; more(ps) && *ps->p && strchr("imsU-", *ps->p); ps->p++) {
        if (*ps->p == '-' && !on)
            break;
        seen = *ps->p != '-';
        on = on && seen;
        if (*ps->p == 'm')
            ps->flags.multiline = on;
        else if (*ps->p == 'i')
            ps->flags.fold = on;
    }
    bool group = at_char(ps, ':');
    if (!seen || (!group && !at_char(ps, ')')))
        return fail(
            ps, at - 2,
            "unknown or unsupported group (RE2 has (?:…), (?P<name>…), (?imsU), no look-around)");
    ps->p++;
    *ret_group = group;
    int r = put(ps, "(?");
    if (r == 0)
        r = buf_append(ps->out, at, (size_t)(ps->p - at));
    return r;
}

/* Behind `(`: writes the opening; *ret_group = false: these were only flags. */
static int open_group(struct parser *ps, bool *ret_group)
{
    *ret_group = true;
    if (!take(ps, '?')) {
        int r = add_name(ps, NULL, 0);
        return r < 0 ? r : buf_putc(ps->out, '(');
    }
    if (at_str(ps, "P<"))
        ps->p += 2;
    else if (at_str(ps, "<") && !at_str(ps, "<=") && !at_str(ps, "<!"))
        ps->p += 1;
    else
        return group_flags(ps, ret_group);
    return group_name(ps);
}

static int alternatives(struct parser *ps, unsigned *ret_weight);

/* At `(`. `*ret_weight`: the largest product of counted repetitions inside; 0 = there was no group
 * to repeat. */
static int group(struct parser *ps, unsigned *ret_weight)
{
    const uint8_t *at = ps->p++;
    struct flags flags = ps->flags;
    bool is_group;
    int r = open_group(ps, &is_group);
    *ret_weight = 0;
    if (r < 0 || !is_group)
        return r;
    if (++ps->depth > MAX_DEPTH)
        return fail(ps, at, "groups nested too deeply");
    r = alternatives(ps, ret_weight);
    if (r < 0)
        return r;
    if (!take(ps, ')'))
        return fail(ps, at, "missing closing )");
    ps->depth--;
    ps->flags = flags;
    return buf_putc(ps->out, ')');
}

/* ---- repetition ---- */

static bool take_count(struct parser *ps, unsigned *ret)
{
    const uint8_t *digits = ps->p;
    unsigned n = 0;
    for (; more(ps) && isdigit(*ps->p); ps->p++)
        n = n > MAX_REPEAT ? n : n * 10 + (unsigned)(*ps->p - '0');
    *ret = n;
    return ps->p > digits && !(ps->p - digits > 1 && *digits == '0');
}

/* At `{`: true when it is a counted repetition (then behind it), else nothing is taken. `*ret_max`
 * UINT_MAX = no end. */
static bool take_braces(struct parser *ps, unsigned *ret_min, unsigned *ret_max)
{
    const uint8_t *at = ps->p++;
    bool ok = take_count(ps, ret_min);
    *ret_max = *ret_min;
    if (ok && take(ps, ',')) {
        if (at_char(ps, '}'))
            *ret_max = ~0u;
        else
            ok = take_count(ps, ret_max);
    }
    if (ok && take(ps, '}'))
        return true;
    ps->p = at;
    return false;
}

/* True at the start of a repetition operator; nothing is taken. */
static bool at_repeat(struct parser *ps)
{
    if (!at_char(ps, '{'))
        return at_char(ps, '*') || at_char(ps, '+') || at_char(ps, '?');
    const uint8_t *at = ps->p;
    unsigned min, max;
    bool counted = take_braces(ps, &min, &max);
    ps->p = at;
    return counted;
}

static int check_counts(struct parser *ps, const uint8_t *at, unsigned min, unsigned max,
                        unsigned *weight)
{
    unsigned most = max == ~0u ? min : max;
    if (min > MAX_REPEAT || most > MAX_REPEAT || min > most)
        return fail(ps, at, "invalid repeat count");
    if (min >= 2 || max >= 2) {
        *weight = most * (*weight ? *weight : 1);
        if (*weight > MAX_REPEAT)
            return fail(ps, at, "nested repeat counts multiply to more than 1000");
    }
    return 0;
}

/* Behind something that can be repeated. */
static int repetition(struct parser *ps, unsigned *weight)
{
    const uint8_t *at = ps->p;
    if (!at_repeat(ps))
        return 0;
    if (at_char(ps, '{')) {
        unsigned min, max;
        take_braces(ps, &min, &max);
        int r = check_counts(ps, at, min, max, weight);
        if (r < 0)
            return r;
    } else {
        ps->p++;
    }
    take(ps, '?');
    int r = buf_append(ps->out, at, (size_t)(ps->p - at));
    if (r == 0 && at_repeat(ps))
        return fail(ps, at, "invalid nested repetition operator");
    return r;
}

/* ---- the rest ---- */

/* An assertion; PCRE2 repeats it only inside a group. */
static int assertion(struct parser *ps, size_t len, const char *text)
{
    ps->p += len;
    return buf_printf(ps->out, at_repeat(ps) ? "(?:%s)" : "%s", text);
}

/* At `\Q`: literal text up to `\E` or the end. */
static int quoted(struct parser *ps)
{
    ps->p += 2;
    int r = 0;
    while (r == 0 && more(ps) && !at_str(ps, "\\E"))
        r = put_rune(ps, take_rune(ps));
    if (r == 0 && more(ps))
        ps->p += 2;
    return r;
}

static int backslash(struct parser *ps, bool *ret_repeatable)
{
    uint32_t c;
    if (at_str(ps, "\\A"))
        return assertion(ps, 2, "\\A");
    if (at_str(ps, "\\z"))
        return assertion(ps, 2, "\\z");
    if (at_str(ps, "\\b"))
        return assertion(ps, 2, "\\b");
    if (at_str(ps, "\\B"))
        return assertion(ps, 2, "\\B");
    if (at_str(ps, "\\Q")) {
        const size_t before = ps->out->len;
        int r = quoted(ps);
        *ret_repeatable = ps->out->len > before;
        return r;
    }
    int r = set_escape(ps, false);
    if (r != 0)
        return r < 0 ? r : 0;
    r = take_escape(ps, &c);
    return r < 0 ? r : put_rune(ps, c);
}

/* One thing and its repetition. */
static int piece(struct parser *ps, unsigned *ret_weight)
{
    const uint8_t *at = ps->p;
    unsigned weight = 1;
    bool repeatable = true;
    int r;
    if (at_repeat(ps))
        return fail(ps, at, "nothing to repeat");
    switch (*ps->p) {
    case '(':
        r = group(ps, &weight);
        repeatable = weight != 0;
        break;
    case '[': r = char_class(ps); break;
    case '\\': r = backslash(ps, &repeatable); break;
    case '^': r = assertion(ps, 1, ps->flags.multiline ? "(?m:^)" : "\\A"); break;
    case '$': r = assertion(ps, 1, ps->flags.multiline ? "(?m:$)" : "\\z"); break;
    case '.':
        ps->p++;
        r = buf_putc(ps->out, '.');
        break;
    default: r = put_rune(ps, take_rune(ps));
    }
    if (r == 0 && repeatable)
        r = repetition(ps, &weight);
    *ret_weight = weight;
    return r;
}

static int alternatives(struct parser *ps, unsigned *ret_weight)
{
    int r = 0;
    *ret_weight = 1;
    while (r == 0 && more(ps) && *ps->p != ')') {
        unsigned weight = 1;
        if (take(ps, '|'))
            r = buf_putc(ps->out, '|');
        else
            r = piece(ps, &weight);
        if (weight > *ret_weight)
            *ret_weight = weight;
    }
    return r;
}

int re2_translate(struct bytes pattern, struct buf *out, struct re2_names *names,
                  struct err *reterr)
{
    struct parser ps = {.start = pattern.data,
                        .p = pattern.data,
                        .end = pattern.data + pattern.len,
                        .out = out,
                        .names = names,
                        .err = reterr};
    unsigned weight;
    if (!valid_utf8(pattern))
        return err_set(reterr, -EINVAL, "the pattern is not valid UTF-8");
    int r = alternatives(&ps, &weight);
    if (r == 0 && more(&ps))
        return fail(&ps, ps.p, "unexpected )");
    return r;
}

void re2_names_done(struct re2_names *names)
{
    for (unsigned i = 0; i < names->n; i++)
        free(names->items[i]);
    free(names->items);
    *names = (struct re2_names){0};
}
