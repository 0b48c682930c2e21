#!/usr/bin/env bash
# A job in the formats of others, read by independent readers; also of a job that failed in between and went on.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
python=${PYTHON_WITH_DEBIAN:-/usr/bin/python3}

fetch_mllog() { # ID
    call "/v1/jobs/$1/mllog"
}
check_mllog() { # what the check says of the log fetched last
    "$python" "$top_srcdir/tests/api/http/check_mllog.py" "$work/body" 2>&1 | tail -n 1
}
mllog() { # FILTER: over the array of its lines
    sed -n 's/^:::MLLOG //p' "$work/body" | jq -sc "$1"
}
run_started() { # ID: the attempts that began when the run did
    sql "select attempt from job_event where job_id = $1 and type = 'run_start'
        and abs(t * 1000 - $(mllog '.[] | select(.key == "run_start").time_ms')) <= 0.5" | xargs
}
run_ms() { # from run_start to run_stop
    mllog 'map({(.key): .time_ms}) | add | .run_stop - .run_start'
}
epoch_stops() { # the steps at whose time an epoch stops: ID
    local t
    for t in $(mllog '.[] | select(.key == "epoch_stop").time_ms'); do
        sql "select step from step_metric where job_id = $1 order by abs(t * 1000 - $t) limit 1"
    done | xargs
}

start_runs
# 64 images, 4 x 2 a step: 8 steps an epoch; it fails after step 11, and goes on from the checkpoint of step 10
submit "steps=20 step_ms=5 eval=1 every=5 rank=0 at=11 exit=3 first=1" '{"workers_per_node": 2, "threads_per_worker": 1}' \
    '{"steps": 20, "restart": {"max": 1}, "optimizer": {"momentum": 0.9}, "lr": {"warmup_epochs": 1}}'
wait_state "$id" succeeded
is "$(job "$id" attempt)" 2 "a job that was started twice"
exported() { test -s "$state/jobs/$id/mllog.txt" && test -s "$state/jobs/$id/tensorboard/"events.out.tfevents.*.job-"$id"; }
eventually exported # behind its end

# ------------------------------------------------------------------ MLPerf

fetch_mllog "$id"
want 200 "the MLPerf log"
like "$headers" '^Content-Type: text/plain' "its type"
is "$(check_mllog)" '{"epochs": 1, "open": 0, "evals": 1, "batch": 8, "samples": 64, "status": "success"}' \
    "follows the rules, the fifth of an epoch that the fixture says included"
is "$(cat "$state/jobs/$id/mllog.txt")" "$body" "it lies in the run directory too"
is "$(mllog '.[] | select(.key == "eval_accuracy") | [.value, .metadata.epoch_num]')" "[0.75,1]" "with the accuracy"
is "$(run_started "$id")" 2 "the fixture says that its second attempt begins anew: so does the run"
is "$(mllog '.[] | select(.key == "sgd_opt_learning_rate_decay_steps").value')" 12 "the rate decays in 20 steps without the 8 of warm-up"
is "$(mllog '.[] | select(.key == "sgd_opt_learning_rate_decay_poly_power").value')" "$(get "/v1/jobs/$id" | jq .spec.lr.power)" "with its power"

# ------------------------------------------------------------------ TensorBoard

call "/v1/jobs/$id/tensorboard"
want 200 "the TensorBoard file"
ok "is the one in the run directory" cmp "$work/body" "$state/jobs/$id/tensorboard/"events.out.tfevents.*.job-"$id"
"$python" "$top_srcdir/tests/api/http/read_tfevents.py" "$work/body" >"$work/board" 2>&1
read_board() {
    jq -cr "$1" "$work/board" 2>&1
}
is "$(read_board '.series.loss | map(.[0])')" "[$(seq -s, 20)]" "a reader of its own finds each step once, in order"
is "$(read_board '[.series.loss[0], .series.loss[19], .series.images_per_sec[4], .series.lr[0]]')" '[[1,2],[20,0.1],[5,100],[1,0.1]]' "with its numbers"
is "$(read_board '[.series.top1[0], .series.top1[4]]')" '[[1,0.5],[5,0.9]]' "the training accuracy"
is "$(read_board '[.series["eval/top1"], .series["eval/top5"], .series["eval/loss"]]')" '[[[20,0.75]],[[20,0.9375]],[[20,0.5]]]' "the evaluation"
is "$(read_board '[.hparams | .["optimizer.momentum"], .batch_per_worker, .["model.arch"], .["optimizer.nesterov"]]')" '[0.9,4,"resnet50",false]' \
    "and the hyper-parameters"

