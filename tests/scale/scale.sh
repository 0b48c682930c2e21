#!/bin/bash
# The sum between machines on simulated clusters: 16 nodes of two ranks each, and the numbers of doc/scaling.md for more.
# make simulate-cluster simulates all.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
here=$(cd "$top_srcdir/tests/scale" && pwd) build=$top_builddir

# What is shown is what the file says.
shown=$(mktemp -d)
trap 'rm -rf "$shown"' EXIT
mkdir -p "$shown/doc/img" "$shown/web/charts" "$shown/tests" "$shown/build/tests/scale"
ln -s "$here" "$shown/tests/scale"
cp "$top_srcdir/doc/scaling.md" "$shown/doc"
ok "what simulated.tsv says can be shown" "$here/show" "$shown"
for file in doc/scaling.md doc/img/scaling.svg web/charts/simulated.js; do
    ok "$file shows tests/scale/simulated.tsv (tests/scale/show)" cmp "$top_srcdir/$file" "$shown/$file"
done
is "$(awk -v show=broken -f "$here/report.awk" "$here/simulated.tsv")" "" "the sums between machines cost no more than they may"

command -v smpicc >/dev/null || { skip "clusters of 16 nodes" "SimGrid's SMPI is not installed: libsimgrid-dev"; done_testing; }
cp "$build/config.h" "$shown/build"
build=$shown/build
ok "libtraincomm is built for SMPI as it is" "$here/build" "$build"
for shape in "4 2" "16 1" "6 2" "3 1"; do
    read -r nodes ranks <<<"$shape"
    is "$("$here/run" "$build" "$nodes" "$ranks" full sums=10007 2>&1)" "0 of 10007 sums are wrong" \
        "$nodes nodes of $ranks: all ranks have the sums, bit by bit"
done

# point KIND RANKS_PER_NODE NODES JITTER: sets $ideal, $alone, $step (ms) and $said
point() {
    local line
    line=$("$here/simulate" point "$build" "$1" "$2" "$3" full "$4" 0 fp32 2>"$shown/said")
    said=$(cat "$shown/said")
    read -r ideal alone step _ <<<"$line"
    echo "# $*: $line"
}
least() { # NAME PERCENT WHOLE SHARE
    awk -v whole="$3" -v share="$4" -v least="$2" 'BEGIN { exit !(share > 0 && 100 * whole / share >= least) }'
    report $? "$1: at least $2 %" "$3 ms of $4 ms"
}
point surfsara 2 16 0
least "16 of SURFsara's nodes" 98.5 "$ideal" "$step"
like "$said" "during backward, driven by calls" "the library has found out when to send"
known=$(awk -F '\t' '$1 == "surfsara" && $2 == 2 && $3 == 16 && $4 == "full" && $5 == 0 && $6 == 0 && $7 == "fp32" { print $10 }' "$here/simulated.tsv")
ok "as simulated.tsv says, within 0.5 % (make simulate-cluster)" \
    awk -v known="${known:-0}" -v step="${step:-0}" 'BEGIN { print known, step; exit !(step > 0 && step / known < 1.005 && known / step < 1.005) }'
point surfsara 2 4 0
first=$step
point surfsara 2 4 0
is "$step" "$first" "to the last digit the same again"
point fast 2 16 0
least "16 fast nodes" 97.5 "$ideal" "$step"
point surfsara 1 16 0.02
least "with 2 % of jitter, of what the slowest node's computing leaves" 99 "$alone" "$step"
done_testing
