/* Small texts inside of console JSON: times, ids, trace states. */
#include <errno.h>

#include "agent/base/encode.h"
#include "proto/console_map.h"

/* ---- times ---- */

struct cursor {
    const uint8_t *p, *end;
};

/* Exactly `n` digits. */
static bool take_digits(struct cursor *c, int n, unsigned *ret)
{
    unsigned v = 0;
    if (c->end - c->p < n)
        return false;
    for (int i = 0; i < n; i++, c->p++) {
        if (*c->p < '0' || *c->p > '9')
            return false;
        v = v * 10 + (unsigned)(*c->p - '0');
    }
    *ret = v;
    return true;
}

static bool take_char(struct cursor *c, char want)
{
    if (c->p == c->end || *c->p != (uint8_t)want)
        return false;
    c->p++;
    return true;
}

/* Days since 1970-01-01 in the proleptic Gregorian calendar. */
static int64_t days_since_epoch(unsigned year, unsigned month, unsigned day)
{
    int64_t y = (int64_t)year - (month <= 2);
    int64_t era = y / 400, year_of_era = y % 400;
    int64_t day_of_year = (153 * ((int64_t)month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468;
}

static bool take_date(struct cursor *c, int64_t *ret_days)
{
    static const uint8_t lengths[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    unsigned year, month, day;
    if (!take_digits(c, 4, &year) || !take_char(c, '-') || !take_digits(c, 2, &month) ||
        !take_char(c, '-') || !take_digits(c, 2, &day))
        return false;
    *ret_days = days_since_epoch(year, month, day);
    return year > 0 && month >= 1 && month <= 12 && day >= 1 && day <= lengths[month - 1];
}

static bool take_clock(struct cursor *c, int64_t *ret_s)
{
    unsigned hour, minute, second;
    if (!take_digits(c, 2, &hour) || !take_char(c, ':') || !take_digits(c, 2, &minute) ||
        !take_char(c, ':') || !take_digits(c, 2, &second))
        return false;
    *ret_s = (int64_t)hour * 3600 + minute * 60 + second;
    return hour < 24 && minute < 60 && second <= 60;
}

/* Digits beyond nanoseconds are dropped. */
static bool take_fraction(struct cursor *c, uint64_t *ret_ns)
{
    uint64_t unit = 100000000;
    *ret_ns = 0;
    if (!take_char(c, '.') && !take_char(c, ','))
        return true;
    const uint8_t *start = c->p;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++, unit /= 10)
        *ret_ns += (uint64_t)(*c->p - '0') * unit;
    return c->p > start;
}

/* Z, an offset such as +01:00, or nothing, which is UTC as well. */
static bool take_zone(struct cursor *c, int64_t *ret_s)
{
    unsigned hours, minutes;
    *ret_s = 0;
    if (c->p == c->end || take_char(c, 'Z'))
        return true;
    bool west = take_char(c, '-');
    if ((!west && !take_char(c, '+')) || !take_digits(c, 2, &hours))
        return false;
    take_char(c, ':');
    if (!take_digits(c, 2, &minutes))
        return false;
    *ret_s = ((int64_t)hours * 3600 + minutes * 60) * (west ? -1 : 1);
    return hours < 24 && minutes < 60;
}

int console_time(struct bytes text, uint64_t *ret_ns)
{
    struct cursor c = {text.data, text.data + text.len};
    int64_t days, clock, zone;
    uint64_t fraction;
    if (!take_date(&c, &days) || !(take_char(&c, 'T') || take_char(&c, ' ')) ||
        !take_clock(&c, &clock) || !take_fraction(&c, &fraction) || !take_zone(&c, &zone) ||
        c.p != c.end)
        return -EINVAL;
    int64_t seconds = days * 86400 + clock - zone;
    if (seconds < 0 || (uint64_t)seconds > (UINT64_MAX - fraction) / 1000000000)
        return -EINVAL;
    *ret_ns = (uint64_t)seconds * 1000000000 + fraction;
    return 0;
}

/* ---- ids ---- */

int console_hex_id(struct bytes text, size_t size, uint8_t *ret)
{
    char digits[32];
    if (text.len >= 2 && text.data[0] == '0' && (text.data[1] | 0x20) == 'x')
        text = bytes_of(text.data + 2, text.len - 2);
    if (text.len > 2 * size)
        return -EINVAL;
    memset(digits, '0', 2 * size);
    if (text.len)
        memcpy(digits + 2 * size - text.len, text.data, text.len);
    return decode_hex(bytes_of(digits, 2 * size), ret) ? 0 : -EINVAL;
}

int console_decimal_id(struct bytes text, size_t size, uint8_t *ret)
{
    const unsigned __int128 max =
        size < 16 ? ((unsigned __int128)1 << 8 * size) - 1 : ~(unsigned __int128)0;
    unsigned __int128 v = 0;
    if (text.len == 0)
        return -EINVAL;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = text.data[i] - (unsigned)'0';
        if (digit > 9 || v > (max - digit) / 10)
            return -EINVAL;
        v = v * 10 + digit;
    }
    for (size_t i = size; i-- > 0; v >>= 8)
        ret[i] = (uint8_t)v;
    return 0;
}

/* ---- trace states ---- */

/* The text of a Python string literal without its prefix; false when it is none. */
static int take_literal(struct cursor *c, struct buf *out, bool *ret_good)
{
    bool single = take_char(c, '\''), closed = false;
    *ret_good = single || take_char(c, '"');
    int r = 0;
    while (*ret_good && r == 0 && c->p < c->end && !closed) {
        uint8_t byte = *c->p++;
        closed = byte == (single ? '\'' : '"');
        if (byte == '\\' && c->p < c->end)
            byte = *c->p++;
        if (!closed)
            r = buf_putc(out, (char)byte);
    }
    *ret_good &= closed;
    return r;
}

/* "{key=k, value=v}" as "k=v"; keys have neither commas nor equal signs. */
static int put_pair(struct bytes pair, struct buf *out, bool *ret_good)
{
    static const char head[] = "{key=", middle[] = ", value=";
    const size_t n = sizeof(head) - 1;
    *ret_good = false;
    if (pair.len <= n || memcmp(pair.data, head, n) != 0 || pair.data[pair.len - 1] != '}')
        return 0;
    const uint8_t *key = pair.data + n, *end = pair.data + pair.len - 1;
    const uint8_t *at = memmem(key, (size_t)(end - key), middle, sizeof(middle) - 1);
    if (!at)
        return 0;
    *ret_good = true;
    const uint8_t *value = at + sizeof(middle) - 1;
    int r = out->len ? buf_putc(out, ',') : 0;
    if (r == 0)
        r = buf_append(out, key, (size_t)(at - key));
    if (r == 0)
        r = buf_putc(out, '=');
    return r == 0 ? buf_append(out, value, (size_t)(end - value)) : r;
}

static int put_list(struct bytes text, struct buf *out, bool *ret_good)
{
    _cleanup_buf_ struct buf *pair = buf_new(0);
    struct cursor c = {text.data, text.data + text.len};
    int r = pair ? 0 : -ENOMEM;
    bool good = take_char(&c, '[');
    while (r == 0 && good && !take_char(&c, ']')) {
        buf_truncate(pair, 0);
        r = take_literal(&c, pair, &good);
        if (r == 0 && good)
            r = put_pair(buf_bytes(pair), out, &good);
        if (take_char(&c, ','))
            take_char(&c, ' ');
    }
    *ret_good = good && c.p == c.end;
    return r;
}

int console_trace_state(struct bytes text, struct buf *out)
{
    bool good;
    _cleanup_buf_ struct buf *state = buf_new(0);
    if (bytes_eq_str(text, "[]"))
        return 0;
    int r = state ? put_list(text, state, &good) : -ENOMEM;
    if (r < 0)
        return r;
    return good ? buf_append(out, state->data, state->len) : buf_append(out, text.data, text.len);
}
