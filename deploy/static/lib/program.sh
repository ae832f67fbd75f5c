# The program itself, and what goes with it into dist/.

# Builds motel for $ARCH in $WORK/$ARCH and installs it as $DIST/motel-VERSION-linux-ARCH.
build_program() {
    SYSROOT=$WORK/$ARCH/sysroot TOOLS=$WORK/$ARCH/tools
    mkdir -p "$SYSROOT/usr/lib" "$CACHE/$ARCH"
    toolchain_names
    toolchain_write
    libraries_provide
    say "$ARCH: compiling motel"
    local build=$WORK/$ARCH/motel log=$CACHE/$ARCH/motel.log
    program_compile "$build" >"$log" 2>&1 || {
        tail -n 40 "$log" >&2
        die "$ARCH: motel was not built, $log has it all"
    }
    local program
    program=motel-$(program_version)-linux-$ARCH
    "$HOST-strip" --strip-all --remove-section=.comment -o "$build/$program" "$build/motel"
    chmod 755 "$build/$program"
    python3 "$ROOT/deploy/static/lib/papers.py" "$build/$program" "$(program_version)" "$ARCH" "$WORK/linked" "$WORK/licenses" "$DIST"
    cp -p "$build/$program" "$DIST/$program.new"
    mv "$DIST/$program.new" "$DIST/$program"
    say "$ARCH: $DIST/$program, $(stat -c %s "$DIST/$program") bytes"
}

program_version() {
    sed -n "s/^ *version: '\([^']*\)'.*/\1/p" "$ROOT/meson.build" | head -n 1
}

program_compile() {
    meson setup "$1" "$ROOT" --cross-file "$TOOLS/meson" --prefix /usr -Dtests=false -Dprefer_static=true -Ddefault_library=static \
        -Doptimization=2 -Ddebug=false -Db_pie=true -Db_staticpic=true -Dwerror=false \
        -Dc_args="-ffile-prefix-map=$ROOT=motel -ffile-prefix-map=$1=motel/build -ffile-prefix-map=../../=" \
        -Dc_link_args="-Wl,--build-id=none -Wl,-z,stack-size=2097152 $CPU_LDFLAGS" || return 1
    ninja -C "$1" -j"$JOBS" motel
}

# Checksums of what this build wrote, and of the same of the other processor when it lies there: nothing else that is in dist/.
dist_finish() {
    local program
    program=motel-$(program_version)-linux
    (
        cd "$DIST"
        for file in LICENSES.txt "$program"-{aarch64,x86_64}{,.spdx.json}; do
            [ ! -f "$file" ] || sha256sum "$file"
        done
    ) >"$WORK/sums"
    mv "$WORK/sums" "$DIST/SHA256SUMS"
}
