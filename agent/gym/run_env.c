/* The environment of the command. */
#include <errno.h>

#include "agent/base/buf.h"
#include "agent/gym/run_parts.h"

#define OTLP "OTEL_EXPORTER_OTLP_"

extern char **environ;

static bool is_set(const char *name)
{
    const char *v = getenv(name);
    return v && *v;
}

static int put(struct buf *out, const char *name, const char *scheme, const char *value)
{
    int r = buf_printf(out, "%s=%s%s", name, scheme, value);
    return r == 0 ? buf_putc(out, 0) : r;
}

/* Motel's ports take either protocol, so one address is enough. */
static int put_endpoint(const struct run_ready *r, bool replace, struct buf *out)
{
    const char *given = replace ? NULL : getenv(OTLP "PROTOCOL");
    const bool grpc = given && strcmp(given, "grpc") == 0;
    const char *address = (grpc && r->grpc[0]) || !r->http[0] ? r->grpc : r->http;
    int e = put(out, OTLP "ENDPOINT", "http://", address);
    if (e == 0 && !(given && *given))
        e = put(out, OTLP "PROTOCOL", "", address == r->http ? "http/protobuf" : "grpc");
    return e;
}

/* The names of all variables of that family. */
static int take_out_otlp(struct buf *out)
{
    int r = 0;
    for (char **v = environ; r == 0 && *v; v++) {
        const char *equals = strchr(*v, '=');
        if (!equals || strncmp(*v, OTLP, strlen(OTLP)) != 0)
            continue;
        r = buf_append(out, *v, (size_t)(equals - *v));
        if (r == 0)
            r = buf_putc(out, 0);
    }
    return r;
}

int run_environment(const struct run_command *c, const struct run_ready *ready, struct buf *out)
{
    int r = 0;
    if (!ready || ready->idle)
        return 0;
    if (!is_set("NEMO_GYM_OTEL_ENABLED"))
        r = put(out, "NEMO_GYM_OTEL_ENABLED", "", "true");
    if (r == 0 && ready->measures_memory)
        r = put(out, "NEMO_GYM_OTEL_MEMORY_PROFILING_ENABLED", "", "false");
    const bool listens = ready->http[0] || ready->grpc[0];
    if (r == 0 && listens && c->takes_otlp_variables)
        r = take_out_otlp(out);
    if (r == 0 && listens && (c->takes_otlp_variables || !is_set(OTLP "ENDPOINT")))
        r = put_endpoint(ready, c->takes_otlp_variables, out);
    return r;
}
