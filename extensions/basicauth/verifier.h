/*
 * One thread that makes slow comparisons, so that no I/O thread does. What waits is bounded, and after a wrong password it rests: strangers
 * who guess get a fraction of one core.
 */
#ifndef MOTEL_EXTENSIONS_BASICAUTH_VERIFIER_H
#define MOTEL_EXTENSIONS_BASICAUTH_VERIFIER_H

#include "extensions/basicauth/htpasswd.h"

#define VERIFIER_MAX 64      /* checks that somebody waits for */
#define VERIFIER_PEER_MAX 8  /* of these, for one host */

struct verifier;
/* `finished` hears of every comparison, on the thread, before who waits for it does. NULL when out of memory. */
struct verifier *verifier_new(void (*finished)(void *ctx, const char *user, const char *code, const uint8_t *digest, bool good),
                              void *ctx);
/* The thread starts with the first. The texts are copied. `peer`: "192.0.2.1:4711". NULL: too many wait, or out of memory. */
struct auth_check *verifier_submit(struct verifier *v, const char *peer, struct bytes user, const char *code, struct bytes password,
                                   const uint8_t digest[AUTH_DIGEST_BYTES]);
void verifier_stop(struct verifier *v); /* who still waits is refused; legal twice */
struct verifier *verifier_free(struct verifier *v); /* NULL ok; returns NULL; checks may still be left */

#endif
