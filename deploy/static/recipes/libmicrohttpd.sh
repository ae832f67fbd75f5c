# The HTTP/1.1 server; TLS is ended before it, so it needs none.
SOURCE=libmicrohttpd LICENSE=LGPL-2.1-or-later
build() {
    run_configure -Os --disable-https --disable-doc --disable-examples --disable-curl --disable-dauth --disable-bauth \
        --disable-postprocessor --disable-nls
    make -C src/microhttpd -j"$JOBS"
    make -C src/microhttpd install DESTDIR="$OUT"
    make -C src/include install DESTDIR="$OUT"
    make install-pkgconfigDATA DESTDIR="$OUT"
}
