/* ottl_bench SIGNAL FILE CONTEXT STATEMENT...: CPU time of a walk with these statements, per
 * visited item. "-" as statement: none. */
#include <stdio.h>
#include <time.h>

#include "ottl/ottl.h"
#include "ottl/walk.h"

struct program {
    struct ottl_statement *statements[16];
    size_t n;
    uint64_t visits;
};

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct buf *load(const char *path)
{
    _cleanup_fclose_ FILE *f = fopen(path, "rb");
    struct buf *b = buf_new(0);
    if (!f || !b)
        return buf_unref(b);
    while (buf_reserve(b, 1 << 16) == 0) {
        size_t n = fread(buf_tail(b), 1, 1 << 16, f);
        if (n == 0)
            break;
        buf_commit(b, n);
    }
    return b;
}

static enum ottl_visit visit(void *ctx, struct ottl_env *env)
{
    struct program *p = ctx;
    p->visits++;
    for (size_t i = 0; i < p->n; i++)
        ottl_statement_run(p->statements[i], env, NULL);
    return OTTL_KEEP;
}

static int compile(struct program *p, enum ottl_context context, char **texts)
{
    static const struct ottl_function *const tables[] = {ottl_editors, ottl_converters,
                                                         ottl_metric_editors, NULL};
    struct ottl_dialect d = {
        .context = (int)context, .allowed = ottl_context_reach(context), .functions = tables};
    for (; *texts && p->n < ARRAY_SIZE(p->statements); texts++) {
        struct err e;
        if (strcmp(*texts, "-") == 0)
            continue;
        if (ottl_statement_parse(bytes_str(*texts), &d, &p->statements[p->n++], &e) < 0) {
            fprintf(stderr, "%s\n", e.text);
            return -1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct program p = {.n = 0};
    struct batch *in = NULL;
    struct err e = {.text = ""};
    int signal = argc > 4 ? -1 : 0, context = argc > 4 ? ottl_context_find(bytes_str(argv[3])) : -1;
    for (enum signal s = 0; argc > 4 && s < SIGNAL_COUNT; s++)
        if (strcmp(argv[1], signal_name(s)) == 0)
            signal = (int)s;
    if (signal < 0 || context < 0 || compile(&p, (enum ottl_context)context, argv + 4) < 0) {
        fprintf(stderr, "usage: ottl_bench SIGNAL FILE CONTEXT STATEMENT...\n");
        return 2;
    }
    struct buf *wire = load(argv[2]);
    if (!wire || batch_from_wire((enum signal)signal, wire, &in, &e) < 0) {
        fprintf(stderr, "%s: %s\n", argv[2], e.text);
        return 1;
    }
    struct ottl_walk w = {.context = (enum ottl_context)context, .visit = visit, .ctx = &p};
    bool same = false;
    double start = cpu_ns(), end = start;
    unsigned rounds = 0;
    for (; end - start < 5e8; end = cpu_ns(), rounds++) {
        struct batch *out = NULL;
        if (ottl_walk(&w, in, &out, &e) < 0)
            return 1;
        same = out == in;
        batch_unref(out);
    }
    printf("%8.1f ns per item, %llu items a round, %s\n",
           (end - start) / (double)(p.visits ? p.visits : 1),
           (unsigned long long)(p.visits / rounds), same ? "same batch" : "new batch");
    batch_unref(in);
    for (size_t i = 0; i < p.n; i++)
        ottl_statement_free(p.statements[i]);
    return 0;
}
