/*
 * The texts that functions of the language read: JSON, globs, times and their formats, Go's format
 * strings, cases, replacement templates. The first byte chooses; what stands before the first
 * newline is the format or pattern, the rest the text.
 */
#include "agent/base/regex_replace.h"
#include "ottl/case.h"
#include "ottl/format.h"
#include "ottl/glob.h"
#include "ottl/strptime.h"
#include "ottl/value_json.h"
#include "tests/fuzz/fuzz.h"
#include "tests/laws/laws.h"

/* A copy of its own, so that a sanitizer sees reads past its end. */
static struct bytes exact(struct bytes b)
{
    uint8_t *p = malloc(b.len + 1);
    if (b.len)
        memcpy(p, b.data, b.len);
    p = realloc(p, b.len ? b.len : 1);
    return bytes_of(p, b.len);
}

/* What was read from JSON is text again that reads the same. */
static void json(struct arena *a, struct bytes text)
{
    struct ottl_value v, again;
    struct bytes back;
    bool nil;
    if (ottl_value_from_json(a, text, &v, NULL) < 0 || v.kind < OTTL_LIST)
        return;
    LAW("JSON is text and bytes again", ottl_value_text(a, &v, &back, &nil) == 0);
    LAW("JSON is text and bytes again", ottl_value_from_json(a, back, &again, NULL) == 0);
    LAW("JSON is text and bytes again", again.kind == v.kind);
    _cleanup_buf_ struct buf *any = buf_new(0);
    LAW("JSON is text and bytes again", ottl_value_encode(&v, any) == 0);
}

static void glob(struct bytes pattern, struct bytes text, struct buf *out)
{
    _cleanup_(regex_freep) struct regex *re = NULL;
    if (ottl_glob_new(pattern, &re, NULL) == 0 && regex_match(re, text))
        buf_putc(out, 'y');
}

static void replace(struct bytes pattern, struct bytes text, struct buf *out)
{
    _cleanup_(regex_freep) struct regex *re = NULL;
    size_t half = text.len / 2;
    if (regex_new(pattern, &re, NULL) == 0)
        regex_replace_text(re, bytes_of(text.data, half),
                           bytes_of(text.data + half, text.len - half), out);
}

static void times(struct bytes format, struct bytes text, struct buf *out)
{
    int64_t ns;
    if (strptime_check(format, NULL) < 0)
        return;
    if (strptime_parse(format, text, NULL, 1786000000000000000, &ns, NULL) == 0)
        strptime_format(format, ns, out);
}

static void format(struct bytes format_text, struct bytes text, struct buf *out)
{
    struct ottl_list l = {0};
    struct ottl_value args[] = {ottl_string(text),
                                ottl_int(-5),
                                ottl_double(12.5),
                                ottl_bool(true),
                                ottl_nil(),
                                {.kind = OTTL_BYTES, .bytes = text},
                                {.kind = OTTL_LIST, .list = &l},
                                {.kind = OTTL_TIME, .i = 5},
                                {.kind = OTTL_DURATION, .i = -5}};
    ottl_format(format_text, args, ARRAY_SIZE(args), out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct bytes all = bytes_of(data + 1, size - 1);
    const uint8_t *end = all.len ? memchr(all.data, '\n', all.len) : NULL;
    size_t n = end ? (size_t)(end - all.data) : all.len;
    struct bytes first = exact(bytes_of(all.data, n));
    struct bytes rest = exact(end ? bytes_of(end + 1, all.len - n - 1) : bytes_of("", 0));
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    _cleanup_buf_ struct buf *out = buf_new(1 << 20);
    switch (data[0] % 7) {
    case 0: json(a, first); break;
    case 1: glob(first, rest, out); break;
    case 2: replace(first, rest, out); break;
    case 3: times(first, rest, out); break;
    case 4: format(first, rest, out); break;
    case 5: case_snake(first, out), case_camel(rest, out); break;
    default: case_lower(first, out), case_upper(rest, out); break;
    }
    free((void *)first.data);
    free((void *)rest.data);
    return 0;
}
