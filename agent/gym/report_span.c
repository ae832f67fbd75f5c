/* What a report wants to know of a span. */
#include "agent/gym/report_parts.h"
#include "proto/any_value.h"
#include "proto/otlp_fields.h"

enum { STATUS_ERROR = 2 };

/* Port and path say where a request goes; hosts have several names. */
static uint64_t place_hash(int64_t port, struct bytes path)
{
    size_t len = 0;
    while (len < path.len && path.data[len] != '?' && path.data[len] != '#')
        len++;
    path.len = len;
    return hash_bytes(path, (uint64_t)port) | 1;
}

/* "http://host:8000/path?query" */
static uint64_t url_hash(struct bytes url)
{
    const bool tls = url.len > 8 && memcmp(url.data, "https://", 8) == 0;
    const size_t scheme = tls ? 8 : 7;
    if (!tls && (url.len < 7 || memcmp(url.data, "http://", 7) != 0))
        return 0;
    struct bytes host = bytes_of(url.data + scheme, url.len - scheme);
    const uint8_t *slash = memchr(host.data, '/', host.len);
    struct bytes path =
        slash ? bytes_of(slash, host.len - (size_t)(slash - host.data)) : bytes_of("/", 1);
    if (slash)
        host.len = (size_t)(slash - host.data);
    const uint8_t *colon = memrchr(host.data, ':', host.len);
    int64_t port = 0;
    for (const uint8_t *p = colon; p && ++p < host.data + host.len && port < 65536;)
        port = *p >= '0' && *p <= '9' ? port * 10 + (*p - '0') : 65536;
    return place_hash(colon && port < 65536 ? port : tls ? 443 : 80, path);
}

struct url_parts {
    struct bytes url, path;
    int64_t port;
};

static void see_attribute(struct seen_span *s, struct url_parts *u, struct key_value kv)
{
    const struct any_value v = any_value_read(kv.value);
    if (bytes_eq_str(kv.key, "nemo.span.truncated"))
        s->truncated = v.kind == ANY_BOOL ? v.b : v.kind != ANY_EMPTY;
    else if (v.kind == ANY_STRING &&
             (bytes_eq_str(kv.key, "url.full") || bytes_eq_str(kv.key, "http.url")))
        u->url = v.bytes;
    else if (v.kind == ANY_STRING &&
             (bytes_eq_str(kv.key, "url.path") || bytes_eq_str(kv.key, "http.target")))
        u->path = v.bytes;
    else if (v.kind == ANY_INT &&
             (bytes_eq_str(kv.key, "server.port") || bytes_eq_str(kv.key, "net.host.port")))
        u->port = v.i;
}

static uint64_t id_of(struct bytes id)
{
    uint64_t v = 0;
    if (id.len == sizeof(v))
        memcpy(&v, id.data, sizeof(v));
    return v;
}

struct seen_span report_see_span(struct bytes record)
{
    struct wire_reader reader = wire_reader(record);
    struct wire_field f;
    struct seen_span s = {.name = bytes_of("", 0)};
    struct url_parts u = {0};
    while (wire_next(&reader, &f) > 0)
        switch (f.number) {
        case SPAN_ID: s.id = id_of(f.bytes); break;
        case SPAN_PARENT_ID: s.parent = id_of(f.bytes); break;
        case SPAN_NAME: s.name = f.bytes; break;
        case SPAN_KIND: s.kind = (uint32_t)f.value; break;
        case SPAN_START: s.start_ns = f.value; break;
        case SPAN_END: s.end_ns = f.value; break;
        case SPAN_ATTRIBUTES: see_attribute(&s, &u, key_value_read(f.bytes)); break;
        case SPAN_STATUS: s.error = wire_uint(f.bytes, STATUS_CODE) == STATUS_ERROR; break;
        default: break;
        }
    s.url = u.url.len ? url_hash(u.url) : u.path.len ? place_hash(u.port, u.path) : 0;
    return s;
}
