#!/usr/bin/env bash
# model.init: a file, a checkpoint's folder or a run directory; checked before a job is taken; whose step an evaluation reports. The real
# daemon, mpirun and train-worker.
slots=1 always='.checkpoint = {every_steps: 2, keep: 3}'
# shellcheck source=tests/system/train/small_jobs.sh.inc
. "$(dirname "$0")/small_jobs.sh.inc"
trainctl=$top_builddir/trainctl

post .
trained=$id
ok "a job trains" wait_state "$trained" succeeded
run=$state/jobs/$trained
last=$run/checkpoints/step-00000004
top1=$(job "$trained" top1)

# evaluates WHAT INIT STEP
evaluates() {
    post ".mode = \"eval\" | .model.init = \"$2\""
    ok "$1: the evaluation succeeds" wait_state "$id" succeeded
    is "$(job "$id" step) $(sql "select step from eval where job_id = $id")" "$3 $3" "$1: of the weights of step $3, by the API"
    is "$(jq .steps "$state/jobs/$id/result.json")" "$3" "$1: by result.json"
    like "$(cat "$state/jobs/$id/attempt-1/stdout.log")" "Evaluation at step $3: .*" "$1: by the log"
}
evaluates "the file" "$last/model.safetensors" 4
is "$(job "$id" top1)" "$top1" "it finds what the training found"
shown=$("$trainctl" --server "$url" show "$id" 2>&1)
like "$shown" 'progress +50 of 50 images \(100 %\)' "trainctl show has its progress"
like "$shown" 'weights +those of step 4' "and whose weights they are"
is "$(grep -c '0 of 0' <<<"$shown")" 0 "and not that of a training"

# its progress while it runs
post ".mode = \"eval\" | .model.init = \"$last\" | .data = {eval: \"synthetic\", eval_images: 100000}"
json '"\(.evaluated_images) of \(.eval_images)"' "0 of 100000" "no image is evaluated at first"
on_its_way() {
    shown=$("$trainctl" --server "$url" show "$id" 2>&1)
    [[ $shown =~ progress\ +[1-9][0-9,]*\ of\ 100,?000\ images ]] || in_state "$id" 'succeeded|failed'
}
ok "some are" eventually on_its_way
like "$shown" 'progress +[1-9][0-9,]* of 100,?000 images \([1-9]0 %\)' "trainctl show counts them while it runs"
call -X POST "/v1/jobs/$id/cancel"
ok "it ends when it is cancelled" wait_state "$id" cancelled
post ".mode = \"eval\" | .model.init = \"$last\" | .data = {eval: \"synthetic\", eval_images: 500}"
ok "a smaller one succeeds" wait_state "$id" succeeded
is "$(job "$id" evaluated_images) of $(job "$id" eval_images)" "500 of 500" "all are evaluated in the end"
is "$(job "$trained" evaluated_images) of $(job "$trained" eval_images)" "null of null" "a training counts steps"
# The upper half of each fp32, as BF16: near the same network.
/usr/bin/python3 - "$last/model.safetensors" "$work/half.safetensors" <<'END'
import json, struct, sys
data = open(sys.argv[1], 'rb').read()
size, = struct.unpack('<Q', data[:8])
header, body, out = json.loads(data[8:8 + size]), data[8 + size:], b''
for entry in (value for key, value in header.items() if key != '__metadata__'):
    tensor = body[slice(*entry['data_offsets'])]
    if entry['dtype'] == 'F32':
        tensor = b''.join(tensor[i + 2:i + 4] for i in range(0, len(tensor), 4))
        entry['dtype'] = 'BF16'
    entry['data_offsets'] = [len(out), len(out) + len(tensor)]
    out += tensor
