/* Functions that only conditions of the filter processor have. */
#ifndef MOTEL_PROCESSORS_FILTER_FUNCTIONS_H
#define MOTEL_PROCESSORS_FILTER_FUNCTIONS_H

#include "ottl/function.h"

extern const struct ottl_function filter_functions[]; /* HasAttrKeyOnDatapoint, HasAttrOnDatapoint */

#endif
