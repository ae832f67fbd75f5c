#include "extensions/basicauth/verifier.h"

#include <errno.h>
#include <pthread.h>

#include "agent/base/clock.h"
#include "agent/base/cond.h"

#define REST_TIMES 1 /* of the time that a wrong password took */

static const char invalid[] = "invalid credentials", stopping[] = "the server is stopping";

struct job {
    struct auth_check check; /* first */
    struct verifier *v;
    struct job *next, *next_all; /* in the queue; among all */
    char *user, *code, *password;
    char host[64];
    uint8_t digest[AUTH_DIGEST_BYTES];
    /* Under the lock. */
    bool finished, dropped;
    const char *refused;
    void (*done)(void *ctx, const char *refused);
    void *ctx;
};

struct verifier {
    void (*report)(void *ctx, const char *user, const char *code, const uint8_t *digest, bool good);
    void *ctx;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t changed;
    struct job *head, **tail;
    struct job *all; /* also those that are finished and not taken */
    unsigned njobs;
    uint64_t rest_until_ns;
    pthread_t thread;
    bool started, stopping;
    bool orphaned; /* the last job frees it */
};

struct verifier *verifier_new(void (*finished)(void *ctx, const char *user, const char *code,
                                               const uint8_t *digest, bool good),
                              void *ctx)
{
    struct verifier *v = calloc(1, sizeof(*v));
    if (!v || cond_init_monotonic(&v->changed) < 0) {
        free(v);
        return NULL;
    }
    pthread_mutex_init(&v->lock, NULL);
    v->report = finished;
    v->ctx = ctx;
    v->tail = &v->head;
    return v;
}

/* ---- one job ---- */

static void job_destroy(struct job *j)
{
    if (j->password)
        explicit_bzero(j->password, strlen(j->password));
    free(j->password);
    free(j->user);
    free(j->code);
    free(j);
}

static void release(struct verifier *v)
{
    pthread_cond_destroy(&v->changed);
    pthread_mutex_destroy(&v->lock);
    free(v);
}

/* Without the lock. */
static void job_free(struct job *j)
{
    struct verifier *v = j->v;
    pthread_mutex_lock(&v->lock);
    struct job **at = &v->all;
    while (*at != j)
        at = &(*at)->next_all;
    *at = j->next_all;
    const bool last = --v->njobs == 0 && v->orphaned;
    pthread_mutex_unlock(&v->lock);
    job_destroy(j);
    if (last)
        release(v);
}

static void then(struct auth_check *k, void (*done)(void *ctx, const char *refused), void *ctx)
{
    struct job *j = container_of(k, struct job, check);
    pthread_mutex_lock(&j->v->lock);
    const bool finished = j->finished;
    const char *refused = j->refused;
    j->done = done;
    j->ctx = ctx;
    pthread_mutex_unlock(&j->v->lock);
    if (!finished) /* the thread goes on */
        return;
    job_free(j);
    done(ctx, refused);
}

static void drop(struct auth_check *k)
{
    struct job *j = container_of(k, struct job, check);
    pthread_mutex_lock(&j->v->lock);
    const bool finished = j->finished;
    j->dropped = true;
    pthread_mutex_unlock(&j->v->lock);
    if (finished)
        job_free(j);
}

/* The end of a job that the thread has: whoever asked is told, or will be. */
static void settle(struct job *j, const char *refused)
{
    pthread_mutex_lock(&j->v->lock);
    j->finished = true;
    j->refused = refused;
    void (*done)(void *, const char *) = j->done;
    void *ctx = j->ctx;
    const bool over = j->dropped || done;
    pthread_mutex_unlock(&j->v->lock);
    if (over)
        job_free(j);
    if (done)
        done(ctx, refused);
}

/* ---- the thread ---- */

/* The next job; NULL = stop. */
static struct job *next_job(struct verifier *v)
{
    pthread_mutex_lock(&v->lock);
    while (!v->stopping && (!v->head || clock_now_ns() < v->rest_until_ns))
        cond_wait_until(&v->changed, &v->lock, v->head ? v->rest_until_ns : UINT64_MAX);
    struct job *j = v->stopping ? NULL : v->head;
    if (j && !(v->head = j->next))
        v->tail = &v->head;
    pthread_mutex_unlock(&v->lock);
    return j;
}

