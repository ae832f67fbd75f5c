# zstd bodies: compression and decompression, one thread a body, no dictionary training, no old formats, one
# variant of each decoder (the others are a few per cent faster and twice the size). Levels above 4 use the
# match finders that are compiled for size.
SOURCE=libzstd LICENSE=BSD-3-Clause
build() {
    local fast=(lib/common/*.c lib/compress/*.c lib/decompress/*.c) small=(lib/compress/zstd_{lazy,opt,ldm,compress_superblock}.c) file
    for file in "${small[@]}"; do
        fast=("${fast[@]/$file/}")
    done
    [ "$ARCH" = aarch64 ] || fast+=(lib/decompress/*.S)
    export EXTRA_CFLAGS='-Ilib -Ilib/common -DZSTD_LEGACY_SUPPORT=0 -DXXH_NAMESPACE=ZSTD_
        -DDYNAMIC_BMI2=0 -DHUF_FORCE_DECOMPRESS_X1 -DZSTD_FORCE_DECOMPRESS_SEQUENCES_SHORT'
    # shellcheck disable=SC2068 # empty words are files that were taken out
    simple_library -O2 zstd ${fast[@]}
    simple_library -Os zstd "${small[@]}"
    cp lib/zstd.h lib/zstd_errors.h "$OUT/usr/include/"
    simple_pc zstd libzstd "$(dpkg-parsechangelog -S Version | sed 's/[-+].*//')"
}
