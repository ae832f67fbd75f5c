# HTTP/2 for gRPC. Its configure is not in the archive; the library needs few answers of it.
SOURCE=nghttp2 LICENSE=MIT
build() {
    local version
    version=$(sed -n 's/^AC_INIT(\[nghttp2\], \[\([0-9.]*\).*/\1/p' configure.ac)
    sed -e "s/@PACKAGE_VERSION@/$version/" -e "s/@PACKAGE_VERSION_NUM@/$(printf '0x%02x%02x%02x' ${version//./ })/" \
        lib/includes/nghttp2/nghttp2ver.h.in >lib/includes/nghttp2/nghttp2ver.h
    EXTRA_CFLAGS='-Ilib/includes -DNGHTTP2_STATICLIB -DHAVE_ARPA_INET_H -DHAVE_NETINET_IN_H -DHAVE_TIME_H -DHAVE_CLOCK_GETTIME=1
        -DHAVE_DECL_CLOCK_MONOTONIC=1' simple_library -O2 nghttp2 lib/*.c
    mkdir -p "$OUT/usr/include/nghttp2"
    cp lib/includes/nghttp2/nghttp2.h lib/includes/nghttp2/nghttp2ver.h "$OUT/usr/include/nghttp2/"
    simple_pc nghttp2 libnghttp2 "$version"
}
