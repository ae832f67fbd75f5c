/* Content-Type values, as Go's mime.ParseMediaType takes them. */
#ifndef MOTEL_RECEIVERS_OTLP_MEDIA_TYPE_H
#define MOTEL_RECEIVERS_OTLP_MEDIA_TYPE_H

#include "agent/base/bytes.h"

/* The type in lower case, without its parameters; "" when `value` is malformed or the type is longer than any of interest. */
#define MEDIA_TYPE_BYTES 64
void media_type_parse(struct bytes value, char ret[MEDIA_TYPE_BYTES]);

#endif
