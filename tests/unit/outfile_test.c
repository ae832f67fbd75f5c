/* Records that go into a file in pieces: what is taken back, who else may write meanwhile. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "rig.h"
#include "temp_dir.h"

#include "exporters/file/outfile.h"

#define LONG 1000

struct world {
    char dir[TEMP_DIR_BYTES], path[TEMP_DIR_BYTES + 8], letters[LONG];
    struct motel_settings settings;
    struct host *host;
    struct shared *shared;
    struct outfile *file;
};

static void begin_world(struct world *w, const struct rotation *rotation)
{
    struct err e = {.text = ""};
    *w = (struct world){.settings.file_mode = -1};
    temp_dir_make(w->dir);
    snprintf(w->path, sizeof(w->path), "%s/x", w->dir);
    for (size_t i = 0; i < LONG; i++)
        w->letters[i] = (char)('a' + i % 23);
    w->host = host_new(&w->settings);
    const struct outfile_options o = {
        .path = w->path, .content = "json", .mode = -1, .rotation = rotation};
    if (outfile_open(w->host, &o, &w->shared, &e) < 0)
        fail_msg("%s", e.text);
    w->file = outfile_of(w->shared);
}

static void end_world(struct world *w)
{
    host_unshare(w->host, w->shared);
    host_free(w->host);
    temp_dir_remove(w->dir);
}

static struct bytes content(const struct world *w)
{
    static uint8_t data[8 * LONG];
    _cleanup_close_ int fd = open(w->path, O_RDONLY);
    ssize_t n = read(fd, data, sizeof(data));
    assert_true(n >= 0);
    return bytes_of(data, (size_t)n);
}

static void assert_content(const struct world *w, const char *want)
{
    struct bytes got = content(w);
    assert_int_equal(got.len, strlen(want));
    assert_memory_equal(got.data, want, got.len);
}

static bool pieces(struct world *w)
{
    bool ret;
    assert_int_equal(outfile_begin(w->file, &ret), 0);
    return ret;
}

static int put(struct world *w, const char *text)
{
    return outfile_piece(w->file, bytes_str(text));
}

static int put_long(struct world *w)
{
    return outfile_piece(w->file, bytes_of(w->letters, LONG));
}

/* Ends with one record of `end` bytes (0 = none); how many are whole. */
static size_t end_pieces(struct world *w, size_t end)
{
    size_t n = 0;
    outfile_end(w->file, &end, end ? 1 : 0, &n);
    return n;
}

/* A record at once, as after all that may have gone wrong before. */
static void write_line(struct world *w)
{
    const size_t end = 5;
    size_t n = 0;
    assert_int_equal(outfile_write(w->file, bytes_str("line\n"), &end, 1, &n), 0);
    assert_int_equal(n, 1);
}

static void test_pieces(void **state)
{
    (void)state;
    struct world w;
    begin_world(&w, NULL);
    assert_true(pieces(&w));
    assert_int_equal(put(&w, "ab"), 0);
    assert_int_equal(put(&w, ""), 0);
    assert_int_equal(put(&w, "c\n"), 0);
    assert_int_equal(end_pieces(&w, 4), 1);
    write_line(&w);
    assert_true(pieces(&w));
    assert_int_equal(put(&w, "d\n"), 0);
    assert_int_equal(end_pieces(&w, 2), 1);
    assert_content(&w, "abc\nline\nd\n");
    end_world(&w);
}

/* Pieces end at multiples of 128 KiB, but for short ones and where that would make them small. */
static void test_good_pieces(void **state)
{
    (void)state;
    static char text[300 << 10];
    struct world w;
    off_t at = 5;
    begin_world(&w, NULL);
    memset(text, 'x', sizeof(text));
    write_line(&w);
    assert_true(pieces(&w));
    for (size_t len = 1; len < sizeof(text); len += 7919) {
        const size_t n = outfile_good_piece(w.file, len);
        assert_true(n <= len && n > 0 && (n == len || (at + (off_t)n) % (64 << 10) == 0));
        assert_true(len < 128 << 10 || n >= len / 4);
        assert_int_equal(outfile_piece(w.file, bytes_of(text, n)), 0);
        at += (off_t)n;
    }
    assert_int_equal(outfile_piece(w.file, bytes_of(text, 2 * 131072 - (size_t)at % 131072)), 0);
    assert_int_equal(outfile_good_piece(w.file, 132 << 10), 128 << 10);
    assert_int_equal(end_pieces(&w, 0), 0);
    assert_content(&w, "line\n");
    end_world(&w);
}

