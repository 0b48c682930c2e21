#!/usr/bin/env bash
# Restarts after failures, resumes on request, time limits, removal and retention, with a worker that trains nothing;
# tests/api/jobs/recover.sh is the same with the real one.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
trainctl=("$top_builddir/trainctl")
two='{"workers_per_node": 2, "threads_per_worker": 1}'
host=$(hostname)
start_runs

resume() { # ID [BODY]
    call -H 'Content-Type: application/json' -d "${2-}" "/v1/jobs/$1/resume"
}
steps_of_attempt() {
    sql "select min(json_extract(body, '\$.step')) || '-' || max(json_extract(body, '\$.step')) from job_event
        where job_id = $1 and attempt = $2 and type = 'step'"
}

# ------------------------------------------------------------------ automatic restarts

submit "steps=30 step_ms=10 every=5 rank=1 at=12 signal=9 first=1" "$two" '{"restart": {"max": 2}}'
ok "a job whose rank is killed restarts and succeeds" wait_state "$id" succeeded
is "$(job "$id" attempt) $(job "$id" restarts)" "2 1" "in its second attempt"
is "$(steps_of_attempt "$id" 1) $(steps_of_attempt "$id" 2)" "1-12 11-30" "from its newest checkpoint"
like "$(job "$id" reason)" "^complete after 1 restart; the first failure: rank 1 on $host was ended by signal 9 \(SIGKILL, Killed\) in phase train; .*; the last step was 12$" \
    "its reason tells of it, without the log"
is "$(job "$id" 'failure | "\(.attempt) \(.rank) \(.host) \(.phase) \(.signal) \(.step)"')" "1 1 $host train SIGKILL 12" "so do the fields"
like "$(job "$id" 'failure.log | join("|")')" "rank [01] is process" "and the last lines of the log"
is "$(sql "select json_extract(body, '\$.rank') || ' ' || json_extract(body, '\$.signal') from job_event where job_id = $id and type = 'failed'")" \
    "1 SIGKILL" "the events have it"
like "$(sql "select group_concat(json_extract(body, '\$.reason')) from job_event where job_id = $id and type = 'state'")" \
    "restart 1 of 2 follows in 0 s, from its checkpoint of step 10" "with the restart"
unlike() { ! [[ $1 =~ $2 ]]; }
ok "and without the log" unlike "$(sql "select group_concat(json_extract(body, '\$.reason')) from job_event where job_id = $id and type = 'state'")" "of the log"

submit "steps=30 every=5 rank=1 at=12 signal=11" "$two" '{"restart": {"max": 2}}'
ok "one that fails again and again fails" wait_state "$id" failed
is "$(job "$id" attempt)" 3 "after restart.max restarts"
like "$(job "$id" reason)" "^rank 1 on $host was ended by signal 11 .*; failed (in the same way after 2 restarts|again after 2 restarts, the last time: rank 1 on $host was ended by signal 11)" "the first cause is first"
submit "steps=30 rank=1 at=12 exit=2" "$two" '{"restart": {"max": 2}}'
ok "one that fails by its own fault fails" wait_state "$id" failed
is "$(job "$id" attempt)" 1 "without a restart"
submit "steps=30 gate=1 every=1" "$two" '{"restart": {"max": 2}}'
ok "a job starts" eventually has_rank "$id" 0
kill -KILL "$(rank_pid "$id" 0)"
ok "one that fails before its first step fails" wait_state "$id" failed
is "$(job "$id" attempt)" 1 "without a restart"
resume "$id"
want 409 "without a checkpoint it cannot be resumed"
like "$body" "has no checkpoint to resume from" "it says so"

# A back-off, kept over a restart of the daemon, and cancelled.
stop_daemon
sed -i 's/^restart_delay_seconds.*/restart_delay_seconds = 600/' "$work/traind.conf"
restart_runs
submit "steps=30 every=5 rank=1 at=12 signal=9 first=1" "$two" '{"restart": {"max": 2}}'
backs_off() { [[ $(job "$1" state) = queued && $(job "$1" reason) = *"restart 1 of 2 follows in 600 s"* ]]; }
ok "a restart waits" eventually backs_off "$id"
starts_later() { [ "$(job "$1" 'estimated_start | . > now')" = true ]; }
ok "it says until when" eventually starts_later "$id"
resume "$id"
want 409 "what waits cannot be resumed"
kill_daemon
restart_runs
ok "it waits on behind a new daemon" backs_off "$id"
kill_daemon
sql "update job set not_before = 1 where id = $id"
restart_runs
ok "and goes on" wait_state "$id" succeeded
submit "steps=30 every=5 rank=1 at=12 signal=9" "$two" '{"restart": {"max": 2}}'
ok "another one waits" eventually backs_off "$id"
call -X POST "/v1/jobs/$id/cancel"
want 200 "it can be cancelled"
is "$(job "$id" state)" cancelled "at once"
resume "$id"
want 202 "and resumed"
ok "which starts it without a pause" eventually in_state "$id" "starting|running|queued"
ok "it fails and waits again" eventually backs_off "$id"
call -X POST "/v1/jobs/$id/cancel"
stop_daemon
sed -i 's/^restart_delay_seconds.*/restart_delay_seconds = 0/' "$work/traind.conf"
restart_runs

