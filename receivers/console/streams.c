/* Standard input, named pipes, and streams that were registered. */
#include <errno.h>
#include <fcntl.h>

#include "receivers/console/console.h"

#define OUTLET_BYTES ((size_t)16 << 20)

static bool has_source(const struct console *c, enum source_kind kind, const char *path)
{
    const struct source *s = c->sources;
    while (s && (s->kind != kind || strcmp(s->path, path) != 0))
        s = s->next;
    return s != NULL;
}

static int add(struct console *c, struct source *s, struct err *reterr)
{
    if (!s)
        return err_set(reterr, -ENOMEM, "out of memory");
    *sources_end(&c->sources) = s;
    return 0;
}

/* ---- pipes ---- */

/* With a writer of our own the pipe has no end when the last program that writes to it closes it.
 */
static int open_pipe(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))) {
        close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

static bool is_another(const struct source *s)
{
    struct stat here, there;
    return fstat(s->fd, &here) == 0 && stat(s->path, &there) == 0 &&
           (here.st_dev != there.st_dev || here.st_ino != there.st_ino);
}

void pipe_check(struct source *s)
{
    if (s->fd >= 0 && is_another(s) && !s->more) {
        console_flush(s->reader, false);
        close(s->fd);
        s->fd = -1;
    }
    if (s->fd >= 0)
        return;
    s->fd = open_pipe(s->path);
    s->more = s->fd >= 0;
    if (s->fd >= 0)
        log_info(&s->owner->c.logger, "Reading pipe", LOG_STR("path", s->path));
}

static int add_pipe(struct console *c, const char *path, struct err *reterr)
{
    struct stat st;
    if (has_source(c, SOURCE_PIPE, path))
        return 0;
    if (stat(path, &st) == 0 && !S_ISFIFO(st.st_mode))
        return err_set(reterr, -EINVAL, "\"%s\" is no named pipe", path);
    return add(c, source_new(c, SOURCE_PIPE, path, -1), reterr);
}

/* ---- registered ---- */

static int set_outlet(struct source *s, int fd, struct err *reterr)
{
    s->own_outlet = true;
    s->outlet = fd < 0 ? NULL : outlet_new(fd, OUTLET_BYTES);
    return fd < 0 || s->outlet ? 0 : err_set(reterr, -ENOMEM, "out of memory");
}

static int add_registered(struct console *c, const struct console_source *from, struct err *reterr)
{
    struct source *s = source_new(c, SOURCE_STREAM, from->label, from->fd);
    if (!s) {
        if (from->ended)
            from->ended(from->ctx);
        return err_set(reterr, -ENOMEM, "out of memory");
    }
    s->pass = from->pass;
    s->on_end = from->ended;
    s->ctx = from->ctx;
    *sources_end(&c->sources) = s;
    return set_outlet(s, from->pass_fd, reterr);
}

int streams_open(struct console *c, struct err *reterr)
{
    const char *const *pipes = c->config->pipes.items;
    struct console_source from;
    int r = 0;
    for (size_t i = 0; r == 0 && i < c->config->pipes.n; i++)
        r = add_pipe(c, pipes[i], reterr);
    if (r == 0 && c->config->from_stdin && !has_source(c, SOURCE_STREAM, "stdin"))
        r = add(c, source_new(c, SOURCE_STREAM, "stdin", STDIN_FILENO), reterr);
    while (r == 0 && console_source_take(c->c.id, &from))
        r = add_registered(c, &from, reterr);
    return r;
}
