#!/usr/bin/env bash
# A label is a number: the classes of training, evaluation and weights are the same, by their names, whatever holds them.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
# shellcheck source=tests/system/idx.sh.inc
. "$top_srcdir/tests/system/idx.sh.inc"
printf "%s\n" "worker = $top_builddir/tests/bin/train-worker" "slots = 2" "cancel_grace_seconds = 60" >"$work/traind.conf"
export OMP_NUM_THREADS=1
prep=$top_builddir/tests/bin/train-prep
small_data
mkdir "$work/images"
"$prep" extract --out "$work/images" "$work/data/train" >/dev/null 2>&1
mapfile -t jpegs < <(find "$work/images" -type f | sort | head -24)

folders() { # NAME CLASS...: class folders with the images in turn
    local i=0 classes=("${@:2}") jpeg
    for jpeg in "${jpegs[@]}"; do
        mkdir -p "$work/$1/${classes[i % (${#classes[@]})]}"
        cp "$jpeg" "$work/$1/${classes[i % (${#classes[@]})]}/$((i++)).jpg"
    done
}
shards() { # NAME CLASS...: the same as shards with a manifest
    folders "of-$1" "${@:2}"
    "$prep" convert --from folder --in "$work/of-$1" --out "$work/$1" --shards 1 >/dev/null 2>&1
}
shards train ant bee cat
shards same ant bee cat
shards lacks bee cat
shards order bee ant cat
mv "$work/order/manifest.json" "$work/sorted"
jq '.classes = ["bee", "ant", "cat"]' "$work/sorted" >"$work/order/manifest.json"
cp -r "$work/same/train" "$work/nameless"
folders as-folders ant bee cat
folders more ant bee cat dog
start_daemon --config "$work/traind.conf"

document() { # MORE: a small job
    jq -n --arg work "$work" "{data: {train: \"$work/train\", eval: \"$work/same/train\"}, model: {arch: \"cnn\", classes: 3, image_size: 28},
        cluster: {workers_per_node: 1, threads_per_worker: 1}, batch_per_worker: 4, epochs: 2, lr: {base: 0.01, warmup_epochs: 0}, restart: {max: 0},
        checkpoint: {keep: 1}} * $1"
}
plan() { # EVAL [MORE]
    document "{data: {eval: \"$work/$1\"}} * ${2:-"{}"}" >"$work/document.json"
    call -d "@$work/document.json" /v1/plan
}
about_eval() { # WORDS NAME: the problem of /data/eval
    is "$status" 422 "$2"
    like "$(jq -r '.errors[] | select(.pointer == "/data/eval") | .message // .detail' <<<"$body")" "$1" "$2: by the first difference"
}
no_warning_of_classes() { json '[.warnings[] | select(test("classes of|the classes"))] | length' 0 "$1"; }

plan same/train
want 200 "shards of two conversions with the same classes"
no_warning_of_classes "nothing is said of them"
plan as-folders
want 200 "class folders against shards"
no_warning_of_classes "with the same classes"
plan lacks/train
about_eval '^has no class ant, which data.train has: class number 0 is ant there and bee here' "shards that lack a class are refused"
plan order/train
about_eval '^has the classes of data.train in a different order: class 0 is bee here and ant there' "so is another order"
plan more
about_eval '^has a folder of class dog, which data.train does not have' "and a class too many"
plan nameless
want 200 "shards without a manifest have no names"
json '[.warnings[] | select(test("^data.eval has shards without a manifest.json .* cannot be checked"))] | length' 1 "which is said"
call -d "$(document "{data: {eval: \"$work/lacks/train\"}}")" /v1/jobs
about_eval '^has no class ant' "a job is refused as its plan is"
plan lacks
about_eval '^there are no validation shards in .*/lacks, only train shards in .*/lacks/train' "a conversion without validation images is refused"
is "$("$top_builddir/trainctl" plan "$work/document.json" 2>&1 | tr -s '\n ' ' ' | grep -c '^trainctl: data.eval: there are no validation shards in')" 1 "by trainctl plan too"

# ---- a job, and its weights
call -d "$(document "{data: {eval: \"$work/nameless\"}}")" /v1/jobs
want 201 "a job"
ok "it ends" wait_state 1 succeeded
run=$state/jobs/1
weights=$(find "$run/checkpoints" -name model.safetensors | tail -1)
is "$(tail -c +9 "$weights" | head -c 4000 | grep -ao '"classes":"[^]]*\]' | tr -d '\\')" '"classes":"["ant","bee","cat"]' "its weights say what they were trained for"
is "$(cat "$run"/attempt-1/events.jsonl | jq -c 'select(.type == "warning" and (.message | test("cannot be checked")))' | wc -l)" 0 \
    "what the plan has said is not said again"

