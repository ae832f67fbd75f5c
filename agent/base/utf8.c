#include "agent/base/utf8.h"

#include <endian.h>

#define HIGH_BITS 0x8080808080808080u
#define CONTINUES(byte) (((byte)&0xc0) == 0x80)

/* Table 3-7 of the Unicode standard: how long a sequence is by its first byte, and what its second
 * byte may be. */
struct lead {
    uint8_t len, low, high;
};

static inline struct lead lead_of(uint8_t first)
{
    if (first < 0xc2 || first > 0xf4)
        return (struct lead){0};
    if (first < 0xe0)
        return (struct lead){2, 0x80, 0xbf};
    if (first < 0xf0)
        return (struct lead){3, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf};
    return (struct lead){4, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf};
}

int utf8_next(struct bytes s)
{
    if (s.data[0] < 0x80)
        return 1;
    struct lead lead = lead_of(s.data[0]);
    if (lead.len == 0 || s.len < 2 || s.data[1] < lead.low || s.data[1] > lead.high)
        return -1;
    int n = 2;
    while (n < lead.len && (size_t)n < s.len && CONTINUES(s.data[n]))
        n++;
    return n == lead.len ? n : -n;
}

/* Behind the sequence at `p`, whose first byte is not ASCII; NULL when it is not well formed. */
static inline const uint8_t *skip_sequence(const uint8_t *p, const uint8_t *end)
{
    const uint8_t first = p[0];
    const size_t left = (size_t)(end - p);
    if (left < 2 || !CONTINUES(p[1]) || first < 0xc2 || first > 0xf4)
        return NULL;
    if (first < 0xe0)
        return p + 2;
    if (left < 3 || !CONTINUES(p[2]))
        return NULL;
    const struct lead lead = lead_of(first);
    if (p[1] < lead.low || p[1] > lead.high)
        return NULL;
    if (first < 0xf0)
        return p + 3;
    return left >= 4 && CONTINUES(p[3]) ? p + 4 : NULL;
}

/* From one sequence that is not ASCII to the next, eight bytes at a time. */
bool utf8_valid(struct bytes s)
{
    const uint8_t *p = s.data;
    const uint8_t *const end = s.len ? p + s.len : p;
    while (p && p < end) {
        if (end - p >= (ptrdiff_t)sizeof(uint64_t)) {
            uint64_t word;
            memcpy(&word, p, sizeof(word));
            word = le64toh(word) & HIGH_BITS;
            p += word ? __builtin_ctzll(word) / 8 : (int)sizeof(word);
        } else if (*p < 0x80) {
            p++;
        }
        while (p && p < end && *p >= 0x80)
            p = skip_sequence(p, end);
    }
    return s.len == 0 || p;
}

int utf8_append(struct bytes s, struct buf *out)
{
    int r = 0;
    while (s.len && r == 0) {
        size_t good = 0;
        int n = 1;
        while (good < s.len && (n = utf8_next(bytes_of(s.data + good, s.len - good))) > 0)
            good += (size_t)n;
        r = buf_append(out, s.data, good);
        s = bytes_of(s.data + good, s.len - good);
        if (r == 0 && s.len) {
            r = buf_append_str(out, UTF8_REPLACEMENT);
            s = bytes_of(s.data - n, s.len - (size_t)-n);
        }
    }
    return r;
}
