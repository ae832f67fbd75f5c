#include "agent/pipeline/console_source.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "agent/base/cleanup.h"

struct entry {
    struct entry *next;
    char *receiver; /* NULL = any */
    struct console_source source;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries; /* in the order in which they came */

static struct entry *entry_free(struct entry *e)
{
    free(e->receiver);
    free(e);
    return NULL;
}

int console_source_add(const char *receiver, const struct console_source *s)
{
    struct entry *e = calloc(1, sizeof(*e)), **last = &entries;
    if (!e)
        return -ENOMEM;
    e->source = *s;
    e->receiver = receiver ? strdup(receiver) : NULL;
    if (receiver && !e->receiver) {
        entry_free(e);
        return -ENOMEM;
    }
    pthread_mutex_lock(&lock);
    while (*last)
        last = &(*last)->next;
    *last = e;
    pthread_mutex_unlock(&lock);
    return 0;
}

bool console_source_take(const char *receiver, struct console_source *ret)
{
    struct entry **at = &entries, *found;
    pthread_mutex_lock(&lock);
    while (*at && (*at)->receiver && receiver && strcmp((*at)->receiver, receiver) != 0)
        at = &(*at)->next;
    found = *at;
    if (found)
        *at = found->next;
    pthread_mutex_unlock(&lock);
    if (!found)
        return false;
    *ret = found->source;
    entry_free(found);
    return true;
}

unsigned console_source_drop(void)
{
    struct console_source s;
    unsigned n = 0;
    for (; console_source_take(NULL, &s); n++) {
        close(s.fd);
        if (s.ended)
            s.ended(s.ctx);
    }
    return n;
}
