/* Files that are not what they should be, and files that somebody else has open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <lmdb.h>
#include <sys/wait.h>

#include "agent/base/secrets.h"
#include "tests/unit/store_rig.h"

struct image {
    uint8_t *data;
    size_t len;
};

static struct image load(const char *path)
{
    struct image im = {0};
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    im.len = (size_t)ftell(f);
    rewind(f);
    im.data = malloc(im.len + 1);
    assert_int_equal(fread(im.data, 1, im.len, f), im.len);
    fclose(f);
    return im;
}

static void save(const char *path, const void *data, size_t len)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static size_t find(const struct image *im, const void *what, size_t len)
{
    const uint8_t *at = memmem(im->data, im->len, what, len);
    assert_non_null(at);
    return (size_t)(at - im->data);
}

/* A closed store with these requests: ids from 1 on. */
static struct image filled(struct rig *r, const size_t *sizes, size_t n)
{
    rig_init(r);
    rig_open(r);
    for (size_t i = 0; i < n; i++)
        put_next(r->store, sizes[i]);
    r->store = store_close(r->store);
    return load(rig_path(r));
}

static void test_damaged_request(void **state)
{
    (void)state;
    static const size_t sizes[] = {300, 40000, 300};
    static const size_t places[] = {20, 20000, 39000}; /* in the second request's text */
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        struct rig r;
        struct err e;
        struct image im = filled(&r, sizes, 3);
        struct batch *b = batch_of(2, 40000);
        const uint8_t *text = b->segs[0]->data + b->bytes - 40000;
        const size_t at = find(&im, text + places[i], 16);
        im.data[at + 5] ^= 1;
        save(rig_path(&r), im.data, im.len);
        rig_open(&r);
        assert_int_equal(rig_list(r.store)->n, 3);
        assert_stored(r.store, 1, 300);
        assert_int_equal(try_read(r.store, 2, &e), -EBADMSG);
        assert_non_null(strstr(e.text, "request 2 in "));
        assert_non_null(strstr(e.text, "checksum"));
        assert_stored(r.store, 3, 300);
        assert_int_equal(delete_one(r.store, 2), 0);
        assert_int_equal(rig_list(r.store)->n, 2);
        batch_unref(b);
        free(im.data);
        rig_done(&r);
    }
}

static char *backup_of(const struct rig *r, char *ret, size_t size)
{
    char command[200];
    snprintf(command, sizeof(command), "ls '%s' | grep backup", r->folder);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    *ret = '\0';
    if (fgets(ret, (int)size, f))
        ret[strcspn(ret, "\n")] = '\0';
    pclose(f);
    return ret;
}

/* It is refused, and left alone; with `recreate` it is kept beside an empty new one. */
static void refused(struct rig *r, const char *why)
{
    struct err e;
    char name[256], path[400];
    struct image before = load(rig_path(r));
    assert_int_equal(rig_try_open(r, &e), -EBADMSG);
    if (!strstr(e.text, why) || !strstr(e.text, "recreate: true") || !strstr(e.text, rig_path(r)))
        fail_msg("%s, expected %s", e.text, why);
    struct image after = load(rig_path(r));
    assert_int_equal(after.len, before.len);
    assert_memory_equal(after.data, before.data, before.len);
    free(after.data);
    r->settings.recreate = true;
    rig_open(r);
    assert_int_equal(rig_list(r->store)->n, 0);
    put_next(r->store, 100);
    snprintf(path, sizeof(path), "%s/%s", r->folder, backup_of(r, name, sizeof(name)));
    after = load(path);
    assert_int_equal(after.len, before.len);
    assert_memory_equal(after.data, before.data, before.len);
    free(after.data);
    free(before.data);
    rig_done(r);
}

static void test_other_files(void **state)
{
    (void)state;
    static const size_t sizes[] = {300, 40000};
    struct rig r;
    struct image im = filled(&r, sizes, 2);
    for (uint8_t *at = im.data;
         (at = memmem(at, im.len - (size_t)(at - im.data), "motel queue\n1\n", 14));)
        at[12] = '7'; /* older pages have it, too */
    save(rig_path(&r), im.data, im.len);
    free(im.data);
    refused(&r, "another format");

    im = filled(&r, sizes, 2); /* cut behind the first pages that are in use */
    save(rig_path(&r), im.data, 3 * 4096);
    free(im.data);
    refused(&r, "behind the end");

    im = filled(&r, sizes, 2);
    im.data[20] = 99; /* the version of LMDB's format */
    save(rig_path(&r), im.data, im.len);
    free(im.data);
    refused(&r, "LMDB format 99");

    rig_init(&r);
    save(rig_path(&r), "hello", 5);
    refused(&r, "too few");

    rig_init(&r);
    char text[20000];
    memset(text, 'x', sizeof(text));
    save(rig_path(&r), text, sizeof(text));
    refused(&r, "not of a queue file");
}

