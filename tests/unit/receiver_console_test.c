/* The console receiver: files that grow, turn and go, pipes, streams, restarts, and pipelines that
 * do not take everything at once. */
#include "console_rig.h"
#include "rig.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "agent/pipeline/console_source.h"

extern const struct component_type receiver_console;

#define SPAN(name)                                                                                 \
    "{\"name\": \"" name                                                                           \
    "\", \"context\": {\"trace_id\": \"0x01\", \"span_id\": \"0x02\", \"trace_state\": \"[]\"}, "  \
    "\"kind\": \"SpanKind.INTERNAL\"}\n"
#define BLOCK_1(name) "{\n    \"name\": \"" name "\",\n    \"context\": {\n"
#define BLOCK_2                                                                                    \
    "        \"trace_id\": \"0x01\",\n        \"span_id\": \"0x02\"\n    },\n    \"kind\": "       \
    "\"SpanKind.SERVER\"\n}\n"

static char folder[] = "/tmp/motel-console-XXXXXX";

/* ---- the instance ---- */

static void begin(struct rig *r, const char *fmt, ...) _printf_(2, 3);
static void begin(struct rig *r, const char *fmt, ...)
{
    struct err e = {0};
    struct host *host = r->host;
    _cleanup_buf_ struct buf *yaml = buf_new(0);
    va_list ap;
    *r = (struct rig){.host = host};
    va_start(ap, fmt);
    buf_vprintf(yaml, fmt, ap);
    va_end(ap);
    if (!strstr(buf_str(yaml), "poll_interval"))
        buf_append_str(yaml, "\npoll_interval: 2ms\n");
    rig_make(r, &receiver_console, "console", SIGNAL_TRACES, 1, buf_str(yaml));
    if (receiver_console.start(r->c, &e) < 0)
        fail_msg("%s", e.text);
}

static void end(struct rig *r)
{
    receiver_console.stop(r->c, clock_now_ns() + 5 * NS_PER_S);
}

/* What the sink has: names of spans, bodies of log records. */
static bool has(struct rig *r, const char *want, bool fail_if_not)
{
    struct notes n;
    struct sink *s = &r->sinks[0];
    notes_init(&n);
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < s->ntaken; i++)
        note_telemetry(&n, batch_ref(s->taken[i]));
    pthread_mutex_unlock(&s->lock);
    bool same = strcmp(buf_str(n.records), want) == 0;
    if (!same && fail_if_not)
        fail_msg("got %s, not %s", buf_str(n.records), want);
    notes_done(&n);
    return same;
}

static void wait_for(struct rig *r, const char *want)
{
    uint64_t limit = clock_now_ns() + 10 * NS_PER_S;
    while (!has(r, want, false) && clock_now_ns() < limit)
        usleep(200);
    has(r, want, true);
}

/* Ends it and checks that nothing more came. */
static void done(struct rig *r, const char *want)
{
    end(r);
    has(r, want, true);
    rig_done(r);
    memset(r, 0, sizeof(*r));
}

/* ---- files ---- */

static struct rig r; /* large */

static const char *in_folder(const char *name)
{
    static char paths[4][300];
    static unsigned next;
    char *p = paths[next++ % 4];
    snprintf(p, sizeof(paths[0]), "%s/%s", folder, name);
    return p;
}

