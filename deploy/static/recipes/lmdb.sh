# The queue on disk.
SOURCE=lmdb LICENSE=OLDAP-2.8
build() {
    cd libraries/liblmdb
    EXTRA_CFLAGS=-pthread simple_library -Os lmdb mdb.c midl.c
    cp lmdb.h "$OUT/usr/include/"
    simple_pc lmdb lmdb "$(sed -n 's/^#define MDB_VERSION_\(MAJOR\|MINOR\|PATCH\)[[:space:]]*\([0-9]*\).*/\2/p' lmdb.h | paste -sd.)"
}
