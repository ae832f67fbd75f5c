/* motel health: asks a health_check extension whether its collector is well. */
#ifndef MOTEL_HEALTH_H
#define MOTEL_HEALTH_H

#include "agent/pipeline/settings.h"

#define HEALTH_DEFAULT_URL "http://127.0.0.1:13133/"
#define HEALTH_DEFAULT_TIMEOUT_NS 3000000000

struct health_target { /* cleared before use; health_target_done() in any case */
    char *url;
    char *socket;  /* the unix socket through which the URL is asked for; NULL = none */
    bool insecure; /* the certificate is not verified */
};
/* "http://…", "https://…", "HOST", "HOST:PORT", either with a path, "PORT", or "unix:PATH" of a socket. 0, or -EINVAL, -ENOMEM. */
int health_target_parse(const char *text, struct health_target *ret, struct err *reterr);
/* The address and path of the first health_check in service::extensions. -ENOENT when there is none. */
int health_target_of(const struct service_settings *s, struct health_target *ret, struct err *reterr);
void health_target_done(struct health_target *t);

struct health_question {
    const struct health_target *target;
    const char *const *headers; /* "name=value" */
    size_t nheaders;
    int64_t timeout_ns; /* of one request */
    int64_t wait_ns;    /* how long it may take to become healthy, asked again and again; 0 = asked once */
};
/* Prints one line on stdout; the exit code: 0 healthy, 1 anything else. */
int health_ask(const struct health_question *q);

#endif
