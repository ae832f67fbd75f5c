/* Who is measured in this sample, and who is estimated. */
#include "receivers/gym_memory/memory.h"

#include <time.h>

/* Of the time between two samples, in thousandths: what a sample may take in all, and what it may
 * always spend on measuring; and the least that it may take, however short the time is. */
#define SHARE 6
#define SHARE_MEASURING 1
#define SHARE_LEAST_NS 3000000
/* So many samples' worth of unused time is kept for changes, and of debts. */
#define SAMPLES_KEPT 10
#define SAMPLES_OWED 100

enum reason { NEW, CHANGED, RELATED, IN_TURN };

void meter_init(struct meter *m, int64_t interval_ns)
{
    const int64_t share_ns = interval_ns / 1000 * SHARE;
    *m = (struct meter){.share_ns = share_ns > SHARE_LEAST_NS ? share_ns : SHARE_LEAST_NS};
}

int64_t meter_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- one process ---- */

static bool has_no_memory(const struct proc *p)
{
    return p->has_stat && (p->stat.state == 'Z' || p->stat.state == 'X');
}

static void measure(struct proc_table *t, struct proc *p)
{
    int64_t rss = 0, pss = 0;
    int r = has_no_memory(p) ? 0 : procfs_memory(t->fs, p->pid, &rss, &pss);
    p->measured_at = t->refreshes;
    p->measured = p->here = r == 0;
    p->rss = p->measured_rss = rss;
    p->pss = p->measured_pss = pss;
    p->then = p->stat;
}

/* What was measured, and by how much the resident size has changed since. */
static void estimate(struct proc_table *t, struct proc *p)
{
    const int64_t pages = (int64_t)(p->stat.pages - p->then.pages),
                  more = pages * t->fs->page_bytes;
    p->rss = p->measured_rss + more > 0 ? p->measured_rss + more : 0;
    if (p->measured_pss == PSS_UNKNOWN)
        return;
    p->pss = p->measured_pss + more > 0 ? p->measured_pss + more : 0;
}

static enum reason reason_of(const struct proc *p)
{
    const struct proc_stat *now = &p->stat, *then = &p->then;
    if (!p->measured || has_no_memory(p))
        return NEW;
    if (now->faults != then->faults || now->ticks != then->ticks || now->pages != then->pages)
        return CHANGED;
    return p->measured_at < p->related_at ? RELATED : IN_TURN;
}

/* ---- one sample ---- */

/* Measures those for whom `why` holds, beginning where the last pass ended, until only `rest_ns` of
 * what is left would be there. */
static void pass(struct meter *m, struct proc_table *t, struct proc *const *procs, size_t n,
                 enum reason why, int64_t rest_ns)
{
    const size_t first = m->turn[why];
    int64_t before = meter_now_ns();
    for (size_t i = 0; i < n; i++) {
        struct proc *p = procs[(first + i) % n];
        if (!p->here || p->measured_at == t->refreshes || reason_of(p) != why)
            continue;
        if (m->left_ns <= rest_ns) {
            m->turn[why] = (first + i) % n;
            return;
        }
        measure(t, p);
        int64_t now = meter_now_ns();
        m->left_ns -= now - before;
        before = now;
    }
}

/* What sampling has cost before anything was measured is not left for measuring. */
static void pay(struct meter *m, int64_t spent_ns)
{
    const int64_t least = m->share_ns * SHARE_MEASURING / SHARE, more = m->share_ns - spent_ns;
    m->income_ns = more > least ? more : least;
    m->left_ns += m->income_ns;
    if (m->left_ns > SAMPLES_KEPT * m->share_ns)
        m->left_ns = SAMPLES_KEPT * m->share_ns;
    if (m->left_ns < -SAMPLES_OWED * m->share_ns)
        m->left_ns = -SAMPLES_OWED * m->share_ns;
}

/* What is not for those whose turn it is: savings, which half of the income goes to until there are
 * enough. */
static int64_t savings(const struct meter *m)
{
    const bool enough = m->left_ns >= SAMPLES_KEPT * m->share_ns;
    const int64_t spend = enough ? m->income_ns : m->income_ns / 2;
    return m->left_ns > spend ? m->left_ns - spend : 0;
}

static void measure_all(struct meter *m, struct proc_table *t, struct proc *const *procs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (procs[i]->here)
            measure(t, procs[i]);
    m->left_ns = SAMPLES_KEPT * m->share_ns;
}

static void measure_some(struct meter *m, struct proc_table *t, struct proc *const *procs, size_t n)
{
    pass(m, t, procs, n, NEW, INT64_MIN);
    pass(m, t, procs, n, CHANGED, 0);
    pass(m, t, procs, n, RELATED, 0);
    pass(m, t, procs, n, IN_TURN, savings(m));
    for (size_t i = 0; i < n; i++)
        if (procs[i]->here && procs[i]->measured_at != t->refreshes)
            estimate(t, procs[i]);
}

void meter_run(struct meter *m, struct proc_table *t, struct proc *const *procs, size_t n,
               bool exact, int64_t begun_ns)
{
    for (size_t i = 0; i < n; i++)
        proc_table_look(t, procs[i], true);
    pay(m, meter_now_ns() - begun_ns);
    if (exact)
        measure_all(m, t, procs, n);
    else
        measure_some(m, t, procs, n);
}
