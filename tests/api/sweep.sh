#!/usr/bin/env bash
# Sweeps: a grid of four real trainings, a halving that lives through kill -9, what is refused, cancel.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/runs.sh.inc"
printf "%s\n" "worker = $top_builddir/train-worker" "slots = 2" "data_roots = $work" >"$work/traind.conf"
export OMP_NUM_THREADS=1
start_daemon --config "$work/traind.conf"

base='{"data": {"train": "synthetic", "train_images": 64}, "model": {"image_size": 32, "classes": 4, "stem": "small"},
    "batch_per_worker": 4, "steps": 2, "checkpoint": {"disable": true}, "lr": {"scaling": "none", "warmup_epochs": 0},
    "cluster": {"workers_per_node": 1, "threads_per_worker": 1}}'
sweep() { # MORE
    call -d "$(jq -n --argjson base "$base" "{base: \$base} + $1")" /v1/sweeps
}
sweep_ended() {
    [ "$(curl -sS "$url/v1/sweeps/$1" | jq -r .state)" != running ]
}
# up to a minute: the machine may be busy
ends() {
    eventually sweep_ended "$1" || eventually sweep_ended "$1" || eventually sweep_ended "$1"
}

sweep '{parameters: {"/lr/base": [0.001, 0.01], "optimizer.momentum": [0.5, 0.9]}, metric: "loss", concurrency: 2}'
want 201 "a grid of two by two"
json '.trials | length' 4 "has four trials"
ok "it ends" ends 1
call /v1/sweeps/1
json .state succeeded "well"
json '[.trials[] | .state] | unique | tojson' '["succeeded"]' "all have run"
json '[.trials[].metric] == ([.trials[].metric] | sort)' true "the table has the least loss first"
json '.best.metric == .trials[0].metric and .document.goal == "min"' true "which is the best"
json '[.trials[].point | tojson] | unique | length' 4 "no point twice"
best=$(jq -c .trials[0] <<<"$body")
call "/v1/jobs/$(jq .job <<<"$best")"
is "$(jq -c '[.spec.lr.base, .spec.optimizer.momentum]' <<<"$body")" \
    "$(jq -c '[.point["/lr/base"], .point["optimizer.momentum"]]' <<<"$best")" "the job has the point's values"

sweep '{method: "halving", samples: 4, seed: 7, concurrency: 2, metric: "loss",
    parameters: {"/lr/base": {min: 0.0001, max: 0.01, log: true}}, budget: {key: "/steps", min: 1, max: 4, eta: 2}}'
want 201 "a halving"
kill_daemon
start_daemon --config "$work/traind.conf"
ok "that was killed in between ends" ends 2
call /v1/sweeps/2
json .state succeeded "well"
json '[.trials[] | .rung] | group_by(.) | map(length) | tojson' '[4,2,1]' "the losers are stopped: 4, 2, 1"
json '[.trials[] | .budget] | unique | tojson | gsub("\\.0"; "")' '[1,2,4]' "with twice the budget each"
json '[.trials[].job] | length == (unique | length)' true "no trial was submitted twice"
is "$(sql 'select count(*) from job')" 11 "11 jobs in all"

sweep '{method: "grud", parameters: {"/lr/base": [], "x": {"min": 2, "max": 1}}, concurrency: 0, metrik: "loss"}'
want 422 "a bad document is refused"
json '[.errors[].pointer] | sort | tojson' '["/concurrency","/method","/metrik","/parameters//lr/base","/parameters/x"]' "all problems at once"
json '.errors[] | select(.pointer == "/metrik") | .suggestion' metric "with the nearest key"
sweep '{parameters: {"/lr/bse": [1]}}'
like "$body" '/base/lr/bse' "a key that no job has"
sweep '{parameters: {"/data/train": ["synthetic", "/etc"]}}'
like "$body" '/base/data/train.*not below a folder that jobs may use' "a point may name no more than a job"
sweep '{parameters: {"/steps": [100000]}}'
id=$(jq .id <<<"$body")
ok "a long one runs" eventually in_state 12 running
call -X POST "/v1/sweeps/$id/cancel"
json .state cancelled "is cancelled"
ok "and its job" wait_state 12 cancelled
call -X POST "/v1/sweeps/$id/cancel"
refused 409 conflict 'has ended already' "twice"
call /v1/sweeps
json '[.sweeps[] | .id] | tojson' '[3,2,1]' "the list has the newest first"
like "$("$top_builddir/trainctl" --server "$url" sweep show 2)" '^ *[0-9.]+ +4 +succeeded +11 ' "trainctl sweep show has the table"
like "$("$top_builddir/trainctl" --server "$url" sweep list)" '^ *3 .*cancelled' "trainctl sweep list"
is "$("$top_builddir/trainctl" --server "$url" --json sweep cancel 2 2>/dev/null; echo $?)" 1 "trainctl sweep cancel of an ended one fails"
call /v1/sweeps/9
refused 404 not-found 'there is no sweep 9' "no such sweep"
ok "the daemon stops in order" stop_daemon
done_testing
