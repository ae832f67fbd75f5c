#include "extensions/basicauth/htpasswd.h"

#include <crypt.h>
#include <errno.h>
#include <stdlib.h>

#include "agent/base/digest.h"
#include "agent/base/encode.h"

#define BCRYPT_COST_MAX 15 /* 2 s or so */
#define SHA_ROUNDS_MAX 1000000
#define MD5_ROUNDS 1000

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool same(const void *a, const void *b, size_t n)
{
    unsigned differ = 0;
    for (size_t i = 0; i < n; i++)
        differ |= (unsigned)(((const uint8_t *)a)[i] ^ ((const uint8_t *)b)[i]);
    return differ == 0;
}

static bool same_text(const char *a, const char *b)
{
    const size_t n = strlen(a);
    return n == strlen(b) && same(a, b, n);
}

/* ---- Apache's MD5: crypt(3) knows the same under $1$ only ---- */

struct joined { /* what one round hashes */
    uint8_t data[2 * HTPASSWD_PASSWORD_MAX + 64];
    size_t len;
};

static void join(struct joined *j, const void *data, size_t len)
{
    memcpy(j->data + j->len, data, len);
    j->len += len;
}

static void apr1_round(int i, struct bytes password, struct bytes salt, uint8_t sum[MD5_BYTES])
{
    struct joined j = {.len = 0};
    const struct bytes last = bytes_of(sum, MD5_BYTES);
    const struct bytes first = i & 1 ? password : last, end = i & 1 ? last : password;
    join(&j, first.data, first.len);
    if (i % 3)
        join(&j, salt.data, salt.len);
    if (i % 7)
        join(&j, password.data, password.len);
    join(&j, end.data, end.len);
    digest_md5(bytes_of(j.data, j.len), sum);
}

static void apr1_digest(struct bytes password, struct bytes salt, uint8_t sum[MD5_BYTES])
{
    struct joined j = {.len = 0};
    join(&j, password.data, password.len);
    join(&j, salt.data, salt.len);
    join(&j, password.data, password.len);
    digest_md5(bytes_of(j.data, j.len), sum);
    j.len = 0;
    join(&j, password.data, password.len);
    join(&j, "$apr1$", 6);
    join(&j, salt.data, salt.len);
    for (size_t left = password.len; left > 0; left -= left < MD5_BYTES ? left : MD5_BYTES)
        join(&j, sum, left < MD5_BYTES ? left : MD5_BYTES);
    for (size_t bits = password.len; bits; bits >>= 1)
        join(&j, bits & 1 ? (const void *)"" : password.data, 1);
    digest_md5(bytes_of(j.data, j.len), sum);
    for (int i = 0; i < MD5_ROUNDS; i++)
        apr1_round(i, password, salt, sum);
    explicit_bzero(&j, sizeof(j));
}

static void apr1_text(const uint8_t sum[MD5_BYTES], char ret[23])
{
    static const char digits[] = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    static const uint8_t order[6][3] = {{0, 6, 12}, {1, 7, 13}, {2, 8, 14},
                                        {3, 9, 15}, {4, 10, 5}, {16, 16, 11}};
    size_t n = 0;
    for (int i = 0; i < 6; i++) {
        unsigned v = 0;
        for (int k = 0; k < 3; k++)
            v = v << 8 | (order[i][k] < MD5_BYTES ? sum[order[i][k]] : 0u);
        for (int k = 0; k < (i < 5 ? 4 : 2); k++, v >>= 6)
            ret[n++] = digits[v & 63];
    }
    ret[n] = 0;
}

/* "$apr1$salt$digest" */
static bool apr1_match(const char *code, const char *password)
{
    uint8_t sum[MD5_BYTES];
    char text[23];
    const char *salt = code + 6, *dollar = strchr(salt, '$');
    if (!dollar || dollar - salt > 8)
        return false;
    apr1_digest(bytes_str(password), bytes_of(salt, (size_t)(dollar - salt)), sum);
    apr1_text(sum, text);
    return same_text(text, dollar + 1);
}

/* ---- the other codes ---- */

static const char *crypt_text(const char *password, const char *code, struct crypt_data *d)
{
#ifdef HAVE_CRYPT_RN
    return crypt_rn(password, code, d, sizeof(*d));
#else
    return crypt_r(password, code, d);
#endif
}

static bool crypt_match(const char *code, const char *password)
{
    struct crypt_data *d = calloc(1, sizeof(*d)); /* 32 KiB with libxcrypt */
    const char *text = d ? crypt_text(password, code, d) : NULL;
    const bool good = text && text[0] != '*' && same_text(text, code);
    if (d)
        explicit_bzero(d, sizeof(*d));
    free(d);
    return good;
}

