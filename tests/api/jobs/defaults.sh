#!/usr/bin/env bash
# What a document leaves to its data (common/dataset/job_data.h): traind, trainctl, train-worker by itself and sweeps agree on it.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
# shellcheck source=tests/system/idx.sh.inc
. "$top_srcdir/tests/system/idx.sh.inc"
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
small_data
start_runs

document() { # MORE: only the data, and what makes it short
    jq -n --arg train "$work/data/train" "{data: {train: \$train}, batch_per_worker: 4, steps: 1, restart: {max: 0},
        cluster: {workers_per_node: 1, threads_per_worker: 1}, lr: {warmup_epochs: 0}} * $1"
}
keys='[.model.classes, .model.image_size, .data.preprocess, .data.eval] | tojson'
took='[.explain | to_entries[] | select(.key | contains(".")) | [.key, .value.value]] | tojson'
all="[10,32,\"whole\",\"$work/data/validation\"]"

document '{}' >"$work/plain.json"
call -d "@$work/plain.json" /v1/plan
want 200 "a document with nothing but its data is planned"
json "$took" "[[\"data.eval\",\"$work/data/validation\"],[\"data.preprocess\",\"whole\"],[\"model.classes\",10],[\"model.image_size\",32]]" "the plan tells what was taken"
json '.explain["model.classes"].source' "manifest.json of the training data" "and from where"
json '[.eval_images, (.warnings | length)] | tojson' '[50,0]' "the validation images are found, and nothing is odd"
cp "$work/body" "$work/plan.json"
is "$("$top_builddir/trainctl" plan --json "$work/plain.json" | jq "$took")" "$(jq "$took" "$work/plan.json")" "trainctl plan agrees"
like "$("$top_builddir/trainctl" plan "$work/plain.json")" 'model.classes +10 +manifest.json' "its table has them"

call -d "@$work/plain.json" /v1/jobs
want 201 "it is submitted"
json ".spec | $keys" "$all" "the stored document states them"
ok "the job ends" wait_state 1 '(succeeded|failed)'
is "$(jq -r "$keys" "$state/jobs/1/job.json")" "$all" "as does that of the run"

mpirun -np 1 "$top_builddir/tests/bin/train-worker" --job "$work/plain.json" --run-dir "$work/run" >"$work/out" 2>&1
is $? 0 "train-worker trains it by itself"
is "$(jq -c '[.top1 >= 0, .eval_images]' "$work/run/result.json" 2>/dev/null)" '[true,50]' "and evaluates"
jq ".model = {classes: 10, image_size: 32} | .data += {preprocess: \"whole\", eval: \"$work/data/validation\"}" "$work/plain.json" >"$work/stated.json"
mpirun -np 1 "$top_builddir/tests/bin/train-worker" --job "$work/stated.json" --run-dir "$work/stated" >"$work/out" 2>&1
is $? 0 "and the document that states them"
is "$(jq -r .attempts[-1].result.weights "$work/stated/provenance.json")" "$(jq -er .attempts[-1].result.weights "$work/run/provenance.json")" "with the same weights"

call -d "$(jq -n --slurpfile base "$work/plain.json" '{base: $base[0], metric: "top1", parameters: {seed: [1, 2]}}')" /v1/sweeps
want 201 "a sweep of it is taken, by the accuracy"
ended() { get /v1/sweeps/1 | jq -e '.state != "running"' >/dev/null; }
ok "it ends" eventually ended
is "$(get /v1/jobs/3 | jq -r ".spec | $keys")" "$all" "its jobs state them too"

call -d "$(document '{data: {eval: null}}')" /v1/plan
json .eval_images 0 "eval null: no evaluation"
call -d "$(document '{model: {classes: 5}}')" /v1/plan
refused 422 invalid '/model/classes' "too few classes are refused as before"
call -d "$(document '{model: {image_size: 64}}')" /v1/plan
json "$took" "[[\"data.eval\",\"$work/data/validation\"],[\"model.classes\",10]]" "a stated size leaves the preprocessing as it was"
call -d "$(document '{model: {arch: "cnn"}}')" /v1/plan
json '.explain["model.image_size"].value' 28 "cnn takes the images of 28 pixels as they are"

# What is no pair of train-prep is not taken for one.
mkdir "$work/pair" && cp -r "$work/data/train" "$work/data/manifest.json" "$work/pair" && mkdir "$work/pair/validation"
call -d "$(jq --arg train "$work/pair/train" '.data.train = $train' "$work/plain.json")" /v1/plan
json '[.eval_images, .explain["model.classes"].value] | tojson' '[0,10]' "an empty folder beside it is none of its"
rm "$work/pair/manifest.json"
call -d "$(jq --arg train "$work/pair/train" '.data.train = $train' "$work/plain.json")" /v1/plan
json "$took" '[["data.preprocess","whole"],["model.image_size",32]]' "without a manifest the classes are not known"
call -d "$(jq '.data.train = "/no/folder" | .data.train_images = 100' "$work/plain.json")" /v1/plan
json "$took" '[]' "data that is elsewhere says nothing"

ok "the daemon stops in order" stop_daemon
done_testing
