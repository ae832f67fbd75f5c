/* Every allocation of our own code for TLS of servers fails once: an error, no leak, and the old
 * certificates stay in use. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "agent/base/buf.h"
#include "agent/net/tls_session.h"

#include "tests/unit/oom.h"
#include "tests/unit/tls_certs.h"

static int load(const struct folder *f, int64_t reload_interval_ns, struct tls_server **ret)
{
    struct err e;
    const struct tls_server_settings s = {.cert_file = f->cert,
                                          .key_file = f->key,
                                          .client_ca_file = f->cert,
                                          .reload_interval_ns = reload_interval_ns};
    return tls_server_new(&s, ret, &e);
}

static void test_start(void **state)
{
    (void)state;
    struct folder f;
    struct tls_server *t = NULL;
    unsigned n = 1;
    folder_new(&f);
    const size_t before = mem_used();
    for (;; n++) {
        fail_in = n;
        int r = load(&f, 0, &t);
        bool reached = fail_in == 0;
        fail_in = 0;
        if (!reached) {
            assert_int_equal(r, 0);
            break;
        }
        assert_int_equal(r, -ENOMEM);
        assert_null(t);
        assert_int_equal(mem_used(), before);
    }
    assert_true(n > 4);
    tls_server_unref(t);
    assert_int_equal(mem_used(), before);
    folder_free(&f);
}

/* A session while certificates that were replaced are to be read: it may fail itself, but the next
 * one is good, and then all is as it would have been. */
static void test_sessions(void **state)
{
    (void)state;
    struct folder f;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    folder_new(&f);
    for (unsigned n = 1, reached = 1; reached; n++) {
        struct tls_server *t = NULL;
        char reason[200];
        assert_int_equal(load(&f, 1, &t), 0);
        write_pair("next", f.cert, f.key);
        fail_in = n;
        struct tls_session *s = tls_session_new(t, fds[0]);
        reached = fail_in == 0;
        fail_in = 0;
        if (!s)
            s = tls_session_new(t, fds[0]);
        assert_non_null(s);
        assert_int_equal(tls_session_shake(s, reason, sizeof(reason)), -EAGAIN);
        tls_session_free(s);
        tls_server_unref(t);
        assert_true(n < 100);
    }
    close(fds[0]);
    close(fds[1]);
    folder_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_start),
                                       cmocka_unit_test(test_sessions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
