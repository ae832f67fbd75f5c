#include "connectors/span_metrics/identity.h"

#include <errno.h>
#include <sys/random.h>

#include "agent/base/encode.h"
#include "proto/otlp_fields.h"

/* ---- life cycle ---- */

static bool is_excluded(const struct span_metrics_config *c, const char *name)
{
    const char *const *names = c->exclude_dimensions.items;
    for (size_t i = 0; i < c->exclude_dimensions.n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* A UUID of version 4, https://www.rfc-editor.org/rfc/rfc9562#section-5.4 */
static int make_uuid(char ret[37])
{
    uint8_t u[16];
    if (getrandom(u, sizeof(u), 0) != (ssize_t)sizeof(u))
        return -EIO;
    u[6] = (uint8_t)((u[6] & 0x0f) | 0x40);
    u[8] = (uint8_t)((u[8] & 0x3f) | 0x80);
    snprintf(ret, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
             u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
             u[14], u[15]);
    return 0;
}

int identity_init(struct identity *id, const struct span_metrics_config *c, struct err *reterr)
{
    *id = (struct identity){
        .service = !is_excluded(c, "service.name"),
        .name = !is_excluded(c, "span.name"),
        .kind = !is_excluded(c, "span.kind"),
        .status = !is_excluded(c, "status.code"),
        .instance = !is_excluded(c, "collector.instance.id"),
        .method = c->sampling_method,
        .scopes = &c->include_scopes,
        .texts = buf_new(0),
    };
    id->service_in_key = id->service && c->resource_metrics_key_attributes.n > 0;
    if (!id->texts)
        return err_set(reterr, -ENOMEM, "out of memory");
    if (make_uuid(id->instance_id) < 0)
        return err_set(reterr, -EIO, "no random numbers for collector.instance.id");
    return 0;
}

void identity_done(struct identity *id)
{
    attributes_done(&id->list);
    id->texts = buf_unref(id->texts);
}

/* ---- the key ---- */

static uint8_t *put_sized(uint8_t *at, struct bytes b)
{
    const uint32_t len = (uint32_t)b.len;
    memcpy(at, &len, sizeof(len));
    if (b.len)
        memcpy(at + sizeof(len), b.data, b.len);
    return at + sizeof(len) + b.len;
}

static int put_common(const struct identity *id, const struct subject *s, struct buf *key)
{
    const size_t fixed = 3 + 2 * sizeof(uint32_t);
    int r = buf_reserve(key, fixed + s->service.len + s->span->name.len);
    if (r < 0)
        return r;
    uint8_t *at = buf_tail(key), *const from = at;
    *at++ = id->kind ? (uint8_t)s->span->kind : 0;
    *at++ = id->status ? (uint8_t)s->span->status : 0;
    *at++ = id->method && s->adjusted;
    if (id->service_in_key)
        at = put_sized(at, s->service);
    if (id->name)
        at = put_sized(at, s->span->name);
    buf_commit(key, (size_t)(at - from));
    return 0;
}

/* A text of less than 128 bytes and nothing else, read in place. */
static bool is_short_text(struct bytes any)
{
    return any.len >= 2 && any.data[0] == (1 << 3 | WIRE_LEN) && any.data[1] < 0x80 &&
           any.len == 2u + any.data[1];
}

static int put_text_match(const struct attribute *m, struct buf *key)
{
    int r = buf_reserve(key, 2 * sizeof(uint32_t) + m->key.len + m->value.len);
    if (r < 0)
        return r;
    uint8_t *at = put_sized(buf_tail(key), m->key);
    at = put_sized(at, bytes_of(m->value.data + 2, m->value.len - 2));
    buf_commit(key, (size_t)(at - buf_tail(key)));
    return 0;
}

/* The name and the text of a value: 1 and "1" are the same series. */
static int put_match(const struct attribute *m, struct buf *key)
{
    uint32_t len = (uint32_t)m->key.len;
    if (is_short_text(m->value))
        return put_text_match(m, key);
    int r = buf_append(key, &len, sizeof(len));
    if (r == 0)
        r = buf_append(key, m->key.data, m->key.len);
    const size_t at = key->len;
    if (r == 0)
        r = buf_append(key, &len, sizeof(len));
    if (r == 0)
        r = any_value_text(m->value, key);
    if (r < 0)
        return r;
    len = (uint32_t)(key->len - at - sizeof(len));
    memcpy(key->data + at, &len, sizeof(len));
    return 0;
}

static int put_matches(const struct attributes *matches, struct buf *key)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < matches->n; i++)
        r = put_match(&matches->items[i], key);
    return r;
}

