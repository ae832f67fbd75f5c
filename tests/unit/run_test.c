/* Parts of motel run: the way of the output, the command's environment, the changes to a
 * configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "agent/base/buf.h"
#include "agent/gym/run_parts.h"
#include "agent/gym/run_wire.h"

/* ---- the pump ---- */

struct rig {
    int in, out, tee, done; /* our ends: the command's output, its reader, the pipeline */
    struct pump *pump;
};

static void open_rig(struct rig *r)
{
    int from[2], to[2], tee[2];
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(tee, O_CLOEXEC), 0);
    r->done = eventfd(0, EFD_CLOEXEC);
    r->in = from[1];
    r->out = to[0];
    r->tee = tee[0];
    r->pump = pump_start(from[0], to[1], tee[1], r->done);
    assert_non_null(r->pump);
}

static void put(const struct rig *r, const char *text, size_t len)
{
    while (len) {
        const ssize_t n = write(r->in, text, len);
        assert_true(n > 0);
        text += n;
        len -= (size_t)n;
    }
}

/* Reads exactly `len` bytes. */
static void get(int fd, struct buf *out, size_t len)
{
    assert_int_equal(buf_reserve(out, len), 0);
    while (len) {
        const ssize_t n = read(fd, buf_tail(out), len);
        assert_true(n > 0);
        buf_commit(out, (size_t)n);
        len -= (size_t)n;
    }
}

static void get_rest(int fd, struct buf *out)
{
    char some[65536];
    for (ssize_t n; (n = read(fd, some, sizeof(some))) > 0;)
        buf_append(out, some, (size_t)n);
}

static struct pump_result close_rig(struct rig *r)
{
    struct pump_result result = {0};
    eventfd_t n;
    assert_int_equal(eventfd_read(r->done, &n), 0);
    assert_true(pump_done(r->pump));
    r->pump = pump_free(r->pump, &result);
    close(r->done);
    close(r->out);
    close(r->tee);
    return result;
}

static void test_both_get_everything(void **state)
{
    (void)state;
    struct rig r;
    struct buf *out = buf_new(0), *tee = buf_new(0);
    open_rig(&r);
    for (int i = 0; i < 100; i++) {
        put(&r, "a\0b\n\xff", 5);
        get(r.out, out, 5);
    }
    close(r.in);
    get_rest(r.tee, tee);
    const struct pump_result result = close_rig(&r);
    assert_true(bytes_eq(buf_bytes(out), buf_bytes(tee)));
    assert_int_equal(out->len, 500);
    assert_int_equal(result.left_out_bytes, 0);
    assert_false(result.left_open);
    buf_unref(out);
    buf_unref(tee);
}

/* Nobody reads the tee: everything goes through, and what the tee gets is whole lines. */
static void test_a_stuck_tee(void **state)
{
    (void)state;
    enum { LINES = 120000 };
    struct rig r;
    struct buf *out = buf_new(0), *tee = buf_new(0);
    char line[128];
    size_t total = 0;
    open_rig(&r);
    for (int i = 0; i < LINES; i++) {
        const int n = snprintf(line, sizeof(line), "%06d %0*d\n", i, 60 + i % 40, 0);
        put(&r, line, (size_t)n);
        get(r.out, out, (size_t)n);
        total += (size_t)n;
    }
    assert_int_equal(out->len, total);
    assert_true(total > (size_t)9 << 20);
    /* It is read again, and so is what comes from now on. */
    get(r.tee, tee, (size_t)4 << 20);
    put(&r, "cut off\nthe last line\n", 22);
    get(r.out, out, 22);
    close(r.in);
    get_rest(r.tee, tee);
    const struct pump_result result = close_rig(&r);
    assert_true(result.left_out_bytes > (size_t)3 << 20);
    assert_in_range(result.left_out_bytes + tee->len, total + 22,
                    total + 23); /* a line was ended */
    const char *text = buf_str(tee);
    assert_string_equal(text + tee->len - 14, "the last line\n");
    int broken = 0, expected = 0;
    for (const char *l = text, *end; (end = strchr(l, '\n')) && end + 1 < text + tee->len;
         l = end + 1)
        if (atol(l) == expected && (end - l) == 7 + 60 + expected % 40)
            expected++;
        else
            broken++;
    assert_true(broken <= 2 && expected > 40000);
    buf_unref(out);
    buf_unref(tee);
}

