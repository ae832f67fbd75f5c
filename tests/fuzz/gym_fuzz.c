/*
 * The telemetry block of a NeMo Gym config: an input is one, and, as a raw text, also an
 * interpolation and a list of headers. What the settings say arrives in the configuration as it is,
 * whatever "$" and braces are in it.
 */
#include "tests/fuzz/fuzz.h"

#include "agent/base/secrets.h"
#include "agent/config/tree.h"
#include "agent/gym/oc_env.h"
#include "agent/gym/pipeline.h"

static char *const environment[] = {"A=one", "E=", "D=$$${oc.env:A}${env:HOME}",
                                    "OTEL_EXPORTER_OTLP_LOGS_HEADERS=a=%24%7Benv:HOME%7D", NULL};

struct block {
    const char *text;
    struct gym_telemetry t;
};

static struct cfg_value *make(void *ctx, struct arena *a, struct cfg_errors *errs)
{
    struct block *b = ctx;
    const struct cfg_value *v = cfg_yaml_parse(a, "gym.yaml", b->text, strlen(b->text), errs, NULL);
    if (!v || gym_telemetry_read(a, v, environment, errs, &b->t) < 0)
        return NULL;
    return gym_pipeline(a, &b->t, true, errs);
}

static void check_text(const struct config *c, const char *path, const struct gym_value *v)
{
    bool exact;
    const struct cfg_value *found = cfg_find(c->root, path, &exact);
    if (!v->text ? exact : !exact || strcmp(found->text, v->text) != 0)
        abort();
}

static void explain(const struct gym_telemetry *t)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    gym_explain(f, t);
    fclose(f);
    free(text);
}

static void try_block(const char *text)
{
    struct block b = {.text = text};
    struct cfg_errors errs = {0};
    struct config *c = config_load(&(struct config_source){.make = make, .ctx = &b}, 1, &errs);
    if (!c != (errs.n > 0))
        abort();
    if (c) {
        check_text(c, "processors::gym::service_name", &b.t.fields[GYM_SERVICE_NAME]);
        check_text(c, "processors::gym::run_id", &b.t.fields[GYM_RUN_ID]);
        explain(&b.t);
        gym_pipeline_check(c, &errs);
    }
    cfg_errors_done(&errs);
    config_free(c);
}

static void try_text(struct arena *a, const char *text)
{
    const struct oc_env o = {a, environment, false};
    const char *resolved = NULL;
    struct gym_header *headers;
    size_t n;
    struct err e;
    if (oc_env_resolve(&o, text, &resolved, &e) == 0 && !strstr(text, "${") && resolved != text)
        abort();
    if (gym_headers_parse(a, text, &headers, &n, &e) == 0)
        for (size_t i = 0; i < n; i++)
            if (strlen(headers[i].name) + strlen(headers[i].value) >= strlen(text))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new(0);
    char *text = arena_strndup(a, (const char *)data, size);
    try_block(text);
    try_text(a, text);
    arena_free(a);
    secrets_clear();
    return 0;
}
