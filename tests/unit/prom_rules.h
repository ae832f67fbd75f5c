/* A prometheus receiver's configuration out of YAML text, for tests of its parts. */
#ifndef PROM_RULES_H
#define PROM_RULES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/config/config.h"
#include "receivers/prometheus/prometheus.h"

struct prom_world {
    struct config *config;
    struct prom_config bound;
    struct err err; /* the first mistake; its path and line */
};
/* Binds and checks what stands below `prometheus:`. 0 or -EINVAL with w->err. */
static inline int world_read(struct prom_world *w, const char *yaml)
{
    struct cfg_errors errs = {.n = 0};
    *w = (struct prom_world){.config = config_load_text("test.yaml", yaml, &errs)};
    int r = w->config ? 0 : -1;
    if (r == 0) {
        struct cfg_binder b = {.arena = w->config->arena, .errors = &errs};
        r = cfg_bind(&b, prom_fields, w->config->root, "x", &w->bound);
    }
    if (errs.n)
        w->err = errs.items[0];
    cfg_errors_done(&errs);
    return r == 0 ? prom_config_check(&w->bound, &w->err) : r;
}
static inline void world_done(struct prom_world *w)
{
    w->config = config_free(w->config);
}
static inline const struct scrape_config *world_job(const struct prom_world *w, size_t i)
{
    return &((const struct scrape_config *)w->bound.file.scrape_configs.items)[i];
}

/* Reads "a=1,b=two" (or "") into the builder; the text has to stay. */
static inline void builder_read(struct label_builder *b, const char *text)
{
    prom_builder_reset(b, (struct prom_labels){NULL, 0});
    while (*text) {
        const size_t name = strcspn(text, "="), value = strcspn(text + name + 1, ",");
        prom_builder_set(b, bytes_of(text, name), bytes_of(text + name + 1, value));
        text += name + 1 + value;
        text += *text == ',';
    }
}
static inline void expect_labels(struct label_builder *b, const char *want)
{
    char got[2000] = "";
    size_t at = 0;
    struct prom_labels l;
    assert_int_equal(prom_builder_sorted(b, &l), 0);
    for (size_t i = 0; i < l.n; i++)
        at += (size_t)snprintf(got + at, sizeof(got) - at, "%s%.*s=%.*s", i ? "," : "",
                               (int)l.items[i].name.len, (const char *)l.items[i].name.data,
                               (int)l.items[i].value.len, (const char *)l.items[i].value.data);
    assert_string_equal(got, want);
}

#endif
