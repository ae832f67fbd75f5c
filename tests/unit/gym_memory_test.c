/* The gym_memory receiver on processes made of files: what belongs to a server, what is reported of
 * it, and what becomes of samples that the pipeline does not take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fake_proc.h"
#include "rig.h"

extern const struct component_type receiver_gym_memory;

#define MEMINFO                                                                                    \
    "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\nCached: 50 kB\n"

struct world {
    struct fake_proc proc;
    struct rig r;
};

static void open_world(struct world *w)
{
    *w = (struct world){.proc = {.root = ""}};
    fake_init(&w->proc);
    fake_put(&w->proc, 0, "meminfo", MEMINFO);
}

static struct sink *sink(struct world *w)
{
    return &w->r.sinks[0];
}

/* `config`: the keys of the receiver but root_path. */
static void make(struct world *w, const char *config)
{
    char yaml[2048];
    assert_true(snprintf(yaml, sizeof(yaml), "{root_path: %s, %s}", w->proc.root, config) <
                (int)sizeof(yaml));
    rig_make(&w->r, &receiver_gym_memory, "gym_memory", SIGNAL_METRICS, 1, yaml);
}

static void start(struct world *w)
{
    struct err e = {.text = ""};
    if (receiver_gym_memory.start(w->r.c, &e) < 0)
        fail_msg("%s", e.text);
}

static void stop(struct world *w)
{
    receiver_gym_memory.stop(w->r.c, clock_now_ns() + 10 * NS_PER_S);
}

static void close_world(struct world *w)
{
    rig_done(&w->r);
    fake_done(&w->proc);
}

/* Fails unless the points of the sample `i` that the sink took are these lines. */
static void assert_points(struct world *w, unsigned i, const char *prefix, const char *want)
{
    _cleanup_buf_ struct buf *got = buf_new(0);
    assert_true(i < sink_taken(sink(w)));
    buf_append_str(got, "");
    show_metrics(buf_bytes(sink(w)->taken[i]->segs[0]), prefix, false, got);
    assert_string_equal(buf_str(got), want);
}

/* Starts and stops: the first sample is taken[0], the last one taken[1]. */
static void run(struct world *w, const char *config)
{
    make(w, config);
    start(w);
    sink_wait(sink(w), 1);
    stop(w);
    assert_int_equal(sink_taken(sink(w)), 2);
}

#define LONG "interval: 1h, "
#define ONE LONG "servers: [{name: s, type: t, pids: [10]}]"
#define S " nemo.gym.server.name=s nemo.gym.server.type=t process.pid=10"

/* ---- one server ---- */

static void test_tree(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    fake_process(&w.proc, 1, "10 20", 1000, 1000);
    fake_process(&w.proc, 10, "11 12 ", 100, 50);
    fake_process(&w.proc, 11, "", 20, 5);
    fake_process(&w.proc, 12, "13", 30, 10);
    fake_process(&w.proc, 13, "", 7, 7);
    fake_put(&w.proc, 12, "task/99/children", "14"); /* of another thread */
    fake_process(&w.proc, 14, "", 3, 1);
    fake_process(&w.proc, 20, "", 500, 500);
    run(&w, ONE);
    assert_points(&w, 0, "gym.server.",
                  "gym.server.processes" S ": 5\n"
                  "gym.server.memory.usage" S " memory.type=rss: 163840\n"
                  "gym.server.memory.usage" S " memory.type=pss: 74752\n"
                  "gym.server.memory.sampled_peak" S " memory.type=rss: 163840\n"
                  "gym.server.memory.sampled_peak" S " memory.type=pss: 74752\n");
    assert_points(&w, 1, "gym.host.memory.",
                  "gym.host.memory.usage: 614400\ngym.host.memory.available: 409600\n"
                  "gym.host.memory.total: 1024000\ngym.host.memory.sampled_peak: 614400\n");
    close_world(&w);
}

static void test_peaks_and_the_end(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    fake_process(&w.proc, 10, "11", 100, 50);
    fake_process(&w.proc, 11, "", 20, 10);
    make(&w, ONE);
    start(&w);
    sink_wait(sink(&w), 1);
    fake_kill(&w.proc, 10);
    fake_kill(&w.proc, 11);
    fake_put(&w.proc, 0, "meminfo", "MemTotal: 1000 kB\nMemAvailable: 900 kB\n");
    stop(&w);
    assert_points(&w, 1, "gym.",
                  "gym.host.memory.usage: 102400\ngym.host.memory.available: 921600\n"
                  "gym.host.memory.total: 1024000\ngym.host.memory.sampled_peak: 614400\n"
                  "gym.server.processes" S ": 0\n"
                  "gym.server.memory.usage" S " memory.type=rss: 0\n"
                  "gym.server.memory.usage" S " memory.type=pss: 0\n"
                  "gym.server.memory.sampled_peak" S " memory.type=rss: 122880\n"
                  "gym.server.memory.sampled_peak" S " memory.type=pss: 61440\n");
    close_world(&w);
}