int identity_key(const struct identity *id, const struct subject *s, struct buf *key)
{
    buf_truncate(key, 0);
    int r = put_common(id, s, key);
    if (r == 0 && s->matches->n)
        r = put_matches(s->matches, key);
    if (r == 0 && s->more->n)
        r = put_matches(s->more, key);
    return r;
}

/* ---- the attributes ---- */

/* There is room in `texts`, so that it does not move. */
static int add_text(struct identity *id, const char *key, struct bytes text)
{
    const size_t at = id->texts->len;
    int r = any_value_write(&(struct any_value){ANY_STRING, .bytes = text}, id->texts);
    if (r < 0)
        return r;
    return attributes_put(&id->list, bytes_str(key),
                          bytes_of(id->texts->data + at, id->texts->len - at));
}

static int add_scope(struct identity *id, struct bytes scope)
{
    if (!scope.len)
        return 0;
    const struct bytes name = wire_bytes(scope, SCOPE_NAME);
    const struct bytes version = wire_bytes(scope, SCOPE_VERSION);
    const char *const *wanted = id->scopes->items;
    bool shown = false;
    for (size_t i = 0; name.len && i < id->scopes->n; i++)
        shown |= bytes_eq_str(name, wanted[i]);
    if (!shown)
        return 0;
    int r = add_text(id, "span.instrumentation.scope.name", name);
    return r == 0 && version.len ? add_text(id, "span.instrumentation.scope.version", version) : r;
}

static int add_common(struct identity *id, const struct subject *s)
{
    int r = 0;
    if (id->service)
        r = add_text(id, "service.name", s->service);
    if (r == 0 && id->name)
        r = add_text(id, "span.name", s->span->name);
    if (r == 0 && id->kind)
        r = add_text(id, "span.kind", bytes_str(span_kind_name(s->span->kind)));
    if (r == 0 && id->status)
        r = add_text(id, "status.code", bytes_str(span_status_name(s->span->status)));
    if (r == 0 && id->instance)
        r = add_text(id, "collector.instance.id", bytes_str(id->instance_id));
    if (r == 0)
        r = add_scope(id, s->span->scope);
    if (r == 0 && id->method)
        r = add_text(id, "sampling.method", bytes_str(s->adjusted ? "extrapolated" : "counted"));
    return r;
}

static int add_matches(struct identity *id, const struct attributes *matches)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < matches->n; i++)
        r = attributes_put(&id->list, matches->items[i].key, matches->items[i].value);
    return r;
}

static int write_attribute(const struct attribute *a, struct buf *out)
{
    size_t kv;
    int r = wire_begin(out, NUMBER_ATTRIBUTES, &kv);
    if (r == 0)
        r = wire_put_bytes(out, 1, a->key);
    if (r == 0)
        r = wire_put_bytes(out, 2, a->value);
    return r == 0 ? wire_end(out, kv) : r;
}

int identity_attributes(struct identity *id, const struct subject *s, struct buf *out)
{
    const size_t texts_max = 400 + s->service.len + s->span->name.len + s->span->scope.len;
    id->list.n = 0;
    buf_truncate(id->texts, 0);
    buf_truncate(out, 0);
    int r = buf_reserve(id->texts, texts_max);
    if (r == 0)
        r = add_common(id, s);
    if (r == 0)
        r = add_matches(id, s->matches);
    if (r == 0)
        r = add_matches(id, s->more);
    for (size_t i = 0; r == 0 && i < id->list.n; i++)
        r = write_attribute(&id->list.items[i], out);
    return r;
}
