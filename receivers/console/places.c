/* What is stored between runs: where reading stopped in each file. JSON, written beside and
 * renamed, so that it is whole. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>

#include "agent/base/json_text.h"
#include "receivers/console/console.h"

#define STATE_VERSION 1

void places_done(struct places *st)
{
    for (size_t i = 0; i < st->n; i++) {
        free(st->files[i].path);
        mark_done(&st->files[i].mark);
    }
    free(st->files);
    *st = (struct places){0};
}

/* ---- reading ---- */

static uint64_t number_of(json_t *o, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(o, key));
}

/* Hashes are in hex: a JSON integer has a sign. */
static uint64_t hash_of(json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text ? strtoull(text, NULL, 16) : 0;
}

static int read_held(struct mark *m, json_t *list)
{
    size_t n = json_array_size(list);
    m->held = n ? calloc(n, sizeof(*m->held)) : NULL;
    if (n && !m->held)
        return -ENOMEM;
    m->nheld = n;
    for (size_t i = 0; i < n; i++) {
        json_t *pair = json_array_get(list, i);
        m->held[i].offset = (uint64_t)json_integer_value(json_array_get(pair, 0));
        m->held[i].len = (uint64_t)json_integer_value(json_array_get(pair, 1));
    }
    return 0;
}

static int read_file(struct stored_file *f, json_t *o)
{
    const char *path = json_string_value(json_object_get(o, "path"));
    f->path = path ? strdup(path) : NULL;
    f->mark = (struct mark){
        .dev = number_of(o, "dev"),
        .ino = number_of(o, "inode"),
        .offset = number_of(o, "offset"),
        .head_len = (uint32_t)number_of(o, "head_bytes"),
        .head_hash = hash_of(o, "head"),
        .tail_len = (uint32_t)number_of(o, "tail_bytes"),
        .tail_hash = hash_of(o, "tail"),
    };
    const struct mark *m = &f->mark;
    if (!f->path || m->head_len > MARK_BYTES || m->tail_len > MARK_TAIL || m->tail_len > m->offset)
        return -EINVAL;
    return read_held(&f->mark, json_object_get(o, "held"));
}

static int read_files(struct places *st, json_t *root)
{
    json_t *list = json_object_get(root, "files");
    size_t n = json_array_size(list);
    if (number_of(root, "version") != STATE_VERSION || !json_is_array(list))
        return -EINVAL;
    st->files = calloc(n + 1, sizeof(*st->files));
    if (!st->files)
        return -ENOMEM;
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        st->n++;
        r = read_file(&st->files[i], json_array_get(list, i));
    }
    return r;
}

int places_load(struct places *st, const char *path, struct err *reterr)
{
    json_error_t e;
    *st = (struct places){0};
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    _cleanup_fclose_ FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    if (!f)
        return err_set(reterr, -errno, "cannot open \"%s\": %s", path, strerror(errno));
    json_t *root = json_loadf(f, JSON_REJECT_DUPLICATES, &e);
    if (!root && ftell(f) <= 0)
        return 0; /* empty */
    int r = root ? read_files(st, root) : -EINVAL;
    json_decref(root);
    if (r == -EINVAL)
        err_set(reterr, r, "\"%s\" is not a file of stored places", path);
    if (r < 0)
        places_done(st);
    return r;
}

/* ---- writing ---- */

static int put_file(struct buf *b, const struct source *s)
{
    const struct mark *m = &s->mark;
    int r = buf_append_str(b, "{\"path\":");
    if (r == 0)
        r = json_text(b, bytes_str(s->path));
    if (r == 0)
        r = buf_printf(b,
                       ",\"dev\":%lu,\"inode\":%lu,\"offset\":%lu,\"head_bytes\":%u,\"head\":"
                       "\"%016lx\",\"tail_bytes\":%u,\"tail\":\"%016lx\",\"held\":[",
                       m->dev, m->ino, m->offset, m->head_len, m->head_hash, m->tail_len,
                       m->tail_hash);
    for (size_t i = 0; r == 0 && i < m->nheld; i++)
        r = buf_printf(b, "%s[%lu,%lu]", i ? "," : "", m->held[i].offset, m->held[i].len);
    return r == 0 ? buf_append_str(b, "]}") : r;
}

static int put_all(struct buf *b, const struct source *sources)
{
    bool first = true;
    int r = buf_printf(b, "{\"version\":%d,\"files\":[", STATE_VERSION);
    for (const struct source *s = sources; r == 0 && s; s = s->next) {
        if (s->kind != SOURCE_FILE || s->copy)
            continue;
        r = buf_append_str(b, first ? "\n" : ",\n");
        first = false;
        if (r == 0)
            r = put_file(b, s);
    }
    return r == 0 ? buf_append_str(b, "\n]}\n") : r;
}

static int write_all(int fd, struct bytes b)
{
    while (b.len) {
        ssize_t n = write(fd, b.data, b.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        b = bytes_of(b.data + n, b.len - (size_t)n);
    }
    return 0;
}

int places_save(const char *path, const struct source *sources)
{
    _cleanup_buf_ struct buf *text = buf_new(0);
    _cleanup_free_ char *beside = NULL;
    _cleanup_close_ int fd = -1;
    int r = text ? put_all(text, sources) : -ENOMEM;
    if (r < 0 || asprintf(&beside, "%s.new", path) < 0)
        return -ENOMEM;
    fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    r = fd < 0 ? -errno : write_all(fd, buf_bytes(text));
    if (r == 0 && rename(beside, path) < 0)
        r = -errno;
    return r;
}
