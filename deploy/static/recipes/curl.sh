# The HTTP client: HTTP/1.1 and HTTP/2 over GnuTLS, nothing else.
SOURCE=curl LICENSE=curl
build() {
    local off=(alt-svc ares cookies dict dnsshuffle doh file ftp get-easy-options gopher hsts imap ldap ldaps libcurl-option
        manual mime mqtt netrc ntlm ntlm-wb pop3 progress-meter rtsp smb smtp sspi telnet tftp tls-srp verbose websockets)
    PKG_CONFIG="pkg-config --static" LIBS="$(pkg-config --static --libs-only-l gnutls)" run_configure -Os "${off[@]/#/--disable-}" --with-gnutls --with-nghttp2 --without-zlib --without-brotli --without-zstd \
        --without-librtmp --without-libidn2 --without-libpsl --without-libssh2 --without-ngtcp2 --without-nghttp3 --without-gssapi \
        --without-ca-bundle --without-ca-path --enable-threaded-resolver
    make -C lib -j"$JOBS"
    make -C lib install DESTDIR="$OUT"
    make -C include install DESTDIR="$OUT"
    make install-pkgconfigDATA DESTDIR="$OUT"
}
