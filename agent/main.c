/*
 * The program: its command line is never rewritten and it never starts itself again, so that `pkill
 * -f` finds it as it was started.
 */
#include <fcntl.h>
#include <stdio.h>

#include "agent/job.h"
#include "agent/life.h"

/* A descriptor 0, 1 or 2 that is closed would be given to a socket or file, which then gets log
 * lines. */
static void open_standard_fds(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            _exit(1);
}

int main(int argc, char **argv)
{
    struct command_line cl;
    struct err e = {0};
    open_standard_fds();
    int code = 1;
    if (command_line_parse(argc, argv, &cl, &e) < 0) {
        fprintf(stderr, "Error: %s\nRun 'motel --help' for usage.\n", e.text);
        code = command_usage_exit(&cl);
    } else if (cl.command == COMMAND_JOB) {
        code = job_run(&cl);
    } else if (cl.command != COMMAND_RUN) {
        code = command_run(&cl);
    } else {
        code = life_run(&cl, NULL);
    }
    command_line_done(&cl);
    return code;
}
