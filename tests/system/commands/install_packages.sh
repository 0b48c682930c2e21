#!/usr/bin/env bash
# What ./quickstart and ./runtests install (setup/lib.sh), by a real apt-get and dpkg on a private system with an archive of small
# packages: nothing that is installed is upgraded or removed without need, and a lock is waited for.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
needs apt-get dpkg-deb
[ "$(id -u)" = 0 ] || skip_all "dpkg needs root"
work=$(mktemp -d)
trap 'kill $holder 2>/dev/null; rm -rf "$work"' EXIT
holder=
chmod 755 "$work"
arch=$(dpkg --print-architecture)

package() { # NAME VERSION [DEPENDS [CONTROL]]: into the archive
    local dir=$work/build/$1
    rm -rf "$dir"
    mkdir -p "$dir/DEBIAN" "$work/archive"
    printf '%s\n' "Package: $1" "Version: $2" "Architecture: $arch" "Maintainer: a test <test@example.org>" "Description: a test" \
        ${3:+"Depends: $3"} ${4:+"$4"} >"$dir/DEBIAN/control"
    dpkg-deb -Znone -b "$dir" "$work/archive/$1_$2.deb" >/dev/null
}
index() {
    (cd "$work/archive" && for deb in *.deb; do
        dpkg-deb -f "$deb"
        printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$deb" "$(stat -c %s "$deb")" "$(sha256sum "$deb" | cut -d ' ' -f 1)"
    done >Packages)
}
system() { # PACKAGE...: an empty one, with these of the archive
    rm -rf "$work/root"
    mkdir -p "$work/root/etc/apt/preferences.d" "$work/root/var/lib/dpkg/"{info,updates,triggers} "$work/root/var/lib/apt/lists/partial" "$work/root/var/cache/apt/archives/partial" \
        "$work/root/var/log/apt"
    touch "$work/root/var/lib/dpkg/status" "$work/root/var/lib/dpkg/available"
    echo "deb [trusted=yes] file:$work/archive ./" >"$work/root/etc/apt/sources.list"
    [ $# = 0 ] || (cd "$work/archive" && dpkg --root="$work/root" --force-all -i "$@") >/dev/null 2>&1
}
cat >"$work/apt.conf" <<END
Dir "$work/root";
Dir::State::status "$work/root/var/lib/dpkg/status";
Dir::Etc::trusted "/etc/apt/trusted.gpg";
DPkg::Options { "--root=$work/root"; "--force-script-chrootless"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
END
export APT_CONFIG=$work/apt.conf DPKG_ADMINDIR=$work/root/var/lib/dpkg
cat >"$work/install" <<END
cd "$top_srcdir" && . setup/lib.sh && set -euo pipefail
npm() { :; }
apt-cache() { echo >>"$work/calls"; command apt-cache "\$@"; }
install_packages "$work/list"
END
install() { # PACKAGE...: sets $said and $status
    printf '%s\n' "# what is asked for" "$@" >"$work/list"
    rm -f "$work/calls"
    bash "$work/install" >"$work/said" 2>&1
    status=$?
    said=$(cat "$work/said")
}
installed() {
    dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\n' | sed -n 's/^installed //p' | paste -s -d ,
}

for name in {a..w}; do
    package "$name" 1.0
done
for version in 252.36 252.38; do
    package libx0 $version '' 'Source: x'
    package libx-dev $version "libx0 (= $version)" 'Source: x'
    package x $version "libx0 (= $version)"
done
package tool 1.0 'libx-dev'
package tool 1.1 'libx-dev'
package other 1.0
package rival 1.0 '' 'Conflicts: other'
package newer 1.0 'libx0 (>= 252.38)'
index

system libx0_252.36.deb x_252.36.deb
install libx-dev other
is "$status $(installed)" "0 libx-dev 252.36,libx0 252.36,other 1.0,x 252.36" "a -dev package is taken for the library that is installed"
like "$said" 'installing libx-dev other: 2 packages, [0-9]+ MB to download, [0-9]+ MB on disk' "what is installed is listed with its size"
is "$(grep -c upgraded\ to "$work/said")" 0 "and nothing is upgraded"
install libx-dev other
is "$status:$said" "0:" "a second time there is nothing to do"

system libx0_252.36.deb x_252.36.deb
install libx-dev {a..w}
is "$status $(wc -l <"$work/calls")" "0 3" "the archive is asked three times, however many packages there are"

system libx0_252.36.deb x_252.36.deb
install other tool
is "$status $(installed)" "0 libx-dev 252.36,libx0 252.36,other 1.0,tool 1.1,x 252.36" "also where another package needs it"

system libx0_252.36.deb x_252.36.deb
install newer
is "$status $(installed | tr ',' '\n' | grep -v '^x ' | paste -s -d ,)" "0 libx0 252.38,newer 1.0" "what a package needs is upgraded"
like "$said" 'libx0 252.36 is upgraded to 252.38: .*newer 1.0.* not available for 252.36' "and a message gives the reason"

rm "$work/archive/libx-dev_252.36.deb"
index
system libx0_252.36.deb
install libx-dev
is "$status $(installed)" "0 libx-dev 252.38,libx0 252.38" "where the archive has no -dev of the old version the library is upgraded"
like "$said" 'libx0 252.36 is upgraded to 252.38: libx-dev 252.38 is not available for 252.36' "and a message gives the reason"

system other_1.0.deb
install rival
is "$status $(installed)" "1 other 1.0" "nothing is removed for a package"
like "$said" 'rival cannot be installed beside other, which apt-get would remove' "and it is reported"

# ---- ./quickstart asks on a terminal
if command -v script >/dev/null; then
    mkdir -p "$work/tree/setup" "$work/bin"
    cp "$top_srcdir/quickstart" "$work/tree"
    cp "$top_srcdir/setup/lib.sh" "$work/tree/setup"
    printf '%s\n' libx-dev other >"$work/tree/setup/packages.build"
    touch "$work/tree/setup/packages.quickstart"
    printf '#!/bin/sh\n' >"$work/bin/npm"
    chmod +x "$work/bin/npm"
    quickstart() { # ANSWER
        said=$(cd "$work/tree" && PATH=$work/bin:$PATH script -qec './quickstart --no-run' /dev/null <<<"$1" | tr -d '\r' | tr '\n' ' ')
    }
    system libx0_252.38.deb
    quickstart n
    like "$said" 'libx-dev other.*2 packages, 0 MB to download, 0 MB on disk.*\[Y/n\].*nothing was installed' \
        "quickstart lists what is missing and asks"
    is "$(installed)" "libx0 252.38" "no: nothing is installed"
    quickstart y
    is "$(installed)" "libx-dev 252.38,libx0 252.38,other 1.0" "yes: they are"
    is "$(paste -s -d ' ' "$work/tree/_state/installed-packages")" "libx-dev other" "and their names are kept for --remove"
fi

# ---- a release of Debian's own
printf '%s\n' 'VERSION_ID="12"' >"$work/os-release"
is "$(bash -c '. "$1/setup/lib.sh"; printf "%s\n" "a # why" "" "b 12 13" "c 13" "d 12" "e-14" >"$2/list"; release=12; packages_in "$2/list"' sh "$top_srcdir" "$work" | paste -s -d ' ')" \
    "$(case $(. /etc/os-release; echo "$VERSION_ID") in 12) echo a b d e-14 ;; 13) echo a b c e-14 ;; *) echo a e-14 ;; esac)" "a name may be for some releases only"

# ---- a lock, as unattended-upgrades holds it
for lock in lib/apt/lists/lock lib/dpkg/lock-frontend cache/apt/archives/lock; do
    system
    python3 -c 'import fcntl, os, sys, time
f = open(sys.argv[1], "w")
fcntl.lockf(f, fcntl.LOCK_EX)
open(sys.argv[2], "w")
while not os.path.exists(sys.argv[3]): time.sleep(0.1)' "$work/root/var/$lock" "$work/held" "$work/go" &
    holder=$!
    eventually test -e "$work/held"
    (install other; echo "$status $(installed)" >"$work/result") &
    waiter=$!
    ok "$lock: it is said that it waits" eventually grep -qiE 'waiting for (up to|cache lock)' "$work/said"
    touch "$work/go"
    wait $holder $waiter
    is "$(cat "$work/result")" "0 other 1.0" "$lock: and is got as soon as it is free"
    rm -f "$work/held" "$work/go" "$work/said"
done
done_testing
