/*
 * What a replay remembers: a JSON file with a place for each input file, known by its path or inode
 * and by a hash of its first bytes, so that a new file of an old name begins at its beginning.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>

#include "agent/gym/index.h"
#include "agent/gym/replay_parts.h"

#define HEAD_BYTES 1024
#define VERSION 1

struct replay_state {
    const char *path, *to;
    json_t *root; /* {"version": 1, "to": "…", "files": [{…}]} */
};

/* ---- reading ---- */

static int bad_state(const char *path, const char *what, struct err *reterr)
{
    return err_set(
        reterr, -EBADMSG,
        "%s: %s; it is no state of motel replay, or a damaged one: name another file, or "
        "delete it to send everything again",
        path, what);
}

static int check_root(const char *path, const char *to, const json_t *root, struct err *reterr)
{
    const char *about = json_string_value(json_object_get(root, "to"));
    if (json_integer_value(json_object_get(root, "version")) != VERSION || !about ||
        !json_is_array(json_object_get(root, "files")))
        return bad_state(path, "expected \"version\": 1, \"to\" and \"files\"", reterr);
    if (strcmp(about, to) != 0)
        return err_set(
            reterr, -EINVAL,
            "%s: is about what was sent to %s, not to %s; use a state file for each target", path,
            about, to);
    return 0;
}

static json_t *read_root(const char *path, const char *to, struct err *reterr)
{
    json_error_t e;
    if (access(path, F_OK) < 0 && errno == ENOENT) {
        json_t *root = json_pack("{s:i, s:s, s:[]}", "version", VERSION, "to", to, "files");
        if (!root)
            err_set(reterr, -ENOMEM, "out of memory, or --to is not UTF-8");
        return root;
    }
    json_t *root = json_load_file(path, 0, &e);
    if (!root)
        bad_state(path, e.text, reterr);
    else if (check_root(path, to, root, reterr) < 0)
        json_decref(root);
    else
        return root;
    return NULL;
}

int replay_state_open(const char *path, const char *to, struct replay_state **ret,
                      struct err *reterr)
{
    struct replay_state *s = calloc(1, sizeof(*s));
    if (!s)
        return err_set(reterr, -ENOMEM, "out of memory");
    *s = (struct replay_state){.path = path, .to = to};
    s->root = read_root(path, to, reterr);
    if (!s->root) {
        free(s);
        return -EINVAL;
    }
    *ret = s;
    return 0;
}

struct replay_state *replay_state_free(struct replay_state *s)
{
    if (s)
        json_decref(s->root);
    free(s);
    return NULL;
}

/* ---- files ---- */

struct identity {
    char path[4096];
    uint64_t device, inode, head;
    size_t head_bytes;
};

/* The hash of the first `len` bytes, 0 when there are fewer. */
static uint64_t head_hash(int fd, size_t len)
{
    uint8_t head[HEAD_BYTES];
    if (len > sizeof(head) || pread(fd, head, len, 0) != (ssize_t)len)
        return 0;
    return hash_bytes(bytes_of(head, len), 1);
}

static int identify(const char *file, int fd, struct identity *ret)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    char *full = realpath(file, NULL);
    snprintf(ret->path, sizeof(ret->path), "%s", full ? full : file);
    free(full);
    ret->device = st.st_dev;
    ret->inode = st.st_ino;
    ret->head_bytes = st.st_size < HEAD_BYTES ? (size_t)st.st_size : HEAD_BYTES;
    ret->head = head_hash(fd, ret->head_bytes);
    return 0;
}

static uint64_t number(const json_t *o, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(o, key));
}

static bool is_about(const json_t *entry, const struct identity *id, int fd)
{
    const char *path = json_string_value(json_object_get(entry, "file"));
    const bool same_file =
        number(entry, "device") == id->device && number(entry, "inode") == id->inode;
    if (!same_file && (!path || strcmp(path, id->path) != 0))
        return false;
    const uint64_t bytes = number(entry, "head_bytes");
    return bytes <= HEAD_BYTES && number(entry, "head") == head_hash(fd, (size_t)bytes) >> 1;
}

