/* Mistakes: limits, places, and the nearest word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/config/errors.h"

static void test_suggest(void **state)
{
    (void)state;
    static const char *const names[] = {"timeout", "endpoint", "send_batch_size", "tls", "a", NULL};
    static const struct {
        const char *word, *want;
    } cases[] = {
        {"timeot", "timeout"},
        {"tiemout", "timeout"},
        {"endpont", "endpoint"},
        {"endpoints", "endpoint"},
        {"batch_size", NULL},
        {"send_b", "send_batch_size"},
        {"send", NULL},
        {"sendbatchsize", "send_batch_size"},
        {"TLS", NULL},
        {"tsl", "tls"},
        {"tlss", "tls"},
        {"b", NULL},
        {"completely_different", NULL},
        {"", NULL},
        {"send_batch_max_size", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *got = cfg_suggest(cases[i].word, names);
        if (!got || !cases[i].want ? got != cases[i].want : strcmp(got, cases[i].want) != 0)
            fail_msg("%s: %s", cases[i].word, got ? got : "none");
    }
}

static void test_print(void **state)
{
    (void)state;
    struct cfg_errors e = {0};
    _cleanup_free_ char *text = NULL;
    size_t size;
    cfg_error(&e, (struct cfg_pos){"f.yaml", 3, 7}, "a::b", "bad %d", 5);
    cfg_error(&e, (struct cfg_pos){"f.yaml", 0, 0}, "", "bad");
    cfg_error(&e, (struct cfg_pos){0}, "a", "bad");
    FILE *f = open_memstream(&text, &size);
    cfg_errors_print(&e, f);
    fclose(f);
    assert_string_equal(text, "f.yaml:3:7: a::b: bad 5\nf.yaml: bad\na: bad\n");
    cfg_errors_done(&e);
}

static void test_many(void **state)
{
    (void)state;
    struct cfg_errors e = {0};
    char *text = NULL;
    size_t size;
    for (int i = 0; i < 150; i++)
        cfg_error(&e, (struct cfg_pos){"f", i + 1, 1}, "", "%d", i);
    assert_int_equal(e.n, 100);
    assert_int_equal(e.dropped, 50);
    assert_int_equal(e.items[99].line, 100);
    FILE *f = open_memstream(&text, &size);
    cfg_errors_print(&e, f);
    fclose(f);
    assert_non_null(strstr(text, "and 50 more\n"));
    free(text);
    cfg_errors_done(&e);
    assert_int_equal(e.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_suggest), cmocka_unit_test(test_print),
                                       cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
