/* Bound structs as YAML text, field tables as Markdown. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>

#include "agent/base/secrets.h"
#include "agent/config/kinds.h"

static void print_indent(FILE *f, int indent)
{
    fprintf(f, "%*s", indent, "");
}

/* Characters above ASCII that YAML reads as a line break, does not take at all, or nobody sees. */
static bool is_special(uint32_t c)
{
    return c < 0xa0 || c == 0x2028 || c == 0x2029 || c == 0xfeff || c == 0xfffe || c == 0xffff;
}

/* The next character; what is not UTF-8 becomes U+FFFD. Returns its length. */
static size_t next_char(const char *text, uint32_t *ret)
{
    const unsigned char *p = (const unsigned char *)text;
    *ret = *p;
    size_t n = *p < 0x80 ? 1 : cfg_decode_utf8(p, strlen(text), ret);
    if (n == 0)
        *ret = 0xfffd;
    return n ? n : 1;
}

static bool is_printable(const char *text)
{
    uint32_t c;
    for (size_t n; *text; text += n) {
        n = next_char(text, &c);
        if (c < 0x20 || c == 0x7f || c == 0xfffd || (c >= 0x80 && is_special(c)))
            return false;
    }
    return true;
}

/* Whether a plain scalar with this text would be read as this very string. */
static bool is_plain(const char *text)
{
    struct cfg_value v = {.text = text, .text_len = strlen(text)};
    cfg_resolve(&v);
    if (v.type != CFG_STRING || !*text || strchr("-?:,[]{}#&*!|>'\"%@`=<~", *text) ||
        isspace((unsigned char)*text))
        return false;
    char last = text[v.text_len - 1];
    return is_printable(text) && !strstr(text, ": ") && !strstr(text, " #") && last != ':' &&
           !isspace((unsigned char)last);
}

static void print_char(FILE *f, const char *text, size_t len, uint32_t c)
{
    if (c == '"' || c == '\\')
        fprintf(f, "\\%c", (char)c);
    else if (c == '\n')
        fputs("\\n", f);
    else if (c == '\t')
        fputs("\\t", f);
    else if (c < 0x20 || c == 0x7f)
        fprintf(f, "\\x%02" PRIx32, c);
    else if (c == 0xfffd || (c >= 0x80 && is_special(c)))
        fprintf(f, "\\u%04" PRIx32, c);
    else
        fwrite(text, 1, len, f);
}

static void print_quoted(FILE *f, const char *text)
{
    uint32_t c;
    fputc('"', f);
    for (size_t n; *text; text += n) {
        n = next_char(text, &c);
        print_char(f, text, n, c);
    }
    fputc('"', f);
}

static void print_text(FILE *f, const char *text)
{
    if (is_plain(text))
        fputs(text, f);
    else
        print_quoted(f, text);
}

/* Doubles the "$" that reading would take for an escape or a reference. */
static int escape_dollars(struct bytes text, struct buf *out)
{
    int r = 0;
    for (size_t i = 0, run; r == 0 && i < text.len; i += run) {
        for (run = 0; i + run < text.len && text.data[i + run] == '$';)
            run++;
        bool matters = run > 1 || (run == 1 && i + 1 < text.len && text.data[i + 1] == '{');
        if (matters)
            r = buf_append(out, text.data + i, run);
        run = run ? run : 1;
        if (r == 0)
            r = buf_append(out, text.data + i, run);
    }
    return r;
}

/* A string value: secrets blanked out, "$" escaped. */
static void print_string(FILE *f, const char *text)
{
    _cleanup_buf_ struct buf *shown = buf_new(0);
    _cleanup_buf_ struct buf *escaped = buf_new(0);
    if (shown && escaped && secrets_redact(bytes_str(text), shown) == 0 &&
        escape_dollars(buf_bytes(shown), escaped) == 0 && buf_str(escaped))
        print_text(f, buf_str(escaped));
}

static void print_double(FILE *f, double d)
{
    char text[40];
    if (isnan(d)) {
        fputs(".nan", f);
    } else if (isinf(d)) {
        fputs(d < 0 ? "-.inf" : ".inf", f);
    } else {
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(text, sizeof(text), "%.*g", digits, d);
            if (strtod(text, NULL) == d)
                break;
        }
        fprintf(f, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
    }
}

static void print_single(FILE *f, const struct cfg_value *v)
{
    if (v->type == CFG_STRING || secrets_found(bytes_of(v->text, v->text_len)))
        print_string(f, v->text);
    else if (v->type == CFG_NULL)
        fputs("null", f);
    else if (v->type == CFG_BOOL)
        fputs(v->b ? "true" : "false", f);
    else if (v->type == CFG_INT)
        fprintf(f, "%" PRId64, v->i);
    else if (v->type == CFG_UINT)
        fprintf(f, "%" PRIu64, v->u);
    else if (v->type == CFG_DOUBLE)
        print_double(f, v->d);
    else
        fputs(v->text, f);
}

