/* Files and directories, without leaving anything in them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "agent/base/clock.h"
#include "agent/pipeline/probe.h"

#define ROOM_BYTES (100ull << 20) /* less is worth a warning */
#define SOON_S (14 * 86400)       /* so is a certificate that ends within two weeks */

/* The directory part of a path; "." when it has none. To be freed. */
static char *directory_of(const char *path)
{
    char *copy = strdup(path), *slash = copy ? strrchr(copy, '/') : NULL;
    if (!copy || slash == copy) {
        if (copy)
            copy[1] = 0;
        return copy;
    }
    if (slash) {
        *slash = 0;
        return copy;
    }
    free(copy);
    return strdup(".");
}

/* Whether a file can be made there: 0 or -errno. O_TMPFILE leaves nothing, whatever happens. */
static int try_to_make(const char *directory)
{
    int fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL))
        return access(directory, W_OK | X_OK) < 0 ? -errno : 0;
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

/* The nearest directory above that is there; to be freed. */
static char *nearest(const char *path)
{
    struct stat st;
    char *at = strdup(path);
    while (at && stat(at, &st) < 0 && strcmp(at, "/") != 0 && strcmp(at, ".") != 0) {
        char *up = directory_of(at);
        free(at);
        at = up;
    }
    return at;
}

static const char *size_text(unsigned long long bytes, char ret[32])
{
    if (bytes >= 10ull << 30)
        snprintf(ret, 32, "%llu GiB", bytes >> 30);
    else
        snprintf(ret, 32, "%llu MiB", bytes >> 20);
    return ret;
}

/* The room on the file system: in `ret` as text; false = there is none. */
static enum probe_grade room_of(const char *directory, char *ret, size_t size)
{
    struct statvfs v;
    char text[32];
    if (statvfs(directory, &v) < 0) {
        snprintf(ret, size, "room not known");
        return PROBE_OK;
    }
    const unsigned long long bytes = (unsigned long long)v.f_bavail * v.f_frsize;
    if (v.f_flag & ST_RDONLY) {
        snprintf(ret, size, "the file system is read-only");
        return PROBE_FAIL;
    }
    if (v.f_files && v.f_favail == 0) {
        snprintf(ret, size, "the file system has no room for more files (inodes)");
        return PROBE_FAIL;
    }
    snprintf(ret, size, "%s free", size_text(bytes, text));
    return bytes == 0 ? PROBE_FAIL : bytes < ROOM_BYTES ? PROBE_WARN : PROBE_OK;
}

static const char *who(char ret[64])
{
    snprintf(ret, 64, "this user (uid %u)", (unsigned)geteuid());
    return ret;
}

/* ---- what is written ---- */

static void say_room(struct probe *p, const char *check, const char *path, const char *directory,
                     const char *what)
{
    char room[100];
    const enum probe_grade g = room_of(directory, room, sizeof(room));
    if (g == PROBE_FAIL)
        probe_fail(p, check, path, "make room there, or choose another place", "%s", room);
    else if (g == PROBE_WARN)
        probe_warn(p, check, path, "make room there, or choose another place", "%s, %s", what,
                   room);
    else
        probe_ok(p, check, path, "%s, %s", what, room);
}

/* A directory that is there. False after a failure. */
static bool can_make_in(struct probe *p, const char *check, const char *path, const char *directory)
{
    char user[64];
    const int r = try_to_make(directory);
    if (r == 0)
        return true;
    probe_fail(p, check, path,
               r == -EROFS    ? "the file system is read-only: choose a path on another one"
               : r == -ENOSPC ? "make room there, or choose another place"
                              : "change the owner or the mode of the directory, or choose "
                                "another path",
               "%s cannot make files in %s: %s", who(user), directory, strerror(-r));
    return false;
}

static void missing_directory(struct probe *p, const char *check, const char *path,
                              const char *directory, bool make)
{
    _cleanup_free_ char *above = nearest(directory);
    struct stat st;
    if (!make || !above)
        probe_fail(p, check, path, "make it (mkdir -p), or correct the path",
                   "there is no directory %s", directory);
    else if (stat(above, &st) == 0 && !S_ISDIR(st.st_mode))
        probe_fail(p, check, path, "choose another path", "%s is not a directory", above);
    else if (can_make_in(p, check, path, above))
        say_room(p, check, path, above, "the directory is made at the start");
}

