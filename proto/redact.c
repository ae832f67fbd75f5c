#include "proto/redact.h"

#include "agent/base/secrets.h"

static int redact_string(uint32_t number, struct bytes text, struct buf *out)
{
    size_t mark;
    int r = wire_begin(out, number, &mark);
    if (r == 0)
        r = secrets_redact(text, out);
    return r < 0 ? r : wire_end(out, mark);
}

static int redact_nested(uint32_t number, const struct schema_message *m, struct bytes msg,
                         struct buf *out)
{
    size_t mark;
    int r = wire_begin(out, number, &mark);
    if (r == 0)
        r = otlp_redact(m, msg, out);
    return r < 0 ? r : wire_end(out, mark);
}

int otlp_redact(const struct schema_message *m, struct bytes msg, struct buf *out)
{
    if (!secrets_found(msg))
        return buf_append(out, msg.data, msg.len);
    struct wire_reader reader = wire_reader(msg);
    struct wire_field f;
    int r = 0;
    while (r == 0 && wire_next(&reader, &f) > 0) {
        const struct schema_field *known = schema_field(m, f.number);
        if (known && f.type == WIRE_LEN && known->kind == KIND_MESSAGE)
            r = redact_nested(f.number, known->message, f.bytes, out);
        else if (known && f.type == WIRE_LEN && known->kind == KIND_STRING)
            r = redact_string(f.number, f.bytes, out);
        else
            r = buf_append(out, f.whole.data, f.whole.len);
    }
    return r;
}