static void print_value(FILE *f, const struct cfg_value *v, int indent);

/* The entries of a map or list, each on lines of its own. */
static void print_items(FILE *f, const struct cfg_value *v, int indent)
{
    for (size_t i = 0; i < v->n; i++) {
        print_indent(f, indent);
        if (v->type == CFG_MAP)
            print_text(f, v->keys[i]);
        fputs(v->type == CFG_MAP ? ":" : "-", f);
        print_value(f, v->items[i], indent + 2);
    }
}

/* A value behind a key or dash, with the line end. */
static void print_value(FILE *f, const struct cfg_value *v, int indent)
{
    bool items = v->type == CFG_LIST || v->type == CFG_MAP;
    if (items && v->n) {
        fputc('\n', f);
        print_items(f, v, indent);
        return;
    }
    fputc(' ', f);
    if (items)
        fputs(v->type == CFG_LIST ? "[]" : "{}", f);
    else
        print_single(f, v);
    fputc('\n', f);
}

static void print_scalar(FILE *f, const struct cfg_field *field, const void *p)
{
    char duration[32];
    const char *text =
        field->kind == BIND_STRING || field->kind == BIND_OPAQUE ? *(const char *const *)p : NULL;
    switch (field->kind) {
    case BIND_BOOL: fputs(*(const bool *)p ? "true" : "false", f); break;
    case BIND_INT: fprintf(f, "%" PRId64, *(const int64_t *)p); break;
    case BIND_SIZE_MIB: fprintf(f, "%" PRId64, *(const int64_t *)p / (1 << 20)); break;
    case BIND_DOUBLE: print_double(f, *(const double *)p); break;
    case BIND_OCTAL: fprintf(f, "\"0%" PRIo64 "\"", *(const int64_t *)p); break;
    case BIND_DURATION:
        cfg_format_duration(*(const int64_t *)p, duration);
        fputs(duration, f);
        break;
    case BIND_ENUM:
        text = field->values[*(const int *)p];
        fprintf(f, "%.*s", (int)strcspn(text, "|"), text);
        break;
    case BIND_ID:
        text = ((const struct cfg_id *)p)->id;
        fputs(text ? text : "null", f);
        break;
    case BIND_OPAQUE:
        fputs(!text ? "null" : *text ? "\"" SECRET_PLACEHOLDER "\"" : "\"\"", f);
        break;
    default:
        if (text)
            print_string(f, text);
        else
            fputs("null", f);
    }
}

static void print_one(FILE *f, const struct cfg_field *field, const void *p, int indent);

static void print_list(FILE *f, const struct cfg_field *elem, const struct cfg_list *list,
                       int indent)
{
    size_t size = cfg_elem_size(elem);
    fputs(list->n ? "\n" : " []\n", f);
    for (size_t i = 0; i < list->n; i++) {
        print_indent(f, indent);
        fputc('-', f);
        print_one(f, elem, (const char *)list->items + i * size, indent + 2);
    }
}

static void print_map(FILE *f, const struct cfg_field *elem, const struct cfg_map *map, int indent)
{
    size_t size = cfg_elem_size(elem);
    fputs(map->n ? "\n" : " {}\n", f);
    for (size_t i = 0; i < map->n; i++) {
        print_indent(f, indent);
        print_text(f, map->keys[i]);
        fputc(':', f);
        print_one(f, elem, (const char *)map->values + i * size, indent + 2);
    }
}

/* Whether a field makes a difference between its default and a key that is left out, and was. */
static bool is_left_out(const struct cfg_field *field, const void *bound)
{
    const struct cfg_more *more = bind_more(field);
    return more->presence_at &&
           *(const enum cfg_presence *)((const char *)bound + more->presence_at - 1) ==
               CFG_ABSENT &&
           !(more->printed && more->printed(bound));
}

/* Whether a field is written at all: nothing that is absent is, but a block that is off though it
 * would be on by default. */
static bool is_shown(const struct cfg_field *field, const void *bound)
{
    const void *p = (const char *)bound + field->offset;
    if (is_left_out(field, bound))
        return false;
    switch (field->kind) {
    case BIND_REFUSED: return false;
    case BIND_ANY: return *(const void *const *)p != NULL;
    case BIND_ID: return ((const struct cfg_id *)p)->id != NULL;
    case BIND_OCTAL: return *(const int64_t *)p >= 0; /* a component may keep -1 for "not given" */
    case BIND_BLOCK: return field->def || *(const void *const *)p;
    default: return true;
    }
}

