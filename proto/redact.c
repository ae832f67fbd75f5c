#include "proto/redact.h"

#include <errno.h>

#include "agent/base/secrets.h"

#define ANY_STRING_NUMBER 1 /* string_value of AnyValue */

struct redactor {
    const struct schema_message *any; /* AnyValue, when a secret is a number; else NULL */
};

static int redact(const struct redactor *x, const struct schema_message *m, struct bytes msg,
                  struct buf *out);

static int redact_text(uint32_t number, struct bytes text, struct buf *out)
{
    size_t mark;
    int r = wire_begin(out, number, &mark);
    if (r == 0)
        r = secrets_redact(text, out);
    return r < 0 ? r : wire_end(out, mark);
}

static int redact_nested(const struct redactor *x, uint32_t number, const struct schema_message *m,
                         struct bytes msg, struct buf *out)
{
    size_t mark;
    int r = wire_begin(out, number, &mark);
    if (r == 0)
        r = redact(x, m, msg, out);
    return r < 0 ? r : wire_end(out, mark);
}

static bool is_secret_number(const struct schema_field *f, uint64_t v)
{
    return f->kind == KIND_INT64    ? secrets_int((int64_t)v)
           : f->kind == KIND_DOUBLE ? secrets_double(wire_double(v))
                                    : false;
}

static int redact_field(const struct redactor *x, const struct schema_message *m,
                        const struct wire_field *f, struct buf *out)
{
    const struct schema_field *known = schema_field(m, f->number);
    if (known && f->type == WIRE_LEN && known->kind == KIND_MESSAGE)
        return redact_nested(x, f->number, known->message, f->bytes, out);
    if (known && f->type == WIRE_LEN && !known->id_len &&
        (known->kind == KIND_STRING || known->kind == KIND_BYTES))
        return redact_text(f->number, f->bytes, out);
    if (known && m == x->any && is_secret_number(known, f->value))
        return redact_text(ANY_STRING_NUMBER, bytes_str(SECRET_PLACEHOLDER), out);
    return buf_append(out, f->whole.data, f->whole.len);
}

static int redact(const struct redactor *x, const struct schema_message *m, struct bytes msg,
                  struct buf *out)
{
    if (!x->any && !secrets_found(msg))
        return buf_append(out, msg.data, msg.len);
    struct wire_reader reader = wire_reader(msg);
    struct wire_field f;
    int r = 0;
    while (r == 0 && wire_next(&reader, &f) > 0)
        r = redact_field(x, m, &f, out);
    return r;
}

int otlp_redact(const struct schema_message *m, struct bytes msg, struct buf *out)
{
    const struct redactor x = {
        .any = secrets_numeric() ? schema_find("opentelemetry.proto.common.v1.AnyValue") : NULL};
    return redact(&x, m, msg, out);
}

static bool may_hold_secret(const struct batch *b)
{
    bool found = secrets_numeric();
    for (unsigned i = 0; !found && i < b->nsegs; i++)
        found = secrets_found(buf_bytes(b->segs[i]));
    return found;
}

int otlp_redact_batch(const struct batch *b, struct batch **ret)
{
    *ret = NULL;
    if (!may_hold_secret(b))
        return 0;
    struct buf *clean = buf_new(0);
    int r = clean ? 0 : -ENOMEM;
    for (unsigned i = 0; r == 0 && i < b->nsegs; i++)
        r = otlp_redact(schema_request(b->signal), buf_bytes(b->segs[i]), clean);
    if (r < 0) {
        buf_unref(clean);
        return r;
    }
    *ret = batch_new(b->signal, &clean, 1, b->records);
    return *ret ? 0 : -ENOMEM;
}
