# Ciphers, digests and public key cryptography of GnuTLS, the hot parts in assembly; the best code for the processor is chosen when
# it starts. musl knows no indirect functions, so that choice uses plain pointers.
SOURCE=nettle LICENSE='LGPL-3.0-or-later OR GPL-2.0-or-later'
build() {
    nettle_cv_link_ifunc=no run_configure -Os --libdir=/usr/lib --disable-documentation --disable-openssl --enable-fat
    make -j"$JOBS" libnettle.a libhogweed.a
    make DESTDIR="$OUT" SUBDIRS= install-headers install-static install-pkgconfig
}
