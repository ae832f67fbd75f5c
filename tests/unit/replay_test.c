/* The target of a replay, its pipeline, its window and its state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>

#include "agent/gym/embed.h"
#include "agent/gym/replay_parts.h"
#include "rig.h"

/* ---- targets ---- */

static void test_targets(void **state)
{
    (void)state;
    static const struct {
        const char *to, *protocol;
        int kind; /* -1 = refused */
        const char *place;
        bool json;
    } cases[] = {
        {"http://h:4318", NULL, TARGET_HTTP, "http://h:4318"},
        {"http://h:4317", NULL, TARGET_GRPC, "http://h:4317"},
        {"https://h:4317/", NULL, TARGET_GRPC, "https://h:4317/"},
        {"http://h:14317", NULL, TARGET_HTTP, "http://h:14317"},
        {"http://4317", NULL, TARGET_HTTP, "http://4317"},
        {"http://h:4317/base", "http/json", TARGET_HTTP, "http://h:4317/base", true},
        {"http://h:4318", "grpc", TARGET_GRPC, "http://h:4318"},
        {"http://h:4318", "GRPC", -1},
        {"ftp://h", NULL, -1},
        {"h:4317", NULL, -1},
        {"-", NULL, TARGET_STDOUT, "-"},
        {"-", "grpc", -1},
        {"out.jsonl", NULL, TARGET_FILE, "out.jsonl"},
        {"file:h:4317", NULL, TARGET_FILE, "h:4317"},
        {"dir/a:1", NULL, TARGET_FILE, "dir/a:1"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct replay_target t;
        struct err e = {0};
        const struct replay_command c = {.to = cases[i].to, .protocol = cases[i].protocol};
        const int r = replay_target_find(&c, &t, &e);
        if ((r < 0) != (cases[i].kind < 0))
            fail_msg("%s: %d %s", cases[i].to, r, e.text);
        if (r < 0)
            continue;
        assert_int_equal(t.kind, cases[i].kind);
        assert_string_equal(t.place, cases[i].place);
        assert_int_equal(t.json, cases[i].json);
    }
}

/* What the configuration of each target says is taken by the exporters. */
static void test_pipelines(void **state)
{
    (void)state;
    static const char *const headers[] = {"a=b", "c={\"x\": [}"}, *const attributes[] = {"k=a\"$b"};
    static const struct replay_command commands[] = {
        {.to = "http://h:1", .headers = headers, .nheaders = 2, .compression = "zstd"},
        {.to = "http://h:4317", .attributes = attributes, .nattributes = 1},
        {.to = "http://h:1", .protocol = "http/json"},
        {.to = "/tmp/a: b, {c}"},
        {.to = "-"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        struct replay_target t;
        struct err e = {0};
        struct cfg_errors errs = {0};
        struct buf *text = buf_new(0);
        assert_int_equal(replay_target_find(&commands[i], &t, &e), 0);
        assert_int_equal(replay_config(&commands[i], &t, text, &e), 0);
        struct config *c = config_load_text("test", buf_str(text), &errs);
        if (!c)
            fail_msg("%s", buf_str(text));
        bool exact;
        const struct cfg_value *v = cfg_find(c->root, "exporters::otlp_http::headers::c", &exact);
        if (commands[i].nheaders)
            assert_string_equal(v->text, "{\"x\": [}");
        config_free(c);
        buf_unref(text);
    }
    assert_null(replay_source_made());
}

/* ---- the window ---- */

static volatile sig_atomic_t stop;

static struct batch *a_batch(void)
{
    struct buf *b = buf_new(0);
    buf_append(b, "\x0a\x06\x12\x04\x12\x02\x0a\x00", 8); /* an entry, a scope, a span */
    return batch_new(SIGNAL_TRACES, &b, 1, 1);
}

static void answer(struct sink *s, enum verdict v)
{
    const struct outcome out = {.message = "told so"};
    ack_done(s->waiting[--s->nwaiting], v, &out);
}

struct made {
    struct component source;
    struct sink sink;
    struct fanout *fanout;
    struct window window;
};

static void make(struct made *m, enum verdict v, bool local)
{
    *m = (struct made){.source = {.type = &replay_source}};
    pthread_mutex_init(&m->sink.lock, NULL);
    pthread_cond_init(&m->sink.offered, NULL);
    m->sink.base.type = &sink_type;
    m->sink.verdict = v;
    m->fanout = fanout_new(1);
    fanout_set(m->fanout, 0, &m->sink.base, NULL, 1);
    m->source.next[SIGNAL_TRACES] = m->fanout;
    assert_int_equal(window_init(&m->window, &m->source, "target", local, 2), 0);
}

static void unmake(struct made *m)
{
    for (unsigned i = 0; i < m->sink.ntaken; i++)
        batch_unref(m->sink.taken[i]);
    window_done(&m->window);
    fanout_free(m->fanout);
}

static void send_and_mark(struct made *m, size_t file, uint64_t offset)
{
    struct replay_place p = {.offset = offset};
    assert_int_equal(window_send(&m->window, a_batch(), &stop), 0);
    assert_int_equal(window_mark(&m->window, file, &p), 0);
}

static void test_safe_places(void **state)
{
    (void)state;
    struct made m;
    make(&m, VERDICT_PENDING, false);
    send_and_mark(&m, 0, 100);
    send_and_mark(&m, 0, 200);
    send_and_mark(&m, 1, 50);
    assert_int_equal(m.window.safe[0].offset, 0);
    answer(&m.sink, VERDICT_OK); /* the last one first: what is before it is still open */
    assert_int_equal(m.window.safe[1].offset, 0);
    answer(&m.sink, VERDICT_OK);
    assert_int_equal(m.window.safe[0].offset, 0);
    answer(&m.sink, VERDICT_OK);
    assert_int_equal(m.window.safe[0].offset, 200);
    assert_int_equal(m.window.safe[1].offset, 50);
    assert_true(window_settle(&m.window, 0, &stop));
    assert_int_equal(m.window.delivered[SIGNAL_TRACES], 3);
    unmake(&m);
}

/* A refusal is for good when something that came after it was taken. */
static void test_refusals(void **state)
{
    (void)state;
    struct made m;
    make(&m, VERDICT_REJECT, false);
    send_and_mark(&m, 0, 100);
    assert_int_equal(m.window.safe[0].offset, 0);
    sink_set(&m.sink, VERDICT_OK);
    send_and_mark(&m, 0, 200);
    assert_int_equal(m.window.safe[0].offset, 200);
    assert_int_equal(m.window.refused[SIGNAL_TRACES], 1);
    assert_string_equal(m.window.reason, "sink refuses");
    sink_set(&m.sink, VERDICT_REJECT);
    for (int i = 0; i < 20; i++)
        send_and_mark(&m, 0, 300);
    assert_true(m.window.stopped);
    assert_int_equal(window_send(&m.window, a_batch(), &stop), -ECANCELED);
    assert_int_equal(m.window.safe[0].offset, 200);
    unmake(&m);
}

/* RETRY from a backend's exporter comes after many attempts: nothing goes on behind it. */
static void test_out_of_reach(void **state)
{
    (void)state;
    struct made m;
    make(&m, VERDICT_PENDING, false);
    send_and_mark(&m, 0, 100);
    answer(&m.sink, VERDICT_RETRY);
    assert_true(m.window.stopped);
    assert_int_equal(m.window.failed[SIGNAL_TRACES], 1);
    assert_int_equal(m.window.safe[0].offset, 0);
    unmake(&m);
}

/* What is under way beside a request that was given up is not waited for. */
static void test_out_of_reach_at_the_end(void **state)
{
    (void)state;
    struct made m;
    make(&m, VERDICT_PENDING, false);
    send_and_mark(&m, 0, 100);
    send_and_mark(&m, 0, 200);
    answer(&m.sink, VERDICT_RETRY);
    assert_false(window_settle(&m.window, UINT64_MAX, &stop));
    answer(&m.sink, VERDICT_RETRY);
    assert_true(window_settle(&m.window, UINT64_MAX, &stop));
    assert_int_equal(m.window.failed[SIGNAL_TRACES], 2);
    unmake(&m);
}

/* A file refuses while the disk is full: the same batch is offered again. */
static void test_local_refusal_passes(void **state)
{
    (void)state;
    struct made m;
    make(&m, VERDICT_OK, true);
    m.sink.refusals = 1;
    send_and_mark(&m, 0, 100);
    assert_int_equal(m.sink.offers, 2);
    assert_int_equal(m.window.delivered[SIGNAL_TRACES], 1);
    assert_int_equal(m.window.safe[0].offset, 100);
    unmake(&m);
}

/* ---- the state ---- */

static char folder[] = "/tmp/motel-replay-XXXXXX";

static void put_file(const char *name, const char *text, char ret_path[64])
{
    snprintf(ret_path, 64, "%s/%s", folder, name);
    FILE *f = fopen(ret_path, "w");
    fputs(text, f);
    fclose(f);
}

static struct replay_place find(const char *state, const char *file, struct replay_state **ret,
                                size_t *ret_entry)
{
    struct err e = {0};
    struct replay_place p;
    const int fd = open(file, O_RDONLY);
    if (replay_state_open(state, "http://x", ret, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(replay_state_find(*ret, file, fd, ret_entry, &p), 0);
    close(fd);
    return p;
}

static void test_state(void **state)
{
    (void)state;
    char file[64], path[64];
    struct replay_state *s;
    struct err e = {0};
    size_t entry;
    struct console_range held[] = {{5, 6}, {20, 1}};
    put_file("a.log", "0123456789", file);
    snprintf(path, sizeof(path), "%s/state", folder);
    struct replay_place p = find(path, file, &s, &entry);
    assert_int_equal(p.offset, 0);
    assert_int_equal(replay_state_note(s, entry, &(struct replay_place){9, held, 2}), 0);
    assert_int_equal(replay_state_write(s, &e), 0);
    replay_state_free(s);

    put_file("a.log", "0123456789 and more", file); /* it has grown */
    p = find(path, file, &s, &entry);
    assert_int_equal(p.offset, 9);
    assert_int_equal(p.nheld, 2);
    assert_int_equal(p.held[1].offset, 20);
    replay_place_done(&p);
    replay_state_free(s);

    char moved[64];
    snprintf(moved, sizeof(moved), "%s/b.log", folder);
    rename(file, moved);
    p = find(path, moved, &s, &entry);
    assert_int_equal(p.offset, 9);
    replay_place_done(&p);
    replay_state_free(s);

    put_file("b.log", "another one", moved); /* the same name and inode, but not what it was */
    p = find(path, moved, &s, &entry);
    assert_int_equal(p.offset, 0);
    replay_state_free(s);
    assert_int_equal(replay_state_open(path, "http://y", &s, &e), -EINVAL);
    unlink(moved);
    unlink(path);
}

static void test_grouped(void **state)
{
    (void)state;
    char text[32];
    assert_string_equal(grouped(0, text), "0");
    assert_string_equal(grouped(999, text), "999");
    assert_string_equal(grouped(1000, text), "1,000");
    assert_string_equal(grouped(1234567, text), "1,234,567");
    assert_string_equal(grouped(UINT64_MAX, text), "18,446,744,073,709,551,615");
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_pipelines),
        cmocka_unit_test(test_safe_places),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_out_of_reach),
        cmocka_unit_test(test_out_of_reach_at_the_end),
        cmocka_unit_test(test_local_refusal_passes),
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_grouped),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
