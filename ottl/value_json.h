/* JSON text as a value: numbers are doubles, a key given twice has its last value. */
#ifndef MOTEL_OTTL_VALUE_JSON_H
#define MOTEL_OTTL_VALUE_JSON_H

#include "agent/base/err.h"
#include "ottl/value.h"

/* One JSON value with white space around it. Strings live in `a`. 0; -EINVAL with reterr: not JSON (with the byte), or nested deeper
 * than an AnyValue can be; -ENOMEM. */
int ottl_value_from_json(struct arena *a, struct bytes text, struct ottl_value *ret, struct err *reterr);

#endif
