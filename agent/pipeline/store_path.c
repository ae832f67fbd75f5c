/* Names, the directory and the lock of queue files. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "agent/base/clock.h"
#include "agent/base/digest.h"
#include "agent/pipeline/store_parts.h"

#define NAME_MOST 200 /* bytes; with all that is put behind it, it stays below 255 */
#define LOCK_RETRY_NS (10 * NS_PER_MS)

char *store_name(const char *kind, const char *id, const char *part)
{
    const char *slash = strchr(id, '/');
    char *name = NULL;
    int n = asprintf(&name, "%s_%.*s_%s_%s", kind, (int)(slash ? slash - id : (long)strlen(id)), id,
                     slash ? slash + 1 : "", part);
    return n < 0 ? NULL : name;
}

static bool is_safe(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
}

/* One character of UTF-8 at `s`; a byte that begins none stands for itself. */
static unsigned character(const char **s)
{
    const unsigned char *p = (const unsigned char *)*s;
    const unsigned more = p[0] >= 0xf0 ? 3 : p[0] >= 0xe0 ? 2 : p[0] >= 0xc0 ? 1 : 0;
    unsigned c = more ? p[0] & (0x3fu >> more) : p[0], i = 1;
    for (; i <= more && (p[i] & 0xc0) == 0x80; i++)
        c = c << 6 | (p[i] & 0x3f);
    const bool whole = i > more;
    *s += whole ? more + 1 : 1;
    return whole ? c : p[0];
}

char *store_safe_name(const char *name)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    int r = b ? 0 : -ENOMEM;
    for (const char *s = name; r == 0 && *s;)
        r = is_safe(*s) ? buf_putc(b, *s++) : buf_printf(b, "~%04X", character(&s));
    if (r < 0)
        return NULL;
    if (b->len <= NAME_MOST)
        return strndup(b->len ? (const char *)b->data : "", b->len);
    char hex[2 * SHA256_BYTES];
    digest_sha256_hex(buf_bytes(b), hex);
    return strndup(hex, sizeof(hex));
}

/* ---- the directory ---- */

static int make_directories(const char *path, mode_t mode)
{
    _cleanup_free_ char *dir = strdup(path);
    if (!dir)
        return -ENOMEM;
    for (char *s = dir + 1; *s; s++)
        if (*s == '/') {
            *s = '\0';
            if (mkdir(dir, mode) < 0 && errno != EEXIST)
                return -errno;
            *s = '/';
        }
    return mkdir(dir, mode) < 0 && errno != EEXIST ? -errno : 0;
}

/* Whether files can be made in it is tried: permissions, mounts and full tables all count. */
static int try_to_write(const char *dir, struct err *reterr)
{
    _cleanup_free_ char *path = NULL;
    if (asprintf(&path, "%s/.motel-XXXXXX", dir) < 0)
        return err_set(reterr, -ENOMEM, "out of memory");
    _cleanup_close_ int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0 && errno != ENOSPC && errno != EDQUOT)
        return err_set(reterr, -errno, "cannot make files in the storage directory %s: %s", dir,
                       strerror(errno));
    if (fd >= 0)
        unlink(path);
    return 0;
}

int store_directory_check(const struct store_settings *s, struct err *reterr)
{
    struct stat st;
    const mode_t mode = s->directory_mode ? (mode_t)s->directory_mode : 0750;
    if (stat(s->directory, &st) < 0) {
        if (errno != ENOENT || !s->create_directory)
            return err_set(reterr, -errno, "cannot use the storage directory %s: %s", s->directory,
                           strerror(errno));
        const int r = make_directories(s->directory, mode);
        if (r < 0)
            return err_set(reterr, r, "cannot make the storage directory %s: %s", s->directory,
                           strerror(-r));
    } else if (!S_ISDIR(st.st_mode)) {
        return err_set(reterr, -ENOTDIR, "%s is not a directory", s->directory);
    }
    return try_to_write(s->directory, reterr);
}

/* ---- the lock ---- */

static int wait_for_lock(int fd, uint64_t until_ns)
{
    const struct timespec pause = {.tv_nsec = LOCK_RETRY_NS};
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -errno;
        if (clock_now_ns() >= until_ns)
            return -EWOULDBLOCK;
        nanosleep(&pause, NULL);
    }
    return 0;
}

int store_lock(const char *path, int64_t timeout_ns, int *ret_fd, struct err *reterr)
{
    char waited[32];
    _cleanup_free_ char *name = NULL;
    if (asprintf(&name, "%s.lock", path) < 0)
        return err_set(reterr, -ENOMEM, "out of memory");
    _cleanup_close_ int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_set(reterr, -errno, "cannot open %s: %s", name, strerror(errno));
    const uint64_t most = timeout_ns > 0 ? (uint64_t)timeout_ns : 0;
    const int r = wait_for_lock(fd, clock_now_ns() + most);
    duration_text(timeout_ns, waited);
    if (r == -EWOULDBLOCK)
        return err_set(reterr, r, "%s: the queue file is held by another process (waited %s)", path,
                       waited);
    if (r < 0)
        return err_set(reterr, r, "cannot lock %s: %s", name, strerror(-r));
    *ret_fd = TAKE_FD(fd);
    return 0;
}
