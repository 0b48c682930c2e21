#!/usr/bin/env bash
# A small real job learns: ResNet-18 of a sixteenth of the width on Fashion-MNIST, two ranks, a hundred steps, judged on all 10,000 test images.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
fashion=/usr/share/datasets/fashion-mnist
[ -d $fashion ] || skip_all "needs the Debian package dataset-fashion-mnist"
private_folder
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

ok "train-prep makes shards of all 70,000 images" "$top_builddir/tests/bin/train-prep" convert --from idx --in $fashion \
    --out "$work/data" --shards 4 --eval-shards 2
cat >"$work/job.json" <<END
{"model": {"classes": 10, "arch": "resnet18", "width": 0.0625, "image_size": 32, "winograd": false}, "batch_per_worker": 32, "steps": 100, "lr": {"warmup_epochs": 0.02},
 "data": {"train": "$work/data/train", "eval": "$work/data/validation", "preprocess": "torchvision", "augment": false},
 "cluster": {"workers_per_node": 2, "threads_per_worker": 1}, "checkpoint": {"disable": true}}
END
ok "it trains" \
    mpirun --oversubscribe --bind-to none -np 2 "$top_builddir/tests/bin/train-worker" --job "$work/job.json" --run-dir "$work/run"
result=$work/run/result.json
is "$(jq .eval_images "$result")" 10000 "all test images were judged"
# About 77 %. Without Winograd, as then no kernel is chosen by measuring: after so few steps the last bits count.
is "$(jq '.top1 >= 0.7' "$result")" true "top-1 is at least 70 % ($(jq .top1 "$result"))"
is "$(jq '.top5 >= 0.95' "$result")" true "top-5 is at least 95 % ($(jq .top5 "$result"))"
first=$(jq 'select(.type == "step" and .step == 1) | .loss' "$work/run/attempt-1/events.jsonl")
is "$(jq -n "$first > 2 and $first < 3.5")" true "the first loss is near ln 10 ($first)"
done_testing
