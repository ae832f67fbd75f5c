/* What the value of a field is used for outside of the process; read by motel explain. */
#ifndef MOTEL_CONFIG_USE_H
#define MOTEL_CONFIG_USE_H

enum cfg_use {
    CFG_USE_NONE,        /* a setting like any other */
    CFG_SERVES_OTLP,     /* the address of a server; `transport`, `tls` and `auth` stand beside it */
    CFG_SERVES_HTTP,
    CFG_SENDS_OTLP_GRPC, /* where data goes; `tls` and `auth` stand beside it */
    CFG_SENDS_OTLP_HTTP,
    CFG_SENDS_TO_PROXY,
    CFG_ASKS_HTTP,       /* what is scraped */
    CFG_READS_FILE,      /* a path or a pattern */
    CFG_WRITES_FILE,
    CFG_KEEPS_FILE,      /* written, and read at the next start; also a directory */
    CFG_NO_EFFECT,       /* accepted for the sake of other collectors' files */
};

#endif
