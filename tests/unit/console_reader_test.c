/* Framing: what is found in streams of all kinds, in any cut, and how a reader goes on elsewhere.
 */
#include "console_rig.h"

/* Records as they are printed: compact; indented in lines that begin with P. */
#define SPAN(name)                                                                                 \
    "{\"name\": \"" name                                                                           \
    "\", \"context\": {\"trace_id\": \"0x01\", \"span_id\": \"0x02\", \"trace_state\": \"[]\"}, "  \
    "\"kind\": \"SpanKind.INTERNAL\", \"events\": [{\"name\": \"e\", \"attributes\": {}}]}"
#define LOG(body) "{\"body\": \"" body "\", \"observed_timestamp\": null}"
#define METRIC(name)                                                                               \
    "{\"resource_metrics\": [{\"resource\": {}, \"scope_metrics\": [{\"metrics\": [{\"name\": "    \
    "\"" name "\", \"data\": {\"data_points\": [{\"value\": 1}]}}]}]}]}"
#define BLOCK_1(P, name) P "{\n" P "    \"name\": \"" name "\",\n"
#define BLOCK_2(P) P "    \"context\": {\n" P "        \"trace_id\": \"0x01\",\n"
#define BLOCK_3(P)                                                                                 \
    P "        \"span_id\": \"0x02\"\n" P "    },\n" P "    \"kind\": \"SpanKind.SERVER\",\n"
#define BLOCK_4(P)                                                                                 \
    P "    \"links\": [],\n" P "    \"attributes\": {\n" P "        \"k\": [\n" P                  \
      "            1\n" P "        ]\n" P "    }\n" P "}\n"