static void present_file(struct probe *p, const char *path, const struct stat *st, const char *fate)
{
    char what[200], user[64];
    if (S_ISDIR(st->st_mode)) {
        probe_fail(p, "file", path, "name a file in it", "it is a directory");
        return;
    }
    if (!S_ISREG(st->st_mode)) {
        probe_ok(p, "file", path, "not an ordinary file (a device or pipe)");
        return;
    }
    const int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        probe_fail(p, "file", path, "change its owner or mode, or choose another path",
                   "%s cannot write to it (mode %04o, uid %u): %s", who(user),
                   (unsigned)st->st_mode & 07777, (unsigned)st->st_uid, strerror(errno));
        return;
    }
    close(fd);
    snprintf(what, sizeof(what), "writable, mode %04o%s%s", (unsigned)st->st_mode & 07777,
             *fate && st->st_size ? "; the file that is there " : "",
             *fate && st->st_size ? fate : "");
    _cleanup_free_ char *directory = directory_of(path);
    say_room(p, "file", path, directory ? directory : ".", what);
}

void probe_output_file(struct probe *p, const char *path, bool make_parents, const char *fate)
{
    struct stat st;
    if (stat(path, &st) == 0) {
        present_file(p, path, &st, fate);
        return;
    }
    if (errno == EACCES) {
        probe_fail(p, "file", path, "a directory above may not be entered: change its mode", "%s",
                   strerror(errno));
        return;
    }
    _cleanup_free_ char *directory = directory_of(path);
    if (!directory)
        return;
    if (stat(directory, &st) < 0)
        missing_directory(p, "file", path, directory, make_parents);
    else if (!S_ISDIR(st.st_mode))
        probe_fail(p, "file", path, "choose another path", "%s is not a directory", directory);
    else if (can_make_in(p, "file", path, directory))
        say_room(p, "file", path, directory, "can be made");
}

void probe_directory(struct probe *p, const char *path, bool make)
{
    struct stat st;
    if (stat(path, &st) < 0)
        missing_directory(p, "directory", path, path, make);
    else if (!S_ISDIR(st.st_mode))
        probe_fail(p, "directory", path, "choose another path", "it is not a directory");
    else if (can_make_in(p, "directory", path, path))
        say_room(p, "directory", path, path, "writable");
}

/* ---- what is read ---- */

bool probe_input_file(struct probe *p, const char *path, bool secret)
{
    char user[64];
    struct stat st;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0) {
        const int code = errno;
        probe_fail(p, "file", path,
                   code == ENOENT ? "make it, or correct the path"
                                  : "change its owner or mode, or choose another path",
                   "%s cannot read it: %s", who(user), strerror(code));
        return false;
    }
    if (S_ISDIR(st.st_mode)) {
        probe_fail(p, "file", path, "name a file in it", "it is a directory");
        return false;
    }
    if (S_ISREG(st.st_mode) && st.st_size == 0) {
        probe_fail(p, "file", path, "write what is missing into it", "it is empty");
        return false;
    }
    if (secret && (st.st_mode & S_IROTH))
        probe_warn(p, "file", path, "chmod o-r", "readable, also by every user of this machine");
    else
        probe_ok(p, "file", path, "readable");
    return true;
}

void probe_certificate(struct probe *p, const char *check, const char *subject,
                       const struct certificate_info *c)
{
    char from[16], to[16];
    const int64_t now_s = (int64_t)(clock_wall_ns() / NS_PER_S);
    certificate_date(c->begins_s, from);
    certificate_date(c->expires_s, to);
    if (c->expires_s < now_s)
        probe_fail(p, check, subject, "renew it", "the certificate of %s expired on %s", c->subject,
                   to);
    else if (c->begins_s > now_s)
        probe_fail(p, check, subject, "look at the clock of this machine (date), or wait",
                   "the certificate of %s is valid from %s on only", c->subject, from);
    else if (c->expires_s - now_s < SOON_S)
        probe_warn(p, check, subject, "renew it soon", "the certificate of %s expires on %s",
                   c->subject, to);
    else
        probe_ok(p, check, subject, "the certificate of %s, by %s, is valid until %s", c->subject,
                 c->issuer, to);
}

bool probe_client_tls(struct probe *p, const struct tls_client_settings *s)
{
    struct certificate_info c;
    struct err e = {0};
    const bool file = s->cert_file && *s->cert_file, text = s->cert_pem && *s->cert_pem;
    if (tls_client_test(s, &e) < 0) {
        probe_fail(p, "certificate", "",
                   "the files under tls must be readable PEM files, and key and certificate belong "
                   "together",
                   "%s", e.text);
        return false;
    }
    if (tls_client_has_ca(s) && certificate_info_load(s->ca_file, s->ca_pem, &c, &e) == 0)
        probe_certificate(p, "certificate", s->ca_file && *s->ca_file ? s->ca_file : "tls::ca_pem",
                          &c);
    if ((file || text) && certificate_info_load(s->cert_file, s->cert_pem, &c, &e) == 0)
        probe_certificate(p, "certificate", file ? s->cert_file : "tls::cert_pem", &c);
    return true;
}