static void make_foreign(const char *path)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_val k = {3, (void *)"key"}, v = {5, (void *)"value"};
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOLOCK, 0600), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    assert_int_equal(mdb_put(txn, dbi, &k, &v, 0), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

static void test_foreign_lmdb(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    make_foreign(rig_path(&r));
    refused(&r, "not a queue");
}

static void test_new(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    save(rig_path(&r), "", 0); /* an empty file is a new one */
    rig_open(&r);
    put_next(r.store, 10);
    rig_done(&r);

    struct err e;
    rig_init(&r);
    mkdir(rig_path(&r), 0700);
    assert_true(rig_try_open(&r, &e) < 0);
    rig_done(&r);

    rig_init(&r);
    r.settings.directory = "/nonexistent/queue";
    assert_int_equal(rig_try_open(&r, &e), -ENOENT);
    assert_non_null(strstr(e.text, "/nonexistent/queue"));
    char deep[100];
    snprintf(deep, sizeof(deep), "%s/a/b", r.folder);
    r.settings.directory = deep;
    r.settings.create_directory = true;
    r.settings.directory_mode = 0700;
    rig_open(&r);
    struct stat st;
    assert_int_equal(stat(deep, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(stat(store_path(r.store), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    rig_done(&r);
}

/* Any bytes of a file may be wrong: it is refused, or what can be read of it is used, and nothing
 * else happens. */
static void test_random_damage(void **state)
{
    (void)state;
    static const size_t sizes[] = {300, 40000, 10, 2000, 17000, 100, 100, 70000, 5};
    struct rig r;
    struct image im = filled(&r, sizes, ARRAY_SIZE(sizes));
    rig_open(&r);
    for (uint64_t id = 2; id < 6; id++)
        assert_int_equal(delete_one(r.store, id), 0);
    r.store = store_close(r.store);
    free(im.data);
    im = load(rig_path(&r));
    size_t used = im.len; /* what is not zero */
    while (used > 4096 && im.data[used - 1] == 0)
        used--;
    const size_t pages = (used + 4095) / 4096;
    im.len = (pages + 16) * 4096;
    uint8_t *copy = malloc(im.len);
    unsigned x = 12345, opened = 0, refusals = 0;
    for (int i = 0; i < 250; i++) {
        struct err e;
        memcpy(copy, im.data, im.len);
        for (int k = 0; k <= i % 3; k++) {
            size_t page;
            do { /* every second time one that is no run of pages with a request */
                x = x * 1664525u + 1013904223u;
                page = (x >> 8) % pages;
            } while (i % 2 && !(im.data[page * 4096 + 10] & 11));
            x = x * 1664525u + 1013904223u;
            const size_t at = page * 4096 + (x >> 8) % (i % 2 ? 160 : 4096);
            copy[at] ^= (uint8_t)(1 + (x >> 4) % 255);
        }
        save(rig_path(&r), copy, im.len);
        if (rig_try_open(&r, &e) < 0) {
            refusals++;
            continue;
        }
        opened++;
        const struct list l = *rig_list(r.store);
        put_next(r.store, 30000);
        for (size_t n = 0; n < l.n; n++) {
            try_read(r.store, l.items[n].id, &e);
            assert_int_equal(delete_one(r.store, l.items[n].id), 0);
        }
        assert_int_equal(rig_list(r.store)->n, 1);
        r.store = store_close(r.store);
    }
    if (opened < 10 || refusals < 10)
        fail_msg("%u opened, %u refused", opened, refusals);
    free(copy);
    free(im.data);
    rig_done(&r);
}

/* ---- another process ---- */

static void tell(int fd)
{
    if (write(fd, "x", 1) != 1)
        _exit(3);
}

static void wait_for(int fd)
{
    char c;
    if (read(fd, &c, 1) < 0)
        _exit(4);
}

static void test_lock(void **state)
{
    (void)state;
    struct rig r;
    struct err e;
    int opened[2], close_it[2], status;
    rig_init(&r);
    assert_int_equal(pipe(opened) + pipe(close_it), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (rig_try_open(&r, &e) < 0)
            _exit(2);
        tell(opened[1]);
        wait_for(close_it[0]);
        store_close(r.store);
        _exit(0);
    }
    wait_for(opened[0]);
    r.settings.lock_timeout_ns = 50 * NS_PER_MS;
    assert_int_equal(rig_try_open(&r, &e), -EWOULDBLOCK);
    assert_non_null(
        strstr(e.text, "exporter_x_traces.mdb: the queue file is held by another process"));
    tell(close_it[1]);
    r.settings.lock_timeout_ns = 100 * (int64_t)NS_PER_S; /* and now it is waited for */
    rig_open(&r);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    rig_done(&r);
    for (int i = 0; i < 2; i++) {
        close(opened[i]);
        close(close_it[i]);
    }
}

/* ---- secrets ---- */

static const char secret[] = "sk-live-0123456789abcdef";

static struct batch *batch_with_secrets(void)
{
    char text[40000];
    memset(text, 'x', sizeof(text));
    memcpy(text + 100, secret, sizeof(secret) - 1);
    memcpy(text + 16316, secret, sizeof(secret) - 1); /* across the border of two records */
    memcpy(text + 39000, secret, sizeof(secret) - 1);
    memcpy(text + 39000 + sizeof(secret) - 1, secret, sizeof(secret) - 1);
    return batch_of_text(bytes_of(text, sizeof(text)));
}

static void test_secrets(void **state)
{
    (void)state;
    struct rig r;
    struct err e;
    struct batch *b = batch_with_secrets(), *got;
    rig_init(&r);
    rig_open(&r);
    assert_true(secrets_add("another-secret"));
    assert_true(secrets_add(secret));
    assert_int_equal(put_batch(r.store, 1, b, &e), 0);
    put_next(r.store, 100);
    rig_reopen(&r);
    assert_int_equal(store_read(r.store, 1, &got, &e), 0);
    assert_true(same_batch(got, b));
    batch_unref(got);
    struct image im = load(rig_path(&r));
    assert_null(memmem(im.data, im.len, secret, sizeof(secret) - 1));
    assert_null(memmem(im.data, im.len, secret, 10)); /* nor a part */
    free(im.data);
    secrets_enable(false); /* what is in the file comes back all the same */
    assert_int_equal(store_read(r.store, 1, &got, &e), 0);
    assert_true(same_batch(got, b));
    batch_unref(got);
    secrets_enable(true);
    secrets_clear();
    assert_true(secrets_add("another-secret"));
    assert_int_equal(try_read(r.store, 1, &e), -EBADMSG);
    /* printf %s sk-live-0123456789abcdef | sha256sum */
    assert_non_null(strstr(e.text, "SHA-256 begins with 8598adc1"));
    assert_null(strstr(e.text, secret));
    assert_stored(r.store, 2, 100);
    secrets_clear();
    batch_unref(b);
    rig_done(&r);
}

/* A log record with an attribute of that value. */
static struct batch *batch_of_number(bool is_int, int64_t i, double d)
{
    struct buf *w = buf_new(0);
    size_t marks[5];
    struct batch *b;
    struct err e;
    static const uint32_t numbers[] = {1, 2, 2, 6, 2}; /* …, attribute, value */
    for (size_t n = 0; n < 5; n++)
        wire_begin(w, numbers[n], &marks[n]);
    if (is_int) {
        wire_put_tag(w, 3, WIRE_VARINT);
        wire_put_varint(w, (uint64_t)i);
    } else {
        wire_put_double(w, 4, d);
    }
    for (size_t n = 5; n-- > 0;)
        wire_end(w, marks[n]);
    assert_int_equal(batch_from_wire(SIGNAL_LOGS, w, &b, &e), 0);
    return b;
}

static void test_numeric_secrets(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_int;
        int64_t i;
        double d;
    } rows[] = {{"7654321", true, 7654321, 0},
                {"-99999999", true, -99999999, 0},
                {"1.25e10", false, 0, 1.25e10},
                {"7654321", false, 0, 7654321}};
    for (size_t n = 0; n < ARRAY_SIZE(rows); n++) {
        struct rig r;
        struct err e;
        uint8_t text[16];
        rig_init(&r);
        rig_open(&r);
        struct batch *b = batch_of_number(rows[n].is_int, rows[n].i, rows[n].d), *got;
        const size_t len = rows[n].is_int ? 4 : 8;
        memcpy(text, b->segs[0]->data + b->bytes - len, len);
        assert_true(secrets_add(rows[n].text));
        assert_int_equal(put_batch(r.store, 1, b, &e), 0);
        struct image im = load(rig_path(&r));
        assert_null(memmem(im.data, im.len, text, len));
        free(im.data);
        assert_int_equal(store_read(r.store, 1, &got, &e), 0);
        assert_true(same_batch(got, b));
        batch_unref(got);
        batch_unref(b);
        secrets_clear();
        rig_done(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damaged_request), cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_foreign_lmdb),    cmocka_unit_test(test_new),
        cmocka_unit_test(test_random_damage),   cmocka_unit_test(test_lock),
        cmocka_unit_test(test_secrets),         cmocka_unit_test(test_numeric_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
