/* The Retry-After header, https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3. */
#ifndef MOTEL_NET_RETRY_AFTER_H
#define MOTEL_NET_RETRY_AFTER_H

#include <stdint.h>

/* Milliseconds from `wall_ns` (clock_wall_ns) on, of whole seconds or of an HTTP date; 0 for none, past, negative, absurd or unreadable
 * values: the caller's own back-off then counts. At most 24 hours. */
uint32_t retry_after_parse(const char *text, uint64_t wall_ns);

#endif
