#!/usr/bin/env bash
# A run that was killed goes on from its checkpoint, and ends with the very bits of one that was not.
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"
# A moving learning rate, augmentation, evaluations on the way: all that a resumed run could get wrong.
small_job '.data.eval = "\($data)/validation" | .batch_per_worker = 4 | .steps = 6 | .lr = {warmup_epochs: 0.2, scaling: "none", base: 0.01} |
    .eval = {batch: 25, every_epochs: 0.4, target_top1: 0.01} | .checkpoint = {every_steps: 2, every_epochs: 0, keep: 100}'

# last_weights RUN: the hash of the final model and of its momentum
last_weights() {
    cat "$1"/checkpoints/step-00000006/{model,optimizer}.safetensors | b2sum
}

# killed RANKS JOB RUN COMMAND...: starts a run and kills its ranks with -9 once the command succeeds; fails if it had all its steps then
killed() {
    local ranks=$1 job=$2 dir=$3 launcher
    shift 3
    mpirun --oversubscribe --bind-to none -np "$ranks" "$top_builddir/tests/bin/train-worker" --job "$job" --run-dir "$dir" >/dev/null 2>&1 &
    launcher=$!
    for _ in $(seq 60000); do
        "$@" && break
        kill -0 $launcher 2>/dev/null || break
        tap_sleep 0.01
    done
    pkill -KILL -P $launcher
    wait $launcher 2>/dev/null
    [ ! -e "$dir/checkpoints/step-00000006" ] && ! grep -q run_stop "$dir/attempt-1/events.jsonl"
}
at_step() { # RUN STEP: without a process, as the run does not wait
    local events=()
    mapfile -t events 2>/dev/null <"$1/attempt-1/events.jsonl"
    [[ "${events[*]}" == *"\"type\": \"step\", \"step\": $2,"* ]]
} 2>/dev/null
writes_checkpoint() { # RUN STEP: it is in the middle of it
    [ -e "$1/checkpoints/.step-0000000$2.tmp/model.safetensors" ]
}
after_checkpoint() { # RUN STEP: at a random time behind it, sooner at each try, as a fast machine is soon at the end
    local delay
    [ -e "$1/checkpoints/step-0000000$2" ] || return
    printf -v delay '0.%04d' $((RANDOM % (2000 / (tries + 1))))
    sleep "$delay"
}

# resume FROM JOB RUN [RANKS]
resume() {
    worker "${4:-2}" "$2" "$3" --attempt 2 --resume "$1"
}

# events RUN FILTER: of the second attempt
events() {
    jq -c "$2" "$1/attempt-2/events.jsonl" | tr '\n' ' '
}

