/* Text outputs by name. */
#include "agent/pipeline/output.h"

#include <errno.h>
#include <fcntl.h>

#define WAITING_MAX_BYTES (16u << 20) /* past it exporters answer RETRY */

struct output {
    struct outlet *outlet;
    int fd;
};

static void output_close(void *thing)
{
    struct output *out = thing;
    outlet_free(out->outlet);
    if (out->fd > STDERR_FILENO)
        close(out->fd);
    free(out);
}

static int open_fd(const char *name)
{
    if (strcmp(name, "stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(name, "stderr") == 0)
        return STDERR_FILENO;
    return open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
}

static int output_open(void *ctx, void **ret_thing, struct err *reterr)
{
    const char *name = ctx;
    struct output *out = calloc(1, sizeof(*out));
    if (!out)
        return err_set(reterr, -ENOMEM, "out of memory");
    out->fd = open_fd(name);
    if (out->fd < 0) {
        int r = -errno;
        free(out);
        return err_set(reterr, r, "cannot open \"%s\": %s", name, strerror(-r));
    }
    out->outlet = outlet_new(out->fd, WAITING_MAX_BYTES);
    if (!out->outlet) {
        output_close(out);
        return err_set(reterr, -ENOMEM, "cannot start a writer for \"%s\"", name);
    }
    *ret_thing = out;
    return 0;
}

struct shared *output_share(struct host *h, const char *name, struct err *reterr)
{
    _cleanup_buf_ struct buf *key = buf_new(0);
    const char *text = NULL;
    if (key && buf_printf(key, "output:%s", name) == 0)
        text = buf_str(key);
    if (!text) {
        err_set(reterr, -ENOMEM, "out of memory");
        return NULL;
    }
    return host_share(h, text, output_open, (void *)name, output_close, reterr);
}

struct outlet *output_outlet(const struct shared *s)
{
    return ((const struct output *)s->thing)->outlet;
}
