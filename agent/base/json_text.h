/* JSON strings for logs and listings; telemetry has its own writer in proto/json. */
#ifndef MOTEL_BASE_JSON_TEXT_H
#define MOTEL_BASE_JSON_TEXT_H

#include "agent/base/buf.h"

/* Appends `text` in quotes, escaped so that no control character is left (RFC 8259 section 7), with U+FFFD for what is not UTF-8. 0, -ENOMEM or -EMSGSIZE. */
int json_text(struct buf *b, struct bytes text);

#endif
