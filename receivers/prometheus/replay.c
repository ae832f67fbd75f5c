#include "receivers/prometheus/replay.h"

#include <endian.h>

#include "receivers/prometheus/mapper.h"
#include "receivers/prometheus/scan.h"

struct prom_replay *prom_replay_free(struct prom_replay *r)
{
    if (!r)
        return NULL;
    buf_unref(r->request);
    buf_unref(r->slots);
    buf_unref(r->gaps);
    buf_unref(r->times);
    buf_unref(r->buckets);
    free(r);
    return NULL;
}

/* ---- the request ---- */

static void store(uint8_t *to, uint64_t v)
{
    v = htole64(v);
    memcpy(to, &v, sizeof(v));
}

static uint64_t load(const uint8_t *from)
{
    uint64_t v;
    memcpy(&v, from, sizeof(v));
    return le64toh(v);
}

static uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    return bits;
}

static double double_of(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

/* A request to write to: that of the page before, or a copy while somebody else has it. */
static bool own_request(struct prom_replay *r)
{
    if (buf_is_sole(r->request))
        return true;
    struct buf *copy = buf_new(0);
    if (!copy || buf_append(copy, r->request->data, r->request->len) < 0) {
        buf_unref(copy);
        return false;
    }
    buf_unref(r->request);
    r->request = copy;
    return true;
}

/* ---- the page ---- */

/* False: the value makes it another request. */
static bool put_value(uint8_t *request, const struct slot *s, double v)
{
    uint8_t *to = request + s->at;
    switch ((enum slot_kind)s->kind) {
    case SLOT_NONE: return true;
    case SLOT_DOUBLE: store(to, bits_of(v)); return true;
    case SLOT_BITS: store(to, bits_of(v)); return bits_of(v) != 0;
    case SLOT_NO_BITS: return bits_of(v) == 0;
    case SLOT_COUNT: store(to, map_count(v)); return map_count(v) != 0;
    case SLOT_NO_COUNT: return map_count(v) == 0;
    case SLOT_START: return map_start_ns(v) == load(to);
    case SLOT_NO_START: return map_start_ns(v) == 0;
    }
    return false;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

static bool ends_value(uint8_t c)
{
    return is_blank(c) || c == '\n' || c == '\r' || c == '{';
}

/* Numbers of the less usual kind. */
static const uint8_t *read_word(const uint8_t *p, const uint8_t *end, double *ret)
{
    const uint8_t *start = p;
    while (p < end && !ends_value(*p))
        p++;
    return prom_parse_double(bytes_of(start, (size_t)(p - start)), ret) ? p : NULL;
}

/* The rest of a line behind the labels, with a value and nothing else: behind its end. NULL: there
 * is more, or it is not good. */
static const uint8_t *read_rest(const uint8_t *p, const uint8_t *end, bool text, double *ret)
{
    if (p == end || !is_blank(*p) || (!text && *p != ' '))
        return NULL;
    p++;
    while (text && p < end && is_blank(*p))
        p++;
    const uint8_t *behind = prom_scan_double(p, end, ret);
    if (!behind || behind == end || !ends_value(*behind))
        behind = read_word(p, end, ret);
    p = behind;
    while (text && p && p < end && is_blank(*p))
        p++;
    if (text && p && end - p > 1 && p[0] == '\r' && p[1] == '\n')
        p++;
    return p && p < end && *p == '\n' ? p + 1 : NULL;
}

static bool take_text(const uint8_t **p, const uint8_t *end, struct bytes text)
{
    if ((size_t)(end - *p) < text.len || (text.len && memcmp(*p, text.data, text.len) != 0))
        return false;
    *p += text.len;
    return true;
}

static struct bytes next_gap(struct bytes *gaps, size_t len)
{
    const struct bytes gap = bytes_of(gaps->data, len);
    *gaps = bytes_of(gaps->data + len, gaps->len - len);
    return gap;
}

static bool take_samples(struct prom_replay *r, const struct series_table *t, struct bytes page)
{
    const struct slot *slots = (const struct slot *)(const void *)r->slots->data;
    const size_t n = r->slots->len / sizeof(*slots);
    const uint8_t *p = page.data, *end = p + page.len;
    const struct series *s = t->first;
    struct bytes gaps = r->gaps->len ? buf_bytes(r->gaps) : bytes_str("");
    for (size_t i = 0; i < n; i++, s = s->next) {
        double v;
        if (slots[i].gap && !take_text(&p, end, next_gap(&gaps, slots[i].gap)))
            return false;
        if (!s || !take_text(&p, end, bytes_of(s->text, s->raw_len)) ||
            !(p = read_rest(p, end, r->format == PROM_TEXT, &v)) ||
            !put_value(r->request->data, &slots[i], v))
            return false;
    }
    return (size_t)(end - p) == gaps.len && take_text(&p, end, gaps);
}

/* Cumulative counts, as doubles, to the counts of the buckets; see mapping_write.c. */
static void finish_buckets(uint8_t *request, const struct slot_buckets *b)
{
    const uint64_t count = b->count_at ? load(request + b->count_at) : 0;
    uint64_t before = 0;
    uint8_t *at = request + b->at;
    for (uint32_t i = 0; i < b->n; i++, at += 8) {
        const uint64_t up_to = map_rise(map_count(double_of(load(at))), before, count);
        store(at, up_to - before);
        before = up_to;
    }
    store(at, count - before);
}

bool prom_replay_page(struct prom_replay *r, const struct series_table *t, enum prom_format format,
                      struct bytes page, int64_t time_ms)
{
    if (format != r->format || !own_request(r) || !take_samples(r, t, page))
        return false;
    uint8_t *request = r->request->data;
    const struct slot_buckets *buckets =
        (const struct slot_buckets *)(const void *)r->buckets->data;
    for (size_t i = 0; i < r->buckets->len / sizeof(*buckets); i++)
        finish_buckets(request, &buckets[i]);
    const uint32_t *times = (const uint32_t *)(const void *)r->times->data;
    const uint64_t ns = (uint64_t)time_ms * 1000000, last = r->range.last_ns;
    for (size_t i = 0; i < r->times->len / sizeof(*times); i++)
        store(request + times[i], ns);
    r->range.first_ns =
        r->range.first_ns == last || r->range.first_ns > ns ? ns : r->range.first_ns;
    r->range.last_ns = ns;
    return true;
}

void prom_replay_report(struct prom_replay *r, size_t number, double value)
{
    if (r->reports[number])
        store(r->request->data + r->reports[number], bits_of(value));
}

struct batch *prom_replay_batch(const struct prom_replay *r)
{
    struct buf *seg = buf_ref(r->request);
    struct batch *b = batch_new(SIGNAL_METRICS, &seg, 1, r->records);
    if (b)
        b->times = r->range;
    return b;
}