is "$(read_board '[.hparams | has("tags", "note")], .texts')" '[false,false]
{}' "nothing of what nobody wrote"
curl -sS -X PATCH -d '{"add_tags": ["b", "a"], "note": "first\nsecond \u00e4", "name": "renamed"}' "$url/v1/jobs/$id" >/dev/null
call "/v1/jobs/$id/tensorboard"
"$python" "$top_srcdir/tests/api/http/read_tfevents.py" "$work/body" >"$work/board" 2>&1
is "$(read_board '.hparams | [.name, .tags, .note]')" '["renamed","a, b","first\nsecond ä"]' "name, tags and note are among the hyper-parameters, as they are now"
is "$(read_board .texts)" '{"note":"first\nsecond ä"}' "and the note is a text"
fetch_mllog "$id"
is "$(mllog '.[] | select(.key == "submission_benchmark").metadata | [.name, .tags, .note]')" '["renamed",["a","b"],"first\nsecond ä"]' "they are metadata of the MLPerf log"
like "$(check_mllog)" '"status": "success"' "which follows the rules still"

submit "steps=20" '' '{"tensorboard": {"every_steps": 8}}'
wait_state "$id" succeeded
call "/v1/jobs/$id/tensorboard"
"$python" "$top_srcdir/tests/api/http/read_tfevents.py" "$work/body" >"$work/board" 2>&1
is "$(read_board '[.series.loss[][0]]')" '[8,16]' "tensorboard.every_steps thins the summaries out"

# ------------------------------------------------------------------ MLPerf: runs that were broken off

submit "steps=1000 step_ms=20 gate=50" '' '{"lr": {"decay": "cosine"}}'
wait_state "$id" running
eventually has_events "$id" 2
fetch_mllog "$id"
like "$body" '"key": "run_start"' "of a running job, as far as it is"
is "$(mllog 'map(select(.key | test("run_stop|epoch_stop"))) | length')" 0 "without an end"
call -X POST "/v1/jobs/$id/cancel"
wait_state "$id" cancelled
fetch_mllog "$id"
is "$(check_mllog)" '{"epochs": 0, "open": 1, "evals": 0, "batch": 8, "samples": 64, "status": "aborted"}' "a cancelled one is aborted in its first epoch"
is "$(mllog 'map(select(.key | test("_decay_(poly|steps)"))) | length')" 0 "nothing of a poly decay where there is none"

submit "steps=200 step_ms=2 rank=0 at=150 exit=3"
wait_state "$id" failed
fetch_mllog "$id"
is "$(check_mllog)" '{"epochs": 1, "open": 1, "evals": 0, "batch": 8, "samples": 64, "status": "aborted"}' "so is one that crashed, in its second"
is "$(mllog '.[] | select(.key == "run_stop").time_ms')" "$(sql "select cast(round(finished_at * 1000) as integer) from job where id = $id")" "when the job ended"
is "$(epoch_stops "$id")" 100 "the first one is whole"

# ------------------------------------------------------------------ MLPerf: time to train

submit "steps=100 step_ms=20"
wait_state "$id" succeeded
fetch_mllog "$id"
is "$(run_ms)" 1500 "from run_start to run_stop is the time to train"

# ------------------------------------------------------------------ MLPerf: epochs, with the real worker

kill_daemon
sed -i "s|^worker = .*|worker = $top_builddir/tests/bin/train-worker|" "$work/traind.conf"
restart_runs
model='{"image_size": 32, "classes": 10, "arch": "resnet18", "width": 0.0625}'
# 12.5 steps an epoch; guessing between two classes reaches the target
submit exact '{"workers_per_node": 1, "threads_per_worker": 1}' '{"steps_rounding": "exact", "epochs": 2, "steps": null, "model": '"${model/10/2}"',
    "data": {"train": "synthetic", "eval": "synthetic", "train_images": 50, "eval_images": 64},
    "eval": {"every_epochs": 1, "target_top1": 0.01, "stop_at_target": false}, "checkpoint": {"disable": true}, "optimizer": {"name": "lars"}, "lr": {"warmup_epochs": 1}}'
