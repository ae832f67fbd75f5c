/* The file exporter: records, modes, rotation, full disks, slow disks, shared files. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <zstd.h>

#include "rig.h"

#include "agent/base/secrets.h"
#include "proto/json.h"

extern const struct component_type exporter_file;

#define SENT "otelcol_exporter_sent_log_records"
#define FAILED "otelcol_exporter_send_failed_log_records"
#define LABELS "exporter=\"file\""

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/motel-file-XXXXXX");
    umask(022);
    return mkdtemp(folder) ? chdir(folder) : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    const char *const argv[] = {"sh", "-c", command, NULL};
    pid_t pid = fork();
    if (pid == 0) {
        execv("/bin/sh", (char *const *)argv);
        _exit(127);
    }
    return chdir("/") + (waitpid(pid, NULL, 0) == pid ? 0 : -1);
}

/* One log record with a body of `size` bytes, of a resource with the attribute `name` = value. */
static struct batch *record(int number, size_t size, const char *name, const char *value)
{
    _cleanup_buf_ struct buf *text = buf_new(0);
    struct buf *wire = buf_new(0);
    struct batch *b = NULL;
    struct err e = {.text = ""};
    buf_printf(text,
               "{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"%s\",\"value\":{"
               "\"stringValue\":\"%s\"}}]},"
               "\"scopeLogs\":[{\"scope\":{},\"logRecords\":[{\"body\":{\"stringValue\":\"%d-",
               name, value, number);
    for (size_t i = 0; i < size; i++)
        buf_putc(text, 'x');
    buf_append_str(text, "\"}}]}]}]}");
    assert_int_equal(json_read(schema_request(SIGNAL_LOGS), buf_bytes(text), wire, &e), 0);
    assert_int_equal(batch_from_wire(SIGNAL_LOGS, wire, &b, &e), 0);
    return b;
}

static struct batch *small(int number)
{
    return record(number, 10, "a", "b");
}

static void start(struct rig *r, const char *yaml)
{
    struct err e = {.text = ""};
    r->settings.file_mode = r->settings.file_mode ? r->settings.file_mode : -1;
    rig_make(r, &exporter_file, "file", SIGNAL_LOGS, 0, yaml);
    if (exporter_file.start(r->c, &e) < 0)
        fail_msg("%s", e.text);
}

static void stop(struct rig *r)
{
    exporter_file.stop(r->c, clock_now_ns() + 60 * NS_PER_S);
    exporter_file.stop(r->c, clock_now_ns());
    rig_done(r);
}

/* The content of a file; NULL when there is none. */
static struct buf *content(const char *path)
{
    _cleanup_close_ int fd = open(path, O_RDONLY);
    if (fd < 0)
        return NULL;
    struct buf *b = buf_new(0);
    ssize_t n;
    do {
        buf_reserve(b, 65536);
        n = read(fd, buf_tail(b), 65536);
        buf_commit(b, n > 0 ? (size_t)n : 0);
    } while (n > 0);
    buf_str(b);
    return b;
}

/* Counts lines; each has to be a whole record, and its number is marked in `seen`. */
static int lines(const char *path, int *seen, int max)
{
    _cleanup_buf_ struct buf *b = content(path);
    int n = 0;
    assert_non_null(b);
    for (char *line = (char *)b->data, *end; line < (char *)b->data + b->len; line = end + 1, n++) {
        end = memchr(line, '\n', b->len - (size_t)(line - (char *)b->data));
        assert_non_null(end);
        assert_memory_equal(line, "{\"resourceLogs\":[{\"resource\":", 29);
        assert_memory_equal(end - 9, "\"}}]}]}]}", 9);
        const char *body = memmem(line, (size_t)(end - line), "\"body\":{\"stringValue\":\"", 23);
        assert_non_null(body);
        int number = (int)strtol(body + 23, NULL, 10);
        assert_true(number >= 0 && number < max);
        seen[number]++;
        assert_null(memchr(line, 0, (size_t)(end - line)));
    }
    return n;
}

