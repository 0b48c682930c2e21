#!/usr/bin/env bash
# Sweeps that train: a grid, a halving that survives kill -9, losers that are stopped early. tests/api/cases/sweeps.cases has the rest.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
printf "%s\n" "worker = $top_builddir/tests/bin/train-worker" "slots = 2" "data_roots = $work" >"$work/traind.conf"
export OMP_NUM_THREADS=1
start_daemon --config "$work/traind.conf"

base='{"data": {"train": "synthetic", "train_images": 64}, "model": {"arch": "resnet18", "width": 0.0625, "image_size": 32, "classes": 4},
    "batch_per_worker": 4, "steps": 2, "checkpoint": {"disable": true}, "lr": {"scaling": "none", "warmup_epochs": 0},
    "cluster": {"workers_per_node": 1, "threads_per_worker": 1}}'
sweep() { # MORE
    call -d "$(jq -n --argjson base "$base" "{base: \$base, metric: \"loss\"} + $1")" /v1/sweeps
}
sweep_ended() {
    [ "$(get "/v1/sweeps/$1" | jq -r .state)" != running ]
}
ends() { # up to two minutes: the machine may be busy
    local _
    for _ in 1 2 3 4 5 6; do
        eventually sweep_ended "$1" && return
    done
    return 1
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
json .name "$(jq -r '.point | "sweep lr.base=\(.["/lr/base"]) optimizer.momentum=\(.["optimizer.momentum"])"' <<<"$best")" "the job's name says its point"
is "$(jq -c '[.spec.lr.base, .spec.optimizer.momentum]' <<<"$body")" \
    "$(jq -c '[.point["/lr/base"], .point["optimizer.momentum"]]' <<<"$best")" "the job has the point's values"

sweep '{method: "halving", samples: 4, seed: 7, concurrency: 2, metric: "loss",
    parameters: {"/lr/base": {min: 0.0001, max: 0.01, log: true}}, budget: {key: "steps", min: 1, max: 4, eta: 2}}'
want 201 "a halving"
asked() { # how often a sweep was looked up
    get "/metrics" | sed -n 's/^traind_http_request.*_count{route="\/v1\/sweeps\/{id}",method="GET"} //p'
}
before=$(asked)
is_asked() { [ "$(asked)" -gt "${before:-0}" ]; }
timeout 600 "$top_builddir/trainctl" --server "$url" sweep wait 2 >"$work/waited" 2>&1 &
waiter=$!
has_begun() { # a trial of it runs, or has run
    [ "$(sql "select count(*) from sweep_trial t join job j on j.id = t.job_id where t.sweep_id = 2 and j.state <> 'queued'")" -gt 0 ]
}
ok "it begins" eventually has_begun
ok "it is waited for" eventually is_asked
kill_daemon
start_daemon --config "$work/traind.conf" --listen "${url#http://}"
ok "that was killed in between ends" ends 2
wait $waiter
is $? 0 "trainctl sweep wait lives through it"
like "$(cat "$work/waited")" '^ *[0-9.e-]+ +4 +succeeded +[0-9]+ +lr.base=[0-9.e-]+$' "and shows the results, points as --set takes them"
call /v1/sweeps/2
json .state succeeded "well"
json '[.trials[] | .rung] | group_by(.) | map(length) | tojson' '[4,2,1]' "the losers are stopped: 4, 2, 1"
json '[.trials[] | .budget] | unique | tojson | gsub("\\.0"; "")' '[1,2,4]' "with twice the budget each"
json '[.trials[].job] | length == (unique | length)' true "no trial was submitted twice"
is "$(sql 'select count(*) from job')" 11 "11 jobs in all"

like "$("$top_builddir/trainctl" --server "$url" sweep show 2)" '^ *[0-9.]+ +4 +succeeded +11 ' "trainctl sweep show has the table"
like "$("$top_builddir/trainctl" --server "$url" sweep list)" '^ *2 .*succeeded' "trainctl sweep list"
is "$("$top_builddir/trainctl" --server "$url" --json sweep cancel 2 2>/dev/null; echo $?)" 1 "trainctl sweep cancel of an ended one fails"

# ------------------------------------------------------------------ a halving that goes on from checkpoints

