/* The field tables of all components: defaults that bind, default maps without unknown keys, a help
 * text for every key, and printing that is read back the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/config/config.h"
#include "agent/pipeline/component.h"

static bool is_embedded(const struct cfg_field *f)
{
    return !*f->key && f->kind == BIND_STRUCT;
}

/* A default map must consist of keys of its struct. */
static void check_default_map(const char *component, const struct cfg_field *f)
{
    struct cfg_errors errs = {0};
    struct config *c = config_load_text("default", f->def, &errs);
    if (!c)
        fail_msg("%s: %s: default \"%s\" is no YAML", component, f->key, f->def);
    struct cfg_binder b = {.arena = c->arena, .errors = &errs};
    void *bound = arena_calloc(c->arena, f->size + 1);
    cfg_bind(&b, f->fields, c->root, f->key, bound);
    for (size_t i = 0; i < errs.n; i++)
        if (strncmp(errs.items[i].text, "required", 8) != 0)
            fail_msg("%s: %s: %s", component, errs.items[i].path, errs.items[i].text);
    cfg_errors_done(&errs);
    config_free(c);
}

static void check_fields(const char *component, const struct cfg_field *fields)
{
    for (const struct cfg_field *f = fields; f->key; f++) {
        if (!is_embedded(f) && (!f->help || !*f->help))
            fail_msg("%s: %s has no help", component, f->key);
        bool nested = f->kind == BIND_STRUCT || f->kind == BIND_BLOCK;
        if (nested && f->def)
            check_default_map(component, f);
        if (nested)
            check_fields(component, f->fields);
        bool many = f->kind == BIND_LIST || f->kind == BIND_MAP;
        if (many && (f->elem->kind == BIND_STRUCT || f->elem->kind == BIND_BLOCK))
            check_fields(component, f->elem->fields);
    }
}

/* Binds `yaml` and prints the result; the caller frees it. */
static char *bind_and_print(const struct component_type *t, const char *yaml)
{
    struct cfg_errors errs = {0};
    char *text = NULL;
    size_t size;
    struct config *c = config_load_text(t->name, yaml, &errs);
    if (!c)
        fail_msg("%s: %s: %s", t->name, yaml, errs.items[0].text);
    struct cfg_binder b = {.arena = c->arena, .errors = &errs};
    void *bound = arena_calloc(c->arena, t->config_size + 1);
    cfg_bind(&b, t->fields, c->root, t->name, bound);
    for (size_t i = 0; i < errs.n; i++)
        if (strncmp(errs.items[i].text, "required", 8) != 0)
            fail_msg("%s:%d: %s: %s\n%s", t->name, errs.items[i].line, errs.items[i].path,
                     errs.items[i].text, yaml);
    FILE *f = open_memstream(&text, &size);
    cfg_print(f, t->fields, bound, 0);
    fclose(f);
    cfg_errors_done(&errs);
    config_free(c);
    return text;
}

static void test_all(void **state)
{
    (void)state;
    size_t n = 0;
    for (const struct component_type *const *t = component_types; *t; t++, n++) {
        if (!(*t)->fields)
            continue;
        check_fields((*t)->name, (*t)->fields);
        char *once = bind_and_print(*t, "{}"), *twice = bind_and_print(*t, once);
        assert_string_equal(once, twice);
        free(once);
        free(twice);
    }
    assert_true(n > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
