#include "exporters/file/repair.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK 65536
#define HEADER 4
#define LINE_START "{\"resource" /* what every line of ours begins with */

/* Up to `n` bytes at `at`; how many, or a negative errno. */
static ssize_t read_at(int fd, void *out, size_t n, off_t at)
{
    ssize_t r;
    do
        r = pread(fd, out, n, at);
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : r;
}

static int cut(int fd, off_t end, off_t size, enum repair *ret, off_t *ret_cut)
{
    if (ftruncate(fd, end) < 0)
        return -errno;
    *ret = REPAIR_CUT;
    *ret_cut = size - end;
    return 0;
}

/* ---- lines ---- */

/* Where the last line begins that has no newline; `size` when there is none. */
static off_t find_line(int fd, off_t size)
{
    char chunk[CHUNK];
    for (off_t end = size; end > 0;) {
        off_t from = end > CHUNK ? end - CHUNK : 0;
        ssize_t n = read_at(fd, chunk, (size_t)(end - from), from);
        if (n != end - from)
            return n < 0 ? n : -EIO;
        const char *newline = memrchr(chunk, '\n', (size_t)n);
        if (newline)
            return from + (newline - chunk) + 1;
        end = from;
    }
    return 0;
}

/* Follows braces and strings of JSON text. */
struct json_scan {
    int depth;
    bool string, escape, done, broken;
};

static void scan_string(struct json_scan *s, char c)
{
    if (s->escape)
        s->escape = false;
    else if (c == '\\')
        s->escape = true;
    else if (c == '"')
        s->string = false;
}

static void scan_byte(struct json_scan *s, char c)
{
    if (s->done)
        s->broken = true;
    else if (s->string)
        scan_string(s, c);
    else if (c == '"')
        s->string = true;
    else if (c == '{' || c == '[')
        s->depth++;
    else if (c == '}' || c == ']')
        s->done = --s->depth == 0;
}

/* 1 = the text from `at` to `size` is one whole object, 0 = it is not, or a negative errno. */
static int is_whole(int fd, off_t at, off_t size)
{
    struct json_scan s = {0};
    char chunk[CHUNK];
    while (at < size) {
        size_t want = size - at > CHUNK ? CHUNK : (size_t)(size - at);
        ssize_t n = read_at(fd, chunk, want, at);
        if (n <= 0)
            return n < 0 ? (int)n : -EIO;
        for (ssize_t i = 0; i < n; i++)
            scan_byte(&s, chunk[i]);
        at += n;
    }
    return s.done && !s.broken;
}

/* 1 = the text at `at` begins like a line of ours, as far as it goes. */
static int is_ours(int fd, off_t at, off_t size)
{
    char start[sizeof(LINE_START) - 1];
    size_t want = (size_t)(size - at) < sizeof(start) ? (size_t)(size - at) : sizeof(start);
    ssize_t n = read_at(fd, start, want, at);
    if (n < 0)
        return (int)n;
    return memcmp(start, LINE_START, (size_t)n) == 0;
}

static int repair_lines(int fd, off_t size, enum repair *ret, off_t *ret_cut)
{
    off_t at = find_line(fd, size);
    if (at < 0 || at == size)
        return at < 0 ? (int)at : 0;
    int whole = is_whole(fd, at, size);
    int ours = whole ? whole : is_ours(fd, at, size);
    if (whole < 0 || ours < 0)
        return whole < 0 ? whole : ours;
    if (ours && !whole)
        return cut(fd, at, size, ret, ret_cut);
    if (pwrite(fd, "\n", 1, size) != 1) /* with O_APPEND it goes to the end in any case */
        return -errno;
    *ret = REPAIR_ENDED;
    return 0;
}

/* ---- frames ---- */

/* Where the first frame begins that is not whole; `size` when all are. */
static off_t find_frame(int fd, off_t size)
{
    uint8_t chunk[CHUNK];
    off_t from = 0, at = 0; /* the chunk holds from..from+have */
    ssize_t have = 0;
    while (size - at >= HEADER) {
        if (at < from || at + HEADER > from + have) {
            have = read_at(fd, chunk, sizeof(chunk), at);
            if (have < HEADER)
                return have < 0 ? have : -EIO;
            from = at;
        }
        const uint8_t *p = chunk + (at - from);
        off_t len = (off_t)p[0] << 24 | (off_t)p[1] << 16 | (off_t)p[2] << 8 | p[3];
        if (len > size - at - HEADER)
            return at;
        at += HEADER + len;
    }
    return at;
}

/* 1 = what stands at `at` may be the front of a frame of ours: a request begins with field 1, JSON
 * with a brace, zstd with its magic number. */
static int is_frame(int fd, off_t at, off_t size)
{
    static const uint8_t zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    uint8_t head[HEADER + sizeof(zstd)];
    ssize_t n = read_at(fd, head, sizeof(head), at);
    if (n < 0)
        return (int)n;
    if (n <= HEADER || size - at <= HEADER)
        return 1;
    n -= HEADER;
    return head[HEADER] == 0x0a || head[HEADER] == '{' ||
           memcmp(head + HEADER, zstd, (size_t)n) == 0;
}

static int repair_frames(int fd, off_t size, enum repair *ret, off_t *ret_cut)
{
    off_t at = find_frame(fd, size);
    if (at < 0 || at == size)
        return at < 0 ? (int)at : 0;
    int ours = is_frame(fd, at, size);
    if (ours <= 0)
        return ours < 0 ? ours : -EBADMSG;
    return cut(fd, at, size, ret, ret_cut);
}

int file_repair(int fd, bool framed, enum repair *ret, off_t *ret_cut)
{
    struct stat st;
    *ret = REPAIR_NONE;
    *ret_cut = 0;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_size == 0)
        return 0;
    return framed ? repair_frames(fd, st.st_size, ret, ret_cut)
                  : repair_lines(fd, st.st_size, ret, ret_cut);
}