static int read_place(const json_t *entry, struct replay_place *ret)
{
    const json_t *held = json_object_get(entry, "held");
    const size_t n = json_array_size(held);
    *ret = (struct replay_place){.offset = number(entry, "offset")};
    if (n && !(ret->held = calloc(n, sizeof(*ret->held))))
        return -ENOMEM;
    for (; ret->nheld < n; ret->nheld++) {
        const json_t *range = json_array_get(held, ret->nheld);
        ret->held[ret->nheld] =
            (struct console_range){(uint64_t)json_integer_value(json_array_get(range, 0)),
                                   (uint64_t)json_integer_value(json_array_get(range, 1))};
    }
    return 0;
}

/* Who the file is, as it is now: it may have been moved, or have grown beyond its first bytes. */
static int put_identity(json_t *entry, const struct identity *id)
{
    json_auto_t *now =
        json_pack("{s:s, s:I, s:I, s:I, s:I}", "file", id->path, "device", (json_int_t)id->device,
                  "inode", (json_int_t)id->inode, "head_bytes", (json_int_t)id->head_bytes, "head",
                  (json_int_t)(id->head >> 1));
    return !now || json_object_update(entry, now) < 0 ? -ENOMEM : 0;
}

int replay_state_find(struct replay_state *s, const char *file, int fd, size_t *ret_entry,
                      struct replay_place *ret)
{
    json_t *files = json_object_get(s->root, "files"), *entry;
    struct identity id;
    *ret = (struct replay_place){0};
    int r = identify(file, fd, &id);
    if (r < 0)
        return r;
    const size_t n = json_array_size(files);
    for (*ret_entry = 0; *ret_entry < n; ++*ret_entry)
        if (is_about(json_array_get(files, *ret_entry), &id, fd))
            break;
    if (*ret_entry == n && json_array_append_new(files, json_object()) < 0)
        return -ENOMEM;
    entry = json_array_get(files, *ret_entry);
    r = put_identity(entry, &id);
    return r < 0 ? r : read_place(entry, ret);
}

static json_t *held_json(const struct replay_place *p)
{
    json_t *held = json_array();
    for (size_t i = 0; held && i < p->nheld; i++)
        json_array_append_new(
            held, json_pack("[I, I]", (json_int_t)p->held[i].offset, (json_int_t)p->held[i].len));
    return held;
}

int replay_state_note(struct replay_state *s, size_t entry, const struct replay_place *p)
{
    json_t *e = json_array_get(json_object_get(s->root, "files"), entry);
    if (json_object_set_new(e, "offset", json_integer((json_int_t)p->offset)) < 0 ||
        json_object_set_new(e, "held", held_json(p)) < 0)
        return -ENOMEM;
    return 0;
}

/* ---- writing ---- */

static int write_all(int fd, const char *text, size_t len)
{
    while (len) {
        const ssize_t n = write(fd, text, len);
        if (n < 0)
            return -errno;
        text += n;
        len -= (size_t)n;
    }
    return fsync(fd) < 0 ? -errno : 0;
}

/* The old file stays whole until the new one is. */
int replay_state_write(const struct replay_state *s, struct err *reterr)
{
    _cleanup_free_ char *text = json_dumps(s->root, JSON_INDENT(1)), *temporary = NULL;
    if (!text || asprintf(&temporary, "%s.new", s->path) < 0)
        return err_set(reterr, -ENOMEM, "out of memory");
    _cleanup_close_ int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int r = fd < 0 ? -errno : write_all(fd, text, strlen(text));
    if (r == 0 && rename(temporary, s->path) < 0)
        r = -errno;
    return r < 0 ? err_set(reterr, r, "%s: cannot write: %s", s->path, strerror(-r)) : 0;
}
