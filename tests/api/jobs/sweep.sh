#!/usr/bin/env bash
# Sweeps: a grid of four real trainings, a halving that lives through kill -9, what is refused, cancel.
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

sweep '{method: "grud", parameters: {"/lr/base": [], "x": {"min": 2, "max": 1}}, concurrency: 0, metrik: "loss"}'
want 422 "a bad document is refused"
json '[.errors[].pointer] | sort | tojson' '["/concurrency","/method","/metrik","/parameters/x","/parameters/x","/parameters/~1lr~1base"]' "all problems at once"
json '.errors[] | select(.pointer == "/metrik") | .suggestion' metric "with the nearest key"
json '.errors[] | select(.pointer == "/method") | [.message, .suggestion] | tojson' '["must be one of grid, random, halving, not \"grud\"","grid"]' "and value"
sweep '{parameters: {"/lr/base": [0.1]}, metric: "top1"}'
refused 422 invalid 'metric: top1 is measured on data.eval' "a sweep by top1 whose jobs do not evaluate"
mkdir -p "$work/classes/"{a,b,c,d,e}
touch "$work/classes/"{a,b,c,d,e}/1.jpg
sweep "{parameters: {\"/lr/base\": [0.1]}, base: (\$base | .data.train = \"$work/classes\")}"
refused 422 invalid 'base.model.classes: is 4, but the training data has 5' "one whose data have more classes than its network"
sweep '{parameters: {"/lr/bse": [1]}}'
json '.errors[0] | [.pointer, .suggestion] | tojson' '["/parameters/~1lr~1bse","/lr/base"]' "a key that no job has"
sweep '{parameters: {"/data/train": ["synthetic", "/etc"]}}'
like "$body" '/base/data/train.*is not in a folder that jobs may use' "a point may name no more than a job"
sweep '{parameters: {"/steps": [100000]}}'
id=$(jq .id <<<"$body")
ok "a long one runs" eventually in_state 12 running
call -X POST "/v1/sweeps/$id/cancel"
json .state cancelled "is cancelled"
"$top_builddir/trainctl" --server "$url" sweep wait "$id" >/dev/null 2>&1
is $? 130 "trainctl sweep wait of a cancelled one: 130"
ok "and its job has ended by then" in_state 12 cancelled
call -X POST "/v1/sweeps/$id/cancel"
refused 409 conflict 'has ended already' "twice"
call /v1/sweeps
json '[.sweeps[] | .id] | tojson' '[3,2,1]' "the list has the newest first"
like "$("$top_builddir/trainctl" --server "$url" sweep show 2)" '^ *[0-9.]+ +4 +succeeded +11 ' "trainctl sweep show has the table"
like "$("$top_builddir/trainctl" --server "$url" sweep list)" '^ *3 .*cancelled' "trainctl sweep list"
is "$("$top_builddir/trainctl" --server "$url" --json sweep cancel 2 2>/dev/null; echo $?)" 1 "trainctl sweep cancel of an ended one fails"

# A sweep is cancelled while its jobs are submitted, which takes a while.
submitted() { # SWEEP
    sql "select count(*) from job where submitted_by = 'sweep $1'"
}
none_is_left() { # SWEEP: neither a job nor a trial
    [ "$(sql "select (select count(*) from job where submitted_by = 'sweep $1' and state not in ('cancelled', 'succeeded')) +
        (select count(*) from sweep_trial where sweep_id = $1 and state in ('waiting', 'submitted'))")" = 0 ]
}
sweep "{parameters: {\"/seed\": [range(150)]}, concurrency: 150}"
id=$(jq .id <<<"$body")
while [ "$(submitted "$id")" -lt 5 ] && [ $SECONDS -lt 600 ]; do :; done
call -X POST "/v1/sweeps/$id/cancel"
json .state cancelled "a sweep is cancelled when $(submitted "$id") of 150 jobs are submitted"
ok "no job of it is left, and no trial" eventually none_is_left "$id"
is "$(sql "select count(*) from job j where submitted_by = 'sweep $id' and not exists (select 1 from sweep_trial where sweep_id = $id and job_id = j.id)")" 0 \
    "each job was that of a trial"