#define BLOCK(P, name) BLOCK_1(P, name) BLOCK_2(P) BLOCK_3(P) BLOCK_4(P)
#define OTLP                                                                                       \
    "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":[{\"name\":"     \
    "\"o\"}"                                                                                       \
    ",{\"name\":\"p\"}]}]}]}"

static const struct {
    const char *in, *records, *plain;
    unsigned malformed;
    bool remembers; /* by prefixes of lines before, which a later reader does not know */
} cases[] = {
    {"", "", "", 0},
    {"hello\nworld\r\n\n", "", "hello\nworld\r\n\n", 0},
    {"no end", "", "no end", 0},
    {SPAN("a") "\n", "S(a)", "", 0},
    {SPAN("a") "\r\n" LOG("b") "\n" METRIC("c") "\n" OTLP "\n", "S(a)L(b)M(c)S(o)S(p)", "", 0},
    {SPAN("a"), "S(a)", "", 0},
    {"(srv) " SPAN("a") "\n(b) " METRIC("m") "\n(c) " OTLP "\n", "S(a@srv)M(m@b)S(o@c)S(p@c)", "",
     0},
    {BLOCK("", "a"), "S(a)", "", 0},
    {BLOCK("(srv) ", "a"), "S(a@srv)", "", 0},
    {"x\n" BLOCK("", "a") "y\n" BLOCK("", "b") SPAN("c") "\nz\n", "S(a)S(b)S(c)", "x\ny\nz\n", 0},
    /* colours */
    {"\x1b[32m" SPAN("a") "\x1b[0m\n\x1b[1mbold\x1b[0m\n", "S(a)", "\x1b[1mbold\x1b[0m\n", 0},
    {"\x1b[0m\n{\n\x1b[0m\n" SPAN("a") "\n", "S(a)", "\x1b[0m\n\x1b[0m\n{\n", 0},
    {BLOCK("\x1b[36m(srv)\x1b[0m ", "a"), "S(a@srv)", "", 0},
    /* several records on a line, formatters that forget the line end */
    {SPAN("a") SPAN("b") LOG("c") "\n", "S(a)S(b)L(c)", "", 0},
    {SPAN("a") " " SPAN("b") "  \n" SPAN("c"), "S(a)S(b)S(c)", "", 0},
    {"{\n    \"body\": 1,\n    \"observed_timestamp\": null\n}{\n    \"body\": 2,\n    "
     "\"observed_timestamp\": null\n}\n",
     "L(1)L(2)", "", 0},
    /* behind other text on the line */
    {"50%|##   | " SPAN("a") "\n", "S(a)", "50%|##   | ", 0},
    {"(srv) 50%|##   | " SPAN("a") "\n", "S(a@srv)", "(srv) 50%|##   | ", 0},
    {"\r 0%\r 50%" SPAN("a") "\n 100%\n", "S(a)", "\r 0%\r 50% 100%\n", 0},
    {"50% (srv) " SPAN("a") "\n", "S(a@srv)", "50% ", 0},
    {"50% " BLOCK("", "a") "rest\n", "S(a)", "50% rest\n", 0},
    {SPAN("a") "rest of the line\n", "S(a)", "rest of the line\n", 0},
    /* braces that are no JSON */
    {"{\nplain\n" SPAN("a") "\n" BLOCK("", "b") "tail\n", "S(a)S(b)", "plain\ntail\n{\n", 0},
    {"{\n    'config': 1,\n}\n" SPAN("a") "\n", "S(a)", "{\n    'config': 1,\n}\n", 0},
    {"if (x) {\n    return;\n}\n" SPAN("a") "\n", "S(a)", "if (x) {\n    return;\n}\n", 0},
    {"{not json}\n" SPAN("a") "\n{\n{\n{\n" SPAN("b") "\n", "S(a)S(b)", "{not json}\n{\n{\n{\n", 0},
    {"{\n\"unfinished\": [\nplain\n" BLOCK("", "a") LOG("b") "\n", "S(a)L(b)",
     "plain\n{\n\"unfinished\": [\n", 0},
    {"{\n    \"unfinished\": [\n" BLOCK("", "a") BLOCK("", "b"), "S(a)S(b)",
     "{\n    \"unfinished\": [\n", 0},
    /* other JSON */
    {"{\n    \"reward\": 1.0,\n    \"list\": [\n        {\n            \"a\": {}\n        }\n    "
     "]\n}\n",
     "",
     "{\n    \"reward\": 1.0,\n    \"list\": [\n        {\n            \"a\": {}\n    "
     "    }\n    ]\n}\n",
     0},
    {"{\"level\": \"info\"}\n{}\n{\"span\": " SPAN("inner") "}\n", "",
     "{\"level\": \"info\"}\n{}\n{\"span\": " SPAN("inner") "}\n", 0},
    /* layouts of other printers */
    {"{\"name\": \"a\",\n \"context\": {\"trace_id\": \"0x1\",\n  \"span_id\": \"0x2\"},\n "
     "\"kind\": "
     "\"SpanKind.CLIENT\"}\n",
     "S(a)", "", 0},
    {"{\n\"name\": \"a\",\n\"context\": {\n\"trace_id\": \"0x1\",\n\"span_id\": "
     "\"0x2\"\n},\n\"kind\": "
     "\"SpanKind.CLIENT\"\n}\n" BLOCK("", "b"),
     "S(a)S(b)", "", 0},
    {"{\n\t\"body\": 1,\n\t\"observed_timestamp\": null\n}\n", "L(1)", "", 0},
    {"   " SPAN("a") "\n", "S(a)", "", 0},
    /* cut by others, with a prefix for each */
    {BLOCK_1("(s1) ", "a") BLOCK_1("(s2) ", "b") BLOCK_2("(s1) ") "plain\n" BLOCK_2("(s2) ")
         BLOCK_3("(s2) ") BLOCK_3("(s1) ") BLOCK_4("(s1) ") "(s2) text\n" BLOCK_4("(s2) "),
     "S(a@s1)S(b@s2)", "plain\n(s2) text\n", 0},
    /* cut by others, without */
    {BLOCK_1("", "a") "2026-11-29 INFO line\n" BLOCK_2("")
         SPAN("b") "\n" BLOCK_3("") "{\"json\": 1}\n\n" BLOCK_4(""),
     "S(b)S(a)", "2026-11-29 INFO line\n{\"json\": 1}\n\n", 0},
    {BLOCK_1("", "a") BLOCK_2("") BLOCK("", "b") BLOCK_3("") BLOCK_4(""), "S(b)S(a)", "", 0},
    {BLOCK_1("", "a") BLOCK_1("", "b") BLOCK_2("") BLOCK_3("") BLOCK_4("") BLOCK_2("") BLOCK_3("")
         BLOCK_4(""),
     "S(b)S(a)", "", 0},
    /* cut inside of a line */
    {"{\"name\": \"a\", \"context\": {\"trace_id\": \"0x0" SPAN(
         "b") "\n1\", \"span_id\": \"0x2\"}, "
              "\"kind\": \"SpanKind.CLIENT\"}\n" SPAN("c") "\n",
     "S(b)S(a)S(c)", "", 0},
    {"(s1) {\"name\": \"a\", \"context\": {\"trace_id\": \"0x0(s2) " SPAN("b") "\n(s2) " SPAN(
         "c") "\n1\", \"span_id\": \"0x2\"}, \"kind\": \"SpanKind.CLIENT\"}\n",
     "S(b@s2)S(c@s2)S(a@s1)", "", 0},
    {"{\n    \"name\": \"a\",\n    \"context\": {\n        \"trace_id\": \"0x0" BLOCK(
         "", "b") "1\",\n" BLOCK_3("") BLOCK_4(""),
     "S(b)S(a)", "", 0},
    {"(s1) {\n(s1)     \"name\": \"a\",\n(s1)     \"context\": {\n(s1)         \"trace_id\": "
     "\"0x0(s2) {\n(s2)     \"body\": 7,\n(s2)     \"observed_timestamp\": null\n(s2) "
     "}\n1\",\n" BLOCK_3("(s1) ") BLOCK_4("(s1) "),
     "L(7@s2)S(a@s1)", "", 0},
    /* by a line of text: its prefix shows where it begins */
    {"(s2) text\n(s1) {\n(s1)     \"name\": \"a\",\n(s1)     \"context\": {\n(s1)         "
     "\"trace_id\": "
     "\"0x0(s2) INFO: (s3) more\n1\",\n" BLOCK_3("(s1) ") BLOCK_4("(s1) "),
     "S(a@s1)", "(s2) text\n(s2) INFO: (s3) more\n", 0, true},
    {"(s2) text\n(s1) {\"name\": \"a\", \"context\": {\"trace_id\": \"0x0(s2) INFO\n1\", "
     "\"span_id\": "
     "\"0x2\"}, \"kind\": \"SpanKind.CLIENT\"}\n",
     "S(a@s1)", "(s2) text\n(s2) INFO\n", 0, true},
    {"(s2) text\n{\"name\": \"a\"} (s2) INFO\n(s2) x (s2) y\n", "",
     "(s2) text\n{\"name\": \"a\"} (s2) INFO\n(s2) x (s2) y\n", 0},
    /* halves of two processes in one: both names have been seen as prefixes */
    {"(s2) text\n(s1) {\"resource\": {\"attributes\": {\"nemo.gym.server.name\": \"s2\"}}, "
     "\"body\": 1, \"observed_timestamp\": "
     "null}\n(s1) {\n(s1)     \"body\": 2,\n(s1)     \"observed_timestamp\": null,\n(s1)     "
     "\"resource\": {\n(s1)         "
     "\"nemo.gym.server.name\": \"s2\"\n(s1)     }\n(s1) }\n(s1) {\"resource\": {\"attributes\": "
     "{\"nemo.gym.server.name\": "
     "\"other\"}}, \"body\": 3, \"observed_timestamp\": null}\n",
     "L(3@other)", NULL, 2, true},
    /* what else stands in brackets is no name of a server */
    {"(pid=12, ip=::1) " SPAN("a") "\n" BLOCK("(Some Actor) ", "b"), "S(a)S(b)", "", 0},
    /* halves: of a process that died */
    {BLOCK_1("", "a") BLOCK_2("") BLOCK("", "b") "bye\n", "S(b)",
     "bye\n" BLOCK_1("", "a") BLOCK_2(""), 0},
    {BLOCK_1("", "a") BLOCK_2("") BLOCK_3("") BLOCK("", "b"), "S(b)",
     BLOCK_1("", "a") BLOCK_2("") BLOCK_3(""), 1},
    {"{\"name\": \"a\", \"cont" SPAN("b") "\n" SPAN("c") "\n", "S(b)S(c)",
     "{\"name\": \"a\", \"cont", 0},
    {"{\"name\": \"a\", \"cont\n" SPAN("c") "\n", "S(c)", "{\"name\": \"a\", \"cont\n", 0},
    {"        \"end of one\": 1\n    }\n}\n" SPAN("a") "\n", "S(a)",
     "        \"end of one\": 1\n    }\n}\n", 0},
    /* malformed */
    {"{\"context\": {}, \"kind\": \"SpanKind.SERVER\"}\n" SPAN("a") "\n", "S(a)",
     "{\"context\": {}, \"kind\": \"SpanKind.SERVER\"}\n", 1},
    {"{\"resource_metrics\": 1}\n{\"resourceLogs\": 1}\n", "",
     "{\"resource_metrics\": 1}\n{\"resourceLogs\": 1}\n", 2},
    {BLOCK_1("", "a") BLOCK_3("") BLOCK_4("") BLOCK("", "b"), "S(b)",
     BLOCK_1("", "a") BLOCK_3("") BLOCK_4(""), 0},
    /* one process' line is glued to another's, and what was torn off comes behind it: both are
       given up */
    {BLOCK_1("(s1) ", "a") BLOCK_1("(s2) ", "b")
         BLOCK_2("(s1) ") "(s1)         \"span_id\": \"0x0\n" BLOCK_2(
             "(s2) ") "2\"\n(s1)     },\n(s1)     \"kind\": \"SpanKind.SERVER\"\n(s1) "
                      "}\n" BLOCK_3("(s2) ") BLOCK_4("(s2) ") BLOCK("", "c"),
     "S(c)", NULL, 0},
    {BLOCK_1("", "a") BLOCK_2("") BLOCK_3("") "    \"broken\": x,\n" BLOCK_4("") BLOCK("", "b"),
     "S(b)", BLOCK_1("", "a") BLOCK_2("") BLOCK_3("") "    \"broken\": x,\n" BLOCK_4(""), 1},
};

/* A list of records such as "S(a)L(b)" with each signal together. */
static const char *by_signal(const char *list, struct buf *out)
{
    for (const char *letter = "SML"; *letter; letter++) {
        for (const char *p = list; *p; p = strchr(p, ')') + 1)
            if (*p == *letter)
                buf_append(out, p, (size_t)(strchr(p, ')') + 1 - p));
    }
    return buf_str(out);
}

/* `plain` NULL: not looked at. */
static void assert_notes(const char *in, struct notes *n, const char *records, const char *plain)
{
    plain = plain ? plain : buf_str(n->plain);
    _cleanup_buf_ struct buf *got = buf_new(0), *want = buf_new(0);
    if (strcmp(by_signal(buf_str(n->records), got), by_signal(records, want)) != 0 ||
        strcmp(buf_str(n->plain), plain) != 0)
        fail_msg("\n--- in\n%s\n--- got %s, not %s\n%s\n--- not\n%s\n--- as\n%s", in,
                 buf_str(n->records), records, buf_str(n->plain), plain, buf_str(n->all));
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct notes n;
        notes_init(&n);
        struct console_reader *r = notes_reader(&n, 0);
        feed_all(r, bytes_str(cases[i].in), SIZE_MAX);
        assert_int_equal(console_flush(r, false), 0);
        assert_notes(cases[i].in, &n, cases[i].records, cases[i].plain);
        assert_int_equal(console_pending(r), 0);
        if (console_reader_stats(r)->malformed != cases[i].malformed)
            fail_msg("%s: %lu malformed", cases[i].in, console_reader_stats(r)->malformed);
        console_reader_free(r);
        notes_done(&n);
    }
}

/* Any cut gives the same. */
static void test_cuts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bytes in = bytes_str(cases[i].in);
        for (size_t cut = 0; cut <= in.len; cut++) {
            struct notes n;
            notes_init(&n);
            struct console_reader *r = notes_reader(&n, 0);
            if (cut == 0) /* each byte alone */
                feed_all(r, in, 1);
            feed_all(r, bytes_of(in.data, cut), SIZE_MAX);
            if (cut)
                feed_all(r, bytes_of(in.data + cut, in.len - cut), SIZE_MAX);
            assert_int_equal(console_flush(r, false), 0);
            assert_notes(cases[i].in, &n, cases[i].records, cases[i].plain);
            assert_int_equal(console_reader_stats(r)->malformed, cases[i].malformed);
            console_reader_free(r);
            notes_done(&n);
        }
    }
}

