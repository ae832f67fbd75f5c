/* Copy-through editing and splitting of checked batches. */
#ifndef MOTEL_PROTO_REWRITE_H
#define MOTEL_PROTO_REWRITE_H

#include "proto/batch.h"

enum edit { EDIT_KEEP, EDIT_DROP, EDIT_REPLACE, EDIT_ERROR };
/*
 * Callbacks see encoded messages; any may be NULL. EDIT_REPLACE: the new encoded message was appended to `out` (empty at
 * the call). EDIT_DROP of a resource or scope drops all below it; a scope, metric or resource left empty by drops goes too.
 * EDIT_ERROR stops with -ENOMEM. An absent resource or scope is seen as zero bytes. A callback is shown the resource and scope
 * as they will be, after their own callbacks. A replacement equal to what was there counts as unchanged.
 * `record` is a Span, LogRecord or Metric.
 */
struct otlp_rewriter {
    enum edit (*resource)(void *ctx, struct bytes resource, struct buf *out);
    enum edit (*scope)(void *ctx, struct bytes resource, struct bytes scope, struct buf *out);
    enum edit (*record)(void *ctx, struct bytes resource, struct bytes scope, struct bytes record, struct buf *out);
    void *ctx;
    bool drop_empty; /* scopes and resources that came without a record go, too; only with `record` */
};
/* Nothing changed: *ret is a reference of `in` (segments untouched are shared). All dropped: *ret has 0 records and no
 * segments. 0 or -ENOMEM. */
int otlp_rewrite(const struct otlp_rewriter *rw, struct batch *in, struct batch **ret);
/*
 * Cuts `in` after at most `max` (>= 1) records (metrics are cut by data point): *ret_head has min(max, records), *ret_tail
 * the rest or NULL. Resource, scope, schema URLs, metric name, unit, temporality … are repeated around both sides.
 */
int otlp_split(struct batch *in, uint32_t max, struct batch **ret_head, struct batch **ret_tail);
/*
 * Cuts `in` into pieces of at most `max_records` records and `max_bytes` bytes each (0 = no limit), in one pass however
 * many they are. A single record above `max_bytes` is a piece of its own. *ret: the pieces, an array to free(); the caller
 * owns each. 0 or -ENOMEM.
 */
int otlp_split_all(struct batch *in, uint32_t max_records, size_t max_bytes, struct batch ***ret, size_t *ret_n);

#endif
