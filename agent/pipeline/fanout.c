/*
 * Fan-out: one batch to several branches, one answer back.
 *
 * Leaf branches (the exporters of a pipeline) are numbered by the graph; a branch knows the bits of
 * the leaves below it. `ack->owed` says which leaves have yet to take the batch: an offer goes to
 * the branches that own such a bit, and a RETRY leaves exactly the bits of those that refused. So
 * an offer that is repeated never reaches a leaf that took the batch.
 */
#include <string.h>

#include "agent/pipeline/graph.h"
#include "agent/pipeline/queue.h"

struct branch {
    struct component *component; /* or: */
    struct queue *queue;
    struct metric *records; /* what is offered to it, NULL = not counted */
    uint64_t leaves;
};

struct fanout {
    struct metric *records; /* what is offered to all, NULL = not counted */
    unsigned n;
    struct branch branches[];
};

/* One offer to several branches that is not answered yet. The slots are written by one thread each;
 * who brings `left` to zero reads them all. */
struct child {
    struct ack ack;
    struct offer *offer;
    uint64_t asked; /* the leaves it was offered for */
    enum verdict verdict;
};
struct offer {
    struct ack *parent;
    atomic_uint left; /* children without an answer, and one for the offering thread */
    unsigned n;
    struct child children[];
};

struct fanout *fanout_new(unsigned nbranches)
{
    struct fanout *f = calloc(1, sizeof(*f) + nbranches * sizeof(f->branches[0]));
    if (f)
        f->n = nbranches;
    return f;
}

void fanout_set(struct fanout *f, unsigned i, struct component *c, struct queue *q, uint64_t leaves)
{
    f->branches[i] = (struct branch){.component = c, .queue = q, .leaves = leaves};
}

void fanout_count(struct fanout *f, struct metric *records)
{
    f->records = records;
}

void fanout_count_branch(struct fanout *f, unsigned i, struct metric *records)
{
    f->branches[i].records = records;
}

struct fanout *fanout_free(struct fanout *f)
{
    free(f);
    return NULL;
}

/* Of a processor and what comes behind it. */
static size_t processor_limit(const struct component *c)
{
    size_t least = c->type->memory_limit ? c->type->memory_limit(c) : MEM_NO_LIMIT;
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        const size_t n = c->next[s] ? fanout_memory_limit(c->next[s]) : MEM_NO_LIMIT;
        least = n < least ? n : least;
    }
    return least;
}

size_t fanout_memory_limit(const struct fanout *f)
{
    size_t least = MEM_NO_LIMIT;
    for (unsigned i = 0; i < f->n; i++) {
        const struct component *c = f->branches[i].component;
        const size_t n = c && c->type->kind == KIND_PROCESSOR ? processor_limit(c) : MEM_NO_LIMIT;
        least = n < least ? n : least;
    }
    return least;
}

static enum verdict branch_offer(const struct branch *br, struct batch *b, struct ack *ack)
{
    if (br->records)
        metric_add(br->records, b->records);
    if (br->queue)
        return queue_offer(br->queue, b, ack);
    return br->component->type->consume(br->component, b, ack);
}

/* RETRY before REJECT before OK. */
static enum verdict worse(enum verdict a, enum verdict b)
{
    if (a == VERDICT_RETRY || b == VERDICT_RETRY)
        return VERDICT_RETRY;
    return a == VERDICT_REJECT ? a : b;
}

static uint64_t still_owed(const struct child *c)
{
    uint64_t owed = c->ack.owed & c->asked;
    return owed ? owed : c->asked;
}

/* Of a branch that refused for good, or of one below it while others are owed. */
static bool uncounted_loss(const struct child *c)
{
    const struct outcome *out = &c->ack.now;
    return c->verdict == VERDICT_REJECT ? !out->counted
                                        : c->verdict == VERDICT_RETRY && out->also_lost;
}

/* All answers are in: fills the parent's `now` and `owed`. Details are those of the first branch
 * with the worst verdict, but for the longest retry_after. */
