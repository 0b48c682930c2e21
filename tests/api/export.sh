#!/usr/bin/env bash
# A job in the formats of others, read by independent readers; also of a job that failed in between and went on.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/runs.sh.inc"
python=${PYTHON_WITH_DEBIAN:-/usr/bin/python3}
start_runs
# 64 images, 4 x 2 a step: 8 steps an epoch; it fails after step 11, and goes on from the checkpoint of step 10
submit "steps=20 step_ms=5 eval=1 every=5 rank=0 at=11 exit=3 first=1" '{"workers_per_node": 2, "threads_per_worker": 1}' \
    '{"steps": 20, "restart": {"max": 1}, "optimizer": {"momentum": 0.9}}'
wait_state "$id" succeeded
is "$(job "$id" attempt)" 2 "a job that was started twice"

# ------------------------------------------------------------------ MLPerf

call "/v1/jobs/$id/mllog"
want 200 "the MLPerf log"
like "$headers" '^Content-Type: text/plain' "its type"
is "$("$python" "$top_srcdir/tests/api/check_mllog.py" "$work/body" 2>&1 | tail -n 1)" \
    '{"epochs": 3, "evals": 1, "batch": 8, "samples": 64, "status": "success"}' "follows the rules"
is "$(cat "$state/jobs/$id/mllog.txt")" "$body" "it lies in the run directory too"
is "$(sed -n 's/^:::MLLOG //p' "$work/body" | jq -c 'select(.key == "eval_accuracy") | [.value, .metadata.epoch_num]')" "[0.75,1]" "with the accuracy"
submit "steps=1000 step_ms=20"
wait_state "$id" running
call "/v1/jobs/$id/mllog"
like "$body" '"key": "run_start"' "of a running job, as far as it is"
is "$(grep -c run_stop <<<"$body")" 0 "without an end"
call -X POST "/v1/jobs/$id/cancel"
call /v1/jobs/99/mllog
refused 404 not-found 'no job 99' "of no job"
done_testing