evaluation="{mode: \"eval\", model: {init: \"$weights\"}, data: {train: null}}"
plan same/train "$evaluation"
want 200 "an evaluation of shards with the same classes"
no_warning_of_classes "nothing is said of them"
plan lacks/train "$evaluation"
about_eval '^has no class ant, which model.init has' "an evaluation of a part of the classes is refused"
plan of-lacks "$evaluation"
about_eval '^has no folder of class ant, which model.init has: .* make an empty folder' "class folders too, with what would be right"
mkdir "$work/of-lacks/ant"
plan of-lacks "$evaluation"
want 200 "with an empty folder it is fine"
plan order/train "$evaluation"
about_eval '^has the classes of model.init in a different order' "as is another order"
plan more "$evaluation"
is "$status" 422 "a class too many is refused"
plan nameless "$evaluation"
json '[.warnings[] | select(test("^data.eval has shards without a manifest.json .* the weights were trained for"))] | length' 1 "shards without names are told"
python3 - "$weights" "$work/elsewhere.safetensors" <<'END'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
length = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + length])
del header["__metadata__"]["classes"]
text = json.dumps(header).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + data[8 + length:])
END
plan lacks/train "$evaluation * {model: {init: \"$work/elsewhere.safetensors\"}}"
want 200 "weights from elsewhere"
json '[.warnings[] | select(test("^the weights contain no class names"))] | length' 1 "do not say, which is told"
call -d "$(document "$evaluation * {data: {eval: \"$work/same/train\"}}")" /v1/jobs
want 201 "an evaluation is submitted"
mv "$work/same" "$work/gone" && cp -r "$work/order" "$work/same"
worker_refuses() { # NAME RUN WORDS
    like "$(jq -c 'select(.type == "failed")' "$2/attempt-1/events.jsonl")" "$3" "$1"
}
"$top_builddir/tests/bin/train-worker" --job <(jq -n "$(document "$evaluation * {data: {eval: \"$work/same/train\"}}")") --run-dir "$work/own" >/dev/null 2>&1
is "$((($? > 0)))" 1 "the worker refuses data that changed"
worker_refuses "in the same words" "$work/own" 'has the classes of model.init in a different order'
rm -r "$work/same" && mv "$work/gone" "$work/same"

# ---- training goes on from weights
plan same/train "{data: {train: \"$work/order/train\", eval: null}, model: {init: \"$weights\"}}"
want 200 "weights may learn other classes"
json '[.warnings[] | select(test("^the weights of model.init were trained for other classes, .* class 0 is bee here and ant there"))] | length' 1 "which is said"
ok "the daemon stops in order" stop_daemon
document "{data: {eval: null}}" >"$work/job.json"
"$top_builddir/tests/bin/train-worker" --job "$work/job.json" --run-dir "$work/again" >/dev/null 2>&1
is $? 0 "a run by the worker alone"
jq '.classes = ["bee", "ant", "cat"]' "$work/train/manifest.json" >"$work/other" && mv "$work/other" "$work/train/manifest.json"
jq '.epochs = 3' "$work/job.json" >"$work/longer.json"
"$top_builddir/tests/bin/train-worker" --job "$work/longer.json" --run-dir "$work/again" --resume latest --attempt 2 >"$work/answer" 2>&1
is "$((($? > 0)))" 1 "does not go on with other classes"
like "$(cat "$work/answer")" 'data.train, .*: has the classes of the checkpoint in a different order' "and says which"
done_testing
