/* Limits of servers: what holds when nothing is said, and the names of what is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "agent/net/limits.h"

#define S_NS 1000000000ll

static void test_values(void **state)
{
    (void)state;
    struct server_limits l = server_limits_get();
    assert_int_equal(l.max_connections, 0);
    assert_int_equal(l.max_header_bytes, 16384);
    assert_int_equal(l.client_timeout_ns, 60 * S_NS);
    assert_int_equal(l.request_timeout_ns, 600 * S_NS);
    assert_int_equal(l.stream_reset_burst, 10000);
    assert_int_equal(l.stream_reset_rate, 500);
    const struct server_limits other = {1, 2, 3, 4, 5, 6}, some = {.request_timeout_ns = 7};
    server_limits_set(&other);
    l = server_limits_get();
    assert_memory_equal(&l, &other, sizeof(l));
    server_limits_set(&some);
    l = server_limits_get();
    assert_int_equal(l.request_timeout_ns, 7);
    assert_int_equal(l.max_header_bytes, 16384);
}

static void test_counts(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SERVER_EVENTS; i++) {
        const enum server_event e = (enum server_event)i;
        for (unsigned k = 0; k < i; k++)
            server_count(e);
        assert_int_equal(server_counted(e), i);
        assert_true(server_event_name(e)[0] != 0);
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(server_event_name(e), server_event_name((enum server_event)k));
    }
    assert_true(server_event_refuses(REFUSED_LIMIT) && server_event_refuses(REFUSED_DESCRIPTORS));
    assert_false(server_event_refuses(CLOSED_HEADER_TIMEOUT) || server_event_refuses(CLOSED_FLOOD));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