static long page_kib(void)
{
    return sysconf(_SC_PAGESIZE) / 1024;
}

/* One process without PSS, and there is no PSS of the server. */
static void test_without_pss(void **state)
{
    (void)state;
    static const struct {
        const char *smaps, *statm;
        long rss; /* kB; statm has 8 pages */
        bool pss;
    } cases[] = {
        {NULL, "900 8 4 1 0 20 0\n", -8, false},             /* not to be read */
        {"", "900 8 4 1 0 20 0\n", -8, false},               /* the process ends just now */
        {"Rss: 5 kB\n", "900 8 4\n", 5, false},              /* no Pss */
        {"Pss: 5 kB\n", "900 8 4\n", -8, false},             /* no Rss */
        {"Rss: x kB\nPss: 5 kB\n", "900 8 4\n", -8, false},  /* no number */
        {"Rss: 5 kB\nPss: -5 kB\n", "900 8 4\n", -8, false}, /* nor is this */
        {"Rss:\nPss: 5 kB\n", "900 8 4\n", -8, false},
        {"Rss: 99999999999999999999 kB\n", "900 8\n", -8, false}, /* too large */
        {"Rss: 9999999999999999 kB\n", "900 8\n", -8, false},     /* so many bytes are, too */
        {NULL, "0 0 0 0 0 0 0\n", 0, true},                       /* a zombie holds nothing */
        {"Rss:\t5\tkB\nPss:2", "900 8\n", 5, true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world w;
        char want[512];
        const long kib = 100 + (cases[i].rss < 0 ? 8 * page_kib() : cases[i].rss);
        open_world(&w);
        fake_process(&w.proc, 10, "11", 100, 50);
        fake_put(&w.proc, 11, "statm", cases[i].statm);
        if (cases[i].smaps)
            fake_put(&w.proc, 11, "smaps_rollup", cases[i].smaps);
        run(&w, ONE);
        int n = snprintf(want, sizeof(want), "gym.server.memory.usage" S " memory.type=rss: %ld\n",
                         kib * 1024);
        if (cases[i].pss)
            snprintf(want + n, sizeof(want) - (size_t)n,
                     "gym.server.memory.usage" S " memory.type=pss: %d\n",
                     cases[i].rss ? 52 * 1024 : 50 * 1024);
        assert_points(&w, 0, "gym.server.memory.usage", want);
        assert_points(&w, 0, "gym.server.processes", "gym.server.processes" S ": 2\n");
        close_world(&w);
    }
}

/* Processes that cannot be measured are skipped and not counted. */
static void test_not_measured(void **state)
{
    (void)state;
    static const char *const statm[] = {
        NULL, "", "x", "5", "5 x", "18446744073709551616 1", "1 18446744073709551615"};
    for (size_t i = 0; i < ARRAY_SIZE(statm); i++) {
        struct world w;
        open_world(&w);
        fake_process(&w.proc, 10, "11 12 13", 100, 50); /* 13 is not there at all */
        fake_children(&w.proc, 11, "12");
        if (statm[i])
            fake_put(&w.proc, 11, "statm", statm[i]);
        fake_process(&w.proc, 12, "x y 1e5 -4", 10, 5);
        run(&w, ONE);
        assert_points(&w, 0, "gym.server.memory.usage",
                      "gym.server.memory.usage" S " memory.type=rss: 112640\n"
                      "gym.server.memory.usage" S " memory.type=pss: 56320\n");
        assert_points(&w, 0, "gym.server.processes", "gym.server.processes" S ": 2\n");
        close_world(&w);
    }
}

/* No such thing exists, but it must not turn for ever. */
static void test_circles(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    fake_process(&w.proc, 10, "11 10", 1, 1);
    fake_process(&w.proc, 11, "12", 1, 1);
    fake_process(&w.proc, 12, "10 11 12", 1, 1);
    run(&w, LONG "discover: {root_pid: 11}, servers: [{name: s, type: t, pids: [10]}, {name: p, "
                 "command_pattern: p}]");
    assert_points(&w, 0, "gym.server.processes", "gym.server.processes" S ": 3\n");
    close_world(&w);
}

static void test_huge_numbers(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    fake_process(&w.proc, 10, "11", 9007199254740991, 9007199254740991); /* kB: INT64_MAX / 1024 */
    fake_process(&w.proc, 11, "", 9007199254740991, 9007199254740991);
    fake_put(&w.proc, 2147483647, "statm", "1 1");
    fake_put(&w.proc, 0, "2147483648/statm", "1 1"); /* no pid */
    fake_put(&w.proc, 0, "99999999999999999999/statm", "1 1");
    fake_children(&w.proc, 11, "2147483648 2147483647 99999999999999999999 12");
    run(&w, ONE);
    assert_points(&w, 0, "gym.server.memory.usage",
                  "gym.server.memory.usage" S " memory.type=rss: 9223372036854775807\n");
    assert_points(&w, 0, "gym.server.processes", "gym.server.processes" S ": 3\n");
    close_world(&w);
}

/* By stat, where it can be read: names with anything in them. */
static void test_stat(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    fake_memory(&w.proc, 10, 8, 4);
    fake_stat(&w.proc, 10, "a) S 99 (b", 'S', 1, 4194560, 50);
    fake_memory(&w.proc, 11, 16, 8);
    fake_stat(&w.proc, 11, "", 'S', 10, 4194560, 60);
    fake_stat(&w.proc, 12, "\xff zombie\n", 'Z', 11, 4194560, 70); /* counts, and has no memory */
    fake_put(&w.proc, 13, "stat", "13 (no end S 10 1 1");
    fake_memory(&w.proc, 13, 1000, 1000);
    run(&w, ONE);
    assert_points(&w, 0, "gym.server.",
                  "gym.server.processes" S ": 3\n"
                  "gym.server.memory.usage" S " memory.type=rss: 24576\n"
                  "gym.server.memory.usage" S " memory.type=pss: 12288\n"
                  "gym.server.memory.sampled_peak" S " memory.type=rss: 24576\n"
                  "gym.server.memory.sampled_peak" S " memory.type=pss: 12288\n");
    close_world(&w);
}

/* A pid that was given is not that of a later process. */
static void test_pid_used_again(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    fake_memory(&w.proc, 10, 8, 4);
    fake_stat(&w.proc, 10, "a", 'S', 1, 0, 50);
    make(&w, ONE);
    start(&w);
    sink_wait(sink(&w), 1);
    fake_stat(&w.proc, 10, "b", 'S', 1, 0, 51);
    stop(&w);
    assert_points(&w, 0, "gym.server.processes", "gym.server.processes" S ": 1\n");
    assert_points(&w, 1, "gym.server.processes", "gym.server.processes" S ": 0\n");
    close_world(&w);
}

/* Processes that come and go between two samples. */
static void test_changes(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    for (int pid = 10; pid < 40; pid++)
        fake_process(&w.proc, pid, "", pid, pid);
    fake_children(&w.proc, 10, "12 14 16 18");
    make(&w, ONE);
    start(&w);
    sink_wait(sink(&w), 1);
    fake_kill(&w.proc, 14);
    fake_kill(&w.proc, 38);
    fake_process(&w.proc, 18, "41", 3, 3);
    fake_process(&w.proc, 41, "", 5, 5);
    fake_process(&w.proc, 9, "", 5, 5);
    stop(&w);
    assert_points(&w, 0, "gym.server.processes", "gym.server.processes" S ": 5\n");
    assert_points(&w, 1, "gym.server.processes", "gym.server.processes" S ": 5\n");
    assert_points(&w, 1, "gym.server.memory.usage",
                  "gym.server.memory.usage" S " memory.type=rss: 47104\n" /* 10+12+16+3+5 */
                  "gym.server.memory.usage" S " memory.type=pss: 47104\n");
    close_world(&w);
}

/* ---- several roots, several servers ---- */

static void test_pids(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    fake_process(&w.proc, 10, "11", 1, 1);
    fake_process(&w.proc, 11, "", 2, 2);
    fake_process(&w.proc, 20, "", 4, 4);
    run(&w, LONG "servers: [{name: a, pids: [20, 10, 11, 30]}, {name: b, type: t, pids: [11]}, "
                 "{name: c, pids: [77]}]");
    assert_points(
        &w, 0, "gym.server.processes",
        "gym.server.processes nemo.gym.server.name=a process.pid=20: 3\n"
        "gym.server.processes nemo.gym.server.name=b nemo.gym.server.type=t process.pid=11: 1\n"
        "gym.server.processes nemo.gym.server.name=c process.pid=77: 0\n");
    assert_points(
        &w, 0, "gym.server.memory.sampled_peak",
        "gym.server.memory.sampled_peak nemo.gym.server.name=a process.pid=20 memory.type=rss: "
        "7168\n"
        "gym.server.memory.sampled_peak nemo.gym.server.name=a process.pid=20 memory.type=pss: "
        "7168\n"
        "gym.server.memory.sampled_peak nemo.gym.server.name=b nemo.gym.server.type=t "
        "process.pid=11 memory.type=rss: 2048\n"
        "gym.server.memory.sampled_peak nemo.gym.server.name=b nemo.gym.server.type=t "
        "process.pid=11 memory.type=pss: 2048\n"
        "gym.server.memory.sampled_peak nemo.gym.server.name=c process.pid=77 memory.type=rss: 0\n"
        "gym.server.memory.sampled_peak nemo.gym.server.name=c process.pid=77 memory.type=pss: "
        "0\n");
    close_world(&w);
}

static void put_command(struct world *w, int pid, const char *words)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    buf_append_str(b, words);
    for (size_t i = 0; i < b->len; i++)
        if (b->data[i] == '|')
            b->data[i] = '\0';
    fake_put_bytes(&w->proc, pid, "cmdline", b->data, b->len);
}

