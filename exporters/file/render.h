/* A batch as one record of a file: a line of JSON, or a length-prefixed message. Not thread safe. */
#ifndef MOTEL_EXPORTERS_FILE_RENDER_H
#define MOTEL_EXPORTERS_FILE_RENDER_H

#include "proto/json.h"

struct renderer;
/* `zstd`: every message is compressed (and length-prefixed, JSON too); `level` 0 = the library's default. NULL: no memory. */
struct renderer *renderer_new(bool proto, bool zstd, int level);
struct renderer *renderer_free(struct renderer *r); /* NULL ok; returns NULL */
/* True when records are length-prefixed. */
bool renderer_framed(const struct renderer *r);
/* "json", "proto", "json zstd", "proto zstd". */
const char *renderer_content(const struct renderer *r);
/* Appends the record. Secrets are replaced. A line may go through `spill` in pieces. 0, or a negative errno: then `out` holds a part of it. */
int render(struct renderer *r, const struct batch *b, const struct json_spill *spill, struct buf *out);

#endif
