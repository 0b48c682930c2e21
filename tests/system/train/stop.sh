#!/usr/bin/env bash
# A run that a signal stops at a step where it would not have written a checkpoint goes on to the very bits of one that nobody stopped:
# weights, running statistics of batch norm, averages and evaluations.
set -u
: "${top_srcdir:?run it by make check}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"
# shellcheck source=tests/system/lib.sh
. "$top_srcdir/tests/system/lib.sh"
trap 'rm -rf "$work"' EXIT
small_data

# Nothing is averaged but at the evaluations of steps 12 and 24 and the checkpoints of steps 8 and 16.
cat >"$work/small.json" <<END
{"model": {"arch": "resnet18", "width": 0.0625, "classes": 10, "image_size": 64}, "data": {"train": "$work/data/train", "eval": "$work/data/validation"},
 "cluster": {"workers_per_node": 2, "threads_per_worker": 1}, "batch_per_worker": 4, "steps": 24, "lr": {"warmup_epochs": 0.2, "scaling": "none", "base": 0.01},
 "eval": {"batch": 5, "every_epochs": 1}, "checkpoint": {"every_steps": 8, "every_epochs": 0, "keep": 100}}
END
last=checkpoints/step-00000024

# stop JOB RUN EVENT: starts a run on two ranks and sends SIGTERM to one of them once the text is among its events; sets $step, at which it
# wrote its last checkpoint, and $exited, the exit status
stop() {
    local events=() launcher ranks=()
    mpirun --oversubscribe --bind-to none -np 2 "$top_builddir/tests/bin/train-worker" --job "$1" --run-dir "$2" >/dev/null 2>&1 &
    launcher=$!
    for _ in $(seq 60000); do
        mapfile -t events 2>/dev/null <"$2/attempt-1/events.jsonl"
        # The ranks are known beforehand: no process stands between the event and the signal.
        [ ${#ranks[@]} = 2 ] || [ ${#events[@]} = 0 ] || mapfile -t ranks < <(pgrep -P $launcher)
        [[ "${events[*]}" != *"$3"* ]] || break
        kill -0 $launcher 2>/dev/null || break
        tap_sleep 0.01
    done 2>/dev/null
    kill -TERM "${ranks[1]:-$launcher}"
    wait $launcher 2>/dev/null
    exited=$?
    step=$(find "$2/checkpoints" -name 'step-*' | sort | tail -1)
    step=$((10#${step##*-}))
    [ "$(jq -r .status "$2/result.json")" = cancelled ]
}

# stopped JOB RUN EVENT STEPS: again, until it was at one of these, a pattern: a busy machine may be late with the signal
stopped() {
    local tries=0
    # shellcheck disable=SC2053
    until stop "$1" "$2" "$3" && [[ $step == $4 ]]; do
        [ $((++tries)) -lt 50 ] || return 1
        rm -rf "$2"
    done
}

# results RUN: digests of the last checkpoint's tensors, and all evaluations
results() {
    (cd "$1/$last" && sha256sum -- *.safetensors)
    cat "$1"/attempt-*/events.jsonl | jq -c 'select(.type == "eval") | [.step, .top1, .top5, .loss, .raw_top1, .raw_loss]'
    jq -c '[.losses, .evaluations]' "$1/$last/state.json"
}

own() { # RUN STEP: the file with the statistics of each rank
    printf '%s/checkpoints/step-%08d/statistics.safetensors' "$1" "$2"
}

# tensors RUN STEP FILTER: of the header of that file
tensors() {
    local file length
    file=$(own "$1" "$2")
    length=$(od -An -tu8 -N8 "$file")
    tail -c +9 "$file" | head -c $((length)) | jq -c "$3"
}

worker 2 "$work/small.json" "$work/whole"
is $? 0 "a run that nobody disturbs"
is "$(find "$work/whole" -name statistics.safetensors)" "" "its checkpoints have no statistics of single ranks"

run=$work/stopped
ok "one that is stopped soon after step 1" stopped "$work/small.json" "$run" '"type": "step", "step": 1,' '[1-7]'
ok "writes a checkpoint that the job does not name" test -e "$run/checkpoints/step-0000000$step"
is "$(tensors "$run" "$step" 'to_entries | [length, .[0].key, .[0].value.shape]')" '[40,"bn1.running_mean",[2,64]]' "with the statistics of each rank"
cp -r "$run" "$work/one"
worker 2 "$work/small.json" "$run" --attempt 2 --resume latest
is "$?" 0 "it goes on"
is "$(results "$run")" "$(results "$work/whole")" "to the same bits: weights, running statistics, momenta, losses and evaluations"

worker 1 "$work/small.json" "$work/one" --attempt 2 --resume latest
is "$?" 0 "on one rank it goes on too"
like "$(jq -r 'select(.type == "warning") | .message' "$work/one/attempt-2/events.jsonl")" \
    'the running statistics of batch norm of each of 2 ranks; the run goes on with their average' "and a warning says with which statistics"

run=$work/evaluating
ok "one that is stopped in an evaluation" stopped "$work/small.json" "$run" '"type": "eval_progress"' 12
is "$step" 12 "writes a checkpoint of that step"
ok "where the undisturbed run has averaged too" test ! -e "$(own "$run" 12)"
worker 2 "$work/small.json" "$run" --attempt 2 --resume latest
is "$(results "$run")" "$(results "$work/whole")" "and goes on to the same bits"

# ---- a signal behind the last step, to one rank: there is nothing to stop
job "$work/late.json" '.data.eval = null | .steps = 2 | .model.width = 1'
tries=0
until stop "$work/late.json" "$work/late" '"type": "step", "step": 2,'
    [ "$(jq -r .status "$work/late/result.json")" = success ] || [ $((++tries)) = 20 ]; do
    rm -rf "$work/late"
done
is "$exited $(jq -r .status "$work/late/result.json")" "0 success" "a run that is signalled behind its last step succeeds, and says so to whoever started it"

# ---- a wish from before the ranks were there, when mpirun had nobody to hand the signal to
mkdir -p "$work/early/attempt-1" && : >"$work/early/attempt-1/cancel-requested"
worker 2 "$work/small.json" "$work/early"
is "$(jq -c '[.status, .steps]' "$work/early/result.json")" '["cancelled",0]' "a run that was cancelled before its ranks started ends before its first step"

# ---- with averaged weights
job "$work/ema.json" '.ema = {"decay": 0.9, "from_epoch": 0.1}'
worker 2 "$work/ema.json" "$work/ema"
run=$work/ema-stopped
ok "with averaged weights" stopped "$work/ema.json" "$run" '"type": "step", "step": 3,' '[3-7]'
is "$(tensors "$run" "$step" 'keys | [length, .[0], .[-1]]')" '[80,"bn1.running_mean","layer4.1.bn2.running_var"]' "the statistics of both"
cp -r "$run" "$work/torn"
worker 2 "$work/ema.json" "$run" --attempt 2 --resume latest
is "$(results "$run")" "$(results "$work/ema")" "both go on to the same bits"
torn=$(own "$work/torn" "$step")
rm "$torn"
worker 2 "$work/ema.json" "$work/torn" --attempt 2 --resume "${torn%/*}"
like "$output" 'is not whole: statistics.safetensors is not what was written' "a checkpoint that lost them is refused"

done_testing