/* At any place another reader goes on with what was held. */
static void test_going_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bytes in = bytes_str(cases[i].in);
        for (size_t cut = 0; cut <= in.len && !cases[i].remembers; cut++) {
            struct notes n;
            struct console_range held[64];
            size_t sum = 0;
            notes_init(&n);
            struct console_reader *r = notes_reader(&n, 0);
            feed_all(r, bytes_of(in.data, cut), SIZE_MAX);
            size_t count = console_held(r, held, ARRAY_SIZE(held));
            assert_true(count <= ARRAY_SIZE(held));
            for (size_t k = 0; k < count; k++)
                sum += held[k].len;
            assert_int_equal(sum, console_pending(r));
            console_reader_free(r);
            r = notes_reader(&n, 0);
            for (size_t k = 0; k < count; k++) {
                console_reader_seek(r, held[k].offset);
                feed_all(r, bytes_of(in.data + held[k].offset, held[k].len), SIZE_MAX);
            }
            assert_int_equal(console_pending(r), sum);
            console_reader_seek(r, cut);
            feed_all(r, bytes_of(in.data + cut, in.len - cut), SIZE_MAX);
            assert_int_equal(console_flush(r, false), 0);
            assert_notes(cases[i].in, &n, cases[i].records, cases[i].plain);
            console_reader_free(r);
            notes_done(&n);
        }
    }
}

