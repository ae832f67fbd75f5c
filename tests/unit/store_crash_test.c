/* A writer is killed at any moment, many times over: what it was told is on disk is there, and
 * nothing in halves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>

#include "tests/unit/store_rig.h"

#define ROUNDS 40
#define PUTS_MOST 3
#define IDS_MOST 100000

/* Told before a transaction (`done` false) and after it. */
struct note {
    bool done;
    uint32_t nputs, ndeletions;
    uint64_t put, deletions[2]; /* the first id put, the others follow */
};

static unsigned next_random(unsigned *x)
{
    *x = *x * 1664525u + 1013904223u;
    return *x >> 8;
}

static size_t size_of(uint64_t id)
{
    return id % 7 == 0 ? 90000 + id % 1000 : id % 2 ? 1000 + id % 3000 : 20000;
}

/* ---- the writer ---- */

static void say(int fd, const struct note *n)
{
    if (write(fd, n, sizeof(*n)) != sizeof(*n))
        _exit(2);
}

static void transaction(struct store *st, int fd, struct note *n)
{
    struct store_put puts[PUTS_MOST];
    struct batch *batches[PUTS_MOST];
    struct err e;
    for (uint32_t i = 0; i < n->nputs; i++) {
        batches[i] = batch_of((uint32_t)(n->put + i), size_of(n->put + i));
        puts[i] = (struct store_put){n->put + i, batches[i]};
    }
    n->done = false;
    say(fd, n);
    const int r = store_write(st, puts, n->nputs, n->deletions, n->ndeletions, &e);
    if (r < 0) {
        fprintf(stderr, "%s\n", e.text);
        _exit(3);
    }
    n->done = true;
    say(fd, n);
    for (uint32_t i = 0; i < n->nputs; i++)
        batch_unref(batches[i]);
}

/* The oldest requests go, as they do when a backend takes them; now and then all. */
static void writer(struct rig *r, int fd, unsigned seed)
{
    struct err e;
    if (rig_try_open(r, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        _exit(4);
    }
    const struct list *l = rig_list(r->store);
    uint64_t oldest = l->n ? l->items[0].id : store_next_id(r->store),
             next = store_next_id(r->store);
    for (bool empty_it = false;;) {
        struct note n = {.put = next, .nputs = next_random(&seed) % (PUTS_MOST + 1)};
        if (next - oldest > 100 + next_random(&seed) % 250)
            empty_it = true;
        if (empty_it)
            n.nputs = 0;
        for (; n.ndeletions < (empty_it ? 2u : next_random(&seed) % 2) && oldest < next; oldest++)
            n.deletions[n.ndeletions++] = oldest;
        empty_it = empty_it && oldest < next;
        transaction(r->store, fd, &n);
        next += n.nputs;
    }
}

/* ---- what should be there ---- */

struct model {
    uint8_t live[IDS_MOST / 8 + 1];
    struct note last; /* begun and perhaps not done */
    bool open;
};

static void set_live(struct model *m, uint64_t id, bool live)
{
    assert_true(id < IDS_MOST);
    if (live)
        m->live[id / 8] |= (uint8_t)(1u << id % 8);
    else
        m->live[id / 8] &= (uint8_t) ~(1u << id % 8);
}

static bool is_live(const struct model *m, uint64_t id)
{
    return m->live[id / 8] & (1u << id % 8);
}

static void apply(struct model *m, const struct note *n)
{
    for (uint32_t i = 0; i < n->nputs; i++)
        set_live(m, n->put + i, true);
    for (uint32_t i = 0; i < n->ndeletions; i++)
        set_live(m, n->deletions[i], false);
}

static bool agrees(const struct model *m, const struct list *l)
{
    size_t n = 0;
    for (uint64_t id = 1; id < IDS_MOST; id++) {
        if (!is_live(m, id))
            continue;
        if (n >= l->n || l->items[n].id != id)
            return false;
        n++;
    }
    return n == l->n;
}

static void check(struct rig *r, struct model *m)
{
    rig_open(r);
    const struct list *l = rig_list(r->store);
    assert_true(l->n < ARRAY_SIZE(l->items));
    if (!agrees(m, l)) {
        assert_true(m->open); /* the one that was interrupted was done as a whole */
        apply(m, &m->last);
        assert_true(agrees(m, l));
    }
    m->open = false;
    for (size_t i = 0; i < l->n; i++)
        assert_stored(r->store, l->items[i].id, size_of(l->items[i].id));
    r->store = store_close(r->store);
}

/* One note; false at the end. */
static bool hear(int fd, struct model *m)
{
    struct note n;
    const ssize_t len = read(fd, &n, sizeof(n));
    if (len == 0)
        return false;
    assert_int_equal(len, sizeof(n));
    m->open = !n.done;
    m->last = n;
    if (n.done)
        apply(m, &n);
    return true;
}

static void round_of(struct rig *r, struct model *m, unsigned *seed)
{
    int fds[2], status;
    assert_int_equal(pipe(fds), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(fds[0]);
        writer(r, fds[1], *seed);
        _exit(0);
    }
    close(fds[1]);
    for (unsigned left = next_random(seed) % 300; left > 0; left--)
        assert_true(hear(fds[0], m));
    kill(child, SIGKILL);
    while (hear(fds[0], m))
        ;
    close(fds[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    check(r, m);
}

static void test_kill(void **state)
{
    (void)state;
    struct rig r;
    unsigned seed = (unsigned)clock_now_ns();
    print_message("seed %u\n", seed);
    struct model *m = calloc(1, sizeof(*m));
    rig_init(&r);
    for (int i = 0; i < ROUNDS; i++) {
        r.settings.fsync = i % 4 == 3;
        round_of(&r, m, &seed);
    }
    free(m);
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kill)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
