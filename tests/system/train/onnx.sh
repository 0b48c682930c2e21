#!/usr/bin/env bash
# ONNX models of checkpoints: checked by the package onnx, and calculated node by node with PyTorch's operations on the images of an evaluation,
# whose classes and probabilities are the same. With basic blocks and bottlenecks, groups, both stems, low-pass filters, averaged weights, and the
# small CNN. trainctl export-onnx writes the same files from the runs, without the daemon.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../../api/runs.sh.inc"
/usr/bin/python3 -c 'import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ("torch", "onnx", "PIL"))))' 2>/dev/null ||
    skip_all "python3-torch, python3-onnx or python3-pil is not installed"
/usr/bin/python3 - "$work/data" <<'EOF'
import os, random, sys
from PIL import Image
random.seed(5)
for i in range(40):
    folder = f"{sys.argv[1]}/{i % 5}"
    os.makedirs(folder, exist_ok=True)
    small = Image.new("RGB", (4, 4))
    small.putdata([tuple(random.randrange(256) for _ in range(3)) for _ in range(16)])
    small.resize((64, 64), Image.BICUBIC).save(f"{folder}/{i:02}.jpg", quality=95)
EOF
printf "%s\n" "worker = $top_builddir/tests/bin/train-worker" "slots = 2" "data_roots = $work" >"$work/traind.conf"
export OMP_NUM_THREADS=1
start_daemon --config "$work/traind.conf"
trainctl() { TRAINCTL_SERVER=$url "$top_builddir/trainctl" "$@" 2>&1; }
ended() { [[ $(sql "select state from job where id = $1") =~ succeeded|failed|cancelled ]]; }

base=$(jq -n --arg data "$work/data" '{data: {train: $data, eval: $data, preprocess: "whole"}, model: {classes: 5, image_size: 64},
    cluster: {workers_per_node: 1, threads_per_worker: 1}, batch_per_worker: 8, epochs: 2, lr: {base: 0.05, scaling: "none", warmup_epochs: 0},
    eval: {batch: 8, predictions: true}, restart: {max: 0}}')
while IFS='|' read -r name change; do
    call -d "$(jq "$change" <<<"$base")" /v1/jobs
    id=$(jq -r '.id // 0' <<<"$body")
    eventually ended "$id"
    is "$(sql "select state from job where id = $id")" succeeded "$name: trains"
    like "$(trainctl checkpoints --get newest --onnx --output "$work/$id.onnx" "$id")" "ONNX model of job $id after step 10" "$name: trainctl downloads the model"
    like "$(/usr/bin/python3 "$top_srcdir/tests/system/train/onnx_run.py" "$work/$id.onnx" "$work/data" "$state/jobs/$id/attempt-1/predictions.csv" 2>&1)" \
        "^40 images: the same" "$name: its answers are those of the evaluation"
done <<'EOF'
basic blocks|.model.arch = "resnet18" | .model.width = 0.25
bottlenecks with low-pass filters, averaged|.model.arch = "resnet50" | .model.width = 0.25 | .model.blur_pool = true | .ema = {decay: 0.8}
groups, small stem|.model.arch = "resnext50_32x4d" | .model.stem = "small" | .model.image_size = 32
v1|.model.arch = "resnet50v1" | .model.width = 0.25 | .data.preprocess = "torchvision" | .eval.resize = 64
cnn|.model.arch = "cnn" | .model.image_size = 28
EOF

call "/v1/jobs/$id/checkpoints/10?format=onnx"
want 200 "the route has it, too"
ok "the same file" cmp "$work/body" "$work/$id.onnx"
for run in "$state"/jobs/*; do
    like "$(trainctl export-onnx --output "$work/own.onnx" "$run")" "ONNX model of .* with the weights of $run/checkpoints/step-00000010/" \
        "run ${run##*/}: written without the daemon"
    ok "the same file" cmp "$work/own.onnx" "$work/${run##*/}.onnx"
done
cp -r "$state/jobs/$id/checkpoints/step-00000010" "$work/weights"
exports() { TRAINCTL_SERVER=http://127.0.0.1:1 "$top_builddir/trainctl" export-onnx "$@" 2>&1; }
like "$(exports "$work/weights")" "there is no job.json, which describes the network, beside $work/weights/model.safetensors" "weights need their job"
cp "$state/jobs/$id/job.json" "$work/weights"
ok "which may lie beside them" exports -o "$work/own.onnx" "$work/weights/model.safetensors"
is "$(/usr/bin/python3 -c 'import onnx, sys
own, served = map(onnx.load, sys.argv[1:])
facts, known = ({(p.key, p.value) for p in model.metadata_props} for model in (own, served))
print(own.graph == served.graph, facts - known, known - facts)' "$work/own.onnx" "$work/$id.onnx")" "True set() {('job', '$id')}" \
    "the model is the same, but the job is not known"
head -c 5000 "$work/weights/model.safetensors" >"$work/weights/cut.safetensors"
like "$(exports "$work/weights/cut.safetensors")" 'cut.safetensors is cut off: tensor ".*" ends at byte [0-9]+, the file at byte 5000' "a truncated file is refused"
printf x | dd of="$work/weights/model.safetensors" bs=1 seek=3000 conv=notrunc status=none
like "$(exports "$work/weights")" "model.safetensors is damaged: it does not match its digest in $work/weights/state.json" "so is a damaged one"
rm "$work/weights/state.json"
sed -i 's/"cnn"/"cmm"/' "$work/weights/job.json"
like "$(exports "$work/weights")" "weights/job.json: model.arch: must be one of .*\"cnn\", not \"cmm\"; did you mean cnn" "an unknown architecture"
jq '.model.arch = "resnet18" | .model.image_size = 32' "$state/jobs/$id/job.json" >"$work/weights/job.json"
like "$(exports "$work/weights")" "the weights of .*model.safetensors do not match resnet18: " "and weights of another one"
mkdir "$work/nothing"
like "$(exports "$work/nothing")" "no weights in $work/nothing: expected a safetensors file, the folder of a checkpoint" "a folder without weights"
call "/v1/jobs/$id/checkpoints/10?format=onxx"
want 400 "another format is refused"
json .detail 'format must be one of safetensors, onnx, not "onxx"' "with those that there are"
like "$(trainctl checkpoints --onnx "$id")" "--onnx requires --get STEP" "trainctl wants a step for it"
printf x | dd of="$state/jobs/$id/checkpoints/step-00000010/model.safetensors" bs=1 seek=3000 conv=notrunc status=none
call "/v1/jobs/$id/checkpoints/10?format=onnx"
want 422 "damaged weights are refused"
done_testing
