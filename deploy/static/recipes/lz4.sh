# lz4 bodies; the slow levels are compiled for size.
SOURCE=lz4 LICENSE=BSD-2-Clause
build() {
    export EXTRA_CFLAGS='-Ilib -DXXH_NAMESPACE=LZ4_'
    simple_library -O2 lz4 lib/lz4.c lib/lz4frame.c lib/xxhash.c
    simple_library -Os lz4 lib/lz4hc.c
    cp lib/lz4.h lib/lz4hc.h lib/lz4frame.h "$OUT/usr/include/"
    simple_pc lz4 liblz4 "$(dpkg-parsechangelog -S Version | sed 's/[-+].*//')"
}