# Steps of 8 images; the rungs stop at steps 2, 4 and 8 of a schedule of 8.
more='{method: "halving", samples: 4, seed: 7, metric: "loss", early_stop: {rule: "none"}, parameters: {"/lr/base": {min: 0.001, max: 0.01}},
    budget: {key: "steps", min: 2, max: 8, eta: 2}} | .base = ($base | del(.checkpoint, .steps))'
call -d "$(jq -n --argjson base "$base" "{base: \$base, metric: \"loss\"} + $more")" /v1/sweeps/plan
json '[.rungs[].images] | tojson' '[32,16,16]' "its preview counts the images after the rung before: 4 x 2 x 4, 2 x 2 x 4, 1 x 4 x 4"
call -d "$(jq -n --argjson base "$base" "{base: \$base, metric: \"loss\"} + $more | .budget.continue = false")" /v1/sweeps/plan
json '[.rungs[].images] | tojson' '[32,32,32]' "and all images of jobs that do not go on"
sweep "$more"
want 201 "the halving"
id=$(jq .id <<<"$body")
in_second_rung() { [ "$(sql "select count(*) from sweep_trial where sweep_id = $id and rung = 1 and job_id is not null")" -gt 0 ]; }
ok "it comes to the second rung" eventually in_second_rung
kill_daemon
start_daemon --config "$work/traind.conf"
ok "killed there, it ends" ends "$id"
call "/v1/sweeps/$id"
json '[.state, (.trials | group_by(.rung) | map(length))] | tojson' '["succeeded",[4,2,1]]' "well"
last=$(jq '.trials[0].job' <<<"$body")
middle=$(jq "[.trials[] | select(.rung == 1 and .number == $(jq '.trials[0].number' <<<"$body"))][0].job" <<<"$body")
call "/v1/jobs/$last"
json '[.step, .train_steps, .spec.steps, .spec.stop_at, .spec.continues] | tojson' "[8,8,8,1,$middle]" "the last job continues that of the rung before, to the end"
is "$(get "/v1/jobs/$middle" | jq -c '[.step, .train_steps, .spec.steps, .spec.stop_at]')" "[4,4,8,0.5]" "which stopped at half of the schedule"
is "$(jq -s '[.[] | select(.type == "step") | .step] | tojson' "$state/jobs/$last/attempt-1/events.jsonl")" '"[5,6,7,8]"' "the last one trained the second half only"
call -d "$(get "/v1/jobs/$last" | jq '.spec | .continues = null')" /v1/jobs
want 201 "the same job in one go"
whole=$(jq .id <<<"$body")
ok "it succeeds" wait_state "$whole" succeeded
ok "it has the same weights, bit by bit" cmp "$state/jobs/$last/checkpoints/step-00000008/model.safetensors" "$state/jobs/$whole/checkpoints/step-00000008/model.safetensors"
ok "and the same momenta" cmp "$state/jobs/$last/checkpoints/step-00000008/optimizer.safetensors" "$state/jobs/$whole/checkpoints/step-00000008/optimizer.safetensors"
is "$(jq -c 'select(.type == "step" and .step == 4) | .lr' "$state/jobs/$middle/attempt-1/events.jsonl")" \
    "$(jq -c 'select(.type == "step" and .step == 4) | .lr' "$state/jobs/$whole/attempt-1/events.jsonl")" "the learning rates are those of the whole schedule"
call -d "$(get "/v1/jobs/$last" | jq ".spec | .continues = $middle | .seed = 2")" /v1/jobs
other=$(jq .id <<<"$body")
ok "a job with another seed cannot continue it" wait_state "$other" failed
like "$(job "$other" reason)" "belongs to a different job: its seed is 1, but this job's is 2" "and says why"
call -d "$(get "/v1/jobs/$last" | jq '.spec | .continues = 99999')" /v1/jobs
want 422 "a job cannot continue one that is not there"
like "$(jq -r .detail <<<"$body")" 'there is no job 99999' "and says so"

# ------------------------------------------------------------------ losers are stopped while they run

