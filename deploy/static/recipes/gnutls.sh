# TLS: the library only, with its own copies of libtasn1 and libunistring.
SOURCE=gnutls28 LICENSE=LGPL-2.1-or-later
build() {
    GMP_CFLAGS=' ' GMP_LIBS='-lgmp' run_configure -Os \
        --with-included-libtasn1 --with-included-unistring --without-p11-kit --without-idn --without-tpm --without-tpm2 \
        --without-brotli --without-zlib --without-zstd --disable-doc --disable-tools --disable-tests --disable-cxx --disable-libdane \
        --disable-nls --disable-guile --disable-full-test-suite --disable-openssl-compatibility --disable-srp-authentication \
        --disable-dtls-srtp-support --disable-heartbeat-support --disable-ssl2-support --disable-ssl3-support --disable-gost --disable-padlock \
        --disable-anon-authentication --disable-psk-authentication --disable-maintainer-mode --without-default-trust-store-file --without-default-trust-store-dir
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
