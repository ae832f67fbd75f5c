# Debian source packages, without a change to this machine: an apt configuration of our own, whose package sources are the
# machine's own Debian lines with "deb-src" in place of "deb". apt checks the signatures.

# The machine's package sources of its own Debian release, as one-line "deb-src" entries.
apt_source_lines() {
    local release
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
        awk -v r="$release" '$1 == "deb" {
            s = $2 ~ /^\[/ ? 0 : 2
            for (i = 2; !s; i++) if ($i ~ /\]$/) s = i + 1
            if ($(s + 1) ~ "^" r "(-updates|-security|/updates)?$") { $1 = "deb-src"; print }
        }' || true
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -f "$file" ] || continue
        awk -v r="$release" '
            function flush(   i, j, n, m, u, s) {
                n = split(uris, u, " "); m = split(suites, s, " ")
                if (types ~ /(^| )deb( |$)/ && enabled != "no")
                    for (i = 1; i <= n; i++) for (j = 1; j <= m; j++)
                        if (s[j] ~ "^" r "(-updates|-security|/updates)?$")
                            print "deb-src " (key ? "[signed-by=" key "] " : "") u[i], s[j], parts
                types = uris = suites = parts = key = enabled = ""
            }
            /^#/ { next }
            /^[[:space:]]*$/ { flush(); next }
            { name = tolower($1); $1 = ""; sub(/^ /, "") }
            name == "types:" { types = $0 }
            name == "uris:" { uris = $0 }
            name == "suites:" { suites = $0 }
            name == "components:" { parts = $0 }
            name == "signed-by:" { key = $0 }
            name == "enabled:" { enabled = $0 }
            END { flush() }' "$file"
    done
}

# Writes the private apt configuration and refreshes its lists when they are older than a day.
apt_prepare() {
    local root=$CACHE/apt
    mkdir -p "$root"/{lists/partial,archives/partial,etc}
    apt_source_lines | sort -u >"$root/etc/sources.list"
    [ -s "$root/etc/sources.list" ] || die "no Debian package source was found under /etc/apt"
    : >"$root/etc/status"
    cat >"$root/etc/apt.conf" <<CONF
Dir::Etc::sourcelist "$root/etc/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$root/lists";
Dir::State::status "$root/etc/status";
Dir::Cache "$root";
Dir::Cache::archives "$root/archives";
APT::Sandbox::User "";
APT::Architecture "$(dpkg --print-architecture)";
Acquire::Languages "none";
CONF
    export APT_CONFIG=$root/etc/apt.conf
    if [ -z "$(find "$root/updated" -mmin -1440 2>/dev/null)" ]; then
        say "reading Debian's list of source packages"
        if apt-get update -qq && apt_versions musl >/dev/null; then
            touch "$root/updated"
        elif apt_versions musl >/dev/null; then
            say "the list could not be read again: the one of before is used"
        else
            die "Debian's list of source packages could not be read"
        fi
    fi
}

# Prints the versions of source package $1, the newest first.
apt_versions() {
    apt-cache showsrc --only-source "$1" 2>/dev/null | awk '$1 == "Version:" {print $2}' | sort -rVu | grep .
}

# Puts the files of source package $1, version $2, into $CACHE/sources/ (does nothing when they are there).
apt_fetch() {
    local folder=$CACHE/sources/$1_$2
    [ -f "$folder/complete" ] && return 0
    say "fetching $1 $2"
    rm -rf "$folder"
    mkdir -p "$folder"
    (cd "$folder" && apt-get source -qq --download-only --only-source "$1=$2" >/dev/null 2>"$CACHE/fetch.log") || return 1
    touch "$folder/complete"
}

# Fetches source package $1 and prints its version: the newest, or the newest that the mirror really has, which is said then.
apt_fetch_newest() {
    local version newest=
    for version in $(apt_versions "$1"); do
        newest=${newest:-$version}
        if apt_fetch "$1" "$version"; then
            [ "$version" = "$newest" ] || say "WARNING: the mirror lacks $1 $newest, the older $version is used"
            echo "$version"
            return 0
        fi
    done
    [ ! -f "$CACHE/fetch.log" ] || cat "$CACHE/fetch.log" >&2
    return 1
}

# Unpacks source package $1, version $2, with Debian's patches, as folder $3.
apt_unpack() {
    rm -rf "$3"
    dpkg-source --no-check -x "$CACHE/sources/$1_$2/"*.dsc "$3" >/dev/null 2>"$3.log" || {
        cat "$3.log" >&2
        die "source package $1 $2 was not unpacked"
    }
}
