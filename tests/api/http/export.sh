#!/usr/bin/env bash
# A job in the formats of others, read by independent readers; also of a job that failed in between and went on.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
python=${PYTHON_WITH_DEBIAN:-/usr/bin/python3}
start_runs
# 64 images, 4 x 2 a step: 8 steps an epoch; it fails after step 11, and goes on from the checkpoint of step 10
submit "steps=20 step_ms=5 eval=1 every=5 rank=0 at=11 exit=3 first=1" '{"workers_per_node": 2, "threads_per_worker": 1}' \
    '{"steps": 20, "restart": {"max": 1}, "optimizer": {"momentum": 0.9}}'
wait_state "$id" succeeded
is "$(job "$id" attempt)" 2 "a job that was started twice"
exported() { test -s "$state/jobs/$id/mllog.txt" && test -s "$state/jobs/$id/tensorboard/"events.out.tfevents.*.job-"$id"; }
eventually exported # behind its end

# ------------------------------------------------------------------ MLPerf

call "/v1/jobs/$id/mllog"
want 200 "the MLPerf log"
like "$headers" '^Content-Type: text/plain' "its type"
is "$("$python" "$top_srcdir/tests/api/http/check_mllog.py" "$work/body" 2>&1 | tail -n 1)" \
    '{"epochs": 3, "evals": 1, "batch": 8, "samples": 64, "status": "success"}' "follows the rules"
is "$(cat "$state/jobs/$id/mllog.txt")" "$body" "it lies in the run directory too"
is "$(sed -n 's/^:::MLLOG //p' "$work/body" | jq -c 'select(.key == "eval_accuracy") | [.value, .metadata.epoch_num]')" "[0.75,1]" "with the accuracy"

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
call "/v1/jobs/$id/mllog"
is "$(sed -n 's/^:::MLLOG //p' "$work/body" | jq -c 'select(.key == "submission_benchmark").metadata | [.name, .tags, .note]')" '["renamed",["a","b"],"first\nsecond ä"]' "they are metadata of the MLPerf log"
is "$("$python" "$top_srcdir/tests/api/http/check_mllog.py" "$work/body" >/dev/null 2>&1 && echo right)" right "which follows the rules still"

submit "steps=20" '' '{"tensorboard": {"every_steps": 8}}'
wait_state "$id" succeeded
call "/v1/jobs/$id/tensorboard"
"$python" "$top_srcdir/tests/api/http/read_tfevents.py" "$work/body" >"$work/board" 2>&1
is "$(read_board '[.series.loss[][0]]')" '[8,16]' "tensorboard.every_steps thins the summaries out"

submit "steps=1000 step_ms=20"
wait_state "$id" running
call "/v1/jobs/$id/mllog"
like "$body" '"key": "run_start"' "of a running job, as far as it is"
is "$(grep -c run_stop <<<"$body")" 0 "without an end"
call -X POST "/v1/jobs/$id/cancel"
call /v1/jobs/99/mllog
refused 404 not-found 'no job 99' "of no job"
done_testing
