/* The grammar is checked whole: a threshold in a damaged tracestate is not believed. */
#include "connectors/span_metrics/tracestate.h"

#define LENGTH_MAX 1024
#define MEMBERS_MAX 31 /* the reference collector's limit: it refuses the 32nd */
#define KEY_MAX 256
#define TENANT_MAX 241
#define SYSTEM_MAX 14
#define VALUE_MAX 256
#define THRESHOLD_DIGITS 14
#define POPULATION (1ull << 56)

static bool lower(uint8_t c)
{
    return c >= 'a' && c <= 'z';
}

static bool digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool key_char(uint8_t c)
{
    return lower(c) || digit(c) || c == '_' || c == '-' || c == '*' || c == '/';
}

static bool value_char(uint8_t c)
{
    return c >= 0x20 && c <= 0x7e && c != ',' && c != '=';
}

static bool vendor_char(uint8_t c)
{
    return lower(c) || digit(c) || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-';
}

static bool all(struct bytes b, bool (*good)(uint8_t c))
{
    for (size_t i = 0; i < b.len; i++)
        if (!good(b.data[i]))
            return false;
    return true;
}

/* Cuts `b` at the first `c`: what is before it; the rest stays in `b`. False, and everything, when
 * there is none. */
static bool cut(struct bytes *b, char c, struct bytes *ret_before)
{
    const uint8_t *at = b->len ? memchr(b->data, c, b->len) : NULL;
    const size_t before = at ? (size_t)(at - b->data) : b->len, past = at ? before + 1 : before;
    *ret_before = bytes_of(b->data, before);
    *b = bytes_of(b->data + past, b->len - past);
    return at;
}

static struct bytes trim(struct bytes b)
{
    while (b.len && (b.data[0] == ' ' || b.data[0] == '\t'))
        b = bytes_of(b.data + 1, b.len - 1);
    while (b.len && (b.data[b.len - 1] == ' ' || b.data[b.len - 1] == '\t'))
        b.len--;
    return b;
}

static bool good_key(struct bytes key)
{
    struct bytes system = key, tenant;
    if (key.len == 0 || key.len > KEY_MAX)
        return false;
    if (!cut(&system, '@', &tenant))
        return lower(key.data[0]) && all(key, key_char);
    return tenant.len && tenant.len <= TENANT_MAX && system.len && system.len <= SYSTEM_MAX &&
           tenant.data[0] != '_' && tenant.data[0] != '-' && tenant.data[0] != '*' &&
           tenant.data[0] != '/' && lower(system.data[0]) && all(tenant, key_char) &&
           all(system, key_char);
}

static bool good_value(struct bytes value)
{
    return value.len && value.len <= VALUE_MAX && value.data[value.len - 1] != ' ' &&
           all(value, value_char);
}

static bool read_hex(struct bytes b, uint64_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < b.len; i++) {
        uint8_t c = b.data[i] | 0x20;
        if (!digit(b.data[i]) && (c < 'a' || c > 'f'))
            return false;
        *ret = *ret << 4 | (uint64_t)(digit(b.data[i]) ? b.data[i] - '0' : c - 'a' + 10);
    }
    return true;
}

static bool read_threshold(struct bytes b, uint64_t *ret)
{
    if (b.len == 0 || b.len > THRESHOLD_DIGITS || !read_hex(b, ret))
        return false;
    *ret <<= 4 * (THRESHOLD_DIGITS - b.len);
    return true;
}

/* One "key:value" of the vendor's value. False when it is bad; `ret` and `found` only for "th". */
static bool read_field(struct bytes field, uint64_t *ret, bool *found)
{
    struct bytes value = field, key;
    uint64_t random;
    if (!cut(&value, ':', &key) || !key.len || !lower(key.data[0]))
        return false;
    for (size_t i = 0; i < key.len; i++)
        if (!lower(key.data[i]) && !digit(key.data[i]))
            return false;
    if (!all(value, vendor_char))
        return false;
    if (bytes_eq_str(key, "rv"))
        return value.len == THRESHOLD_DIGITS && read_hex(value, &random);
    if (!bytes_eq_str(key, "th"))
        return true;
    *found = true;
    return read_threshold(value, ret);
}

static bool read_vendor(struct bytes value, uint64_t *ret, bool *found)
{
    struct bytes field;
    while (cut(&value, ';', &field))
        if (!read_field(field, ret, found))
            return false;
    return read_field(field, ret, found);
}

bool tracestate_threshold(struct bytes tracestate, uint64_t *ret)
{
    struct bytes rest = tracestate, member, key;
    bool found = false;
    if (tracestate.len < 3 || tracestate.len > LENGTH_MAX)
        return false;
    for (unsigned n = 1; rest.len; n++) {
        cut(&rest, ',', &member);
        member = trim(member);
        if (n > MEMBERS_MAX)
            return false;
        if (!member.len)
            continue;
        struct bytes value = member;
        if (!cut(&value, '=', &key) || !good_key(key) || !good_value(value))
            return false;
        if (!bytes_eq_str(key, "ot"))
            continue;
        found = false; /* of several the last one counts */
        if (!read_vendor(value, ret, &found))
            return false;
    }
    return found;
}

/* xorshift64*, Vigna: "An experimental exploration of Marsaglia's xorshift generators, scrambled"
 */
static uint64_t next_random(uint64_t *rng)
{
    *rng ^= *rng >> 12;
    *rng ^= *rng << 25;
    *rng ^= *rng >> 27;
    return *rng * 0x2545f4914f6cdd1d;
}

uint64_t tracestate_adjusted_count(uint64_t threshold, uint64_t *rng)
{
    if (threshold >= POPULATION)
        return 1;
    const uint64_t kept = POPULATION - threshold, rest = POPULATION % kept;
    return POPULATION / kept + (rest && next_random(rng) % kept < rest);
}
