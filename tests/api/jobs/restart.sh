#!/usr/bin/env bash
# The daemon goes away while jobs run: they go on, and it misses and doubles nothing.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
start_runs

submit "steps=400 step_ms=10 eval=1"
ok "a job runs" eventually has_events "$id" 20
mpirun=$(sql "select launcher_pid from job where id = $id")
for _ in 1 2 3 4 5 6; do
    kill_daemon
    sleep "0.$((RANDOM % 4))"
    restart_runs
    sleep "0.$((RANDOM % 3))"
done
is "$(sql "select launcher_pid, attempt from job where id = $id")" "$mpirun|1" "six kills later it is still the same mpirun"
ok "the job succeeds" wait_state "$id" succeeded
steps_are_complete "$id" 400 "six kills"
is "$(sql "select count(*) from eval where job_id = $id")" 1 "its evaluation is there once"
is "$(job "$id" top1)" 0.75 "its result too"

submit "steps=60 step_ms=10"
ok "a job runs" eventually has_events "$id" 5
kill_daemon
has_no_process() { [ "$(processes "$id")" = 0 ]; }
ok "it ends while no daemon is there" eventually has_no_process
restart_runs
ok "its end is found in the run directory" wait_state "$id" succeeded
steps_are_complete "$id" 60 "an end without a daemon"

submit "steps=100 step_ms=10 rank=1 at=50 signal=9"
ok "a job runs" eventually has_events "$id" 5
kill_daemon
ok "it ends while no daemon is there, too" eventually has_no_process
restart_runs
ok "a crash without a daemon is found, too" wait_state "$id" failed
like "$(job "$id" reason)" "^rank 1 on $(hostname) was ended by signal 9" "with its cause"
steps_are_complete "$id" 50 "a crash without a daemon"

submit "steps=200 step_ms=10 gate=100"
ok "a job runs" eventually has_events "$id" 5
ok "the daemon stops in order while it runs" stop_daemon
is "$(processes "$id")" 3 "the job goes on"
restart_runs
: >"$state/jobs/$id/attempt-1/go"
ok "... and is followed again to its end" wait_state "$id" succeeded
steps_are_complete "$id" 200 "a stop in order"

submit "steps=50 step_ms=10"
first=$id
submit "steps=3"
second=$id
kill_daemon
restart_runs
ok "what was queued or starting at a kill still runs" wait_state "$second" succeeded
ok "both" wait_state "$first" succeeded
steps_are_complete "$first" 50 "killed while starting"

# Killed while jobs are taken, launched and end: each runs once, and to its end.
last=$id
for _ in 1 2 3 4 5 6 7 8; do
    submit "steps=20 step_ms=5" '{"workers_per_node": 1, "threads_per_worker": 1}'
    sleep "0.$((RANDOM % 5))"
    kill_daemon
    restart_runs
done
all_ended() { [ "$(sql "select count(*) from job where id > $last and state = 'succeeded'")" = 8 ]; }
ok "eight jobs and eight kills: all succeed" eventually all_ended
is "$(sql "select count(*), count(distinct job_id) from job_event where job_id > $last and type = 'run_start'")" "8|8" "each was run once"
is "$(sql "select count(*) from job_event where job_id > $last and type = 'step'")" 160 "no step is missing or doubled"

# A pid that another process has by now is not mistaken for mpirun.
submit "steps=10000 step_ms=20"
ok "a job runs" wait_state "$id" running
kill_daemon
for pid in $(process_ids "$id"); do
    kill -KILL "$pid"
done
sleep 3000 &
other=$!
sql "update job set launcher_pid = $other where id = $id"
restart_runs
ok "a reused pid is not taken for mpirun" wait_state "$id" failed
ok "... and is left alone" kill -0 "$other"
kill "$other"
ok "the daemon stops in order" stop_daemon
done_testing