static void assert_file(const char *path, const char *want)
{
    _cleanup_buf_ struct buf *b = content(path);
    assert_non_null(b);
    assert_string_equal((char *)b->data, want);
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

#define LINE(n)                                                                                    \
    "{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"a\",\"value\":{\"stringValue\":" \
    "\"b\"}}]},"                                                                                   \
    "\"scopeLogs\":[{\"scope\":{},\"logRecords\":[{\"body\":{\"stringValue\":\"" n                 \
    "-xxxxxxxxxx\"}}]}]}]}\n"

/* ---- content ---- */

static void test_lines(void **state)
{
    (void)state;
    struct rig r = {0};
    start(&r, "{path: x.jsonl, flush_interval: 5ms}");
    assert_file("x.jsonl", "");
    assert_int_equal(rig_offer(&r, small(1), NULL), VERDICT_OK);
    assert_soon(({
        _cleanup_buf_ struct buf *b = content("x.jsonl");
        b->len > 0;
    }));
    assert_int_equal(rig_offer(&r, small(2), NULL), VERDICT_OK);
    exporter_file.stop(r.c, clock_now_ns() + NS_PER_S);
    assert_file("x.jsonl", LINE("1") LINE("2"));
    assert_int_equal(rig_metric(&r, SENT, LABELS), 2);
    assert_int_equal(rig_offer(&r, small(3), NULL), VERDICT_RETRY);
    stop(&r);
}

static void test_truncate_and_append(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *want;
    } rounds[] = {
        {"{path: x.jsonl}", LINE("0")},
        {"{path: x.jsonl}", LINE("1")},
        {"{path: x.jsonl, append: true}", LINE("1") LINE("2")},
        {"{path: x.jsonl, rotation: }", LINE("1") LINE("2") LINE("3")},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rounds); i++) {
        struct rig r = {0};
        start(&r, rounds[i].yaml);
        rig_offer(&r, small((int)i), NULL);
        stop(&r);
        assert_file("x.jsonl", rounds[i].want);
    }
}

static void test_unfinished_line(void **state)
{
    (void)state;
    struct rig r = {0};
    FILE *f = fopen("x.jsonl", "w");
    fputs(LINE("0") "{\"resourceLogs\":[{\"reso", f);
    fclose(f);
    start(&r, "{path: x.jsonl, append: true}");
    rig_offer(&r, small(1), NULL);
    stop(&r);
    assert_file("x.jsonl", LINE("0") LINE("1"));
}

/* Splits a file of length-prefixed messages; the last one that was read stays in `msg`. */
static int frames(const char *path, bool zstd, struct buf *msg)
{
    _cleanup_buf_ struct buf *b = content(path);
    int n = 0;
    for (size_t at = 0; at < b->len; n++) {
        const uint8_t *p = b->data + at;
        size_t len = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
        assert_true(at + 4 + len <= b->len);
        buf_truncate(msg, 0);
        if (zstd) {
            buf_reserve(msg, 100000);
            size_t got = ZSTD_decompress(buf_tail(msg), 100000, p + 4, len);
            assert_false(ZSTD_isError(got));
            buf_commit(msg, got);
        } else {
            buf_append(msg, p + 4, len);
        }
        at += 4 + len;
    }
    return n;
}

static void test_formats(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        bool proto, zstd;
    } formats[] = {
        {"{path: x, format: proto}", true, false},
        {"{path: x, format: proto, compression: zstd}", true, true},
        {"{path: x, compression: zstd, compression_params: {level: 11}}", false, true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        struct rig r = {0};
        _cleanup_buf_ struct buf *msg = buf_new(0), *want = buf_new(0);
        start(&r, formats[i].yaml);
        struct batch *b = record(7, 3000, "a", "b");
        for (int k = 0; k < 3; k++)
            rig_offer(&r, batch_ref(b), NULL);
        stop(&r);
        if (formats[i].proto)
            buf_append(want, b->segs[0]->data, b->segs[0]->len);
        else
            json_write_batch(b, 0, want);
        assert_int_equal(frames("x", formats[i].zstd, msg), 3);
        assert_true(bytes_eq(buf_bytes(msg), buf_bytes(want)));
        batch_unref(b);
    }
}

