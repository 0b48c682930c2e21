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

# packages_in FILE...: the names in lists of setup/ that are for this release of Debian
packages_in() {
    local release
    release=$(. /etc/os-release 2>/dev/null && echo "${VERSION_ID-}")
    awk -v release="$release" '{ sub(/#.*/, "") } NF == 1 || NF > 1 && " " $0 " " ~ " " release " " { print $1 }' "$@"
}

# What links fastest: gold, which is on its way out (Debian 13 has it in a package of its own), or mold; else the usual one.
linker_flags() {
    local name
    for name in gold mold; do
        command -v "ld.$name" >/dev/null || continue
        echo "-fuse-ld=$name"
        return
    done
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

apt_seconds=${APT_SECONDS-900} # that another program may hold the lock: unattended-upgrades often does on a fresh machine

# apt_get ARGUMENT...: waits for its locks; those of the lists and of the archives it does not wait for by itself
apt_get() {
    local said until=$((SECONDS + apt_seconds)) status waits=no
    said=$(mktemp)
    while :; do
        # RUNLEVEL=1 keeps packages with services from starting them.
        as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -q -o DPkg::Lock::Timeout="$apt_seconds" "$@" \
            2> >(tee "$said" >&2) && status=0 || status=$?
        wait $! 2>/dev/null || : # for what was said
        [ $status -ne 0 ] && [ $SECONDS -lt $until ] && grep -q '^E: Could not get lock' "$said" || break
        [ $waits = yes ] || say "apt-get is in use by another program: waiting for up to $apt_seconds s until it is done"
        waits=yes
        sleep 3
    done
    rm -f "$said"
    return $status
}

# apt_plan NAME...: what would be done, one a line: "new NAME VERSION", "upgrade NAME VERSION OLD", "remove NAME"
apt_plan() {
    LC_ALL=C apt-get -q -s install --no-install-recommends "$@" 2>/dev/null | awk '
        $1 == "Inst" { name = $2; sub(/:.*/, "", name); old = $3 ~ /^\[/ ? substr($3, 2, length($3) - 2) : ""
            version = $(old == "" ? 3 : 4); sub(/^\(/, "", version)
            print old == "" ? "new" : "upgrade", name, version, old }
        $1 == "Remv" { print "remove", $2 }' || :
}

source_of() { # NAME[=VERSION]
    apt-cache show "$1" 2>/dev/null | awk '$1 == "Package:" && !name { name = $2 } $1 == "Source:" && !from { from = $2 } END { print from ? from : name }'
}

# match_installed NAME...: sets chosen to them, with the version of the installed packages of the same source where the newest one would upgrade
# these: libsystemd-dev is for one version of libsystemd0 alone. Says what has to be upgraded all the same.
match_installed() {
    local plan kind name version old source i k of=() left=()
    chosen=("$@")
    plan=$(apt_plan "$@")
    while read -r kind name version old; do
        [ "$kind" != upgrade ] || of+=("$(source_of "$name=$version") $old")
    done <<<"$plan"
    [ ${#of[@]} -gt 0 ] || [[ $plan == *remove* ]] || return 0
    while read -r kind name version old; do
        [ "$kind" = new ] || continue
        source=$(source_of "$name=$version")
        for i in "${of[@]}"; do
            [ "${i% *}" = "$source" ] && apt-cache show "$name=${i##* }" 2>/dev/null | grep -q . || continue
            for k in "${!chosen[@]}"; do
                [ "${chosen[k]}" != "$name" ] || unset "chosen[k]"
            done
            chosen+=("$name=${i##* }")
            break
        done
    done <<<"$plan"
    plan=$(apt_plan "${chosen[@]}")
    if [ -z "$plan" ]; then # they do not go together
        chosen=("$@")
        plan=$(apt_plan "$@")
    fi
    while read -r kind name version old; do
        case $kind in
        remove) left+=("$name") ;;
        upgrade) echo "$name $old is upgraded to $version: $(what_needs "$name" "$old" "$plan") not to be had for $old" ;;
        esac
    done <<<"$plan"
    [ ${#left[@]} -eq 0 ] || {
        echo "$* cannot be installed beside ${left[*]}, which apt-get would remove" >&2
        return 1
    }
}

# what_needs NAME OLD PLAN: the packages of the plan that depend on another version of it
what_needs() {
    local kind name version rest need by=()
    while read -r kind name version rest; do
        [ "$name" != "$1" ] || continue
        while read -r need; do
            # shellcheck disable=SC2086 # relation and version
            dpkg --compare-versions "$2" $need || by+=("$name $version")
        done < <(apt-cache show "$name=$version" 2>/dev/null | sed -nE 's/^(Pre-)?Depends: //p' | tr ',|' '\n\n' |
            sed -nE "s/^ *$1(:any)? \\(([<>=]+) ([^)]*)\\).*/\\2 \\3/p")
    done <<<"$3"
    [ ${#by[@]} -gt 0 ] && printf '%s is' "$(printf '%s\n' "${by[@]}" | sort -u | paste -s -d , | sed 's/,/, /g')" || printf 'what is installed is'
}

# install_packages FILE...: apt-get for what is missing; nothing to do is silent and needs no root. What is installed is left as it is, unless
# something cannot be had for it.
install_packages() {
    local missing=() chosen=() name
    for name in $(packages_in "$@"); do
        is_installed "$name" || missing+=("$name")
    done
    # Any npm will do: Debian's, or a newer one that conflicts with it.
    command -v npm >/dev/null || missing+=(nodejs npm)
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null ||
        die "these Debian packages are missing and there is no apt-get: ${missing[*]}"
    say "installing ${missing[*]}"
    apt_get update
    match_installed "${missing[@]}" || return 1
    apt_get install -y --no-install-recommends --no-remove "${chosen[@]}"
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
