/* What both verbosities share. */
#include "exporters/debug/text.h"

#include <errno.h>
#include <math.h>
#include <time.h>

#include "agent/base/clock.h"
#include "agent/base/encode.h"
#include "proto/any_value.h"
#include "proto/otlp_fields.h"
#include "proto/schema.h"

void text_resources(struct text *t, const struct batch *b,
                    void (*put_entry)(struct text *t, enum signal s, unsigned i,
                                      struct bytes entry))
{
    unsigned i = 0;
    struct bytes entry;
    for (unsigned k = 0; k < b->nsegs; k++) {
        struct wire_reader r = wire_reader(buf_bytes(b->segs[k]));
        for (; t->error == 0 && wire_each(&r, OTLP_ENTRIES, &entry); i++)
            put_entry(t, b->signal, i, entry);
    }
}

void text_printf(struct text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (t->error == 0)
        t->error = buf_vprintf(t->out, fmt, ap);
    va_end(ap);
}

void text_bytes(struct text *t, struct bytes s)
{
    if (t->error == 0)
        t->error = buf_append(t->out, s.data, s.len);
}

void text_line(struct text *t, const char *before, struct bytes s)
{
    text_bytes(t, bytes_str(before));
    text_bytes(t, s);
    text_bytes(t, bytes_str("\n"));
}

void text_string_line(struct text *t, const char *before, struct bytes msg, uint32_t field)
{
    text_line(t, before, wire_bytes(msg, field));
}

void text_id(struct text *t, struct bytes id)
{
    static const uint8_t zeros[16];
    char digits[32];
    if (id.len == 0 || id.len > sizeof(zeros) || memcmp(id.data, zeros, id.len) == 0)
        return;
    encode_hex(id, digits);
    text_bytes(t, bytes_of(digits, 2 * id.len));
}

void text_id_line(struct text *t, const char *before, struct bytes msg, uint32_t field)
{
    text_bytes(t, bytes_str(before));
    text_id(t, wire_bytes(msg, field));
    text_bytes(t, bytes_str("\n"));
}

/* Nanoseconds since 1970, signed as the reference takes them, without zeros at the end. */
static void put_time(struct text *t, int64_t ns)
{
    time_t seconds = (time_t)(ns / (int64_t)NS_PER_S);
    int64_t rest = ns % (int64_t)NS_PER_S;
    struct tm tm;
    char date[32], fraction[16];
    if (rest < 0) {
        rest += (int64_t)NS_PER_S;
        seconds--;
    }
    gmtime_r(&seconds, &tm);
    strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm);
    int n = snprintf(fraction, sizeof(fraction), ".%09d", (int)rest);
    while (n > 0 && (fraction[n - 1] == '0' || fraction[n - 1] == '.'))
        n--;
    text_printf(t, "%s%.*s +0000 UTC", date, n, fraction);
}

void text_time_line(struct text *t, const char *before, struct bytes msg, uint32_t field)
{
    text_bytes(t, bytes_str(before));
    put_time(t, (int64_t)wire_uint(msg, field));
    text_bytes(t, bytes_str("\n"));
}

void text_fixed(struct text *t, double v)
{
    if (isnan(v))
        text_printf(t, "NaN");
    else if (isinf(v))
        text_printf(t, "%sInf", v < 0 ? "-" : "+");
    else
        text_printf(t, "%f", v);
}

void text_value(struct text *t, struct bytes any)
{
    if (t->error == 0)
        t->error = any_value_text(any, t->out);
}

void text_typed_value(struct text *t, struct bytes any)
{
    static const char *const types[] = {
        [ANY_EMPTY] = "Empty",   [ANY_STRING] = "Str",  [ANY_BOOL] = "Bool",  [ANY_INT] = "Int",
        [ANY_DOUBLE] = "Double", [ANY_ARRAY] = "Slice", [ANY_KVLIST] = "Map", [ANY_BYTES] = "Bytes",
    };
    text_printf(t, "%s(", types[any_value_read(any).kind]);
    text_value(t, any);
    text_bytes(t, bytes_str(")"));
}

void text_attributes(struct text *t, const char *header, const char *indent, struct bytes msg,
                     uint32_t field)
{
    struct wire_reader r = wire_reader(msg);
    struct bytes kv;
    for (bool first = true; wire_each(&r, field, &kv); first = false) {
        struct key_value pair = key_value_read(kv);
        if (first)
            text_printf(t, "%s:\n", header);
        text_printf(t, "%s ", indent);
        text_bytes(t, pair.key);
        text_bytes(t, bytes_str(": "));
        text_typed_value(t, pair.value);
        text_bytes(t, bytes_str("\n"));
    }
}

static int64_t unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

struct buckets buckets_read(struct text *t, struct bytes buckets)
{
    struct bytes packed = wire_bytes(buckets, BUCKETS_COUNTS);
    struct buckets b = {.offset = (double)unzigzag(wire_uint(buckets, BUCKETS_OFFSET))};
    if (!packed.len)
        return b;
    if (!(b.counts = calloc(packed.len, sizeof(*b.counts)))) {
        t->error = -ENOMEM;
        return b;
    }
    for (struct wire_reader r = wire_reader(packed);
         wire_next_packed(&r, WIRE_VARINT, b.counts + b.n) > 0;)
        b.n++;
    return b;
}

void buckets_done(struct buckets *b)
{
    free(b->counts);
}

double buckets_factor(struct bytes point)
{
    return ldexp(M_LN2, -(int)unzigzag(wire_uint(point, EXPONENTIAL_SCALE)));
}

/* The reference's exp() is infinite already where the true value is just below the largest double.
 */
double bucket_bound(double i, double factor)
{
    double x = i * factor;
    return x >= 1024 * M_LN2 ? INFINITY : exp(x);
}

const char *text_name(const char *const *names, size_t n, uint64_t i)
{
    return i < n ? names[i] : "";
}