/* A batch of several segments is one line. */
static void test_segments(void **state)
{
    (void)state;
    struct rig r = {0};
    struct batch *a = small(1), *b = small(2);
    struct buf *segs[] = {buf_ref(a->segs[0]), buf_ref(b->segs[0])};
    start(&r, "{path: x}");
    rig_offer(&r, batch_new(SIGNAL_LOGS, segs, 2, 2), NULL);
    stop(&r);
    _cleanup_buf_ struct buf *got = content("x");
    assert_int_equal(got->data[got->len - 1], '\n');
    assert_null(memchr(got->data, '\n', got->len - 1));
    batch_unref(a);
    batch_unref(b);
}

static void test_secrets(void **state)
{
    (void)state;
    static const char *const formats[] = {"{path: x}", "{path: x, format: proto}"};
    secrets_add("Bearer tok-secret-1");
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        struct rig r = {0};
        start(&r, formats[i]);
        rig_offer(&r, record(1, 10, "Authorization", "Bearer tok-secret-1"), NULL);
        stop(&r);
        _cleanup_buf_ struct buf *got = content("x");
        assert_null(memmem(got->data, got->len, "tok-secret-1", 12));
        assert_non_null(memmem(got->data, got->len, "Bearer [REDACTED]", 17));
        if (i == 0)
            continue;
        struct batch *b = NULL; /* what is left is a whole message */
        struct err e;
        struct buf *wire = buf_new(0);
        buf_append(wire, got->data + 4, got->len - 4);
        assert_int_equal(batch_from_wire(SIGNAL_LOGS, wire, &b, &e), 0);
        assert_int_equal(b->records, 1);
        batch_unref(b);
    }
    secrets_clear();
}

/* ---- opening ---- */

static void test_modes(void **state)
{
    (void)state;
    static const struct {
        mode_t mask;
        int64_t file_mode;
        mode_t want;
    } modes[] = {
        {022, -1, 0644}, {0, -1, 0644}, {077, -1, 0600}, {022, 0600, 0600}, {077, 0664, 0600}};
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
        for (int rotated = 0; rotated < 2; rotated++) {
            struct rig r = {.settings.file_mode = modes[i].file_mode};
            unlink("x");
            umask(modes[i].mask);
            start(&r, rotated ? "{path: x, rotation: {max_megabytes: 1}}" : "{path: x}");
            rig_offer(&r, record(1, 700000, "a", "b"), NULL);
            rig_offer(&r, record(1, 700000, "a", "b"), NULL);
            stop(&r);
            umask(022);
            assert_int_equal(mode_of("x"), modes[i].want);
        }
}

static void test_directories(void **state)
{
    (void)state;
    struct rig r = {0};
    struct err e = {.text = ""};
    r.settings.file_mode = -1;
    rig_make(&r, &exporter_file, "file", SIGNAL_LOGS, 0, "{path: no/where/x}");
    assert_true(exporter_file.start(r.c, &e) < 0);
    assert_non_null(strstr(e.text, "cannot open \"no/where/x\": No such file or directory"));
    rig_done(&r);
    r = (struct rig){0};
    start(&r, "{path: some/where/x, create_directory: true, directory_permissions: \"0750\"}");
    stop(&r);
    assert_int_equal(mode_of("some"), 0750);
    assert_int_equal(mode_of("some/where"), 0750);
    r = (struct rig){0};
    r.settings.file_mode = -1;
    rig_make(&r, &exporter_file, "file", SIGNAL_LOGS, 0, "{path: some}");
    assert_true(exporter_file.start(r.c, &e) < 0);
    rig_done(&r);
}

/* Two exporters of one process on one file, as at a reload: nothing is emptied, no line is mixed.
 */
#define MANY 3000
static void *client(void *arg)
{
    struct rig *r = arg;
    for (int i = 0; i < MANY; i++)
        assert_int_equal(rig_offer(r, record(i, (size_t)i % 997, "a", "b"), NULL), VERDICT_OK);
    return NULL;
}

