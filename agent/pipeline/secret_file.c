#include "agent/pipeline/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/clock.h"

#define YOUNG_NS (2 * NS_PER_S)

static uint64_t ns_of(struct timespec t)
{
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           ns_of(a->st_mtim) == ns_of(b->st_mtim) && ns_of(a->st_ctim) == ns_of(b->st_ctim);
}

/* Changed so lately that the next change might not move its times. */
static bool is_young(const struct stat *s)
{
    const uint64_t now = clock_wall_ns();
    const uint64_t at = ns_of(s->st_ctim);
    return at + YOUNG_NS > now && at < now + YOUNG_NS;
}

static bool blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct bytes trimmed(struct bytes b)
{
    while (b.len && blank(b.data[b.len - 1]))
        b.len--;
    while (b.len && blank(*b.data))
        b = bytes_of(b.data + 1, b.len - 1);
    return b;
}

static int read_text(const char *path, struct stat *ret_seen, struct buf **ret)
{
    _cleanup_buf_ struct buf *all = buf_new(SECRET_FILE_MAX), *text = buf_new(0);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (!all || !text)
        return -ENOMEM;
    if (fd < 0 || fstat(fd, ret_seen) < 0)
        return -errno;
    if (!S_ISREG(ret_seen->st_mode))
        return -ENOTSUP;
    int r = buf_append_fd(all, fd);
    if (r < 0)
        return r;
    struct bytes t = trimmed(buf_bytes(all));
    if (t.len == 0)
        return -ENODATA;
    if (memchr(t.data, 0, t.len))
        return -EILSEQ;
    r = buf_append(text, t.data, t.len);
    explicit_bzero(all->data, all->len);
    if (r == 0)
        *ret = TAKE_PTR(text);
    return r;
}

static const char *reason(int code)
{
    switch (code) {
    case -ENOTSUP: return "it is not a regular file";
    case -ENODATA: return "it is empty";
    case -EILSEQ: return "it holds a NUL byte";
    case -EMSGSIZE: return "it is larger than 1 MiB";
    default: return strerror(-code);
    }
}

/* Told once, until it fails otherwise. */
static int fail(struct secret_file *f, int code, struct err *reterr)
{
    if (code == f->failed)
        return -EALREADY;
    f->failed = code;
    return err_set(reterr, code, "failed to read credentials file \"%s\": %s", f->path,
                   reason(code));
}

int secret_file_poll(struct secret_file *f, struct buf **ret, struct err *reterr)
{
    struct stat now;
    _cleanup_buf_ struct buf *text = NULL;
    uint8_t digest[SHA256_BYTES];
    if (stat(f->path, &now) < 0)
        return fail(f, -errno, reterr);
    if (!f->failed && f->known && same(&now, &f->seen) && !is_young(&now))
        return 0;
    int r = read_text(f->path, &now, &text);
    if (r < 0)
        return fail(f, r, reterr);
    digest_sha256(buf_bytes(text), digest);
    bool new = !f->known || memcmp(digest, f->digest, sizeof(digest)) != 0;
    f->seen = now;
    f->known = true;
    f->failed = 0;
    memcpy(f->digest, digest, sizeof(digest));
    if (new)
        *ret = TAKE_PTR(text);
    return new;
}