static bool is_any_shown(const struct cfg_field *fields, const void *bound)
{
    for (const struct cfg_field *field = fields; field->key; field++)
        if (is_shown(field, bound))
            return true;
    return false;
}

/* A struct behind a key or dash. */
static void print_nested(FILE *f, const struct cfg_field *fields, const void *p, int indent)
{
    bool any = is_any_shown(fields, p);
    fputs(any ? "\n" : " {}\n", f);
    if (any)
        cfg_print(f, fields, p, indent);
}

/* What stands behind "key:" or "-", with the line end. */
static void print_one(FILE *f, const struct cfg_field *field, const void *p, int indent)
{
    const void *pointer =
        field->kind == BIND_BLOCK || field->kind == BIND_ANY ? *(const void *const *)p : p;
    const char *text = bind_more(field)->text_at
                           ? *(const char *const *)((const char *)p + bind_more(field)->text_at - 1)
                           : NULL;
    if (text) {
        fputc(' ', f);
        print_string(f, text);
        fputc('\n', f);
    } else if (!pointer) {
        fputs(field->kind == BIND_BLOCK ? " {enabled: false}\n" : " null\n", f);
    } else if (field->kind == BIND_LIST) {
        print_list(f, field->elem, p, indent);
    } else if (field->kind == BIND_MAP) {
        print_map(f, field->elem, p, indent);
    } else if (field->kind == BIND_STRUCT || field->kind == BIND_BLOCK) {
        print_nested(f, field->fields, pointer, indent);
    } else if (field->kind == BIND_ANY) {
        print_value(f, pointer, indent);
    } else {
        fputc(' ', f);
        print_scalar(f, field, p);
        fputc('\n', f);
    }
}

void cfg_print(FILE *f, const struct cfg_field *fields, const void *bound, int indent)
{
    for (const struct cfg_field *field = fields; field->key; field++) {
        const void *p = (const char *)bound + field->offset;
        if (!*field->key && field->kind == BIND_STRUCT) {
            cfg_print(f, field->fields, p, indent);
        } else if (is_shown(field, bound)) {
            print_indent(f, indent);
            fprintf(f, "%s:", field->key);
            print_one(f, field, p, indent + 2);
        }
    }
}

/* ---- in one line */

static void print_flow_value(FILE *f, const struct cfg_value *v)
{
    const bool map = v->type == CFG_MAP;
    if (!map && v->type != CFG_LIST) {
        print_single(f, v);
        return;
    }
    fputc(map ? '{' : '[', f);
    for (size_t i = 0; i < v->n; i++) {
        fputs(i ? ", " : "", f);
        if (map) {
            print_text(f, v->keys[i]);
            fputs(": ", f);
        }
        print_flow_value(f, v->items[i]);
    }
    fputc(map ? '}' : ']', f);
}

static void print_flow_fields(FILE *f, const struct cfg_field *fields, const void *bound, bool *any)
{
    for (const struct cfg_field *field = fields; field->key; field++) {
        const void *p = (const char *)bound + field->offset;
        if (!*field->key && field->kind == BIND_STRUCT) {
            print_flow_fields(f, field->fields, p, any);
        } else if (is_shown(field, bound)) {
            fprintf(f, "%s%s: ", *any ? ", " : "", field->key);
            *any = true;
            cfg_print_flow(f, field, p);
        }
    }
}

static void print_flow_items(FILE *f, const struct cfg_field *elem, const char *const *keys,
                             const char *items, size_t n)
{
    fputc(keys ? '{' : '[', f);
    for (size_t i = 0; i < n; i++) {
        fputs(i ? ", " : "", f);
        if (keys) {
            print_text(f, keys[i]);
            fputs(": ", f);
        }
        cfg_print_flow(f, elem, items + i * cfg_elem_size(elem));
    }
    fputc(keys ? '}' : ']', f);
}

void cfg_print_flow(FILE *f, const struct cfg_field *field, const void *p)
{
    const bool pointer = field->kind == BIND_BLOCK || field->kind == BIND_ANY;
    const void *to = pointer ? *(const void *const *)p : p;
    const struct cfg_list *list = p;
    const struct cfg_map *map = p;
    bool any = false;
    if (!to) {
        fputs("null", f);
    } else if (field->kind == BIND_LIST) {
        print_flow_items(f, field->elem, NULL, list->items, list->n);
    } else if (field->kind == BIND_MAP) {
        static const char *const none[1];
        print_flow_items(f, field->elem, map->n ? map->keys : none, map->values, map->n);
    } else if (field->kind == BIND_ANY) {
        print_flow_value(f, to);
    } else if (field->kind == BIND_STRUCT || field->kind == BIND_BLOCK) {
        fputc('{', f);
        print_flow_fields(f, field->fields, to, &any);
        fputc('}', f);
    } else {
        print_scalar(f, field, p);
    }
}