static void test_shared(void **state)
{
    (void)state;
    static int seen[MANY];
    struct rig old = {0}, new = {0};
    pthread_t threads[2];
    mkdir("d", 0755);
    symlink("d", "link");
    start(&old, "{path: d/x, flush_interval: 1ms}");
    rig_offer(&old, small(0), NULL);
    assert_soon(({
        _cleanup_buf_ struct buf *b = content("d/x");
        b->len > 0;
    }));
    new.host = old.host;
    start(&new, "{path: ./link/x, flush_interval: 1ms}");
    pthread_create(&threads[0], NULL, client, &old);
    pthread_create(&threads[1], NULL, client, &new);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    exporter_file.stop(old.c, clock_now_ns() + 5 * NS_PER_S);
    exporter_file.destroy(old.c);
    config_free(old.config);
    rig_offer(&new, small(1), NULL);
    stop(&new);
    memset(seen, 0, sizeof(seen));
    assert_int_equal(lines("d/x", seen, MANY), 2 * MANY + 2);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(seen[i], i < 2 ? 3 : 2);
}

static void test_other_content(void **state)
{
    (void)state;
    struct rig a = {0}, b = {0};
    struct err e = {.text = ""};
    start(&a, "{path: x}");
    b.host = a.host;
    rig_make(&b, &exporter_file, "file/2", SIGNAL_LOGS, 0, "{path: x, format: proto}");
    assert_true(exporter_file.start(b.c, &e) < 0);
    assert_non_null(strstr(e.text, "is being written as json and cannot be written as proto"));
    exporter_file.destroy(b.c);
    config_free(b.config);
    rig_offer(&a, small(1), NULL);
    stop(&a);
    assert_file("x", LINE("1"));
    b = (struct rig){0};
    b.settings.file_mode = -1;
    rig_make(&b, &exporter_file, "file", SIGNAL_LOGS, 0, "{path: x, format: proto, append: true}");
    assert_true(exporter_file.start(b.c, &e) < 0);
    assert_non_null(strstr(e.text, "is no file of length-prefixed messages"));
    rig_done(&b);
}

/* ---- what happens to files meanwhile ---- */

static void test_moved_and_deleted(void **state)
{
    (void)state;
    struct rig r = {0};
    start(&r, "{path: x, flush_interval: 1ms}");
    rig_offer(&r, small(1), NULL);
    assert_soon(rig_metric(&r, SENT, LABELS) == 1);
    assert_int_equal(rename("x", "y"), 0);
    rig_offer(&r, small(2), NULL);
    assert_soon(rig_metric(&r, SENT, LABELS) == 2);
    assert_file("y", LINE("1"));
    assert_file("x", LINE("2"));
    assert_int_equal(unlink("x"), 0);
    rig_offer(&r, small(3), NULL);
    assert_soon(rig_metric(&r, SENT, LABELS) == 3);
    assert_file("x", LINE("3"));
    assert_int_equal(truncate("x", 0), 0); /* as logrotate's copytruncate does */
    rig_offer(&r, small(4), NULL);
    stop(&r);
    assert_file("x", LINE("4"));
}

/* Names in the folder that begin with `prefix`; they are left in `names`. */
static int list(const char *prefix, char names[][64], int max)
{
    DIR *d = opendir(".");
    int n = 0;
    for (const struct dirent *e; (e = readdir(d));)
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 && n < max)
            snprintf(names[n++], 64, "%.63s", e->d_name);
    closedir(d);
    return n;
}

