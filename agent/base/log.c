/* Log lines: rendering, sampling, output. */
#include "agent/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/clock.h"
#include "agent/base/json_text.h"
#include "agent/base/plain_text.h"
#include "agent/base/secrets.h"

#define MAX_OUTPUTS 8
#define SAMPLE_SLOTS 1024
#define PATIENCE_MS 1000 /* with a pipe or terminal that takes nothing */

struct log_output {
    int fd;
    bool torn;     /* only a part of the last line went out */
    uint64_t lost; /* lines since the reader stopped; as long as it does, none waits */
};

struct sample_slot {
    uint64_t reset_ns;
    uint32_t hash, count;
};

static struct {
    pthread_mutex_t lock;
    _Atomic int level;
    enum log_encoding encoding;
    bool sampling;
    uint64_t tick_ns;
    uint32_t initial, thereafter;
    struct log_output outputs[MAX_OUTPUTS];
    int noutputs;
    char *resource, *initial_fields;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .level = LOG_INFO,
           .outputs = {{.fd = STDERR_FILENO}},
           .noutputs = 1};
static struct sample_slot sample_slots[SAMPLE_SLOTS]; /* under state.lock */

bool log_enabled(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&state.level, memory_order_relaxed);
}

static const char *level_name(enum log_level level)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    return level < ARRAY_SIZE(names) ? names[level] : "error";
}

static void put_key(struct buf *b, const char *key, bool *first)
{
    const bool console = state.encoding == LOG_CONSOLE;
    if (!*first)
        buf_append_str(b, console ? ", " : ",");
    *first = false;
    json_text(b, bytes_str(key));
    buf_append_str(b, console ? ": " : ":");
}

static void put_value(struct buf *b, const struct log_field *f)
{
    switch (f->type) {
    case LOG_FIELD_STR: json_text(b, bytes_str(f->s ? f->s : "")); break;
    case LOG_FIELD_INT: buf_printf(b, "%lld", (long long)f->i); break;
    case LOG_FIELD_DOUBLE: buf_printf(b, isfinite(f->d) ? "%g" : "\"%g\"", f->d); break;
    case LOG_FIELD_BOOL: buf_append_str(b, f->b ? "true" : "false"); break;
    case LOG_FIELD_RAW: buf_append_str(b, f->s); break;
    }
}

static void put_fields(struct buf *b, const struct logger *lg, const struct log_field *fields,
                       bool first)
{
    if (state.resource) {
        put_key(b, "resource", &first);
        buf_append_str(b, state.resource);
    }
    if (lg) {
        const char *const pairs[][2] = {{"otelcol.component.id", lg->id},
                                        {"otelcol.component.kind", lg->kind},
                                        {"otelcol.pipeline.id", lg->pipeline},
                                        {"otelcol.signal", lg->signal}};
        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
            if (!pairs[i][1])
                continue;
            put_key(b, pairs[i][0], &first);
            json_text(b, bytes_str(pairs[i][1]));
        }
    }
    for (; fields->key; fields++) {
        put_key(b, fields->key, &first);
        put_value(b, fields);
    }
    if (state.initial_fields) {
        buf_append_str(b, first ? "" : state.encoding == LOG_CONSOLE ? ", " : ",");
        buf_append_str(b, state.initial_fields);
    }
}

/* No control character reaches a terminal; a message is one line, a text may have more. */
static void put_message(struct buf *b, struct bytes msg, bool lines)
{
    buf_reserve(b, msg.len);
    plain_text(b, msg, ' ', lines ? "\n\t" : "");
}

static void render_console(struct buf *b, enum log_level level, const struct logger *lg,
                           struct bytes msg, bool lines, const struct log_field *fields)
{
    char ts[25];
    clock_format_ms(clock_wall_ns(), ts);
    buf_printf(b, "%s\t%s\t", ts, level_name(level));
    put_message(b, msg, lines);
    buf_append_str(b, "\t{");
    size_t start = b->len;
    put_fields(b, lg, fields, true);
    if (b->len == start)
        buf_truncate(b, start - 2);
    else
        buf_putc(b, '}');
    buf_putc(b, '\n');
}

static void render_json(struct buf *b, enum log_level level, const struct logger *lg,
                        struct bytes msg, const struct log_field *fields)
{
    char ts[25];
    clock_format_ms(clock_wall_ns(), ts);
    buf_printf(b, "{\"level\":\"%s\",\"ts\":\"%s\",\"msg\":", level_name(level), ts);
    json_text(b, msg);
    put_fields(b, lg, fields, false);
    buf_append_str(b, "}\n");
}

/* False when nothing was taken in time. What poll() allows, up to PIPE_BUF, does not block. */
static bool write_all(struct log_output *o, struct bytes text)
{
    while (text.len) {
        struct pollfd p = {.fd = o->fd, .events = POLLOUT};
        if (poll(&p, 1, o->lost ? 0 : PATIENCE_MS) == 0)
            return false;
        ssize_t n = write(o->fd, text.data, text.len < PIPE_BUF ? text.len : PIPE_BUF);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return true;
        o->torn = (size_t)n < text.len;
        text = bytes_of(text.data + n, text.len - (size_t)n);
    }
    return true;
}

