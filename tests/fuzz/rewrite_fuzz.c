/* The laws of rewriting, splitting and ordering. The first byte chooses the signal. */
#include "tests/fuzz/fuzz.h"
#include "tests/laws/laws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0)
        law_all((enum signal)(data[0] % SIGNAL_COUNT), bytes_of(data + 1, size - 1));
    return 0;
}