header = json.dumps(header).encode()
open(sys.argv[2], 'wb').write(struct.pack('<Q', len(header)) + header + out)
END
evaluates "weights in bf16" "$work/half.safetensors" 4
like "$(jq -n "($(job "$id" top1) - $top1) | fabs <= 0.1")" true "they find nearly what the training found"
evaluates "a checkpoint's folder" "$last" 4
evaluates "the run directory" "$run" 4
evaluates "its folder checkpoints" "$run/checkpoints" 4
cp -r "$run" "$work/torn"
truncate -s 20 "$work/torn/checkpoints/step-00000004/state.json"
evaluates "a run directory whose newest checkpoint is not whole" "$work/torn" 2
post ".model.init = \"$run\" | .steps = 1"
ok "a training starts from a run directory" wait_state "$id" succeeded
like "$(cat "$state/jobs/$id/attempt-1/stdout.log")" 'the weights are .*step-00000004/model.safetensors, saved at step 4' \
    "and names the weights"

# ---- what does not fit, before anything is launched
mkdir "$work/empty"
mkfifo "$work/pipe"
echo "no weights" >"$work/text.safetensors"
head -c 100000 "$last/model.safetensors" >"$work/cut.safetensors"
jobs_before=$(sql 'select count(*) from job')
# unfit WHAT JQ-EXPRESSION WORDS
unfit() {
    for route in /v1/jobs /v1/plan; do
        post "$2" "$route"
        refused 422 invalid "$3" "$route: $1"
        is "$(jq -r '.errors[0].pointer' <<<"$body")" /model/init "$route: $1: at its place"
    done
}
unfit "a file that is not there" ".model.init = \"$work/nowhere.safetensors\"" 'No such file'
unfit "a folder without weights" ".model.init = \"$work/empty\"" 'no weights in .*: expected a safetensors file, the folder of a checkpoint'
unfit "a named pipe" ".model.init = \"$work/pipe\"" 'is a named pipe, not a regular file'
unfit "a text" ".model.init = \"$work/text.safetensors\"" 'is a text file, not a safetensors file'
unfit "a file that was cut" ".model.init = \"$work/cut.safetensors\"" 'is cut off'
unfit "weights of another network" ".model.init = \"$last\" | .model.arch = \"resnet34\"" 'do not match resnet34: .*layer1.2.conv1.weight is missing'
is "$(jq -r '.errors[].message' <<<"$body" | grep -o '[^ ]* is missing' | sort -u | wc -l)" \
    "$(("$(jq -r '.errors[0].message | capture("and (?<n>[0-9]+) more").n' <<<"$body")" + 10))" "each tensor that is missing is named"
unfit "weights of other classes, to be evaluated" ".mode = \"eval\" | .model.init = \"$last\" | .model.classes = 11" 'fc.weight is for 10 classes, the job has 11'
unfit "weights of another stem" ".model.init = \"$last\" | .model.stem = \"small\"" 'conv1.weight has shape'
unfit "weights without low-pass filters" ".model.init = \"$last\" | .model.blur_pool = true" 'they were trained with model.blur_pool false'
document ".mode = \"eval\" | .model.init = \"$last\" | .model.classes = 11"
for command in plan submit; do
    "$trainctl" --server "$url" "$command" "$work/job.json" >"$work/out" 2>&1
    is $? 2 "trainctl $command refuses it"
    like "$(tr -s ' \n' '  ' <"$work/out")" '^(trainctl: )?model\.init: .*fc.weight is for 10 classes, the job has 11' "with the reason"
done
jq '{base: ., parameters: {"/lr/base": [0.1, 0.2]}}' "$work/job.json" >"$work/sweep.json"
call -H 'Content-Type: application/json' --data-binary "@$work/sweep.json" /v1/sweeps
refused 422 invalid 'fc.weight is for 10 classes' "a sweep over it"
is "$(sql 'select count(*) from job')" "$jobs_before" "no job was made of any"
document ".model.init = \"/not/here\" | .data.train_images = 96"
"$trainctl" plan "$work/job.json" >"$work/out" 2>&1
is $? 0 "trainctl plan goes on with weights that are not on this machine"

ok "the daemon stops in order" stop_daemon
done_testing
