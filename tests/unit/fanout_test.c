/* Fan-out: combinations of answers, masks of what is owed, answers that come later and from other
 * threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fake_pipeline.h"

#define MAX_LEAVES 6

/* An exporter that answers what it is told, now or through the ack. */
struct leaf {
    struct component base;
    enum verdict verdict;
    bool later, counted;
    struct ack *waiting;
    unsigned offers, taken;
};

static enum verdict leaf_consume(struct component *c, struct batch *b, struct ack *ack)
{
    struct leaf *l = container_of(c, struct leaf, base);
    l->offers++;
    batch_unref(b);
    if (l->later) {
        l->waiting = ack;
        return VERDICT_PENDING;
    }
    if (l->verdict == VERDICT_OK) {
        l->taken++;
        ack->now = (struct outcome){.rejected = 1};
        return VERDICT_OK;
    }
    enum verdict v = ack_answer(ack, l->verdict, 8, "%s", c->id);
    ack->now.counted = l->counted;
    return v;
}

static void leaf_answer(struct leaf *l)
{
    struct ack *ack = l->waiting;
    l->waiting = NULL;
    struct outcome out = {.status = 8, .counted = l->counted};
    snprintf(out.message, sizeof(out.message), "%s", l->base.id);
    if (l->verdict == VERDICT_OK) {
        l->taken++;
        out = (struct outcome){.rejected = 1};
    }
    ack_done(ack, l->verdict, &out);
}

static const struct component_type leaf_type = {.kind = KIND_EXPORTER, .consume = leaf_consume};

static struct fanout *leaves_new(struct leaf *leaves, unsigned n)
{
    static const char *const ids[MAX_LEAVES] = {"a", "b", "c", "d", "e", "f"};
    struct fanout *f = fanout_new(n);
    for (unsigned i = 0; i < n; i++) {
        leaves[i] = (struct leaf){.base = {.type = &leaf_type, .id = ids[i]}};
        fanout_set(f, i, &leaves[i].base, NULL, 1u << i);
    }
    return f;
}

/* One letter a branch: O, T (retry), J (reject), X (reject that is counted there); small = answered
 * later, in the order given by `order`. */
static const struct {
    const char *answers, *order;
    enum verdict verdict;
    uint64_t owed;
    const char *message;
} combinations[] = {
    {"O", "", VERDICT_OK, 0, ""},
    {"T", "", VERDICT_RETRY, 1, "a"},
    {"J", "", VERDICT_REJECT, 0, "a"},
    {"o", "0", VERDICT_OK, 0, ""},
    {"t", "0", VERDICT_RETRY, 1, "a"},
    {"OO", "", VERDICT_OK, 0, ""},
    {"OT", "", VERDICT_RETRY, 2, "b"},
    {"TO", "", VERDICT_RETRY, 1, "a"},
    {"TT", "", VERDICT_RETRY, 3, "a"},
    {"OJ", "", VERDICT_REJECT, 0, "b"},
    {"JT", "", VERDICT_RETRY, 2, "b"},
    {"JJ", "", VERDICT_REJECT, 0, "a"},
    {"oO", "0", VERDICT_OK, 0, ""},
    {"Oo", "1", VERDICT_OK, 0, ""},
    {"oT", "0", VERDICT_RETRY, 2, "b"},
    {"Ot", "1", VERDICT_RETRY, 2, "b"},
    {"jO", "0", VERDICT_REJECT, 0, "a"},
    {"tj", "01", VERDICT_RETRY, 1, "a"},
    {"tj", "10", VERDICT_RETRY, 1, "a"},
    {"oo", "10", VERDICT_OK, 0, ""},
    {"oTj", "20", VERDICT_RETRY, 2, "b"},
    {"tOt", "20", VERDICT_RETRY, 5, "a"},
    {"otjo", "3120", VERDICT_RETRY, 2, "b"},
    {"otjo", "0123", VERDICT_RETRY, 2, "b"},
    {"OoJjO", "31", VERDICT_REJECT, 0, "c"},
    {"XO", "", VERDICT_REJECT, 0, "a"},
    {"xX", "0", VERDICT_REJECT, 0, "a"},
    {"xJ", "0", VERDICT_REJECT, 0, "a"},
    {"XtO", "1", VERDICT_RETRY, 2, "b"},
};

