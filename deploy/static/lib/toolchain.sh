# The compiler: Debian's gcc (a cross compiler for the other processor), which is told to use the musl that we built and nothing of
# this machine. Everything is installed with DESTDIR=$SYSROOT and prefix /usr, so that no folder's name gets into a file.

# What depends on the processor. Sets HOST (GNU triplet), GCC_PREFIX, CPU_CFLAGS and CPU_LDFLAGS (of the program): GNU ld writes short
# relocations for x86-64 only, LLVM's for both.
toolchain_names() {
    case "$ARCH" in
    x86_64) HOST=x86_64-linux-musl GCC_PREFIX=x86_64-linux-gnu- CPU_CFLAGS='-fcf-protection=none' CPU_LDFLAGS='' ;;
    aarch64) HOST=aarch64-linux-musl GCC_PREFIX=aarch64-linux-gnu- CPU_CFLAGS='' CPU_LDFLAGS='-fuse-ld=lld -Wl,--pack-dyn-relocs=relr' ;;
    *) die "no processor named $ARCH is known: x86_64 and aarch64 are" ;;
    esac
    command -v "${GCC_PREFIX}gcc" >/dev/null || die "${GCC_PREFIX}gcc is not installed: deploy/install-packages static"
}

# Writes $TOOLS/bin/$HOST-gcc, the specs it uses, ar and so on; cmake's and meson's description of them.
toolchain_write() {
    mkdir -p "$TOOLS/bin"
    local gcc_lib
    gcc_lib=$(dirname "$("${GCC_PREFIX}gcc" -print-libgcc-file-name)")
    cat >"$TOOLS/musl.specs" <<SPECS
*link_libgcc:
-L$SYSROOT/usr/lib -L$gcc_lib

SPECS
    cat >"$TOOLS/bin/$HOST-gcc" <<WRAPPER
#!/bin/sh
exec ${GCC_PREFIX}gcc -specs=$TOOLS/musl.specs -B$SYSROOT/usr/lib/ -fPIE \
    -nostdinc -isystem $SYSROOT/usr/include -isystem $gcc_lib/include "\$@" -static-pie
WRAPPER
    chmod +x "$TOOLS/bin/$HOST-gcc"
    for tool in ar ranlib strip nm objcopy ld; do
        ln -sf "$(command -v "${GCC_PREFIX}$tool")" "$TOOLS/bin/$HOST-$tool"
    done
    case "$CPU_LDFLAGS" in *lld*)
        command -v ld.lld >/dev/null || die "ld.lld (package lld) is not installed: deploy/install-packages static"
        ln -sf "$(command -v ld.lld)" "$TOOLS/bin/${GCC_PREFIX}ld.lld" # the name that a cross compiler looks for
        ;;
    esac
    cat >"$TOOLS/cmake" <<CMAKE
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $ARCH)
set(CMAKE_C_COMPILER $TOOLS/bin/$HOST-gcc)
set(CMAKE_AR $TOOLS/bin/$HOST-ar)
set(CMAKE_RANLIB $TOOLS/bin/$HOST-ranlib)
set(CMAKE_FIND_ROOT_PATH $SYSROOT)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
CMAKE
    cat >"$TOOLS/meson" <<MESON
[binaries]
c = '$TOOLS/bin/$HOST-gcc'
ar = '$TOOLS/bin/$HOST-ar'
strip = '$TOOLS/bin/$HOST-strip'
pkgconfig = 'pkg-config'

[properties]
sys_root = '$SYSROOT'
pkg_config_libdir = '$SYSROOT/usr/lib/pkgconfig'
needs_exe_wrapper = $([ "$ARCH" = "$(uname -m)" ] && echo false || echo true)

[host_machine]
system = 'linux'
cpu_family = '$ARCH'
cpu = '$ARCH'
endian = 'little'
MESON
    export PATH=$TOOLS/bin:$PATH
    export PKG_CONFIG_LIBDIR=$SYSROOT/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$SYSROOT
}

# Hardening and size: the flags of every library. $1: -O2 for what runs per byte or request, -Os for the rest.
toolchain_cflags() {
    echo "$1 -g0 -fPIE $CPU_CFLAGS -fstack-protector-strong -fstack-clash-protection -fno-asynchronous-unwind-tables" \
        "-fno-unwind-tables -ffunction-sections -fdata-sections -ffile-prefix-map=$PWD=. -w"
}

# ./configure with what all share; further arguments follow. CFLAGS from toolchain_cflags with $1.
run_configure() {
    local level=$1
    shift
    CC=$HOST-gcc AR=$HOST-ar RANLIB=$HOST-ranlib NM=$HOST-nm STRIP=$HOST-strip CFLAGS=$(toolchain_cflags "$level") \
        CONFIG_SHELL=/bin/dash /bin/dash ./configure --host="$HOST" --build="$(dpkg-architecture -qDEB_BUILD_GNU_TYPE)" \
        --prefix=/usr --sysconfdir=/etc --localstatedir=/var --disable-shared --enable-static --disable-dependency-tracking "$@"
}

# cmake with what all share; CFLAGS from toolchain_cflags with $1; further arguments follow. Builds in ./cmake-build.
run_cmake() {
    local level=$1
    shift
    cmake -S . -B cmake-build -DCMAKE_TOOLCHAIN_FILE="$TOOLS/cmake" -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="$(toolchain_cflags "$level")" \
        -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF "$@"
    make -C cmake-build -j"$JOBS"
    make -C cmake-build DESTDIR="$OUT" install
}

# Compiles the .c and .S files named and puts them into library $2 of $OUT; -O level $1. Further compiler flags in EXTRA_CFLAGS.
simple_library() {
    local level=$1 name=$2 object objects=()
    shift 2
    for source in "$@"; do
        object=$(echo "${source%.*}.o" | tr / _)
        # shellcheck disable=SC2046 # flags are words
        "$HOST-gcc" $(toolchain_cflags "$level") ${EXTRA_CFLAGS:-} -c "$source" -o "$object"
        objects+=("$object")
    done
    mkdir -p "$OUT/usr/lib/pkgconfig" "$OUT/usr/include"
    "$HOST-ar" rcsD "$OUT/usr/lib/lib$name.a" "${objects[@]}"
}

# A pkg-config file for library $1 (module $2) of version $3; $4: further Libs.private.
simple_pc() {
    mkdir -p "$OUT/usr/lib/pkgconfig"
    cat >"$OUT/usr/lib/pkgconfig/$2.pc" <<PC
prefix=/usr
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: $2
Description: $2
Version: $3
Libs: -L\${libdir} -l$1
Libs.private: ${4:-}
Cflags: -I\${includedir}
PC
}
