/* Plain lines as log records. */
#ifndef MOTEL_RECEIVERS_CONSOLE_PLAIN_LOG_H
#define MOTEL_RECEIVERS_CONSOLE_PLAIN_LOG_H

#include "receivers/console/console.h"

/* Appends a LogRecord with the line as its body, and whence it came, to the records in `logs`. Blank lines are left out. 0 or -ENOMEM. */
int plain_log_add(struct buf *logs, const struct source *s, struct bytes line);
/* Makes a batch of the records and empties *logs. 0; -ENOMEM, and nothing is lost. */
int plain_log_take(struct buf **logs, struct batch **ret);

#endif