# The daemon is killed when it has ended a sweep and not yet cancelled its jobs.
sweep '{parameters: {"/seed": [1, 2, 3], "/steps": [100000]}, concurrency: 3}'
id=$(jq .id <<<"$body")
all_submitted() { [ "$(submitted "$id")" = 3 ]; }
ok "three jobs of another are submitted" eventually all_submitted
kill_daemon
sql "update sweep set state = 'cancelled', finished_at = created_at where id = $id"
start_daemon --config "$work/traind.conf" --listen "${url#http://}"
ok "what is left of a cancelled sweep is cancelled by the next daemon" eventually none_is_left "$id"
sql "delete from job where submitted_by in ('sweep $((id - 1))', 'sweep $id'); delete from sweep where id >= $((id - 1))"

# ------------------------------------------------------------------ its cost before it starts

speed() { # SIZE SECONDS: of an image
    call -d "{\"key\": \"resnet18-imagenet-$1-fp32-t1-w0.0625\", \"cpu\": $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -1 | jq -R .), \"image_seconds\": $2,
        \"update_seconds\": 0, \"exchange_seconds\": 0, \"workers\": 1, \"batch\": 4}" /v1/speeds
    want 201 "a speed at $1 pixels is known"
}
plan() { # MORE
    call -d "$(jq -n --argjson base "$base" "{base: \$base, metric: \"loss\"} + $1")" /v1/sweeps/plan
}
jobs_before=$(sql 'select count(*) from job')
plan '{parameters: {"/lr/base": [0.1, 0.2, 0.3]}} | .base.model.image_size = 96 | .base.steps = 10'
want 200 "a sweep is planned"
json '[.points, .jobs, .images, .jobs_without_speed, .seconds.value, .rungs[0].side_by_side] | tojson' '[3,3,120,3,null,1]' "what it runs is known, its time is not"
like "$(jq -r '.warnings[0]' <<<"$body")" '^no speed is known yet of 3 of 3 jobs \(resnet18-imagenet-96-fp32-t1-w0.0625\)' "and it says what is missing"
speed 96 0.5
plan '{parameters: {"/lr/base": [0.1, 0.2, 0.3]}, concurrency: 9} | .base.model.image_size = 96 | .base.steps = 10'
json '[.jobs_without_speed, .seconds.value, .rungs[0].side_by_side, (.slot_hours.value * 3600 | round), .cost.value, .warnings] | tojson' '[0,40,2,60,null,[]]' \
    "with a speed it is: 3 jobs of 40 images, on two slots, and no price"
plan '{parameters: {"/model/image_size": [96, 192]}} | .base.steps = 10'
like "$(jq -r '.warnings[0]' <<<"$body")" 'derived.*\(192 from 96\)' "a size that was not measured borrows the speed of another"
json '.jobs_without_speed == 0 and .seconds.value > 90 and .seconds.value < 110' true "by its computation: four times as long"
plan '{parameters: {"/lr/base": {min: 0.1, max: 1}}, method: "halving", samples: 4, budget: {key: "steps", min: 2, max: 8, eta: 2}} | .base.model.image_size = 96'
json '[.jobs, .images, .seconds.value, (.rungs | map([.rung, .budget, .jobs, .images, .seconds.value]))] | tojson' \
    '[7,96,48,[[0,2,4,32,16],[1,4,2,32,16],[2,8,1,32,16]]]' "halving by rungs"
