# TLS: the library only, with its own copies of libtasn1 and libunistring.
SOURCE=gnutls28 LICENSE=LGPL-2.1-or-later
build() {
    local off=(anon-authentication cxx doc dtls-srtp-support full-test-suite gost guile heartbeat-support libdane maintainer-mode nls
        openssl-compatibility padlock psk-authentication srp-authentication ssl2-support ssl3-support tests tools)
    local without=(brotli default-trust-store-dir default-trust-store-file idn p11-kit tpm tpm2 zlib zstd)
    GMP_CFLAGS=' ' GMP_LIBS='-lgmp' run_configure -Os --with-included-libtasn1 --with-included-unistring \
        "${off[@]/#/--disable-}" "${without[@]/#/--without-}"
    make -C gl -j"$JOBS"
    make -C lib -j"$JOBS"
    # Debian's patches add these to gl/, and its Makefile.in, which is generated, does not know them.
    local object objects=()
    for object in gl_list gl_linkedhash_list; do
        # shellcheck disable=SC2046 # flags are words
        "$HOST-gcc" $(toolchain_cflags -Os) -DHAVE_CONFIG_H -I. -Igl -c "gl/$object.c" -o "gl/$object.o"
        objects+=("gl/$object.o")
    done
    "$HOST-ar" rD lib/.libs/libgnutls.a "${objects[@]}"
    make -C lib install DESTDIR="$OUT"
}
