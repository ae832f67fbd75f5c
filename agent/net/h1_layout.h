/*
 * Whether the head of a request, as libmicrohttpd cut it up, was one that two readers understand alike. It takes what is
 * not a line end for one (a bare LF), cuts values at a NUL, and joins folded lines; afterwards only the places tell. It cuts
 * the bytes of the head where they came: a line end becomes one NUL for each of its bytes, a colon one NUL. Where a libmicrohttpd does
 * otherwise (h1_probe.h), `anywhere` leaves the places out, and the parser has to be strict itself.
 */
#ifndef MOTEL_NET_H1_LAYOUT_H
#define MOTEL_NET_H1_LAYOUT_H

#include "agent/base/bytes.h"

struct h1_layout {
    const uint8_t *next; /* where the next line has to begin */
    bool anywhere;       /* the pieces may be in any place; only what they say counts */
};
/* The target as it came, before it is cut up; len 0 when it has blanks or control characters. */
struct bytes h1_layout_target(const char *target);
/* The request line, then each field in order, then the end; false = refuse. All of it has to be one head's, still as it was cut up. */
bool h1_layout_line(struct h1_layout *l, struct bytes method, struct bytes target, struct bytes version);
bool h1_layout_field(struct h1_layout *l, struct bytes name, struct bytes value);
/* `head` is what libmicrohttpd took for the head, from the method on: a line of nothing but a colon, or that begins with NUL, is an
 * end, too, for it. Not seen: NUL and LF, and a colon alone and LF, look like CR and LF. *ret_body is where a body begins whose first
 * bytes came with the head. A head that ends with a bare LF is not seen when a body follows whose first byte is NUL; then that body is
 * one byte further to the front. NULL with `anywhere`. */
bool h1_layout_end(const struct h1_layout *l, struct bytes head, const uint8_t **ret_body);
/* The head of a request that is whole, from its method on. */
struct MHD_Connection;
struct bytes h1_layout_head(struct MHD_Connection *mc, const char *method);

#endif