static bool is_dropped(struct job *j)
{
    pthread_mutex_lock(&j->v->lock);
    const bool dropped = j->dropped;
    pthread_mutex_unlock(&j->v->lock);
    return dropped;
}

static bool compare(struct verifier *v, const struct job *j)
{
    const uint64_t start = clock_now_ns();
    const bool good = htpasswd_match(j->code, j->password);
    const uint64_t end = clock_now_ns();
    v->report(v->ctx, j->user, j->code, j->digest, good);
    if (!good) {
        pthread_mutex_lock(&v->lock);
        v->rest_until_ns = end + REST_TIMES * (end - start);
        pthread_mutex_unlock(&v->lock);
    }
    return good;
}

static void *run(void *arg)
{
    struct verifier *v = arg;
    for (struct job *j; (j = next_job(v));)
        settle(j, is_dropped(j) || compare(v, j) ? NULL : invalid);
    return NULL;
}

/* ---- from outside ---- */

static struct job *job_new(struct verifier *v, const char *peer, struct bytes user,
                           const char *code, struct bytes password,
                           const uint8_t digest[AUTH_DIGEST_BYTES])
{
    struct job *j = calloc(1, sizeof(*j));
    if (!j)
        return NULL;
    j->check = (struct auth_check){then, drop};
    j->v = v;
    const char *colon = strrchr(peer, ':');
    snprintf(j->host, sizeof(j->host), "%.*s", colon ? (int)(colon - peer) : 63, peer);
    j->user = strndup((const char *)user.data, user.len);
    j->password = strndup((const char *)password.data, password.len);
    j->code = strdup(code);
    memcpy(j->digest, digest, sizeof(j->digest));
    if (j->user && j->password && j->code)
        return j;
    job_destroy(j);
    return NULL;
}

/* Under the lock. One host alone does not keep the others out. */
static bool has_room(const struct verifier *v, const char *host)
{
    unsigned n = 0;
    for (const struct job *j = v->all; j; j = j->next_all)
        n += strcmp(j->host, host) == 0;
    return !v->stopping && v->njobs < VERIFIER_MAX && n < VERIFIER_PEER_MAX;
}

/* Under the lock. */
static bool put(struct verifier *v, struct job *j)
{
    if (!has_room(v, j->host))
        return false;
    if (!v->started)
        v->started = pthread_create(&v->thread, NULL, run, v) == 0;
    if (!v->started)
        return false;
    *v->tail = j;
    v->tail = &j->next;
    j->next_all = v->all;
    v->all = j;
    v->njobs++;
    pthread_cond_signal(&v->changed);
    return true;
}

struct auth_check *verifier_submit(struct verifier *v, const char *peer, struct bytes user,
                                   const char *code, struct bytes password,
                                   const uint8_t digest[AUTH_DIGEST_BYTES])
{
    struct job *j = job_new(v, peer, user, code, password, digest);
    pthread_mutex_lock(&v->lock);
    const bool taken = j && put(v, j);
    pthread_mutex_unlock(&v->lock);
    if (j && !taken)
        job_destroy(j);
    return taken ? &j->check : NULL;
}

void verifier_stop(struct verifier *v)
{
    pthread_mutex_lock(&v->lock);
    v->stopping = true;
    const bool join = v->started;
    v->started = false;
    pthread_cond_signal(&v->changed);
    pthread_mutex_unlock(&v->lock);
    if (join)
        pthread_join(v->thread, NULL);
    pthread_mutex_lock(&v->lock);
    struct job *j = v->head;
    v->head = NULL;
    v->tail = &v->head;
    pthread_mutex_unlock(&v->lock);
    for (struct job *next; j; j = next) {
        next = j->next;
        settle(j, stopping);
    }
}

struct verifier *verifier_free(struct verifier *v)
{
    if (!v)
        return NULL;
    verifier_stop(v);
    pthread_mutex_lock(&v->lock);
    v->orphaned = true;
    const bool last = v->njobs == 0;
    pthread_mutex_unlock(&v->lock);
    if (last)
        release(v);
    return NULL;
}
