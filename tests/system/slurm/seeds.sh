#!/usr/bin/env bash
# doc/seeds.md, item by item: each command and block of it is run unchanged, by one shell, against a real daemon and real Slurm,
# and has to print what the page shows; each part of a job document is planned; each key that is named exists. So that it is
# quick, the folders hold small data, and what trains on them has the stem of ImageNet and is a sixteenth as wide (half in bf16, whose channels are multiples of 32).
# tests/system/slurm/seeds.py describes how the page is read.
# shellcheck source=tests/system/slurm/slurm.sh.inc
. "${top_srcdir:?is set by make check}/tests/system/slurm/slurm.sh.inc"
# shellcheck source=tests/system/idx.sh.inc
. "$top_srcdir/tests/system/idx.sh.inc"
needs jq curl pkg-config
/usr/bin/python3 -c 'import PIL' 2>/dev/null || skip_all "needs python3-pil"
page=$top_srcdir/doc/seeds.md
schema=$top_srcdir/schema/job.schema.json

# ------------------------------------------------------------------ small data in the place of ImageNet

mkdir "$work/idx" "$work/in" "$work/bin" "$work/here"
idx 96 train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz
idx 50 t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz
ImageNet() { # the tars, unpacked with a flat validation, and as class folders
    local tar image label
    /usr/bin/python3 "$top_srcdir/tests/system/data/prep_data.py" imagenet "$work/in" || return
    mkdir -p "$work/raw/train" "$work/raw/validation" "$work/folders/val" "$work/folders/tf_records"
    tar -xf "$work/in/ILSVRC2012_img_train.tar" -C "$work/raw/train" && tar -xf "$work/in/ILSVRC2012_img_val.tar" -C "$work/raw/validation" || return
    for tar in "$work"/raw/train/*.tar; do
        mkdir "${tar%.tar}" && tar -xf "$tar" -C "${tar%.tar}" && rm "$tar" || return
    done
    cp "$work/in/labels.txt" "$work/raw/synset_labels.txt"
    cp -r "$work/raw/train" "$work/folders/train"
    for image in "$work"/raw/validation/*; do
        read -r label || return
        mkdir -p "$work/folders/val/$label" && cp "$image" "$work/folders/val/$label" || return
    done <"$work/in/labels.txt"
}
ok "there is something like ImageNet" ImageNet

# ------------------------------------------------------------------ programs, daemon, Slurm

for program in trainctl train-prep; do
    printf '#!/bin/sh\nexec %s "$@"\n' "$top_builddir/$program" >"$work/bin/$program"
done
# libtraincomm as it is built here; tests/system/commands/traincomm.sh uses the installed one
cat >"$work/bin/pkg-config" <<END
#!/bin/sh
echo "-I$top_srcdir/worker/comm -L$top_builddir/worker/comm/.libs -Wl,-rpath,$top_builddir/worker/comm/.libs -ltraincomm \$(/usr/bin/pkg-config --cflags --libs ompi-c zlib)"
END
chmod +x "$work"/bin/*
export PATH=$work/bin:$PATH
no_slurm='' said=''
cluster_starts || no_slurm=${said#skip: }
touch "$work/setup.sh"
start_slurm_daemon
export TRAINCTL_SERVER=unix:$socket TRAIND_PRESETS=$top_srcdir/etc/presets
unset TRAINCTL_TOKEN

# ------------------------------------------------------------------ what tests/system/slurm/seeds.py says

line=0 name='' problems=() left_out='' tried=''
row() { # ends the one before
    if [ -n "$left_out" ]; then
        skip "line $line: $name" "$left_out"
    elif [ -n "$tried" ]; then
        report $((${#problems[@]} > 0)) "line $line: $name" "${problems[@]}"
    fi
    line=$1 name=$2 problems=() left_out='' tried=''
}
try() {
    local status=0 failed=''
    tried=yes
    [[ -z $no_slurm || $1 != *launcher=slurm* ]] || left_out=$no_slurm
    [ -z "$left_out" ] || return
    trap 'status=$? failed=$BASH_COMMAND' ERR
    eval "$1" >"$work/said" 2>&1 </dev/null
    trap - ERR
    [ "$status" = 0 ] || problems+=("$failed: exit status $status" "$(cat "$work/said")")
}
refused() {
    tried=yes
    eval "$1" >"$work/said" 2>&1 && problems+=("$1 is not refused")
}
answers() { # a number must not go on
    local said
    said="$(tr -s ' \n' ' ' <"$work/said") "
    [[ -n $left_out || $said == *"$1"* && ! ($1 == *[0-9] && $said != *"$1"[!0-9]*) ]] ||
        problems+=("no \"$1\" in what it said:" "$(head -c 2000 "$work/said")")
}
plan() {
    tried=yes
    jq '{data: {train: "synthetic"}} * .' <<<"$1" | trainctl plan - >"$work/said" 2>&1 || problems+=("$1" "$(cat "$work/said")")
}
key() {
    tried=yes
    case $1 in
        slurm.*) grep -qF ".It Cm $1" "$top_srcdir/man/traind.conf.5" ;;
        traincomm_*) grep -qw "$1" "$top_srcdir/man/traincomm.3" ;;
        *) jq -e --arg key "$1" 'getpath(["properties"] + ($key | split(".") | join(" properties ") | split(" ")))' "$schema" >/dev/null ;;
    esac || problems+=("there is no $1")
}

sed -e "s|^downloads=/data[^ ]*|downloads=$work/in|; s|^raw=/data[^ ]*|raw=$work/raw|; s|^IMAGENET_HOME=/data[^ ]*|IMAGENET_HOME=$work/folders|" \
    -e "s|^imagenet=[^ ]*|imagenet=$work/imagenet|; s|^scratch=[^ ]*|scratch=$work/scratch|; s|^sources=[^ ]*|sources=$top_srcdir|" \
    -e "s|--in /usr/share/datasets/fashion-mnist|--in $work/idx|g; s|--shards 1024 --eval-shards 128|--shards 8 --eval-shards 4|g; s|in 1024 shards|in 8 shards|" \
    -e 's|"arch": "resnet18", "stem": "small", |"arch": "resnet18", "width": 0.0625, |' \
    -e 's|--set precision=bf16|& --set model.width=0.5|' \
    -e 's|./fashion-mnist /usr/share/datasets/fashion-mnist 1$|& 6400|; s|trainctl bench --arch resnet18|& --workers 1|' \
    -e "s|--node 0 --nodes 256|--node 0 --nodes 4|; s|mpirun -np 2|mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2|" "$page" >"$work/page.md"
/usr/bin/python3 "$top_srcdir/tests/system/slurm/seeds.py" "$work/page.md" >"$work/items.sh"
is $? 0 "the page is read"
cd "$work/here" || exit 1
# shellcheck source=/dev/null
. "$work/items.sh"
rows=$(grep -c '^row' "$work/items.sh") commands=$(grep -c '^try' "$work/items.sh")
ok "$rows rows and blocks, with $commands commands" test "$rows" -gt 100 -a "$commands" -gt 50
ok "the daemon stops" stop_daemon
done_testing
