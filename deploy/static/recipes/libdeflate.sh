# gzip and deflate of whole bodies.
SOURCE=libdeflate LICENSE=MIT
build() {
    EXTRA_CFLAGS=-I. simple_library -O2 deflate lib/*.c lib/x86/cpu_features.c lib/arm/cpu_features.c
    cp libdeflate.h "$OUT/usr/include/"
    simple_pc deflate libdeflate "$(dpkg-parsechangelog -S Version | sed 's/[-+].*//')"
}
