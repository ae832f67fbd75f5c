/* What every X_fuzz.c defines: one run over one input; a bug is a crash. libFuzzer calls it, or replay_main.c. */
#ifndef MOTEL_TESTS_FUZZ_H
#define MOTEL_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
