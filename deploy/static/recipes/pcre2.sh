# Regular expressions, compiled to machine code, which is why the library itself need not be fast.
SOURCE=pcre2 LICENSE=BSD-3-Clause
build() {
    run_configure -Os --enable-jit --disable-pcre2grep-jit --disable-pcre2grep-libz --disable-pcre2grep-libbz2
    make -j"$JOBS" libpcre2-8.la
    make DESTDIR="$OUT" lib_LTLIBRARIES=libpcre2-8.la install-libLTLIBRARIES install-includeHEADERS install-nodist_includeHEADERS \
        install-pkgconfigDATA
}
