/* Text of others (a backend's answer, a name in a certificate, a process) on its way to a terminal or into JSON. */
#ifndef MOTEL_BASE_PLAIN_TEXT_H
#define MOTEL_BASE_PLAIN_TEXT_H

#include "agent/base/buf.h"

enum plain_kind {
    PLAIN_SHOWN,   /* stands for itself */
    PLAIN_CONTROL, /* a control character (C0, DEL, C1), a line separator, or one that turns the direction of writing */
    PLAIN_BAD      /* a byte that is not UTF-8 (RFC 3629) */
};
/* The length of the character at the front of `s` (not empty), *ret = what it is, *ret_code = its code point (a bad byte: the byte). */
size_t plain_next(struct bytes s, enum plain_kind *ret, uint32_t *ret_code);
/* Appends `s` with `instead` for every character that is not shown, but for those in `keep` (such as "\n"). 0, -ENOMEM or -EMSGSIZE. */
int plain_text(struct buf *out, struct bytes s, char instead, const char *keep);

#endif
