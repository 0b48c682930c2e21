#!/usr/bin/env bash
# train-worker by itself, under real mpirun, on real shards: its files, and its messages about bad input.
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"
trap 'umount "$work/small" 2>/dev/null; rm -rf "$work"' EXIT
small_job '.name = "small" | .data.eval = "\($data)/validation" | .eval = {batch: 7, predictions: true}'

# ---- a run
worker 2 "$work/small.json" "$work/run"
is $? 0 "a small job on two ranks ends well"
events=$work/run/attempt-1/events.jsonl
is "$(jq -r .type "$events" | uniq | tr '\n' ' ')" "run_start step eval_progress confusion eval checkpoint run_stop " \
    "events come in their order"
is "$(jq -r 'select(.type == "run_start") | .kernels' "$events")" "$("$top_builddir/tests/bin/train-worker" --version | sed 's/.*(kernels: \(.*\))/\1/')" \
    "run_start names the kernels"
is "$(jq -s -c 'map(.seq) == [range(1; length + 1)]' "$events")" true "and are numbered without a hole"
is "$(jq -c 'select(.type == "step") | .step' "$events" | tr '\n' ' ')" "1 2 3 4 " "a step event for each step"
is "$(command jq -r 'select(.type == "step" and .step == 1) | keys_unsorted | join(" ")' "$events")" \
    "seq t type step epoch loss lr images_per_sec step_ms data_ms forward_ms backward_ms comm_ms optim_ms grad_norm top1 slowest_rank rank_busy_ms" \
    "with the contract's fields"
is "$(jq 'select(.type == "eval") | .images' "$events")" 50 "evaluation counts every image once"
is "$(jq -c '[.status, .steps]' "$work/run/result.json")" '["success",4]' "result.json has its end"
is "$(jq -n -c --slurpfile e "$events" --slurpfile r "$work/run/result.json" \
    '[$e[] | select(.type == "run_stop")][0] as $s | [$s.top1, $s.top5] == [$r[0].top1, $r[0].top5]')" true \
    "with the numbers of run_stop"
like "$output" 'Evaluation \[[0-9]+/8\]' "progress lines have the seeds' form"
is "$(wc -l <"$work/run/attempt-1/predictions.csv")" 51 "predictions.csv has a line an image"
weights=$(echo "$work"/run/checkpoints/step-*/model.safetensors)
is "${weights#"$work/run/checkpoints/"}" step-00000004/model.safetensors "the weights are where the contract wants them"

# ---- its weights, evaluated by themselves
trial 2 eval ".mode = \"eval\" | .model.init = \"$weights\" | .eval.batch = 25"
is $? 0 "mode eval runs"
like "$output" 'evaluated the weights of step 4, time to evaluate [0-9.]+ s' "and reports its time"
is "$(jq -c '[.top1, .top5, (.eval_loss * 1e4 | round)]' "$work/eval/result.json")" \
    "$(jq -c '[.top1, .top5, (.eval_loss * 1e4 | round)]' "$work/run/result.json")" "and finds what the training's evaluation found"

# ---- an evaluation that ends the run, as it meets the target
job "$work/target.json" '.eval += {every_epochs: 0.3, target_top1: 0.0001, stop_at_target: true} | .ema = {decay: 0.5}'
target=$work/target
worker 2 "$work/target.json" "$target"
is "$? $(jq -c '[.steps, .target_reached]' "$target/result.json")" "0 [2,true]" "a run ends at the evaluation that meets its target"
is "$(jq -c 'select(.type == "eval") | .step' "$target/attempt-1/events.jsonl")" 2 "which is reported once"
right=$(awk -F, 'NR > 1 && $(NF - 2) == $(NF - 1)' "$target/attempt-1/predictions.csv" | wc -l)
is "$(wc -l <"$target/attempt-1/predictions.csv") $right" "51 $(jq '.top1 * 50 | round' "$target/result.json")" \
    "its predictions are written all the same"
worker 2 "$work/target.json" "$target" --attempt 2 --resume latest
is "$?" 0 "a run resumed at its end"
ok "writes them again" cmp "$target/attempt-1/predictions.csv" "$target/attempt-2/predictions.csv"