json '.seconds.low < 40 and .seconds.high >= 48' true "which may stop losers earlier"
plan '{parameters: {"/lr/base": {min: 0.1, max: 1}}, method: "halving", samples: 4, concurrency: 9, budget: {key: "steps", min: 2, max: 8, eta: 2}} | .base.model.image_size = 96'
json '[.rungs[].side_by_side] | tojson' '[2,2,1]' "on two slots two jobs at a time, or as many as there are"
plan '{parameters: {"/steps": [10, 20]}, method: "random", samples: 3, sampling: "random"} | .base.model.image_size = {"from": 64, "to": 96, "ramp": [1, 2], "multiple": 32}'
want 200 "a schedule of sizes is planned too"
plan '{parameters: {"/lr/bse": [1]}}'
json '.errors[0] | [.pointer, .suggestion] | tojson' '["/parameters/~1lr~1bse","/lr/base"]' "what would be refused is refused"
call -d '' /v1/sweeps/plan
refused 400 usage 'send a sweep as the body' "nothing is refused"
is "$(sql 'select count(*) from job')" "$jobs_before" "nothing was started"
jq -n --argjson base "$base" '{name: "cost", base: ($base | .model.image_size = 96), metric: "loss", parameters: {"lr.base": [0.1, 0.2]}}' >"$work/cost.json"
like "$("$top_builddir/trainctl" --server "$url" sweep plan "$work/cost.json" | tr '\n' ' ')" \
    '^sweep cost: 2 points, 2 jobs, 16 images to train on, 0 to evaluate .* 0 +- +2 +1 +16 +8.0 s +0.002222 +time +8.0 s, between 7.4 s and 8.6 s, if no other job competes for the slots slot-hours +0.002222, between ' \
    "trainctl sweep plan tells it"
jq '.base.data += {train: "synthetic", eval: "synthetic", train_images: 60000, eval_images: 10000}' "$top_srcdir/etc/examples/large-batches.json" >"$work/large.json"
like "$("$top_builddir/trainctl" --server "$url" sweep plan "$work/large.json" | tr '\n' ' ')" \
    'large-batches: 40 points, 40 jobs, 9,591,808 images' "the example of large batches is a sweep"
like "$("$top_builddir/trainctl" --server "$url" sweep plan 2>&1)" 'missing FILE. Usage: trainctl sweep plan FILE' "of which"

# ------------------------------------------------------------------ all wrong points; once only; pages

sweep '{parameters: {"/lr/base": [0.1, -1], "/optimizer/momentum": [0.9, 2]}}'
want 422 "wrong points are refused"
json '[.errors[] | [.pointer, (.message | capture("point (?<n>[0-9])").n)] | join(" ")] | tojson' \
    '["/base/lr/base 1","/base/optimizer/momentum 2","/base/lr/base 3","/base/optimizer/momentum 3"]' "all of them, and all that is wrong"
like "$(jq -r '.errors[1].message' <<<"$body")" '\(point 2: \{"/lr/base":0.1,"/optimizer/momentum":2\}\)$' "with the values of the point"
sweep "{parameters: {\"/lr/base\": $(seq -s, -f '-%g' 100 | sed 's/.*/[&]/')}}"
json '[(.errors | length), (.errors[-1] | .pointer, .message)] | tojson' '[51,"/parameters","the points from 50 on were not checked, as enough is wrong before"]' "a hundred of them"

one=$(jq -n --argjson base "$base" '{base: $base, metric: "loss", parameters: {"/seed": [1]}}')
call -H 'Idempotency-Key: s-1' -d "$one" /v1/sweeps
want 201 "a sweep with a key"
id=$(jq .id <<<"$body")
call -H 'Idempotency-Key: s-1' -d "$one" /v1/sweeps
want 200 "the same again"
json .id "$id" "is the same sweep"
like "$headers" "^Location: /v1/sweeps/$id$" "and its place"
call -H 'Idempotency-Key: s-1' -d "${one/1/2}" /v1/sweeps
refused 409 conflict "came before with another document \(sweep $id\)" "another body with the key"
call -H 'Idempotency-Key;' -d "$one" /v1/sweeps
refused 400 usage '1 to 200 characters' "an empty key"
together=()
for _ in 1 2 3 4; do
    curl -sS -o /dev/null -w '%{http_code}\n' -H 'Idempotency-Key: s-2' -d "$one" "$url/v1/sweeps" >>"$work/codes" &
    together+=($!)