static void test_patterns(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    fake_memory(&w.proc, 10, 1, 1);
    fake_stat(&w.proc, 10, "python", 'S', 1, 0, 50);
    put_command(&w, 10, "python|app.py|--name|one|");
    fake_memory(&w.proc, 9, 2, 2);
    fake_stat(&w.proc, 9, "python", 'S', 10, 0, 60); /* a child with the same command line */
    put_command(&w, 9, "python|app.py|--name|one|");
    fake_memory(&w.proc, 20, 4, 4);
    fake_stat(&w.proc, 20, "x", 'S', 1, 0, 40);
    put_command(&w, 20, "python|app.py|--name|\xff two|");
    fake_memory(&w.proc, 30, 8, 8);
    fake_stat(&w.proc, 30, "kthread", 'S', 2, 0x200000, 1);
    put_command(&w, 30, "app.py");
    make(&w, LONG "servers: [{name: one, command_pattern: '^python app\\.py --name one$'}, {name: "
                  "two, type: t, command_pattern: \"\\uFFFD two\"}, "
                  "{name: all, command_pattern: app}, {name: none, command_pattern: nothing}]");
    start(&w);
    sink_wait(sink(&w), 1);
    put_command(&w, 20, "sh|"); /* it executes something else */
    fake_kill(&w.proc, 10);
    fake_stat(&w.proc, 9, "python", 'S', 1, 0, 60);
    stop(&w);
    assert_points(
        &w, 0, "gym.server.processes",
        "gym.server.processes nemo.gym.server.name=one process.pid=10: 2\n"
        "gym.server.processes nemo.gym.server.name=two nemo.gym.server.type=t process.pid=20: 1\n"
        "gym.server.processes nemo.gym.server.name=all process.pid=20: 3\n");
    assert_points(
        &w, 1, "gym.server.processes",
        "gym.server.processes nemo.gym.server.name=one process.pid=9: 1\n"
        "gym.server.processes nemo.gym.server.name=two nemo.gym.server.type=t process.pid=20: 0\n"
        "gym.server.processes nemo.gym.server.name=all process.pid=9: 1\n");
    close_world(&w);
}

