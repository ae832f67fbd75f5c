/* Targets: those that the configuration names, and those of files, which are read again when they
 * change. */
#include <errno.h>
#include <glob.h>
#include <sys/stat.h>

#include "agent/base/clock.h"
#include "agent/config/tree.h"
#include "receivers/prometheus/prometheus.h"
#include "receivers/prometheus/sd_file.h"

#define LOOK_NS (1 * NS_PER_S) /* between two looks at the files */

/* One file; its targets stay what they were while it cannot be read. */
struct sd_file {
    struct sd_file *next;
    char *path;
    struct stat seen;         /* as of the last reading */
    struct sd_groups *groups; /* NULL = never read */
    bool here;                /* it exists, as of the last look */
    bool failed;              /* the log has said so */
};
struct sd_entry {
    struct job *job;
    const struct file_sd_config *config;
    struct sd_file *files;
    uint64_t refresh_ns, refresh_at_ns;
};
struct discovery {
    struct scraper *s;
    struct sd_entry *entries;
    size_t n;
    bool synced; /* at least once */
};

/* ---- from what is known to s->targets ---- */

/* What the targets of a job are about to be. */
struct syncing {
    struct scraper *s;
    struct job *job;
    size_t n;
    uint64_t now_ns;
};

static struct target *find_target(const struct syncing *x, const struct target_spec *spec)
{
    for (struct target *t = x->s->targets; t; t = t->next)
        if (t->job == x->job && t->spec.hash == spec->hash && strcmp(t->spec.url, spec->url) == 0)
            return t;
    return NULL;
}

static void add_target(struct syncing *x, struct target_spec *spec)
{
    struct target *t = prom_target_new(x->s, x->job, spec);
    if (!t) {
        log_error(&x->s->owner->logger, "A target is left out: out of memory.");
        prom_target_spec_done(spec);
        return;
    }
    t->found = true;
    prom_target_schedule(t, x->now_ns);
    struct target **end = &x->s->targets;
    while (*end)
        end = &(*end)->next;
    *end = t;
    x->n++;
}

static void warn_left_out(const struct syncing *x, const char *address, const struct err *e)
{
    log_warn(&x->s->owner->logger, "A target is left out.",
             LOG_STR("job", x->job->settings.config->job_name), LOG_STR("target", address),
             LOG_STR("error", e->text));
}

/* `b` holds the discovered labels. */
static void sync_one(struct syncing *x, struct label_builder *b, const char *address)
{
    struct target_spec spec;
    struct err e = {.text = ""};
    const int r = prom_target_spec_make(x->job, b, &spec, &e);
    if (r < 0)
        warn_left_out(x, address, &e);
    if (r != 1)
        return;
    struct target *t = find_target(x, &spec);
    if (!t) {
        add_target(x, &spec);
        return;
    }
    x->n += !t->found; /* the same one twice is one */
    t->found = true;
    if (t->gone_at_ns) { /* it is back */
        t->gone_at_ns = 0;
        prom_target_schedule(t, x->now_ns);
    }
    prom_target_spec_done(&spec);
}

static void sync_static(struct syncing *x, const struct static_config *c)
{
    const char *const *addresses = c->targets.items, *const *values = c->labels.values;
    for (size_t i = 0; i < c->targets.n; i++) {
        struct label_builder *b = &x->s->labels;
        prom_builder_reset(b, (struct prom_labels){NULL, 0});
        for (size_t k = 0; k < c->labels.n; k++)
            prom_builder_set(b, bytes_str(c->labels.keys[k]), bytes_str(values[k]));
        prom_builder_set(b, bytes_str("__address__"), bytes_str(addresses[i]));
        sync_one(x, b, addresses[i]);
    }
}

static void sync_file(struct syncing *x, const struct sd_file *f)
{
    for (size_t g = 0; f->groups && g < f->groups->n; g++) {
        const struct sd_group *group = &f->groups->items[g];
        for (size_t i = 0; i < group->ntargets; i++) {
            struct label_builder *b = &x->s->labels;
            prom_builder_reset(b, group->labels);
            prom_builder_set(b, bytes_str("__meta_filepath"), bytes_str(f->path));
            prom_builder_set(b, bytes_str("__address__"), bytes_str(group->targets[i]));
            sync_one(x, b, group->targets[i]);
        }
    }
}

/* A target that is not found any more gets its stale points after a little more than two intervals:
 * it may come back. */
static void mark_gone(struct syncing *x)
{
    for (struct target *t = x->s->targets; t; t = t->next) {
        if (t->job != x->job || t->found || t->gone_at_ns)
            continue;
        const uint64_t interval = t->spec.interval_ns;
        const uint64_t next = t->next_ns > x->now_ns ? t->next_ns : x->now_ns;
        t->gone_at_ns = t->scraped ? next + interval + interval / 10 : x->now_ns;
    }
}

