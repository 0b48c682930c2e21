#!/usr/bin/env bash
# A run that was killed goes on from its checkpoint, and ends with the very bits of one that was not.
set -u
: "${top_srcdir:?run it by make check}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"
# shellcheck source=tests/system/lib.sh
. "$top_srcdir/tests/system/lib.sh"
trap 'rm -rf "$work"' EXIT
small_data

# Momentum, a moving learning rate, augmentation, evaluations on the way: all that a resumed run could get wrong.
cat >"$work/small.json" <<END
{"model": {"classes": 10, "image_size": 32}, "data": {"train": "$work/data/train", "eval": "$work/data/validation"},
 "cluster": {"workers_per_node": 2, "threads_per_worker": 1}, "batch_per_worker": 4, "steps": 6,
 "lr": {"warmup_epochs": 0.2, "scaling": "none", "base": 0.01}, "eval": {"batch": 25, "every_epochs": 0.4, "target_top1": 0.01},
 "checkpoint": {"every_steps": 2, "every_epochs": 0, "keep": 100}}
END

# last_weights RUN: the hash of the final model and of its momentum
last_weights() {
    cat "$1"/checkpoints/step-00000006/{model,optimizer}.safetensors | sha256sum
}

# killed_at STEP JOB RUN: starts a run of two ranks and kills both with -9 once that step was reported
killed_at() {
    local events=$3/attempt-1/events.jsonl launcher
    mpirun --oversubscribe --bind-to none -np 2 "$top_builddir/train-worker" --job "$2" --run-dir "$3" >/dev/null 2>&1 &
    launcher=$!
    for _ in $(seq 1200); do
        grep -qs "\"type\": \"step\", \"step\": $1," "$events" && break
        kill -0 $launcher 2>/dev/null || break
        sleep 0.05
    done
    pkill -KILL -P $launcher
    wait $launcher 2>/dev/null
    ! grep -q run_stop "$events"
}

# resume FROM JOB RUN
resume() {
    worker 2 "$2" "$3" --attempt 2 --resume "$1"
}

# events RUN FILTER: of the second attempt
events() {
    jq -c "$2" "$1/attempt-2/events.jsonl" | tr '\n' ' '
}

worker 2 "$work/small.json" "$work/whole"
is $? 0 "a run that nobody disturbs"
whole=$(last_weights "$work/whole")
top1=$(jq -c 'select(.type == "eval" and .step == 5) | [.top1, .top5, .loss]' "$work/whole/attempt-1/events.jsonl")

# ---- killed and resumed
for step in 3 5; do
    run=$work/killed-$step
    if killed_at $step "$work/small.json" "$run"; then pass "killed at step $step"; else fail "killed at step $step" "it had ended"; fi
    from=$(find "$run/checkpoints" -maxdepth 1 -name 'step-*' | sort | tail -1)
    resume latest "$work/small.json" "$run"
    is $? 0 "and resumed, it ends well"
    is "$(events "$run" 'select(.type == "run_start") | .resumed_from')" "\"$from\" " "run_start says from where"
    is "$(events "$run" 'select(.type == "step") | .step')" "$(seq -s ' ' $((10#${from##*-} + 1)) 6) " "step numbers go on"
    is "$(last_weights "$run")" "$whole" "weights and momentum are bit for bit those of the undisturbed run"
    is "$(jq -c '[.status, .steps, .target_reached]' "$run/result.json")" '["success",6,true]' "result.json counts all steps"
    is "$(jq -c '[.top1, .top5, .eval_loss]' "$run/result.json")" "$(jq -c '[.top1, .top5, .eval_loss]' "$work/whole/result.json")" \
        "and has the same accuracy"
done

# ---- a given checkpoint, that is not the newest
run=$work/given
cp -r "$work/whole" "$run"
resume "$run/checkpoints/step-00000004" "$work/small.json" "$run"
is "$(last_weights "$run")" "$whole" "from a given checkpoint it comes to the same bits"
is "$(events "$run" 'select(.type == "eval" and .step == 5) | [.top1, .top5, .loss]')" "$top1 " "and to the same evaluation on the way"

# ---- at the end: nothing to train, and the evaluation that was done is not lost
resume latest "$work/small.json" "$run"
is "$?" 0 "a finished run can be resumed"
is "$(jq -c '[.status, .steps, .top1]' "$run/result.json")" "$(jq -c '[.status, .steps, .top1]' "$work/whole/result.json")" \
    "and ends as it did"
like "$(jq -r .ttt_seconds "$run/result.json")" '^[0-9]+\.' "with a time to train"

# ---- all that has a memory at once
job "$work/all.json" '.optimizer = {"name": "lars", "label_smoothing": 0.1, "momentum_correction": true} | .accumulate_steps = 2 | .data.mixup = 0.2 | .lr.base = 1 |
    .steps = 4 | .eval.every_epochs = 0 | .data.eval = null | .eval.target_top1 = null'
worker 2 "$work/all.json" "$work/all"
cat "$work"/all/checkpoints/step-00000004/{model,optimizer}.safetensors | sha256sum >"$work/all.sum"
rm -r "$work/all/checkpoints/step-00000004"
resume latest "$work/all.json" "$work/all"
is "$(events "$work/all" 'select(.type == "step") | .step')" "3 4 " "LARS, mixup and accumulation are resumed in the middle"
is "$(cat "$work"/all/checkpoints/step-00000004/{model,optimizer}.safetensors | sha256sum)" "$(cat "$work/all.sum")" \
    "to the same bits"

# ---- checkpoints that cannot be used
truncate -s -100 "$run/checkpoints/step-00000006/optimizer.safetensors"
resume "$run/checkpoints/step-00000006" "$work/small.json" "$run"
like "$output" 'step-00000006 is not whole.*optimizer.safetensors' "a torn checkpoint is refused by name"
cp "$run/checkpoints/step-00000002/model.safetensors" "$run/checkpoints/step-00000004/"
rm "$run/attempt-2/events.jsonl"
resume latest "$work/small.json" "$run"
is "$(last_weights "$run")" "$whole" "latest takes an older one that is whole, and comes to the same bits"
like "$(events "$run" 'select(.type == "warning") | .message')" 'step-00000006 is not whole.*step-00000004 is not whole: model.safetensors is of step 2' \
    "and a warning names each that is not"

job "$work/foreign.json" '.seed = 2'
resume "$run/checkpoints/step-00000002" "$work/foreign.json" "$work/foreign"
like "$output" 'is of another job: its seed is 1, this job.s is 2' "a checkpoint of another seed is refused"
job "$work/foreign.json" '.model.classes = 11'
resume latest "$work/foreign.json" "$run"
like "$output" 'none of the 3 checkpoints.*its model.classes is 10, this job.s is 11' "latest refuses when all are another job's"
job "$work/foreign.json" '.data.train_images = 80'
resume "$run/checkpoints/step-00000002" "$work/foreign.json" "$work/foreign3"
like "$output" 'is of a run on 96 training images, here are 80' "and of another number of images"
resume "$run/nothing" "$work/small.json" "$work/foreign"
like "$output" 'there is no checkpoint .*/nothing' "a missing one is refused by name"
resume "$work/data" "$work/small.json" "$work/foreign"
like "$output" 'is no checkpoint: it has no state.json' "and a folder that is none"
job "$work/few.json" '.steps = 1 | .eval.every_epochs = 0 | .data.eval = null'
resume latest "$work/few.json" "$work/new"
like "$(events "$work/new" 'select(.type == "warning") | .message')" 'no checkpoint in .*from the beginning' "latest without any starts from the beginning, and says so"

done_testing
