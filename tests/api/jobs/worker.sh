#!/usr/bin/env bash
# The real train-worker under the daemon: ResNet-50 on synthetic images, to its end, killed, cancelled, and with the
# daemon killed meanwhile.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"

train() { # STEPS: sets $id
    jq -n --argjson steps "$1" '{name: "real", cluster: {workers_per_node: 2, threads_per_worker: 1},
        data: {train: "synthetic", eval: "synthetic", train_images: 64}, batch_per_worker: 4,
        steps: $steps, model: {arch: "resnet18", image_size: 32, classes: 10, width: 0.0625}, checkpoint: {disable: true}, restart: {max: 0}}' >"$work/job.json"
    call -H 'Content-Type: application/json' --data-binary "@$work/job.json" /v1/jobs
    id=$(jq -r '.id // 0' <<<"$body")
}

printf '%s\n' "worker = $top_builddir/tests/paced/train-worker" "slots = 2" "cancel_grace_seconds = 60" >"$work/traind.conf"
restart_runs
train 6
want 201 "a job is taken"
ok "it trains" eventually has_events "$id" 2
kill_daemon
restart_runs
ok "and succeeds, its daemon killed meanwhile" wait_state "$id" succeeded
call "/v1/jobs/$id/mllog"
like "$(/usr/bin/python3 "$top_srcdir/tests/api/http/check_mllog.py" "$work/body" 2>&1 | tail -n 1)" '"status": "success"' "its log follows MLPerf's rules"
call "/v1/jobs/$id/tensorboard"
is "$(/usr/bin/python3 "$top_srcdir/tests/api/http/read_tfevents.py" "$work/body" | jq '.series.loss | length')" "$(job "$id" step)" "TensorBoard's file has its steps"
steps_are_complete "$id" 6 "the real worker"
is "$(sql "select count(*) from job_event where job_id = $id and seq > 0")" \
    "$(wc -l <"$state/jobs/$id/attempt-1/events.jsonl")" "as many events as lines"
digits='[.top1, .ttt_seconds] | map(. * 1e6 | round)' # events have 9 significant digits
is "$(jq -c "$digits" "$state/jobs/$id/result.json")" "$(get "/v1/jobs/$id" | jq -c "$digits")" "the result is the worker's"

train 100000
ok "a long one trains and logs it" eventually grep -qs '^Step' "$state/jobs/$id/attempt-1/stdout.log"
step=$(job "$id" step)
kill -PIPE "$(rank_process "$id" 1)"
ok "a rank goes on whose write to a closed connection is signalled" eventually has_events "$id" $((step + 20))
kill -KILL "$(rank_process "$id" 1)"
ok "a killed rank fails it" wait_state "$id" failed
is "$(sql "select abs(images_per_sec / (select count(*) * 8 * 1e3 / sum(step_ms) from step_metric where job_id = $id) - 1) < 1e-6 from job where id = $id")" 1 \
    "its images/s are those of all its steps"
like "$(job "$id" reason)" "^rank [01] on $(hostname) was ended by signal 9 \(SIGKILL, Killed\).*; the last step was [0-9]+; last lines of the log: .*Step " "with rank, host, signal and last lines"

# A limit below what it has: MPI, the C library or the worker come upon it.
train 100000
ok "one trains" eventually has_events "$id" 3
rank=$(rank_process "$id" 1)
prlimit --pid "$rank" --as=1
kill -SEGV "$rank"
ok "a crash for lack of memory fails it" wait_state "$id" failed
like "$(job "$id" reason)" "signal 11 .*rank [01] on $(hostname): Cannot allocate memory: there was no room" "the reason says what it lacked"
is "$(job "$id" failure.label)" out-of-memory "and it is put there"

train 100000
ok "another trains" eventually has_events "$id" 2
call -X POST "/v1/jobs/$id/cancel"
ok "it is cancelled" wait_state "$id" cancelled
like "$(job "$id" reason)" "^cancelled on request after step [0-9]+$" "after a whole step"
is "$(processes "$id")" 0 "no process is left"
jq '.profile.steps = [2, 3] | .eval.predictions = true' "$work/job.json" | jq '.steps = 4' >"$work/traced.json"
call -H 'Content-Type: application/json' --data-binary "@$work/traced.json" /v1/jobs
id=$(jq -r '.id // 0' <<<"$body")
ok "one with profile.steps succeeds" wait_state "$id" succeeded
call "/v1/jobs/$id/trace"
want 200 "its trace is served"
is "$(jq -c '[.[] | select(.name == "step") | .pid] | sort' <<<"$body")" '[0,0,1,1]' "two steps of each rank are in it"
call "/v1/jobs/$id/layers"
want 200 "its table of layers"
is "$body" "$(cat "$state/jobs/$id/attempt-1/layers.txt")" "as it lies in the attempt's folder"
call "/v1/jobs/$id/predictions"
want 200 "its predictions"
like "$headers" '^Content-Type: text/csv' "as CSV"
is "$(head -n 1 <<<"$body") $(grep -c , <<<"$body")" "file,label,top1,p $(($(job "$id" plan.eval_images) + 1))" "one line an image"
for file in layers predictions; do
    call "/v1/jobs/$((id - 1))/$file"
    refused 404 not-found "job $((id - 1)) has no .*: its document" "$file of a job that did not ask for them"
done
call "/v1/jobs/$((id - 1))/trace"
want 404 "a job without profile.steps has none"
like "$body" 'profile\.steps' "and the answer says why"

jq '.lr = {base: 1e10, warmup_epochs: 0} | .steps = 50' "$work/job.json" >"$work/diverges.json"
call -H 'Content-Type: application/json' --data-binary "@$work/diverges.json" /v1/jobs
id=$(jq -r '.id // 0' <<<"$body")
ok "a learning rate of 1e10 fails a job" wait_state "$id" failed
like "$(job "$id" reason)" "^diverged at step [0-9]+, the loss was (not a number \(NaN\)|infinite): try a smaller .* \(rank 0 on $(hostname), phase train\)$" "and the reason says at which step, and what the loss was"
is "$(get "/v1/jobs/$id/events" | jq -r '[.. | objects | select(.type? == "failed")] | length')" 1 "once, as an event"
ok "the daemon stops in order" stop_daemon

# ---- a run that stands still: the setting goes to the worker, its warning comes back. The daemon, which would end it, has more patience.
echo "stall_seconds = 4" >>"$work/traind.conf"
restart_runs
train 100000
eventually test -s "$state/jobs/$id/attempt-1/command"
change stall_seconds 600
ok "a job trains" eventually has_events "$id" 2
stopped=$(rank_process "$id" 1)
kill -STOP "$stopped"
warned() {
    [ "$(sql "select count(*) from job_event where job_id = $id and type = 'warning' and body like '%rank_stopped%' and body like '%is stopped by a signal%'")" -ge 1 ]
}
ok "a stopped rank is warned of" eventually warned
like "$(get "/v1/jobs/$id/events")" "no step for [0-9]+ s: rank 1 on $(hostname) is stopped by a signal" "in words, by the API"
is "$(job "$id" state)" running "the job is not ended for it"
kill -CONT "$stopped"
before=$(sql "select count(*) from step_metric where job_id = $id")
ok "and it goes on when the rank does" eventually has_events "$id" $((before + 2))
call -X POST "/v1/jobs/$id/cancel"
ok "until it is cancelled" wait_state "$id" cancelled
ok "the daemon stops in order" stop_daemon
done_testing
