#!/usr/bin/env bash
# Series by the images seen: exact where a run goes on with other workers. And the accuracy of weights that are not averaged.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
printf "%s\n" "worker = $top_builddir/tests/bin/train-worker" "slots = 2" "cancel_grace_seconds = 60" >"$work/traind.conf"
export OMP_NUM_THREADS=1
start_daemon --config "$work/traind.conf"
trainctl=("$top_builddir/trainctl" --server "$url")

document='{"data": {"train": "synthetic", "eval": "synthetic", "train_images": 64}, "model": {"arch": "resnet18", "width": 0.0625, "image_size": 32, "classes": 4},
    "batch_per_worker": 4, "steps": 20000, "checkpoint": {"every_steps": 5}, "lr": {"base": 0.001, "scaling": "none"}, "restart": {"max": 0},
    "ema": {"decay": 0.9}, "eval": {"every_epochs": 1, "batch": 8}, "cluster": {"workers_per_node": 2, "threads_per_worker": 1}}'
call -d "$document" /v1/jobs
want 201 "a job of two workers"
call -d "$document" /v1/jobs
want 201 "another waits"
call /v1/jobs/2/metrics
json '[.images, .step] | tojson' '[[],[]]' "no step, no images"
call -X POST /v1/jobs/2/cancel
want 200 "it is cancelled"
ok "it runs" eventually has_events 1 12
call -X POST /v1/jobs/1/cancel
ok "it is cancelled" wait_state 1 cancelled
call /v1/jobs/1/metrics
json '[.images, .step] | transpose | all(.[0] == .[1] * 8)' true "eight images a step"
call -d '{"cluster": {"workers_per_node": 1}}' /v1/jobs/1/resume
want 202 "one worker goes on"
at=$(jq .resume.step <<<"$body")
ok "it runs" eventually has_events 1 $((at + 20))
call -X POST /v1/jobs/1/cancel
ok "and is cancelled" wait_state 1 cancelled
call /v1/jobs/1/metrics
json "[.images, .step, (.step | map(if . <= $at then . * 8 else $at * 8 + (. - $at) * 4 end))] | transpose | all(.[0] == .[2])" true \
    "four images a step behind the checkpoint of step $at"
last=$(jq '.images[-1]' <<<"$body")
call '/v1/jobs/1/metrics?points=4&names=loss'
json "[.images, (.step | map(if . <= $at then . * 8 else $at * 8 + (. - $at) * 4 end))] | .[0] == .[1]" true "the same where steps are averaged"
call '/v1/jobs/1/metrics?format=csv&names=loss,images'
like "$(head -1 <<<"$body")" '^step,epoch,t,loss,images' "CSV has a column of them"
is "$(tail -1 <<<"$body" | tr -d '\r' | cut -d, -f5)" "$last" "with the same number"
call '/v1/jobs/1/metrics?names=imges'
refused 400 usage 'unknown metric "imges"; the metrics are .*, and images' "a misspelt name"
call /v1/jobs/1/evals
json "[.evals[] | .images_seen == (if .step <= $at then .step * 8 else $at * 8 + (.step - $at) * 4 end)] | length > 0 and all" true "evaluations too"
json '[.evals[] | .raw_top1 >= 0 and .raw_top1 <= 1 and has("raw_loss")] | all' true "with the accuracy of the raw weights"
like "$("${trainctl[@]}" metrics --x images --csv 1 | tail -1)" "^[0-9]+,[0-9.]+,$last," "trainctl metrics --x images"
like "$("${trainctl[@]}" metrics --x images --plot --names loss 1)" '^loss by images$' "as the axis of a curve"
like "$("${trainctl[@]}" metrics --x imges 1 2>&1)" 'imges' "not by a misspelt one"
ok "the daemon stops in order" stop_daemon
done_testing
