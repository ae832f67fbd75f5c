#include "agent/base/regex_replace.h"

#include <errno.h>

/* ---- templates ---- */

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* Letters of other scripts count, so every byte of a longer sequence does. */
static bool is_word(uint8_t c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

/* The name behind the $ at the front of `s`; returns the length of the whole reference, 0 when it
 * is none. */
static size_t scan_name(struct bytes s, struct bytes *ret)
{
    bool brace = s.len > 1 && s.data[1] == '{';
    size_t from = brace ? 2 : 1, to = from;
    while (to < s.len && is_word(s.data[to]))
        to++;
    *ret = bytes_of(s.data + from, to - from);
    if (to == from || (brace && (to == s.len || s.data[to] != '}')))
        return 0;
    return to + brace;
}

/* The number that a name is; -1 when it is none. */
static long number_of(struct bytes name)
{
    long v = 0;
    if (name.data[0] == '0' && name.len > 1)
        return -1;
    for (size_t i = 0; i < name.len; i++) {
        if (!is_digit(name.data[i]) || v >= 100000000)
            return -1;
        v = v * 10 + (name.data[i] - '0');
    }
    return v;
}

static int put_group(const struct regex_found *m, unsigned group, struct buf *out)
{
    if (group >= m->n || m->spans[group].from == REGEX_UNSET)
        return 0;
    const struct regex_span *s = &m->spans[group];
    return buf_append(out, m->subject.data + s->from, s->to - s->from);
}

static int put_reference(const struct regex_found *m, struct bytes name, struct buf *out)
{
    long number = number_of(name);
    if (number >= 0)
        return put_group(m, (unsigned)number, out);
    for (unsigned i = 1; i < m->n; i++)
        if (bytes_eq_str(name, regex_group_name(m->re, i)) && m->spans[i].from != REGEX_UNSET)
            return put_group(m, i, out);
    return 0;
}

int regex_expand(const struct regex_found *m, struct bytes text, struct buf *out)
{
    int r = 0;
    for (size_t i = 0, n; r == 0 && i < text.len; i += n) {
        struct bytes rest = bytes_of(text.data + i, text.len - i), name;
        const uint8_t *dollar = memchr(rest.data, '$', rest.len);
        n = dollar ? (size_t)(dollar - rest.data) : rest.len;
        if (n > 0)
            r = buf_append(out, rest.data, n);
        else if (rest.len > 1 && rest.data[1] == '$')
            n = 2, r = buf_putc(out, '$');
        else if ((n = scan_name(rest, &name)) > 0)
            r = put_reference(m, name, out);
        else
            n = 1, r = buf_putc(out, '$');
    }
    return r;
}

/* ---- replacing ---- */

/* Length of the character at `at`, 1 at the end. */
static size_t char_length(struct bytes s, size_t at)
{
    size_t n = 1;
    while (at + n < s.len && n < 4 && s.data[at] >= 0xc0 && (s.data[at + n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* An empty match right behind the last one does not count. */
static int replace(struct regex_found *m, struct regex_span *spans,
                   int (*put)(void *ctx, const struct regex_found *m, struct buf *out), void *ctx,
                   struct buf *out)
{
    size_t at = 0, done = 0;
    int r = 0;
    while (r == 0 && at <= m->subject.len && regex_search(m->re, m->subject, at, spans, m->n)) {
        r = buf_append(out, m->subject.data + done, spans[0].from - done);
        if (r == 0 && (spans[0].to > done || spans[0].from == 0))
            r = put(ctx, m, out);
        done = spans[0].to;
        size_t step = at + char_length(m->subject, at);
        at = step > done ? step : done;
    }
    return r < 0 ? r : buf_append(out, m->subject.data + done, m->subject.len - done);
}

enum { FEW_GROUPS = 16 };

int regex_replace(const struct regex *re, struct bytes subject,
                  int (*put)(void *ctx, const struct regex_found *m, struct buf *out), void *ctx,
                  struct buf *out)
{
    struct regex_span few[FEW_GROUPS];
    _cleanup_free_ struct regex_span *many = NULL;
    struct regex_found m = {re, subject, few, regex_groups(re) + 1};
    if (m.n > FEW_GROUPS) {
        many = malloc(m.n * sizeof(*many));
        if (!many)
            return -ENOMEM;
        m.spans = many;
    }
    return replace(&m, many ? many : few, put, ctx, out);
}

static int put_expanded(void *ctx, const struct regex_found *m, struct buf *out)
{
    return regex_expand(m, *(const struct bytes *)ctx, out);
}

int regex_replace_text(const struct regex *re, struct bytes subject, struct bytes text,
                       struct buf *out)
{
    return regex_replace(re, subject, put_expanded, &text, out);
}