static enum verdict combine(struct offer *o)
{
    enum verdict v = VERDICT_OK;
    uint64_t owed = 0;
    for (unsigned i = 0; i < o->n; i++) {
        v = worse(v, o->children[i].verdict);
        if (o->children[i].verdict == VERDICT_RETRY)
            owed |= still_owed(&o->children[i]);
    }
    struct outcome *now = NULL;
    bool uncounted = false;
    for (unsigned i = 0; i < o->n; i++) {
        struct outcome *mine = &o->children[i].ack.now;
        uncounted = uncounted || uncounted_loss(&o->children[i]);
        if (o->children[i].verdict != v)
            continue;
        if (!now)
            now = mine;
        if (mine->retry_after_ms > now->retry_after_ms)
            now->retry_after_ms = mine->retry_after_ms;
        if (mine->rejected > now->rejected)
            now->rejected = mine->rejected;
        if (mine->pause_ms > now->pause_ms)
            now->pause_ms = mine->pause_ms;
    }
    o->parent->now = *now;
    o->parent->now.counted = v == VERDICT_REJECT && !uncounted;
    o->parent->now.also_lost = v == VERDICT_RETRY && uncounted;
    if (v == VERDICT_RETRY)
        o->parent->owed = owed;
    return v;
}

static void child_done(struct ack *ack, enum verdict v, const struct outcome *out)
{
    struct child *c = container_of(ack, struct child, ack);
    struct offer *o = c->offer;
    c->verdict = v;
    c->ack.now = out ? *out : (struct outcome){0};
    if (atomic_fetch_sub(&o->left, 1) != 1)
        return;
    struct ack *parent = o->parent;
    v = combine(o);
    free(o);
    struct outcome now = parent->now;
    ack_done(parent, v, &now);
}

static struct offer *offer_new(struct ack *parent, unsigned n)
{
    struct offer *o = malloc(sizeof(*o) + n * sizeof(o->children[0]));
    if (!o)
        return NULL;
    o->parent = parent;
    o->n = n;
    atomic_init(&o->left, n + 1);
    for (unsigned i = 0; i < n; i++)
        o->children[i] = (struct child){.ack = {.done = child_done}, .offer = o};
    return o;
}

static enum verdict offer_several(struct fanout *f, struct batch *b, struct ack *ack, unsigned n)
{
    const uint64_t owed = ack->owed;
    struct offer *o = offer_new(ack, n);
    if (!o) {
        batch_unref(b);
        return ack_answer(ack, VERDICT_RETRY, 0, "out of memory");
    }
    unsigned answered = 0, k = 0;
    for (unsigned i = 0; i < f->n; i++) {
        const struct branch *br = &f->branches[i];
        if (!(owed & br->leaves))
            continue;
        struct child *c = &o->children[k++];
        c->ack.owed = c->asked = owed & br->leaves;
        enum verdict v = branch_offer(br, batch_ref(b), &c->ack);
        if (v == VERDICT_PENDING)
            continue; /* c->verdict is for child_done() to write, now or earlier */
        c->verdict = v;
        answered++;
    }
    batch_unref(b);
    if (atomic_fetch_sub(&o->left, answered + 1) != answered + 1)
        return VERDICT_PENDING;
    enum verdict v = combine(o);
    free(o);
    return v;
}

enum verdict fanout_offer(struct fanout *f, struct batch *b, struct ack *ack)
{
    unsigned n = 0;
    const struct branch *only = NULL;
    if (f->records)
        metric_add(f->records, b->records);
    if (!ack->owed) /* never so by the rules; asking all can only repeat, asking none would lose */
        ack->owed = ACK_ALL;
    for (unsigned i = 0; i < f->n; i++) {
        if (!(ack->owed & f->branches[i].leaves))
            continue;
        only = &f->branches[i];
        n++;
    }
    if (n > 1)
        return offer_several(f, b, ack, n);
    if (n == 1) {
        ack->owed &= only->leaves;
        return branch_offer(only, b, ack);
    }
    batch_unref(b); /* every leaf below has it */
    ack->now = (struct outcome){0};
    return VERDICT_OK;
}