# ---- the same job again gives the same bits, with other prefetch threads and while other programs take the processor
timeout 120 sh -c 'while :; do :; done' &
busy=$! again=()
for threads in 1 4; do
    job "$work/again-$threads.json" ".data.prefetch_threads = $threads | .data.eval = null | .eval.predictions = false"
    worker 2 "$work/again-$threads.json" "$work/again-$threads" &
    again+=($!)
done
wait "${again[@]}"
kill $busy
for threads in 1 4; do
    is "$(sha256sum <"$work/again-$threads/checkpoints/step-00000004/model.safetensors")" "$(sha256sum <"$weights")" \
        "the same job gives the same bits with $threads prefetch threads on a busy machine"
done

# ---- memory: the plan's prediction for a worker and its usage; threads need little
# Where OpenBLAS multiplies (processors without AVX2), it has a buffer of half a megabyte for each thread.
least=0.95 a_thread=2
[ "$(jq -r 'select(.type == "run_start") | .gemm' "$work/run/attempt-1/events.jsonl")" = own ] || least=0.9 a_thread=3
memory_of() { # THREADS JQ-CHANGES: sets $resident
    local job="$work/threads-$1" changes=$2
    jq -n --argjson threads "$1" '{model: {image_size: 32, winograd: false}, data: {train: "synthetic", train_images: 640}, batch_per_worker: 8,
        cluster: {workers_per_node: 1, threads_per_worker: $threads}, steps: 1, checkpoint: {disable: true}} | '"$changes" >"$job.json"
    rm -rf "$job"
    worker 1 "$job.json" "$job"
    resident=$(jq 'select(.type == "run_stop") | .memory_peak_bytes' "$job/attempt-1/events.jsonl")
    is "$(jq --argjson resident "$resident" --argjson least $least '.memory_bytes_per_worker / $resident | . > $least and . < 1.05' "$job/plan.json")" \
        true "the plan's memory of a worker of $1 threads is close to its resident memory ($changes: $resident bytes)"
}
for threads in 22 3; do
    memory_of $threads '.precision = "bf16"'
    memory_of $threads '.model = {arch: "cnn"} | .batch_per_worker = 400'
done
for threads in 1 48; do
    memory_of $threads .
    [ "$threads" != 1 ] || one=$resident
done
# How far the reading of images got ahead on a busy machine counts too: the least of three runs.
for _ in 1 2; do
    [ $((resident - one)) -gt $((47 * a_thread * 1000000)) ] || break
    memory_of 48 .
done
is "$(jq -n "($resident - $one) / 47 <= ${a_thread}e6")" true "a thread takes $a_thread MB at most ($(((resident - one) / 47)) bytes)"

# ---- bad input
worker 3 "$work/small.json" "$work/np"
like "$output" 'asks for 1 x 2 = 2 workers, but 3 were started' "a wrong number of ranks is named"

trial 2 typos '.epoch = 3 | .lr.bas = 1'
like "$output" 'did you mean epochs\?.*; lr.bas: .*did you mean lr.base\? \(rank 0' "all errors of a document are in one line"

trial 2 bad '.batch_per_worker = 100'
like "$(failed_event "$work/bad")" 'global batch' "a global batch larger than the data is refused"

trial 2 missing '.data.train = "/nowhere/at/all"'
fails_with $? "a missing data folder ends the run"
like "$(failed_event "$work/missing")" '"phase": ?"data".*/nowhere/at/all' "with an event that names phase and folder"

# ---- outputs that are no numbers
# not_a_number IN OUT: the weights of IN with a bias that is NaN
not_a_number() {
    python3 - "$1" "$2" <<'END'
import json, struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
length = struct.unpack("<Q", data[:8])[0]
begin, end = json.loads(data[8:8 + length])["fc.bias"]["data_offsets"]
data[8 + length + begin:8 + length + begin + 4] = struct.pack("<f", float("nan"))
open(sys.argv[2], "wb").write(data)
END
}
not_a_number "$weights" "$work/nan.safetensors"
trial 2 nan ".mode = \"eval\" | .model.init = \"$work/nan.safetensors\" | .eval.target_top1 = 0.1"
fails_with $? "an evaluation of weights that hold NaN fails"
like "$(failed_event "$work/nan")" 'NaN or infinite for 50 of 50 images' "and gives the reason"
is "$(grep -c -e '"type": "eval"' -e '"type": "run_stop"' "$work/nan/attempt-1/events.jsonl")" 0 \
    "it reports no accuracy, and no target as reached"