# ------------------------------------------------------------------ on request

submit "steps=20000 step_ms=20 every=4" "$two" '{"steps": 20000}'
ok "a job runs" eventually has_events "$id" 6
resume "$id"
want 409 "a running job cannot be resumed"
like "$body" "is running: only one that has failed or was cancelled" "it says so"
call -X DELETE "/v1/jobs/$id"
refused 409 conflict "is running: cancel it first" "a running job cannot be removed"
call -X POST "/v1/jobs/$id/cancel"
ok "it is cancelled" wait_state "$id" cancelled
step=$(job "$id" checkpoint_step)
like "$(job "$id" reason)" "^cancelled on request after step $step$" "with a checkpoint of its last step"
resume "$id" '{"cluster": {"workers_per_node": 3}}'
want 422 "more workers than there are slots are refused"
resume "$id" '{"lr": {"base": 1}, "cluster": {"wokers_per_node": 1}}'
want 422 "what a resume cannot change is refused"
like "$body" '"/lr".*only cluster, restart and priority' "by name"
resume "$id" '{"cluster": {"wokers_per_node": 1}}'
like "$body" 'workers_per_node' "a misspelt key gets the nearest one"
resume "$id" '{"cluster": {"workers_per_node": 0}}'
like "$body" "one that goes on keeps its workers, or is given a number" "a run that goes on has workers"
resume "$id" '{"cluster": {"workers_per_node": 1}}'
want 202 "one worker is taken"
json '.resume | "\(.before.world_size) \(.after.world_size) \(.before.global_batch) \(.after.global_batch) \(.before.train_steps) \(.after.train_steps)"' \
    "2 1 8 4 20000 40000" "the old and the new numbers are in the answer"
json '.resume.after.peak_lr < .resume.before.peak_lr' true "with the learning rate"
ok "it runs" eventually in_state "$id" running
is "$(jq -r .cluster.workers_per_node "$state/jobs/$id/job.json") $(jq -r .global_batch "$state/jobs/$id/plan.json")" "1 4" "the run directory has the new document and plan"
like "$(cat "$state/jobs/$id/attempt-2/command")" "-np 1 .*--attempt 2 .*--resume latest$" "one worker goes on from the newest checkpoint"
is "$(sql "select json_extract(body, '\$.before.world_size') || ' ' || json_extract(body, '\$.after.world_size') from job_event where job_id = $id and type = 'resume'")" "2 1" "the event log has the numbers"
has_steps() { [ -n "$(steps_of_attempt "$id" "$1")" ]; }
eventually has_steps 2
like "$(steps_of_attempt "$id" 2)" "^$((step + 1))-" "it goes on behind the checkpoint"
call -X POST "/v1/jobs/$id/cancel"
ok "it is cancelled again" wait_state "$id" cancelled
out=$("${trainctl[@]}" --server "$url" resume "$id" --set cluster.workers_per_node=2 --set restart.max=1 --set priority=3)
is $? 0 "trainctl resume"
read -r from left < <(sed -nE 's/.*from step ([0-9]+), ([0-9]+) steps are left.*/\1 \2/p' <<<"$out")
like "$(tr -d , <<<"$out")" "train_steps +40000 +$((from + left))( |$)" "with the steps that it will have made in all"
like "$out" "job $id (queued|starting|running): resumes from step [0-9]+, [0-9]+ steps are left" "it tells where it goes on"
like "$out" "world_size +1 +2" "and the old and new numbers"
is "$(job "$id" 'spec | "\(.restart.max) \(.priority) \(.cluster.workers_per_node)"')" "1 3 2" "several --set are taken"
"${trainctl[@]}" --server "$url" resume "$id" --set cluster >/dev/null 2>&1
is $? 2 "a --set without a value is a usage error"
call -X POST "/v1/jobs/$id/cancel"
ok "it is cancelled once more" wait_state "$id" cancelled
submit "steps=2"
ok "a job succeeds" wait_state "$id" succeeded
resume "$id"
want 409 "what has succeeded cannot be resumed"
like "$body" "nothing to resume" "it says so"

submit "steps=30 step_ms=10 every=5 rank=1 at=18 signal=9"
ok "a job fails with checkpoints" wait_state "$id" failed
newest=$state/jobs/$id/checkpoints/step-00000015/state.json
printf '[%.0s' {1..100000} >"$newest"
resume "$id"
want 202 "it is resumed though the newest one is damaged"
json '.resume.step' 10 "from the one before"
like "$(sql "select json_extract(body, '\$.reason') from job_event where job_id = $id and type = 'state' and body like '%resumed on request%'")" \
    "resumed on request, from its checkpoint of step 10, as that of step 15 cannot be used: $newest" "it says so"