/* The pipeline ends: the way through does not notice. */
static void test_a_tee_that_closes(void **state)
{
    (void)state;
    struct rig r;
    struct buf *out = buf_new(0);
    open_rig(&r);
    put(&r, "1\n", 2);
    get(r.out, out, 2);
    close(r.tee);
    r.tee = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < 100; i++) {
        put(&r, "2\n", 2);
        get(r.out, out, 2);
    }
    close(r.in);
    assert_int_equal(close_rig(&r).left_out_bytes, 0);
    buf_unref(out);
}

/* Who reads the output goes away: so does the pipe that the command writes to. */
static void test_a_reader_that_closes(void **state)
{
    (void)state;
    struct rig r;
    open_rig(&r);
    close(r.out);
    r.out = open("/dev/null", O_RDONLY | O_CLOEXEC);
    put(&r, "1\n", 2);
    struct pollfd fd = {.fd = r.in};
    assert_int_equal(poll(&fd, 1, 10000), 1);
    assert_true(fd.revents & POLLERR);
    close(r.in);
    close_rig(&r);
}

/* The command has ended and somebody holds its output open. */
static void test_left_open(void **state)
{
    (void)state;
    struct rig r;
    struct buf *out = buf_new(0);
    open_rig(&r);
    put(&r, "last words\n", 11);
    pump_job_ended(r.pump);
    get(r.out, out, 11);
    assert_true(close_rig(&r).left_open);
    close(r.in);
    buf_unref(out);
}

/* ---- the environment ---- */

static const char *value_of(const struct buf *b, const char *name)
{
    const size_t len = strlen(name);
    for (const char *p = (const char *)b->data, *end = p + b->len; p < end; p += strlen(p) + 1)
        if (strncmp(p, name, len) == 0 && (p[len] == '=' || !p[len]))
            return p[len] ? p + len + 1 : "(taken out)";
    return NULL;
}

