/*
 * Telling the service manager that started this process how it is: systemd's protocol (sd_notify(3)), datagrams of VARIABLE=VALUE lines to the
 * socket that NOTIFY_SOCKET names. Without that variable nothing happens. For the main thread.
 */
#ifndef MOTEL_NOTIFY_H
#define MOTEL_NOTIFY_H

#include <stdint.h>

/* Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, which are for this process alone, out of the environment. Before other threads run. A
 * socket of a kind that is not known is warned of in the log. */
void notify_set_up(void);
void notify_done(void);

/* Everything listens; `status` is what `systemctl status` shows, one line. Also the end of a reload, whether it went well or not. */
void notify_ready(const char *status);
/* The configuration is being read again; notify_ready() follows. */
void notify_reloading(void);
/* The process is about to end, and asks for `within_ns` to do so where it would be given less. */
void notify_stopping(const char *status, uint64_t within_ns);

/* When notify_watchdog() is due (clock_now_ns): twice in the time after which the manager takes the process for hung. UINT64_MAX = never: it
 * does not watch. */
uint64_t notify_watchdog_due_ns(void);
/* The main loop goes round: tells the manager when that is due. */
void notify_watchdog(void);

#endif
