#include "proto/utf8.h"

#define STRETCH 16 /* bytes that are passed over at once */
#define CONTINUES(byte) (((byte)&0xc0) == 0x80)

/* Table 3-7 of the Unicode standard: how long a sequence is by its first byte, and what its second
 * byte may be. */
struct lead {
    uint8_t len, low, high;
};

static struct lead lead_of(uint8_t first)
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

bool utf8_valid(struct bytes s)
{
    if (utf8_ascii(s.data, s.len))
        return true;
    while (s.len) {
        int n = s.len >= STRETCH && utf8_ascii(s.data, STRETCH) ? STRETCH : utf8_next(s);
        if (n < 0)
            return false;
        s = bytes_of(s.data + n, s.len - (size_t)n);
    }
    return true;
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