static void test_rotation(void **state)
{
    (void)state;
    static int seen[600];
    char names[64][64];
    struct rig r = {0};
    memset(seen, 0, sizeof(seen));
    start(&r, "{path: data.jsonl, rotation: {max_megabytes: 1, max_backups: 0}}");
    for (int i = 0; i < 600; i++)
        rig_offer(&r, record(i, 10000, "a", "b"), NULL);
    stop(&r);
    int n = list("data-", names, 64), total = lines("data.jsonl", seen, 600);
    assert_int_equal(n, 5);
    for (int i = 0; i < n; i++) {
        struct stat st;
        assert_int_equal(strlen(names[i]), strlen("data-2026-08-21T10-00-00.000-size.jsonl"));
        assert_string_equal(names[i] + strlen(names[i]) - 11, "-size.jsonl");
        total += lines(names[i], seen, 600);
        assert_int_equal(stat(names[i], &st), 0);
        assert_true(st.st_size <= 1 << 20 && st.st_size > 1000000);
        assert_int_equal(mode_of(names[i]), 0644);
    }
    assert_int_equal(total, 600);
    for (int i = 0; i < 600; i++)
        assert_int_equal(seen[i], 1);
}

static void test_rotation_limits(void **state)
{
    (void)state;
    char names[64][64];
    struct rig r = {0};
    static const char *const old[] = {
        "data-2020-01-01T00-00-00.000-size.jsonl", "data-2020-01-02T00-00-00.000.jsonl",
        "data-2020-01-03T00-00-00.000-size.txt", "data-2020-01-04.jsonl",
        "data2-2020-01-01T00-00-00.000-size.jsonl"};
    for (size_t i = 0; i < ARRAY_SIZE(old); i++)
        close(open(old[i], O_CREAT | O_WRONLY, 0644));
    start(&r, "{path: data.jsonl, rotation: {max_megabytes: 1, max_backups: 2}}");
    for (int i = 0; i < 6; i++)
        rig_offer(&r, record(i, 700000, "a", "b"), NULL);
    stop(&r);
    assert_int_equal(list("data-20", names, 64),
                     2 + 2); /* two old ones, and two that are none of ours */
    assert_int_equal(access(old[2], F_OK) + access(old[3], F_OK) + access(old[4], F_OK), 0);
    r = (struct rig){0};
    close(open(old[0], O_CREAT | O_WRONLY, 0644));
    start(&r, "{path: data.jsonl, rotation: {max_megabytes: 1, max_backups: 0, max_days: 1, "
              "localtime: true}}");
    rig_offer(&r, record(1, 700000, "a", "b"), NULL);
    stop(&r);
    assert_int_equal(access(old[0], F_OK), -1);
    assert_int_equal(list("data-20", names, 64), 3 + 2);
}

/* A record larger than a file may be has a file of its own. */
static void test_rotation_large(void **state)
{
    (void)state;
    static int seen[4];
    char names[8][64];
    struct rig r = {0};
    memset(seen, 0, sizeof(seen));
    start(&r, "{path: x, rotation: {max_megabytes: 1}}");
    rig_offer(&r, small(0), NULL);
    rig_offer(&r, record(1, 3000000, "a", "b"), NULL);
    rig_offer(&r, small(2), NULL);
    stop(&r);
    int n = list("x-", names, 8), total = lines("x", seen, 4);
    assert_int_equal(n, 2);
    for (int i = 0; i < n; i++)
        total += lines(names[i], seen, 4);
    assert_int_equal(total, 3);
}

/* ---- disks ---- */

