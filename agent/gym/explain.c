/* motel explain: every field, its value, and where that came from. */
#include "agent/base/secrets.h"
#include "agent/gym/telemetry.h"
#include "agent/net/http_client.h"

#define MAX_ROWS (1 + GYM_FIELD_COUNT + (1 + SIGNAL_COUNT) * GYM_OTLP_COUNT)
#define MAX_WIDTH 48 /* of a column; a longer text pushes the next one aside */

struct row {
    char name[64], value[400], origin[300];
    const char *note; /* NULL = none */
};

struct table {
    struct row rows[MAX_ROWS];
    size_t n;
};

static struct row *add_row(struct table *t, const char *name, const char *value, const char *origin)
{
    struct row *r = &t->rows[t->n++];
    snprintf(r->name, sizeof(r->name), "%s", name);
    snprintf(r->value, sizeof(r->value), "%s", value);
    snprintf(r->origin, sizeof(r->origin), "%s", origin);
    return r;
}

static struct row *add_value(struct table *t, const char *name, const struct gym_value *v)
{
    char origin[300];
    gym_origin(v, origin, sizeof(origin));
    return add_row(t, name, v->text ? v->text : "-", origin);
}

static void add_field(struct table *t, enum gym_field f, const struct gym_value *v)
{
    if (f == GYM_RUN_ID && !v->text)
        add_row(t, gym_field_name(f), "12 hexadecimal digits", "made at every start");
    else if (v->text || !gym_field_note(f))
        add_value(t, gym_field_name(f), v)->note = gym_field_note(f);
}

static void add_otlp(struct table *t, const char *name, enum gym_otlp field,
                     const struct gym_value *v)
{
    struct gym_value safe = *v;
    char url[400];
    if (v->text && field == GYM_OTLP_HEADERS)
        safe.text = SECRET_PLACEHOLDER;
    if (v->text && field == GYM_OTLP_ENDPOINT) {
        http_url_redact(v->text, url, sizeof(url));
        safe.text = url;
    }
    add_value(t, name, &safe);
}

/* What a variable of one signal sets apart: "otlp_traces_endpoint". */
static void add_signal(struct table *t, const struct gym_telemetry *all, enum signal s)
{
    for (int i = 0; i < GYM_OTLP_COUNT; i++) {
        char name[64];
        snprintf(name, sizeof(name), "otlp_%s%s", signal_name(s),
                 gym_otlp_name((enum gym_otlp)i) + strlen("otlp"));
        if (all->signal_otlp[s][i].text)
            add_otlp(t, name, (enum gym_otlp)i, &all->signal_otlp[s][i]);
    }
}

static int widest(int so_far, const char *text)
{
    const int n = (int)strlen(text);
    return n > so_far && n <= MAX_WIDTH ? n : so_far;
}

static void print_table(FILE *f, const struct table *t)
{
    int name = 0, value = 0;
    for (size_t i = 0; i < t->n; i++) {
        name = widest(name, t->rows[i].name);
        value = widest(value, t->rows[i].value);
    }
    for (size_t i = 0; i < t->n; i++) {
        const struct row *r = &t->rows[i];
        fprintf(f, "%-*s  %-*s  %s", name, r->name, value, r->value, r->origin);
        fprintf(f, r->note ? " (%s)\n" : "\n", r->note);
    }
}

static void fill(struct table *t, const struct gym_telemetry *all)
{
    for (int i = 0; i < GYM_FIELD_COUNT; i++)
        add_field(t, (enum gym_field)i, &all->fields[i]);
    for (int i = 0; i < GYM_OTLP_COUNT; i++)
        add_otlp(t, gym_otlp_name((enum gym_otlp)i), (enum gym_otlp)i, &all->otlp[i]);
    for (int s = 0; s < SIGNAL_COUNT; s++)
        add_signal(t, all, (enum signal)s);
}

void gym_explain(FILE *f, const struct gym_telemetry *all)
{
    struct table *t = calloc(1, sizeof(*t));
    if (!t)
        return;
    add_row(t, "FIELD", "VALUE", "FROM");
    fill(t, all);
    print_table(f, t);
    free(t);
}

void gym_explain_each(const struct gym_telemetry *all,
                      void (*each)(void *ctx, const char *name, const char *value,
                                   const char *origin, const char *note),
                      void *ctx)
{
    struct table *t = calloc(1, sizeof(*t));
    if (!t)
        return;
    fill(t, all);
    for (size_t i = 0; i < t->n; i++)
        each(ctx, t->rows[i].name, t->rows[i].value, t->rows[i].origin, t->rows[i].note);
    free(t);
}
