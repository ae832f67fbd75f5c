/* Back-off: the pauses, a server's wish, and when to give up. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/clock.h"
#include "agent/pipeline/retry.h"

#define MS(n) ((int64_t)(n) * (int64_t)NS_PER_MS)

static const struct retry_settings settings = {.enabled = true,
                                               .initial_interval_ns = MS(100),
                                               .max_interval_ns = MS(300),
                                               .max_elapsed_time_ns = MS(1000),
                                               .multiplier = 1.5,
                                               .randomization_factor = 0.5};

static void test_pauses_grow_to_the_maximum(void **state)
{
    (void)state;
    struct retry_settings s = settings;
    s.max_elapsed_time_ns = 0;
    const uint64_t middle[] = {MS(100), MS(150), MS(225), MS(300), MS(300), MS(300)};
    const double random[] = {0.5, 0, 0.999999};
    const double factor[] = {1, 0.5, 1.5};
    for (size_t k = 0; k < ARRAY_SIZE(random); k++) {
        struct backoff b;
        backoff_init(&b, &s, 7);
        for (size_t i = 0; i < ARRAY_SIZE(middle); i++) {
            uint64_t pause_ns = 0;
            assert_true(backoff_next(&b, &s, UINT64_MAX / 2, 0, random[k], &pause_ns));
            double want = (double)middle[i] * factor[k];
            assert_true((double)pause_ns > want - 1000 && (double)pause_ns < want + 1000);
        }
    }
}

/* The next attempt may be at most max_elapsed_time after the first; else it is given up at once,
 * without the pause. */
static void test_gives_up_at_once(void **state)
{
    (void)state;
    const struct {
        int64_t elapsed_ns;
        uint32_t retry_after_ms;
        bool again;
    } cases[] = {
        {0, 0, true},         {MS(900), 0, true},    {MS(900) + 1, 0, false},
        {MS(2000), 0, false}, {0, 1000, true},       {0, 1001, false},
        {MS(500), 500, true}, {MS(500), 501, false}, {MS(500), 20, true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct backoff b;
        uint64_t pause_ns;
        backoff_init(&b, &settings, 1000);
        assert_int_equal(backoff_next(&b, &settings, 1000 + (uint64_t)cases[i].elapsed_ns,
                                      cases[i].retry_after_ms, 0.5, &pause_ns),
                         cases[i].again);
    }
}

static void test_server_wish(void **state)
{
    (void)state;
    struct retry_settings s = settings;
    s.max_elapsed_time_ns = 0;
    struct backoff b;
    uint64_t pause_ns;
    backoff_init(&b, &s, 0);
    assert_true(backoff_next(&b, &s, 0, 2000, 0.5, &pause_ns));
    assert_int_equal(pause_ns, MS(2000)); /* longer than the back-off and than max_interval */
    assert_true(backoff_next(&b, &s, 0, 10, 0.5, &pause_ns));
    assert_int_equal(pause_ns, MS(150)); /* shorter: the back-off, which has grown meanwhile */
    assert_true(backoff_next(&b, &s, 0, UINT32_MAX, 0.5, &pause_ns));
    assert_int_equal(pause_ns, (uint64_t)UINT32_MAX * NS_PER_MS);
}

static void test_never_spins(void **state)
{
    (void)state;
    struct retry_settings s = {.enabled = true, .multiplier = 0};
    struct backoff b;
    uint64_t pause_ns;
    backoff_init(&b, &s, 0);
    for (int i = 0; i < 3; i++) {
        assert_true(backoff_next(&b, &s, 0, 0, 0.5, &pause_ns));
        assert_int_equal(pause_ns, MS(1));
    }
}

static void test_random_spreads(void **state)
{
    (void)state;
    unsigned low = 0, n = 20000;
    for (unsigned i = 0; i < n; i++) {
        double x = backoff_random();
        assert_true(x >= 0 && x < 1);
        low += x < 0.25;
    }
    assert_in_range(low, n / 5, n * 3 / 10);
}

static void test_settings_check(void **state)
{
    (void)state;
    const struct {
        const char *path; /* NULL = good */
        struct exporter_settings s;
        struct queue_settings q;
    } cases[] = {
        {NULL, {.retry = settings}, {1, 1, 0, false, false}},
        {NULL, {.timeout_ns = MS(5), .retry = {.enabled = true}}, {1, 1, 0, false, false}},
        {NULL,
         {.retry = {.enabled = false, .multiplier = -1, .max_elapsed_time_ns = -1}},
         {1, 1, 0, false, false}},
        {"timeout", {.timeout_ns = -1}, {1, 1, 0, false, false}},
        {"sending_queue::num_consumers", {.timeout_ns = 0}, {0, 1, 0, false, false}},
        {"sending_queue::queue_size", {.timeout_ns = 0}, {1, -3, 0, false, false}},
        {"retry_on_failure::initial_interval",
         {.retry = {.enabled = true, .initial_interval_ns = -1}},
         {1, 1, 0, false, false}},
        {"retry_on_failure::max_interval",
         {.retry = {.enabled = true, .max_interval_ns = -1}},
         {1, 1, 0, false, false}},
        {"retry_on_failure::randomization_factor",
         {.retry = {.enabled = true, .randomization_factor = 1.1}},
         {1, 1, 0, false, false}},
        {"retry_on_failure::multiplier",
         {.retry = {.enabled = true, .multiplier = -0.1}},
         {1, 1, 0, false, false}},
        {"retry_on_failure::max_elapsed_time",
         {.retry = {.enabled = true, .max_elapsed_time_ns = -1}},
         {1, 1, 0, false, false}},
        {"retry_on_failure::max_elapsed_time",
         {.retry = {.enabled = true, .initial_interval_ns = MS(5), .max_elapsed_time_ns = MS(4)}},
         {1, 1, 0, false, false}},
        {"retry_on_failure::max_elapsed_time",
         {.retry = {.enabled = true, .max_interval_ns = MS(5), .max_elapsed_time_ns = MS(4)}},
         {1, 1, 0, false, false}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct exporter_settings s = cases[i].s;
        struct queue_settings q = cases[i].q;
        struct err e = {0};
        s.queue = &q;
        assert_int_equal(exporter_settings_check(&s, &e), cases[i].path ? -EINVAL : 0);
        assert_string_equal(e.path, cases[i].path ? cases[i].path : "");
        s.queue = NULL; /* switched off: its values do not matter */
        if (cases[i].path && strncmp(cases[i].path, "sending_queue", 13) == 0)
            assert_int_equal(exporter_settings_check(&s, &e), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pauses_grow_to_the_maximum),
        cmocka_unit_test(test_gives_up_at_once),
        cmocka_unit_test(test_server_wish),
        cmocka_unit_test(test_never_spins),
        cmocka_unit_test(test_random_spreads),
        cmocka_unit_test(test_settings_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
