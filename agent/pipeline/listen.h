/*
 * Servers of components. The listening socket outlives a reload: the component of the same id in the new graph takes it over, and no
 * connection is refused in between.
 */
#ifndef MOTEL_PIPELINE_LISTEN_H
#define MOTEL_PIPELINE_LISTEN_H

#include "agent/net/server.h"
#include "agent/pipeline/host.h"

struct served;
/* Opens (or takes over) the address of `s` and serves it with `service`, whose ctx is the component's own. `role` tells the servers of
 * one component apart ("grpc", "http"; "" = it has one). -EADDRINUSE also when another component of this process has the address. */
int served_start(struct component *c, const char *role, const struct server_settings *s, const struct http_service *service,
                 struct served **ret, struct err *reterr);
/* Where the component and role `owner` ("receiver otlp http") really listens that was told `endpoint` and `transport` (NULL = tcp); false when
 * it does not. */
bool served_find(struct host *h, const char *owner, const char *endpoint, const char *transport, char *ret, size_t size);
/* The address really bound, for logs. */
const char *served_address(const struct served *s);
/* The service ends: no callback runs after this. Requests under way may finish until the deadline. Where no new graph has taken the
 * address over, it is closed. Legal twice; NULL ok. */
void served_stop(struct served *s, uint64_t deadline_ns);
struct served *served_free(struct served *s); /* stopped before; NULL ok; returns NULL */

#endif
