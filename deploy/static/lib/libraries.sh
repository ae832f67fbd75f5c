# The libraries, in the order in which they are built: each may use those before it. recipes/NAME.sh says how.
LIBRARIES=(musl gmp nettle gnutls libmicrohttpd nghttp2 curl jansson libyaml pcre2 libzstd lz4 libdeflate libisal lmdb)

# Reads the recipe of library $1: sets SOURCE (Debian's source package), LICENSE (SPDX), ARCHES, and the function `build`,
# which runs in the unpacked source and installs below $OUT.
recipe_read() {
    ARCHES='x86_64 aarch64'
    # shellcheck source=/dev/null
    . "$ROOT/deploy/static/recipes/$1.sh"
}

# Fetches the newest source package of every library; writes $WORK/versions: library, source package, version, licence.
libraries_fetch() {
    local name version
    : >"$WORK/versions"
    for name in "${LIBRARIES[@]}"; do
        recipe_read "$name"
        version=$(apt_fetch_newest "$SOURCE") || die "the source package $SOURCE could not be fetched"
        printf '%s\t%s\t%s\t%s\n' "$name" "$SOURCE" "$version" "$LICENSE" >>"$WORK/versions"
    done
}

# Prints the version of the source package of library $1.
library_version() {
    awk -F '\t' -v n="$1" '$1 == n {print $3}' "$WORK/versions"
}

# Builds library $1 into folder $OUT; its messages go to a log that is shown when it fails.
library_build() {
    local name=$1 log=$CACHE/$ARCH/$1.log started=$SECONDS
    recipe_read "$name"
    apt_unpack "$SOURCE" "$(library_version "$name")" "$WORK/$ARCH/$name"
    say "$ARCH: compiling $name"
    (
        cd "$WORK/$ARCH/$name"
        no_autoreconf
        build
    ) >"$log" 2>&1 &
    wait $! || {
        tail -n 40 "$log" >&2
        die "$ARCH: $name was not built, $log has it all"
    }
    find "$OUT" -name '*.la' -delete
    say "$ARCH: $name took $((SECONDS - started)) s"
    rm -rf "$WORK/$ARCH/$name" "$WORK/$ARCH/$name.log"
}

# Provides the licence texts of all libraries in $CACHE/licenses/NAME_VERSION/, and writes $WORK/linked for papers.py.
libraries_licenses() {
    local name source version license folder dsc part
    while IFS=$'\t' read -r name source version license; do
        folder=$CACHE/licenses/${name}_$version
        [ -d "$folder" ] || licenses_extract "$source" "$version" "$folder"
        mkdir -p "$WORK/licenses"
        cp -r "$folder" "$WORK/licenses/$name"
        dsc=$(basename "$CACHE/sources/${source}_$version/"*.dsc)
        printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$source" "$version" "$license" "$dsc" \
            "$(sha256sum <"$CACHE/sources/${source}_$version/$dsc" | cut -d' ' -f1)"
        # its own copies of two libraries
        [ "$name" != gnutls ] || for part in libtasn1:LGPL-2.1-or-later 'libunistring:LGPL-3.0-or-later OR GPL-2.0-or-later'; do
            cp -r "$folder" "$WORK/licenses/${part%%:*}"
            printf '%s\t%s\t%s\t%s\t\t\n' "${part%%:*}" "$source" "$version" "${part#*:}"
        done
    done <"$WORK/versions" >"$WORK/linked"
    # parts of gcc that every program holds, whose compiled form comes with the compiler
    mkdir -p "$WORK/licenses/libgcc"
    cp /usr/share/doc/gcc-"$(gcc -dumpversion)"-base/copyright "$WORK/licenses/libgcc/debian-copyright"
    printf 'libgcc\tgcc-%s\t%s\tGPL-3.0-or-later WITH GCC-exception-3.1\t\t\n' "$(gcc -dumpversion)" \
        "$(dpkg-query -W -f '${Version}' gcc-"$(gcc -dumpversion)")" >>"$WORK/linked"
}

# Copies the licence texts of source package $1, version $2, to folder $3.
licenses_extract() {
    local source=$WORK/licenses-of-$1 file
    apt_unpack "$1" "$2" "$source"
    rm -rf "$3.new"
    mkdir -p "$3.new"
    cp "$source/debian/copyright" "$3.new/debian-copyright"
    find "$source" -maxdepth 2 -type f ! -path '*/debian/*' ! -name '*.html' \
        \( -iname 'COPYING*' -o -iname 'LICEN[CS]E*' -o -iname 'COPYRIGHT' \) -printf '%P\n' | while read -r file; do
        cp "$source/$file" "$3.new/${file//\//-}"
    done
    mv "$3.new" "$3"
    rm -rf "$source" "$source.log"
}

# Debian's patches may be newer than what was generated from the patched file: nothing is generated again.
no_autoreconf() {
    find . \( -name aclocal.m4 -o -name '*.m4' \) -exec touch -d '2 hours ago' {} +
    find . \( -name configure.ac -o -name Makefile.am \) -exec touch -d '3 hours ago' {} +
    find . \( -name configure -o -name Makefile.in -o -name 'config*.h.in' -o -name config.in \) -exec touch {} +
}

# Fills $SYSROOT with all libraries of $ARCH: from the cache those whose inputs are the same, the others compiled.
# The key of a library holds that of the one before it, so a change builds everything after it again.
libraries_provide() {
    local name key kept
    key=$({ "${GCC_PREFIX}gcc" --version && "${GCC_PREFIX}ld" --version && cat "$ROOT/deploy/static/lib/toolchain.sh"; } | sha256sum)
    for name in "${LIBRARIES[@]}"; do
        recipe_read "$name"
        [[ " $ARCHES " == *" $ARCH "* ]] || continue
        key=$({ echo "$key" && library_version "$name" && cat "$ROOT/deploy/static/recipes/$name.sh" \
            && find "$ROOT/deploy/static/patches" -name "$name-*" | sort | xargs -r cat; } | sha256sum | cut -c1-16)
        kept=$CACHE/$ARCH/$name-$key
        if [ ! -d "$kept" ]; then
            OUT=$WORK/$ARCH/out
            rm -rf "$OUT"
            mkdir -p "$OUT"
            library_build "$name"
            rm -rf "$CACHE/$ARCH/$name"-????????????????
            rm -rf "$kept.new" # a build that was killed may have left it, with half of the files
            cp -a "$OUT" "$kept.new"
            mv "$kept.new" "$kept"
        fi
        cp -a "$kept/." "$SYSROOT/"
    done
}
