/* Values, attributes and resources of console JSON. */
#include <errno.h>

#include "proto/any_value.h"
#include "proto/check.h"
#include "proto/console_map.h"
#include "proto/json_number.h"
#include "proto/otlp_fields.h"
#include "proto/schema.h"

#define KEY_VALUE_KEY 1
#define KEY_VALUE_VALUE 2
#define LIST_VALUES 1 /* of ArrayValue and KeyValueList */
#define ANY_FIELD_ARRAY 5
#define ANY_FIELD_KVLIST 6
#define KEEP_MAX_BYTES 65536 /* of a resource's text, to be known again */

static const char server_name_key[] = "nemo.gym.server.name";

/* ---- values ---- */

int console_string(struct console_mapper *m, uint8_t number)
{
    struct bytes text;
    int r = json_scan_string(&m->scan, &text);
    return r == 0 && text.len ? wire_put_bytes(m->record, number, text) : r;
}

/* An integer that 64 bits do not hold stays as its digits, in a string. */
static int any_number(struct console_mapper *m)
{
    struct any_value v = {.kind = ANY_INT};
    struct bytes text;
    int r = json_scan_number(&m->scan, &text);
    if (r < 0)
        return r;
    r = json_parse_int(text, INT64_MIN, INT64_MAX, &v.i);
    if (r == -ERANGE) {
        v = (struct any_value){.kind = ANY_STRING, .bytes = text};
    } else if (r < 0) {
        v.kind = ANY_DOUBLE;
        if (json_parse_double(text, &v.d) < 0)
            return json_scan_fail(&m->scan, text.data, "expected a number that a double holds");
    }
    return any_value_write(&v, m->record);
}

static int any_string(struct console_mapper *m)
{
    struct any_value v = {.kind = ANY_STRING};
    int r = json_scan_string(&m->scan, &v.bytes);
    return r == 0 ? any_value_write(&v, m->record) : r;
}

static int any_word(struct console_mapper *m, bool value)
{
    const struct any_value v = {.kind = ANY_BOOL, .b = value};
    int r = json_scan_word(&m->scan, value ? "true" : "false");
    return r == 0 ? any_value_write(&v, m->record) : r;
}

static int any_message(struct console_mapper *m, uint8_t number)
{
    size_t mark;
    int r = wire_begin(m->record, number, &mark);
    if (r == 0)
        r = console_any(m);
    return r == 0 ? wire_end(m->record, mark) : r;
}

static int any_list(struct console_mapper *m)
{
    bool first = true;
    int r = json_scan_char(&m->scan, '[');
    while (r == 0 && (r = json_scan_element(&m->scan, &first)) > 0)
        r = any_message(m, LIST_VALUES);
    return r;
}

static int key_value(struct console_mapper *m, struct bytes key, uint8_t number)
{
    size_t mark;
    int r = wire_begin(m->record, number, &mark);
    if (r == 0 && key.len)
        r = wire_put_bytes(m->record, KEY_VALUE_KEY, key);
    if (r == 0)
        r = any_message(m, KEY_VALUE_VALUE);
    return r == 0 ? wire_end(m->record, mark) : r;
}

int console_attributes(struct console_mapper *m, uint8_t number)
{
    bool first = true;
    struct bytes key;
    int r = json_scan_char(&m->scan, '{');
    while (r == 0 && (r = json_scan_key(&m->scan, &first, &key)) > 0)
        r = key_value(m, key, number);
    return r;
}

/* A list or a map. */
static int any_container(struct console_mapper *m, bool list)
{
    size_t mark;
    if (m->depth == OTLP_MAX_DEPTH)
        return json_scan_fail(&m->scan, m->scan.p, "values nested deeper than %d levels",
                              OTLP_MAX_DEPTH);
    int r = wire_begin(m->record, list ? ANY_FIELD_ARRAY : ANY_FIELD_KVLIST, &mark);
    m->depth++;
    if (r == 0)
        r = list ? any_list(m) : console_attributes(m, LIST_VALUES);
    m->depth--;
    return r == 0 ? wire_end(m->record, mark) : r;
}

