/*
 * JSON in and out. The first byte chooses the signal. What is read passes the check; what is
 * written of it is JSON by jansson's measure, reads back, and is then written as the same text. The
 * writers for people get the data, too.
 */
#include <jansson.h>
#include <stdlib.h>

#include "exporters/console/lines.h"
#include "exporters/debug/text.h"
#include "proto/check.h"
#include "proto/json.h"
#include "tests/fuzz/fuzz.h"
#include "tests/laws/laws.h"

static void must(bool good)
{
    if (!good)
        abort();
}

/* The batch of the text; NULL when it is refused. */
static struct batch *read_batch(enum signal s, struct bytes text)
{
    struct buf *wire = buf_new(0);
    struct batch *b = NULL;
    struct err e = {0};
    int r = json_read(schema_request(s), text, wire, &e);
    if (r < 0) {
        must(e.line > 0 && e.column > 0 && e.text[0]);
        buf_unref(wire);
        return NULL;
    }
    must(batch_from_wire(s, wire, &b, &e) == 0);
    return b;
}

static struct buf *write_batch(const struct batch *b)
{
    struct buf *out = buf_new(0);
    must(json_write_batch(b, 0, out) == 0);
    return out;
}

static void check_json(struct bytes text)
{
    json_t *tree =
        json_loadb((const char *)text.data, text.len,
                   JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, NULL);
    must(tree != NULL);
    json_decref(tree);
}

static void check_texts(const struct batch *b)
{
    struct buf *out = buf_new(0);
    struct text t = {.out = out};
    must(console_lines(b, out) == 0);
    for (size_t i = 0; i < out->len; i++)
        must(out->data[i] == '\n' || (out->data[i] >= ' ' && out->data[i] < 0x7f));
    normal_text(&t, b);
    detailed_text(&t, b);
    must(t.error == 0);
    buf_unref(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    enum signal s = (enum signal)(data[0] % SIGNAL_COUNT);
    struct buf *text = law_copy(bytes_of(data + 1, size - 1)); /* of just its size */
    struct batch *b = read_batch(s, buf_bytes(text));
    if (b) {
        struct buf *first = write_batch(b);
        check_json(buf_bytes(first));
        check_texts(b);
        struct batch *again = read_batch(s, buf_bytes(first));
        must(again && again->records == b->records);
        struct buf *second = write_batch(again);
        must(bytes_eq(buf_bytes(first), buf_bytes(second)));
        buf_unref(first);
        buf_unref(second);
        batch_unref(again);
        batch_unref(b);
    }
    buf_unref(text);
    return 0;
}
