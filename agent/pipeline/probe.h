/*
 * What `motel doctor` finds: components look at what they need from outside (addresses, backends, files) and say what they see. Nothing is
 * started, and nothing that lasts is changed.
 */
#ifndef MOTEL_PIPELINE_PROBE_H
#define MOTEL_PIPELINE_PROBE_H

#include "agent/net/http_client.h"
#include "agent/net/port_holder.h"
#include "agent/net/reach.h"
#include "agent/net/server.h"
#include "agent/pipeline/component.h"

enum probe_grade { PROBE_OK, PROBE_WARN, PROBE_FAIL };
enum probe_step { PROBE_SERVERS, PROBE_OUTSIDE }; /* addresses first: later steps know then which ones are our own */

struct probe_finding {
    enum probe_grade grade;
    const char *component;      /* "exporters::otlp_http/backend" */
    const char *check;          /* "address", "resolve", "connect", "tls", "export", "scrape", "file", … */
    const char *subject;        /* what was looked at: an address, a path; "" = nothing in particular */
    const char *detail, *advice; /* what was seen, and what to do ("" = nothing) */
};

/* Whether another process is a motel, and one with the same configuration. */
enum probe_likeness { PROBE_STRANGER, PROBE_MOTEL, PROBE_SAME };

struct probe_ports; /* the addresses of this configuration */
struct probe {
    enum probe_step step;
    const char *component;
    unsigned signals;    /* exporters: those that pipelines send to it */
    uint64_t timeout_ns; /* for one check */
    int64_t file_mode;   /* of files that exporters create; -1 = their own */
    struct probe_ports *ports;
    void (*found)(void *ctx, const struct probe_finding *f);
    enum probe_likeness (*likeness)(void *ctx, pid_t pid);
    void *ctx;
};
void probe_ok(struct probe *p, const char *check, const char *subject, const char *fmt, ...) _printf_(4, 5);
void probe_warn(struct probe *p, const char *check, const char *subject, const char *advice, const char *fmt, ...) _printf_(5, 6);
void probe_fail(struct probe *p, const char *check, const char *subject, const char *advice, const char *fmt, ...) _printf_(5, 6);

/* ---- addresses of our own (probe_listen.c) ---- */

struct probe_ports *probe_ports_new(void);
void probe_ports_close(struct probe_ports *p); /* they are remembered */
struct probe_ports *probe_ports_free(struct probe_ports *p);
DEFINE_CLEANUP(struct probe_ports *, probe_ports_free)
/* Whether this configuration itself listens there. */
bool probe_ports_have(const struct probe_ports *p, const char *host, const char *port);
/* A server of the component (`role`: "grpc", "http" or ""): its address, held until probe_ports_close(), and its certificates. */
void probe_server(struct probe *p, const char *role, const struct server_settings *s, bool guarded);

/* ---- files (probe_file.c) ---- */

/* A file that will be opened for writing: that it or its directory can be written to, and the room on the disk. `make_parents`: missing
 * directories are made. `fate`: what becomes of a file that is there ("is emptied at the start"). */
void probe_output_file(struct probe *p, const char *path, bool make_parents, const char *fate);
/* A directory in which files are made. `make`: it is created with its parents when it is missing. */
void probe_directory(struct probe *p, const char *path, bool make);
/* A file that is read. `secret`: it should not be readable by others. False after a failure. */
bool probe_input_file(struct probe *p, const char *path, bool secret);
/* Client certificate, key and CA: that they can be loaded and are in time. False after a failure. */
bool probe_client_tls(struct probe *p, const struct tls_client_settings *s);
/* The validity of one certificate. `subject`: its file or key. */
void probe_certificate(struct probe *p, const char *check, const char *subject, const struct certificate_info *c);

/* ---- backends (probe_peer.c) ---- */

struct probe_peer {
    const char *host, *port, *unix_path;   /* unix_path NULL or "" = TCP */
    const struct tls_client_settings *tls; /* NULL = without TLS */
    bool grpc;                             /* HTTP/2 is needed */
    struct reach_addresses addresses;
    unsigned at;
    bool own;                              /* it is an address of this configuration, which is not running */
};
/* Resolves, connects, shakes hands, and says so. True when a request makes sense now. */
bool probe_reach(struct probe *p, struct probe_peer *peer);
/* A request got no answer, for `reason`: looks what the matter is, and says so as a failed `check` of `subject`. */
void probe_unanswered(struct probe *p, const struct probe_peer *peer, const char *check, const char *subject, const char *reason);
/* What the proxy of an HTTP client is, if there is one: then that is what is reached. True when a request makes sense. */
bool probe_reach_url(struct probe *p, const struct http_client_settings *s, const char *url, struct probe_peer *peer, struct http_url *room);
/* "took 1.2 ms". */
const char *probe_took(uint64_t since_ns, char ret[32]);

#endif
