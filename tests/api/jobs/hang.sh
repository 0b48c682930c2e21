#!/usr/bin/env bash
# A rank or mpirun that is stopped in each phase of a real run, from before MPI's start to behind its end, on a file
# system that does not answer, and phases that are only long. The daemon names who, and ends the attempt.
# shellcheck disable=SC2119,SC2317
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
printf '%s\n' "worker = $top_builddir/tests/paced/train-worker" "slots = 2" "stall_seconds = 6" "restart_delay_seconds = 0" \
    "cancel_grace_seconds = 2" >"$work/traind.conf"
restart_runs
# The workers say after 6 s that they wait. The daemon has as little patience only from when somebody has been stopped on: on a busy
# machine MPI's start, and a step, take longer.
patience() {
    change stall_seconds "$1"
}

launcher() {
    sql "select launcher_pid from job where id = $id"
}
train() { # JQ, which changes the document: sets $id
    jq -n "{name: \"real\", cluster: {workers_per_node: 2, threads_per_worker: 1},
        data: {train: \"synthetic\", eval: \"synthetic\", train_images: 64}, batch_per_worker: 4, steps: 100000,
        model: {arch: \"resnet18\", image_size: 32, classes: 10, winograd: false, width: 0.0625}, checkpoint: {disable: true}, restart: {max: 0}} | $1" >"$work/job.json"
    call -H 'Content-Type: application/json' --data-binary "@$work/job.json" /v1/jobs
    id=$(jq -r '.id // 0' <<<"$body")
    [ "$id" != 0 ] || is "$body" "" "the job is taken"
    eventually test -s "$state/jobs/$id/attempt-1/command"
    patience 600
}
log() { # of the job's first attempt
    cat "$state/jobs/$id/attempt-1/stdout.log"
}
starts() {
    stopped=$(rank_process "$id" 1)
    [ -n "$stopped" ]
}
shows() {
    log 2>/dev/null | grep -qE "$1"
}
ended() { # REASON NAME: the job of $id fails for it, and nothing of it is left
    patience 6
    ok "$2: the job is ended" wait_state "$id" failed
    like "$(job "$id" reason)" "$1" "$2: the reason says who"
    is "$(processes "$id")" 0 "$2: no process is left"
}
here=$(hostname)

# ------------------------------------------------------------------ the start

train .
ok "start: a rank is there" eventually starts
kill -STOP "$stopped"
ended "^rank 1 on $here is stopped by a signal: no (progress in the (start|opening of the data)|step ended) for [0-9]+ s" start
is "$(job "$id" failure.rank)" 1 "start: the failure has the rank"

# ------------------------------------------------------------------ all of it

train '.cluster.workers_per_node = 1'
ok "all: a rank alone trains" eventually has_events "$id" 2
kill -STOP "$(rank_process "$id" 0)"
ended "^rank 0 on $here is stopped by a signal: no step ended for [0-9]+ s; the last step was [0-9]+" "all"
is "$(job "$id" failure.phase)" train "all: the failure has the phase"

# ------------------------------------------------------------------ an evaluation, which is long

train '.steps = 1 | .data.train_images = 6000 | .eval = {batch: 100}'
ok "evaluation: one that takes long is said to get on" eventually shows "in the evaluation for [0-9]+ s on $here: its ranks are at work"
like "$(job "$id" state)" '^(running|evaluating)$' "evaluation: and not ended for it"
kill -STOP "$(rank_process "$id" 1)"
ended "^rank 1 on $here is stopped by a signal: no (progress in the evaluation|step ended) for [0-9]+ s" evaluation

# ------------------------------------------------------------------ a checkpoint

train '.checkpoint = {every_steps: 1} | .data.eval = null'
hidden="$state/jobs/$id/checkpoints/.step-*.tmp"
stop_in_checkpoint() {
    local writer
    writer=$(rank_process "$id" 0)
    for _ in $(seq 20000); do
        if compgen -G "$hidden" >/dev/null; then
            kill -STOP "$writer"
            # It may just have been renamed.
            tap_sleep 0.2
            compgen -G "$hidden" >/dev/null && return 0
            kill -CONT "$writer"
        fi
        tap_sleep 0.005
    done
    return 1
}
ok "checkpoint: it trains" eventually has_events "$id" 1
ok "checkpoint: rank 0 is stopped in one" stop_in_checkpoint
ok "checkpoint: the other rank says in which phase" eventually shows "no progress in the checkpoint for [0-9]+ s: rank 0 on $here is stopped by a signal"
ended "^rank 0 on $here is stopped by a signal: no (progress in the checkpoint|step ended) for [0-9]+ s" checkpoint

# ------------------------------------------------------------------ the end

train '.steps = 15 | .data.eval = null'
mpirun=$(launcher)
ok "end: it trains" eventually has_events "$id" 1
kill -STOP "$mpirun"
ok "end: the run ends" eventually grep -qs '"type": "run_stop"' "$state/jobs/$id/attempt-1/events.jsonl"
patience 6
ok "end: a job whose mpirun is stopped ends as the run says" wait_state "$id" succeeded
like "$(job "$id" reason)" "^complete; .*\(process $mpirun\) is stopped by a signal: no progress in the end for [0-9]+ s, so it was ended$" "end: and who did not end"
is "$(processes "$id")" 0 "end: no process is left"
is "$(job "$id" step)" 15 "end: all steps are there"

done_testing
