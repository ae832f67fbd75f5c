/* A terminal of its own for the output of a command that would have had one: it keeps its colours,
 * and its lines come one by one. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "agent/gym/run_parts.h"

void terminal_follow_size(int from_fd, int to_fd)
{
    struct winsize size;
    if (ioctl(from_fd, TIOCGWINSZ, &size) == 0)
        ioctl(to_fd, TIOCSWINSZ, &size);
}

/* Bytes go through as they are; the real terminal makes of them what it makes of all. */
static int set_raw(int fd)
{
    struct termios t;
    if (tcgetattr(fd, &t) < 0)
        return -errno;
    cfmakeraw(&t);
    return tcsetattr(fd, TCSANOW, &t) < 0 ? -errno : 0;
}

int terminal_open(int like_fd, int *ret_read, int *ret_write)
{
    char name[128];
    _cleanup_close_ int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
        return -errno;
    int r = ptsname_r(master, name, sizeof(name));
    if (r)
        return -r;
    _cleanup_close_ int slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    r = slave < 0 ? -errno : set_raw(slave);
    if (r < 0)
        return r;
    terminal_follow_size(like_fd, master);
    *ret_read = TAKE_FD(master);
    *ret_write = TAKE_FD(slave);
    return 0;
}