/* The bytes of a {SHA} or {SSHA} code: the digest, then the salt. -1 when it is none. */
static int sha_bytes(const char *code, uint8_t ret[128])
{
    size_t len = 0;
    const bool salted = starts(code, "{SSHA}");
    const struct bytes text = bytes_str(code + (salted ? 6 : 5));
    if (text.len > 128 || !decode_base64(text, ret, &len) || len < SHA1_BYTES ||
        (!salted && len != SHA1_BYTES))
        return -1;
    return (int)len;
}

static bool sha_match(const char *code, const char *password)
{
    uint8_t want[128], sum[SHA1_BYTES], text[HTPASSWD_PASSWORD_MAX + 128];
    const size_t n = strlen(password);
    const int len = sha_bytes(code, want);
    if (len < 0)
        return false;
    memcpy(text, password, n);
    memcpy(text + n, want + SHA1_BYTES, (size_t)len - SHA1_BYTES);
    digest_sha1(bytes_of(text, n + (size_t)len - SHA1_BYTES), sum);
    explicit_bzero(text, sizeof(text));
    return same(sum, want, SHA1_BYTES);
}

static bool is_bcrypt(const char *code)
{
    return code[0] == '$' && code[1] == '2' && code[2] && strchr("abxy", code[2]) && code[3] == '$';
}

static bool is_sha_crypt(const char *code)
{
    return starts(code, "$5$") || starts(code, "$6$");
}

bool htpasswd_is_slow(const char *code)
{
    return is_bcrypt(code) || is_sha_crypt(code) || starts(code, "$1$") || starts(code, "$apr1$");
}

bool htpasswd_is_plain(const char *code)
{
    return !htpasswd_is_slow(code) && !starts(code, "{SHA}") && !starts(code, "{SSHA}");
}

bool htpasswd_match(const char *code, const char *password)
{
    if (strlen(password) > HTPASSWD_PASSWORD_MAX)
        return false;
    if (starts(code, "$apr1$"))
        return apr1_match(code, password);
    if (htpasswd_is_slow(code))
        return crypt_match(code, password);
    if (starts(code, "{SHA}") || starts(code, "{SSHA}"))
        return sha_match(code, password);
    return same_text(code, password) || (starts(code, "{PLAIN}") && same_text(code + 7, password));
}

/* ---- lines ---- */

/* Malformed, or so slow that it would stand in everybody's way. */
static bool is_good_code(const char *code)
{
    uint8_t bytes[128];
    if (is_bcrypt(code))
        return strlen(code) == 60 && strtoul(code + 4, NULL, 10) <= BCRYPT_COST_MAX;
    if (is_sha_crypt(code))
        return !starts(code + 3, "rounds=") || strtoul(code + 10, NULL, 10) <= SHA_ROUNDS_MAX;
    if (starts(code, "$apr1$"))
        return strchr(code + 6, '$') != NULL;
    if (starts(code, "{SHA}") || starts(code, "{SSHA}"))
        return sha_bytes(code, bytes) >= 0;
    return true;
}

static char *trim(char *line)
{
    line += strspn(line, " \t\r\v\f");
    size_t n = strlen(line);
    while (n && strchr(" \t\r\v\f", line[n - 1]))
        line[--n] = 0;
    return line;
}

static int add_user(struct htpasswd *h, const char *name, const char *code)
{
    struct htpasswd_user *users = realloc(h->users, (h->n + 1) * sizeof(*users));
    if (!users)
        return -ENOMEM;
    h->users = users;
    users[h->n] = (struct htpasswd_user){strdup(name), strdup(code)};
    const bool good = users[h->n].name && users[h->n].code;
    h->n++;
    return good ? 0 : -ENOMEM;
}

int htpasswd_parse(struct htpasswd *h, char *text)
{
    char *next;
    int r = 0;
    for (char *l = strtok_r(text, "\n", &next); l && r == 0; l = strtok_r(NULL, "\n", &next)) {
        char *line = trim(l), *colon = strchr(line, ':');
        if (!*line)
            continue;
        if (!colon || !is_good_code(colon + 1)) {
            h->bad++;
            continue;
        }
        *colon = 0;
        r = add_user(h, line, colon + 1);
    }
    return r;
}

void htpasswd_done(struct htpasswd *h)
{
    for (size_t i = 0; i < h->n; i++) {
        if (h->users[i].code)
            explicit_bzero(h->users[i].code, strlen(h->users[i].code));
        free(h->users[i].name);
        free(h->users[i].code);
    }
    free(h->users);
    *h = (struct htpasswd){0};
}

struct htpasswd_user *htpasswd_find(const struct htpasswd *h, struct bytes name)
{
    for (size_t i = h->n; i-- > 0;)
        if (bytes_eq_str(name, h->users[i].name))
            return &h->users[i];
    return NULL;
}
