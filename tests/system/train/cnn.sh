#!/usr/bin/env bash
# The small network of the MNIST example through the daemon, on 28x28 images as they are: it learns, is evaluated, takes OpenBLAS,
# and a sweep over its width, dropout and rate finds the best of them.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../../api/runs.sh.inc"
# shellcheck source=tests/system/idx.sh.inc
. "$top_srcdir/tests/system/idx.sh.inc"
mkdir "$work/idx"
idx 600 train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz
idx 300 t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz
"$top_builddir/tests/bin/train-prep" convert --from idx --in "$work/idx" --out "$work/data" --shards 2 --eval-shards 1 >/dev/null 2>&1
printf "%s\n" "worker = $top_builddir/tests/bin/train-worker" "slots = 2" "data_roots = $work" >"$work/traind.conf"
export OMP_NUM_THREADS=1
start_daemon --config "$work/traind.conf"

base=$(jq -n --arg data "$work/data" '{model: {arch: "cnn"}, data: {train: "\($data)/train", eval: "\($data)/validation"},
    cluster: {workers_per_node: 2, threads_per_worker: 1}, batch_per_worker: 25, epochs: 2, eval: {batch: 100},
    optimizer: {name: "adam"}, lr: {base: 0.001, scaling: "none", warmup_epochs: 0, decay: "none"}, restart: {max: 0}}')
post() { # JQ-EXPRESSION: the base with changes; sets $id
    call -d "$(jq "$1" <<<"$base")" /v1/jobs
    id=$(jq -r '.id // 0' <<<"$body")
}

post '.profile.steps = [2, 4]'
want 201 "a job of the small network"
json '[.spec.model.classes, .spec.model.image_size, .spec.model.dropout, .spec.data.preprocess, .spec.data.augment] | tojson' \
    '[10,28,0.4,"whole",false]' "has its defaults"
ok "it trains" wait_state "$id" succeeded
trained=$id
top1=$(job "$id" top1)
is "$(jq -n "$top1 >= 0.5")" true "two epochs of 600 images give at least 50 % of 300 others ($top1)"
run=$state/jobs/$id
layers=$(cat "$run"/attempt-1/layers.txt "$run"/layers.txt 2>/dev/null)
for layer in conv1 pool1 conv2 pool2 fc1 fc2; do
    like "$layers" "$layer  " "the table of layers has $layer"
done
weights=$(find "$run" -name model.safetensors | head -1)
is "$(python3 -c 'import json, struct, sys
f = open(sys.argv[1], "rb")
h = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
h.pop("__metadata__", None)
print(*(n + str(t["shape"]).replace(" ", "") for n, t in sorted(h.items())))' "$weights" 2>&1)" \
    "conv1.bias[32] conv1.weight[32,1,5,5] conv2.bias[64] conv2.weight[64,32,5,5] fc1.bias[1024] fc1.weight[1024,3136] fc2.bias[10] fc2.weight[10,1024]" \
    "its checkpoint has PyTorch's names and shapes"

post ".mode = \"eval\" | del(.data.train) | .model.init = \"$run\""
want 201 "an evaluation of its run"
ok "it runs" wait_state "$id" succeeded
is "$(job "$id" top1)" "$top1" "without dropout: the same top-1 again"
post ".model.init = \"$run\" | .model.width = 0.5"
want 422 "its weights do not fit another width"
like "$body" 'conv1.weight has shape' "which is reported"

post '.model.gemm = "openblas" | .steps = 3'
ok "it trains with OpenBLAS" wait_state "$id" succeeded
first_loss() { sql "select json_extract(body, '\$.loss') from job_event where job_id = $1 and type = 'step' and json_extract(body, '\$.step') = 1"; }
is "$(jq -n "$(first_loss "$id") / $(first_loss "$trained") - 1 | fabs < 1e-4")" true "from the same loss"

call -d "$(jq '{base: (. + {steps: 12, batch_per_worker: 40, cluster: {workers_per_node: 1, threads_per_worker: 1}, checkpoint: {disable: true}}), metric: "top1",
    parameters: {"/model/width": [0.25, 0.5], "/model/dropout": [0, 0.4], "/lr/base": [0.0001, 0.002]}}' <<<"$base")" /v1/sweeps
want 201 "a sweep over width, dropout and rate"
sweep_ended() { [ "$(get "/v1/sweeps/1" | jq -r .state)" != running ]; }
for _ in 1 2 3 4 5; do
    eventually sweep_ended && break
done
call /v1/sweeps/1
json .state succeeded "ends well"
json '[.trials[] | select(.state == "succeeded") | .point | tojson] | unique | length' 8 "all eight points have run"
json '.best.metric == ([.trials[].metric] | max) and .best.metric > 0.2' true "and the best is named"

post '.model = {arch: "resnet18", image_size: 32, classes: 10, width: 0.5, dropout: 0.2} | .data.preprocess = "whole" |
    .steps = 2 | .batch_per_worker = 4'
ok "a ResNet of half the width with dropout trains too" wait_state "$id" succeeded
stop_daemon
done_testing
