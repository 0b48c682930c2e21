#!/usr/bin/env bash
# Fine-tuning as users do it: weights of 10 classes begin a training of 12, with frozen parts and a faster classifier. The real daemon,
# mpirun and train-worker. tests/golden/torch.sh compares the arithmetic with PyTorch's, resume.sh kills and resumes.
# shellcheck source=tests/system/train/small_jobs.sh.inc
. "$(dirname "$0")/small_jobs.sh.inc"
trainctl=$top_builddir/trainctl

# tensors FILE...: a line "name digest" for each tensor, sorted
tensors() {
    /usr/bin/python3 - "$@" <<'END'
import hashlib, json, struct, sys
for path in sys.argv[1:]:
    data = open(path, "rb").read()
    size, = struct.unpack("<Q", data[:8])
    for name, t in sorted(json.loads(data[8:8 + size]).items()):
        if name != "__metadata__":
            print(name, hashlib.sha256(data[8 + size:][slice(*t["data_offsets"])]).hexdigest())
END
}

# weights ID: the final ones of a job
weights() {
    echo "$state/jobs/$1/checkpoints/step-00000004/model.safetensors"
}

post .
ok "a job trains" wait_state "$id" succeeded
trained=$(weights "$id")
tensors "$trained" >"$work/before"
other_classes='.model += {"init": "'$trained'", "classes": 12}'
says='the weights of model.init have a classifier \(fc\) for 10 classes, the job has 12: it starts with random weights'

post "$other_classes" /v1/plan
json '[.warnings[] | select(test("^'"${says//\\/\\\\}"'$"))] | length' 1 "the plan says that the classifier is new"
for part in '["layer1"]' '["conv1", "layer2"]' '"layer1"' '["fc"]'; do
    post "$other_classes | .model.freeze = $part" /v1/plan
    refused 422 invalid '' "model.freeze $part is refused"
    is "$(jq -r '.errors[0].pointer' <<<"$body")" /model/freeze "at its place"
done
like "$body" 'the first parts of resnet18 without a gap.*conv1 \(with bn1\), layer1, layer2, layer3, layer4' "with the parts that there are"

# frozen WORKERS FREEZE PATTERN: trains with a frozen part; no other tensor than those of the pattern stays
frozen() {
    post "$other_classes | .model.freeze = $2 | .lr.head_factor = 10 | .cluster.workers_per_node = $1"
    ok "freeze $2, $1 workers: it trains" wait_state "$id" succeeded
    tensors "$(weights "$id")" >"$work/after"
    is "$(comm -12 "$work/before" "$work/after" | grep -vE 'num_batches|bn[12].weight' | cut -d' ' -f1)" "$(grep -E "^($3)[. ]" "$work/before" | grep -vE 'num_batches|bn[12].weight' | cut -d' ' -f1)" \
        "the frozen tensors stay as they were, with running statistics, and no others"
    is "$(tensors "$(dirname "$(weights "$id")")/optimizer.safetensors" | cut -d' ' -f1 | grep -cE "^momentum_buffer\.($3)\.")" 0 "they have no momentum"
    like "$(cat "$state/jobs/$id/attempt-1/stdout.log" "$state/jobs/$id/attempt-1/stderr.log" 2>/dev/null)" "$says" "the log says that the classifier is new"
}
frozen 1 '["layer1", "conv1"]' 'conv1|bn1|layer1'
both=$id
frozen 2 '"backbone"' 'conv1|bn1|layer1|layer2|layer3|layer4'
twelve=$(weights "$id")
"$trainctl" --server "$url" plan --explain "$work/job.json" >"$work/out" 2>&1
is $? 0 "trainctl plan explains it"
like "$(tr -s ' \n' '  ' <"$work/out")" 'trained_weights.*gradients are .* MB instead of .* MB' "with the bytes of the gradients"
like "$(tr -s ' \n' '  ' <"$work/out")" 'head_lr.*peak_lr x lr.head_factor' "and the classifier's rate"
is "$("$trainctl" --server "$url" --json show "$id" | jq -c .spec.model.freeze)" '"backbone"' "the job has the word that it was given"
is "$("$trainctl" --server "$url" --json show "$both" | jq -c .spec.model.freeze)" '["layer1","conv1"]' "or the list"
"$trainctl" --server "$url" --json submit --set model.freeze=backbone --set "model.init=$trained" --set lr.head_factor=2 "$work/job.json" >"$work/out" 2>&1
is $? 0 "trainctl sets them on its command line"
ok "which trains as well" wait_state "$(jq .id "$work/out")" succeeded

post '.model.init = "'"$twelve"'" | del(.model.classes)' /v1/plan
json '[.warnings[] | select(test("for 12 classes, the job has 10"))] | length' 1 "a job that does not state its classes has those of its data"

ok "the daemon stops in order" stop_daemon
done_testing
