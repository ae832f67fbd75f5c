/* Memory that is kept but not used at the moment. */
#ifndef MOTEL_BASE_PAGES_H
#define MOTEL_BASE_PAGES_H

#include <stddef.h>

/* Gives the whole pages within `at` and `at + len` that hold nothing but zeros back to the system. Reading there still gives zeros, so
 * nothing changes for whoever owns the memory; it must be private (of the heap, say), and no other thread may write there meanwhile. The
 * bytes given back; 0 when the system does not take them. */
size_t pages_give_back(void *at, size_t len);

#endif
