/* Which values of a configuration are secrets. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>

#include "agent/base/secrets.h"
#include "agent/config/load.h"

/* Lower case, with _ for -: "X-Api-Key" and "x_api_key" are one word. */
static void normalize(const char *key, char *ret, size_t size)
{
    size_t n = 0;
    for (; *key && n + 1 < size; key++)
        ret[n++] = *key == '-' ? '_' : (char)tolower((unsigned char)*key);
    ret[n] = 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool has_any(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strstr(text, *words))
            return true;
    return false;
}

/* "token_url", "password_file": about a secret, but none. */
static bool is_about(const char *key)
{
    static const char *const ends[] = {"_url",  "_uri",      "_file", "_path",
                                       "_type", "_endpoint", NULL};
    for (const char *const *end = ends; *end; end++)
        if (ends_with(key, *end))
            return true;
    return false;
}

bool cfg_key_names_file(const char *key)
{
    return strcmp(key, "file") == 0 || strcmp(key, "filename") == 0;
}

static const char *const credential_words[] = {
    "authorization", "password",   "passwd",      "secret",  "credential", "api_key",
    "apikey",        "passphrase", "private_key", "key_pem", "set_cookie", NULL};

bool cfg_key_is_credential(const char *key)
{
    char word[80];
    normalize(key, word, sizeof(word));
    if (is_about(word))
        return false;
    return has_any(word, credential_words) || strcmp(word, "token") == 0 ||
           strcmp(word, "cookie") == 0 || ends_with(word, "_token");
}

bool cfg_key_holds_secrets(const char *key)
{
    static const char *const words[] = {"token", "_pem", "headers_setter", NULL};
    char word[80];
    normalize(key, word, sizeof(word));
    if (is_about(word))
        return false;
    return strcmp(word, "headers") == 0 || strcmp(word, "http_headers") == 0 ||
           has_any(word, words) || (strstr(word, "auth") && !strstr(word, "authority")) ||
           cfg_key_is_credential(key);
}

void cfg_note_url(const char *text)
{
    char password[256];
    const char *start = strstr(text, "://");
    if (!start)
        return;
    start += 3;
    const char *end = start + strcspn(start, "/?# "),
               *at = memrchr(start, '@', (size_t)(end - start));
    const char *colon = at ? memchr(start, ':', (size_t)(at - start)) : NULL;
    if (!colon || (size_t)(at - colon) > sizeof(password))
        return;
    snprintf(password, sizeof(password), "%.*s", (int)(at - colon - 1), colon + 1);
    secrets_add(password);
}

static void note_number(const struct cfg_value *v)
{
    char text[40];
    if (v->type == CFG_INT)
        snprintf(text, sizeof(text), "%" PRId64, v->i);
    else if (v->type == CFG_UINT)
        snprintf(text, sizeof(text), "%" PRIu64, v->u);
    else
        snprintf(text, sizeof(text), "%.15g", v->d);
    secrets_add(text);
}

void cfg_note_numbers(const struct cfg_value *v)
{
    bool number = v->type == CFG_INT || v->type == CFG_UINT || v->type == CFG_DOUBLE;
    if (number && v->secret && secrets_equal(bytes_of(v->text, v->text_len)))
        note_number(v);
    for (size_t i = 0; i < v->n; i++)
        cfg_note_numbers(v->items[i]);
}
