/* One HTTP exchange with libcurl, driven by whoever owns the multi handle; for http_client.c and http_async.c. */
#ifndef MOTEL_NET_HTTP_CLIENT_IMPL_H
#define MOTEL_NET_HTTP_CLIENT_IMPL_H

#include <curl/curl.h>

#include "agent/net/http_client.h"

/* A libcurl handle with what stays the same for all its requests. */
struct http_easy {
    const struct http_client_settings settings;
    CURL *curl;
    int ca_fd, cert_fd, key_fd; /* memory files of what was given as text; -1 = none */
    bool trusts_system;         /* no CA is given */
    char error[CURL_ERROR_SIZE];
};
/* Sets all up; `e` is cleared first and to be ended by http_easy_done(), also after an error. 0 or -errno. */
int http_easy_init(struct http_easy *e, const struct http_client_settings *s, struct err *reterr);
void http_easy_done(struct http_easy *e); /* a cleared or half-built one is fine */

/* The proxy for a URL of `scheme` and `host`, "" = none, and the hosts that it is not for (NULL = none). */
const char *http_proxy_of(const struct http_client_settings *s, const char *scheme, const char *host, const char **ret_except);

/* Where a request goes now; changed by redirects. */
struct http_hop {
    const char *method;
    char *url;
    bool body;
    bool foreign; /* another host than the first: no credentials */
    int count;
};

/* A request under way: one hop after the other. */
struct http_transfer {
    struct http_easy *easy;
    const struct http_client_request *q; /* it and `res` outlive the transfer */
    struct http_client_response *res;
    struct http_hop hop;
    unsigned part; /* of the body, being read */
    size_t offset;
    size_t dropped;
    unsigned tries; /* times that it went out */
    bool enough;    /* the response was cut on purpose */
    CURLU *target;
    struct curl_slist *headers, *connect;
};
/* Makes `res` empty. 0 or -ENOMEM. */
int http_transfer_init(struct http_transfer *t, struct http_easy *e, const struct http_client_request *q,
                       struct http_client_response *res, struct err *reterr);
void http_transfer_done(struct http_transfer *t);
/* Prepares t->easy for the present hop; the caller adds it to its multi handle. 0 or -errno. */
int http_transfer_begin(struct http_transfer *t, struct err *reterr);
/* After it was removed from the multi handle: notes the status. */
void http_transfer_end(struct http_transfer *t);
/* What a result means: 0 or -errno with the reason. */
int http_transfer_result(const struct http_transfer *t, CURLcode code, struct err *reterr);
/* 1 = the answer redirects to a hop that http_transfer_begin() prepares; 0 = it is the answer; or -errno. */
int http_transfer_follow(struct http_transfer *t, struct err *reterr);

#endif
