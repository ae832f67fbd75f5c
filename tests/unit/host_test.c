/* Timers, self metrics and the registry of shared things. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fake_pipeline.h"

static int setup(void **state)
{
    *state = host_new(NULL);
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    host_free(*state);
    return 0;
}

/* ---- timers ---- */

struct log_of_fires {
    pthread_mutex_t lock;
    unsigned n, ids[64];
};
struct ticker {
    struct log_of_fires *log;
    struct timer *timer;
    unsigned id;
    atomic_uint fired;
    unsigned rearm; /* times */
};

static void tick(void *ctx)
{
    struct ticker *t = ctx;
    pthread_mutex_lock(&t->log->lock);
    t->log->ids[t->log->n++ % 64] = t->id;
    pthread_mutex_unlock(&t->log->lock);
    if (atomic_fetch_add(&t->fired, 1) < t->rearm)
        timer_arm(t->timer, clock_now_ns() + NS_PER_MS);
}

static void test_timers_fire_in_order(void **state)
{
    static const unsigned order[] = {5, 2, 7, 0, 3, 6, 1, 4};
    struct log_of_fires log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct ticker tickers[8];
    uint64_t base_ns = clock_now_ns() + 50 * NS_PER_MS;
    for (unsigned i = 0; i < 8; i++) {
        tickers[i] = (struct ticker){.log = &log, .id = i};
        tickers[i].timer = timer_new(*state, tick, &tickers[i]);
    }
    for (unsigned i = 0; i < 8; i++) /* armed twice: the second time counts */
        timer_arm(tickers[order[i]].timer, base_ns + NS_PER_S);
    for (unsigned i = 0; i < 8; i++)
        timer_arm(tickers[order[i]].timer, base_ns + order[i] * NS_PER_MS);
    timer_disarm(tickers[3].timer);
    assert_soon(atomic_load(&tickers[7].fired) == 1);
    for (unsigned i = 0; i < 8; i++)
        timer_free(tickers[i].timer);
    static const unsigned want[] = {0, 1, 2, 4, 5, 6, 7};
    assert_int_equal(log.n, 7);
    assert_memory_equal(log.ids, want, sizeof(want));
}

static void test_timer_is_not_early_and_rearms_itself(void **state)
{
    struct log_of_fires log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct ticker t = {.log = &log, .rearm = 4};
    t.timer = timer_new(*state, tick, &t);
    uint64_t start_ns = clock_now_ns();
    timer_arm(t.timer, start_ns + 20 * NS_PER_MS);
    assert_soon(atomic_load(&t.fired) == 5);
    assert_true(clock_now_ns() - start_ns >= 24 * NS_PER_MS);
    timer_arm(t.timer, 0); /* the past: now */
    assert_soon(atomic_load(&t.fired) == 6);
    timer_free(t.timer);
}

struct slow {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool inside, leave, gone;
};

static void slow_fire(void *ctx)
{
    struct slow *s = ctx;
    pthread_mutex_lock(&s->lock);
    s->inside = true;
    pthread_cond_broadcast(&s->changed);
    while (!s->leave)
        pthread_cond_wait(&s->changed, &s->lock);
    s->gone = true;
    pthread_mutex_unlock(&s->lock);
}

static void *let_go(void *ctx)
{
    struct slow *s = ctx;
    pthread_mutex_lock(&s->lock);
    s->leave = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void test_free_waits_for_the_callback(void **state)
{
    struct slow s = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct timer *t = timer_new(*state, slow_fire, &s);
    pthread_t thread;
    timer_arm(t, 0);
    pthread_mutex_lock(&s.lock);
    while (!s.inside)
        pthread_cond_wait(&s.changed, &s.lock);
    pthread_mutex_unlock(&s.lock);
    timer_disarm(t); /* does not wait */
    pthread_create(&thread, NULL, let_go, &s);
    timer_free(t);
    pthread_mutex_lock(&s.lock);
    assert_true(s.gone);
    pthread_mutex_unlock(&s.lock);
    pthread_join(thread, NULL);
    assert_null(timer_free(NULL));
}

static void test_many_timers(void **state)
{
    enum { N = 500 };
    struct log_of_fires log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct ticker *t = calloc(N, sizeof(*t));
    uint64_t now_ns = clock_now_ns();
    for (unsigned i = 0; i < N; i++) {
        t[i].log = &log;
        t[i].timer = timer_new(*state, tick, &t[i]);
        timer_arm(t[i].timer, now_ns + (i * 7919 % N) * 20000ull);
    }
    for (unsigned i = 0; i < N; i += 5)
        t[i].timer = timer_free(t[i].timer);
    for (unsigned i = 0; i < N; i++)
        if (t[i].timer)
            assert_soon(atomic_load(&t[i].fired) == 1);
    for (unsigned i = 0; i < N; i++)
        timer_free(t[i].timer);
    free(t);
}

/* ---- metrics ---- */

static char *page(struct host *h)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    assert_int_equal(metrics_render(h, b), 0);
    return strdup(buf_str(b));
}

