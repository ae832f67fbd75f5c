/*
 * Which TLS versions, cipher suites and curves a server speaks. GnuTLS has no list of suites but
 * one list each of key exchanges, ciphers and MACs, and speaks every combination of them; so a list
 * of suites is served when it names every combination of what is in it, and refused otherwise.
 */
#include "agent/net/tls_priority.h"

#include <errno.h>
#include <string.h>

#include "agent/net/tls.h"

enum kx { KX_ECDSA = 1, KX_RSA = 2 };
enum cipher {
    AES_128_GCM = 1,
    AES_256_GCM = 2,
    CHACHA20 = 4,
    AES_128_CBC = 8,
    AES_256_CBC = 16,
};
#define AEAD (AES_128_GCM | AES_256_GCM | CHACHA20)
#define TLS12 0x0303
#define TLS13 0x0304

static const struct suite {
    const char *name;
    enum kx kx; /* 0: a suite of TLS 1.3 */
    enum cipher cipher;
} suites[] = {
    {"TLS_AES_128_GCM_SHA256", 0, AES_128_GCM},
    {"TLS_AES_256_GCM_SHA384", 0, AES_256_GCM},
    {"TLS_CHACHA20_POLY1305_SHA256", 0, CHACHA20},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", KX_ECDSA, AES_128_GCM},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", KX_ECDSA, AES_256_GCM},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", KX_ECDSA, CHACHA20},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", KX_ECDSA, AES_128_CBC},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", KX_ECDSA, AES_256_CBC},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", KX_RSA, AES_128_GCM},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", KX_RSA, AES_256_GCM},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", KX_RSA, CHACHA20},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", KX_RSA, AES_128_CBC},
    {"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", KX_RSA, AES_256_CBC},
};

/* What is spoken. */
struct choice {
    int min, max;
    unsigned kx, ciphers;
};

static void add(char *text, const char *what)
{
    size_t n = strlen(text);
    snprintf(text + n, TLS_PRIORITY_BYTES - n, ":%s", what);
}

static const char *item(const struct cfg_list *l, size_t i)
{
    return ((const char *const *)l->items)[i];
}

/* ---- versions ---- */

static int choose_versions(const struct tls_server_settings *s, struct choice *c,
                           struct err *reterr)
{
    c->min = tls_version(s->min_version, TLS12);
    c->max = tls_version(s->max_version, TLS13);
    if (c->min < 0)
        return err_at(reterr, "tls::min_version",
                      "invalid TLS min_version: unsupported TLS version: \"%s\"", s->min_version);
    if (c->max < 0)
        return err_at(reterr, "tls::max_version",
                      "invalid TLS max_version: unsupported TLS version: \"%s\"", s->max_version);
    if (c->min > c->max)
        return err_at(reterr, "tls",
                      "invalid TLS configuration: min_version cannot be greater than max_version");
    return 0;
}

static void add_versions(char *text, const struct choice *c)
{
    static const char *const names[] = {"+VERS-TLS1.0", "+VERS-TLS1.1", "+VERS-TLS1.2",
                                        "+VERS-TLS1.3"};
    add(text, "-VERS-ALL");
    for (int v = TLS13; v > 0x0300; v--)
        if (v >= c->min && v <= c->max)
            add(text, names[v - 0x0301]);
}

/* ---- cipher suites ---- */

static const struct suite *find_suite(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(suites); i++)
        if (strcmp(suites[i].name, name) == 0)
            return &suites[i];
    return NULL;
}

static bool is_listed(const struct cfg_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(item(l, i), name) == 0)
            return true;
    return false;
}

/* Every combination must be meant; names the first that is not. */
static int check_product(const struct cfg_list *l, const struct choice *c, struct err *reterr)
{
    for (size_t i = 0; i < ARRAY_SIZE(suites); i++) {
        const struct suite *u = &suites[i];
        if ((u->kx & c->kx) && (u->cipher & c->ciphers) && !is_listed(l, u->name))
            return err_at(reterr, "tls::cipher_suites",
                          "these cipher suites cannot be served without %s, which is not in the "
                          "list: every key exchange of a list goes with every cipher of it",
                          u->name);
    }
    return 0;
}

/* Suites of TLS 1.3 count only when there are no others, as the reference takes no notice of them.
 */