static void clear_variables(void)
{
    static const char *const names[] = {"OTEL_EXPORTER_OTLP_ENDPOINT",
                                        "OTEL_EXPORTER_OTLP_PROTOCOL",
                                        "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "NEMO_GYM_OTEL_ENABLED",
                                        "NEMO_GYM_OTEL_MEMORY_PROFILING_ENABLED"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        unsetenv(names[i]);
}

static void test_environment(void **state)
{
    (void)state;
    static const struct {
        struct run_ready ready;
        bool takes;
        const char *endpoint, *protocol;                  /* what is set before */
        const char *want_endpoint, *want_protocol, *logs; /* of the command; NULL = as it was */
    } cases[] = {
        {{.http = "h:1", .grpc = "g:2"}, false, NULL, NULL, "http://h:1", "http/protobuf", NULL},
        {{.http = "h:1", .grpc = "g:2"}, false, NULL, "grpc", "http://g:2", NULL, NULL},
        {{.http = "h:1", .grpc = "g:2"}, false, NULL, "http/json", "http://h:1", NULL, NULL},
        {{.http = "h:1", .grpc = "g:2"}, false, "http://x", NULL, NULL, NULL, NULL},
        {{.grpc = "g:2"}, false, NULL, NULL, "http://g:2", "grpc", NULL},
        {{.grpc = "g:2"}, false, NULL, "http/protobuf", "http://g:2", NULL, NULL},
        {{.http = "h:1"}, false, NULL, "grpc", "http://h:1", NULL, NULL},
        {{.stop_ns = 1}, false, NULL, NULL, NULL, NULL, NULL},
        {{.stop_ns = 1}, true, "http://x", NULL, NULL, NULL, NULL},
        {{.http = "h:1"}, true, "http://x", "grpc", "http://h:1", "http/protobuf", "(taken out)"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        clear_variables();
        setenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://logs", 1);
        if (cases[i].endpoint)
            setenv("OTEL_EXPORTER_OTLP_ENDPOINT", cases[i].endpoint, 1);
        if (cases[i].protocol)
            setenv("OTEL_EXPORTER_OTLP_PROTOCOL", cases[i].protocol, 1);
        const struct run_command c = {.takes_otlp_variables = cases[i].takes};
        struct buf *b = buf_new(0);
        assert_int_equal(run_environment(&c, &cases[i].ready, b), 0);
        const char *got[] = {value_of(b, "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"), NULL, NULL};
        const char *want[] = {cases[i].logs, cases[i].want_endpoint, cases[i].want_protocol};
        /* What is set comes behind what is taken out. */
        for (const char *p = (const char *)b->data, *end = p + b->len; p < end;
             p += strlen(p) + 1) {
            if (strncmp(p, "OTEL_EXPORTER_OTLP_ENDPOINT=", 28) == 0)
                got[1] = p + 28;
            if (strncmp(p, "OTEL_EXPORTER_OTLP_PROTOCOL=", 28) == 0)
                got[2] = p + 28;
        }
        for (size_t k = 0; k < ARRAY_SIZE(got); k++)
            if ((got[k] != NULL) != (want[k] != NULL) || (got[k] && strcmp(got[k], want[k]) != 0))
                fail_msg("case %zu.%zu: %s, expected %s", i, k, got[k], want[k]);
        assert_string_equal(value_of(b, "NEMO_GYM_OTEL_ENABLED"), "true");
        buf_unref(b);
    }
    clear_variables();
}

static void test_environment_without_a_pipeline(void **state)
{
    (void)state;
    const struct run_command c = {.takes_otlp_variables = true};
    struct buf *b = buf_new(0);
    assert_int_equal(run_environment(&c, NULL, b), 0);
    assert_int_equal(run_environment(&c, &(struct run_ready){.idle = true, .http = "h:1"}, b), 0);
    assert_int_equal(b->len, 0);
    setenv("NEMO_GYM_OTEL_ENABLED", "0", 1);
    assert_int_equal(run_environment(&c, &(struct run_ready){.measures_memory = true}, b), 0);
    assert_null(value_of(b, "NEMO_GYM_OTEL_ENABLED"));
    assert_string_equal(value_of(b, "NEMO_GYM_OTEL_MEMORY_PROFILING_ENABLED"), "false");
    clear_variables();
    buf_unref(b);
}

static void test_exit_codes(void **state)
{
    (void)state;
    assert_int_equal(job_exit_code(-ENOENT), 127);
    assert_int_equal(job_exit_code(-EACCES), 126);
    assert_int_equal(job_exit_code(-ENOEXEC), 126);
}

static void test_same_output(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    const int copy = dup(fds[1]), other = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_true(job_same_output(fds[1], copy));
    assert_false(job_same_output(fds[1], other));
    assert_false(job_same_output(fds[1], -1));
    char path[] = "/tmp/motel-run-XXXXXX";
    const int one = mkstemp(path), two = open(path, O_WRONLY | O_CLOEXEC), same = dup(one);
    assert_false(job_same_output(one, two)); /* they would write over each other */
    assert_true(job_same_output(one, same) || errno == ENOSYS || errno == EPERM);
    unlink(path);
    const int all[] = {fds[0], fds[1], copy, other, one, two, same};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        close(all[i]);
}

/* ---- the configuration ---- */

static const char *text_at(const struct config *c, const char *path)
{
    bool exact;
    const struct cfg_value *v = cfg_find(c->root, path, &exact);
    if (!exact)
        return "(absent)";
    return v->type == CFG_MAP || v->type == CFG_NULL ? cfg_type_name(v->type) : v->text;
}

struct place {
    const char *path, *text;
};
struct wiring {
    const char *config;
    struct place places[8];
};

#define PIPE "service::pipelines::"
static const struct wiring wirings[] = {
    {"service: {pipelines: {traces: {receivers: [otlp]}, logs: {receivers: [otlp/2, x]}, "
     "metrics: {receivers: [prometheus]}}}",
     {{PIPE "traces::receivers[1]", "console/motel_run"},
      {PIPE "logs::receivers[2]", "console/motel_run"},
      {PIPE "metrics::receivers[1]", "(absent)"},
      {"receivers::console/motel_run", "map"},
      {"service::telemetry::logs::level", "warn"},
      {"service::telemetry::metrics::level", "none"}}},
    {"receivers: {nop: }\nservice: {pipelines: {traces/a: {receivers: [nop]}, traces: {receivers: "
     "[nop]}, metrics: {receivers: [nop]}}}",
     {{PIPE "traces/a::receivers[1]", "console/motel_run"},
      {PIPE "traces::receivers[1]", "(absent)"},
      {PIPE "metrics::receivers[1]", "console/motel_run"},
      {"receivers::nop", "null"}}},
    {"service: {pipelines: {traces: {receivers: [otlp]}, logs: {receivers: [console/x]}}, "
     "telemetry: {logs: {level: debug}, metrics: {readers: []}}}",
     {{PIPE "traces::receivers[1]", "(absent)"},
      {"receivers::console/motel_run", "(absent)"},
      {"service::telemetry::logs::level", "debug"},
      {"service::telemetry::metrics::level", "(absent)"}}},
    {"service: {telemetry: {logs: {encoding: json}}}",
     {{"service::telemetry::logs::level", "warn"},
      {"service::telemetry::logs::encoding", "json"},
      {"receivers", "(absent)"}}},
    {"service: {pipelines: {traces: {receivers: otlp}, logs: }}", /* for others to refuse */
     {{"service::telemetry::logs::level", "warn"}}},
};

static void test_wiring(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(wirings); i++) {
        struct cfg_errors errs = {0};
        struct config *c = config_load_text("test", wirings[i].config, &errs);
        assert_non_null(c);
        assert_int_equal(run_wire(c, NULL, 42, &errs), 0);
        for (const struct place *p = wirings[i].places; p->path; p++)
            if (strcmp(text_at(c, p->path), p->text) != 0)
                fail_msg("%s: %s is %s", wirings[i].config, p->path, text_at(c, p->path));
        config_free(c);
    }
}

static void test_memory(void **state)
{
    (void)state;
    static const char config[] = "service: {pipelines: {metrics: {receivers: [otlp]}}}";
    struct gym_telemetry t = {0};
    struct cfg_errors errs = {0};
    t.fields[GYM_MEMORY_ENABLED].on = t.fields[GYM_METRICS_ENABLED].on = true;
    t.fields[GYM_MEMORY_INTERVAL].number = 0.25;
    struct config *c = config_load_text("test", config, &errs);
    assert_int_equal(run_wire(c, &t, 42, &errs), 0);
    assert_string_equal(text_at(c, PIPE "metrics::receivers[2]"), "gym_memory/motel_run");
    assert_string_equal(text_at(c, "receivers::gym_memory/motel_run::discover::root_pid"), "42");
    assert_string_equal(text_at(c, "receivers::gym_memory/motel_run::interval"), "250ms");
    assert_true(run_measures(&t));
    config_free(c);
    t.fields[GYM_METRICS_ENABLED].on = false;
    assert_false(run_measures(&t));
    assert_false(run_measures(NULL));
    c = config_load_text("test", config, &errs);
    assert_int_equal(run_wire(c, &t, 42, &errs), 0);
    assert_string_equal(text_at(c, "receivers::gym_memory/motel_run"), "(absent)");
    config_free(c);
}

static void test_default_file(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"0123456789ab", "motel-0123456789ab.jsonl"},
                                           {"a/../b c\"$", "motel-a_.._b_c__.jsonl"},
                                           {"", "motel-.jsonl"}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *file;
        assert_int_equal(run_default_file(cases[i][0], &file), 0);
        assert_string_equal(file, cases[i][1]);
        free(file);
    }
}

static int ignore_sigpipe(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_get_everything),
        cmocka_unit_test(test_a_stuck_tee),
        cmocka_unit_test(test_a_tee_that_closes),
        cmocka_unit_test(test_a_reader_that_closes),
        cmocka_unit_test(test_left_open),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_environment_without_a_pipeline),
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_same_output),
        cmocka_unit_test(test_wiring),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_default_file),
    };
    return cmocka_run_group_tests(tests, ignore_sigpipe, NULL);
}
