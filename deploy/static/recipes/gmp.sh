# Big numbers, for nettle's public key cryptography. Debian's archive has no doc/: configure wants a Makefile.in there.
SOURCE=gmp LICENSE='LGPL-3.0-or-later OR GPL-2.0-or-later'
build() {
    mkdir -p doc
    [ -f doc/Makefile.in ] || printf 'all check install clean distclean:\n' >doc/Makefile.in
    run_configure -Os --with-pic --disable-cxx
    make -j"$JOBS" SUBDIRS='mpn mpz mpq mpf printf scanf rand tune'
    make install DESTDIR="$OUT" SUBDIRS='mpn mpz mpq mpf printf scanf rand'
}
