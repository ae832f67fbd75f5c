/* Encoded messages written by hand: hex digits, 'text', and {…} for a length with what follows. Include after cmocka.h. */
#ifndef MOTEL_TESTS_WIRE_TEXT_H
#define MOTEL_TESTS_WIRE_TEXT_H

#include <stdio.h>

#include "proto/wire.h"

static inline const char *wire_text_append(const char *s, struct buf *b)
{
    while (*s && *s != '}') {
        unsigned byte;
        if (*s == '{') {
            struct buf *inner = buf_new(0);
            s = wire_text_append(s + 1, inner);
            assert_int_equal(*s, '}');
            assert_int_equal(wire_put_varint(b, inner->len), 0);
            assert_int_equal(buf_append(b, inner->data, inner->len), 0);
            buf_unref(inner);
            s++;
        } else if (*s == '\'') {
            const char *end = strchr(s + 1, '\'');
            assert_non_null(end);
            assert_int_equal(buf_append(b, s + 1, (size_t)(end - s - 1)), 0);
            s = end + 1;
        } else if (*s == ' ') {
            s++;
        } else {
            assert_int_equal(sscanf(s, "%2x", &byte), 1);
            assert_int_equal(buf_putc(b, (char)byte), 0);
            s += 2;
        }
    }
    return s;
}

static inline struct buf *wire_text(const char *s)
{
    struct buf *b = buf_new(0);
    assert_int_equal(*wire_text_append(s, b), 0);
    return b;
}

/* The bytes of `b` are those of the text `expected`. */
static inline void assert_wire(const struct buf *b, const char *expected)
{
    struct buf *e = wire_text(expected);
    if (!bytes_eq(buf_bytes(b), buf_bytes(e))) {
        for (size_t i = 0; i < b->len; i++)
            fprintf(stderr, "%02x", b->data[i]);
        fail_msg(" is not %s", expected);
    }
    buf_unref(e);
}

#endif