static void put(const char *name, const char *text, int flags)
{
    int fd = open(in_folder(name), O_WRONLY | O_CREAT | flags, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}
static void append(const char *name, const char *text)
{
    put(name, text, O_APPEND);
}
static void cut(const char *name, const char *text)
{
    put(name, text, O_TRUNC);
}

static void copy(const char *from, const char *to)
{
    _cleanup_buf_ struct buf *command = buf_new(0);
    buf_printf(command, "cp '%s' '%s'", in_folder(from), in_folder(to));
    assert_int_equal(system(buf_str(command)), 0);
}

static void move(const char *from, const char *to)
{
    assert_int_equal(rename(in_folder(from), in_folder(to)), 0);
}

static int clean(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *command = buf_new(0);
    buf_printf(command, "rm -rf '%s' && mkdir '%s'", folder, folder);
    memset(&r, 0, sizeof(r));
    return system(buf_str(command));
}

static void test_appended(void **state)
{
    (void)state;
    append("a.log", SPAN("old") "text\n");
    begin(&r, "include: [%s]\nexclude: [%s]\nstart_at: beginning", in_folder("*.log"),
          in_folder("x*"));
    wait_for(&r, "S(old)");
    append("a.log", "more text\n" SPAN("b") BLOCK_1("c"));
    wait_for(&r, "S(old)S(b)");
    append("a.log", BLOCK_2);
    wait_for(&r, "S(old)S(b)S(c)");
    append("x.log", SPAN("excluded"));
    append("later.log", SPAN("later"));
    wait_for(&r, "S(old)S(b)S(c)S(later)");
    done(&r, "S(old)S(b)S(c)S(later)");
}

static void test_start_at_end(void **state)
{
    (void)state;
    append("a.log", SPAN("old"));
    append("b.log", SPAN("old, too"));
    begin(&r, "include: ['%s']", in_folder("*.log"));
    append("new.log", SPAN("new")); /* files that come later are read whole */
    wait_for(&r, "S(new)");
    append("a.log", SPAN("a"));
    wait_for(&r, "S(new)S(a)");
    done(&r, "S(new)S(a)");
}

static void test_end_without_line_end(void **state)
{
    (void)state;
    static const char span[] = SPAN("a");
    _cleanup_free_ char *half = strndup(span, sizeof(span) - 2);
    begin(&r, "include: ['%s']", in_folder("*.log"));
    append("a.log", half);
    wait_for(&r, "S(a)");
    append("a.log", "\n" SPAN("b"));
    wait_for(&r, "S(a)S(b)");
    done(&r, "S(a)S(b)");
}

static void test_renamed(void **state)
{
    (void)state;
    begin(&r, "include: ['%s']", in_folder("app.log"));
    append("app.log", SPAN("a"));
    wait_for(&r, "S(a)");
    int old = open(in_folder("app.log"), O_WRONLY | O_APPEND);
    move("app.log", "app.log.1");
    append("app.log", SPAN("new"));
    wait_for(&r, "S(a)S(new)");
    assert_true(write(old, SPAN("late"), strlen(SPAN("late"))) > 0); /* by who has it open still */
    close(old);
    wait_for(&r, "S(a)S(new)S(late)");
    done(&r, "S(a)S(new)S(late)");
}

static void test_renamed_within_patterns(void **state)
{
    (void)state;
    begin(&r, "include: ['%s']", in_folder("app.log*"));
    append("app.log", SPAN("a"));
    wait_for(&r, "S(a)");
    append("app.log", SPAN("b"));
    move("app.log", "app.log.1");
    append("app.log", SPAN("new"));
    wait_for(&r, "S(a)S(b)S(new)");
    move("app.log.1", "app.log.2");
    move("app.log", "app.log.1");
    append("app.log", SPAN("newest"));
    wait_for(&r, "S(a)S(b)S(new)S(newest)");
    done(&r, "S(a)S(b)S(new)S(newest)");
}

static void test_truncated(void **state)
{
    (void)state;
    begin(&r, "include: ['%s']", in_folder("*.log"));
    append("a.log", SPAN("a, which is long") SPAN("b"));
    wait_for(&r, "S(a, which is long)S(b)");
    cut("a.log", SPAN("c"));
    wait_for(&r, "S(a, which is long)S(b)S(c)");
    append("a.log", SPAN("d"));
    wait_for(&r, "S(a, which is long)S(b)S(c)S(d)");
    /* longer than before, from the same first line on */
    cut("a.log", SPAN("c") SPAN("e") SPAN("f"));
    wait_for(&r, "S(a, which is long)S(b)S(c)S(d)S(c)S(e)S(f)");
    done(&r, "S(a, which is long)S(b)S(c)S(d)S(c)S(e)S(f)");
}

/* logrotate's copytruncate. */
static void test_copied_while_read(void **state)
{
    (void)state;
    begin(&r, "include: ['%s']", in_folder("app.log*"));
    append("app.log", SPAN("a") SPAN("b") BLOCK_1("half"));
    wait_for(&r, "S(a)S(b)");
    copy("app.log", "app.log.1"); /* it is seen, but nothing in it is new */
    usleep(20000);
    has(&r, "S(a)S(b)", true);
    append("app.log", BLOCK_2 SPAN("last")); /* never less than its copy holds */
    append("app.log.1", BLOCK_2 SPAN("last"));
    wait_for(&r, "S(a)S(b)S(half)S(last)");
    usleep(20000);
    cut("app.log", SPAN("new"));
    wait_for(&r, "S(a)S(b)S(half)S(last)S(new)");
    done(&r, "S(a)S(b)S(half)S(last)S(new)");
}

/* The same, all of it between two looks: what is in the copy only is read there, from the half
 * record on. */
static void test_copied_and_cut(void **state)
{
    (void)state;
    append("app.log", SPAN("a") SPAN("b") BLOCK_1("half"));
    begin(&r, "include: ['%s']\nstart_at: beginning\npoll_interval: 200ms", in_folder("app.log*"));
    wait_for(&r, "S(a)S(b)");
    append("app.log", BLOCK_2 SPAN("last"));
    copy("app.log", "app.log.1");
    cut("app.log", SPAN("new, and more than was there before in both of the spans") SPAN("x"));
    /* The copy and what is written anew are two files: which is read first is open. */
    const char *cut_first =
        "S(a)S(b)S(new, and more than was there before in both of the spans)S(x)S(half)S(last)";
    const char *copy_first =
        "S(a)S(b)S(half)S(last)S(new, and more than was there before in both of the spans)S(x)";
    assert_soon(has(&r, cut_first, false) || has(&r, copy_first, false));
    done(&r, has(&r, cut_first, false) ? cut_first : copy_first);
}

static void test_folders(void **state)
{
    (void)state;
    begin(&r, "include: ['%s/**/*.log']\nexclude: ['%s/**/skip/**']", folder, folder);
    assert_int_equal(mkdir(in_folder("x"), 0700) + mkdir(in_folder("x/y"), 0700) +
                         mkdir(in_folder("x/skip"), 0700),
                     0);
    append("top.log", SPAN("top"));
    wait_for(&r, "S(top)");
    append("x/y/deep.log", SPAN("deep"));
    wait_for(&r, "S(top)S(deep)");
    append("x/skip/s.log", SPAN("skipped"));
    append("x/y/deep.txt", SPAN("other"));
    append("x/in.log", SPAN("in"));
    wait_for(&r, "S(top)S(deep)S(in)");
    done(&r, "S(top)S(deep)S(in)");
}

static void test_no_follow(void **state)
{
    (void)state;
    append("a.log", SPAN("a") "{\n    \"half\": 1,\n");
    begin(&r, "include: ['%s']\nfollow: false\nstart_at: beginning", in_folder("*.log"));
    wait_for(&r, "S(a)");
    assert_soon(rig_metric(&r, "motel_receiver_console_plain_lines", "receiver=\"console\"") == 2);
    append("a.log", SPAN("b"));
    append("b.log", SPAN("c"));
    wait_for(&r, "S(a)S(c)");
    done(&r, "S(a)S(c)");
}

/* ---- places that are stored ---- */

static const char *stored_yaml(void)
{
    static char yaml[700];
    snprintf(yaml, sizeof(yaml), "include: ['%s']\nstorage_file: %s", in_folder("app.log*"),
             in_folder("places.json"));
    return yaml;
}

static void test_restart(void **state)
{
    (void)state;
    cut("app.log", SPAN("before"));
    begin(&r, "%s", stored_yaml());
    append("app.log.x", SPAN("x"));
    wait_for(&r, "S(x)");
    append("app.log", SPAN("a") BLOCK_1("half") "plain\n");
    wait_for(&r, "S(x)S(a)");
    done(&r, "S(x)S(a)");
    append("app.log", BLOCK_2 SPAN("b"));
    append("app.log.y", SPAN("y"));
    begin(&r, "%s", stored_yaml());
    wait_for(&r, "S(half)S(b)S(y)");
    done(&r, "S(half)S(b)S(y)");
    begin(&r, "%s", stored_yaml());
    append("app.log", SPAN("c"));
    wait_for(&r, "S(c)");
    done(&r, "S(c)");
}

static void test_restart_after_turns(void **state)
{
    (void)state;
    begin(&r, "include: ['%s']\nstorage_file: %s\nstart_at: beginning", in_folder("app.log"),
          in_folder("places.json"));
    append("app.log", SPAN("a"));
    wait_for(&r, "S(a)");
    done(&r, "S(a)");
    append("app.log", SPAN("b")); /* renamed to a name that no pattern has */
    move("app.log", "old");
    append("app.log", SPAN("c"));
    begin(&r, "include: ['%s']\nstorage_file: %s", in_folder("app.log"), in_folder("places.json"));
    wait_for(&r, "S(b)S(c)");
    done(&r, "S(b)S(c)");
    append("app.log", SPAN("d"));
    copy("app.log", "app.log.1"); /* copied and cut */
    cut("app.log", SPAN("e"));
    begin(&r, "%s", stored_yaml());
    wait_for(&r, "S(d)S(e)");
    done(&r, "S(d)S(e)");
    cut("app.log", SPAN("f"));
    begin(&r, "%s", stored_yaml());
    wait_for(&r, "S(f)");
    done(&r, "S(f)");
}

/* A pattern may include the file of places. */
static void test_own_file(void **state)
{
    (void)state;
    begin(&r, "include: ['%s']\nstorage_file: %s", in_folder("*"), in_folder("places.json"));
    append("app.log", SPAN("a"));
    wait_for(&r, "S(a)");
    append("app.log", SPAN("b"));
    wait_for(&r, "S(a)S(b)");
    assert_int_equal(rig_metric(&r, "motel_receiver_console_plain_lines", "receiver=\"console\""),
                     0);
    done(&r, "S(a)S(b)");
}

static void test_bad_storage(void **state)
{
    (void)state;
    struct err e = {0};
    append("places.json", "{\"version\": 1, \"files\": 5}");
    append("app.log", SPAN("a"));
    begin(&r, "%s\nstart_at: beginning", stored_yaml());
    wait_for(&r, "S(a)");
    done(&r, "S(a)");
    rig_make(&r, &receiver_console, "console", SIGNAL_TRACES, 1,
             "include: [x]\nstorage_file: /nowhere/x");
    assert_true(receiver_console.start(r.c, &e) < 0);
    assert_string_equal(e.text, "cannot open \"/nowhere/x\": No such file or directory");
    rig_done(&r);
    memset(&r, 0, sizeof(r));
}

/* The process dies without a stop: the state is that after the last records that were taken. */
static void test_stored_at_once(void **state)
{
    (void)state;
    begin(&r, "%s", stored_yaml());
    append("app.log", SPAN("a") BLOCK_1("half"));
    wait_for(&r, "S(a)");
    struct stat st;
    assert_soon(stat(in_folder("places.json"), &st) == 0 && st.st_size > 0);
    copy("places.json", "kept.json");
    done(&r, "S(a)");
    move("kept.json", "places.json");
    append("app.log", BLOCK_2);
    begin(&r, "%s", stored_yaml());
    wait_for(&r, "S(half)");
    done(&r, "S(half)");
}

/* ---- pipes and streams ---- */

static void test_pipes(void **state)
{
    (void)state;
    begin(&r, "pipes: ['%s', '%s']", in_folder("p"), in_folder("q"));
    assert_int_equal(mkfifo(in_folder("p"), 0600), 0);
    put("p", SPAN("a"), 0);
    wait_for(&r, "S(a)");
    put("p", BLOCK_1("b"), 0);
    put("p", BLOCK_2, 0);
    wait_for(&r, "S(a)S(b)");
    assert_int_equal(mkfifo(in_folder("q"), 0600), 0);
    put("q", SPAN("c"), 0);
    wait_for(&r, "S(a)S(b)S(c)");
    unlink(in_folder("p"));
    assert_int_equal(mkfifo(in_folder("p"), 0600), 0);
    put("p", SPAN("d"), 0);
    wait_for(&r, "S(a)S(b)S(c)S(d)");
    done(&r, "S(a)S(b)S(c)S(d)");
}

struct stream {
    int in, out; /* ends of ours */
    atomic_int ended;
    char passed[4000];
    size_t npassed;
};

static void on_end(void *ctx)
{
    atomic_fetch_add(&((struct stream *)ctx)->ended, 1);
}

static void register_stream(struct stream *s, enum console_pass pass)
{
    int in[2], out[2];
    *s = (struct stream){0};
    assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
    struct console_source from = {
        .label = "stdout", .fd = in[0], .pass_fd = out[1], .pass = pass, .ended = on_end, .ctx = s};
    assert_int_equal(console_source_add(NULL, &from), 0);
    s->in = in[1];
    s->out = out[0];
}

static const char *passed(struct stream *s)
{
    ssize_t n = read(s->out, s->passed + s->npassed, sizeof(s->passed) - s->npassed - 1);
    s->npassed += n > 0 ? (size_t)n : 0;
    return s->passed;
}

static void say(struct stream *s, const char *text)
{
    assert_int_equal(write(s->in, text, strlen(text)), strlen(text));
}

static void test_registered(void **state)
{
    (void)state;
    struct stream plain, all;
    register_stream(&plain, CONSOLE_PASS_PLAIN);
    register_stream(&all, CONSOLE_PASS_ALL);
    begin(&r, "stdin: false");
    say(&plain, "hello\n" SPAN("a") "go on? ");
    wait_for(&r, "S(a)");
    assert_soon(strcmp(passed(&plain), "hello\ngo on? ") == 0);
    say(&all, "x\n" SPAN("b") "half");
    wait_for(&r, "S(a)S(b)");
    assert_soon(strcmp(passed(&all), "x\n" SPAN("b") "half") == 0);
    say(&plain, "yes\n{\n    \"unfinished\": 1\n");
    close(plain.in);
    close(all.in);
    assert_soon(atomic_load(&plain.ended) && atomic_load(&all.ended));
    assert_string_equal(passed(&plain), "hello\ngo on? yes\n{\n    \"unfinished\": 1\n");
    done(&r, "S(a)S(b)");
    assert_int_equal(plain.ended + all.ended, 2);
    close(plain.out);
    close(all.out);
}

/* What is there at the stop is read. */
static void test_stop_reads_on(void **state)
{
    (void)state;
    struct stream s;
    register_stream(&s, CONSOLE_PASS_PLAIN);
    begin(&r, "stdin: false");
    say(&s, SPAN("a"));
    wait_for(&r, "S(a)");
    say(&s, SPAN("b") BLOCK_1("c") BLOCK_2);
    end(&r);
    has(&r, "S(a)S(b)S(c)", true);
    close(s.in);
    rig_done(&r);
    memset(&r, 0, sizeof(r));
    assert_int_equal(s.ended, 1);
    close(s.out);
}

static void test_plain_log(void **state)
{
    (void)state;
    memset(&r, 0, sizeof(r));
    _cleanup_buf_ struct buf *yaml = buf_new(0), *json = buf_new(0);
    struct err e;
    buf_printf(yaml, "include: ['%s']\nplain_lines: log\npoll_interval: 2ms", in_folder("*.log"));
    rig_make(&r, &receiver_console, "console", SIGNAL_LOGS, 1, buf_str(yaml));
    assert_int_equal(receiver_console.start(r.c, &e), 0);
    append("a.log", "first\r\n\n" SPAN("dropped: no pipeline") "sec\xffond\n");
    wait_for(&r, "L(first)L(sec\xef\xbf\xbdond)");
    end(&r);
    json_write_batch(r.sinks[0].taken[0], 0, json);
    _cleanup_buf_ struct buf *want = buf_new(0);
    buf_printf(want,
               "\"body\":{\"stringValue\":\"first\"},\"attributes\":[{\"key\":\"log.file.name\","
               "\"value\":{"
               "\"stringValue\":\"a.log\"}},{\"key\":\"log.file.path\",\"value\":{\"stringValue\":"
               "\"%s\"}}]",
               in_folder("a.log"));
    assert_non_null(strstr(buf_str(json), buf_str(want)));
    rig_done(&r);
    memset(&r, 0, sizeof(r));
}

/* ---- pipelines that do not take everything ---- */

#define LABELS "receiver=\"console\",transport=\"console\""

static void test_refused(void **state)
{
    (void)state;
    begin(&r, "%s", stored_yaml());
    pthread_mutex_lock(&r.sinks[0].lock);
    r.sinks[0].refusals = 3;
    r.sinks[0].retry_after_ms = 1;
    pthread_mutex_unlock(&r.sinks[0].lock);
    append("app.log", SPAN("a"));
    append("app.log.1", SPAN("b"));
    assert_soon(sink_taken(&r.sinks[0]) == 2);
    assert_int_equal(rig_metric(&r, "otelcol_receiver_accepted_spans", LABELS), 2);
    sink_set(&r.sinks[0], VERDICT_REJECT);
    append("app.log", SPAN("lost"));
    assert_soon(rig_metric(&r, "otelcol_receiver_refused_spans", LABELS) == 1);
    sink_set(&r.sinks[0], VERDICT_OK);
    append("app.log", SPAN("c"));
    assert_soon(sink_taken(&r.sinks[0]) == 3);
    end(&r);
    rig_done(&r);
    memset(&r, 0, sizeof(r));
}

/* One of several branches refused it for good, another one took it later. */
static void test_refused_by_one(void **state)
{
    (void)state;
    begin(&r, "%s", stored_yaml());
    pthread_mutex_lock(&r.sinks[0].lock);
    r.sinks[0].refusals = 1;
    r.sinks[0].also_lost = true;
    pthread_mutex_unlock(&r.sinks[0].lock);
    append("app.log", SPAN("a"));
    assert_soon(rig_metric(&r, "otelcol_receiver_refused_spans", LABELS) == 1);
    assert_int_equal(sink_taken(&r.sinks[0]), 1);
    append("app.log", SPAN("b"));
    assert_soon(rig_metric(&r, "otelcol_receiver_accepted_spans", LABELS) == 1);
    end(&r);
    rig_done(&r);
    memset(&r, 0, sizeof(r));
}

/* What is not taken before the stop is read again by the next run. */
static void test_refused_until_stop(void **state)
{
    (void)state;
    begin(&r, "%s", stored_yaml());
    append("app.log", SPAN("a"));
    wait_for(&r, "S(a)");
    sink_set(&r.sinks[0], VERDICT_RETRY);
    append("app.log", SPAN("b"));
    sink_wait(&r.sinks[0], 2);
    receiver_console.stop(r.c, clock_now_ns() + 50 * NS_PER_MS);
    has(&r, "S(a)", true);
    rig_done(&r);
    memset(&r, 0, sizeof(r));
    begin(&r, "%s", stored_yaml());
    wait_for(&r, "S(b)");
    done(&r, "S(b)");
}

static void test_answered_later(void **state)
{
    (void)state;
    begin(&r, "%s", stored_yaml());
    struct sink *s = &r.sinks[0];
    static const enum verdict answers[] = {VERDICT_RETRY, VERDICT_OK};
    sink_set(s, VERDICT_PENDING);
    append("app.log", SPAN("a"));
    for (unsigned i = 0; i < ARRAY_SIZE(answers); i++) {
        sink_wait(s, i + 1);
        append("app.log", SPAN("b")); /* is read only when the first is settled */
        ack_done(s->waiting[i], answers[i], NULL);
    }
    sink_wait(s, 3);
    assert_int_equal(sink_offers(s), 3);
    assert_int_equal(rig_metric(&r, "otelcol_receiver_accepted_spans", LABELS), 1);
    ack_done(s->waiting[2], VERDICT_OK, NULL);
    assert_soon(rig_metric(&r, "otelcol_receiver_accepted_spans", LABELS) == 3);
    sink_set(s, VERDICT_PENDING);
    append("app.log", SPAN("never answered in time"));
    sink_wait(s, 4);
    receiver_console.stop(r.c, clock_now_ns() + 20 * NS_PER_MS);
    struct ack *late = s->waiting[3];
    rig_done(&r);
    ack_done(late, VERDICT_OK, NULL);
    memset(&r, 0, sizeof(r));
}

/* ---- reload ---- */

static void test_reload(void **state)
{
    (void)state;
    static struct rig next;
    struct stream s;
    register_stream(&s, CONSOLE_PASS_PLAIN);
    begin(&r, "include: ['%s']", in_folder("*.log"));
    append("a.log", SPAN("a") BLOCK_1("half"));
    say(&s, SPAN("s") BLOCK_1("half, too"));
    assert_soon(sink_taken(&r.sinks[0]) == 2);
    next = (struct rig){.host = r.host};
    begin(&next, "include: ['%s']", in_folder("*.log"));
    usleep(10000);
    append("a.log", SPAN("b"));
    assert_soon(sink_taken(&r.sinks[0]) == 3);
    struct fanout *old = r.c->next[SIGNAL_TRACES];
    end(&r);
    receiver_console.destroy(r.c);
    append("a.log", BLOCK_2);
    wait_for(&next, "S(half)");
    say(&s, BLOCK_2);
    wait_for(&next, "S(half)S(half, too)");
    close(s.in);
    assert_soon(s.ended == 1);
    end(&next); /* the old host is the new one's, too */
    has(&next, "S(half)S(half, too)", true);
    close(s.out);
    fanout_free(old);
    for (unsigned i = 0; i < r.sinks[0].ntaken; i++)
        batch_unref(r.sinks[0].taken[i]);
    config_free(r.config);
    rig_done(&next);
}

static void test_checks(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *error;
    } cases[] = {
        {"storage_file: x", "places are stored for files; give include as well"},
        {"pipes: ['']", "expected the path of a named pipe, got an empty text"},
        {"{}", ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct rig one = {0};
        struct err e = {0};
        void *bound;
        rig_bind(&one, &receiver_console, cases[i].yaml, &bound, &e);
        assert_string_equal(e.text, cases[i].error);
        config_free(one.config);
    }
}

int main(void)
{
#define T(t) cmocka_unit_test_setup(t, clean)
    const struct CMUnitTest tests[] = {
        T(test_appended),
        T(test_start_at_end),
        T(test_end_without_line_end),
        T(test_renamed),
        T(test_renamed_within_patterns),
        T(test_truncated),
        T(test_copied_while_read),
        T(test_copied_and_cut),
        T(test_folders),
        T(test_no_follow),
        T(test_restart),
        T(test_restart_after_turns),
        T(test_own_file),
        T(test_bad_storage),
        T(test_stored_at_once),
        T(test_pipes),
        T(test_registered),
        T(test_stop_reads_on),
        T(test_plain_log),
        T(test_refused),
        T(test_refused_by_one),
        T(test_refused_until_stop),
        T(test_answered_later),
        T(test_reload),
        T(test_checks),
    };
    assert_non_null(mkdtemp(folder));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    clean(NULL);
    rmdir(folder);
    return failed;
}
