/* Every allocation of check, rewrite, split and status fails once: an error, no leak, no crash. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/rewrite.h"
#include "proto/status.h"
#include "tests/unit/oom.h"
#include "tests/unit/wire_text.h"

static const char request[] =
    "0a{0a{1001}12{0a{0a{'s'}}12{2a{'a'}}12{2a{'b'}}12{2a{'c'}}1a{'u'}}1a{'v'}}";
static const char odd_request[] = "0a{0a{1001}0a{1002}12{12{2a{ff}}}}";

static int check(struct batch *in, struct buf *out)
{
    (void)in;
    struct batch *b;
    int r = batch_from_wire(SIGNAL_TRACES, buf_ref(out), &b, NULL);
    if (r == 0)
        batch_unref(b);
    return r;
}

static enum edit change(void *ctx, struct bytes resource, struct bytes scope, struct bytes record,
                        struct buf *out)
{
    (void)ctx, (void)resource, (void)scope, (void)record;
    return wire_put_str(out, 5, "changed") == 0 ? EDIT_REPLACE : EDIT_ERROR;
}

static int rewrite(struct batch *in, struct buf *out)
{
    (void)out;
    struct otlp_rewriter rw = {.record = change};
    struct batch *b;
    int r = otlp_rewrite(&rw, in, &b);
    if (r == 0)
        batch_unref(b);
    return r;
}

static int split(struct batch *in, struct buf *out)
{
    (void)out;
    struct batch **pieces = NULL;
    size_t n = 0;
    int r = otlp_split_all(in, 1, 0, &pieces, &n);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++)
        batch_unref(pieces[i]);
    free(pieces);
    return 0;
}

static int head_and_tail(struct batch *in, struct buf *out)
{
    (void)out;
    struct batch *head, *tail;
    int r = otlp_split(in, 2, &head, &tail);
    if (r < 0)
        return r;
    batch_unref(head);
    batch_unref(tail);
    return 0;
}

static int status(struct batch *in, struct buf *out)
{
    (void)in, (void)out;
    _cleanup_buf_ struct buf *b = buf_new(0);
    struct rpc_status st = {.code = 14, .message = "m", .has_retry = true, .retry_after_ms = 1};
    struct partial_success ps = {.rejected = 1, .message = "m"};
    int r = b ? status_write(&st, true, b) : -ENOMEM;
    if (r == 0)
        r = status_read_json(buf_bytes(b), &st);
    if (r < 0)
        return r;
    buf_truncate(b, 0);
    r = response_write(SIGNAL_TRACES, &ps, true, b);
    return r < 0 ? r : response_read(SIGNAL_TRACES, buf_bytes(b), true, &ps);
}

static const struct {
    const char *what;
    int (*run)(struct batch *in, struct buf *out);
    const char *wire;
} cases[] = {
    {"check", check, request},
    {"repair", check, odd_request},
    {"rewrite", rewrite, request},
    {"split", split, request},
    {"head and tail", head_and_tail, request},
    {"status", status, request},
};

static void test_each_allocation(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_buf_ struct buf *wire = wire_text(cases[i].wire);
        struct batch *in;
        assert_int_equal(batch_from_wire(SIGNAL_TRACES, buf_ref(wire), &in, NULL), 0);
        size_t before = mem_used();
        unsigned n = 0;
        int r;
        do {
            fail_in = ++n;
            r = cases[i].run(in, wire);
            bool all_done = fail_in > 0;
            fail_in = 0;
            if (r != (all_done ? 0 : -ENOMEM))
                fail_msg("%s, allocation %u: %d", cases[i].what, n, r);
            assert_int_equal(mem_used(), before);
        } while (r < 0);
        assert_true(n > 1);
        batch_unref(in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
