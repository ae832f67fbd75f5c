/* Whether the libmicrohttpd that is loaded cuts up heads in place, the way h1_layout.h reads them. */
#ifndef MOTEL_NET_H1_PROBE_H
#define MOTEL_NET_H1_PROBE_H

#include <microhttpd.h>

#include "agent/base/bytes.h"

/* Asks it at the first call, with requests of every ordinary kind, and warns when one of them would be refused. Then the places say nothing,
 * and heads are to be judged by what they say alone. Thread safe. */
bool h1_layout_known(void);
/* The same, and each request of a connection begins in one place of the memory that it has. Thread safe. */
bool h1_pool_known(void);

#endif
