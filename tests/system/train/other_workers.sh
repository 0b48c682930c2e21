#!/usr/bin/env bash
# A run that goes on with fewer or more workers: restart.on_fewer_nodes rescale and keep_batch.
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"
# An epoch: 6 steps of 16 images.
small_job '.data += {shuffle: false, augment: false} | del(.steps) | .epochs = 1 | .lr.base = 0.016 |
    .checkpoint = {every_steps: 3, every_epochs: 0, keep: 9}'

# step RUN ATTEMPT FIELD: of all its step events
step() {
    jq -s -c "[.[] | select(.type == \"step\") | .$3]" "$1/attempt-$2/events.jsonl"
}

# warning RUN ATTEMPT
warning() {
    jq -r 'select(.type == "warning") | .message' "$1/attempt-$2/events.jsonl"
}

# right_speed RUN IMAGES NAME: the result's images/s are these images over the time of all steps, of each step the newest
right_speed() {
    is "$(cat "$1"/attempt-*/events.jsonl | jq -s --slurpfile result "$1/result.json" --argjson images "$2" \
        '(map(select(.type == "step")) | INDEX(.step) | del(.[] | select(.step > $result[0].steps)) | $images * 1e3 / (map(.step_ms) | add)) as $right |
         $result[0].images_per_sec / $right - 1 | fabs < 1e-6')" true "$3"
}

worker 2 "$work/small.json" "$work/two"
is $? 0 "two workers run an epoch"
from=$work/two/checkpoints/step-00000003

# ---- rescale
run=$work/one
cp -r "$work/two" "$run"
rm -r "$run/checkpoints/step-00000006"
worker 1 "$work/small.json" "$run" --attempt 2 --resume latest
is $? 0 "one goes on from the middle"
like "$(warning "$run" 2)" 'on 1 worker instead of 2: a global batch of 8 images \(1 x 8 a worker\) instead of 16, a peak learning rate of 0.0005 instead of 0.001; 6 of 12 steps are left' \
    "a warning has the old and the new numbers"
is "$(step "$run" 2 step)" "[4,5,6,7,8,9]" "the rest of the epoch takes twice the steps, whose numbers go on"
is "$(step "$run" 2 epoch | jq -c 'map(. * 12 | round)')" "[7,8,9,10,11,12]" "epochs go on from the middle"
is "$(step "$run" 2 lr | jq -c "map(. * 24000 | round)")" "[6,5,4,3,2,1]" "the rate falls on from half of the new peak"
is "$(jq -c '[.step, .images_seen, .epoch_number, .epoch_images]' "$run/checkpoints/step-00000009/state.json")" '[9,96,1,0]' \
    "every image of the epoch was seen once"
right_speed "$run" 96 "images/s are those of all steps, each with its own batch"

is "$(jq -c '[.global_batch, .train_steps]' "$run/plan.json" "$run/attempt-2/plan-before.json" | tr '\n' ' ')" "[8,12] [16,6] " \
    "plan.json is the plan in force, and the one before is kept"

# ---- and back, from inside a step of the larger batch: 48 + 3 x 8 = 72 images are seen, 4.5 steps of 16
worker 2 "$work/small.json" "$run" --attempt 3 --resume "$run/checkpoints/step-00000006"
is $? 0 "two workers take over from one"
is "$(step "$run" 3 step)" "[7]" "one step of 16 is left of the epoch"
is "$(jq -c '[.step, .images_seen, .epoch_number, .epoch_images]' "$run/checkpoints/step-00000007/state.json")" '[7,88,1,0]' \
    "8 images are too few for a step"
right_speed "$run" 88 "images/s count those three steps once"
is "$(jq -c '[.global_batch, .train_steps]' "$run/plan.json" "$run/attempt-3/plan-before.json" | tr '\n' ' ')" "[16,6] [8,12] " \
    "plan.json is again that of two"

# ---- rescale, where batches fill the memory: an epoch of 3 steps of 32, then of 6 of 16
trial 2 fill '.model.image_size = [[0, 32], [1, 48]] | .batch_schedule = "fill" | .epochs = 2'
run=$work/fill-one
cp -r "$work/fill" "$run"
rm -r "$run/checkpoints/step-0000000"[69]
worker 1 "$work/fill.json" "$run" --attempt 2 --resume latest
is $? 0 "one goes on from the change of the batch"
is "$(jq -c '[.phases[] | [.step, .steps, .global_batch]]' "$run/plan.json")" "[[0,6,16],[6,12,8]]" "with its own phases"
is "$(step "$run" 2 step)" "[4,5,6,7,8,9,10,11,12,13,14,15]" "the second epoch takes twice the steps"
is "$(jq -c '[.step, .images_seen, .epoch_number, .epoch_images]' "$run/checkpoints/step-00000015/state.json")" '[15,192,2,0]' \
    "every image was seen once in each"

