/* The name that a misspelt word was meant to be. */
#ifndef MOTEL_BASE_SUGGEST_H
#define MOTEL_BASE_SUGGEST_H

#include "agent/base/bytes.h"

struct suggest {
    struct bytes word;
    struct bytes best; /* the nearest name offered so far; data is NULL when none is close enough to suggest */
    unsigned limit;    /* the next one must be nearer than this */
};
/* `word` must live as long as `s` is used. */
void suggest_init(struct suggest *s, struct bytes word);
/* Edit distance: insertions, deletions, replacements and swaps of neighbours; of equals the first one offered stays. When none is near: the first one that begins with the word. */
void suggest_offer(struct suggest *s, struct bytes name);

#endif
