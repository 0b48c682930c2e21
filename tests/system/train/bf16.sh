#!/usr/bin/env bash
# precision bf16 in whole runs: a resumed one ends with the bits of an undisturbed one, and its fp32 weights are evaluated alike in
# either precision.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
private_folder

# Batch norm and rate so that four steps leave outputs that differ: the loss is well above that of outputs all alike, the logarithm of 10.
model='"arch": "resnet18", "width": 0.5, "classes": 10, "image_size": 32, "bn_decay": 0.1'
cat >"$work/train.json" <<END
{"precision": "bf16", "model": {$model}, "data": {"train": "synthetic", "train_images": 64}, "steps": 4, "batch_per_worker": 8,
 "lr": {"base": 0.1, "scaling": "none", "warmup_epochs": 0, "decay": "none"},
 "cluster": {"workers_per_node": 1, "threads_per_worker": 2}, "checkpoint": {"every_steps": 2, "every_epochs": 0, "keep": 2}}
END
train_worker() { # RUN JOB [OPTION...]
    mkdir -p "$work/$1"
    "$top_builddir/tests/bin/train-worker" --job "$work/$2.json" --run-dir "$work/$1" "${@:3}" >"$work/$1.log" 2>&1
}
weights() { # RUN
    cat "$work/$1"/checkpoints/step-00000004/{model,optimizer}.safetensors | sha256sum
}
event() { # RUN FILTER
    jq -r "$2" "$work/$1/attempt-1/events.jsonl"
}

ok "a training" train_worker whole train
kind=$(event whole 'select(.type == "run_start").bf16')
like "$kind" '^(amx_bf16|avx512_bf16|emulated)$' "its run_start names the library that multiplies"
said=0
[ "$kind" != emulated ] || said=1
is "$(event whole 'select(.type == "warning" and (.message | test("bf16. is emulated"))) | .type' | wc -l)" $said \
    "and the log where it is emulated"
mkdir -p "$work/resumed/checkpoints"
cp -r "$work/whole/checkpoints/step-00000002" "$work/resumed/checkpoints/"
ok "the same from its checkpoint of step 2" train_worker resumed train --resume "$work/resumed/checkpoints/step-00000002"
is "$(weights resumed)" "$(weights whole)" "ends with the same bits"
jq '.loss_scale = 1024' "$work/train.json" >"$work/scaled.json"
ok "the same with loss_scale 1024" train_worker scaled scaled
is "$(weights scaled)" "$(weights whole)" "ends with the same bits"
tiles=$(event whole 'select(.type == "run_start").winograd')
like "$tiles" '^8x64-32:[024]/[024]/[024] 8x32-64:' "run_start names the way of each 3x3 of stride 1"
tiles=$(sed 's|:[^ ]*|:4/2/4|g' <<<"$tiles")
jq --arg tiles "$tiles" '.model.winograd_tiles = $tiles' "$work/train.json" >"$work/tiles.json"
ok "the same with all of these by Winograd" train_worker tiles tiles
is "$(event tiles 'select(.type == "run_start").winograd')" "$tiles" "as its run_start says"
mkdir -p "$work/tiles-resumed/checkpoints"
cp -r "$work/tiles/checkpoints/step-00000002" "$work/tiles-resumed/checkpoints/"
ok "the same from its checkpoint of step 2" train_worker tiles-resumed train --resume "$work/tiles-resumed/checkpoints/step-00000002"
is "$(weights tiles-resumed)" "$(weights tiles)" "ends with the same bits, though its job does not name them"
for precision in bf16 fp32; do
    cat >"$work/$precision.json" <<END
{"mode": "eval", "precision": "$precision", "data": {"eval": "synthetic", "eval_images": 64}, "eval": {"batch": 16},
 "model": {$model, "init": "$work/whole/checkpoints/step-00000004/model.safetensors"}, "cluster": {"workers_per_node": 1, "threads_per_worker": 2}}
END
    ok "an evaluation of its weights in $precision" train_worker "$precision" "$precision"
done
loss() { # RUN
    event "$1" 'select(.type == "eval").loss'
}
ok "both find the same loss within 2 %: $(loss bf16) and $(loss fp32)" \
    awk -v a="$(loss bf16)" -v b="$(loss fp32)" 'BEGIN { exit !(a > 2.5 && b > 2.5 && (a / b - 1) ^ 2 < 0.0004) }'
done_testing