int console_any(struct console_mapper *m)
{
    switch (json_scan_peek(&m->scan)) {
    case '"': return any_string(m);
    case '{': return any_container(m, false);
    case '[': return any_container(m, true);
    case 't': return any_word(m, true);
    case 'f': return any_word(m, false);
    case 'n': return json_scan_word(&m->scan, "null");
    default: return any_number(m);
    }
}

/* ---- resources ---- */

/* Whether nemo.gym.server.name is there, and what it is when it is a text. */
struct own_name {
    bool given;
    struct console_resource *resource;
};

/* Notes the value of the KeyValue field that begins at `from`. */
static void note_own(const struct console_mapper *m, size_t from, struct own_name *own)
{
    struct wire_reader r = wire_reader(bytes_of(m->record->data + from, m->record->len - from));
    struct wire_field f;
    own->given = true;
    if (wire_next(&r, &f) <= 0)
        return;
    struct any_value v = any_value_read(key_value_read(f.bytes).value);
    if (v.kind != ANY_STRING || v.bytes.len > CONSOLE_NAME_MAX)
        return;
    memcpy(own->resource->own, v.bytes.data, v.bytes.len);
    own->resource->own_len = v.bytes.len;
}

static int resource_attribute(struct console_mapper *m, struct bytes key, struct own_name *own)
{
    bool is_own = bytes_eq_str(key, server_name_key);
    size_t from = m->record->len;
    int r = key_value(m, key, RESOURCE_ATTRIBUTES);
    if (r == 0 && is_own)
        note_own(m, from, own);
    return r;
}

static int resource_attributes(struct console_mapper *m, struct own_name *own)
{
    bool first = true;
    struct bytes key;
    if (json_scan_peek(&m->scan) == 'n')
        return json_scan_word(&m->scan, "null");
    int r = json_scan_char(&m->scan, '{');
    while (r == 0 && (r = json_scan_key(&m->scan, &first, &key)) > 0)
        r = resource_attribute(m, key, own);
    return r;
}

static int resource_url(struct console_mapper *m, struct buf *url)
{
    struct bytes text;
    int r = json_scan_string(&m->scan, &text);
    buf_truncate(url, 0);
    return r == 0 && text.len ? wire_put_bytes(url, ENTRY_SCHEMA_URL, text) : r;
}

/* {"attributes": {...}, "schema_url": "..."}; older SDKs print the attributes alone. */
static int resource_members(struct console_mapper *m, struct own_name *own, struct buf *url)
{
    bool first = true;
    struct bytes key;
    int r = json_scan_char(&m->scan, '{');
    while (r == 0 && (r = json_scan_key(&m->scan, &first, &key)) > 0) {
        uint8_t next = json_scan_peek(&m->scan);
        if (bytes_eq_str(key, "attributes") && (next == '{' || next == 'n'))
            r = resource_attributes(m, own);
        else if (bytes_eq_str(key, "schema_url") && next == '"')
            r = resource_url(m, url);
        else if (bytes_eq_str(key, "schema_url") && next == 'n')
            r = json_scan_word(&m->scan, "null");
        else
            r = resource_attribute(m, key, own);
    }
    return r;
}

/* Gym's servers have names of letters, digits and a few marks; what else stands in brackets is of
 * others. */
static bool is_server_name(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.data[i], low = c | 0x20;
        if (!(low >= 'a' && low <= 'z') && !(c >= '0' && c <= '9') && !(c && strchr("_-./:", c)))
            return false;
    }
    return name.len > 0;
}

static int put_server_name(const struct console_mapper *m, struct buf *out)
{
    size_t mark, inner;
    int r = wire_begin(out, RESOURCE_ATTRIBUTES, &mark);
    if (r == 0)
        r = wire_put_str(out, KEY_VALUE_KEY, server_name_key);
    if (r == 0)
        r = wire_begin(out, KEY_VALUE_VALUE, &inner);
    const struct any_value v = {.kind = ANY_STRING, .bytes = m->server_name};
    if (r == 0)
        r = any_value_write(&v, out);
    if (r == 0)
        r = wire_end(out, inner);
    return r == 0 ? wire_end(out, mark) : r;
}

