#!/usr/bin/env bash
# doc/imagenet.md and doc/slurm.md from top to bottom: each command as it stands, and each that is shown with what it prints prints
# that. Only the sizes are others: 1 node for 256, some hundred images for 1.3 million, and a network that is as much smaller; what
# neither opens the data nor starts a training (plan, predict, the batch script) keeps the pages' own numbers.
# shellcheck source=tests/system/slurm/slurm.sh.inc
. "${top_srcdir:?is set by make check}/tests/system/slurm/slurm.sh.inc"
# shellcheck source=tests/system/slurm/pages.sh.inc
. "$top_srcdir/tests/system/slurm/pages.sh.inc"
/usr/bin/python3 -c 'import PIL' 2>/dev/null || skip_all "needs python3-pil"

# ------------------------------------------------------------------ programs, data, Slurm

mkdir -p "$work/in" "$work/bin" "$work/home/.config/traind" "$work/here"
for program in trainctl train-prep; do
    printf '#!/bin/sh\nexec %s "$@"\n' "$top_builddir/$program" >"$work/bin/$program"
done
chmod +x "$work"/bin/*
export PATH=$work/bin:$PATH HOME=$work/home OMP_NUM_THREADS=1
ok "there are tars like ImageNet's" /usr/bin/python3 "$top_srcdir/tests/system/data/prep_data.py" imagenet "$work/in"
start_cluster 1
node=$(sinfo -h -o %n)
start_slurm_daemon
export TRAINCTL_SERVER=unix:$socket
unset TRAINCTL_TOKEN
cd "$work/here" || exit 1

# ------------------------------------------------------------------ the pages' commands

page=imagenet.md
sed -n '/^    \$ cat job.json/,/^    \$ trainctl/p' "$top_srcdir/doc/imagenet.md" | sed '1d;$d;s/^    //' >job.json
# The page's job, with the network and the data in proportion, and with one node: here all nodes have one scratch.
jq --arg at "$work/scratch/imagenet" '.cluster += {nodes: 1, workers_per_node: 2} |
    .data += {train: "\($at)/train", eval: "\($at)/validation"} | del(.data.train_images, .data.eval_images) |
    . + {model: {arch: "resnet18", image_size: 32, width: 0.0625, classes: 12}, batch_per_worker: 4, epochs: 1, lr: {warmup_epochs: 0, base: 0.01}}' job.json >scaled.json
sed -e "s|DOWNLOADS|$work/in|; s|/shared/imagenet|$work/shared/imagenet|g; s|--to /scratch/imagenet --node I --nodes 256|--to $work/scratch/imagenet --node 0 --nodes 1|" \
    -e "s|convert --from imagenet .*|& --shards 8 --eval-shards 2|; s|^    trainctl submit job.json|    trainctl submit scaled.json|" \
    -e "s|--arch resnet50 --image-size 224 --batch 48 --workers 2 --threads 24|--arch resnet18 --image-size 32 --batch 2 --workers 1 --threads 1 --steps 2|" "$top_srcdir/doc/imagenet.md" >"$work/imagenet.md"
walk "$work/imagenet.md"
is "$walked" 10 "$page: ten commands"
is "$(job 1 state)" succeeded "the job of the page has trained"

page=slurm.md
sed -n '/^with `big.json`/,/}}$/p' "$top_srcdir/doc/slurm.md" | sed -n 's/^    //p' | sed "s|/shared/imagenet|$work/shared/imagenet|g" >big.json
sed -e "s|/shared/imagenet|$work/shared/imagenet|g; s|http://127.0.0.1:7077|$url|; s|/etc/traind/node.token|$work/home/node.token|g; s|n7|$node|" \
    -e 's|"arch": "resnet50", "classes": 1000}|"arch": "resnet18", "image_size": 32, "width": 0.0625, "classes": 12}, "steps": 2, "batch_per_worker": 4|' \
    -e 's|"nodes": 2, "workers_per_node": 4, "threads_per_worker": 12|"nodes": 1, "workers_per_node": 2, "threads_per_worker": 1|' \
    -e 's|trainctl plan --explain big.json|& --train-images 1281167 --eval-images 50000|' \
    -e "s|^    sinfo -R|    scontrol update nodename=$node state=drain reason=slow\n&|" \
    -e 's/^    trainctl \(show\|watch\) 1/    trainctl \1 2/' "$top_srcdir/doc/slurm.md" >"$work/slurm.md"
trainctl token create --role submit user >"$HOME/.config/traind/token" 2>/dev/null
call --unix-socket "$socket" -d '{"kind": "AMD EPYC 9534", "cores": 64, "phase": "prolog", "outcome": "fine", "t": 1789.25, "gflops": 102}' "/v1/nodes/$node/report"
want 200 "the node has reported"
walk "$work/slurm.md"
is "$walked" 10 "$page: ten commands"
is "$(job 2 state)" succeeded "the job of the page has trained"
ok "the daemon stops" stop_daemon
done_testing
