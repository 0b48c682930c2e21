#!/usr/bin/env bash
# make screenshots: takes the pictures of doc/img anew, of ResNets that train on Fashion-MNIST (Debian's dataset-fashion-mnist) for
# some minutes.
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/lib/daemon.sh.inc"
out=${1:?usage: screenshots.sh FOLDER}
data=/usr/share/datasets/fashion-mnist
[ -d "$data" ] || { echo "apt-get install dataset-fashion-mnist" >&2; exit 1; }
"$top_builddir/tests/bin/train-prep" convert --from idx --in "$data" --out "$work/data" --shards 8 --eval-shards 10 --seed 1 --pad 2 >"$work/prep.log" ||
    { cat "$work/prep.log" >&2; exit 1; }
# A tenth of the test images, so that evaluations are short.
mkdir "$work/eval" && mv "$work/data/validation/validation-00000-of-00010" "$work/eval/validation-00000-of-00001" || exit 1
settings=("slots = 2")
worker=tests/bin/train-worker
story screenshots.mjs "$work/data/train" "$work/eval" "$(realpath "$out")"
for picture in "$out"/*.png; do
    [ "$(stat -c %s "$picture")" -lt 204800 ] || { echo "$picture is larger than 200 KB" >&2; exit 1; }
done