/* At the end of a file that may grow, what is complete goes and the rest stays. */
static void test_flush_keeps(void **state)
{
    (void)state;
    struct notes n;
    notes_init(&n);
    struct console_reader *r = notes_reader(&n, 0);
    feed_all(r, bytes_str("text\n" BLOCK_1("", "a") BLOCK_2("")), SIZE_MAX);
    assert_int_equal(console_flush(r, true), 0);
    assert_string_equal(buf_str(n.all), "[text\n]");
    feed_all(r, bytes_str(BLOCK_3("") "    \"links\": []\n}"), SIZE_MAX);
    assert_string_equal(buf_str(n.all), "[text\n]");
    assert_int_equal(console_flush(r, true), 0);
    assert_string_equal(buf_str(n.all), "[text\n]S(a)");
    feed_all(r, bytes_str("\n{\"bo"), SIZE_MAX);
    assert_int_equal(console_flush(r, true), 0);
    feed_all(r, bytes_str("dy\": 1, \"observed_timestamp\": null}"), SIZE_MAX);
    assert_int_equal(console_flush(r, true), 0);
    assert_string_equal(buf_str(n.all), "[text\n]S(a)L(1)");
    assert_int_equal(console_pending(r), 0);
    feed_all(r, bytes_str("\nmore"), SIZE_MAX);
    assert_int_equal(console_flush(r, true), 0);
    assert_int_equal(console_pending(r), 4);
    assert_int_equal(console_flush(r, false), 0);
    assert_string_equal(buf_str(n.all), "[text\n]S(a)L(1)[more]");
    assert_int_equal(console_reader_stats(r)->records[SIGNAL_TRACES], 1);
    assert_int_equal(console_reader_stats(r)->records[SIGNAL_LOGS], 1);
    assert_int_equal(console_reader_stats(r)->plain_lines, 2);
    console_reader_free(r);
    notes_done(&n);
}