static int choose_suites(const struct tls_server_settings *s, struct choice *c, struct err *reterr)
{
    const struct cfg_list *l = &s->cipher_suites;
    unsigned ciphers13 = 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct suite *u = find_suite(item(l, i));
        if (!u)
            return err_at(reterr, "tls::cipher_suites", "invalid TLS cipher suite: \"%s\"",
                          item(l, i));
        c->kx |= u->kx;
        *(u->kx ? &c->ciphers : &ciphers13) |= u->cipher;
    }
    if (l->n == 0) {
        c->kx = KX_ECDSA | KX_RSA;
        c->ciphers = AEAD | (c->min < TLS12 ? AES_128_CBC | AES_256_CBC : 0);
        return 0;
    }
    if (!c->kx) {
        c->min = TLS13;
        c->ciphers = ciphers13;
    }
    if (c->max == TLS13 && !(c->ciphers & AEAD))
        return err_at(reterr, "tls::cipher_suites",
                      "none of these cipher suites can be spoken with TLS 1.3; add one with GCM or "
                      "CHACHA20, or set max_version to 1.2");
    if (c->min > c->max)
        return err_at(reterr, "tls::cipher_suites",
                      "only cipher suites of TLS 1.3, but max_version is lower");
    return check_product(l, c, reterr);
}

static void add_suites(char *text, const struct choice *c)
{
    static const struct {
        enum cipher cipher;
        const char *name;
    } names[] = {{AES_128_GCM, "+AES-128-GCM"},
                 {AES_256_GCM, "+AES-256-GCM"},
                 {CHACHA20, "+CHACHA20-POLY1305"},
                 {AES_128_CBC, "+AES-128-CBC"},
                 {AES_256_CBC, "+AES-256-CBC"}};
    add(text, "-KX-ALL");
    if (c->kx & KX_ECDSA || !c->kx)
        add(text, "+ECDHE-ECDSA");
    if (c->kx & KX_RSA || !c->kx)
        add(text, "+ECDHE-RSA");
    add(text, "-CIPHER-ALL");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (c->ciphers & names[i].cipher)
            add(text, names[i].name);
    add(text, "-MAC-ALL:+AEAD");
    if (c->ciphers & (AES_128_CBC | AES_256_CBC))
        add(text, "+SHA1");
}

/* ---- curves ---- */

/* A curve that this GnuTLS does not have is left out where others are listed: it is a preference.
 */
static int add_curves(const struct tls_server_settings *s, char *text, struct err *reterr)
{
    static const struct {
        const char *name, *group;
    } known[] = {{"X25519", "+GROUP-X25519"},
                 {"P256", "+GROUP-SECP256R1"},
                 {"P384", "+GROUP-SECP384R1"},
                 {"P521", "+GROUP-SECP521R1"},
                 {"X25519MLKEM768", NULL}};
    const struct cfg_list *l = &s->curve_preferences;
    unsigned added = 0;
    add(text, "-GROUP-ALL");
    for (size_t i = 0; i < l->n; i++) {
        size_t k = 0;
        while (k < ARRAY_SIZE(known) && strcmp(known[k].name, item(l, i)) != 0)
            k++;
        if (k == ARRAY_SIZE(known))
            return err_at(reterr, "tls::curve_preferences",
                          "invalid curve type: %s. Expected values are [P256 P384 P521 X25519 "
                          "X25519MLKEM768]",
                          item(l, i));
        if (known[k].group && ++added)
            add(text, known[k].group);
    }
    if (l->n && !added)
        return err_at(reterr, "tls::curve_preferences",
                      "X25519MLKEM768 is not available here; add X25519 or another curve");
    for (size_t k = 0; !l->n && known[k].group; k++)
        add(text, known[k].group);
    return 0;
}

int tls_priority_make(const struct tls_server_settings *s, char ret[TLS_PRIORITY_BYTES],
                      struct err *reterr)
{
    struct choice c = {0};
    int r = choose_versions(s, &c, reterr);
    if (r == 0)
        r = choose_suites(s, &c, reterr);
    if (r < 0)
        return r;
    snprintf(ret, TLS_PRIORITY_BYTES, "NORMAL");
    add_versions(ret, &c);
    add_suites(ret, &c);
    r = add_curves(s, ret, reterr);
    add(ret, "%SERVER_PRECEDENCE");
    return r;
}