static void tell(struct leaf *l, char letter)
{
    l->later = letter >= 'a';
    letter = (char)(letter & ~0x20);
    l->counted = letter == 'X';
    l->verdict = letter == 'O' ? VERDICT_OK : letter == 'T' ? VERDICT_RETRY : VERDICT_REJECT;
}

static void test_combinations(void **state)
{
    (void)state;
    size_t before = mem_used();
    for (size_t i = 0; i < ARRAY_SIZE(combinations); i++) {
        struct leaf leaves[MAX_LEAVES];
        unsigned n = (unsigned)strlen(combinations[i].answers);
        struct fanout *f = leaves_new(leaves, n);
        for (unsigned k = 0; k < n; k++)
            tell(&leaves[k], combinations[i].answers[k]);
        struct fake_ack ack;
        fake_ack_init(&ack);
        enum verdict v = fanout_offer(f, fake_batch(SIGNAL_TRACES, 3), &ack.ack);
        assert_int_equal(v == VERDICT_PENDING, *combinations[i].order != '\0');
        for (const char *o = combinations[i].order; *o; o++) {
            assert_int_equal(fake_ack_answers(&ack), 0);
            leaf_answer(&leaves[*o - '0']);
        }
        v = fake_ack_verdict(&ack, v);
        assert_int_equal(v, combinations[i].verdict);
        assert_string_equal(ack.outcome.message, combinations[i].message);
        assert_int_equal(ack.outcome.status, v == VERDICT_OK ? 0 : 8);
        assert_int_equal(ack.outcome.rejected, v == VERDICT_OK ? 1 : 0);
        if (v == VERDICT_RETRY)
            assert_int_equal(ack.ack.owed, combinations[i].owed);
        if (n > 1) { /* a loss that nobody counted is told to who held the data */
            const bool uncounted = strpbrk(combinations[i].answers, "jJ") != NULL;
            assert_int_equal(ack.outcome.also_lost, v == VERDICT_RETRY && uncounted);
            assert_int_equal(ack.outcome.counted, v == VERDICT_REJECT && !uncounted);
        }
        fanout_free(f);
    }
    assert_int_equal(mem_used(), before);
}

/* Offers again what is refused until all is taken; in each round another leaf takes it. */
static void test_nobody_gets_it_twice(void **state)
{
    (void)state;
    struct leaf leaves[MAX_LEAVES];
    struct fanout *f = leaves_new(leaves, MAX_LEAVES);
    struct fake_ack ack;
    fake_ack_init(&ack);
    struct batch *b = fake_batch(SIGNAL_LOGS, 1);
    for (unsigned round = 0; round < MAX_LEAVES; round++) {
        for (unsigned i = 0; i < MAX_LEAVES; i++) {
            tell(&leaves[i], (i * 7 + 3) % MAX_LEAVES <= round ? 'O' : 'T');
            leaves[i].later = (i + round) % 3 == 0;
        }
        enum verdict v = fanout_offer(f, batch_ref(b), &ack.ack);
        for (unsigned i = 0; i < MAX_LEAVES; i++)
            if (leaves[i].waiting)
                leaf_answer(&leaves[i]);
        v = fake_ack_verdict(&ack, v);
        assert_int_equal(v, round + 1 == MAX_LEAVES ? VERDICT_OK : VERDICT_RETRY);
        ack.answers = 0;
    }
    for (unsigned i = 0; i < MAX_LEAVES; i++) {
        assert_int_equal(leaves[i].taken, 1);
        assert_int_equal(leaves[i].offers, (i * 7 + 3) % MAX_LEAVES + 1);
    }
    batch_unref(b);
    fanout_free(f);
}

