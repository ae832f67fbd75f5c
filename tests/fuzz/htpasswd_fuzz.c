/* Lines of htpasswd, a NUL, and a password that every user is tried with. */
#include "extensions/basicauth/htpasswd.h"
#include "tests/fuzz/fuzz.h"

/* bcrypt and SHA crypt take too long here, and are the C library's. */
static bool quick(const char *code)
{
    return !htpasswd_is_slow(code) || strncmp(code, "$apr1$", 6) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct htpasswd h = {0};
    const uint8_t *end = memchr(data, 0, size);
    size_t n = end ? (size_t)(end - data) : size;
    char *text = strndup((const char *)data, n);
    char *password = end ? strndup((const char *)end + 1, size - n - 1) : strdup("x");
    if (text && password && htpasswd_parse(&h, text) == 0)
        for (size_t i = 0; i < h.n; i++) {
            const struct htpasswd_user *u = htpasswd_find(&h, bytes_str(h.users[i].name));
            if (!u || u < &h.users[i])
                abort();
            if (i < 8 && quick(u->code))
                htpasswd_match(u->code, password);
        }
    htpasswd_done(&h);
    free(text);
    free(password);
    return 0;
}
