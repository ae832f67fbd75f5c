# gzip at the default level: the igzip part only, in assembly; the best code for the processor is chosen at the first call. Checksums
# other than gzip's come along in one piece with that choice; their fast variants are left out.
SOURCE=libisal LICENSE=BSD-3-Clause
build() {
    local arch='' assembler=nasm defines=() unused=() sum variant
    if [ "$ARCH" = aarch64 ]; then
        arch=aarch64 assembler="$HOST-gcc -D__ASSEMBLY__"
        mkdir -p include/asm
        cp /usr/aarch64-linux-gnu/include/asm/hwcap.h include/asm/ # the kernel's names of processor features
    else
        for sum in crc32_iscsi crc32_ieee crc16_t10dif crc16_t10dif_copy; do
            for variant in 00 01 02 by4 by4_02 by16_10; do
                defines+=("${sum}_$variant=${sum}_base") unused+=("${sum}_$variant.o")
            done
        done
    fi
    make -j"$JOBS" -f Makefile.unx lib units='crc igzip' host_cpu="$ARCH" arch="$arch" CC="$HOST-gcc" AS="$assembler" AR="$HOST-ar" \
        D="${defines[*]}" CFLAGS_"$arch"="$(toolchain_cflags -O2)"
    [ ${#unused[@]} = 0 ] || "$HOST-ar" dD bin/isa-l.a "${unused[@]}"
    mkdir -p "$OUT/usr/lib/pkgconfig" "$OUT/usr/include/isa-l"
    cp bin/isa-l.a "$OUT/usr/lib/libisal.a"
    cp include/igzip_lib.h "$OUT/usr/include/isa-l/"
    simple_pc isal libisal "$(sed -n 's/^version ?= //p' make.inc)"
}