/* A processor that hands on: masks go through two levels. */
struct pass {
    struct component base;
    unsigned offers;
};
static enum verdict pass_consume(struct component *c, struct batch *b, struct ack *ack)
{
    container_of(c, struct pass, base)->offers++;
    return component_emit(c, b, ack);
}
static const struct component_type pass_type = {.kind = KIND_PROCESSOR, .consume = pass_consume};

static void test_two_levels(void **state)
{
    (void)state;
    struct leaf leaves[5];
    struct fanout *all = fanout_new(3), *left = leaves_new(leaves, 5), *right = fanout_new(2);
    struct pass a = {.base = {.type = &pass_type}}, b = a;
    fanout_free(left);
    left = fanout_new(2);
    fanout_set(left, 0, &leaves[0].base, NULL, 1);
    fanout_set(left, 1, &leaves[1].base, NULL, 2);
    fanout_set(right, 0, &leaves[2].base, NULL, 4);
    fanout_set(right, 1, &leaves[3].base, NULL, 8);
    fanout_set(all, 0, &a.base, NULL, 3);
    fanout_set(all, 1, &b.base, NULL, 12);
    fanout_set(all, 2, &leaves[4].base, NULL, 16);
    a.base.next[SIGNAL_METRICS] = left;
    b.base.next[SIGNAL_METRICS] = right;
    struct fake_ack ack;
    fake_ack_init(&ack);
    tell(&leaves[1], 'T');
    tell(&leaves[3], 't');
    struct batch *data = fake_batch(SIGNAL_METRICS, 1);
    assert_int_equal(fanout_offer(all, batch_ref(data), &ack.ack), VERDICT_PENDING);
    leaf_answer(&leaves[3]);
    assert_int_equal(fake_ack_verdict(&ack, VERDICT_PENDING), VERDICT_RETRY);
    assert_int_equal(ack.ack.owed, 2 | 8);
    tell(&leaves[3], 'O');
    assert_int_equal(fanout_offer(all, batch_ref(data), &ack.ack), VERDICT_RETRY);
    assert_int_equal(ack.ack.owed, 2);
    tell(&leaves[1], 'O');
    assert_int_equal(fanout_offer(all, data, &ack.ack), VERDICT_OK);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(leaves[i].taken, 1);
    assert_int_equal(a.offers, 3);
    assert_int_equal(b.offers, 2);
    fanout_free(all);
    fanout_free(left);
    fanout_free(right);
}

/* A branch that answers RETRY without touching `owed` (a memory limit, say) owes all of its leaves.
 */
static void test_refusal_above_the_leaves(void **state)
{
    (void)state;
    struct leaf leaves[2];
    struct fanout *f = leaves_new(leaves, 2);
    fanout_set(f, 0, &leaves[0].base, NULL, 0xf0);
    fanout_set(f, 1, &leaves[1].base, NULL, 0x0f);
    tell(&leaves[0], 'T');
    struct fake_ack ack;
    fake_ack_init(&ack);
    assert_int_equal(fanout_offer(f, fake_batch(SIGNAL_TRACES, 1), &ack.ack), VERDICT_RETRY);
    assert_int_equal(ack.ack.owed, 0xf0);
    fanout_free(f);
}

/* Two leaves that share a bit: the one that refused is always asked again. */
static void test_shared_bit_loses_nothing(void **state)
{
    (void)state;
    struct leaf leaves[3];
    struct fanout *f = leaves_new(leaves, 3);
    fanout_set(f, 2, &leaves[2].base, NULL, 1);
    tell(&leaves[2], 'T');
    struct fake_ack ack;
    fake_ack_init(&ack);
    assert_int_equal(fanout_offer(f, fake_batch(SIGNAL_TRACES, 1), &ack.ack), VERDICT_RETRY);
    tell(&leaves[2], 'O');
    assert_int_equal(fanout_offer(f, fake_batch(SIGNAL_TRACES, 1), &ack.ack), VERDICT_OK);
    assert_int_equal(leaves[2].taken, 1);
    assert_int_equal(leaves[1].taken, 1);
    fanout_free(f);
}