static bool say_lost(struct log_output *o)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    const struct log_field fields[] = {LOG_INT("lines", (long long)o->lost), {0}};
    const struct bytes msg = bytes_str("Log lines were lost: nobody read them");
    if (!b)
        return false;
    if (o->torn)
        buf_putc(b, '\n');
    if (state.encoding == LOG_JSON)
        render_json(b, LOG_WARN, NULL, msg, fields);
    else
        render_console(b, LOG_WARN, NULL, msg, false, fields);
    if (!write_all(o, buf_bytes(b)))
        return false;
    o->lost = 0;
    return true;
}

/* A reader that stops must not stop the program, which may be about to end. */
static void put_line(struct log_output *o, struct bytes line)
{
    if ((o->lost && !say_lost(o)) || !write_all(o, line))
        o->lost++;
}

static uint32_t hash_message(enum log_level level, struct bytes msg)
{
    uint32_t h = 2166136261u ^ level;
    for (size_t i = 0; i < msg.len; i++)
        h = (h ^ msg.data[i]) * 16777619u;
    return h;
}

/* Per level and message: the first `initial` lines of a tick, then every `thereafter`-th. */
static bool sampled_out(enum log_level level, struct bytes msg)
{
    if (!state.sampling)
        return false;
    uint32_t h = hash_message(level, msg);
    struct sample_slot *s = &sample_slots[h % SAMPLE_SLOTS];
    uint64_t now = clock_now_ns();
    if (s->hash != h || now >= s->reset_ns)
        *s = (struct sample_slot){.reset_ns = now + state.tick_ns, .hash = h};
    s->count++;
    if (s->count <= state.initial)
        return false;
    return !state.thereafter || (s->count - state.initial) % state.thereafter != 0;
}

static void write_line(struct bytes line)
{
    _cleanup_buf_ struct buf *clean = NULL;
    if (secrets_active() && secrets_found(line)) {
        clean = buf_new(0);
        if (!clean || secrets_redact(line, clean) < 0)
            return;
        line = buf_bytes(clean);
    }
    for (int i = 0; i < state.noutputs; i++)
        put_line(&state.outputs[i], line);
}

static void log_message(enum log_level level, const struct logger *lg, struct bytes msg, bool lines,
                        const struct log_field *fields)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    if (!b)
        return;
    pthread_mutex_lock(&state.lock);
    if (log_enabled(level) && !sampled_out(level, msg)) {
        if (state.encoding == LOG_JSON)
            render_json(b, level, lg, msg, fields);
        else
            render_console(b, level, lg, msg, lines, fields);
        write_line(buf_bytes(b));
    }
    pthread_mutex_unlock(&state.lock);
}

void log_event(enum log_level level, const struct logger *lg, const char *msg,
               const struct log_field *fields)
{
    log_message(level, lg, bytes_str(msg), false, fields);
}

void log_text(enum log_level level, const struct logger *lg, struct bytes text)
{
    log_message(level, lg, text, true, log_fields_());
}

static int open_output(const char *path)
{
    if (strcmp(path, "stderr") == 0)
        return STDERR_FILENO;
    if (strcmp(path, "stdout") == 0)
        return STDOUT_FILENO;
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    return fd < 0 ? -errno : fd;
}

static void close_outputs(const struct log_output *outputs, int n)
{
    for (int i = 0; i < n; i++)
        if (outputs[i].fd > STDERR_FILENO)
            close(outputs[i].fd);
}

/* What is known of the reader of a standard stream stays known at a reload. */
static struct log_output output_of(int fd)
{
    for (int i = 0; i < state.noutputs; i++)
        if (fd <= STDERR_FILENO && state.outputs[i].fd == fd)
            return state.outputs[i];
    return (struct log_output){.fd = fd};
}

static int open_outputs(const char *const *paths, struct log_output *outputs, int *ret_n,
                        struct err *reterr)
{
    static const char *const standard[] = {"stderr", NULL};
    int n = 0;
    for (paths = paths ? paths : standard; *paths && n < MAX_OUTPUTS; paths++) {
        int fd = open_output(*paths);
        if (fd < 0) {
            close_outputs(outputs, n);
            return err_set(reterr, fd, "cannot open \"%s\": %s", *paths, strerror(-fd));
        }
        outputs[n++] = (struct log_output){.fd = fd};
    }
    *ret_n = n;
    return 0;
}

int log_configure(const struct log_options *o, struct err *reterr)
{
    struct log_output outputs[MAX_OUTPUTS];
    int n = 0;
    int r = open_outputs(o->output_paths, outputs, &n, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&state.lock);
    for (int i = 0; i < n; i++)
        outputs[i] = output_of(outputs[i].fd);
    close_outputs(state.outputs, state.noutputs);
    memcpy(state.outputs, outputs, sizeof(outputs));
    state.noutputs = n;
    atomic_store(&state.level, (int)o->level);
    state.encoding = o->encoding;
    state.sampling = o->sampling;
    state.tick_ns = o->sampling_tick_ns;
    state.initial = o->sampling_initial;
    state.thereafter = o->sampling_thereafter;
    free(state.resource);
    free(state.initial_fields);
    state.resource = o->resource_json ? strdup(o->resource_json) : NULL;
    state.initial_fields = o->initial_fields_json ? strdup(o->initial_fields_json) : NULL;
    pthread_mutex_unlock(&state.lock);
    return 0;
}