static void sync_job(const struct discovery *d, struct job *j, uint64_t now_ns)
{
    struct syncing x = {.s = d->s, .job = j, .now_ns = now_ns};
    const struct static_config *statics = j->settings.config->static_configs.items;
    for (struct target *t = d->s->targets; t; t = t->next)
        t->found = t->found && t->job != j;
    for (size_t i = 0; i < j->settings.config->static_configs.n; i++)
        sync_static(&x, &statics[i]);
    for (size_t i = 0; i < d->n; i++)
        for (struct sd_file *f = d->entries[i].job == j ? d->entries[i].files : NULL; f;
             f = f->next)
            sync_file(&x, f);
    mark_gone(&x);
    j->ntargets = x.n;
    j->too_many = j->settings.target_limit && x.n > j->settings.target_limit;
}

/* ---- files ---- */

static struct sd_file *file_free(struct sd_file *f)
{
    prom_sd_groups_free(f->groups);
    free(f->path);
    free(f);
    return NULL;
}

static struct sd_file *file_of(struct sd_entry *e, const char *path)
{
    for (struct sd_file *f = e->files; f; f = f->next)
        if (strcmp(f->path, path) == 0)
            return f;
    struct sd_file *f = calloc(1, sizeof(*f));
    if (!f || !(f->path = strdup(path))) {
        free(f);
        return NULL;
    }
    f->next = e->files;
    e->files = f;
    return f;
}

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* True when the targets of the file may be other ones now. */
static bool file_read(const struct discovery *d, struct sd_file *f)
{
    struct err e = {.text = ""};
    struct sd_groups *groups = NULL;
    const int r = prom_sd_file_read(f->path, &groups, &e);
    if (r < 0 && !f->failed)
        log_warn(&d->s->owner->logger,
                 "A file of targets cannot be read. What it said before stays.",
                 LOG_STR("file", f->path), LOG_STR("error", e.text));
    f->failed = r < 0;
    if (r < 0)
        return false;
    prom_sd_groups_free(f->groups);
    f->groups = groups;
    return true;
}

static bool file_look(const struct discovery *d, struct sd_entry *e, const char *path, bool refresh)
{
    struct stat st;
    struct sd_file *f = stat(path, &st) == 0 ? file_of(e, path) : NULL;
    if (!f)
        return false;
    f->here = true;
    if (!refresh && same(&st, &f->seen))
        return false;
    f->seen = st;
    return file_read(d, f);
}

static bool drop_vanished(struct sd_entry *e)
{
    bool any = false;
    for (struct sd_file **at = &e->files; *at;) {
        struct sd_file *f = *at;
        if (f->here) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        any |= f->groups != NULL;
        file_free(f);
    }
    return any;
}

static bool entry_look(const struct discovery *d, struct sd_entry *e, uint64_t now_ns)
{
    const char *const *patterns = e->config->files.items;
    const bool refresh = now_ns >= e->refresh_at_ns;
    bool changed = false;
    if (refresh)
        e->refresh_at_ns = now_ns + e->refresh_ns;
    for (struct sd_file *f = e->files; f; f = f->next)
        f->here = false;
    for (size_t i = 0; i < e->config->files.n; i++) {
        glob_t found = {.gl_pathc = 0};
        if (glob(patterns[i], 0, NULL, &found) == 0)
            for (size_t k = 0; k < found.gl_pathc; k++)
                changed |= file_look(d, e, found.gl_pathv[k], refresh);
        globfree(&found);
    }
    return drop_vanished(e) || changed;
}

/* ---- */

uint64_t prom_discovery_run(struct discovery *d, uint64_t now_ns)
{
    for (size_t j = 0; j < d->s->njobs; j++) {
        bool changed = !d->synced;
        for (size_t i = 0; i < d->n; i++)
            if (d->entries[i].job == &d->s->jobs[j])
                changed |= entry_look(d, &d->entries[i], now_ns);
        if (changed)
            sync_job(d, &d->s->jobs[j], now_ns);
    }
    d->synced = true;
    return d->n ? now_ns + LOOK_NS : UINT64_MAX;
}

static void add_entries(struct discovery *d, struct job *j)
{
    const struct cfg_list *l = &j->settings.config->file_sd_configs;
    const struct file_sd_config *c = l->items;
    for (size_t i = 0; i < l->n; i++) {
        struct sd_entry *e = &d->entries[d->n++];
        *e = (struct sd_entry){.job = j, .config = &c[i]};
        prom_parse_duration(c[i].refresh_interval, &e->refresh_ns, NULL);
        if (e->refresh_ns < LOOK_NS)
            e->refresh_ns = LOOK_NS;
    }
}

struct discovery *prom_discovery_new(struct scraper *s)
{
    size_t n = 1;
    struct discovery *d = calloc(1, sizeof(*d));
    for (size_t i = 0; i < s->njobs; i++)
        n += s->jobs[i].settings.config->file_sd_configs.n;
    if (!d || !(d->entries = calloc(n, sizeof(*d->entries)))) {
        free(d);
        return NULL;
    }
    d->s = s;
    for (size_t i = 0; i < s->njobs; i++)
        add_entries(d, &s->jobs[i]);
    return d;
}

struct discovery *prom_discovery_free(struct discovery *d)
{
    for (size_t i = 0; d && i < d->n; i++)
        for (struct sd_file *f; (f = d->entries[i].files);) {
            d->entries[i].files = f->next;
            file_free(f);
        }
    if (d)
        free(d->entries);
    free(d);
    return NULL;
}