static void test_prompts(void **state)
{
    (void)state;
    struct notes n;
    notes_init(&n);
    struct console_reader *r = notes_reader(&n, 0);
    feed_all(r, bytes_str("go on? "), SIZE_MAX);
    assert_string_equal(buf_str(n.all), "");
    assert_int_equal(console_flush_text(r), 0);
    assert_string_equal(buf_str(n.all), "[go on? ]");
    feed_all(r, bytes_str("\n"), SIZE_MAX);
    assert_string_equal(buf_str(n.all), "[go on? ][\n]");
    feed_all(r, bytes_str("10%"), SIZE_MAX);
    assert_int_equal(console_flush_text(r), 0);
    feed_all(r, bytes_str(SPAN("a") "\n{\"half"), SIZE_MAX);
    assert_int_equal(console_flush_text(r), 0);
    assert_string_equal(buf_str(n.all), "[go on? ][\n][10%]S(a)");
    assert_int_equal(console_pending(r), 6);
    console_reader_free(r);
    notes_done(&n);
}

/* Neighbours with the same resource share an entry; it ends where another one comes. */
static unsigned entries_seen, batches_seen;

static int count_entries(void *ctx, struct batch *b)
{
    (void)ctx;
    struct wire_reader r = wire_reader(buf_bytes(b->segs[0]));
    struct bytes entry;
    batches_seen++;
    while (wire_each(&r, OTLP_ENTRIES, &entry))
        entries_seen++;
    batch_unref(b);
    return 0;
}

