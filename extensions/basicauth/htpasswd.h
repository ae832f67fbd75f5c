/* Users and passwords in the format of Apache's htpasswd. */
#ifndef MOTEL_EXTENSIONS_BASICAUTH_HTPASSWD_H
#define MOTEL_EXTENSIONS_BASICAUTH_HTPASSWD_H

#include "agent/base/bytes.h"
#include "agent/pipeline/auth.h"

#define HTPASSWD_PASSWORD_MAX 255

struct htpasswd_user {
    char *name, *code; /* what follows the colon */
    bool proven;       /* `proof` is the digest of the right password */
    uint8_t proof[AUTH_DIGEST_BYTES];
};
struct htpasswd {
    struct htpasswd_user *users;
    size_t n;
    unsigned bad; /* lines that were left out */
};
/* Adds the lines of `text`, which is cut up. 0 or -ENOMEM. */
int htpasswd_parse(struct htpasswd *h, char *text);
void htpasswd_done(struct htpasswd *h);
/* The last line of that name counts; NULL = unknown. */
struct htpasswd_user *htpasswd_find(const struct htpasswd *h, struct bytes name);
/* True for codes made to be slow: bcrypt, MD5 and SHA crypt. */
bool htpasswd_is_slow(const char *code);
/* True for passwords that stand there as they are. */
bool htpasswd_is_plain(const char *code);
/* Whether the password is the right one, in constant time for one code. Slow ones take milliseconds up to seconds. */
bool htpasswd_match(const char *code, const char *password);

#endif
