#!/usr/bin/env bash
# README and tutorial, pasted by newcomers into bare systems: as root and as a user, on Debian 12 and 13. For make check-newcomer; root only.
#
# Usage: newcomer.sh [FOLDER]
#
# The systems are created in FOLDER (_build/newcomer) and kept, bare, with the packages that were downloaded. NEWCOMER_ON="12 13" and NEWCOMER_AS="root
# user" choose among them. See also visit.sh.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:-$top/_build/newcomer}
mkdir -p "$folder"
failed=0
for release in ${NEWCOMER_ON-12 13}; do
    for who in ${NEWCOMER_AS-root user}; do
        echo "# Debian $release, $who"
        DEBIAN_FRESH=yes DEBIAN_MINUTES=60 "$top/setup/in-debian" "$release" "$folder/debian$release" env \
            "NEWCOMER_FACTOR=${NEWCOMER_FACTOR-2}" "NEWCOMER_SECONDS=${NEWCOMER_SECONDS-60}" "NEWCOMER_TOP1=${NEWCOMER_TOP1-0.8}" \
            bash tests/newcomer/visit.sh "$who" >"$folder/debian$release-$who.tap" || failed=$((failed + 1))
        cat "$folder/debian$release-$who.tap"
    done
done
echo "# $failed failed; output: $folder/debian*.tap"
[ $failed = 0 ]