static void test_entries(void **state)
{
    (void)state;
    const struct console_sink sink = {.telemetry = count_entries};
    struct console_reader *r = console_reader_new(&sink, 0);
    _cleanup_buf_ struct buf *in = buf_new(0);
    for (int i = 0; i < 30; i++)
        buf_printf(in, "(s%d) %s\n%s\n", i / 10, SPAN("a"), i % 5 ? LOG("x") : "plain");
    feed_all(r, buf_bytes(in), SIZE_MAX);
    assert_int_equal(batches_seen, 2);
    assert_int_equal(entries_seen, 3 + 1);
    assert_int_equal(console_reader_stats(r)->records[SIGNAL_TRACES], 30);
    assert_int_equal(console_reader_stats(r)->records[SIGNAL_LOGS], 24);
    assert_int_equal(console_reader_stats(r)->plain_lines, 6);
    console_reader_free(r);
}

/* A batch does not grow without end, however much is fed at once. */
static void test_batches_go(void **state)
{
    (void)state;
    const struct console_sink sink = {.telemetry = count_entries};
    struct console_reader *r = console_reader_new(&sink, 0);
    _cleanup_buf_ struct buf *in = buf_new(0);
    batches_seen = 0;
    for (int i = 0; i < 10000; i++)
        buf_append_str(in, SPAN("a name that is one hundred bytes long, a name that is one hundred "
                                "bytes long, a name that is one hundr") "\n");
    feed_all(r, buf_bytes(in), SIZE_MAX);
    assert_true(batches_seen >= 5 && batches_seen < 20);
    assert_int_equal(console_reader_stats(r)->records[SIGNAL_TRACES], 10000);
    console_reader_free(r);
}

/* A sink that says stop gets what was ready, and the rest when it is fed. */
static void test_stop(void **state)
{
    (void)state;
    struct notes n;
    notes_init(&n);
    struct console_reader *r = notes_reader(&n, 0);
    n.answer = -EAGAIN;
    const char *in = SPAN("a") "\nplain\n" SPAN("b") "\n";
    size_t used, first = strlen(SPAN("a") "\nplain\n");
    assert_int_equal(console_feed(r, bytes_str(in), &used), -EAGAIN);
    assert_int_equal(used, first);
    assert_string_equal(buf_str(n.all), "[plain\n]S(a)");
    n.answer = 0;
    assert_int_equal(console_feed(r, bytes_str(in + used), &used), 0);
    assert_string_equal(buf_str(n.all), "[plain\n]S(a)S(b)");
    console_reader_free(r);
    notes_done(&n);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        notes_init(&n);
        n.answer = -EAGAIN;
        r = notes_reader(&n, 0);
        feed_all(r, bytes_str(cases[i].in), 7);
        console_flush(r, false);
        assert_notes(cases[i].in, &n, cases[i].records, cases[i].plain);
        console_reader_free(r);
        notes_done(&n);
    }
}

/* ---- limits ---- */

static const struct {
    const char *in, *records, *plain;
    size_t max;
    unsigned oversized;
} limited[] = {
    {LOG("a") "\n", "L(a)", "", sizeof(LOG("a")) - 1, 0},
    {LOG("a") "\n" LOG("b") "\n", "", LOG("a") "\n" LOG("b") "\n", sizeof(LOG("a")) - 2, 2},
    {LOG("12345678") "\n" LOG("b") "\n", "L(b)", LOG("12345678") "\n", 45, 1},
    {LOG("a") LOG("b") LOG("c") LOG("d") "\nx\n", "L(a)L(b)L(c)L(d)", "x\n", 50, 0},
    {"12345678901234567890\n12345\n1234567890\n", "", "12345678901234567890\n12345\n1234567890\n",
     10, 1},
    {"12345678901234567890", "", "12345678901234567890", 10, 1},
    {BLOCK("", "a") SPAN("b") "\n", "S(b)", BLOCK("", "a"), 180, 1},
};

