/* Plain lines as log records: the line is the body, attributes say which file or stream it was in.
 */
#include "receivers/console/plain_log.h"

#include <errno.h>

#include "proto/any_value.h"
#include "proto/otlp_fields.h"
#include "proto/schema.h"

static int put_value(struct buf *out, uint8_t number, struct bytes text)
{
    const struct any_value v = {.kind = ANY_STRING, .bytes = text};
    size_t mark;
    int r = wire_begin(out, number, &mark);
    if (r == 0)
        r = any_value_write(&v, out);
    return r == 0 ? wire_end(out, mark) : r;
}

static int put_attribute(struct buf *out, const char *key, const char *value)
{
    size_t mark;
    int r = wire_begin(out, LOG_ATTRIBUTES, &mark);
    if (r == 0)
        r = wire_put_str(out, 1, key);
    if (r == 0)
        r = put_value(out, 2, bytes_str(value));
    return r == 0 ? wire_end(out, mark) : r;
}

static int put_origin(struct buf *out, const struct source *s)
{
    const char *slash = strrchr(s->path, '/');
    bool output = strcmp(s->path, "stdout") == 0 || strcmp(s->path, "stderr") == 0;
    if (s->kind == SOURCE_STREAM)
        return output ? put_attribute(out, "log.iostream", s->path) : 0;
    int r = put_attribute(out, "log.file.name", slash ? slash + 1 : s->path);
    return r == 0 ? put_attribute(out, "log.file.path", s->path) : r;
}

static struct bytes cut_line_end(struct bytes line)
{
    while (line.len && (line.data[line.len - 1] == '\n' || line.data[line.len - 1] == '\r'))
        line.len--;
    return line;
}

static bool is_blank(struct bytes line)
{
    size_t i = 0;
    while (i < line.len && (line.data[i] == ' ' || line.data[i] == '\t'))
        i++;
    return i == line.len;
}

int plain_log_add(struct buf *logs, const struct source *s, struct bytes line)
{
    size_t before = logs->len, mark;
    line = cut_line_end(line);
    if (is_blank(line))
        return 0;
    int r = wire_begin(logs, ENTRY_ITEMS, &mark);
    if (r == 0)
        r = wire_put_fixed64(logs, LOG_OBSERVED_TIME, clock_wall_ns());
    if (r == 0)
        r = put_value(logs, LOG_BODY, line);
    if (r == 0)
        r = put_origin(logs, s);
    if (r == 0)
        r = wire_end(logs, mark);
    if (r < 0)
        buf_truncate(logs, before);
    return r;
}

int plain_log_take(struct buf **logs, struct batch **ret)
{
    size_t entry;
    struct buf *empty = buf_new(0), *wire = buf_new(0);
    int r = empty && wire ? wire_begin(wire, OTLP_ENTRIES, &entry) : -ENOMEM;
    if (r == 0)
        r = wire_put_bytes(wire, ENTRY_ITEMS, buf_bytes(*logs));
    if (r == 0)
        r = wire_end(wire, entry);
    if (r == 0)
        r = batch_from_wire(SIGNAL_LOGS, TAKE_PTR(wire), ret, NULL);
    buf_unref(wire);
    if (r < 0) {
        buf_unref(empty);
        return -ENOMEM;
    }
    buf_unref(*logs);
    *logs = empty;
    return 0;
}
