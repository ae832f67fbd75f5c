/*
 * Laws of checking, rewriting, splitting and ordering that hold for any input. They are used by the unit tests on real payloads and
 * mutations of them, and by the fuzz targets. A broken law prints what it is and aborts.
 */
#ifndef MOTEL_TESTS_LAWS_H
#define MOTEL_TESTS_LAWS_H

#include "proto/batch.h"
#include "proto/wire.h"

/* otlp_check() and protobuf-c agree on what is well formed, and on the content and number of records; odd bytes become
 * canonical ones with the same content. Returns true when `wire` is a valid request. */
bool law_check(enum signal s, struct bytes wire);
/* Callbacks that keep everything give back the same batch; callbacks that replace by the same bytes, too. */
void law_rewrite_nothing(struct batch *b);
/* Editing the bytes is the same as decoding, editing objects and encoding. `seed` varies what is dropped and replaced. */
void law_rewrite_edits(struct batch *b, uint32_t seed);
/* The pieces keep to the limits, are valid, and hold the same records in the same order under the same headers. */
void law_split(struct batch *b, uint32_t max_records, size_t max_bytes);
/* The byte order of exports is what its definition gives, field by field; what has it already keeps it; nothing is lost. `wire` is
 * canonical (otlp_check()). */
void law_order(enum signal s, struct bytes wire);
/* All of the above. Takes any bytes. */
void law_all(enum signal s, struct bytes wire);

/* A private allocated copy, exactly as long as the content, so that sanitizers see reads beyond it. */
struct buf *law_copy(struct bytes wire);

#define LAW(what, holds)                                                                           \
    do {                                                                                           \
        if (!(holds))                                                                              \
            law_broken(what, __FILE__, __LINE__);                                                  \
    } while (0)
_Noreturn void law_broken(const char *what, const char *file, int line);

#endif
