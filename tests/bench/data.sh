#!/usr/bin/env bash
# Decoding and augmenting on one core, beside bare libjpeg-turbo and beside torchvision with Pillow: data.sh [COUNT]
# makes COUNT (200) photographs of 500x375 in a temporary folder. Needs python3-torchvision and mate-backgrounds.
set -eu
: "${top_srcdir:=.}" "${top_builddir:=.}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
core=$(taskset -cp $$ | sed 's/.*[ ,-]//')
/usr/bin/python3 "$top_srcdir/tests/bench/photos.py" "$work" "${1:-200}"
echo "$(find "$work" -name '*.jpg' | wc -l) photographs, $(($(du -sb "$work" | cut -f1) / 1024 / ${1:-200})) KiB on average"
first=$(taskset -c "$core" /usr/bin/python3 "$top_srcdir/tests/bench/decode.py" "$work")
taskset -c "$core" "$top_builddir/tests/bench/decode" "$work" "$first"