static void test_longest_retry_after(void **state)
{
    (void)state;
    struct leaf leaves[3];
    struct fanout *f = leaves_new(leaves, 3);
    for (unsigned i = 0; i < 3; i++)
        tell(&leaves[i], 't');
    struct fake_ack ack;
    fake_ack_init(&ack);
    assert_int_equal(fanout_offer(f, fake_batch(SIGNAL_TRACES, 1), &ack.ack), VERDICT_PENDING);
    const uint32_t wanted[] = {5, 900, 30};
    for (unsigned i = 0; i < 3; i++)
        ack_done(leaves[i].waiting, VERDICT_RETRY, &(struct outcome){.retry_after_ms = wanted[i]});
    assert_int_equal(ack.outcome.retry_after_ms, 900);
    fanout_free(f);
}

static void test_no_branch(void **state)
{
    (void)state;
    struct pass lonely = {.base = {.type = &pass_type}};
    struct fake_ack ack;
    fake_ack_init(&ack);
    assert_int_equal(pass_consume(&lonely.base, fake_batch(SIGNAL_LOGS, 1), &ack.ack), VERDICT_OK);
}

/* ---- answers from other threads, while the offer is still going on ---- */

struct racer {
    struct component base;
    pthread_t thread;
    struct ack *ack;
    enum verdict verdict;
};
static void *racer_main(void *arg)
{
    struct racer *r = arg;
    ack_done(r->ack, r->verdict, NULL);
    return NULL;
}
static enum verdict racer_consume(struct component *c, struct batch *b, struct ack *ack)
{
    struct racer *r = container_of(c, struct racer, base);
    batch_unref(b);
    r->ack = ack;
    pthread_create(&r->thread, NULL, racer_main, r);
    return VERDICT_PENDING;
}
static const struct component_type racer_type = {.kind = KIND_EXPORTER, .consume = racer_consume};

static void test_answers_race(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 300; round++) {
        struct racer racers[4];
        struct fanout *f = fanout_new(4);
        uint64_t owed = 0;
        for (unsigned i = 0; i < 4; i++) {
            bool retry = (round >> i) & 1;
            racers[i] = (struct racer){.base = {.type = &racer_type},
                                       .verdict = retry ? VERDICT_RETRY : VERDICT_OK};
            owed |= retry ? 1u << i : 0;
            fanout_set(f, i, &racers[i].base, NULL, 1u << i);
        }
        struct fake_ack ack;
        fake_ack_init(&ack);
        enum verdict v = fanout_offer(f, fake_batch(SIGNAL_TRACES, 1), &ack.ack);
        v = fake_ack_verdict(&ack, v);
        for (unsigned i = 0; i < 4; i++)
            pthread_join(racers[i].thread, NULL);
        assert_true(fake_ack_answers(&ack) <= 1);
        assert_int_equal(v, owed ? VERDICT_RETRY : VERDICT_OK);
        if (owed)
            assert_int_equal(ack.ack.owed, owed);
        fanout_free(f);
    }
}

static void test_ack_answer_cuts_at_a_character(void **state)
{
    (void)state;
    struct ack a = {0};
    char text[400];
    for (unsigned shift = 0; shift < 4; shift++) {
        memset(text, 'x', sizeof(text));
        for (size_t i = shift; i + 4 < sizeof(text); i += 4)
            memcpy(text + i, "\xf0\x9f\x98\x80", 4);
        text[sizeof(text) - 1] = '\0';
        assert_int_equal(ack_answer(&a, VERDICT_REJECT, 3, "%s", text), VERDICT_REJECT);
        assert_int_equal((strlen(a.now.message) - shift) % 4, 0);
        assert_true(strlen(a.now.message) >= sizeof(a.now.message) - 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_combinations),
        cmocka_unit_test(test_nobody_gets_it_twice),
        cmocka_unit_test(test_two_levels),
        cmocka_unit_test(test_refusal_above_the_leaves),
        cmocka_unit_test(test_shared_bit_loses_nothing),
        cmocka_unit_test(test_longest_retry_after),
        cmocka_unit_test(test_no_branch),
        cmocka_unit_test(test_answers_race),
        cmocka_unit_test(test_ack_answer_cuts_at_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