/* ---- discovery ---- */

#define CONFIG                                                                                     \
    "NEMO_GYM_CONFIG_DICT=config_paths: []\nagent:\n  responses_api_agents:\n    simple_agent:\n"  \
    "      entrypoint: app.py\nmodel:\n  responses_api_models:\n    openai_model: {port: 1}\n"     \
    "odd: 5\nempty: {}\n\"two words\": {resources_servers: {x: {url: '${oc.env:HOME}'}}}\n|"

static void put_environment(struct world *w, int pid, const char *words)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    buf_append_str(b, words);
    for (size_t i = 0; i < b->len; i++)
        if (b->data[i] == '|')
            b->data[i] = '\0';
    fake_put_bytes(&w->proc, pid, "environ", b->data, b->len);
}

static void put_gym(struct world *w)
{
    fake_process(&w->proc, 1, "5 6 40", 1, 1);
    fake_process(&w->proc, 5, "10 20 30", 1, 1); /* the orchestrator */
    put_environment(w, 5, "HOME=/root|");
    fake_process(&w->proc, 10, "11 13", 1, 1); /* a shell that starts a server */
    put_command(w, 10,
                "/bin/bash|-c|cd x && NEMO_GYM_CONFIG_DICT='a: b' \\\n NEMO_GYM_CONFIG_PATH=agent "
                "python app.py|");
    put_environment(w, 10, "HOME=/root|");
    fake_process(&w->proc, 11, "12", 10, 10);
    put_environment(w, 11, "HOME=/root|" CONFIG "NEMO_GYM_CONFIG_PATH=agent|X=1|");
    fake_process(&w->proc, 12, "", 100, 100);
    put_environment(w, 12, "HOME=/root|" CONFIG "NEMO_GYM_CONFIG_PATH=agent|X=1|");
    fake_process(&w->proc, 13, "", 1000, 1000);
    fake_process(&w->proc, 20, "", 2, 2);
    put_environment(w, 20, "XNEMO_GYM_CONFIG_PATH=no|NEMO_GYM_CONFIG_PATH=model|" CONFIG);
    fake_process(&w->proc, 30, "31 32", 3, 3);
    put_command(w, 30, "sh|-c|NEMO_GYM_CONFIG_PATH=odd x & NEMO_GYM_CONFIG_PATH=empty x; wait|");
    fake_process(&w->proc, 31, "", 30, 30);
    put_environment(w, 31, CONFIG "NEMO_GYM_CONFIG_PATH=odd|");
    fake_process(&w->proc, 32, "", 300, 300);
    put_environment(w, 32, "NEMO_GYM_CONFIG_PATH=empty|NEMO_GYM_CONFIG_DICT=[not: {yaml|");
    fake_process(&w->proc, 40, "", 4, 4);
    put_environment(w, 40, "NEMO_GYM_CONFIG_PATH=two words|" CONFIG);
}