static int64_t read_seven(void *ctx)
{
    return *(int64_t *)ctx + 7;
}

static void test_page(void **state)
{
    struct host *h = *state;
    int64_t old = 0, new = 100;
    struct metric *b = metric_counter(h, "m_b", "Second.", "x=\"2\"");
    struct metric *b1 = metric_counter(h, "m_b", "Second.", "x=\"1\"");
    struct metric *a = metric_gauge(h, "m_a", "First.", "");
    assert_ptr_equal(metric_counter(h, "m_b", "Second.", "x=\"2\""), b);
    assert_ptr_not_equal(b, b1);
    metric_add(b, 3);
    metric_add(b, 4);
    metric_set(a, -5);
    metric_observe(h, "m_c", "Third.", "q=\"1\"", read_seven, &old);
    metric_observe(h, "m_c", "Third.", "q=\"1\"", read_seven, &new);
    assert_int_equal(host_set_resource(
                         h, (const char *const[]){"service.name", "a\"b\\c\nd", "9x-y", "z", NULL}),
                     0);
    _cleanup_free_ char *text = page(h);
    const char *want = "# HELP m_a First.\n# TYPE m_a gauge\nm_a -5\n"
                       "# HELP m_b Second.\n# TYPE m_b counter\nm_b{x=\"1\"} 0\nm_b{x=\"2\"} 7\n"
                       "# HELP m_c Third.\n# TYPE m_c gauge\nm_c{q=\"1\"} 107\n"
                       "# HELP otelcol_process_cpu_seconds ";
    assert_int_equal(strncmp(text, want, strlen(want)), 0);
    assert_non_null(strstr(text, "\ntarget_info{service_name=\"a\\\"b\\\\c\\nd\",_x_y=\"z\"} 1\n"));
    assert_non_null(strstr(text, "\notelcol_process_uptime "));
    const char *rss = strstr(text, "\notelcol_process_memory_rss ");
    assert_true(rss && strtod(rss + 28, NULL) > 1e5);
    metric_unobserve(h, &new); /* the old graph goes on being read until it has gone, too */
    _cleanup_free_ char *later = page(h);
    assert_non_null(strstr(later, "m_c{q=\"1\"} 7\n"));
    metric_unobserve(h, &old);
    _cleanup_free_ char *last = page(h);
    assert_null(strstr(last, "m_c"));
}

static void test_receiver_metrics(void **state)
{
    struct host *h = *state;
    struct receiver_metrics m, again;
    receiver_metrics_get(h, "otlp/x", "grpc", SIGNAL_METRICS, &m);
    receiver_metrics_get(h, "otlp/x", "grpc", SIGNAL_METRICS, &again);
    assert_ptr_equal(m.refused, again.refused);
    metric_add(m.accepted, 1);
    metric_add(m.refused, 2);
    metric_add(m.failed, 3);
    _cleanup_free_ char *text = page(h);
    assert_non_null(strstr(
        text,
        "\notelcol_receiver_accepted_metric_points{receiver=\"otlp/x\",transport=\"grpc\"} 1\n"));
    assert_non_null(strstr(
        text,
        "\notelcol_receiver_refused_metric_points{receiver=\"otlp/x\",transport=\"grpc\"} 2\n"));
    assert_non_null(strstr(
        text,
        "\notelcol_receiver_failed_metric_points{receiver=\"otlp/x\",transport=\"grpc\"} 3\n"));
}

