/*
 * Configurations: what loads is bound by a table of every kind; what binds is printed, loads again and prints the same (without
 * redaction, which inputs of odd length try). The environment is fixed and no file can be opened meanwhile.
 */
#include "tests/fuzz/fuzz.h"

#include <sys/resource.h>

#include "agent/base/secrets.h"
#include "agent/config/config.h"
#include "agent/config/value_json.h"
#include "tests/unit/bind_fields.h"

static void fix_environment(void)
{
    static bool done;
    if (done)
        return;
    clearenv();
    setenv("T", "tok-123456", 1);
    setenv("N", "0123", 1);
    setenv("E", "", 1);
    setenv("L", "[a, {b: \"${N}\"}]", 1);
    setenv("M", "{name: x, port: 5}", 1);
    setenv("O", "${L}", 1);
    setenv("LOOP", "x${LOOP}", 1);
    setenv("SELF", "[\"${SELF}\"]", 1);
    setenv("D", "$$a$", 1);
    done = true;
}

/* With no descriptor to be had, ${file:…} fails whatever it names. */
static struct config *load(const char *text, struct cfg_errors *errs)
{
    struct rlimit limit, none;
    getrlimit(RLIMIT_NOFILE, &limit);
    none = (struct rlimit){0, limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    struct config *c = config_load_text("text", text, errs);
    setrlimit(RLIMIT_NOFILE, &limit);
    return c;
}

static char *print(const struct all *a)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    cfg_print(f, all_fields, a, 0);
    fclose(f);
    return text;
}

/* Binds, and prints when nothing is wrong; NULL otherwise. */
static char *bind_and_print(struct config *c, struct cfg_errors *errs)
{
    struct all a;
    struct cfg_binder b = {.arena = c->arena, .errors = errs};
    int r = cfg_bind(&b, all_fields, c->root, "top", &a);
    if ((r == 0) != (errs->n == 0))
        abort();
    return r == 0 ? print(&a) : NULL;
}

static void check_again(const char *printed)
{
    struct cfg_errors errs = {0};
    struct config *c = load(printed, &errs);
    char *again = c ? bind_and_print(c, &errs) : NULL;
    if (!again || strcmp(again, printed) != 0) {
        cfg_errors_print(&errs, stderr);
        fprintf(stderr, "--- printed\n%s--- again\n%s", printed, again ? again : "nothing\n");
        abort();
    }
    free(again);
    config_free(c);
}

static void check(const char *text, bool redact)
{
    struct cfg_errors errs = {0};
    struct config *c = load(text, &errs);
    if ((c == NULL) != (errs.n > 0))
        abort();
    if (c) {
        struct buf *json = buf_new(0);
        cfg_value_json(json, c->root, VALUE_JSON_COMPACT);
        buf_unref(json);
        char *printed = bind_and_print(c, &errs);
        if (printed && !redact)
            check_again(printed);
        free(printed);
    }
    config_free(c);
    cfg_errors_done(&errs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size);
    fix_environment();
    secrets_clear();
    secrets_enable(size % 2);
    check(text, size % 2);
    free(text);
    return 0;
}