static void limit_files(rlim_t bytes)
{
    struct rlimit l;
    getrlimit(RLIMIT_FSIZE, &l);
    l.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

/* A file that cannot grow stands for a full disk: parts are taken back, data is kept, clients are
 * refused, then all is well. */
static void test_full(void **state)
{
    (void)state;
    static int seen[400]; /* of 8000 bytes: less than what clients have to wait for */
    static const char *const formats[] = {"{path: x, flush_interval: 1ms}",
                                          "{path: x, rotation: , flush_interval: 1ms}"};
    for (size_t k = 0; k < ARRAY_SIZE(formats); k++) {
        struct rig r = {0};
        struct outcome out;
        int taken = 0;
        memset(seen, 0, sizeof(seen));
        unlink("x");
        start(&r, formats[k]);
        limit_files(50000);
        while (rig_offer(&r, record(taken, 8000, "a", "b"), &out) == VERDICT_OK) {
            assert_true(++taken < 399);
            if (taken > 20) /* the writer needs a moment to see it */
                nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        }
        assert_non_null(strstr(out.message, "cannot write to \"x\": File too large"));
        struct stat st;
        stat("x", &st);
        assert_true(st.st_size < 50000 && st.st_size % 8000 < 2000); /* whole lines only */
        int before = lines("x", seen, 400);
        assert_true(before >= 5 && before < taken + 1);
        limit_files(RLIM_INFINITY);
        assert_soon(({
            enum verdict v = rig_offer(&r, record(399, 10, "a", "b"), NULL);
            v == VERDICT_OK;
        }));
        stop(&r);
        memset(seen, 0, sizeof(seen));
        lines("x", seen, 400);
        for (int i = 0; i < taken; i++)
            assert_int_equal(seen[i], 1);
    }
}

/* Records that are longer than the text area: alone they go into the file in pieces, beside another
 * process at once. */
static void test_long(void **state)
{
    (void)state;
    static const size_t sizes[] = {10, 300000, 20, 130900, 1000000, 60000, 90000, 30};
    for (int round = 0; round < 2; round++) {
        struct rig r = {0};
        _cleanup_buf_ struct buf *want = buf_new(0), *got = NULL;
        _cleanup_close_ int other = open("x", O_RDWR | O_CREAT, 0644);
        if (round == 1)
            assert_int_equal(flock(other, LOCK_SH), 0);
        start(&r, "{path: x, flush_interval: 1h}");
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
            struct batch *b = record((int)i, sizes[i], "a", "\\n");
            json_write_batch(b, JSON_LINE, want);
            assert_int_equal(rig_offer(&r, b, NULL), VERDICT_OK);
        }
        stop(&r);
        got = content("x");
        assert_int_equal(got->len, want->len);
        assert_memory_equal(got->data, want->data, want->len);
    }
}

/* Of a long record for which there is no room nothing stays. */
static void test_full_long(void **state)
{
    (void)state;
    static int seen[4];
    struct rig r = {0};
    start(&r, "{path: x, flush_interval: 1ms}");
    assert_int_equal(rig_offer(&r, record(0, 10, "a", "b"), NULL), VERDICT_OK);
    assert_soon(({
        _cleanup_buf_ struct buf *b = content("x");
        b->len > 0;
    }));
    limit_files(400000);
    assert_int_equal(rig_offer(&r, record(1, 500000, "a", "b"), NULL), VERDICT_OK);
    assert_soon(({
        enum verdict v = rig_offer(&r, record(2, 10, "a", "b"), NULL);
        v == VERDICT_RETRY;
    }));
    exporter_file.stop(r.c, clock_now_ns() + 300 * NS_PER_MS);
    limit_files(RLIM_INFINITY);
    assert_int_equal(rig_metric(&r, SENT, LABELS), 1);
    assert_int_equal(lines("x", seen, 4), 1);
    assert_int_equal(seen[0], 1);
    stop(&r);
}

static void test_full_to_the_end(void **state)
{
    (void)state;
    struct rig r = {0};
    start(&r, "{path: x, flush_interval: 1ms}");
    limit_files(100);
    assert_int_equal(rig_offer(&r, small(1), NULL), VERDICT_OK);
    uint64_t began = clock_now_ns();
    exporter_file.stop(r.c, began + 300 * NS_PER_MS);
    assert_true(clock_now_ns() - began >= 250 * NS_PER_MS);
    limit_files(RLIM_INFINITY);
    assert_int_equal(rig_metric(&r, FAILED, LABELS), 1);
    assert_int_equal(rig_metric(&r, SENT, LABELS), 0);
    assert_file("x", "");
    stop(&r);
}

struct reader {
    int fd;
    size_t bytes, lines;
};
static void *drain(void *arg)
{
    struct reader *reader = arg;
    char text[65536];
    ssize_t n;
    while ((n = read(reader->fd, text, sizeof(text))) > 0)
        for (ssize_t i = 0; i < n; i++)
            reader->lines += text[i] == '\n';
    return NULL;
}

/* A pipe that nobody reads stands for a slow disk: first answers come later, then clients are
 * refused; nothing is lost. */
