#!/usr/bin/env bash
# make screenshots: takes the pictures of doc/img anew. With SERVER (and TOKEN_FILE) of a daemon whose jobs have trained; else of ResNets that
# are trained on Fashion-MNIST (Debian's dataset-fashion-mnist) for it, some ten minutes on two cores that do nothing else.
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/lib/daemon.sh.inc"
out=$(realpath "${1:?usage: screenshots.sh FOLDER}") || exit
if [ "${SERVER:-}" ]; then
    needs npm node chromium
    browser_install "$work/browser" screenshots.mjs
    TRAINCTL_TOKEN=$(cat "${TOKEN_FILE:-/dev/null}") HOME=$work/browser node "$work/browser/screenshots.mjs" "$SERVER" "$out" || exit
else
    data=/usr/share/datasets/fashion-mnist
    [ -d "$data" ] || { echo "apt-get install dataset-fashion-mnist" >&2; exit 1; }
    "$top_builddir/tests/bin/train-prep" convert --from idx --in "$data" --out "$work/data" --shards 8 --eval-shards 2 --seed 1 --pad 2 >"$work/prep.log" ||
        { cat "$work/prep.log" >&2; exit 1; }
    settings=("slots = 2")
    worker=tests/bin/train-worker
    story screenshots.mjs "$out" "$work/data/train" "$work/data/validation" || exit
fi
for picture in "$out"/*.png; do
    [ "$(stat -c %s "$picture")" -lt 204800 ] || { echo "$picture is larger than 200 KB" >&2; exit 1; }
done
