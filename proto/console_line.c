/* Lines of a mixed stream: line ends, colours, prefixes, and where in a line an object may begin.
 */
#include "proto/console_parts.h"

#define ESC 0x1b

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool console_blank(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_blank(text.data[i]))
            return false;
    return true;
}

static struct bytes cut_line_end(struct bytes b)
{
    while (b.len && (b.data[b.len - 1] == '\n' || b.data[b.len - 1] == '\r'))
        b.len--;
    return b;
}

/* The length of the escape sequence that `b` begins with (ECMA-48 5.4, 5.3, and OSC strings); at
 * least 1. */
static size_t escape_length(struct bytes b)
{
    size_t n = 2;
    if (b.len < 2)
        return b.len;
    if (b.data[1] == '[') {
        while (n < b.len && b.data[n] >= 0x20 && b.data[n] < 0x40)
            n++;
        return n < b.len ? n + 1 : n;
    }
    if (b.data[1] == ']') {
        while (n < b.len && b.data[n] != 7 && b.data[n] != ESC)
            n++;
        if (n < b.len && b.data[n] == ESC)
            n++;
        return n < b.len ? n + 1 : n;
    }
    return n;
}

static int drop_escapes(struct bytes b, struct buf *out)
{
    buf_truncate(out, 0);
    while (b.len) {
        const uint8_t *esc = memchr(b.data, ESC, b.len);
        size_t n = esc ? (size_t)(esc - b.data) : b.len;
        int r = buf_append(out, b.data, n);
        if (r < 0)
            return r;
        b = console_behind(b, n);
        b = console_behind(b, escape_length(b));
    }
    return 0;
}

/* Names have neither brackets nor quotes, so that text in brackets is not often taken for one. */
bool console_take_prefix(struct bytes *text, struct bytes *ret_name)
{
    size_t i = 1;
    if (text->len < 4 || text->data[0] != '(')
        return false;
    for (; i < text->len && i <= CONSOLE_NAME_MAX && text->data[i] != ')'; i++)
        if (text->data[i] < 0x20 || strchr("({[\"'", text->data[i]))
            return false;
    if (i == 1 || i + 1 >= text->len || text->data[i] != ')' || text->data[i + 1] != ' ')
        return false;
    *ret_name = bytes_of(text->data + 1, i - 1);
    *text = console_behind(*text, i + 2);
    return true;
}

int console_line_read(struct bytes raw, struct buf *scratch, struct console_line *ret)
{
    *ret = (struct console_line){.raw = raw, .text = cut_line_end(raw), .sliced = true};
    ret->name = bytes_of(raw.data, 0);
    if (memchr(raw.data, ESC, raw.len)) {
        int r = drop_escapes(ret->text, scratch);
        if (r < 0)
            return r;
        ret->text = cut_line_end(buf_bytes(scratch));
        ret->sliced = false;
    }
    console_take_prefix(&ret->text, &ret->name);
    return 0;
}

/* ---- places ---- */

/* The first keys of telemetry as it is printed. */
static bool first_key(struct bytes b)
{
    static const char *const keys[] = {"\"name\":",
                                       "\"body\":",
                                       "\"resource_metrics\":",
                                       "\"resourceSpans\":",
                                       "\"resourceMetrics\":",
                                       "\"resourceLogs\":"};
    while (b.len && b.data[0] == ' ')
        b = console_behind(b, 1);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        size_t n = strlen(keys[i]);
        if (b.len >= n && memcmp(b.data, keys[i], n) == 0)
            return true;
    }
    return false;
}

/* `"key": ` before a brace: it is of an object that began before. */
static bool opens_member(struct bytes head)
{
    while (head.len && head.data[head.len - 1] == ' ')
        head.len--;
    return head.len > 1 && memcmp(head.data + head.len - 2, "\":", 2) == 0;
}

/* Cuts a "(name) " off the end of `head`. */
static void cut_prefix(struct bytes *head, struct bytes *ret_name)
{
    const uint8_t *open = memrchr(head->data, '(', head->len);
    struct bytes rest;
    *ret_name = bytes_of(head->data, 0);
    if (!open)
        return;
    rest = console_behind(*head, (size_t)(open - head->data));
    if (console_take_prefix(&rest, ret_name)) {
        if (rest.len == 0)
            head->len = (size_t)(open - head->data);
        else
            ret_name->len = 0;
    }
}

bool console_find_start(struct bytes text, size_t *at, struct console_start *ret)
{
    while (*at < text.len) {
        const uint8_t *brace = memchr(text.data + *at, '{', text.len - *at);
        if (!brace)
            break;
        size_t i = (size_t)(brace - text.data);
        *at = i + 1;
        struct bytes behind = console_behind(text, i + 1);
        ret->lone = console_blank(behind);
        if (i == 0 || !(ret->lone ? !opens_member(bytes_of(text.data, i)) : first_key(behind)))
            continue;
        ret->head = bytes_of(text.data, i);
        ret->tail = console_behind(text, i);
        cut_prefix(&ret->head, &ret->name);
        return true;
    }
    *at = text.len;
    return false;
}

bool console_find_prefix(struct bytes text, size_t *at, struct console_start *ret)
{
    while (*at < text.len) {
        const uint8_t *open = memchr(text.data + *at, '(', text.len - *at);
        if (!open)
            break;
        size_t i = (size_t)(open - text.data);
        struct bytes rest = console_behind(text, i);
        *at = i + 1;
        if (i == 0 || !console_take_prefix(&rest, &ret->name))
            continue;
        ret->head = bytes_of(text.data, i);
        ret->tail = console_behind(text, i);
        return true;
    }
    *at = text.len;
    return false;
}