# ---- keep_batch
trial 1 keep '.restart.on_fewer_nodes = "keep_batch"' --attempt 2 --resume "$from"
is $? 0 "keep_batch goes on with one worker"
like "$(warning "$work/keep" 2)" 'on 1 worker instead of 2: a global batch of 16 images \(2 x 8 a worker\) instead of 16, a peak learning rate of 0.001 instead of 0.001; 3 of 6' \
    "there is a warning"
is "$(step "$work/keep" 2 lr)" "$(step "$work/two" 1 lr | jq -c '.[3:]')" "the learning rate is what it would have been"
one=$(step "$work/keep" 2 loss) two=$(step "$work/two" 1 loss | jq -c '.[3:]')
is "$(jq -n "[$one, $two] | transpose | all((.[0] - .[1] | fabs) < 5e-3 * .[1])")" true "and so is the loss ($one, $two)"
worker 3 "$work/keep.json" "$work/three" --attempt 2 --resume "$from"
like "$output" 'global batch of 16 images cannot be shared out over 3 workers' "an uneven share is refused by name"

# ---- the state of an adaptive optimiser goes along: Adam's means and its count of steps
trial 2 adam '.optimizer.name = "adam" | .lr = {warmup_epochs: 0, base: 0.002, scaling: "none"} | .restart.on_fewer_nodes = "keep_batch"'
is $? 0 "two workers run an epoch with Adam"
from=$work/adam/checkpoints/step-00000003
for ranks in 1 4; do
    run=$work/adam-$ranks
    worker $ranks "$work/adam.json" "$run" --attempt 2 --resume "$from"
    is $? 0 "Adam goes on with $ranks"
    is "$(jq -c '[.step, .images_seen, .epoch_number, .epoch_images]' "$run/checkpoints/step-00000006/state.json")" '[6,96,1,0]' \
        "every image of the epoch was seen once"
done
# Batch norm sees batches of 8 with one worker as with two, so all is as it would have been; four have batches of 4.
one=$(step "$work/adam-1" 2 loss) two=$(step "$work/adam" 1 loss | jq -c '.[3:]')
is "$(jq -n "[$one, $two] | transpose | all((.[0] - .[1] | fabs) < 1e-4 * .[1])")" true "the loss is what it would have been ($one, $two)"

# ---- data.locality node: the workers of a node go on in its part, at the images that were not used. The rate is nearly zero, so the loss of
# a batch tells which images it has: a node's step of 16 or 24 images is two or three steps of 8.
"$top_builddir/tests/bin/train-prep" convert --from idx --in "$work/idx" --out "$work/four" --shards 4 --eval-shards 1 >/dev/null 2>&1
trial 2 node ".data.train = \"$work/four/train\" | .data.locality = \"node\" | .cluster.nodes = 2 | .cluster.workers_per_node = 1 |
    .lr = {warmup_epochs: 0, base: 1e-9, scaling: \"none\"} | .checkpoint.every_steps = 1"
is $? 0 "two nodes of one worker run an epoch, each on its own images"
losses=$(step "$work/node" 1 loss)

# goes_on_in_parts RUN JOB RANKS STEP SLICE: its only step has the images of these steps
goes_on_in_parts() {
    worker "$3" "$2" "$1" --attempt 2 --resume "$work/node/checkpoints/step-0000000$4"
    is $? 0 "$3 workers on the two nodes go on from step $4"
    is "$(jq -n "$(step "$1" 2 loss) as \$got | ${losses}[$5] | (add / length) as \$mean | [(\$got | length), (\$got[0] / \$mean - 1 | fabs) < 1e-3]" -c)" "[1,true]" \
        "with the images that no step had ($(step "$1" 2 loss); $losses)"
}
for workers in 2 3; do
    jq ".cluster.workers_per_node = $workers" "$work/node.json" >"$work/node-$workers.json"
done
goes_on_in_parts "$work/node-2" "$work/node-2.json" 4 3 3:5
goes_on_in_parts "$work/node-3" "$work/node-3.json" 6 2 2:5
goes_on_in_parts "$work/node-4" "$work/node.json" 4 3 3:5 # planned again for as many as were started

done_testing