static void test_slow(void **state)
{
    (void)state;
    static struct fake_ack later[64];
    struct rig r = {0};
    int taken = 0, nlater = 0;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    struct reader reader = {.fd = open("pipe", O_RDONLY | O_NONBLOCK)};
    start(&r, "{path: pipe, flush_interval: 1ms}");
    struct batch *b = record(1, 1 << 20, "a", "b");
    for (;;) {
        fake_ack_init(&later[nlater]);
        enum verdict v = r.c->type->consume(r.c, batch_ref(b), &later[nlater].ack);
        if (v == VERDICT_RETRY)
            break;
        taken++;
        nlater += v == VERDICT_PENDING;
        assert_true(taken < 64 && (v == VERDICT_PENDING || !nlater));
    }
    batch_unref(b);
    assert_true(taken - nlater >= 3 && taken - nlater <= 6 && taken >= 60);
    fcntl(reader.fd, F_SETFL, 0);
    pthread_t t;
    pthread_create(&t, NULL, drain, &reader);
    for (int i = 0; i < nlater; i++)
        assert_int_equal(fake_ack_verdict(&later[i], VERDICT_PENDING), VERDICT_OK);
    stop(&r);
    pthread_join(t, NULL);
    assert_int_equal(reader.lines, taken);
    close(reader.fd);
    unlink("pipe");
}

/* A disk that hangs does not hold up the end of the program. */
static void test_hang(void **state)
{
    (void)state;
    static struct rig r; /* stays: the thread has pointers to it */
    assert_int_equal(mkfifo("pipe", 0600), 0);
    int fd = open("pipe", O_RDONLY | O_NONBLOCK);
    start(&r, "{path: pipe, flush_interval: 1ms}");
    rig_offer(&r, record(1, 1 << 20, "a", "b"), NULL);
    uint64_t began = clock_now_ns();
    exporter_file.stop(r.c, began + 100 * NS_PER_MS);
    assert_true(clock_now_ns() - began < 3 * NS_PER_S);
    exporter_file.destroy(r.c);
    close(fd); /* lets the thread go; what it held is gone for good */
    unlink("pipe");
}

/* ---- group_by ---- */

static void test_groups(void **state)
{
    (void)state;
    static const struct {
        const char *segment, *path;
    } paths[] = {
        {"one", "out/p-one.jsonl"},
        {"/sub/two", "out/p-/sub/two.jsonl"},
        {"./three", "out/p-/three.jsonl"},
        {"../../etc/four", "out/p-/etc/four.jsonl"},
        {"a/../../../five", "out/p-/five.jsonl"},
        {"", "out/p-.jsonl"},
    };
    struct rig r = {0};
    start(&r, "{path: ./out/p-*.jsonl, group_by: {enabled: true, resource_attribute: a, "
              "max_open_files: 2}}");
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
            assert_int_equal(rig_offer(&r, record(round, 10, "a", paths[i].segment), NULL),
                             VERDICT_OK);
    assert_int_equal(rig_offer(&r, record(0, 10, "b", "x"), NULL), VERDICT_OK);
    stop(&r);
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        int seen[2] = {0};
        if (access(paths[i].path, F_OK) != 0)
            fail_msg("%s: no %s", paths[i].segment, paths[i].path);
        assert_int_equal(lines(paths[i].path, seen, 2),
                         2); /* closed and opened again: not emptied */
    }
}

/* One batch with several resources: each goes to its file, those without the attribute are counted.
 */
static void test_group_split(void **state)
{
    (void)state;
    struct rig r = {0};
    struct batch *parts[] = {record(1, 5, "a", "x"), record(2, 5, "a", "y"), record(3, 5, "b", "x"),
                             record(4, 5, "a", "x")};
    struct buf *segs[4];
    for (int i = 0; i < 4; i++) {
        segs[i] = buf_ref(parts[i]->segs[0]);
        batch_unref(parts[i]);
    }
    start(&r, "{path: g*, group_by: {enabled: true, resource_attribute: a}}");
    rig_offer(&r, batch_new(SIGNAL_LOGS, segs, 4, 4), NULL);
    exporter_file.stop(r.c, clock_now_ns() + NS_PER_S);
    int seen[5] = {0};
    assert_int_equal(lines("gy", seen, 5), 1);
    assert_int_equal(seen[2], 1);
    _cleanup_buf_ struct buf *x = content("gx");
    assert_non_null(strstr((char *)x->data, "1-xxxxx"));
    assert_non_null(strstr((char *)x->data, "4-xxxxx"));
    assert_int_equal(rig_metric(&r, SENT, LABELS), 3);
    assert_int_equal(rig_metric(&r, FAILED, LABELS), 1);
    stop(&r);
}