done
wait "${together[@]}"
is "$(sort "$work/codes" | tr '\n' ' ')" "200 200 200 201 " "of four at once one is made"
ok "they end" ends "$((id + 1))"
call '/v1/sweeps?limit=2'
json '[.next, (.sweeps | map(.id))] | tojson' "[$id,[$((id + 1)),$id]]" "a page"
call "/v1/sweeps?limit=2&after=$id"
json '[.next, (.sweeps | map(.id))] | tojson' "[2,[3,2]]" "the next one"
call "/v1/sweeps?limit=2&after=2"
json '[.next, (.sweeps | map(.id))] | tojson' "[null,[1]]" "and the last"

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
like "$(jq -r '.trials[-1].reason' <<<"$body")" 'the last that will go on of [23] others' "with the reason"
json '[.trials[] | select(.rung == 1) | .point["/lr/base"]] | tojson' '[0.05,0.05]' "the others go on"
sweep '{parameters: {"/seed": [1]}, metric: "ttt_seconds", early_stop: {rule: "medan", from: 2, leest: 1}}'
json '[.errors[].pointer] | sort | tojson' '["/early_stop/from","/early_stop/leest","/early_stop/rule"]' "what is wrong with early_stop"
json '[.errors[].suggestion // empty] | sort | tojson' '["least","median"]' "and what would be right"
sweep '{method: "halvin", metric: "los", goal: "mni", sampling: "haltn", parameters: {"/seed": [1]}, budget: {key: "epoch", min: 1, max: 2}}'
json '[.errors[] | [.pointer, .suggestion] | join(" ")] | sort | tojson' '["/goal min","/method halving","/metric loss","/sampling halton"]' "misspelt values have their nearest"
sweep '{parameters: {"/seed": [1]}, metric: "ttt_seconds", early_stop: {rule: "median"}}'
like "$body" 'known at the end only' "a time to train cannot be compared on the way"

# ------------------------------------------------------------------ none goes on for ever, none takes long to refuse

for parameters in '"": [1]' '"/": [1]' '"//": [1]' '"lr": [1]' '"/lr/base/": [1]' '"lr..base": [1]' '"/lr.base": [1]'; do
    sweep "{parameters: {$parameters}}"
    refused 422 invalid 'is not a key of a job document' "a parameter $parameters"
done
sweep '{parameters: {"/lr/base": [1], "lr.base": [2]}}'
refused 422 invalid '/lr/base sets the same key' "a key twice"
for range in '{"min": -1e308, "max": 1e308}' '{"min": 1e-308, "max": 1e308, "log": true}' '{"min": 0, "max": 1e300, "integer": true}' '{"min": 1, "max": 2, "log": 1}'; do
    sweep "{method: \"random\", parameters: {\"/lr/base\": $range}}"
    refused 422 invalid 'too far apart|up to 2.53|true or false' "a range $range"
done
sweep '{sampling: "halton", parameters: {"/lr/base": [1]}}'
refused 422 invalid 'is only for the methods random and halving' "sampling of a grid"
sweep '{method: "random", sampling: "sobol", parameters: {"/lr/base": [1]}}'
refused 422 invalid 'must be one of random, halton' "an unknown sampling"
halving() { # BUDGET [MORE]
    sweep "{method: \"halving\", samples: 2, parameters: {\"/lr/base\": [0.01, 0.02]}, metric: \"loss\", budget: $1}${2-}"
}
halving '{key: "/epochs", min: 101, max: 10100, eta: 100}' ' | .base |= del(.steps)'
refused 422 invalid 'rung 1, epochs 10100: epochs: must be' "a budget above what a job may have"
halving '{key: "/steps", min: 0.1, max: 2}'
refused 422 invalid '/base/steps' "and below"
halving '{key: "epoch", min: 1, max: 2}'
refused 422 invalid 'must be one of epochs, steps, not' "no such budget"
json '.errors[0].suggestion' epochs "with the nearest"
halving '{key: "epochs", min: 1, max: 2}'
refused 422 invalid 'steps is set' "epochs where the job has steps"
halving '{key: "/steps", min: 1e-300, max: 1}'
refused 422 invalid 'more than 32 rungs' "rungs without end"
sweep '{method: "halving", parameters: {"steps": [1, 2]}, budget: {key: "/steps", min: 1, max: 2}}'
refused 422 invalid 'the budget sets the same key' "a parameter that is the budget"

