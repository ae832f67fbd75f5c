/* Buffers, arena, errors. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/base/err.h"

static void test_append_and_limit(void **state)
{
    (void)state;
    size_t before = mem_used();
    struct buf *b = buf_new(8);
    assert_int_equal(buf_append(b, "12345", 5), 0);
    assert_int_equal(buf_append(b, "6789", 4), -EMSGSIZE);
    assert_int_equal(b->len, 5);
    assert_int_equal(buf_append(b, "678", 3), 0);
    assert_true(mem_used() > before);
    buf_unref(b);
    assert_int_equal(mem_used(), before);
}

static void test_refs(void **state)
{
    (void)state;
    struct buf *b = buf_new(0);
    assert_ptr_equal(buf_ref(b), b);
    assert_null(buf_unref(b));
    assert_int_equal(buf_printf(b, "%0300d", 7), 0);
    assert_int_equal(b->len, 300);
    assert_int_equal(strlen(buf_str(b)), 300);
    buf_unref(b);
    assert_null(buf_unref(NULL));
}

static void test_gap(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *b = buf_new(0);
    buf_append_str(b, "ad");
    assert_int_equal(buf_insert_gap(b, 1, 2), 0);
    memcpy(b->data + 1, "bc", 2);
    assert_string_equal(buf_str(b), "abcd");
}

static void test_arena(void **state)
{
    (void)state;
    size_t before = mem_used();
    struct arena *a = arena_new(64);
    for (int i = 1; i < 500; i++) {
        char *p = arena_printf(a, "%0*d", i, i);
        assert_int_equal(strlen(p), i);
        assert_int_equal((uintptr_t)p % 16, 0);
    }
    arena_reset(a);
    assert_string_equal(arena_strdup(a, "x"), "x");
    arena_free(a);
    assert_int_equal(mem_used(), before);
}

static void test_err(void **state)
{
    (void)state;
    struct err e;
    assert_int_equal(err_at(&e, "a::b", "bad %d", 1), -EINVAL);
    err_prefix(&e, "why: ");
    assert_string_equal(e.text, "why: bad 1");
    assert_string_equal(e.path, "a::b");
    assert_int_equal(err_set(NULL, -EIO, "x"), -EIO);
}

/* A file of more than one read, up to a limit and past it. */
static void test_append_fd(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *in = buf_new(0);
    for (int i = 0; i < 3000; i++)
        buf_printf(in, "%d,", i);
    char path[] = "/tmp/motel-buf-XXXXXX";
    _cleanup_close_ int fd = mkstemp(path);
    unlink(path);
    assert_int_equal(write(fd, in->data, in->len), in->len);
    for (int less = 0; less < 2; less++) {
        _cleanup_buf_ struct buf *out = buf_new(in->len - (size_t)less);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        assert_int_equal(buf_append_fd(out, fd), less ? -EMSGSIZE : 0);
        assert_true(less || bytes_eq(buf_bytes(out), buf_bytes(in)));
    }
    assert_int_equal(buf_append_fd(in, -1), -EBADF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append_and_limit),
        cmocka_unit_test(test_refs),
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_err),
        cmocka_unit_test(test_append_fd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
