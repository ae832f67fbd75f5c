#include "agent/base/json_text.h"

static int put_escaped(struct buf *b, unsigned char c)
{
    switch (c) {
    case '"': return buf_append_str(b, "\\\"");
    case '\\': return buf_append_str(b, "\\\\");
    case '\n': return buf_append_str(b, "\\n");
    case '\r': return buf_append_str(b, "\\r");
    case '\t': return buf_append_str(b, "\\t");
    default: return buf_printf(b, "\\u%04x", c);
    }
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c != 0x7f && c != '"' && c != '\\';
}

int json_text(struct buf *b, struct bytes text)
{
    int r = buf_putc(b, '"');
    for (size_t i = 0, run; r == 0 && i < text.len; i += run) {
        for (run = 0; i + run < text.len && is_plain(text.data[i + run]);)
            run++;
        r = buf_append(b, text.data + i, run);
        if (r == 0 && i + run < text.len)
            r = put_escaped(b, text.data[i + run++]);
    }
    return r < 0 ? r : buf_putc(b, '"');
}