wait_state "$id" succeeded
fetch_mllog "$id"
is "$(check_mllog)" '{"epochs": 2, "open": 0, "evals": 2, "batch": 4, "samples": 50, "status": "success"}' "epochs that end within a step"
is "$(epoch_stops "$id")" "13 25" "they stop with that step"
is "$(mllog 'map(select(.key == "eval_accuracy").metadata.epoch_num)')" "[1,2]" "and so are the evaluations numbered"
is "$(mllog 'map(.key | select(. == "eval_accuracy" or . == "run_stop"))')" '["eval_accuracy","run_stop","eval_accuracy"]' \
    "the run stops behind the evaluation that reaches the target, though it trains on"
late=$(($(run_ms) - $(job "$id" 'ttt_seconds * 1000 | round')))
ok "in the time to train" [ "$late" -ge -2 -a "$late" -le 20 ]

in_epoch() { # ID EPOCH
    [ "$(sql "select epoch > $2 from job where id = $1")" = 1 ]
}
submit resumed '' '{"epochs": 500, "steps": null, "model": '"$model"'}' # 8 steps an epoch, then 16
eventually in_epoch "$id" 1
call -X POST "/v1/jobs/$id/cancel"
wait_state "$id" cancelled
whole=$(sql "select cast(epoch as integer) from job where id = $id")
call -d '{"cluster": {"workers_per_node": 1}}' "/v1/jobs/$id/resume"
eventually in_epoch "$id" $((whole + 2))
call -X POST "/v1/jobs/$id/cancel"
wait_state "$id" cancelled
fetch_mllog "$id"
# Cancelled between two steps of an epoch, or at its end.
within=$(sql "select abs(epoch - round(epoch)) > 1e-6 from job where id = $id")
like "$(check_mllog)" "\"open\": $within, .*\"status\": \"aborted\"" "a run that went on with fewer workers and was cancelled"
is "$(run_started "$id")" 1 "it is one run, from its first attempt on"
is "$(epoch_stops "$id")" "$(sql "select min(step) from step_metric, (select distinct cast(epoch as integer) as n from step_metric where job_id = $id)
    where job_id = $id and n >= 1 and epoch >= n group by n order by n" | xargs)" "epochs stop where they ended, by the plan of each attempt"
is "$(epoch_stops "$id" | cut -d' ' -f-$whole)" "$(seq -s' ' 8 8 $((8 * whole)))" "those of the first after 8 steps each"

call /v1/jobs/99/mllog
refused 404 not-found 'no job 99' "of no job"

# ------------------------------------------------------------------ what an older version imported may be anything

kill_daemon
numbers="with recursive n(i) as (select 1 union all select i + 1 from n where i <"
sql "insert into eval (job_id, step, t) $numbers 100000) select $id, 1000000 + i, 0 from n;
    insert into job_event (job_id, attempt, t, type, body) $numbers 100000)
        select $id, 1, 0, 'eval', json_object('step', 1100001 - i, 'raw_top1', 100001 - i) from n;
    insert or replace into step_metric (job_id, step, t, images_per_sec, step_ms) $numbers 400000) select $id, i, 0, i, 1000 from n"
restart_runs
ok "evaluations in any order are soon told" curl -sS -m 150 -o "$work/evals" "$url/v1/jobs/$id/evals"
is "$(jq -c '[.evals[] | select(.step > 1000000)] | [length, all(.raw_top1 == .step - 1000000)]' "$work/evals")" '[100000,true]' "each with its own numbers"
ok "so is a series in which every step has another batch" curl -sS -m 40 -o "$work/series" "$url/v1/jobs/$id/metrics?points=100"
is "$(jq -c '[.images[0] == (.step[0] | . * (. + 1) / 2), .images[-1]]' "$work/series")" '[true,null]' "with as many images as are worth the time"
is "$(get "/v1/jobs/$id/metrics?names=images&points=100&format=csv" | tail -n 1 | tr -d '\r')" "400000,,0.000000," "in CSV too"
done_testing
