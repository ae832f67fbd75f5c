/* Files with secrets: what counts as new, what is a failure, and that each is told once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/pipeline/secret_file.h"
#include "temp_dir.h"

static void put(const char *path, const char *text, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), (ssize_t)len);
    close(fd);
}

/* The new text, "" for no change, or the error. */
static const char *poll_text(struct secret_file *f)
{
    static char text[1200];
    struct err e = {""};
    _cleanup_buf_ struct buf *b = NULL;
    int r = secret_file_poll(f, &b, &e);
    assert_int_equal(r == 1, b != NULL);
    snprintf(text, sizeof(text), "%s", r == 1 ? buf_str(b) : r == -EALREADY ? "again" : e.text);
    return text;
}

static void test_changes(void **state)
{
    (void)state;
    char dir[TEMP_DIR_BYTES], path[TEMP_DIR_BYTES + 16], other[TEMP_DIR_BYTES + 16];
    temp_dir_make(dir);
    snprintf(path, sizeof(path), "%s/token", dir);
    snprintf(other, sizeof(other), "%s/new", dir);
    struct secret_file f = {.path = path};
    put(path, "\n  one two \r\n", 13);
    assert_string_equal(poll_text(&f), "one two");
    assert_string_equal(poll_text(&f), "");
    put(path, "\n  one TWO \r\n", 13); /* the same size, perhaps the same time */
    assert_string_equal(poll_text(&f), "one TWO");
    put(other, "three", 5);
    assert_int_equal(rename(other, path), 0);
    assert_string_equal(poll_text(&f), "three");
    put(other, "four", 4);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("new", path), 0); /* as mounted secrets are swapped */
    assert_string_equal(poll_text(&f), "four");
    temp_dir_remove(dir);
}

static void test_failures(void **state)
{
    (void)state;
    char dir[TEMP_DIR_BYTES], path[TEMP_DIR_BYTES + 16], want[2 * TEMP_DIR_BYTES];
    temp_dir_make(dir);
    snprintf(path, sizeof(path), "%s/token", dir);
    struct secret_file f = {.path = path};
    snprintf(want, sizeof(want),
             "failed to read credentials file \"%s\": No such file or directory", path);
    assert_string_equal(poll_text(&f), want);
    assert_string_equal(poll_text(&f), "again");
    put(path, " \n", 2);
    snprintf(want, sizeof(want), "failed to read credentials file \"%s\": it is empty", path);
    assert_string_equal(poll_text(&f), want);
    put(path, "a\0b", 3);
    snprintf(want, sizeof(want), "failed to read credentials file \"%s\": it holds a NUL byte",
             path);
    assert_string_equal(poll_text(&f), want);
    put(path, "good", 4);
    assert_string_equal(poll_text(&f), "good");
    put(path, "", 0); /* as it is while somebody writes it */
    assert_non_null(strstr(poll_text(&f), "it is empty"));
    put(path, "good", 4); /* nothing new */
    assert_string_equal(poll_text(&f), "");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_non_null(strstr(poll_text(&f), "it is not a regular file"));
    temp_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
