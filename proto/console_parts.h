/* Inside of the console reader: lines, unfinished objects, and what is ready to go. Only proto/console_*.c use it. */
#ifndef MOTEL_PROTO_CONSOLE_PARTS_H
#define MOTEL_PROTO_CONSOLE_PARTS_H

#include "proto/console_block.h"
#include "proto/console_map.h"

/* ---- lines (console_line.c) ---- */
struct console_line {
    struct bytes raw;  /* as it came, line end and all */
    struct bytes text; /* without line end, colours and prefix */
    struct bytes name; /* of the prefix */
    bool sliced;       /* `text` is a part of `raw` */
};
/* `scratch` holds the text when colours were taken out of it. 0 or -ENOMEM. */
int console_line_read(struct bytes raw, struct buf *scratch, struct console_line *ret);
/* Cuts a "(name) " off the beginning. */
bool console_take_prefix(struct bytes *text, struct bytes *ret_name);
/*
 * The next place in `text`, from *at on, where an object may begin that does not stand at the beginning: *ret_head is what is before
 * it and its prefix, *ret_tail begins with the brace; *at is behind the place. `lone`: nothing follows the brace.
 */
struct console_start {
    struct bytes head, tail, name;
    bool lone;
};
bool console_find_start(struct bytes text, size_t *at, struct console_start *ret);
/* The next "(name) " in `text` from *at on that does not stand at the beginning; head is what is before it, tail begins with it. */
bool console_find_prefix(struct bytes text, size_t *at, struct console_start *ret);
bool console_blank(struct bytes text);
static inline struct bytes console_behind(struct bytes b, size_t n) { return bytes_of(b.data + n, b.len - n); }

/* ---- what is ready (console_group.c) ---- */
struct console_group {
    struct buf *request; /* whole entries */
    struct buf *items;   /* records of the open entry */
    struct buf *entry, *url; /* its resource; NULL = no entry is open */
};
/* Adds what `m` has mapped. All or nothing: 0 or -ENOMEM. */
int console_group_add(struct console_group *g, const struct console_mapper *m, enum console_kind kind);
/* True when it is large enough to go. */
bool console_group_full(const struct console_group *g);
/* *ret: all that was added, or NULL. */
int console_group_take(struct console_group *g, enum signal s, struct batch **ret);
void console_group_done(struct console_group *g);

/* ---- the reader ---- */
struct console_reader {
    struct console_sink sink;
    size_t max;
    struct console_mapper mapper;
    struct console_group groups[SIGNAL_COUNT];
    struct console_block *blocks[CONSOLE_BLOCKS]; /* the newest last */
    unsigned nblocks;
    struct buf *partial; /* a line without its end */
    struct buf *scratch;
    uint64_t offset;  /* of the next byte to be fed */
    uint64_t line_no; /* lines read so far */
    char names[CONSOLE_NAMES][CONSOLE_NAME_MAX]; /* the last ones that were seen in prefixes */
    size_t name_lens[CONSOLE_NAMES];
    unsigned next_name;
    bool mid_line;   /* the front of the line was used up, */
    bool mid_text;   /* as text, so that the line end is text, too */
    bool skipping;   /* the line is too long */
    int stop;        /* what the sink said */
    struct console_stats stats;
};
/* Passes a line, or a piece of one, on. */
void console_pass(struct console_reader *r, struct bytes line);
/* Whether what the mapper holds, from a line with the prefix `name`, names another process that writes here as well: then it was put together of
 * halves that were torn. */
bool console_is_glued(const struct console_reader *r, struct bytes name);
/* Takes what the mapper holds. 0 or -ENOMEM. */
int console_use(struct console_reader *r, enum console_kind kind, enum signal s);
/*
 * One line, whole or not (`open`): then only objects that end in it are used. *ret_used: bytes of `raw` used up, all of them
 * on 0 when the line is whole. 0 or -ENOMEM.
 */
int console_do_line(struct console_reader *r, struct bytes raw, uint64_t offset, bool open, size_t *ret_used);

/* ---- the blocks of a reader (console_pending.c) ---- */
enum console_end { END_STRANGE /* nothing more came */, END_LARGE };
/* Gives up block `i`: its lines are passed on. */
void console_give_up(struct console_reader *r, unsigned i, enum console_end why);
/* Offers the piece to the blocks, the newest first: 1 when one took it, with what is left of its text in *ret_rest; 0; -ENOMEM. */
int console_offer(struct console_reader *r, const struct console_piece *p, bool open, struct bytes *ret_rest);
/* A new block of the piece, of whose raw text `head` bytes stand before the object. 0 or -ENOMEM. */
int console_open_block(struct console_reader *r, const struct console_piece *p, size_t head, const struct console_cursor *after);
/* Maps the objects that are complete, which a lack of memory may have left. 0 or -ENOMEM. */
int console_finish_blocks(struct console_reader *r);
/* The line could not follow where it looks as if it should: the newest object of its process is broken. */
void console_drop_broken(struct console_reader *r, const struct console_piece *p);
/* A line of `bytes` bytes was read: blocks that had nothing of it wait in vain one line longer. */
void console_count_strange(struct console_reader *r, size_t bytes);

#endif
