# The C library, compiled first; with the start files and headers it is the whole system below the program.
SOURCE=musl LICENSE=MIT
build() {
    # of our own: short relocations and read-only relocations for static position-independent programs; the words of messages; memory
    # that comes and goes
    local patch
    for patch in static-pie error-words bounce; do patch -p1 <"$ROOT/deploy/static/patches/musl-$patch.patch"; done
    CC=${GCC_PREFIX}gcc AR=${GCC_PREFIX}ar RANLIB=${GCC_PREFIX}ranlib CFLAGS="-Os -g0 -fPIE -ffunction-sections -fdata-sections" \
        ./configure --target=$HOST --prefix=/usr --syslibdir=/lib --disable-shared --disable-gcc-wrapper
    make -j"$JOBS"
    make install DESTDIR="$OUT"
}
