# Protocol buffers: the runtime of the generated code.
SOURCE=protobuf-c LICENSE=BSD-2-Clause
build() {
    EXTRA_CFLAGS=-I. simple_library -O2 protobuf-c protobuf-c/protobuf-c.c
    mkdir -p "$OUT/usr/include/protobuf-c"
    cp protobuf-c/protobuf-c.h "$OUT/usr/include/protobuf-c/"
    simple_pc protobuf-c libprotobuf-c "$(sed -n 's/^#define PROTOBUF_C_VERSION[[:space:]]*"\(.*\)".*/\1/p' protobuf-c/protobuf-c.h)"
}