#define AGENT                                                                                      \
    "gym.server.processes nemo.gym.server.name=agent nemo.gym.server.type=responses_api_agents "   \
    "process.pid=10: 4\n"
#define MODEL                                                                                      \
    "gym.server.processes nemo.gym.server.name=model nemo.gym.server.type=responses_api_models "   \
    "process.pid=20: 1\n"
#define ODD                                                                                        \
    "gym.server.processes nemo.gym.server.name=odd process.pid=31: 1\n"                            \
    "gym.server.processes nemo.gym.server.name=empty process.pid=32: 1\n"
#define TWO                                                                                        \
    "gym.server.processes nemo.gym.server.name=two words nemo.gym.server.type=resources_servers "  \
    "process.pid=40: 1\n"

static void test_discovery(void **state)
{
    (void)state;
    static const struct {
        const char *config, *want;
    } cases[] = {
        {"discover: {root_pid: 5}", MODEL AGENT ODD},
        {"discover: {root_pid: 10}",
         "gym.server.processes nemo.gym.server.name=agent "
         "nemo.gym.server.type=responses_api_agents process.pid=11: 2\n"},
        {"discover: {root_pid: 20}", MODEL}, /* the root itself */
        {"discover: {root_pid: 6}", ""},
        {"interval: 1h", TWO MODEL AGENT ODD},
        {"discover: ", TWO MODEL AGENT ODD},
        {"discover: {enabled: false}, servers: [{name: x, pids: [6]}]",
         "gym.server.processes nemo.gym.server.name=x process.pid=6: 0\n"},
        /* Beside given ones: a name without roots is for discovery, another one is as it is. */
        {"discover: {root_pid: 5}, servers: [{name: model, type: mine}, {name: agent, pids: [12]}]",
         "gym.server.processes nemo.gym.server.name=model nemo.gym.server.type=mine "
         "process.pid=20: 1\n"
         "gym.server.processes nemo.gym.server.name=agent process.pid=12: 1\n" ODD},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world w;
        char config[512];
        open_world(&w);
        put_gym(&w);
        snprintf(config, sizeof(config), "%s%s", strstr(cases[i].config, "interval") ? "" : LONG,
                 cases[i].config);
        run(&w, config);
        assert_points(&w, 0, "gym.server.processes", cases[i].want);
        assert_points(&w, 1, "gym.server.processes", cases[i].want);
        close_world(&w);
    }
}

/* A server that comes later, one that ends, and one that is started again under another pid. */
static void test_discovery_of_changes(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    put_gym(&w);
    make(&w, LONG "discover: {root_pid: 5}");
    start(&w);
    sink_wait(sink(&w), 1);
    fake_kill(&w.proc, 20);
    fake_kill(&w.proc, 31);
    fake_children(&w.proc, 5, "10 21 50");
    fake_process(&w.proc, 21, "", 1, 1);
    put_environment(&w, 21, "NEMO_GYM_CONFIG_PATH=model|");
    fake_process(&w.proc, 50, "", 1, 1);
    put_environment(&w, 50, "NEMO_GYM_CONFIG_PATH=new\xff|" CONFIG);
    stop(&w);
    assert_points(&w, 1, "gym.server.processes",
                  "gym.server.processes nemo.gym.server.name=model "
                  "nemo.gym.server.type=responses_api_models process.pid=21: 1\n" AGENT
                  "gym.server.processes nemo.gym.server.name=odd process.pid=31: 0\n"
                  "gym.server.processes nemo.gym.server.name=empty process.pid=32: 1\n"
                  "gym.server.processes nemo.gym.server.name=new\xef\xbf\xbd process.pid=50: 1\n");
    close_world(&w);
}

