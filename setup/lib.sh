# Shared by ./quickstart and ./runtests: install what is missing, build. Source it from the top folder.
# shellcheck shell=bash

# configure and libtool run their scripts with it: dash starts in half the time that bash takes.
export CONFIG_SHELL=/bin/sh

say() {
    printf '\n== %s\n' "$*"
}

die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# packages_in FILE...: the names in lists of setup/
packages_in() {
    sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$@"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "this needs root: $*"
    fi
}

is_installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# install_packages FILE...: apt-get for what is missing; nothing to do is silent and needs no root
install_packages() {
    local missing=() name
    for name in $(packages_in "$@"); do
        is_installed "$name" || missing+=("$name")
    done
    # Any npm will do: Debian's, or a newer one that conflicts with it.
    command -v npm >/dev/null || missing+=(nodejs npm)
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null ||
        die "these Debian packages are missing and there is no apt-get: ${missing[*]}"
    say "installing ${missing[*]}"
    as_root apt-get -q update
    # RUNLEVEL=1 keeps packages with services from starting them.
    as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get -q install -y --no-install-recommends "${missing[@]}"
}

# build DIR [configure options]: an out-of-tree build, configured again only when it has to be. All are in _build/NAME: as far from the
# sources as those of distcheck and of the packages, so that ccache knows what it compiled for another one.
build() {
    local dir=$1 top=$PWD
    shift
    if ! [ configure -nt configure.ac ] || ! [ Makefile.in -nt Makefile.am ] ||
        [ -n "$(find ./*/Makefile.inc -newer Makefile.in)" ]; then
        ./bootstrap
    fi
    mkdir -p "$dir"
    if ! [ "$dir/config.status" -nt configure ] || ! [ "$(cat "$dir/configured-with" 2>/dev/null)" = "$*" ]; then
        (cd "$dir" && "$top/configure" "$@")
        printf '%s\n' "$*" >"$dir/configured-with"
    fi
    make -C "$dir" -j"$(nproc)"
}
