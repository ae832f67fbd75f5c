/* Retry-After: seconds, dates, and what is neither. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/clock.h"
#include "agent/net/retry_after.h"

static void test_values(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t ms;
    } rows[] = {
        {"3", 3000},
        {"0", 0},
        {"007", 7000},
        {"86400", 86400000},
        {"999999999", 86400000},
        {"99999999999999999999", 0},
        {"", 0},
        {"-5", 0},
        {"+5", 0},
        {"1.5", 0},
        {"5 ", 0},
        {"abc", 0},
        {"Sun, 29 Nov 2026 13:33:23 GMT", 3000},
        {"Sun, 29 Nov 2026 13:33:20 GMT", 0},
        {"Sun, 29 Nov 2026 13:33:19 GMT", 0},
        {"Mon, 30 Nov 2026 13:33:20 GMT", 86400000},
        {"Mon, 30 Nov 2099 13:33:20 GMT", 86400000},
        {"Sun, 29 Nov 2026 13:33:23 CET", 0},
        {"Sun, 29 Nov 2026 13:33:23", 0},
        {"29 Nov 2026 13:33:23 GMT", 0},
        {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (retry_after_parse(rows[i].text, 1795959200ull * NS_PER_S) != rows[i].ms)
            fail_msg("\"%s\": got %u", rows[i].text,
                     retry_after_parse(rows[i].text, 1795959200ull * NS_PER_S));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
