#include "agent/base/suggest.h"

#include <string.h>

#define WORD_MAX 48
#define SHORTENED_MIN 5 /* bytes of a name that was cut short: "spill_dir" */

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;
    return m < c ? m : c;
}

/* Optimal string alignment; both are at most WORD_MAX long. */
static unsigned distance(struct bytes a, struct bytes b)
{
    unsigned rows[3][WORD_MAX + 1];
    unsigned *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= b.len; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= a.len; i++) {
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= b.len; j++) {
            unsigned other = a.data[i - 1] != b.data[j - 1];
            now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + other);
            if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] &&
                a.data[i - 2] == b.data[j - 1] && before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
        unsigned *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[b.len];
}

void suggest_init(struct suggest *s, struct bytes word)
{
    bool usable = word.len >= 2 && word.len <= WORD_MAX;
    *s = (struct suggest){word, {NULL, 0}, 0};
    if (usable)
        s->limit = (word.len < 5 ? 1 : word.len < 12 ? 2 : 3) + 1;
}

void suggest_offer(struct suggest *s, struct bytes name)
{
    if (!s->limit || name.len > WORD_MAX)
        return;
    if (!s->best.data && s->word.len >= SHORTENED_MIN && s->word.len < name.len &&
        memcmp(s->word.data, name.data, s->word.len) == 0)
        s->best = name; /* until a nearer one comes */
    unsigned d = distance(s->word, name);
    if (d < s->limit) {
        s->limit = d;
        s->best = name;
    }
}
