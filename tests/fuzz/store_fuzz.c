/*
 * A queue file with bytes changed: it is refused, or opened, read, written to and emptied; never a
 * crash. The input is a list of changes: page, place in the page (two bytes), value.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/pipeline/graph.h"
#include "agent/pipeline/store.h"
#include "proto/wire.h"
#include "tests/fuzz/fuzz.h"

enum { PAGE_BYTES = 4096, PAGES_MOST = 256, CHANGE_BYTES = 4, IDS_MOST = 64 };

static struct host *host;
static char folder[64], path[128];
static struct store_settings settings = {.directory = folder};
static uint8_t original[PAGES_MOST * PAGE_BYTES], changed[PAGES_MOST * PAGE_BYTES];
static size_t original_bytes, pages_in_use;

static void must(bool ok)
{
    if (!ok)
        abort();
}

static struct batch *batch_of(size_t size)
{
    static uint8_t text[60000];
    static const uint32_t numbers[] = {1, 2, 2, 5};
    struct buf *b = buf_new(0);
    size_t marks[4];
    struct batch *ret;
    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < 4; i++)
        must(wire_begin(b, numbers[i], &marks[i]) == 0);
    must(wire_put_bytes(b, 1, bytes_of(text, size)) == 0);
    for (size_t i = 4; i-- > 0;)
        must(wire_end(b, marks[i]) == 0);
    must(batch_from_wire(SIGNAL_LOGS, b, &ret, NULL) == 0);
    return ret;
}

static int put(struct store *st, size_t size)
{
    struct batch *b = batch_of(size);
    const struct store_put p = {store_next_id(st), b};
    const int r = store_write(st, &p, 1, NULL, 0, NULL);
    batch_unref(b);
    return r;
}

static struct store *open_store(void)
{
    struct store *st = NULL;
    struct err e;
    return store_open(host, &settings, "q", &st, &e) == 0 ? st : NULL;
}

/* Two levels of pages, runs of several pages, small records, and free pages of several
 * transactions. */
static void make_original(void)
{
    static const size_t sizes[] = {100, 60000, 1900, 3000, 20000, 10};
    struct store *st = open_store();
    must(st);
    for (size_t i = 0; i < 30; i++)
        must(put(st, sizes[i % 6]) == 0);
    for (uint64_t id = 3; id < 24; id += 2)
        must(store_write(st, NULL, 0, &id, 1, NULL) == 0);
    store_close(st);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = read(fd, original, sizeof(original));
    close(fd);
    must(n > 0);
    pages_in_use = (size_t)n / PAGE_BYTES;
    while (original[pages_in_use * PAGE_BYTES - PAGE_BYTES] == 0 &&
           original[pages_in_use * PAGE_BYTES - PAGE_BYTES + 10] == 0)
        pages_in_use--;
    original_bytes = (pages_in_use + 8) * PAGE_BYTES;
    must(original_bytes <= (size_t)n);
}

static void clean_up(void)
{
    char lock[160];
    snprintf(lock, sizeof(lock), "%s.lock", path);
    unlink(path);
    unlink(lock);
    rmdir(folder);
}

static void set_up(void)
{
    snprintf(folder, sizeof(folder), "%s/motel-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    must(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/q.mdb", folder);
    host = host_new(NULL);
    must(host);
    make_original();
    atexit(clean_up);
}

static void change(const uint8_t *data, size_t size)
{
    memcpy(changed, original, original_bytes);
    for (; size >= CHANGE_BYTES; data += CHANGE_BYTES, size -= CHANGE_BYTES) {
        const size_t at = (data[1] | (size_t)data[2] << 8) % PAGE_BYTES;
        changed[data[0] % pages_in_use * PAGE_BYTES + at] = data[3];
    }
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0 && write(fd, changed, original_bytes) == (ssize_t)original_bytes);
    close(fd);
}

struct ids {
    uint64_t items[IDS_MOST];
    size_t n;
};

static bool note(void *ctx, const struct store_entry *e)
{
    struct ids *ids = ctx;
    if (ids->n < IDS_MOST)
        ids->items[ids->n++] = e->id;
    return true;
}

static void use(struct store *st)
{
    struct ids ids = {.n = 0};
    struct err e;
    if (store_each(st, note, &ids, &e) < 0)
        return;
    put(st, 30000);
    for (size_t i = 0; i < ids.n; i++) {
        struct batch *b = NULL;
        store_read(st, ids.items[i], &b, &e);
        batch_unref(b);
        must(store_write(st, NULL, 0, &ids.items[i], 1, &e) == 0);
    }
    put(st, 50000);
    ids.n = 0;
    must(store_each(st, note, &ids, &e) == 0);
    must(store_write(st, NULL, 0, ids.items, ids.n, &e) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!host)
        set_up();
    change(data, size);
    struct store *st = open_store();
    if (st)
        use(st);
    store_close(st);
    return 0;
}