static void test_unfinished(void **state)
{
    (void)state;
    struct world w;
    begin_world(&w, NULL);
    write_line(&w);
    assert_true(pieces(&w));
    assert_int_equal(end_pieces(&w, 0), 0);
    assert_true(pieces(&w));
    assert_int_equal(put_long(&w), 0);
    assert_int_equal(put_long(&w), 0);
    assert_int_equal(put(&w, "short"), 0);
    assert_int_equal(end_pieces(&w, 0), 0);
    assert_content(&w, "line\n");
    assert_true(pieces(&w));
    assert_int_equal(put(&w, "whole\npart"), 0);
    assert_int_equal(put_long(&w), 0);
    assert_int_equal(end_pieces(&w, 6), 1);
    assert_content(&w, "line\nwhole\n");
    end_world(&w);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_full(void **state)
{
    (void)state;
    struct world w;
    begin_world(&w, NULL);
    write_line(&w);
    assert_true(pieces(&w));
    assert_int_equal(put(&w, "whole\n"), 0);
    assert_int_equal(put_long(&w), 0);
    limit_files(LONG + 500);
    assert_int_equal(put_long(&w), -EFBIG);
    limit_files(RLIM_INFINITY);
    assert_int_equal(put_long(&w), -EFBIG);
    assert_int_equal(end_pieces(&w, 6), 1);
    assert_content(&w, "line\nwhole\n");
    write_line(&w);
    assert_content(&w, "line\nwhole\nline\n");
    end_world(&w);
}

/* Who is not alone, or needs to know the size before, writes at once. */
static void test_not_alone(void **state)
{
    (void)state;
    const struct rotation rotation = {.max_bytes = 1 << 20};
    struct world w;
    begin_world(&w, NULL);
    int other = open(w.path, O_RDWR | O_APPEND);
    assert_int_equal(flock(other, LOCK_SH), 0);
    assert_false(pieces(&w));
    write_line(&w);
    assert_int_equal(flock(other, LOCK_EX | LOCK_NB), -1); /* nor is the other one */
    close(other);
    assert_true(pieces(&w));
    other = open(w.path, O_RDWR | O_APPEND);
    assert_int_equal(flock(other, LOCK_SH | LOCK_NB), -1);
    assert_int_equal(end_pieces(&w, 0), 0);
    assert_int_equal(flock(other, LOCK_SH | LOCK_NB), 0);
    close(other);
    end_world(&w);
    begin_world(&w, &rotation);
    assert_false(pieces(&w));
    end_world(&w);
}

static void *write_in_thread(void *arg)
{
    write_line(arg);
    return NULL;
}

/* Another one's pieces are waited for. */
static void test_waits(void **state)
{
    (void)state;
    struct world w;
    pthread_t t;
    begin_world(&w, NULL);
    int other = open(w.path, O_RDWR | O_APPEND);
    assert_int_equal(flock(other, LOCK_EX), 0);
    assert_int_equal(write(other, "first ", 6), 6);
    assert_int_equal(pthread_create(&t, NULL, write_in_thread, &w), 0);
    assert_int_equal(write(other, "and ", 4), 4);
    assert_int_equal(write(other, "last\n", 5), 5);
    close(other);
    pthread_join(t, NULL);
    assert_content(&w, "first and last\nline\n");
    end_world(&w);
}

/* logrotate's copytruncate in the middle of a record: the new file begins with a whole one. */
static void test_cut(void **state)
{
    (void)state;
    struct world w;
    begin_world(&w, NULL);
    write_line(&w);
    assert_true(pieces(&w));
    assert_int_equal(put(&w, "whole\n"), 0);
    assert_int_equal(put_long(&w), 0);
    assert_int_equal(truncate(w.path, 0), 0);
    assert_int_equal(put_long(&w), -ESTALE);
    assert_int_equal(put_long(&w), -ESTALE);
    assert_int_equal(end_pieces(&w, 6), 1);
    assert_content(&w, "");
    assert_false(pieces(&w)); /* it may happen again */
    write_line(&w);
    assert_content(&w, "line\n");
    end_world(&w);
}

/* Somebody without a lock: nothing of his is taken away, and the record is written anew. */
static void test_stranger(void **state)
{
    (void)state;
    struct world w;
    begin_world(&w, NULL);
    int other = open(w.path, O_WRONLY | O_APPEND);
    assert_true(pieces(&w));
    assert_int_equal(put(&w, "part "), 0);
    assert_int_equal(write(other, "strange\n", 8), 8);
    assert_int_equal(put_long(&w), -ESTALE);
    assert_int_equal(end_pieces(&w, 0), 0);
    assert_content(&w, "part strange\n");
    assert_false(pieces(&w));
    close(other);
    end_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),   cmocka_unit_test(test_unfinished),
        cmocka_unit_test(test_full),     cmocka_unit_test(test_not_alone),
        cmocka_unit_test(test_waits),    cmocka_unit_test(test_cut),
        cmocka_unit_test(test_stranger), cmocka_unit_test(test_good_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
