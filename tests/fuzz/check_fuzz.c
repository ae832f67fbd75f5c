/* check against protobuf-c. The first byte chooses the signal. */
#include "tests/fuzz/fuzz.h"
#include "tests/laws/laws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct buf *exact = law_copy(bytes_of(data + 1, size - 1));
    law_check((enum signal)(data[0] % SIGNAL_COUNT), buf_bytes(exact));
    buf_unref(exact);
    return 0;
}