static void test_labels(void **state)
{
    (void)state;
    char labels[METRIC_LABELS_MAX] = "", long_value[2 * METRIC_LABELS_MAX];
    metric_label(labels, "a", "x\"\\\ny");
    metric_label(labels, "b", "");
    assert_string_equal(labels, "a=\"x\\\"\\\\\\ny\",b=\"\"");
    for (unsigned fill = 0; fill < 2; fill++) {
        memset(long_value, fill ? '"' : 'z', sizeof(long_value));
        long_value[sizeof(long_value) - 1] = '\0';
        metric_label(labels, "c", long_value);
        size_t n = strlen(labels);
        assert_in_range(n, METRIC_LABELS_MAX - 4, METRIC_LABELS_MAX - 1);
        assert_int_equal(labels[n - 1], '"');
        metric_label(labels, "d", "no room");
        assert_int_equal(strlen(labels), n);
        *labels = '\0';
    }
}

static void *count(void *ctx)
{
    for (unsigned i = 0; i < 10000; i++)
        metric_add(metric_counter(ctx, "m_threads", "x", i % 2 ? "a=\"1\"" : "a=\"0\""), 1);
    return NULL;
}

static void test_metrics_from_threads(void **state)
{
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, count, *state);
    free(page(*state));
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(metric_value(metric_counter(*state, "m_threads", "x", "a=\"1\"")), 20000);
}

/* ---- shared things ---- */

struct door {
    int opened, closed, fail;
};

static int door_open(void *ctx, void **ret, struct err *reterr)
{
    struct door *d = ctx;
    if (d->fail)
        return err_set(reterr, d->fail, "door is stuck");
    d->opened++;
    *ret = d;
    return 0;
}

static void door_close(void *thing)
{
    ((struct door *)thing)->closed++;
}

static void test_shared(void **state)
{
    struct host *h = *state;
    struct door a = {0}, b = {0}, stuck = {.fail = -EADDRINUSE};
    struct err e;
    struct shared *s1 = host_share(h, "listen:a", door_open, &a, door_close, &e);
    struct shared *s2 = host_share(h, "listen:a", door_open, &b, door_close, &e);
    struct shared *s3 = host_share(h, "listen:b", door_open, &b, door_close, &e);
    assert_ptr_equal(s1, s2);
    assert_ptr_equal(s2->thing, &a);
    assert_ptr_equal(s3->thing, &b);
    assert_null(host_share(h, "listen:c", door_open, &stuck, door_close, &e));
    assert_string_equal(e.text, "door is stuck");
    assert_null(host_unshare(h, s1));
    assert_int_equal(a.closed, 0);
    host_unshare(h, s2);
    assert_int_equal(a.closed, 1);
    s1 = host_share(h, "listen:a", door_open, &a, door_close, &e);
    assert_int_equal(a.opened, 2);
    host_unshare(h, s1);
    host_unshare(h, s3);
    assert_int_equal(b.opened + b.closed, 2);
    assert_null(host_unshare(h, NULL));
}

static void test_settings(void **state)
{
    struct host *h = *state;
    const struct motel_settings *before = host_settings(h);
    assert_false(before->redact);
    host_set_settings(h, &(struct motel_settings){.redact = true, .file_mode = 0600});
    assert_true(host_settings(h)->redact);
    assert_int_equal(host_settings(h)->file_mode, 0600);
    assert_false(before->redact); /* who still reads the old ones may */
    assert_false(host_stopping(h));
    host_set_stopping(h, true);
    assert_true(host_stopping(h));
    assert_null(host_extension(h, "none", CAP_STORAGE));
}

#define HOST_TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOST_TEST(test_timers_fire_in_order),
        HOST_TEST(test_timer_is_not_early_and_rearms_itself),
        HOST_TEST(test_free_waits_for_the_callback),
        HOST_TEST(test_many_timers),
        HOST_TEST(test_page),
        HOST_TEST(test_receiver_metrics),
        HOST_TEST(test_labels),
        HOST_TEST(test_metrics_from_threads),
        HOST_TEST(test_shared),
        HOST_TEST(test_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
