/* What happens to an HTTP/1 connection between two requests. On its loop thread. */
#ifndef MOTEL_NET_H1_IDLE_H
#define MOTEL_NET_H1_IDLE_H

#include "agent/net/conn.h"

/* A request begins; `method` is where libmicrohttpd has its first byte. */
void h1_idle_ends(struct conn *c, const char *method);
/* The connection ends, or may have. */
void h1_idle_forget(struct conn *c);
/* It has been answered, and idle_ns is set. */
void h1_idle_begins(struct conn *c);
/* Something has come on an idle connection, or the event is about what was read before. Gives a head that has begun its deadline. */
void h1_look_later(struct conn *c);

#endif
