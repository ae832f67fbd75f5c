/* Where in a JSON object a text stops, so that it can be said of each further piece whether it can follow. Only proto/console_*.c use it. */
#ifndef MOTEL_PROTO_CONSOLE_CURSOR_H
#define MOTEL_PROTO_CONSOLE_CURSOR_H

#include "agent/base/bytes.h"

#define CURSOR_MAX_DEPTH 256

struct console_cursor {
    uint8_t state;    /* 0 at the start: an object is expected */
    bool key;         /* the string under way is a key */
    uint16_t depth;
    const char *word; /* the rest of a word under way */
    uint8_t objects[CURSOR_MAX_DEPTH / 8]; /* a bit for each level: object or list */
};
enum cursor_answer {
    CURSOR_MORE, /* a good beginning of an object; all was read */
    CURSOR_DONE, /* the object ended at *ret_used */
    CURSOR_BAD,  /* cannot follow, from *ret_used on */
};
/* Reads on. Numbers are taken loosely (proto/console_map.c reads them strictly); NaN and Infinity are words like true. */
enum cursor_answer console_cursor_read(struct console_cursor *c, struct bytes text, size_t *ret_used);
/* The same for a whole line and its end: MORE only when no string or word is open there. */
enum cursor_answer console_cursor_line(struct console_cursor *c, struct bytes line, size_t *ret_used);
bool console_cursor_done(const struct console_cursor *c);

#endif
