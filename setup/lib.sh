# Shared by ./quickstart, ./runtests and setup/peer-debian13: ask, install what is missing, build. Source it from the top folder.
# shellcheck shell=bash

# configure and libtool run their scripts with it: dash starts in half the time that bash takes.
export CONFIG_SHELL=/bin/sh

say() {
    printf '\n== %s\n' "$*"
}

# note WORDS: what a person should read at once, also where the output goes into a log
note() {
    printf '%s\n' "$*" >&"${note_fd-2}"
}

die() {
    note "$(basename "$0"): $*"
    exit 1
}

# agreed QUESTION DEFAULT: asks on a terminal
agreed() {
    local answer
    printf '%s ' "$1" >&"${note_fd-2}"
    read -r answer || return 1
    case ${answer:-$2} in [Yy] | [Yy]es) ;; *) return 1 ;; esac
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
        [ $waits = yes ] || note "apt-get is in use by another program: waiting for up to $apt_seconds s until it is done"
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

# control_of NAME=VERSION...: what the archive knows of them, one a line: name, version, source, bytes to download, KiB on disk, what they
# depend on; separated by tabs. One call for all: on a machine without apt's cache of packages each call reads all lists anew.
control_of() {
    [ $# -gt 0 ] || return 0
    LC_ALL=C apt-cache show "$@" 2>/dev/null | awk -v OFS='\t' '
        function put() {
            if (name && !seen[name, version]++) print name, version, source ? source : name, size + 0, disk + 0, needs
            name = source = needs = ""; size = disk = 0
        }
        $1 == "Package:" { put(); name = $2 }
        $1 == "Version:" { version = $2 }
        $1 == "Source:" { source = $2 }
        $1 == "Size:" { size = $2 }
        $1 == "Installed-Size:" { disk = $2 }
        /^(Pre-)?Depends: / { sub(/^[^:]*: /, ""); needs = needs ", " $0 }
        END { put() }'
}

# planned KIND PLAN: NAME=VERSION of its packages, one a line; KIND is a pattern of awk
planned() {
    awk -v kind="^($1)\$" '$1 ~ kind { print $2 "=" $3 }' <<<"$2"
}

# match_installed NAME...: sets chosen to them, with the version of the installed packages of the same source where the newest one would upgrade
# these (libsystemd-dev is for one version of libsystemd0 alone), plan to what apt_plan says of them, and control to what control_of does.
# Names what has to be upgraded all the same.
match_installed() {
    local kind name version old names left=()
    chosen=("$@")
    plan=$(apt_plan "$@")
    mapfile -t names < <(planned 'new|upgrade' "$plan")
    control=$(control_of "${names[@]}")
    grep -qE '^(upgrade|remove)' <<<"$plan" || return 0
    choose_installed
    plan=$(apt_plan "${chosen[@]}")
    if [ -z "$plan" ]; then # they do not go together
        chosen=("$@")
        plan=$(apt_plan "$@")
    fi
    mapfile -t names < <(planned 'new|upgrade' "$plan")
    control=$(control_of "${names[@]}")
    while read -r kind name version old; do
        case $kind in
        remove) left+=("$name") ;;
        upgrade) note "$name $old is upgraded to $version: $(what_needs "$name" "$old") not available for $old" ;;
        esac
    done <<<"$plan"
    [ ${#left[@]} -eq 0 ] || {
        note "$* cannot be installed beside ${left[*]}, which apt-get would remove"
        return 1
    }
}

# choose_installed: replaces what plan has as new, in chosen, by the version that an upgraded package of the same source has now
choose_installed() {
    local name version names k
    local -A taken=()
    mapfile -t names < <({ printf '%s\n' "$control" && echo && printf '%s\n' "$plan"; } | awk '
        $0 == "" { second = 1; next }
        !second { source[$1] = $3; next }
        $1 == "upgrade" { old[source[$2]] = old[source[$2]] " " $4 }
        $1 == "new" { new[++count] = $2 }
        END {
            for (i = 1; i <= count; i++)
                for (k = split(old[source[new[i]]], versions); k >= 1; k--) print new[i] "=" versions[k]
        }')
    while read -r name version _; do
        [ -n "$name" ] && [ -z "${taken[$name]-}" ] || continue
        taken[$name]=$version
        for k in "${!chosen[@]}"; do
            [ "${chosen[k]}" != "$name" ] || unset "chosen[k]"
        done
        chosen+=("$name=$version")
    done < <(control_of "${names[@]}")
}

# what_needs NAME OLD: the packages of control that depend on another version of it
what_needs() {
    local name version needs need by=()
    while IFS=$'\t' read -r name version _ _ _ needs; do
        [ "$name" != "$1" ] || continue
        while read -r need; do
            # shellcheck disable=SC2086 # relation and version
            dpkg --compare-versions "$2" $need || by+=("$name $version")
        done < <(tr ',|' '\n\n' <<<"$needs" | sed -nE "s/^ *$1(:any)? \\(([<>=]+) ([^)]*)\\).*/\\2 \\3/p")
    done <<<"$control"
    [ ${#by[@]} -gt 0 ] && printf '%s is' "$(printf '%s\n' "${by[@]}" | sort -u | paste -s -d , | sed 's/,/, /g')" || printf 'what is installed is'
}

# plan_packages FILE...: sets missing to the names of these lists that are not installed, and chosen, plan and control as match_installed does
plan_packages() {
    local name here
    missing=()
    here=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p')
    for name in $(packages_in "$@"); do
        grep -qx "$name" <<<"$here" || missing+=("$name")
    done
    # Any npm will do: Debian's, or a newer one that conflicts with it.
    command -v npm >/dev/null || missing+=(nodejs npm)
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null ||
        die "these Debian packages are missing and there is no apt-get: ${missing[*]}"
    apt_get update
    match_installed "${missing[@]}"
}

# package_sizes: "COUNT packages, N MB to download, M MB on disk", of plan
package_sizes() {
    awk -F '\t' '{ size += $4; disk += $5 } END { printf "%d packages, %.0f MB to download, %.0f MB on disk\n", NR, size / 1e6, disk * 1024 / 1e6 }' <<<"$control"
}

install_planned() {
    apt_get install -y --no-install-recommends --no-remove "${chosen[@]}"
}

# install_packages FILE...: apt-get for what is missing; nothing to do is silent and needs no root. What is installed is left as it is, unless
# something is not available for it.
install_packages() {
    local missing chosen plan control
    plan_packages "$@" || return 1
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing ${missing[*]}: $(package_sizes)"
    install_planned
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
