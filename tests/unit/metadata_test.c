/* What is known of metric families, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/buf.h"
#include "receivers/prometheus/metadata.h"

static void note(struct prom_metadata *m, enum prom_entry_kind kind, const char *family,
                 const char *text, enum prom_type type)
{
    const struct prom_entry e = {
        .kind = kind, .family = bytes_str(family), .text = bytes_str(text), .type = type};
    assert_int_equal(prom_metadata_note(m, &e), 0);
}

static void test_note(void **state)
{
    const size_t before = mem_used();
    struct prom_metadata *m = prom_metadata_new();
    (void)state;
    assert_null(prom_metadata_find(m, bytes_str("a")));
    assert_null(prom_metadata_find(NULL, bytes_str("a")));
    note(m, PROM_HELP, "a", "first", 0);
    const struct prom_family_info *a = prom_metadata_find(m, bytes_str("a"));
    assert_int_equal(a->type, PROM_UNKNOWN);
    note(m, PROM_TYPE, "a", "", PROM_COUNTER);
    note(m, PROM_HELP, "a", "second", 0);
    note(m, PROM_UNIT, "a", "seconds", 0);
    note(m, PROM_UNIT, "b", "", 0);
    assert_ptr_equal(prom_metadata_find(m, bytes_str("a")), a);
    assert_int_equal(a->type, PROM_COUNTER);
    assert_true(bytes_eq_str(a->name, "a"));
    assert_true(bytes_eq_str(a->help, "second"));
    assert_true(bytes_eq_str(a->unit, "seconds"));
    assert_non_null(prom_metadata_find(m, bytes_str("b")));
    prom_metadata_free(m);
    assert_int_equal(mem_used(), before);
}

static void test_forget(void **state)
{
    struct prom_metadata *m = prom_metadata_new();
    char name[16];
    (void)state;
    for (unsigned scrape = 0; scrape < 30; scrape++) {
        for (unsigned i = 0; i < 500; i++) {
            snprintf(name, sizeof(name), "m%u_%u", scrape, i);
            note(m, PROM_TYPE, name, "", PROM_GAUGE);
        }
        note(m, PROM_TYPE, "always", "", PROM_SUMMARY);
        prom_metadata_end_scrape(m);
        for (unsigned old = 0; old <= scrape; old++) {
            snprintf(name, sizeof(name), "m%u_%u", old, 499u);
            assert_int_equal(prom_metadata_find(m, bytes_str(name)) != NULL, scrape - old < 10);
        }
    }
    assert_int_equal(prom_metadata_find(m, bytes_str("always"))->type, PROM_SUMMARY);
    prom_metadata_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_note), cmocka_unit_test(test_forget)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
