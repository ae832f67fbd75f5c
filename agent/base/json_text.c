#include "agent/base/json_text.h"

#include "agent/base/plain_text.h"
#include "agent/base/utf8.h"

static int put_escaped(struct buf *b, uint32_t c)
{
    switch (c) {
    case '"': return buf_append_str(b, "\\\"");
    case '\\': return buf_append_str(b, "\\\\");
    case '\n': return buf_append_str(b, "\\n");
    case '\r': return buf_append_str(b, "\\r");
    case '\t': return buf_append_str(b, "\\t");
    default: return buf_printf(b, "\\u%04x", (unsigned)c);
    }
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* The character at the front, which is not plain; its length in *ret. */
static int put_other(struct buf *b, struct bytes text, size_t *ret)
{
    enum plain_kind kind;
    uint32_t code;
    *ret = plain_next(text, &kind, &code);
    if (kind == PLAIN_BAD)
        return buf_append_str(b, UTF8_REPLACEMENT);
    return kind == PLAIN_CONTROL || *ret == 1 ? put_escaped(b, code)
                                              : buf_append(b, text.data, *ret);
}

int json_text(struct buf *b, struct bytes text)
{
    int r = buf_putc(b, '"');
    for (size_t i = 0, run; r == 0 && i < text.len; i += run) {
        for (run = 0; i + run < text.len && is_plain(text.data[i + run]);)
            run++;
        r = buf_append(b, text.data + i, run);
        if (r == 0 && i + run < text.len) {
            size_t n;
            r = put_other(b, bytes_of(text.data + i + run, text.len - i - run), &n);
            run += n;
        }
    }
    return r < 0 ? r : buf_putc(b, '"');
}
