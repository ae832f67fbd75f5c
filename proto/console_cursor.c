/* A resumable JSON acceptor: a byte at a time, plain parts of strings at once. */
#include "proto/console_cursor.h"

enum state {
    START,
    VALUE,   /* a value is expected */
    ELEMENT, /* a value or ] */
    MEMBER,  /* a key or } */
    KEY,     /* a key */
    COLON,
    AFTER, /* a comma or what closes */
    STRING,
    ESCAPE,
    HEX4, /* four hex digits are to come, and so on */
    HEX3,
    HEX2,
    HEX1,
    NUMBER,
    WORD,
    DONE,
};

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool is_hex(uint8_t c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

static bool in_object(const struct console_cursor *c)
{
    return c->objects[(c->depth - 1) / 8] >> (c->depth - 1) % 8 & 1;
}

static bool open_level(struct console_cursor *c, bool object)
{
    if (c->depth == CURSOR_MAX_DEPTH)
        return false;
    uint8_t bit = (uint8_t)(1u << c->depth % 8), *byte = &c->objects[c->depth / 8];
    *byte = (uint8_t)(object ? *byte | bit : *byte & ~bit);
    c->depth++;
    c->state = object ? MEMBER : ELEMENT;
    return true;
}

static bool close_level(struct console_cursor *c, bool object)
{
    if (in_object(c) != object)
        return false;
    c->depth--;
    c->state = c->depth ? AFTER : DONE;
    return true;
}

static bool start_string(struct console_cursor *c, bool key)
{
    c->key = key;
    c->state = STRING;
    return true;
}

static bool start_word(struct console_cursor *c, const char *rest)
{
    c->word = rest;
    c->state = WORD;
    return true;
}

static bool start_value(struct console_cursor *c, uint8_t byte)
{
    switch (byte) {
    case '{': return open_level(c, true);
    case '[': return open_level(c, false);
    case '"': return start_string(c, false);
    case 't': return start_word(c, "rue");
    case 'f': return start_word(c, "alse");
    case 'n': return start_word(c, "ull");
    case 'N': return start_word(c, "aN");
    case 'I': return start_word(c, "nfinity");
    default: c->state = NUMBER; return byte == '-' || (byte >= '0' && byte <= '9');
    }
}

static bool after_value(struct console_cursor *c, uint8_t byte)
{
    if (byte == '}' || byte == ']')
        return close_level(c, byte == '}');
    c->state = in_object(c) ? KEY : VALUE;
    return byte == ',';
}

/* "-Infinity" begins like a number. */
static bool in_number(struct console_cursor *c, uint8_t byte)
{
    if ((byte >= '0' && byte <= '9') || byte == '.' || (byte | 0x20) == 'e' || byte == '+' ||
        byte == '-')
        return true;
    if (byte == 'I')
        return start_word(c, "nfinity");
    c->state = AFTER;
    return is_space(byte) || after_value(c, byte);
}

static bool in_word(struct console_cursor *c, uint8_t byte)
{
    bool good = byte == (uint8_t)*c->word;
    if (good && !*++c->word)
        c->state = AFTER;
    return good;
}

static bool in_string(struct console_cursor *c, uint8_t byte)
{
    if (byte == '"')
        c->state = c->key ? COLON : AFTER;
    else if (byte == '\\')
        c->state = ESCAPE;
    return byte >= 0x20;
}

static bool in_escape(struct console_cursor *c, uint8_t byte)
{
    c->state = byte == 'u' ? HEX4 : STRING;
    return byte == 'u' || (byte && strchr("\"\\/bfnrt", byte));
}

static bool in_hex(struct console_cursor *c, uint8_t byte)
{
    c->state = c->state == HEX1 ? STRING : (uint8_t)(c->state + 1);
    return is_hex(byte);
}

/* A byte that is no space where spaces do not matter. */
static bool between(struct console_cursor *c, uint8_t byte)
{
    switch (c->state) {
    case START: return byte == '{' && open_level(c, true);
    case VALUE: return start_value(c, byte);
    case ELEMENT: return byte == ']' ? close_level(c, false) : start_value(c, byte);
    case MEMBER: return byte == '}' ? close_level(c, true) : byte == '"' && start_string(c, true);
    case KEY: return byte == '"' && start_string(c, true);
    case COLON: c->state = VALUE; return byte == ':';
    default: return after_value(c, byte);
    }
}

static bool step(struct console_cursor *c, uint8_t byte)
{
    switch (c->state) {
    case STRING: return in_string(c, byte);
    case ESCAPE: return in_escape(c, byte);
    case HEX4:
    case HEX3:
    case HEX2:
    case HEX1: return in_hex(c, byte);
    case NUMBER: return in_number(c, byte);
    case WORD: return in_word(c, byte);
    default: return is_space(byte) || between(c, byte);
    }
}

enum cursor_answer console_cursor_read(struct console_cursor *c, struct bytes text,
                                       size_t *ret_used)
{
    size_t i = 0;
    while (i < text.len && c->state != DONE) {
        uint8_t byte = text.data[i];
        bool plain = c->state == STRING && byte >= 0x20 && byte != '"' && byte != '\\';
        if (!plain && !step(c, byte)) {
            *ret_used = i;
            return CURSOR_BAD;
        }
        i++;
    }
    *ret_used = i;
    return c->state == DONE ? CURSOR_DONE : CURSOR_MORE;
}

enum cursor_answer console_cursor_line(struct console_cursor *c, struct bytes line,
                                       size_t *ret_used)
{
    size_t end;
    enum cursor_answer a = console_cursor_read(c, line, ret_used);
    return a == CURSOR_MORE ? console_cursor_read(c, bytes_str("\n"), &end) : a;
}

bool console_cursor_done(const struct console_cursor *c)
{
    return c->state == DONE;
}
