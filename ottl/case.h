/* Upper and lower case of Unicode's letters, and identifiers in snake and camel case. */
#ifndef MOTEL_OTTL_CASE_H
#define MOTEL_OTTL_CASE_H

#include "agent/base/buf.h"

/* Appending; 0, -ENOMEM or -EMSGSIZE. One character becomes one character (Unicode's simple mappings); bad bytes become U+FFFD. */
int case_lower(struct bytes s, struct buf *out);
int case_upper(struct bytes s, struct buf *out);
/* "HTTPServer2 x.y" -> "http_server_2_x_y"; and "some_name X" -> "SomeNameX", which leaves out what is no letter or digit. ASCII only. */
int case_snake(struct bytes s, struct buf *out);
int case_camel(struct bytes s, struct buf *out);

#endif
