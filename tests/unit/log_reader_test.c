/* Logging into a pipe whose reader stops. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/base/log.h"

#define LINES 40

static int log_to_pipe(int fds[2])
{
    char path[32];
    const char *paths[] = {path, NULL};
    assert_int_equal(pipe(fds), 0);
    snprintf(path, sizeof(path), "/dev/fd/%d", fds[1]);
    return log_configure(&(struct log_options){.level = LOG_INFO, .output_paths = paths}, NULL);
}

static void log_long_line(char letter)
{
    char text[10000];
    memset(text, letter, sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    log_info(NULL, text);
}

/* What the pipe holds now, from the read end. */
static size_t drain(int fd, char *text, size_t size)
{
    size_t len = 0;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    for (ssize_t n; (n = read(fd, text + len, size - 1 - len)) > 0;)
        len += (size_t)n;
    text[len] = 0;
    return len;
}

/* 40 lines of 10 kB do not fit; without a bound this test would not end. */
static void a_stopped_reader_stops_nobody(void **state)
{
    static char text[200000];
    (void)state;
    int fds[2];
    assert_int_equal(log_to_pipe(fds), 0);
    for (int i = 0; i < LINES; i++)
        log_long_line('a');
    size_t first = drain(fds[0], text, sizeof(text));
    assert_in_range(first, 10000, 70000);
    assert_null(strstr(text, "lost"));
    log_info(NULL, "back again");
    drain(fds[0], text, sizeof(text));
    int lost = 0;
    const char *notice = strstr(text, "Log lines were lost");
    assert_non_null(notice);
    assert_int_equal(sscanf(strstr(notice, "{"), "{\"lines\": %d}", &lost), 1);
    assert_int_equal(lost, LINES - (int)(first / 10000));
    assert_int_equal(text[0], '\n'); /* the line that was cut */
    assert_non_null(strstr(notice, "\tback again\n"));
    log_long_line('b'); /* all is well again: a line that goes out in pieces is whole */
    assert_in_range(drain(fds[0], text, sizeof(text)), 10000, 10100);
    assert_null(strstr(text, "lost"));
    assert_int_equal(log_configure(&(struct log_options){.level = LOG_INFO}, NULL), 0);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_stopped_reader_stops_nobody)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