/* ---- what Gym sends ---- */

static struct buf *captured(void)
{
    FILE *f = fopen(TEST_DATA "/golden/otlp-file/gym-024-metrics.http.pb", "r");
    struct buf *b = buf_new(0);
    assert_non_null(f);
    assert_int_equal(buf_reserve(b, 65536), 0);
    buf_commit(b, fread(buf_tail(b), 1, 65536, f));
    fclose(f);
    return b;
}

/* The number in the line of `text` that starts with `start`, in kB. */
static long kib_of(const char *text, const char *start)
{
    const char *line = strstr(text, start);
    assert_non_null(line);
    const char *end = strchr(line + 1, '\n');
    while (end[-1] != ' ')
        end--;
    return atol(end) / 1024;
}

/* The processes that a captured sample of Gym's own must have come from: the same comes out, to the
 * letter. */
static void test_as_gym(void **state)
{
    (void)state;
    static const char *const names[] = {
        "example_single_tool_call nemo.gym.server.type=resources_servers",
        "example_single_tool_call_simple_agent nemo.gym.server.type=responses_api_agents",
        "example_single_tool_call_environment_server nemo.gym.server.type=environment_servers",
        "policy_model nemo.gym.server.type=responses_api_models"};
    static const int pids[] = {603, 611, 612, 618};
    struct world w;
    _cleanup_buf_ struct buf *pb = captured(), *want = buf_new(0), *got = buf_new(0),
                             *config = buf_new(0);
    show_metrics(buf_bytes(pb), "gym.host.memory.", true, want);
    show_metrics(buf_bytes(pb), "gym.server.", true, want);
    const char *text = buf_str(want);
    open_world(&w);
    for (int sample = 0; sample < 2; sample++) { /* the peaks first */
        char line[256], meminfo[256];
        const char *kind = sample ? "usage" : "sampled_peak";
        snprintf(line, sizeof(line), "\ngym.host.memory.%s: ", kind);
        const long total = kib_of(text, "\ngym.host.memory.total: "), used = kib_of(text, line);
        snprintf(meminfo, sizeof(meminfo), "MemTotal: %ld kB\nMemAvailable: %ld kB\n", total,
                 total - used);
        fake_put(&w.proc, 0, "meminfo", meminfo);
        for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
            long kib[2];
            for (int k = 0; k < 2; k++) {
                snprintf(line, sizeof(line),
                         "\ngym.server.memory.%s nemo.gym.server.name=%s process.pid=%d "
                         "memory.type=%s: ",
                         kind, names[i], pids[i], k ? "pss" : "rss");
                kib[k] = kib_of(text, line);
            }
            fake_process(&w.proc, pids[i], "", kib[0] - 30, kib[1] - 20);
            for (int child = 1; child <= 2; child++)
                fake_process(&w.proc, 1000 * child + pids[i], "", 15, 10);
            snprintf(line, sizeof(line), "%d %d", 1000 + pids[i], 2000 + pids[i]);
            fake_children(&w.proc, pids[i], line);
            if (sample == 0)
                buf_printf(config, "%s{name: %.*s, type: %s, pids: [%d]}", i ? ", " : "",
                           (int)strcspn(names[i], " "), names[i], strrchr(names[i], '=') + 1,
                           pids[i]);
        }
        if (sample == 0) {
            buf_append_str(got, LONG "servers: [");
            buf_append_str(got, buf_str(config));
            buf_append_str(got, "]");
            make(&w, buf_str(got));
            start(&w);
            sink_wait(sink(&w), 1);
        }
    }
    stop(&w);
    buf_truncate(got, 0);
    show_metrics(buf_bytes(sink(&w)->taken[1]->segs[0]), "gym.", true, got);
    assert_string_equal(buf_str(got), buf_str(want));
    close_world(&w);
}

/* ---- the host ---- */

