/* Queue files that others remove, replace or cut while they are in use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <sys/file.h>

#include "tests/unit/store_rig.h"

enum { SIZE = 20000 };

static void write_file(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static const char *lock_path(const struct rig *r)
{
    static char path[160];
    snprintf(path, sizeof(path), "%s.lock", rig_path(r));
    return path;
}

static void do_unlink(const struct rig *r)
{
    assert_int_equal(unlink(rig_path(r)), 0);
}

static void do_unlink_both(const struct rig *r)
{
    do_unlink(r);
    assert_int_equal(unlink(lock_path(r)), 0);
}

static void do_remove_folder(const struct rig *r)
{
    assert_int_equal(nftw(r->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void do_rename(const struct rig *r)
{
    char other[160];
    snprintf(other, sizeof(other), "%s.other", rig_path(r));
    assert_int_equal(rename(rig_path(r), other), 0);
}

static void do_replace(const struct rig *r)
{
    do_rename(r);
    write_file(rig_path(r), "of somebody else");
}

static void (*const deeds[])(const struct rig *r) = {do_unlink, do_unlink_both, do_remove_folder,
                                                     do_rename, do_replace};

static void begin(struct rig *r)
{
    rig_init(r);
    r->settings.create_directory = true;
    rig_open(r);
    for (int i = 0; i < 3; i++)
        put_next(r->store, SIZE);
}

static void assert_all(struct rig *r, size_t n)
{
    rig_reopen(r);
    assert_int_equal(rig_list(r->store)->n, n);
    for (size_t i = 0; i < n; i++)
        assert_stored(r->store, i + 1, SIZE);
}

/* What is written afterwards is there for the next start, and so is what was there before. */
static void test_put_after(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
        struct rig r;
        begin(&r);
        deeds[i](&r);
        assert_int_equal(put_next(r.store, SIZE), 4);
        assert_int_equal(put_next(r.store, SIZE), 5);
        assert_all(&r, 5);
        rig_done(&r);
    }
}

static void test_close_after(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
        struct rig r;
        begin(&r);
        deeds[i](&r);
        assert_all(&r, 3);
        rig_done(&r);
    }
}

static void test_delete_after(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
        struct rig r;
        begin(&r);
        deeds[i](&r);
        assert_int_equal(delete_one(r.store, 3), 0);
        assert_all(&r, 2);
        rig_done(&r);
    }
}

static void test_set_aside(void **state)
{
    (void)state;
    struct rig r;
    glob_t found;
    char pattern[160], text[64] = "";
    begin(&r);
    do_replace(&r);
    put_next(r.store, SIZE);
    snprintf(pattern, sizeof(pattern), "%s.backup-*", rig_path(&r));
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    const int fd = open(found.gl_pathv[0], O_RDONLY);
    assert_int_equal(read(fd, text, sizeof(text) - 1), 16);
    assert_string_equal(text, "of somebody else");
    close(fd);
    globfree(&found);
    rig_done(&r);
}

/* Nothing is taken that would be lost; as soon as there is a place again it goes on. */
static void test_no_place(void **state)
{
    (void)state;
    struct rig r;
    begin(&r);
    r.settings.create_directory = false;
    struct store *second;
    struct err e;
    assert_int_equal(store_open(r.host, &r.settings, "exporter_x_traces", &second, &e), 0);
    store_close(second);
    do_remove_folder(&r);
    assert_true(try_put(r.store, 4, SIZE) < 0);
    assert_true(try_put(r.store, 4, SIZE) < 0);
    assert_int_equal(delete_one(r.store, 3), 0);
    assert_int_equal(mkdir(r.folder, 0700), 0);
    const uint64_t end_ns = clock_now_ns() + 60 * NS_PER_S;
    while (try_put(r.store, 4, SIZE) < 0 && clock_now_ns() < end_ns)
        usleep(10000);
    assert_int_equal(delete_one(r.store, 4), 0);
    assert_all(&r, 2);
    rig_done(&r);
}

/* Who has the lock meanwhile has the file. */
static void test_lock_taken(void **state)
{
    (void)state;
    struct rig r;
    begin(&r);
    do_unlink_both(&r);
    const int fd = open(lock_path(&r), O_RDWR | O_CREAT, 0600);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    write_file(rig_path(&r), "of somebody else");
    assert_true(try_put(r.store, 4, SIZE) < 0);
    r.store = store_close(r.store);
    struct stat sb;
    assert_int_equal(stat(rig_path(&r), &sb), 0);
    assert_int_equal(sb.st_size, 16);
    close(fd);
    rig_done(&r);
}

/* It is not read, so it kills nobody. */
static void test_cut(void **state)
{
    (void)state;
    for (off_t size = 0; size < 3 * 4096; size += 4096) {
        struct rig r;
        struct err e;
        begin(&r);
        assert_int_equal(truncate(rig_path(&r), size), 0);
        assert_true(try_read(r.store, 1, &e) < 0);
        assert_int_equal(try_put(r.store, 4, SIZE) < 0, size > 0);
        assert_int_equal(truncate(rig_path(&r), 0), 0);
        r.store = store_close(r.store);
        rig_open(&r);
        assert_int_equal(rig_list(r.store)->n, 0);
        rig_done(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_after),    cmocka_unit_test(test_close_after),
        cmocka_unit_test(test_delete_after), cmocka_unit_test(test_set_aside),
        cmocka_unit_test(test_no_place),     cmocka_unit_test(test_lock_taken),
        cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
