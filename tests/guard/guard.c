/* guard NAME: does one piece of work twice to warm up, and then guard_counted() does it as often as
 * the workload says. Prints what it worked on. guard.py runs it under callgrind. */
#include "tests/guard/guard.h"

#include <stdio.h>
#include <sys/random.h>

#define WARM_UP 2

static const struct workload *const workloads[] = {
    &workload_receive,      &workload_json_receive, &workload_pipeline,     &workload_file_json,
    &workload_span_metrics, &workload_scrape_new,   &workload_scrape_known,
};

void guard_must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "guard: %s\n", what);
    exit(1);
}

/* In place of the system's: hash tables are laid out in the same way in each run. */
ssize_t getrandom(void *data, size_t n, unsigned flags)
{
    uint8_t *p = data;
    (void)flags;
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(i * 37 + 11);
    return (ssize_t)n;
}

/* What callgrind counts: it is told this name. */
uint64_t guard_counted(const struct workload *w);
__attribute__((noinline)) uint64_t guard_counted(const struct workload *w)
{
    uint64_t records = 0;
    for (unsigned i = 0; i < w->rounds; i++)
        records += w->round();
    return records;
}

static const struct workload *find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(workloads); i++)
        if (strcmp(name, workloads[i]->name) == 0)
            return workloads[i];
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        for (size_t i = 0; i < ARRAY_SIZE(workloads); i++)
            printf("%s\n", workloads[i]->name);
        return 0;
    }
    const struct workload *w = find(argv[1]);
    guard_must(w, "no such workload");
    w->prepare();
    for (unsigned i = 0; i < WARM_UP; i++)
        w->round();
    printf("%llu records\n", (unsigned long long)guard_counted(w));
    if (w->finish)
        w->finish();
    return 0;
}