static void test_host(void **state)
{
    (void)state;
    static const struct {
        const char *meminfo, *want; /* "" = no points at all */
    } cases[] = {
        {"MemTotal: 1000 kB\nMemFree: 100 kB\nCached: 50 kB\n",
         "gym.host.memory.available: 153600\n"}, /* before Linux 3.14 */
        {"MemTotal: 1000 kB\nMemFree: 100 kB\n", "gym.host.memory.available: 102400\n"},
        {"MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 5000 kB\n",
         "gym.host.memory.available: 102400\n"},
        {"MemTotal: 1000 kB\nMemAvailable: 5000 kB\n", ""},
        {"MemTotal: 1000 kB\n", ""},
        {"MemAvailable: 1000 kB\n", ""},
        {"MemTotal: x kB\nMemAvailable: 1 kB\n", ""},
        {"", ""},
        {"\n\n:\n", ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world w;
        open_world(&w);
        fake_process(&w.proc, 10, "", 1, 1);
        fake_put(&w.proc, 0, "meminfo", cases[i].meminfo);
        run(&w, ONE);
        assert_points(&w, 0, "gym.host.memory.available", cases[i].want);
        assert_points(&w, 0, "gym.server.processes", "gym.server.processes" S ": 1\n");
        close_world(&w);
    }
}

static void test_nothing_to_tell(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    fake_put(&w.proc, 0, "meminfo", "");
    make(&w, LONG "discover: {}");
    start(&w);
    stop(&w);
    assert_int_equal(sink_offers(sink(&w)), 0);
    close_world(&w);
}

/* ---- samples and the pipeline ---- */

static int64_t counted(struct world *w, const char *what)
{
    struct receiver_metrics m;
    receiver_metrics_get(w->r.host, "gym_memory", "", SIGNAL_METRICS, &m);
    return metric_value(strcmp(what, "accepted") == 0 ? m.accepted : m.refused);
}

static void test_interval(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    make(&w, "interval: 20ms");
    start(&w);
    sink_wait(sink(&w), 10);
    stop(&w);
    const unsigned n = sink_taken(sink(&w));
    assert_int_equal(counted(&w, "accepted"), 4 * n);
    assert_int_equal(counted(&w, "refused"), 0);
    stop(&w);
    assert_int_equal(sink_taken(sink(&w)), n);
    close_world(&w);
}

/* A refused sample is offered again until it is taken. */
static void test_retry(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    make(&w, LONG "discover: {}");
    sink(&w)->refusals = 2;
    start(&w);
    sink_wait(sink(&w), 3);
    assert_soon(sink_taken(sink(&w)) == 1);
    stop(&w);
    assert_int_equal(sink_taken(sink(&w)), 2);
    assert_int_equal(counted(&w, "accepted"), 8);
    assert_int_equal(counted(&w, "refused"), 0);
    close_world(&w);
}

/* One of several branches refused it for good, another one took it later. */
static void test_refused_by_one(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    make(&w, LONG "discover: {}");
    sink(&w)->refusals = 1;
    sink(&w)->also_lost = true;
    start(&w);
    assert_soon(sink_taken(sink(&w)) == 1);
    stop(&w);
    assert_int_equal(sink_taken(sink(&w)), 2);
    assert_int_equal(counted(&w, "accepted"), 4);
    assert_int_equal(counted(&w, "refused"), 4);
    close_world(&w);
}

/* ... or until there is a newer one. */
static void test_only_the_newest(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    make(&w, "interval: 10ms");
    sink_set(sink(&w), VERDICT_RETRY);
    start(&w);
    assert_soon(counted(&w, "refused") >= 4 * 5);
    sink_set(sink(&w), VERDICT_OK);
    assert_soon(sink_taken(sink(&w)) > 0);
    stop(&w);
    assert_int_equal(counted(&w, "accepted"), 4 * sink_taken(sink(&w)));
    close_world(&w);
}

static void test_refused_until_the_end(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    make(&w, LONG "discover: {}");
    sink_set(sink(&w), VERDICT_RETRY);
    start(&w);
    sink_wait(sink(&w), 1);
    receiver_gym_memory.stop(w.r.c, clock_now_ns() + NS_PER_S / 4);
    assert_int_equal(counted(&w, "refused"), 8);
    assert_true(sink_offers(sink(&w)) > 2);
    close_world(&w);
}

static void test_rejected(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    make(&w, LONG "discover: {}");
    sink_set(sink(&w), VERDICT_REJECT);
    start(&w);
    sink_wait(sink(&w), 1);
    stop(&w);
    assert_int_equal(sink_offers(sink(&w)), 2);
    assert_int_equal(counted(&w, "refused"), 8);
    close_world(&w);
}

/* Answers that come later, also after the stop. */
static void test_pending(void **state)
{
    (void)state;
    struct world w;
    const struct outcome partly = {.rejected = 1};
    open_world(&w);
    make(&w, LONG "discover: {}");
    sink_set(sink(&w), VERDICT_PENDING);
    start(&w);
    sink_wait(sink(&w), 1);
    ack_done(sink(&w)->waiting[0], VERDICT_OK, &partly);
    assert_int_equal(counted(&w, "accepted"), 3);
    assert_int_equal(counted(&w, "refused"), 1);
    receiver_gym_memory.stop(w.r.c, clock_now_ns() + NS_PER_S / 10);
    assert_int_equal(sink(&w)->nwaiting, 2);
    ack_done(sink(&w)->waiting[1], VERDICT_RETRY, NULL);
    assert_int_equal(counted(&w, "refused"), 5);
    close_world(&w);
}

/* An answer that never comes does not fill the memory. */
static void test_many_pending(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    make(&w, "interval: 10ms");
    sink_set(sink(&w), VERDICT_PENDING);
    start(&w);
    assert_soon(counted(&w, "refused") >= 4);
    receiver_gym_memory.stop(w.r.c, clock_now_ns());
    assert_int_equal(sink(&w)->nwaiting, 64);
    for (int i = 0; i < 64; i++)
        ack_done(sink(&w)->waiting[i], VERDICT_OK, NULL);
    assert_int_equal(counted(&w, "accepted"), 4 * 64);
    close_world(&w);
}

/* ---- configuration ---- */

static void test_config(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *path, *text; /* text NULL: it is good */
    } cases[] = {
        {"{}", "", NULL},
        {"{interval: 10ms, discover: {root_pid: 4194304}}", "", NULL},
        {"{servers: [{name: a, type: t, pids: [1, 2]}, {name: b, command_pattern: '(?i)x'}]}", "",
         NULL},
        {"{servers: [{name: a, type: t}], discover: }", "", NULL},
        {"{interval: 9ms}", "x::interval", "10ms"},
        {"{interval: 0s}", "x::interval", "10ms"},
        {"{discover: {root_pid: 0}}", "x::discover::root_pid", "1"},
        {"{discover: {root: 0}}", "x::discover", "root"},
        {"{servers: [{type: t, pids: [1]}]}", "x::servers[0]::name", ""},
        {"{servers: [{name: a, pids: [0]}]}", "x::servers[0]::pids[0]", "1"},
        {"{servers: [{name: a, pids: [x]}]}", "x::servers[0]::pids[0]", "int"},
        {"{servers: [{name: a}]}", "servers[0]", "pids or command_pattern must be given"},
        {"{servers: [{name: a, pids: [1], command_pattern: x}]}", "servers[0]", "not both"},
        {"{servers: [{name: a, pids: [1]}, {name: a, pids: [2]}]}", "servers[1]",
         "\"a\" is used twice"},
        {"{servers: [{name: a, command_pattern: '('}]}", "servers[0]::command_pattern", ""},
        {"{servers: [{name: a, command_pattern: '(?=x)'}]}", "servers[0]::command_pattern", ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct rig r = {0};
        struct err e = {.text = ""};
        void *bound;
        const int rc = rig_bind(&r, &receiver_gym_memory, cases[i].yaml, &bound, &e);
        if (rc != (cases[i].text ? -EINVAL : 0) ||
            (cases[i].text &&
             (strcmp(e.path, cases[i].path) != 0 || !strstr(e.text, cases[i].text))))
            fail_msg("%s: %d %s: %s", cases[i].yaml, rc, e.path, e.text);
        config_free(r.config);
    }
}

static void test_no_proc(void **state)
{
    (void)state;
    struct rig r = {0};
    struct err e = {.text = ""};
    rig_make(&r, &receiver_gym_memory, "gym_memory", SIGNAL_METRICS, 1,
             "{root_path: /nonexistent}");
    receiver_gym_memory.stop(r.c, clock_now_ns()); /* legal without a start */
    assert_int_equal(receiver_gym_memory.start(r.c, &e), -ENOENT);
    assert_string_equal(e.text, "cannot open \"/nonexistent/proc\": No such file or directory");
    receiver_gym_memory.stop(r.c, clock_now_ns());
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_peaks_and_the_end),
        cmocka_unit_test(test_without_pss),
        cmocka_unit_test(test_not_measured),
        cmocka_unit_test(test_circles),
        cmocka_unit_test(test_huge_numbers),
        cmocka_unit_test(test_stat),
        cmocka_unit_test(test_pid_used_again),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_pids),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_discovery),
        cmocka_unit_test(test_discovery_of_changes),
        cmocka_unit_test(test_as_gym),
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_nothing_to_tell),
        cmocka_unit_test(test_interval),
        cmocka_unit_test(test_retry),
        cmocka_unit_test(test_refused_by_one),
        cmocka_unit_test(test_only_the_newest),
        cmocka_unit_test(test_refused_until_the_end),
        cmocka_unit_test(test_rejected),
        cmocka_unit_test(test_pending),
        cmocka_unit_test(test_many_pending),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_no_proc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
