/* A request that nobody sent: its header fields alone. */
#ifndef FAKE_EXCHANGE_H
#define FAKE_EXCHANGE_H

#include "agent/net/exchange.h"

struct fake_exchange {
    struct http_exchange x; /* first */
    const char *name, *value; /* NULL = no header */
};

static inline void fake_each(const struct http_exchange *x, bool (*each)(void *, struct bytes, struct bytes), void *ctx)
{
    const struct fake_exchange *f = (const struct fake_exchange *)x;
    if (f->name)
        each(ctx, bytes_str(f->name), bytes_str(f->value));
}
static const struct carrier fake_carrier = {.kind = CARRIER_HTTP1, .each = fake_each};

/* To be read only; on the caller's stack. */
static inline struct fake_exchange fake_request(const char *name, const char *value)
{
    return (struct fake_exchange){.x = {.carrier = &fake_carrier, .peer_text = "192.0.2.1:5"}, .name = name, .value = value};
}

#endif
