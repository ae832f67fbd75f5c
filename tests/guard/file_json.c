/* A batch of several requests as the file exporter writes it: one line of JSON, secrets looked for.
 */
#include "agent/base/secrets.h"
#include "exporters/file/render.h"
#include "tests/guard/guard.h"

#define REQUESTS 10
#define SPANS 100 /* of a request */

static struct batch *batch;
static struct renderer *renderer;
static struct buf *text;

static void prepare(void)
{
    struct buf *segments[REQUESTS];
    for (unsigned i = 0; i < REQUESTS; i++)
        segments[i] = body_traces(i % 3, i * SPANS, SPANS);
    batch = batch_new(SIGNAL_TRACES, segments, REQUESTS, REQUESTS * SPANS);
    renderer = renderer_new(false, false, 0);
    text = buf_new(0);
    guard_must(batch && renderer && text && secrets_add("correct-horse-battery-staple"),
               "no memory");
}

static uint32_t write_line(void)
{
    buf_truncate(text, 0);
    guard_must(render(renderer, batch, NULL, text) == 0, "no line");
    guard_must(text->len > batch->bytes && text->data[text->len - 1] == '\n', "the line is short");
    return batch->records;
}

static void finish(void)
{
    buf_unref(text);
    renderer_free(renderer);
    batch_unref(batch);
    secrets_clear();
}

const struct workload workload_file_json = {
    .name = "file_json", .rounds = 2, .prepare = prepare, .round = write_line, .finish = finish};
