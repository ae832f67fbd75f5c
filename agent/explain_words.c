/* The account in words. */
#include <string.h>

#include "agent/explain_parts.h"

#define MAX_VALUE 300 /* of a setting; JSON has all of it */

static const char *get(const struct cfg_value *map, const char *key)
{
    const struct cfg_value *v = cfg_get(map, key);
    return v && v->text ? v->text : "";
}

static bool is(const struct cfg_value *map, const char *key, const char *text)
{
    return strcmp(get(map, key), text) == 0;
}

/* "a, b, c" */
static void join(FILE *f, const struct cfg_value *list, const char *with)
{
    for (size_t i = 0; list && i < list->n; i++)
        fprintf(f, "%s%s", i ? with : "", list->items[i]->text);
}

static void print_place(FILE *f, const struct cfg_value *row)
{
    if (*get(row, "at"))
        fprintf(f, "  (%s)", get(row, "at"));
    fputc('\n', f);
}

static int widest(const struct cfg_value *list, const char *key)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++)
        if (strlen(get(list->items[i], key)) > n)
            n = strlen(get(list->items[i], key));
    return n < 50 ? (int)n : 50;
}

/* ---- parts ---- */

/* traces    otlp  ->  memory_limiter  ->  batch  ->  otlp_http, [span_metrics] */
static void print_pipelines(FILE *f, const struct cfg_value *root)
{
    const struct cfg_value *list = cfg_get(root, "pipelines"), *joints = cfg_get(root, "joints");
    fputs("pipelines\n", f);
    for (size_t i = 0; i < list->n; i++) {
        const struct cfg_value *p = list->items[i], *processors = cfg_get(p, "processors");
        fprintf(f, "  %-*s  ", widest(list, "name"), get(p, "name"));
        join(f, cfg_get(p, "receivers"), ", ");
        fputs(processors->n ? "  ->  " : "", f);
        join(f, processors, "  ->  ");
        fputs("  ->  ", f);
        join(f, cfg_get(p, "exporters"), ", ");
        fputc('\n', f);
    }
    for (size_t i = 0; i < joints->n; i++) {
        fprintf(f, "  [%s] joins ", get(joints->items[i], "id"));
        join(f, cfg_get(joints->items[i], "from"), ", ");
        fputs(" to ", f);
        join(f, cfg_get(joints->items[i], "to"), ", ");
        fputc('\n', f);
    }
}

static void print_setting(FILE *f, const struct cfg_value *s)
{
    const char *value = get(s, "value");
    fprintf(f, "    %s: %.*s%s", get(s, "key"), MAX_VALUE, value,
            strlen(value) > MAX_VALUE ? "..." : "");
    if (*get(s, "default"))
        fprintf(f, ", by default %.*s", MAX_VALUE, get(s, "default"));
    print_place(f, s);
    help_print_wrapped(f, get(s, "help"), 8);
}

static void print_components(FILE *f, const struct cfg_value *root)
{
    const struct cfg_value *list = cfg_get(root, "components");
    fputs("\ncomponents, and what is set for them that is not the default\n", f);
    for (size_t i = 0; i < list->n; i++) {
        const struct cfg_value *c = list->items[i], *settings = cfg_get(c, "settings");
        if (!cfg_get(c, "id") && settings->n == 0)
            continue;
        fprintf(f, "  %s%s", get(c, "path"), is(c, "used", "false") ? " (not used)" : "");
        print_place(f, c);
        help_print_wrapped(f, get(c, "help"), 4);
        for (size_t k = 0; k < settings->n; k++)
            print_setting(f, settings->items[k]);
    }
}

static void print_ports(FILE *f, const struct cfg_value *root)
{
    const struct cfg_value *list = cfg_get(root, "ports");
    fputs(list->n ? "\nports that are opened\n" : "\nno port is opened\n", f);
    for (size_t i = 0; i < list->n; i++) {
        const struct cfg_value *p = list->items[i];
        fprintf(f, "  %-*s  %s%s; %s; %s%s; %s", widest(list, "address"), get(p, "address"),
                get(p, "protocol"), is(p, "transport", "unix") ? ", unix socket" : "",
                is(p, "tls", "none") ? "no TLS" : get(p, "tls"),
                is(p, "auth", "none") ? "no authentication" : "authentication by ",
                is(p, "auth", "none") ? "" : get(p, "auth"), get(p, "of"));
        print_place(f, p);
    }
}

static void print_destinations(FILE *f, const struct cfg_value *root)
{
    const struct cfg_value *list = cfg_get(root, "destinations");
    fputs(list->n ? "\nconnections that are made\n" : "\nno connection is made\n", f);
    for (size_t i = 0; i < list->n; i++) {
        const struct cfg_value *d = list->items[i], *signals = cfg_get(d, "signals");
        fprintf(f, "  %-*s  %s", widest(list, "address"), get(d, "address"), get(d, "protocol"));
        fputs(signals && signals->n ? ": " : "", f);
        join(f, signals, ", ");
        fprintf(f, "; %s", is(d, "tls", "none") ? "no TLS" : get(d, "tls"));
        if (*get(d, "auth") && !is(d, "auth", "none"))
            fprintf(f, "; credentials of %s", get(d, "auth"));
        fprintf(f, "; %s", get(d, "of"));
        print_place(f, d);
    }
}

static void print_files(FILE *f, const struct cfg_value *root)
{
    const struct cfg_value *list = cfg_get(root, "files");
    fputs(list->n ? "\nfiles and directories\n" : "\nno file is read or written\n", f);
    for (size_t i = 0; i < list->n; i++) {
        const struct cfg_value *x = list->items[i];
        fprintf(f, "  %-7s  %s  %s", is(x, "use", "kept") ? "kept" : get(x, "use"), get(x, "path"),
                get(x, "of"));
        print_place(f, x);
    }
}

static void print_variables(FILE *f, const struct cfg_value *root)
{
    const struct cfg_value *list = cfg_get(root, "variables");
    fputs(list->n ? "\nenvironment variables\n" : "\nno environment variable is read\n", f);
    for (size_t i = 0; i < list->n; i++) {
        const struct cfg_value *v = list->items[i], *places = cfg_get(v, "places");
        fprintf(f, "  %s\n", get(v, "name"));
        for (size_t k = 0; k < places->n; k++) {
            const struct cfg_value *p = places->items[k];
            fprintf(f, "    %s: %s", get(p, "of"), get(p, "state"));
            if (*get(p, "value"))
                fprintf(f, " \"%.*s\"", MAX_VALUE, get(p, "value"));
            if (*get(p, "type"))
                fprintf(f, ", %s", get(p, "type"));
            print_place(f, p);
        }
    }
}

static void print_notes(FILE *f, const struct cfg_value *root)
{
    const struct cfg_value *list = cfg_get(root, "notes");
    fputs(list->n ? "\nto look at\n" : "", f);
    for (size_t i = 0; i < list->n; i++) {
        const struct cfg_value *n = list->items[i];
        fprintf(f, "  %s: %s%s%s", get(n, "kind"), get(n, "of"), *get(n, "of") ? ": " : "",
                get(n, "text"));
        print_place(f, n);
    }
}

void explain_words(FILE *f, const struct cfg_value *root)
{
    fputs("configuration: ", f);
    join(f, cfg_get(root, "sources"), ", ");
    fputs("\n\n", f);
    print_pipelines(f, root);
    print_components(f, root);
    print_ports(f, root);
    print_destinations(f, root);
    print_files(f, root);
    print_variables(f, root);
    print_notes(f, root);
}
