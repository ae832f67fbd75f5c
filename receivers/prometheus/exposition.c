/*
 * The exposition parser. Both formats share names, labels and values; they differ in blanks
 * (anywhere in the text format, exactly one space in OpenMetrics), in what a `#` begins and in the
 * end of the page.
 */
#include "receivers/prometheus/exposition.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

#include "agent/base/number.h"
#include "agent/base/utf8.h"
#include "receivers/prometheus/scan.h"

#define SHOWN_BYTES 40 /* of a bad line in an error */

struct prom_parser {
    enum prom_format format;
    struct bytes body;
    const uint8_t *at, *end;
    enum prom_type type; /* of the last TYPE line */
    bool over;
    struct bytes expected;    /* what the next sample may begin with; empty = nothing is known */
    struct label_list labels; /* [0] is the name */
    struct label_list exemplar_labels;
    bool has_exemplar;
    struct prom_exemplar exemplar;
    struct arena *arena; /* decoded texts of the present entry */
};

struct prom_parser *prom_parser_new(enum prom_format format, struct bytes body)
{
    struct prom_parser *p = calloc(1, sizeof(*p));
    struct arena *arena = p ? arena_new(0) : NULL;
    if (!arena) {
        free(p);
        return NULL;
    }
    p->format = format;
    p->body = body.len ? body : bytes_str("");
    p->at = p->body.data;
    p->end = p->at + body.len;
    p->over = body.len == 0; /* nothing at all is fine in both formats, as in the reference */
    p->arena = arena;
    return p;
}

struct prom_parser *prom_parser_free(struct prom_parser *p)
{
    if (!p)
        return NULL;
    label_list_done(&p->labels);
    label_list_done(&p->exemplar_labels);
    arena_free(p->arena);
    free(p);
    return NULL;
}

const char *prom_type_name(enum prom_type t)
{
    static const char *const names[] = {
        [PROM_UNKNOWN] = "unknown",
        [PROM_COUNTER] = "counter",
        [PROM_GAUGE] = "gauge",
        [PROM_HISTOGRAM] = "histogram",
        [PROM_GAUGEHISTOGRAM] = "gaugehistogram",
        [PROM_SUMMARY] = "summary",
        [PROM_INFO] = "info",
        [PROM_STATESET] = "stateset",
    };
    return names[t];
}

/* ---- errors ---- */

/* Printable text of the bytes at `at`, up to the end of the line. */
static void show(const struct prom_parser *p, const uint8_t *at, char *out)
{
    size_t n = 0;
    while (at < p->end && *at != '\n' && n < SHOWN_BYTES) {
        out[n++] = isprint(*at) ? (char)*at : '?';
        at++;
    }
    out[n] = 0;
}

static int fail_as(struct prom_parser *p, const uint8_t *at, const char *what, const char *got,
                   struct err *reterr)
{
    int line = 1;
    const uint8_t *start = p->body.data, *c;
    while (at > start && (c = memchr(start, '\n', (size_t)(at - start)))) {
        start = c + 1;
        line++;
    }
    const int column = (int)(at - start) + 1;
    char begin[SHOWN_BYTES + 1];
    show(p, start, begin);
    p->over = true;
    err_set(reterr, -EINVAL,
            "line %d, column %d of the page: %s, got %s; the line begins with \"%s\"", line, column,
            what, got, begin);
    if (reterr) {
        reterr->line = line;
        reterr->column = column;
    }
    return -EINVAL;
}

/* "expected ...", got what stands at `at`. */
static int fail(struct prom_parser *p, const uint8_t *at, const char *what, struct err *reterr)
{
    char text[SHOWN_BYTES + 1], got[SHOWN_BYTES + 3];
    show(p, at, text);
    snprintf(got, sizeof(got), "\"%s\"", text);
    return fail_as(p, at, what,
                   at == p->end  ? "the end of the page"
                   : *at == '\n' ? "the end of the line"
                                 : got,
                   reterr);
}