# ------------------------------------------------------------------ numbers as they were written

last_job() { # FILTER: of the newest job's answer as it is, which jq would print in digits of its own
    get "/v1/jobs/$(sql 'select max(id) from job')" | grep -oE -- "$1" | head -n 1
}
sweep '{parameters: {"lr.base": [0.009], "lr.milestones": [[0.3, 9.95]], "optimizer.momentum": [0.30000000000000004]}} | .base.steps = 1'
want 201 "a grid of numbers that a double has not"
like "$body" '"lr.base":0.009,"lr.milestones":\[0.3,9.95\],"optimizer.momentum":0.30000000000000004\}' "whose points are as written"
ok "it ends" ends "$(jq .id <<<"$body")"
is "$(last_job '"name":"[^"]*"')" '"name":"sweep lr.base=0.009 lr.milestones=[0.3,9.95] optimizer.momentum=0.30000000000000004"' "its job's name too"
is "$(last_job '"milestones":[^]]*')$(last_job '"base":[^,]*')" '"milestones":[0.3,9.95"base":0.009' "and its job's document"
halving '{key: "epochs", min: 0.1, max: 0.3, eta: 3}' ' | .base |= del(.steps) | .parameters = {"/lr/base": {min: 0.001, max: 0.1, log: true}}'
want 201 "a halving in tenths of an epoch, of numbers drawn"
ok "it ends" ends "$(jq .id <<<"$body")"
like "$(last_job '"name":"[^"]*"')" '^"name":"sweep lr.base=[0-9.]{5,10} epochs=0.3"$' "its last job's name has few digits"

jq -nc --argjson base "$base" '{base: $base, method: "random", samples: 1000, parameters: ([range(40000) | {key: "x\(.)", value: [1]}] | from_entries)}' >"$work/many.json"
call --max-time 600 -d "@$work/many.json" /v1/sweeps
refused 422 invalid 'is not a key' "40,000 unknown parameters are refused at once"
json '.errors | length' 50 "with the first of them"
jq -n --argjson base "$base" '{base: ($base + ([range(20000) | {key: "unknown\(.)", value: 1}] | from_entries)), method: "random", samples: 1000, parameters: {"/seed": [1]}}' >"$work/many.json"
call --max-time 600 -d "@$work/many.json" /v1/sweeps
refused 422 invalid 'is not a key' "so are 20,000 unknown keys of the base"
jq -n --argjson base "$base" '{base: ($base | .cluster.hosts = [range(4096) | "host-with-a-long-name-\(.)"]), method: "random", samples: 1000, parameters: {"/seed": [1]}}' >"$work/many.json"
call --max-time 600 -d "@$work/many.json" /v1/sweeps
refused 422 invalid 'exceed 16 MiB' "and a thousand documents of 4096 hosts"

# The keys of a sweep's jobs: another's job may come under the name that they had.
next=$(($(sql 'select max(id) from sweep') + 1))
for rung in 0 1; do
    call -H "Idempotency-Key: sweep-$next-$rung-0" -d "$(jq '.steps = 1' <<<"$base")" /v1/jobs
    want 201 "a job with the key sweep-$next-$rung-0"
done
halving '{key: "/steps", min: 1, max: 2, eta: 2}'
json .id "$next" "the sweep with that number"
ok "ends all the same" ends "$next"
call "/v1/sweeps/$next"
json '[.trials[].state] | unique | tojson' '["succeeded"]' "its trials have run"

# A rung that a later version refuses, and keys of an earlier one. No trial runs before the daemon stops, for another job has all slots.
call -d "$(jq '.steps = 1000000 | .cluster.workers_per_node = 2' <<<"$base")" /v1/jobs
holder=$(jq .id <<<"$body")
ok "another job runs" wait_state "$holder" running
halving '{key: "/steps", min: 1, max: 2, eta: 2}'
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

call /v1/sweeps/99
refused 404 not-found 'there is no sweep 99' "no such sweep"
ok "the daemon stops in order" stop_daemon
done_testing