/* A name that cannot be is dropped and counted; the next one is written. */
static void test_group_hopeless(void **state)
{
    (void)state;
    char name[400];
    struct rig r = {0};
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    start(&r, "{path: g*, group_by: {enabled: true, resource_attribute: a}}");
    rig_offer(&r, record(1, 5, "a", name), NULL);
    rig_offer(&r, record(1, 5, "a", "fine"), NULL);
    exporter_file.stop(r.c, clock_now_ns() + NS_PER_S);
    assert_int_equal(rig_metric(&r, SENT, LABELS), 1);
    assert_int_equal(rig_metric(&r, FAILED, LABELS), 1);
    assert_int_equal(access("gfine", F_OK), 0);
    stop(&r);
}

/* ---- configuration ---- */

static const struct {
    const char *yaml, *path, *text;
} refused[] = {
    {"{}", "path", "must not be empty"},
    {"{path: x, append: true, rotation: {}}", "append", "exclude each other"},
    {"{path: x, format: yaml}", "format", "expected json or proto, got \"yaml\""},
    {"{path: x, compression: gzip}", "compression", "expected zstd"},
    {"{path: x, flush_interval: -1s}", "flush_interval", "negative"},
    {"{path: x, encoding: otlp_encoding}", "encoding", "not supported"},
    {"{path: x, group_by: {enabled: true}}", "path", "exactly one *"},
    {"{path: \"*x\", group_by: {enabled: true}}", "path", "must not start with *"},
    {"{path: \"x*\", group_by: {enabled: true, resource_attribute: \"\"}}",
     "group_by::resource_attribute", "empty"},
    {"{path: x, directory_permissions: \"0700\"}", "directory_permissions", "create_directory"},
    {"{path: x, create_directory: true, directory_permissions: \"01777\"}", "directory_permissions",
     "0777"},
    {"{path: x, create_directory: true, directory_permissions: \"abc\"}", "directory_permissions",
     ""},
    {"{path: x, sending_queue: {}}", "", "sending_queue"},
};

static void test_config(void **state)
{
    (void)state;
    void *bound;
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        struct rig r = {0};
        struct err e = {.text = ""};
        assert_true(rig_bind(&r, &exporter_file, refused[i].yaml, &bound, &e) < 0);
        if (!strstr(e.path, refused[i].path) || !strstr(e.text, refused[i].text))
            fail_msg("%s: %s: %s", refused[i].yaml, e.path, e.text);
        config_free(r.config);
    }
}

#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(test_lines),
        FILE_TEST(test_truncate_and_append),
        FILE_TEST(test_unfinished_line),
        FILE_TEST(test_formats),
        FILE_TEST(test_segments),
        FILE_TEST(test_secrets),
        FILE_TEST(test_modes),
        FILE_TEST(test_directories),
        FILE_TEST(test_shared),
        FILE_TEST(test_other_content),
        FILE_TEST(test_moved_and_deleted),
        FILE_TEST(test_rotation),
        FILE_TEST(test_rotation_limits),
        FILE_TEST(test_rotation_large),
        FILE_TEST(test_full),
        FILE_TEST(test_long),
        FILE_TEST(test_full_long),
        FILE_TEST(test_full_to_the_end),
        FILE_TEST(test_slow),
        FILE_TEST(test_hang),
        FILE_TEST(test_groups),
        FILE_TEST(test_group_split),
        FILE_TEST(test_group_hopeless),
        FILE_TEST(test_config),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
