/* Values that are blanked out of rendered text. */
#include "agent/base/secrets.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <strings.h>

#include "agent/base/encode.h"
#include "agent/base/json_text.h"
#include "agent/base/number.h"

/* Only ever grows while the program runs; readers see a whole list through one atomic pointer. */
struct secret {
    _Atomic(struct secret *) next;
    bool is_int, is_double; /* the value is the usual text of `i`; it is a number and `d` */
    int64_t i;
    double d;
    size_t len;
    uint8_t value[];
};

static _Atomic(struct secret *) head;
static atomic_bool enabled = true, numeric, lost;
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

/* "007" is no int here: an attribute that is 7 must not look like it. */
static void read_number(struct secret *s)
{
    char digits[24];
    const struct bytes v = bytes_of(s->value, s->len);
    s->is_int =
        number_parse_int(v, &s->i) && bytes_eq(v, bytes_of(digits, encode_int(s->i, digits)));
    s->is_double = number_parse_double(v, &s->d) && isfinite(s->d) && s->d != 0;
    if (s->is_int || s->is_double)
        atomic_store(&numeric, true);
}

/* Longest first, so that a secret which contains another is replaced whole. Lock held. */
static void insert(struct secret *s)
{
    struct secret *at = NULL, *next = atomic_load(&head);
    for (; next && next->len >= s->len; next = next->next)
        at = next;
    s->next = next;
    if (at)
        atomic_store(&at->next, s);
    else
        atomic_store(&head, s);
}

static void add(struct bytes v)
{
    pthread_mutex_lock(&lock);
    const bool there = known(v);
    struct secret *s = there ? NULL : calloc(1, sizeof(*s) + v.len);
    if (!s && !there)
        atomic_store(&lost, true);
    if (s) {
        s->len = v.len;
        memcpy(s->value, v.data, v.len);
        read_number(s);
        insert(s);
    }
    pthread_mutex_unlock(&lock);
}

bool secrets_add(const char *value)
{
    struct bytes v = bytes_str(without_scheme(value));
    if (v.len < SECRET_MIN_BYTES)
        return false;
    add(v);
    _cleanup_buf_ struct buf *escaped = buf_new(0);
    if (!escaped || json_text(escaped, v) < 0)
        atomic_store(&lost, true);
    else if (escaped->len != v.len + 2)
        add(bytes_of(escaped->data + 1, escaped->len - 2));
    return true;
}

bool secrets_lost(void)
{
    return atomic_exchange(&lost, false);
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

bool secrets_numeric(void)
{
    return atomic_load_explicit(&numeric, memory_order_relaxed) && secrets_active();
}

bool secrets_int(int64_t i)
{
    for (struct secret *s = secrets_numeric() ? atomic_load(&head) : NULL; s; s = s->next)
        if (s->is_int && s->i == i)
            return true;
    return false;
}

bool secrets_double(double d)
{
    for (struct secret *s = secrets_numeric() ? atomic_load(&head) : NULL; s; s = s->next)
        if (s->is_double && s->d == d)
            return true;
    return false;
}

void secrets_each(void (*see)(void *ctx, const struct secret_view *v), void *ctx)
{
    for (struct secret *s = atomic_load(&head); s; s = s->next) {
        const struct secret_view v = {bytes_of(s->value, s->len), s->is_int, s->is_double, s->i,
                                      s->d};
        see(ctx, &v);
    }
}

/* How many bytes at the end of `text` are how the secret begins. */
static size_t begun_at_end(const struct secret *s, struct bytes text)
{
    size_t n = s->len - 1 < text.len ? s->len - 1 : text.len;
    while (n >= SECRET_PART_BYTES && memcmp(text.data + text.len - n, s->value, n) != 0)
        n--;
    return n >= SECRET_PART_BYTES ? n : 0;
}

void secrets_trim(char *text)
{
    const struct bytes t = bytes_str(text);
    size_t most = 0;
    for (struct secret *s = secrets_active() ? atomic_load(&head) : NULL; s; s = s->next) {
        const size_t n = begun_at_end(s, t);
        most = n > most ? n : most;
    }
    text[t.len - most] = '\0';
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

void secrets_blank(char *text)
{
    size_t at = 0, len = 0;
    while (secrets_active() && find(bytes_str(text), &at, &len)) {
        memset(text + at, '*', len);
        text += at + len;
    }
}

void secrets_clear(void)
{
    pthread_mutex_lock(&lock);
    struct secret *s = atomic_exchange(&head, NULL);
    atomic_store(&numeric, false);
    atomic_store(&lost, false);
    while (s) {
        struct secret *next = s->next;
        free(s);
        s = next;
    }
    pthread_mutex_unlock(&lock);
}