enum edit console_name_resource(void *ctx, struct bytes resource, struct buf *out)
{
    struct console_mapper *m = ctx;
    struct wire_reader in = wire_reader(resource);
    struct bytes kv;
    if (!is_server_name(m->server_name))
        return EDIT_KEEP;
    while (wire_each(&in, RESOURCE_ATTRIBUTES, &kv))
        if (bytes_eq_str(key_value_read(kv).key, server_name_key))
            return EDIT_KEEP;
    int r = buf_append(out, resource.data, resource.len);
    if (r == 0)
        r = put_server_name(m, out);
    return r == 0 ? EDIT_REPLACE : EDIT_ERROR;
}

/* Reads what comes next as field ENTRY_HEAD into the entry of `k`. */
static int resource_entry(struct console_mapper *m, struct console_resource *k)
{
    struct buf *record = m->record, *entry = k->entry;
    struct own_name own = {.resource = k};
    size_t mark;
    m->record = entry;
    int r = wire_begin(entry, ENTRY_HEAD, &mark);
    if (r == 0)
        r = resource_members(m, &own, k->url);
    if (r == 0 && !own.given && is_server_name(m->server_name))
        r = put_server_name(m, entry);
    if (r == 0)
        r = wire_end(entry, mark);
    m->record = record;
    return r;
}

static const struct console_resource *find_resource(struct console_mapper *m)
{
    size_t left = (size_t)(m->scan.end - m->scan.p);
    for (unsigned i = 0; i < CONSOLE_RESOURCES; i++) {
        const struct console_resource *k = &m->resources[i];
        if (k->text && k->text->len <= left && k->name_len == m->server_name.len &&
            memcmp(k->text->data, m->scan.p, k->text->len) == 0 &&
            memcmp(k->name, m->server_name.data, k->name_len) == 0)
            return k;
    }
    return NULL;
}

static void forget_resource(struct console_resource *k)
{
    k->text = buf_unref(k->text);
    k->entry = buf_unref(k->entry);
    k->url = buf_unref(k->url);
    k->own_len = 0;
}

static int read_resource(struct console_mapper *m, struct console_resource *k)
{
    const uint8_t *start = m->scan.p;
    forget_resource(k);
    k->entry = buf_new(0);
    k->url = buf_new(0);
    _cleanup_buf_ struct buf *text = buf_new(0);
    if (!text || !k->entry || !k->url)
        return -ENOMEM;
    int r = resource_entry(m, k);
    size_t len = (size_t)(m->scan.p - start);
    if (r < 0 || len > KEEP_MAX_BYTES)
        return r;
    r = buf_append(text, start, len);
    k->name_len = m->server_name.len;
    if (k->name_len)
        memcpy(k->name, m->server_name.data, k->name_len);
    k->text = r == 0 ? TAKE_PTR(text) : NULL;
    return r;
}

int console_resource(struct console_mapper *m)
{
    if (json_scan_peek(&m->scan) != '{')
        return json_scan_unexpected(&m->scan, "an object");
    m->resource = find_resource(m);
    if (m->resource) {
        m->scan.p += m->resource->text->len;
        return 0;
    }
    struct console_resource *k = &m->resources[m->next_resource++ % CONSOLE_RESOURCES];
    int r = read_resource(m, k);
    if (r < 0)
        forget_resource(k);
    m->resource = r < 0 ? NULL : k;
    return r;
}

/* ---- memory ---- */

int console_mapper_init(struct console_mapper *m)
{
    *m = (struct console_mapper){.scan.python = true};
    m->scan.scratch = buf_new(0);
    m->record = buf_new(0);
    return m->scan.scratch && m->record ? 0 : -ENOMEM;
}

void console_mapper_done(struct console_mapper *m)
{
    m->scan.scratch = buf_unref(m->scan.scratch);
    m->record = buf_unref(m->record);
    for (unsigned i = 0; i < CONSOLE_RESOURCES; i++)
        forget_resource(&m->resources[i]);
}
