/* Who listens on a port, by /proc. */
#ifndef MOTEL_NET_PORT_HOLDER_H
#define MOTEL_NET_PORT_HOLDER_H

#include <stdbool.h>
#include <sys/types.h>

struct port_holder {
    bool found;    /* somebody in this network namespace listens */
    pid_t pid;     /* 0 = not told: the process is another user's, or in another container */
    char name[64]; /* of the program; "" without pid */
    bool is_unix;
};
/* Looks for a listener on a TCP endpoint ("127.0.0.1:4318"): at that address, else at every one, else at another with that port. */
void port_holder_find(const char *endpoint, struct port_holder *ret);
/* The same for a unix socket. */
void port_holder_find_unix(const char *path, struct port_holder *ret);

#endif