is "$(ls "$work/nan/result.json" "$work/nan/attempt-1/predictions.csv" 2>/dev/null)" "" "and writes neither a result nor predictions"

# The update of the only step is so large that the weights are no numbers, while its loss and gradients still are.
trial 2 last '.lr.base = 1e12 | .lr.scaling = "none" | .steps = 1 | .eval.target_top1 = 0.1 | .eval.predictions = false'
fails_with $? "weights that diverge in the last step fail the run"
like "$(failed_event "$work/last")" 'diverged at step 1, the model.s outputs are NaN or infinite' "and the evaluation names the step"
is "$(ls "$work/last/checkpoints" 2>/dev/null)" "" "no checkpoint is kept of them"

# ---- a full disk at the checkpoint
mkdir "$work/small"
if mount -t tmpfs -o size=5m tmpfs "$work/small" 2>/dev/null; then
    worker 2 "$work/small.json" "$work/small/run"
    like "$(failed_event "$work/small/run")" '"phase": ?"checkpoint".*[Nn]o space left' \
        "a full disk at the last checkpoint fails the run by name"
    is "$(ls -A "$work/small/run/checkpoints")" "" "and leaves no half checkpoint"
    job "$work/often.json" '.checkpoint.every_steps = 2 | .steps = 3'
    worker 2 "$work/often.json" "$work/small/run2"
    like "$(jq -c 'select(.type == "warning")' "$work/small/run2/attempt-1/events.jsonl")" 'No space left' \
        "on the way it is a warning, and training goes on"
else
    skip "a full disk at the checkpoint" "cannot mount a small file system here"
fi

# ---- the library that multiplies, and the interval of the log
trial 2 blas '.model.gemm = "openblas" | .data.prefetch_batches = 1 | .log = {"every_seconds": 0, "every_steps": 3} | .profile.steps = [2, 2] | .data.eval = null | .eval.predictions = false'
is $? 0 "convolutions by OpenBLAS, one batch made ahead"
is "$(jq -r 'select(.type == "run_start") | .gemm + .winograd' "$work/blas/attempt-1/events.jsonl")" openblas \
    "run_start names the library that multiplies; none is Winograd's"
is "$(jq -r '.[] | select(.name == "process_labels") | .args.gemm' "$work/blas/attempt-1/trace.json" | sort -u)" openblas \
    "and so does the trace"
is "$(grep -o '^Step \[[0-9]*' <<<"$output" | tr '\n' ' ')" "Step [3 Step [4 " "a line every 3 steps, and of the last"

# ---- a run directory that holds a run already
run=$work/again-4
before=$(cd "$run" && find . -type f -exec sha256sum {} + | sort)
jq '.lr.base = 0.3' "$work/again-4.json" >"$work/other.json"
worker 2 "$work/other.json" "$run"
fails_with $? "another job in it is refused"
like "$output" "again-4/job.json belongs to another job \(lr.base differs\): use another --run-dir" "with the key that differs"
jq '.cluster.workers_per_node = 1 | .batch_per_worker = 16' "$work/again-4.json" >"$work/one.json"
worker 1 "$work/one.json" "$run"
like "$output" "belongs to another job \((batch_per_worker|cluster.workers_per_node) differs\)" "so is one for other workers"
is "$(cd "$run" && find . -type f -exec sha256sum {} + | sort)" "$before" "and nothing in it changes"
worker 2 "$work/again-4.json" "$run"
is $? 0 "the same job runs in it again"
worker 2 "$run/job.json" "$run"
is $? 0 "and so does the job that it holds"
jq '.peak_lr *= 2' "$run/plan.json" >"$work/plan.json" && cp "$work/plan.json" "$run/plan.json"
worker 2 "$run/job.json" "$run"
like "$(failed_event "$run")" 'plan.json has peak_lr = [0-9.]+, but the data now gives [0-9.]+' \
    "a plan with another learning rate is refused"

done_testing