/* ---- characters ---- */

static bool is_text(const struct prom_parser *p)
{
    return p->format == PROM_TEXT;
}

static int peek(const struct prom_parser *p)
{
    return p->at < p->end ? *p->at : -1;
}

static bool take(struct prom_parser *p, char c)
{
    const bool there = peek(p) == c;
    p->at += there;
    return there;
}

static bool take_word(struct prom_parser *p, const char *word)
{
    const size_t n = strlen(word);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

static bool is_blank(int c)
{
    return c == ' ' || c == '\t';
}

/* The text format has blanks between all tokens, OpenMetrics nowhere but where they are asked for.
 */
static void blanks(struct prom_parser *p)
{
    while (is_text(p) && is_blank(peek(p)))
        p->at++;
}

enum { FIRST = 1, LATER = 2, COLON = 4 };
static const uint8_t name_chars[256] = {
    ['A' ... 'Z'] = FIRST | LATER,
    ['a' ... 'z'] = FIRST | LATER,
    ['_'] = FIRST | LATER,
    ['0' ... '9'] = LATER,
    [':'] = COLON,
};

/* Whether a name may begin with the byte; metric names (not those of labels) may have colons. */
static bool begins_name(int c, bool colon)
{
    return c >= 0 && name_chars[c] & (FIRST | (colon ? COLON : 0));
}

/* An unquoted name; empty when there is none. */
static struct bytes scan_name(struct prom_parser *p, bool colon)
{
    const uint8_t *start = p->at, *c = start;
    const uint8_t wanted = LATER | (colon ? COLON : 0);
    if (begins_name(peek(p), colon))
        while (c < p->end && name_chars[*c] & wanted)
            c++;
    p->at = c;
    return bytes_of(start, (size_t)(c - start));
}

/* A quoted string at the cursor: what is between the quotes, escapes and all. False: it does not
 * end. */
static bool scan_quoted(struct prom_parser *p, bool newlines, struct bytes *ret)
{
    const uint8_t *start = p->at + 1, *c = start;
    for (; c < p->end && *c != '"'; c++) {
        if (*c == '\\' && (++c == p->end || *c == '\n'))
            return false;
        if (*c == '\n' && !newlines)
            return false;
    }
    if (c >= p->end)
        return false;
    *ret = bytes_of(start, (size_t)(c - start));
    p->at = c + 1;
    return true;
}

/* Everything up to one of the bytes that end a value or time. */
static struct bytes scan_word(struct prom_parser *p)
{
    const uint8_t *start = p->at;
    while (p->at < p->end && *p->at != ' ' && *p->at != '\n' &&
           !(is_text(p) && (*p->at == '\t' || *p->at == '{')))
        p->at++;
    if (is_text(p) && p->at > start && p->at[-1] == '\r' && (p->at == p->end || *p->at == '\n'))
        p->at--;
    return bytes_of(start, (size_t)(p->at - start));
}

/* The end of the line and what stands for it: in the text format also CR LF and the end of the
 * page. */
static bool take_line_end(struct prom_parser *p)
{
    if (take(p, '\n'))
        return true;
    if (!is_text(p))
        return false;
    if (peek(p) == '\r' && (p->at + 1 == p->end || p->at[1] == '\n'))
        p->at += p->at + 1 == p->end ? 1 : 2;
    else if (p->at < p->end)
        return false;
    return true;
}

/* ---- labels ---- */

/* `="value"` behind a label name. */
static int read_value(struct prom_parser *p, struct label_list *l, struct bytes name,
                      struct err *reterr)
{
    blanks(p);
    if (!take(p, '='))
        return fail(p, p->at, "expected \"=\" behind the label name", reterr);
    blanks(p);
    const uint8_t *at = p->at;
    struct bytes value;
    if (peek(p) != '"')
        return fail(p, at, "expected a label value in quotes", reterr);
    if (!scan_quoted(p, is_text(p), &value))
        return fail(p, at, "expected a label value with a closing quote", reterr);
    if (!utf8_valid(value))
        return fail(p, at, "expected a label value in UTF-8", reterr);
    if (l->n > PROM_LABELS_MAX)
        return fail(p, at, "expected at most 10000 labels", reterr);
    struct prom_label *label = label_list_add(l);
    if (!label)
        return -ENOMEM;
    *label = (struct prom_label){name, value};
    return 0;
}

/* One `name="value"`, or the metric's name in quotes, which `metric` (NULL in exemplars) takes. */
static int read_label(struct prom_parser *p, struct label_list *l, struct bytes *metric,
                      bool *ret_is_metric, struct err *reterr)
{
    const uint8_t *at = p->at;
    const bool quoted = peek(p) == '"';
    struct bytes name;
    *ret_is_metric = false;
    if (quoted && !scan_quoted(p, true, &name))
        return fail(p, at, "expected a name with a closing quote", reterr);
    if (quoted && !utf8_valid(name))
        return fail(p, at, "expected a name in UTF-8", reterr);
    if (!quoted && (name = scan_name(p, false)).len == 0)
        return fail(p, at, "expected a label name or \"}\"", reterr);
    blanks(p);
    if (!quoted || (peek(p) != ',' && peek(p) != '}'))
        return name.len ? read_value(p, l, name, reterr)
                        : fail(p, at, "expected a label name of at least one character", reterr);
    if (!metric)
        return fail(p, p->at, "expected \"=\" behind the label name", reterr);
    if (metric->data)
        return fail(p, at, "expected a label, the metric has its name already", reterr);
    *metric = name;
    *ret_is_metric = true;
    return 0;
}

/* What is between the braces, and the closing one; the opening one is behind the cursor. */
static int read_labels(struct prom_parser *p, struct label_list *l, struct bytes *metric,
                       struct err *reterr)
{
    for (;;) {
        blanks(p);
        if (take(p, '}'))
            return 0;
        bool is_metric;
        int r = read_label(p, l, metric, &is_metric, reterr);
        if (r < 0)
            return r;
        blanks(p);
        if (!take(p, ',') && !is_text(p) && peek(p) != '}')
            return fail(p, p->at, "expected \",\" or \"}\" behind the label", reterr);
    }
}

/* ---- samples ---- */

static int read_number(struct prom_parser *p, const char *what, double *ret, struct err *reterr)
{
    const uint8_t *at = p->at, *behind = prom_scan_double(at, p->end, ret);
    if (behind && behind < p->end && (*behind == '\n' || *behind == ' ')) {
        p->at = behind;
        return 0;
    }
    struct bytes word = scan_word(p);
    if (word.len == 0 || !prom_parse_double(word, ret))
        return fail(p, at, what, reterr);
    return 0;
}

/* Seconds of OpenMetrics, in milliseconds; cut, as the reference does. */
static int read_seconds(struct prom_parser *p, int64_t *ret_ms, struct err *reterr)
{
    const uint8_t *at = p->at;
    double seconds;
    int r = read_number(p, "expected a time in seconds", &seconds, reterr);
    if (r == 0 && !isfinite(seconds))
        r = fail(p, at, "expected a finite time", reterr);
    if (r == 0)
        *ret_ms = number_double_to_int(seconds * 1000);
    return r;
}

static int read_exemplar(struct prom_parser *p, struct err *reterr)
{
    p->has_exemplar = true;
    int r = read_labels(p, &p->exemplar_labels, NULL, reterr);
    if (r == 0 && !take(p, ' '))
        r = fail(p, p->at, "expected a space and a value behind the exemplar's labels", reterr);
    if (r == 0)
        r = read_number(p, "expected the exemplar's value", &p->exemplar.value, reterr);
    if (r == 0 && take(p, ' ')) {
        p->exemplar.has_time = true;
        r = read_seconds(p, &p->exemplar.time_ms, reterr);
    }
    return r;
}

static int read_openmetrics_tail(struct prom_parser *p, struct prom_entry *e, struct err *reterr)
{
    if (take_word(p, " # {"))
        return read_exemplar(p, reterr);
    if (!take(p, ' '))
        return 0;
    e->has_time = true;
    int r = read_seconds(p, &e->time_ms, reterr);
    if (r == 0 && take_word(p, " # {"))
        r = read_exemplar(p, reterr);
    return r;
}

static int read_text_tail(struct prom_parser *p, struct prom_entry *e, struct err *reterr)
{
    blanks(p);
    if (peek(p) < '0' || peek(p) > '9')
        return 0;
    const uint8_t *at = p->at;
    while (peek(p) >= '0' && peek(p) <= '9')
        p->at++;
    e->has_time = true;
    if (!number_parse_int(bytes_of(at, (size_t)(p->at - at)), &e->time_ms))
        return fail(p, at, "expected a time that fits in 64 bits", reterr);
    blanks(p);
    return 0;
}

/* The value and what follows it on the line. */
static int read_rest(struct prom_parser *p, struct prom_entry *e, struct err *reterr)
{
    blanks(p);
    if (!is_text(p) && !take(p, ' '))
        return fail(p, p->at, "expected a space and a value", reterr);
    int r = read_number(p, "expected a value", &e->value, reterr);
    if (r == 0)
        r = is_text(p) ? read_text_tail(p, e, reterr) : read_openmetrics_tail(p, e, reterr);
    if (r == 0 && !take_line_end(p))
        r = fail(p, p->at,
                 is_text(p) ? "expected a time in milliseconds or the end of the line"
                            : "expected a time, an exemplar or the end of the line",
                 reterr);
    return r;
}

void prom_parser_expect(struct prom_parser *p, struct bytes raw)
{
    /* What ends with a brace ends there whatever follows; a name alone might go on. */
    p->expected = raw.len && raw.data[raw.len - 1] == '}' ? raw : bytes_of(NULL, 0);
}

static bool is_expected(const struct prom_parser *p, const uint8_t *start)
{
    const struct bytes x = p->expected;
    return x.len && (size_t)(p->end - start) > x.len && memcmp(start, x.data, x.len) == 0;
}

/* `start`: where the line begins. The reference counts blanks before a name to the name. */
static int read_sample(struct prom_parser *p, const uint8_t *start, struct prom_entry *e,
                       struct err *reterr)
{
    *e = (struct prom_entry){.kind = PROM_SAMPLE};
    p->labels.n = p->exemplar_labels.n = 0;
    p->labels.finished = p->exemplar_labels.finished = p->has_exemplar = false;
    p->exemplar = (struct prom_exemplar){0};
    if (is_expected(p, start)) {
        e->raw = bytes_of(start, p->expected.len);
        p->at = start + e->raw.len;
        return read_rest(p, e, reterr);
    }
    if (!label_list_add(&p->labels))
        return -ENOMEM;
    struct bytes metric = {0};
    if (scan_name(p, true).len)
        metric = bytes_of(start, (size_t)(p->at - start));
    const uint8_t *name_end = p->at;
    blanks(p);
    if (take(p, '{')) {
        int r = read_labels(p, &p->labels, &metric, reterr);
        if (r < 0)
            return r;
        name_end = p->at;
    }
    if (!metric.data)
        return fail(p, start, "expected the metric's name in the braces", reterr);
    p->labels.items[0] = (struct prom_label){bytes_str("__name__"), metric};
    e->raw = bytes_of(start, (size_t)(name_end - start));
    return read_rest(p, e, reterr);
}

/* ---- TYPE, HELP, UNIT ---- */

static int read_type(struct prom_parser *p, struct prom_entry *e, struct err *reterr)
{
    const uint8_t *at = e->text.data;
    for (int t = PROM_UNKNOWN; t <= PROM_STATESET; t++) {
        const bool in_text =
            t == PROM_COUNTER || t == PROM_GAUGE || t == PROM_HISTOGRAM || t == PROM_SUMMARY;
        if (is_text(p) && !in_text && t != PROM_UNKNOWN)
            continue;
        const char *word = is_text(p) && t == PROM_UNKNOWN ? "untyped" : prom_type_name(t);
        if (!bytes_eq_str(e->text, word))
            continue;
        p->type = e->type = (enum prom_type)t;
        return 0;
    }
    return fail(p, at, "expected a metric type of this format", reterr);
}

static int read_help(struct prom_parser *p, struct prom_entry *e, struct err *reterr)
{
    if (!utf8_valid(e->text))
        return fail(p, e->text.data, "expected a HELP text in UTF-8", reterr);
    return prom_unescape(e->text, !is_text(p), p->arena, &e->text);
}

/* The unit has to end the family's name. */
static int read_unit(struct prom_parser *p, struct prom_entry *e, struct err *reterr)
{
    const struct bytes u = e->text, f = e->family;
    if (u.len == 0)
        return 0;
    const bool suffix = f.len > u.len && f.data[f.len - u.len - 1] == '_' &&
                        memcmp(f.data + f.len - u.len, u.data, u.len) == 0;
    if (!suffix || !utf8_valid(u))
        return fail(p, u.data, "expected a unit that is the end of the metric's name", reterr);
    return 0;
}

static bool all_blank(const uint8_t *p, const uint8_t *end)
{
    while (p < end && is_blank(*p))
        p++;
    return p == end;
}

/* The rest of the line behind the family's name, less the one character between them. */
static int read_text(struct prom_parser *p, struct bytes *ret, struct err *reterr)
{
    if (!is_text(p) && peek(p) != ' ')
        return fail(p, p->at, "expected a space and a text behind the metric's name", reterr);
    const uint8_t *start = p->at;
    const uint8_t *end = start < p->end ? memchr(start, '\n', (size_t)(p->end - start)) : NULL;
    if (!end && !is_text(p))
        return fail(p, p->end, "expected a line end", reterr);
    p->at = end ? end + 1 : p->end;
    end = end ? end : p->end;
    if (is_text(p) && end > start && end[-1] == '\r')
        end--;
    start += start < end;
    *ret = bytes_of(start, is_text(p) && all_blank(start, end) ? 0 : (size_t)(end - start));
    return 0;
}

static int read_family(struct prom_parser *p, struct bytes *ret, struct err *reterr)
{
    const uint8_t *at = p->at;
    blanks(p);
    if (peek(p) != '"') {
        *ret = scan_name(p, true);
        return ret->len ? 0 : fail(p, at, "expected a metric's name", reterr);
    }
    if (!scan_quoted(p, true, ret))
        return fail(p, at, "expected a metric's name with a closing quote", reterr);
    return prom_unescape(*ret, true, p->arena, ret);
}

static int read_metadata(struct prom_parser *p, enum prom_entry_kind kind, struct prom_entry *e,
                         struct err *reterr)
{
    *e = (struct prom_entry){.kind = kind};
    int r = read_family(p, &e->family, reterr);
    if (r == 0)
        r = read_text(p, &e->text, reterr);
    if (r < 0)
        return r;
    switch (kind) {
    case PROM_TYPE: return read_type(p, e, reterr);
    case PROM_HELP: return read_help(p, e, reterr);
    default: return read_unit(p, e, reterr);
    }
}

/* ---- lines ---- */

static void skip_line(struct prom_parser *p)
{
    const uint8_t *end = p->at < p->end ? memchr(p->at, '\n', (size_t)(p->end - p->at)) : NULL;
    p->at = end ? end + 1 : p->end;
}

/* A word of a comment line and the blank behind it. */
static bool take_keyword(struct prom_parser *p, const char *word)
{
    const uint8_t *at = p->at;
    if (take_word(p, word) && (is_text(p) ? is_blank(peek(p)) : peek(p) == ' ')) {
        p->at++;
        return true;
    }
    p->at = at;
    return false;
}

/* Behind the `#` and its blanks. 1 = one of these, 0 = none. */
static int read_keyword_line(struct prom_parser *p, struct prom_entry *e, struct err *reterr)
{
    static const struct {
        const char *word;
        enum prom_entry_kind kind;
    } keywords[] = {{"TYPE", PROM_TYPE}, {"HELP", PROM_HELP}, {"UNIT", PROM_UNIT}};
    for (size_t i = 0; i < ARRAY_SIZE(keywords); i++) {
        if ((keywords[i].kind == PROM_UNIT && is_text(p)) || !take_keyword(p, keywords[i].word))
            continue;
        int r = read_metadata(p, keywords[i].kind, e, reterr);
        return r < 0 ? r : 1;
    }
    return 0;
}

/* 1 = an entry, 0 = a line of no interest. */
static int read_text_line(struct prom_parser *p, struct prom_entry *e, struct err *reterr)
{
    const uint8_t *start = p->at;
    blanks(p);
    if (take_line_end(p))
        return 0;
    if (take(p, '#')) {
        const bool blank = is_blank(peek(p));
        blanks(p);
        int r = blank ? read_keyword_line(p, e, reterr) : 0;
        if (r == 0)
            skip_line(p);
        return r;
    }
    if (!begins_name(peek(p), true) && peek(p) != '{')
        return fail(p, p->at, "expected a metric's name, a comment or an empty line", reterr);
    int r = read_sample(p, start, e, reterr);
    return r < 0 ? r : 1;
}

static int read_end(struct prom_parser *p, struct err *reterr)
{
    p->at += peek(p) == '\n';
    if (p->at < p->end)
        return fail(p, p->at, "expected nothing behind \"# EOF\"", reterr);
    p->over = true;
    return 0;
}

static int read_openmetrics_line(struct prom_parser *p, struct prom_entry *e, struct err *reterr)
{
    const uint8_t *start = p->at;
    if (start == p->end)
        return fail(p, start, "expected \"# EOF\" as the last line", reterr);
    if (begins_name(*start, true) || *start == '{') {
        int r = read_sample(p, start, e, reterr);
        return r < 0 ? r : 1;
    }
    if (take_word(p, "# ")) {
        int r = read_keyword_line(p, e, reterr);
        if (r != 0)
            return r;
        if (take_word(p, "EOF"))
            return read_end(p, reterr);
    }
    return fail(p, start, "expected a metric's name or \"# TYPE\", HELP, UNIT or EOF", reterr);
}

int prom_parser_next(struct prom_parser *p, struct prom_entry *ret, struct err *reterr)
{
    arena_reset(p->arena);
    for (int r = 0; !p->over;) {
        if (is_text(p) && p->at == p->end)
            return 0;
        r = is_text(p) ? read_text_line(p, ret, reterr) : read_openmetrics_line(p, ret, reterr);
        p->over = p->over || r < 0;
        if (r != 0) {
            p->expected.len = 0;
            return r;
        }
    }
    return 0;
}

int prom_parser_labels(struct prom_parser *p, struct prom_labels *ret)
{
    int r = label_list_finish(&p->labels, p->type, p->arena);
    if (r == 0)
        *ret = (struct prom_labels){p->labels.items, p->labels.n};
    return r;
}

int prom_parser_exemplar(struct prom_parser *p, struct prom_exemplar *ret)
{
    if (!p->has_exemplar)
        return 0;
    int r = label_list_finish(&p->exemplar_labels, PROM_UNKNOWN, p->arena);
    if (r < 0)
        return r;
    *ret = p->exemplar;
    ret->labels = (struct prom_labels){p->exemplar_labels.items, p->exemplar_labels.n};
    return 1;
}