ok "it ends again" wait_state "$id" failed
for state_file in "$state/jobs/$id"/checkpoints/*/state.json; do
    echo '{"step": 10, "epoch_number": 0, "epoch_images": 40, "xxh128": "0"}' >"$state_file"
done
resume "$id"
refused 422 corrupt "none of its checkpoints can be used; the newest: .*state.json has been changed since it was written" "with none that is whole it is not"

# ------------------------------------------------------------------ time limit

# It is asked to end the grace before its limit, or at half of the time: here after 30 s.
submit "steps=10000 step_ms=20 every=5" '{"workers_per_node": 2, "threads_per_worker": 1, "time_limit": "1:00"}'
ok "a job with a time limit runs" wait_state "$id" running
ok "and ends at it" wait_state "$id" cancelled
is "$(sql "select finished_at - attempt_started_at between 29 and 150 from job where id = $id")" 1 "in time"
step=$(job "$id" checkpoint_step)
is "$(job "$id" reason)" "stopped at its time limit (cluster.time_limit) after step $step" "its reason says so"
is "$(job "$id" restarts)" 0 "it is not restarted"
resume "$id" '{"cluster": {"time_limit": null}}'
want 202 "it can be resumed without one"
ok "and runs on" eventually in_state "$id" running
call -X POST "/v1/jobs/$id/cancel"
ok "until it is cancelled" wait_state "$id" cancelled
submit "steps=10000 step_ms=20 deaf=1" '{"workers_per_node": 2, "threads_per_worker": 1, "time_limit": "1:00:00"}'
ok "a deaf one runs" eventually has_events "$id" 5
kill_daemon
sql "update job set time_limit_seconds = 1 where id = $id"
sed -i 's/^cancel_grace_seconds.*/cancel_grace_seconds = 2/' "$work/traind.conf"
restart_runs
ok "it is ended all the same" wait_state "$id" cancelled
like "$(job "$id" reason)" "^stopped at its time limit" "for this reason"
is "$(processes "$id")" 0 "nothing is left of it"
change cancel_grace_seconds 60

# ------------------------------------------------------------------ a smaller node

submit "steps=10000 step_ms=20 every=5" "$two" '{"restart": {"max": 2}, "steps": 1000}'
ok "a job runs" eventually has_events "$id" 10
eventually has_rank "$id" 1
kill_daemon
kill -KILL "$(rank_pid "$id" 1)"
sed -i 's/^slots.*/slots = 1/' "$work/traind.conf"
restart_runs
ok "on a node with one slot it goes on" eventually grep -qs -- "-np 1 " "$state/jobs/$id/attempt-2/command"
ok "..." wait_state "$id" running
is "$(job "$id" 'plan.world_size')" 1 "with one worker"
call -X POST "/v1/jobs/$id/cancel"
ok "until it is cancelled" wait_state "$id" cancelled
stop_daemon

# ------------------------------------------------------------------ removal

sed -i 's/^slots.*/slots = 2/' "$work/traind.conf"
restart_runs
"${trainctl[@]}" --server "$url" rm "$id" 9999 >"$work/out" 2>&1
is $? 3 "trainctl rm: one of two is not there"
like "$(cat "$work/out")" "Job $id removed" "the other is removed"
call "/v1/jobs/$id"
want 404 "it is gone"
ok "so is its run directory" test ! -e "$state/jobs/$id"
no_events() { [ "$(sql "select count(*) from job_event where job_id = $1")" = 0 ]; }
ok "and its events" eventually no_events "$id"
submit "steps=2"
ok "a job ends" wait_state "$id" succeeded
kill_daemon
mv "$state/jobs/$id" "$state/jobs/.removed-$id"
mkdir "$state/jobs/.removed-9999"
restart_runs
ok "a removal that had not come to the rows is undone at start" eventually test -s "$state/jobs/$id/job.json"
ok "one that had is completed" eventually test ! -e "$state/jobs/.removed-9999"

before=$(sql "select count(*) from job")
stop_daemon
printf '%s\n' 'keep_runs = 3' 'keep_checkpoints = 1' 'log_limit_bytes = 200' >>"$work/traind.conf"
restart_runs
kept() { [ "$(sql "select count(*) from job")" = "$1" ]; }
like "$before" '^[0-9]{2}$' "there were more jobs than are kept"
ok "keep_runs removes the oldest" eventually kept 3
folders_left() { [ "$(find "$state/jobs" -mindepth 1 -maxdepth 1 | wc -l)" = "$1" ]; }
ok "with their run directories" eventually folders_left 3
submit "steps=20 every=5"
ok "one more ends" wait_state "$id" succeeded
ok "and another goes" eventually kept 3
call "/v1/jobs/$id"
want 200 "the newest stays"
is "$(find "$state/jobs/$id/checkpoints" -mindepth 1 -maxdepth 1 -printf '%f\n')" step-00000020 "with its newest checkpoint"
submit "steps=3 rank=1 at=2 exit=3"
ok "one with a long log fails" wait_state "$id" failed
eventually grep -qs removed "$state/jobs/$id/attempt-1/stdout.log"
like "$(head -1 "$state/jobs/$id/attempt-1/stdout.log")" "^\[traind: the first part of this log was removed: log_limit_bytes = 200\]$" "log_limit_bytes cuts the log, and says so"
ok "the daemon stops in order" stop_daemon
done_testing
