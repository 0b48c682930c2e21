#!/usr/bin/env bash
# Sweeps beside what goes wrong: a store that fails for a moment, keep_runs, jobs that other machines are waited for.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"

sweep() { # NAME: of its jobs; two points
    call -d "$(jq -n --arg name "$1" '{metric: "loss", concurrency: 2, parameters: {"lr.base": [0.1, 0.2]},
        base: {name: $name, data: {train: "synthetic", train_images: 64}, model: {image_size: 32, classes: 10}, batch_per_worker: 4,
        steps: 4, restart: {max: 0}, cluster: {workers_per_node: 1, threads_per_worker: 1}}}')" /v1/sweeps
}
sweep_is() { # ID STATE
    [ "$(sql "select state from sweep where id = $1")" = "$2" ]
}

# ------------------------------------------------------------------ a store that fails for a moment

start_runs "keep_runs = 1"
sql "create trigger broken before insert on job begin select raise(abort, 'simulated fault'); end"
sweep "steps=2"
want 201 "a sweep whose jobs cannot be stored"
ok "the log says so" eventually grep -q 'sweep 1: .*simulated fault' "$work/daemon.log"
sql "drop trigger broken"
ok "it goes on by itself" eventually sweep_is 1 succeeded

# ------------------------------------------------------------------ jobs that end together, one more than keep_runs keeps

sweep "steps=3 gate=2"
both_run() { [ "$(sql "select count(*) from job where submitted_by = 'sweep 2' and state = 'running'")" = 2 ]; }
ok "two points run" eventually both_run
first=$(sql "select min(id) from job where submitted_by = 'sweep 2'")
kill_daemon
touch "$state/jobs/$first/attempt-1/go" "$state/jobs/$((first + 1))/attempt-1/go"
both_gone() { [ "$(processes "$first")$(processes $((first + 1)))" = 00 ]; }
ok "they end while the daemon is away" eventually both_gone
restart_runs
ok "the sweep ends" eventually sweep_is 2 succeeded
call /v1/sweeps/2
json '[.trials[].state] | tojson' '["succeeded","succeeded"]' "with the results of both"

# ------------------------------------------------------------------ whose its jobs are

owner=$(sql "select submitted_by from sweep where id = 2")
sql "update sweep set submitted_by = 'token:eve' where id = 2"
call '/v1/jobs?user=eve'
is "$(jq -c '[.jobs[].submitted_by] | unique' <<<"$body")" '["sweep 2"]' "the jobs of a sweep are found by its owner"
call '/v1/jobs?user=token:eve&q=steps'
is "$(jq -c '[.jobs[].submitted_by] | unique' <<<"$body")" '["sweep 2"]' "by the whole name, and among others"
sql "update sweep set submitted_by = nullif('$owner', '') where id = 2"
stop_daemon

# ------------------------------------------------------------------ 300 jobs that wait for one host

write_script "$work/agent" <<'END'
#!/bin/sh
exec sleep 600
END
start_runs "launch_agent = $work/agent"
submit "steps=2" '{"workers_per_node": 1, "threads_per_worker": 1, "nodes": 1, "hosts": ["faraway:1"]}'
for _ in $(seq 299); do
    printf '%s\n' "url = $url/v1/jobs" "data-binary = @$work/job.json" 'output = /dev/null' next
done | sed '$d' >"$work/many"
curl -sS -K "$work/many"
is "$(sql "select count(*) from job where state in ('queued', 'starting') or reason like '%does not answer%'")" 300 "jobs of one host are started or wait"
submit "steps=2" '{"workers_per_node": 2, "threads_per_worker": 1}'
ok "a job of this machine does not wait behind them" wait_state "$id" succeeded
ok "the daemon stops in order" stop_daemon
done_testing
