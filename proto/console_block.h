/* Objects that are not finished. Only proto/console_*.c use it. */
#ifndef MOTEL_PROTO_CONSOLE_BLOCK_H
#define MOTEL_PROTO_CONSOLE_BLOCK_H

#include "proto/console_cursor.h"
#include "proto/console_map.h"

struct console_block {
    struct console_cursor cursor;
    char name[CONSOLE_NAME_MAX];
    size_t name_len;
    struct buf *raw;  /* all of it as it came, to be passed on when nothing comes of it */
    struct buf *text; /* the JSON */
    size_t head;      /* bytes of raw that stand before the object */
    struct console_range *ranges; /* where `raw` came from */
    size_t nranges, ranges_cap;
    size_t lines;     /* of its own */
    uint64_t line_no; /* of its last one */
    size_t strange_lines, strange_bytes; /* of others since its last own one */
    bool lone;        /* its first line is a brace alone, as printers with a regular indent have it */
    size_t indent;    /* of its second line: white space for each level; 0 = it is not indented */
    bool torn;        /* it stops inside of a line */
};
struct console_piece { /* of a line */
    struct bytes raw, text, name;
    uint64_t offset; /* of `raw` in the stream */
    bool whole;      /* up to the end of the line */
    bool guess;      /* where it ends is a guess: not for objects that are cut inside of a line already */
};
#define CONSOLE_BLOCKS 32
#define CONSOLE_NAMES 16

struct console_block *console_block_new(const struct console_piece *p, size_t head);
struct console_block *console_block_free(struct console_block *b);
/* Takes the piece whose text leads to `after`. All or nothing: 0 or -ENOMEM. */
int console_block_add(struct console_block *b, const struct console_piece *p, const struct console_cursor *after);
/* Whether the text of `p` can follow; *ret_used: how much of it, when the object ends in it. */
enum cursor_answer console_block_accepts(const struct console_block *b, const struct console_piece *p, struct console_cursor *ret_after,
                                         size_t *ret_used);

#endif