# A learning rate of 1e-9 learns nothing. From here on the processor is left to others.
stop_daemon
sed -i "s|^worker.*|worker = $top_builddir/tests/paced/train-worker|" "$work/traind.conf"
start_daemon --config "$work/traind.conf"
long='.base * {batch_per_worker: 16, lr: {scaling: "none", warmup_epochs: 0}}'
sweep "{parameters: {\"/lr/base\": [0.05, 0.1, 1e-9]}, metric: \"loss\", concurrency: 2, early_stop: {rule: \"median\", from: 0.2}} | .base = ($long | .steps = 60)"
want 201 "a grid that stops its losers"
id=$(jq .id <<<"$body")
ok "it ends" ends "$id"
call "/v1/sweeps/$id"
json '[.trials[] | [.number, .state]] | sort | tojson' '[[0,"succeeded"],[1,"succeeded"],[2,"stopped"]]' "the one that learns nothing is stopped"
json '.trials[-1] | [.number, .metric] | tojson' '[2,null]' "and is the last of the table"
like "$(jq -r '.trials[-1].reason' <<<"$body")" '^stopped at step [0-9]+: its loss of 1\.[0-9]+ is worse than [0-9.e-]+, the median of 2 others$' "with the reason"
loser=$(jq '.trials[-1].job' <<<"$body")
is "$(job "$loser" state)" cancelled "its job was cancelled"
ok "before its end ($(job "$loser" step) of 60 steps)" test "$(job "$loser" step)" -lt 60 -a "$(job "$loser" step)" -ge 12
sweep "{method: \"halving\", samples: 4, seed: 45, parameters: {\"/lr/base\": [0.05, 1e-9]}, metric: \"loss\", budget: {key: \"/steps\", min: 40, max: 80, eta: 2}, concurrency: 2} | .base = $long"
want 201 "a halving"
id=$(jq .id <<<"$body")
kill_daemon # whatever it is at
start_daemon --config "$work/traind.conf"
ok "it ends" ends "$id"
call "/v1/sweeps/$id"
json '[.trials[] | select(.rung == 0) | [.number, .point["/lr/base"] == 0.05, .state]] | sort | tojson' \
    '[[0,true,"succeeded"],[1,true,"succeeded"],[2,false,"stopped"],[3,false,"stopped"]]' "the losers of its rung are stopped before its end"
like "$(jq -r '.trials[-1].reason' <<<"$body")" 'the last to be promoted of [23] others' "with the reason"
json '[.trials[] | select(.rung == 1) | .point["/lr/base"]] | tojson' '[0.05,0.05]' "the others go on"

# A rung that a later version refuses, and keys of an earlier one, two of which a client had used. No trial runs before the daemon stops, for another job has all slots.
for rung in 0 1; do
    call -H "Idempotency-Key: sweep-$id-$rung-0" -d "$(jq '.steps = 1' <<<"$base")" /v1/jobs
    want 201 "a job with the key sweep-$id-$rung-0"
done
call -d "$(jq '.steps = 1000000 | .cluster.workers_per_node = 2' <<<"$base")" /v1/jobs
holder=$(jq .id <<<"$body")
ok "another job runs" wait_state "$holder" running
sweep '{method: "halving", samples: 2, parameters: {"/lr/base": [0.01, 0.02]}, budget: {key: "/steps", min: 1, max: 2, eta: 2}}'
id=$(jq .id <<<"$body")
stop_daemon
sql "update sweep set document = json_set(document, '\$.budget.max', 1e10, '\$.budget.eta', 1e10) where id = $id;
    update or ignore job set idempotency_key = substr(idempotency_key, 2) where request_digest = 'sweep'" >/dev/null
old=$(sql "select count(*) from job where idempotency_key like 'sweep-%'")
sqlite3 "$state/traind.db" <"$top_srcdir/schema/migrations/0014_sweep_job_key.sql" # the later ones have run
start_daemon --config "$work/traind.conf"
is "$(sql "select count(*) from job where idempotency_key like 'sweep-%'")" 2 "of $old keys those of the sweeps are moved, two are a client's"
call -X POST "/v1/jobs/$holder/cancel"
ok "a sweep whose next rung is refused ends" ends "$id"
call "/v1/sweeps/$id"
like "$(jq -r '.trials[0] | .state, .reason' <<<"$body")" 'must be an integer from 1 to' "with the reason in its trial"
json .state failed "as failed"
like "$(jq -r .reason <<<"$body")" '^all points of rung 1 failed; point 0: must be an integer from 1 to' "for that reason"
"$top_builddir/trainctl" --server "$url" sweep wait "$id" >"$work/waited" 2>&1
is $? 1 "which trainctl sweep wait exits by"
like "$(head -n 1 "$work/waited")" '^sweep [0-9]+ failed: all points of rung 1 failed; point 0: must be' "and says"
json '.best.rung' 0 "and the best of the rung before"

ok "the daemon stops in order" stop_daemon
done_testing
