# The HTTP client: HTTP/1.1 and HTTP/2 over GnuTLS, nothing else.
SOURCE=curl LICENSE=curl
build() {
    local off=(alt-svc ares cookies crypto-auth dict dnsshuffle doh file ftp get-easy-options gopher hsts imap ldap ldaps libcurl-option
        manual mime mqtt netrc ntlm ntlm-wb pop3 progress-meter rtsp smb smtp sspi telnet tftp tls-srp verbose websockets)
    local without=(brotli ca-bundle ca-path gssapi libidn2 libpsl librtmp libssh2 nghttp3 ngtcp2 zlib zstd)
    PKG_CONFIG='pkg-config --static' LIBS=$(pkg-config --static --libs-only-l gnutls) \
        run_configure -Os "${off[@]/#/--disable-}" "${without[@]/#/--without-}" --with-gnutls --with-nghttp2 --enable-threaded-resolver
    make -C lib -j"$JOBS"
    make -C lib install DESTDIR="$OUT"
    make -C include install DESTDIR="$OUT"
    make install-pkgconfigDATA DESTDIR="$OUT"
}