# survives NAME JOB RANKS WHOLE-RUN COMMAND...: killed when the command ("$run" follows its first word) succeeds, and resumed,
# it comes to the bits of the whole run
survives() {
    local name=$1 job=$2 ranks=$3 undisturbed=$4 command=$5 newest from tries=0
    shift 5
    run=$(mktemp -d "$work/killed-XXXXXX")
    # On a busy machine the run may be over before it is looked at again.
    until killed "$ranks" "$job" "$run" "$command" "$run" "$@"; do
        [ $((++tries)) -lt 50 ] || break
        rm -rf "$run"
        mkdir "$run"
    done
    report $((tries >= 50)) "$name: killed"
    newest=$(find "$run/checkpoints" -maxdepth 1 -name 'step-*' | sort | tail -1)
    from=${newest##*-}
    resume latest "$job" "$run" "$ranks"
    is $? 0 "$name: resumed, it ends well"
    is "$(events "$run" 'select(.type == "run_start") | .resumed_from')" "\"$newest\" " "$name: from its newest checkpoint"
    is "$(events "$run" 'select(.type == "step") | .step')" "$(seq -s ' ' $((10#$from + 1)) 6) " "$name: step numbers go on"
    is "$(last_weights "$run")" "$(last_weights "$undisturbed")" "$name: weights and momentum are bit for bit those of the undisturbed run"
    is "$(jq -c '[.status, .steps, .target_reached, .top1, .top5, .eval_loss]' "$run/result.json")" \
        "$(jq -c '[.status, .steps, .target_reached, .top1, .top5, .eval_loss]' "$undisturbed/result.json")" "$name: and so is the result"
    is "$(find "$run/checkpoints" -name '.*.tmp')" "" "$name: nothing unfinished is left"
}

worker 2 "$work/small.json" "$work/whole"
is $? 0 "an undisturbed run"
top1=$(jq -c 'select(.type == "eval" and .step == 5) | [.top1, .top5, .loss]' "$work/whole/attempt-1/events.jsonl")
whole=$(last_weights "$work/whole")

survives "SGD, 2 ranks, step 3" "$work/small.json" 2 "$work/whole" at_step 3
survives "in the middle of a checkpoint" "$work/small.json" 2 "$work/whole" writes_checkpoint 4
survives "at any time" "$work/small.json" 2 "$work/whole" after_checkpoint 2

trial 1 nesterov '.optimizer = {"nesterov": true, "momentum_correction": true, "label_smoothing": 0.1} | .accumulate_steps = 2 |
    .cluster = {"workers_per_node": 1, "threads_per_worker": 2}'
survives "Nesterov, correction, accumulation, 2 threads" "$work/nesterov.json" 1 "$work/nesterov" writes_checkpoint 4

trial 2 lars '.loss = "bce" | .class_weights = [1, 2, 0, 1, 1, 1, 1, 1, 1, 4] | .model.bn_init = "uniform" | .optimizer = {"name": "lars", "label_smoothing": 0.1, "momentum_correction": true} | .accumulate_steps = 2 | .data += {"mixup": 0.2, "cutmix": 1, "auto_augment": "randaugment", "color_jitter": 0.3, "hue_jitter": 0.1, "random_erasing": 0.5} | .lr.base = 1'
survives "LARS, binary cross entropy, class weights, mixup or cutmix, distortions, accumulation" "$work/lars.json" 2 "$work/lars" at_step 5

trial 2 frozen '.model.freeze = ["conv1", "layer1", "layer2"] | .lr.head_factor = 5 | .ema = {"decay": 0.9} | .class_weights = "balanced"'
survives "frozen parts, another rate for the classifier, class weights" "$work/frozen.json" 2 "$work/frozen" at_step 3
TRAINCOMM_HOST_RANKS=1 trial 2 apart '.model.freeze = ["conv1", "layer1", "layer2"] | .lr.head_factor = 5 | .ema = {"decay": 0.9} | .class_weights = "balanced"'
is "$(last_weights "$work/apart")" "$(last_weights "$work/frozen")" "two machines come to the same bits"
jq '.model.freeze = []' "$work/frozen.json" >"$work/thawed.json"
resume latest "$work/thawed.json" "$work/apart"
fails_with $? "a checkpoint of other frozen parts is refused"
like "$output" 'its model.freeze is \["conv1", "layer1", "layer2"\], but this job.s is \[\]' "with both"
trial 3 backbone '.model.freeze = "backbone" | .cluster.workers_per_node = 3 | .optimizer = {"name": "lars"} | .lr.base = 1'
survives "a frozen backbone, 3 ranks" "$work/backbone.json" 3 "$work/backbone" at_step 3

# Epochs of 2.25 steps: the third one has images of two epochs.
trial 2 exact '.steps_rounding = "exact" | .data.train_images = 18 | .global_batch = 8 | .accumulate_steps = "auto" | .batch_per_worker = 2 | .eval.every_epochs = 1'
is "$(jq -c 'select(.type == "eval") | .step' "$work/exact/attempt-1/events.jsonl" | tr '\n' ' ')" "3 5 6 " \
    "exact epochs of 2.25 steps are evaluated when they are over"
survives "exact epochs, automatic accumulation" "$work/exact.json" 2 "$work/exact" at_step 3

# Three sizes, the second of which begins within an epoch.
trial 2 sizes '.model.blur_pool = true | .model.image_size = [[0, 32], [0.3, 40], [0.5, 48]] | .steps = 6 | .data.train_images = 40'
is "$(jq -c '[.image_sizes[] | [.step, .size]]' "$work/sizes/plan.json")" "[[0,32],[2,40],[3,48]]" "images grow in the steps of the plan"
survives "sizes by epoch, low-pass filters, at the second" "$work/sizes.json" 2 "$work/sizes" at_step 3
survives "sizes by epoch, at any time" "$work/sizes.json" 2 "$work/sizes" after_checkpoint 2

average() {
    b2sum <"$1/checkpoints/step-00000006/ema.safetensors"
}

# Batches that fill the memory of the larger size: 16 images a step in the first epoch, then 8. The checkpoint of step 2 is at the
# change. Exact epochs change within one, here with accumulation, mixup and averages.
trial 2 fill '.model.image_size = [[0, 32], [1, 48]] | .batch_schedule = "fill" | .data.train_images = 40 | .lr = {"base": 0.01, "warmup_epochs": 0.5} |
    .optimizer = {"momentum_correction": true}'
is "$(jq -c '[.phases[] | [.step, .steps, .batch_per_worker, .global_batch, .lr_factor]]' "$work/fill/plan.json")" "[[0,2,8,16,2],[2,4,4,8,1]]" \
    "the plan has the batches that fill the memory"
is "$(jq -c 'select(.type == "step") | [.step, .epoch]' "$work/fill/attempt-1/events.jsonl" | tr '\n' ' ')" "[1,0.5] [2,1] [3,1.2] [4,1.4] [5,1.6] [6,1.8] " \
    "steps are as long as their batches"
is "$(jq -c '[.images_seen, .epoch_number, .epoch_images]' "$work/fill/checkpoints/step-00000006/state.json")" "[64,1,32]" \
    "images are counted"
survives "batches that fill the memory, from the change" "$work/fill.json" 2 "$work/fill" at_step 3
survives "batches that fill the memory, within an epoch" "$work/fill.json" 2 "$work/fill" at_step 5
survives "batches that fill the memory, at any time" "$work/fill.json" 2 "$work/fill" after_checkpoint 2
trial 2 fill-exact '.model.image_size = [[0, 32], [1.2, 48]] | .batch_schedule = "fill" | .data.train_images = 50 | .steps_rounding = "exact" |
    .accumulate_steps = 2 | .data.mixup = 0.2 | .ema = {"decay": 0.9, "from_epoch": 0.5} | .lr = {"base": 0.01, "warmup_epochs": 0.5}'
is "$(jq -c '[.phases[] | [.step, .steps, .global_batch, .end_epoch]]' "$work/fill-exact/plan.json")" "[[0,2,32,1.28],[2,4,16,2.56]]" \
    "with exact epochs batches change at the step that is nearest"
survives "batches that fill the memory, exact epochs" "$work/fill-exact.json" 2 "$work/fill-exact" at_step 3
is "$(average "$run")" "$(average "$work/fill-exact")" "and so are the averages"

# Averaged weights, from the middle of the first epoch on; evaluated at another size, with mirror images. By the small stem: where
# layers have few pixels, a model of one size may take another kernel than a model of two, which shows in the last digit.
trial 2 ema '.model.stem = "small" | .data.flip = "alternating" | .ema = {"half_life": 3, "every": 2, "from_epoch": 0.1} | .optimizer = {"name": "sgdw", "clip_norm": 1} | .eval += {"image_size": 40, "flip": true, "every_epochs": 1}'
is $? 0 "a run with averaged weights"
survives "SGDW with clipped gradients and averaged weights" "$work/ema.json" 2 "$work/ema" at_step 3
is "$(average "$run")" "$(average "$work/ema")" "averaged weights are bit for bit those of the undisturbed run"
is "$(jq -c 'select(.type == "eval" and .step == 6) | [.top1, .loss, .raw_top1, .raw_loss]' "$run/attempt-2/events.jsonl")" \
    "$(jq -c 'select(.type == "eval" and .step == 6) | [.top1, .loss, .raw_top1, .raw_loss]' "$work/ema/attempt-1/events.jsonl")" "and so are both evaluations"
job "$work/eval-ema.json" '.model.stem = "small" | .mode = "eval" | .model.init = "'"$work/ema/checkpoints/step-00000006/ema.safetensors"'" | .eval = {"batch": 25, "image_size": 40, "flip": true}'
worker 2 "$work/eval-ema.json" "$work/eval-ema"
# A batch of another size may be computed by other kernels, which shows in the last digit.
of_run='select(.type == "eval" and .step == 6)' rounded='1e4 | round'
is "$(jq -c "select(.type == \"eval\") | [.top1, .top5, (.loss * $rounded)]" "$work/eval-ema/attempt-1/events.jsonl")" \
    "$(jq -c "$of_run | [.top1, .top5, (.loss * $rounded)]" "$work/ema/attempt-1/events.jsonl")" "mode eval of ema.safetensors gives the run's own result"
job "$work/eval-raw.json" '.model.stem = "small" | .mode = "eval" | .model.init = "'"$work/ema/checkpoints/step-00000006"'" | .eval = {"batch": 25, "image_size": 40, "flip": true}'
worker 2 "$work/eval-raw.json" "$work/eval-raw"
is "$(jq -c "select(.type == \"eval\") | [.top1, .top5, (.loss * $rounded)]" "$work/eval-raw/attempt-1/events.jsonl")" \
    "$(jq -c "$of_run | [.raw_top1, .raw_top5, (.raw_loss * $rounded)]" "$work/ema/attempt-1/events.jsonl")" "and the checkpoint's evaluation is that of the raw weights"
torn=$(mktemp -d "$work/torn-XXXXXX")
cp -r "$work/ema/." "$torn"
rm "$torn/checkpoints/step-00000006/ema.safetensors"
resume "$torn/checkpoints/step-00000006" "$work/ema.json" "$torn"
like "$output" 'is damaged: cannot open .*ema.safetensors.*--resume latest uses the newest' \
    "a checkpoint that lost its averaged weights is refused"

# What Adam makes of its means depends on how many steps were done: every rank must know it.
trial 2 adam '.optimizer = {"name": "adamw", "weight_decay": 0.1} | .lr.base = 0.001'
survives "AdamW, 2 ranks" "$work/adam.json" 2 "$work/adam" at_step 4

# What evaluations decide: the rate falls after each that is not much better, the best two are kept.
trial 2 plateau '.lr = {"base": 0.05, "warmup_epochs": 0, "scaling": "none", "decay": "plateau", "gamma": 0.5, "patience": 0, "threshold": 0.9} | .eval.every_epochs = 0.2 |
    .eval.monitor = "loss" | .eval.patience = 50 | .checkpoint = {"every_steps": 2, "every_epochs": 0, "keep": 1, "keep_best": 2}'
rates='select(.type == "step" and .step > 4) | .lr'
is "$(jq -c "$rates" "$work/plateau/attempt-1/events.jsonl" | sort -u | wc -l)" 2 "the rate of a plateau falls from step to step"
monitored() {
    jq -c .monitor "$1/checkpoints/step-00000006/state.json"
}
like "$(monitored "$work/plateau")" '"best":\[[0-9]+,[0-9]+\]' "and the best two are known"
for moment in "at_step 3" "writes_checkpoint 4" "after_checkpoint 2"; do
    # shellcheck disable=SC2086
    survives "a plateau and the best checkpoints, $moment" "$work/plateau.json" 2 "$work/plateau" $moment
    resumed=$(jq -c "$rates" "$run/attempt-2/events.jsonl") # only step 6, if a best checkpoint of step 5 is the newest
    is "$resumed" "$(jq -c "$rates" "$work/plateau/attempt-1/events.jsonl" | tail -n "$(wc -l <<<"$resumed")")" "the rates go on"
    is "$(monitored "$run")" "$(monitored "$work/plateau")" "and so does what the evaluations decided"
    is "$(ls "$run/checkpoints")" "$(ls "$work/plateau/checkpoints")" "and the same checkpoints are kept"
done

# Dropout is drawn for each image of each epoch, also where a batch has two epochs.
trial 2 cnn '.model = {"arch": "cnn"} | .optimizer = {"name": "adam"} | .lr.base = 0.001 | .steps_rounding = "exact" |
    .data.train_images = 18 | .accumulate_steps = 2 | .batch_per_worker = 2'
survives "cnn with dropout, Adam, exact epochs" "$work/cnn.json" 2 "$work/cnn" at_step 3

# ---- other threads round otherwise
run=$work/given
cp -r "$work/whole" "$run"
job "$work/threads.json" '.cluster.threads_per_worker = 2'
resume "$run/checkpoints/step-00000004" "$work/threads.json" "$run"
is $? 0 "another number of threads goes on"
like "$(events "$run" 'select(.type == "warning") | .message')" 'with 2 threads a worker instead of 1:.*not be bit-identical' \
    "and a warning explains the consequence"

# ---- a given checkpoint, that is not the newest
rm -r "$run"
cp -r "$work/whole" "$run"
resume "$run/checkpoints/step-00000004" "$work/small.json" "$run"
is "$(last_weights "$run")" "$whole" "from a given checkpoint it comes to the same bits"
is "$(events "$run" 'select(.type == "eval" and .step == 5) | [.top1, .top5, .loss]')" "$top1 " "and to the same evaluation on the way"

# ---- of a version that did not keep the time of its steps
rm -r "$run"
cp -r "$work/whole" "$run"
old=$run/checkpoints/step-00000004/state.json
digest=$(/usr/bin/python3 - "$old" <<'END' | xxh128sum | cut -d' ' -f1
import json, re, sys
state = json.load(open(sys.argv[1]), parse_float=lambda text: "@" + text + "@") # every digit stays
del state["train_seconds"], state["xxh128"]
print(re.sub(r'"@([^"]*)@"', r"\1", json.dumps(state, sort_keys=True, separators=(",", ":"))), end="")
END
)
sed -i "/\"train_seconds\"/d; s/\(\"xxh128\": \"\)[^\"]*/\1$digest/" "$old"
resume "$run/checkpoints/step-00000004" "$work/small.json" "$run"
is "$?" 0 "a checkpoint that does not tell the time of its steps goes on"
is "$(jq -c '[.status, .steps, .images_per_sec]' "$run/result.json")" '["success",6,null]' "but the speed of the whole run is not known"

# ---- at the end: nothing to train, and the evaluation that was done is not lost
resume latest "$work/small.json" "$run"
is "$?" 0 "a finished run can be resumed"
is "$(jq -c '[.status, .steps, .top1]' "$run/result.json")" "$(jq -c '[.status, .steps, .top1]' "$work/whole/result.json")" \
    "and ends as it did"
like "$(jq -r .ttt_seconds "$run/result.json")" '^[0-9]+\.' "with a time to train"

# ---- checkpoints that cannot be used
truncate -s -100 "$run/checkpoints/step-00000006/optimizer.safetensors"
resume "$run/checkpoints/step-00000006" "$work/small.json" "$run"
like "$output" 'step-00000006 is damaged: the xxh128 of optimizer.safetensors does not match .*--resume latest uses the newest' \
    "a torn checkpoint is refused by name"
cp "$run/checkpoints/step-00000002/model.safetensors" "$run/checkpoints/step-00000004/"
rm "$run/attempt-2/events.jsonl"
resume latest "$work/small.json" "$run"
is "$(last_weights "$run")" "$whole" "latest takes an older one that is whole, and comes to the same bits"
like "$(events "$run" 'select(.type == "warning") | .message')" 'step-00000006 is damaged.*step-00000004 is damaged: the xxh128 of model.safetensors does not match' \
    "and a warning names each that is not"

job "$work/foreign.json" '.seed = 2'
resume "$run/checkpoints/step-00000002" "$work/foreign.json" "$work/foreign"
like "$output" 'belongs to a different job: its seed is 1, but this job.s is 2' "a checkpoint of another seed is refused"
job "$work/foreign.json" '.loss = "bce"'
resume "$run/checkpoints/step-00000002" "$work/foreign.json" "$work/foreign"
like "$output" 'belongs to a different job: its loss is "cross_entropy", but this job.s is "bce"' "and of another loss"
job "$work/foreign.json" '.model.blur_pool = true'
resume "$run/checkpoints/step-00000002" "$work/foreign.json" "$work/foreign"
like "$output" 'belongs to a different job: its model.blur_pool is false, but this job.s is true' "and of a network with low-pass filters"
job "$work/foreign.json" '.model.classes = 11'
resume latest "$work/foreign.json" "$run"
like "$output" 'none of the 3 checkpoints.*its model.classes is 10, but this job.s is 11' "latest refuses when all are another job's"
job "$work/foreign.json" '.data.train_images = 80'
resume "$run/checkpoints/step-00000002" "$work/foreign.json" "$work/foreign3"
like "$output" 'is from a run with 96 training images, but there are now 80' "and of another number of images"
resume "$run/nothing" "$work/small.json" "$work/foreign"
like "$output" 'checkpoint .*/nothing does not exist' "a missing one is refused by name"
resume "$work/data" "$work/small.json" "$work/foreign"
like "$output" 'is not a checkpoint: it has no state.json' "and a path that is not a folder"
job "$work/few.json" '.steps = 1 | .eval.every_epochs = 0 | .data.eval = null'
resume latest "$work/few.json" "$work/new"
like "$(events "$work/new" 'select(.type == "warning") | .message')" 'no checkpoint in .*from the beginning' \
    "latest without a checkpoint starts from the beginning, with a message"

done_testing
