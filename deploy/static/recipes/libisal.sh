# gzip at the default level: the igzip part only, in assembly; the best code for the processor is chosen at the first call.
SOURCE=libisal LICENSE=BSD-3-Clause
build() {
    local arch= assembler=nasm
    if [ "$ARCH" = aarch64 ]; then
        arch=aarch64 assembler="$HOST-gcc -D__ASSEMBLY__"
        mkdir -p include/asm
        cp /usr/aarch64-linux-gnu/include/asm/hwcap.h include/asm/ # the kernel's names of processor features
    fi
    make -j"$JOBS" -f Makefile.unx lib units='crc igzip' host_cpu="$ARCH" arch="$arch" CC="$HOST-gcc" AS="$assembler" AR="$HOST-ar" \
        CFLAGS_"$arch"="$(toolchain_cflags -O2)"
    mkdir -p "$OUT/usr/lib/pkgconfig" "$OUT/usr/include/isa-l"
    cp bin/isa-l.a "$OUT/usr/lib/libisal.a"
    cp include/igzip_lib.h "$OUT/usr/include/isa-l/"
    simple_pc isal libisal "$(sed -n 's/^version ?= //p' make.inc)"
}
