/* Values that are blanked out of rendered text. */
#include "agent/base/secrets.h"

#include <errno.h>
#include <pthread.h>
#include <strings.h>

/* Only ever grows while the program runs; readers see a whole list through one atomic pointer. */
struct secret {
    _Atomic(struct secret *) next;
    size_t len;
    uint8_t value[];
};

static _Atomic(struct secret *) head;
static atomic_bool enabled = true;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *without_scheme(const char *value)
{
    static const char *const schemes[] = {"Bearer ", "Basic "};
    for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
        if (strncasecmp(value, schemes[i], strlen(schemes[i])) == 0)
            return value + strlen(schemes[i]);
    return value;
}

static bool known(struct bytes value)
{
    for (struct secret *s = atomic_load(&head); s; s = s->next)
        if (bytes_eq(bytes_of(s->value, s->len), value))
            return true;
    return false;
}

bool secrets_add(const char *value)
{
    struct bytes v = bytes_str(without_scheme(value));
    if (v.len < SECRET_MIN_BYTES)
        return false;
    pthread_mutex_lock(&lock);
    struct secret *s = known(v) ? NULL : malloc(sizeof(*s) + v.len);
    if (s) {
        s->len = v.len;
        memcpy(s->value, v.data, v.len);
        /* Longest first, so that a secret which contains another is replaced whole. */
        s->next = NULL;
        struct secret *at = NULL, *next = atomic_load(&head);
        for (; next && next->len >= v.len; next = next->next)
            at = next;
        s->next = next;
        if (at)
            atomic_store(&at->next, s);
        else
            atomic_store(&head, s);
    }
    pthread_mutex_unlock(&lock);
    return true;
}

void secrets_enable(bool on)
{
    atomic_store(&enabled, on);
}

bool secrets_active(void)
{
    return atomic_load_explicit(&head, memory_order_acquire) &&
           atomic_load_explicit(&enabled, memory_order_relaxed);
}

/* The first secret in `text`: where it starts and how long it is; false when there is none. */
static bool find(struct bytes text, size_t *ret_at, size_t *ret_len)
{
    bool found = false;
    for (struct secret *s = atomic_load(&head); s; s = s->next) {
        if (s->len > text.len)
            continue;
        const uint8_t *p = memmem(text.data, text.len, s->value, s->len);
        if (!p || (found && (size_t)(p - text.data) >= *ret_at))
            continue;
        *ret_at = (size_t)(p - text.data);
        *ret_len = s->len;
        found = true;
    }
    return found;
}

bool secrets_found(struct bytes text)
{
    size_t at = 0, len = 0;
    return secrets_active() && find(text, &at, &len);
}

bool secrets_equal(struct bytes text)
{
    return secrets_active() && known(text);
}

int secrets_redact(struct bytes text, struct buf *out)
{
    size_t at = 0, len = 0;
    while (secrets_active() && find(text, &at, &len)) {
        int r = buf_append(out, text.data, at);
        if (r == 0)
            r = buf_append_str(out, SECRET_PLACEHOLDER);
        if (r < 0)
            return r;
        text = bytes_of(text.data + at + len, text.len - at - len);
    }
    return buf_append(out, text.data, text.len);
}

void secrets_clear(void)
{
    pthread_mutex_lock(&lock);
    struct secret *s = atomic_exchange(&head, NULL);
    while (s) {
        struct secret *next = s->next;
        free(s);
        s = next;
    }
    pthread_mutex_unlock(&lock);
}
