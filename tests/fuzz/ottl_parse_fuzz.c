/*
 * Any text as a statement and as a condition, in a given context and with the context inferred. Refused with a reason and a place, or
 * compiled; what was compiled has the text it was given and says the same when it is compiled again.
 */
#include "tests/fuzz/fuzz.h"

#include "tests/unit/ottl_rig.h"

#define ALL ((1u << OTTL_CONTEXT_COUNT) - 1)

static void check_refusal(int r, const struct err *e, struct bytes text)
{
    if (r != -EINVAL || !e->text[0] || e->column < 0 || (size_t)e->column > text.len + 1)
        abort();
}

static void check_statement(struct bytes text, const struct ottl_dialect *d)
{
    struct ottl_statement *s, *again;
    struct err e = {.text = ""};
    int r = ottl_statement_parse(text, d, &s, &e);
    if (r < 0) {
        check_refusal(r, &e, text);
        return;
    }
    if (!bytes_eq(ottl_statement_text(s), text) ||
        ottl_statement_parse(ottl_statement_text(s), d, &again, &e) < 0 ||
        ottl_statement_context(s) != ottl_statement_context(again))
        abort();
    ottl_statement_free(again);
    ottl_statement_free(s);
}

static void check_condition(struct bytes text, const struct ottl_dialect *d)
{
    struct ottl_condition *c;
    struct err e = {.text = ""};
    enum ottl_context inferred;
    int r = ottl_condition_parse(text, d, &c, &e);
    if (r < 0) {
        check_refusal(r, &e, text);
        return;
    }
    if (d->context < 0 && (ottl_infer_context(NULL, 0, &text, 1, d, &inferred, &e) < 0 ||
                           inferred != ottl_condition_context(c)))
        abort();
    ottl_condition_free(c);
}

/* The first byte chooses the context, the rest is the text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct ottl_dialect d = {.context = data[0] % (OTTL_CONTEXT_COUNT + 1) - 1,
                             .allowed = ALL,
                             .prefix_required = data[0] & 0x40,
                             .functions = rig_tables};
    struct bytes text = bytes_of(data + 1, size - 1);
    check_statement(text, &d);
    check_condition(text, &d);
    return 0;
}