static void test_limits(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(limited); i++) {
        for (size_t step = 1; step < strlen(limited[i].in) + 2; step++) {
            struct notes n;
            notes_init(&n);
            struct console_reader *r = notes_reader(&n, limited[i].max);
            feed_all(r, bytes_str(limited[i].in), step);
            assert_int_equal(console_flush(r, false), 0);
            assert_notes(limited[i].in, &n, limited[i].records, limited[i].plain);
            assert_int_equal(console_reader_stats(r)->oversized, limited[i].oversized);
            console_reader_free(r);
            notes_done(&n);
        }
    }
}

/* An object that stays unfinished is given up after so much other text. */
static void test_lookahead(void **state)
{
    (void)state;
    struct notes n;
    notes_init(&n);
    struct console_reader *r = notes_reader(&n, 1000);
    feed_all(r, bytes_str(BLOCK_1("", "a") BLOCK_2("") BLOCK_3("")), SIZE_MAX);
    for (int i = 0; i < 30; i++)
        feed_all(r, bytes_str("30 bytes of some other text..\n"), SIZE_MAX);
    assert_true(console_pending(r) > 0);
    for (int i = 0; i < 10; i++)
        feed_all(r, bytes_str("30 bytes of some other text..\n"), SIZE_MAX);
    assert_int_equal(console_pending(r), 0);
    assert_int_equal(console_reader_stats(r)->malformed, 1);
    feed_all(r, bytes_str("{\n"), SIZE_MAX);
    for (int i = 0; i < 17; i++) {
        assert_int_equal(console_pending(r), 2);
        feed_all(r, bytes_str("x\n"), SIZE_MAX);
    }
    assert_int_equal(console_pending(r), 0);
    assert_int_equal(console_reader_stats(r)->malformed, 1);
    console_reader_free(r);
    notes_done(&n);
}

/* However many are begun, memory stays bounded and the last ones are finished. */
static void test_many_begun(void **state)
{
    (void)state;
    struct notes n;
    notes_init(&n);
    struct console_reader *r = notes_reader(&n, 4096);
    for (int i = 0; i < 1000; i++)
        feed_all(r, bytes_str(BLOCK_1("", "a") BLOCK_2("")), SIZE_MAX);
    assert_true(console_pending(r) <= 3 * 4096);
    feed_all(r, bytes_str(BLOCK_3("") BLOCK_4("") BLOCK_3("") BLOCK_4("")), SIZE_MAX);
    assert_string_equal(buf_str(n.records), "S(a)S(a)");
    console_reader_free(r);
    notes_done(&n);
}

/* A line of 1 MB, a record of 1 MB, and a look at the memory that is left behind. */
static void test_large(void **state)
{
    (void)state;
    struct notes n;
    notes_init(&n);
    struct console_reader *r = notes_reader(&n, 0);
    _cleanup_buf_ struct buf *in = buf_new(0);
    buf_append_str(in, "{\"body\": \"");
    for (int i = 0; i < 100000; i++)
        buf_append_str(in, "0123456789");
    buf_append_str(in, "\", \"observed_timestamp\": null}\n");
    feed_all(r, buf_bytes(in), 4096);
    feed_all(r, bytes_of(in->data + 1, in->len - 1), 4096);
    assert_int_equal(console_reader_stats(r)->records[SIGNAL_LOGS], 1);
    assert_int_equal(console_reader_stats(r)->plain_lines, 1);
    assert_int_equal(n.plain->len, in->len - 1);
    console_reader_free(r);
    notes_done(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),      cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_going_on),   cmocka_unit_test(test_flush_keeps),
        cmocka_unit_test(test_prompts),    cmocka_unit_test(test_entries),
        cmocka_unit_test(test_batches_go), cmocka_unit_test(test_stop),
        cmocka_unit_test(test_limits),     cmocka_unit_test(test_lookahead),
        cmocka_unit_test(test_many_begun), cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
