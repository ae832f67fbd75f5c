/* Field tables as a Markdown table: one row a key, nested ones with their path. */
#include <inttypes.h>
#include <math.h>

#include "agent/config/kinds.h"

/* Text of a cell: `|` would end it. */
static void print_cell(FILE *f, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            fputc('\\', f);
        fputc(*text == '\n' ? ' ' : *text, f);
    }
}

static void print_type(FILE *f, const struct cfg_field *field)
{
    if (bind_elem(field)) {
        fputs(field->kind == BIND_LIST ? "list of " : "map of ", f);
        print_type(f, field->elem);
    } else if (field->kind == BIND_ENUM) {
        for (int i = 0; field->values[i]; i++)
            fprintf(f, "%s`%.*s`", i ? ", " : "", (int)strcspn(field->values[i], "|"),
                    field->values[i]);
    } else {
        fputs(bind_kind_name(field->kind), f);
        if (field->kind == BIND_BLOCK)
            fputs(" (optional)", f);
        if (bind_more(field)->text_at)
            fputs(" or string", f);
    }
}

static void print_bound(FILE *f, const struct cfg_field *field, double bound)
{
    char text[32];
    if (field->kind == BIND_DURATION)
        cfg_format_duration((int64_t)bound, text);
    else
        snprintf(text, sizeof(text), "%.15g", bound);
    fputs(text, f);
}

static void print_help(FILE *f, const struct cfg_field *field)
{
    const struct cfg_more *more = bind_more(field);
    if (field->required)
        fputs("Required. ", f);
    if (field->kind == BIND_REFUSED)
        fputs("Not supported: ", f);
    print_cell(f, field->help ? field->help : "");
    if (more->unit)
        fprintf(f, " Unit: %s.", more->unit);
    if (more->min != 0 || more->max != 0) {
        fputs(" At least ", f);
        print_bound(f, field, more->min);
        if (more->max < 9e15) {
            fputs(", at most ", f);
            print_bound(f, field, more->max);
        }
        fputc('.', f);
    }
    if (more->alias)
        fprintf(f, " Older name: `%s`.", more->alias);
}

static void print_row(FILE *f, const struct cfg_field *field, const char *path)
{
    fprintf(f, "| `%s` | ", path);
    print_type(f, field);
    fputs(" | ", f);
    if (field->def && *field->def) {
        fputc('`', f);
        print_cell(f, field->def);
        fputc('`', f);
    }
    fputs(" | ", f);
    print_help(f, field);
    fputs(" |\n", f);
}

static void print_rows(FILE *f, const struct cfg_field *fields, struct cfg_path *path);

/* The rows of what is nested in a field: its own fields, or those of its elements. */
static void print_nested(FILE *f, const struct cfg_field *field, struct cfg_path *path)
{
    const struct cfg_field *elem = bind_elem(field);
    if (elem && bind_nested(elem)) {
        size_t mark = path->len;
        cfg_path_push(path, field->kind == BIND_LIST ? "[]" : "*");
        print_rows(f, elem->fields, path);
        cfg_path_pop(path, mark);
    } else if (field->kind == BIND_STRUCT || field->kind == BIND_BLOCK) {
        print_rows(f, field->fields, path);
    }
}

static void print_rows(FILE *f, const struct cfg_field *fields, struct cfg_path *path)
{
    for (const struct cfg_field *field = fields; field->key; field++) {
        size_t mark = path->len;
        if (*field->key) {
            cfg_path_push(path, field->key);
            print_row(f, field, path->text);
        }
        print_nested(f, field, path);
        cfg_path_pop(path, mark);
    }
}

void cfg_print_docs(FILE *f, const struct cfg_field *fields)
{
    struct cfg_path path = {0};
    fputs("| Key | Type | Default | |\n| --- | --- | --- | --- |\n", f);
    print_rows(f, fields, &path);
}
