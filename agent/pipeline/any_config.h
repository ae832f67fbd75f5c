/* Values of the configuration as attribute values. */
#ifndef MOTEL_PIPELINE_ANY_CONFIG_H
#define MOTEL_PIPELINE_ANY_CONFIG_H

#include "agent/base/buf.h"
#include "agent/base/err.h"
#include "agent/config/value.h"

/* Appends `v` as the fields of an AnyValue (not its tag and length in a parent); null is an AnyValue without a value. 0; -EINVAL with a
 * reason (a time has no such form); -ENOMEM, -EMSGSIZE. */
int any_config_write(const struct cfg_value *v, struct buf *out, struct err *reterr);

#endif
