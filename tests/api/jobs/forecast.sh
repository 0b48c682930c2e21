#!/usr/bin/env bash
# A running job's time left, and what a finished one leaves: its speed, and how good its predictions were.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
printf "%s\n" "worker = $top_builddir/tests/bin/train-worker" "slots = 2" "cancel_grace_seconds = 60" >"$work/traind.conf"
export OMP_NUM_THREADS=1
start_daemon --config "$work/traind.conf"

document='{"data": {"train": "synthetic", "train_images": 64}, "model": {"arch": "resnet18", "image_size": 32, "classes": 10, "stem": "small"},
    "batch_per_worker": 4, "steps": 12, "checkpoint": {"disable": true}, "lr": {"base": 0.001, "scaling": "none"},
    "cluster": {"workers_per_node": 1, "threads_per_worker": 1}}'
key=resnet18-small-32-fp32-t1
call -d "$document" /v1/plan
json '.predicted.ttt_seconds.value' null "nothing is predicted of what was never measured"
call "/v1/speeds?key=$key"
json '.speeds | length' 0 "there is no speed yet"
call /v1/speeds
refused 400 usage 'key must be a speed key' "speeds without a key"
like "$(XDG_CACHE_HOME=$work/cache "$top_builddir/trainctl" --server "$url" plan - <<<"$document")" 'trainctl scale --weak --workers 1 FILE' \
    "trainctl plan tells how to measure one"

# What trainctl bench and scale measure, the daemon's plans predict from: with any speed, of any user.
"$top_builddir/trainctl" --server "unix:$socket" --json bench --arch resnet18 --image-size 64 --batch 2 --workers 1 --threads 1 --steps 1 >"$work/bench.json"
call "/v1/speeds?key=resnet18-imagenet-64-fp32-t1"
json '.speeds | length' 1 "trainctl bench tells the daemon what it measured"
call -d '{"data": {"train": "synthetic", "train_images": 64}, "model": {"arch": "resnet18", "image_size": 64}, "batch_per_worker": 2,
    "cluster": {"workers_per_node": 1, "threads_per_worker": 1}}' /v1/plan
json '.predicted | .images_per_sec.value > 0 and .images_per_second == .images_per_sec' true "and a plan predicts from it"
for wrong in '.key = "a b"' '.key = ""' '.cpu = "a\nb"' 'del(.cpu)' '.image_seconds = -1' '.workers = 0' 'del(.batch)'; do
    call -d "$(jq -n "{key: \"k\", cpu: \"c\", image_seconds: 1, update_seconds: 0, exchange_seconds: 0, workers: 1, batch: 1} | $wrong")" /v1/speeds
    refused 422 invalid 'must' "no speed is added with $wrong"
done

call -d "$document" /v1/jobs
ok "it runs" eventually has_events 1 3
call /v1/jobs/1
[ "$(jq -r .state <<<"$body")" != running ] ||
    json '.time_left | .low <= .value and .value <= .high' true "a running job's time left has a band"
ok "it succeeds" wait_state 1 succeeded
judged() { [ "$(job "$1" 'forecast | type')" = object ]; } # soon after its end
ok "its forecast is judged" eventually judged 1
call /v1/jobs/1
json .time_left null "an ended job has no time left"
json '.forecast.ttt_seconds' null "nothing was predicted of its time to train"
json '[.forecast.time_left[] | .share] | tojson' '[0.25,0.5,0.75]' "the bands are judged at three moments"
json '[.forecast.time_left[] | (.inside | type) == "boolean" and .actual > 0 and .low <= .value] | all' true "by what happened"

call "/v1/speeds?key=$key"
json '.speeds[0] | .image_seconds > 0 and .workers == 1 and .batch == 4' true "its speed is kept"
call -d "$document" /v1/plan
json '.predicted.ttt_seconds | .low < .value and .value < .high' true "the next plan predicts, with a band"
call -d "$document" /v1/jobs
ok "the next job succeeds" wait_state 2 succeeded
eventually judged 2
call /v1/jobs/2
json '.forecast.ttt_seconds | .actual > 0 and (.inside | type) == "boolean"' true "its prediction is judged"
echo "# prediction: $(jq -c .forecast.ttt_seconds <<<"$body")"
like "$("$top_builddir/trainctl" --server "$url" show 2)" '^predicted +[0-9.a-z ]+ \([0-9.a-z ]+ to [0-9.a-z ]+\), actual .*: [0-9]+ % too (long|short)' "trainctl show tells it"
like "$("$top_builddir/trainctl" --server "$url" show 2)" '^time left at 50 % ' "and that of the time left"
plan=$(XDG_CACHE_HOME=$work/cache "$top_builddir/trainctl" --server "$url" plan --json - <<<"$document")
is "$(jq '.predicted.images_per_sec.value > 0' <<<"$plan")" true "trainctl plan asks the daemon"
is "$(curl -sS -X DELETE "$url/v1/jobs/1" -o /dev/null -w '%{http_code}')" 200 "a job is removed"
call "/v1/speeds?key=$key"
json '.speeds | length' 2 "what it measured stays"

# ------------------------------------------------------------------ evaluations to come; a resumed job

quick=$(jq '.model = {arch: "resnet18", width: 0.25, image_size: 32, classes: 10}' <<<"$document")
call -d "$(jq '. + {steps: 64, data: {train: "synthetic", eval: "synthetic", train_images: 64}, eval: {every_epochs: 0.5, batch: 8}}' <<<"$quick")" /v1/jobs
ok "a job with evaluations runs" eventually has_events 3 2
call /v1/jobs/3
json '.plan.eval_images > 0' true "it evaluates"
[ "$(jq -r .state <<<"$body")" != running ] ||
    json '.time_left.value > (.train_steps - .step) * .global_batch / .images_per_sec * 1.1' true "its time left has the evaluations to come"
ok "it succeeds" wait_state 3 succeeded
eventually judged 3
call /v1/jobs/3
echo "# time left with evaluations: $(jq -c '.forecast.time_left | map([.share, .value, .actual])' <<<"$body")"

call -d "$(jq '. + {steps: 4000, checkpoint: {every_steps: 20}, restart: {max: 0}}' <<<"$quick")" /v1/jobs
ok "a long one runs" eventually has_events 4 25
call -X POST /v1/jobs/4/cancel
ok "it is cancelled" wait_state 4 cancelled
call /v1/jobs/4
at=$(jq .checkpoint_step <<<"$body")
call -X POST /v1/jobs/4/resume
starting() {
    call /v1/jobs/4
    [ "$(jq -r .state <<<"$body")" != queued ]
}
eventually starting
before=$(jq -c '{step, state, left: (.time_left.value // 0), wanted: ((4000 - ([.step, '"$at"'] | min)) * .global_batch / .images_per_sec)}' <<<"$body")
is "$(jq '.left > .wanted / 3 and .left < .wanted * 10' <<<"$before")" true "before its first step a resumed job knows its time left ($before)"
ok "it goes on" eventually has_events 4 $((at + 2))
is "$(sql "select count(*) from job where id = 4 and step >= $at")" 1 "behind its checkpoint"
call -X POST /v1/jobs/4/cancel
ok "it ends" wait_state 4 cancelled

# ------------------------------------------------------------------ when the target is met, and how good all estimates were

call -d "$(jq '. + {steps: 24, model: {arch: "resnet18", width: 0.0625, image_size: [[0, 32], [1, 96]], classes: 4},
    data: {train: "synthetic", eval: "synthetic", train_images: 32}, eval: {every_epochs: 1, batch: 8, target_top1: 0.01}}' <<<"$document")" /v1/jobs
want 201 "a job with a target whose images grow"
ok "it succeeds" wait_state 5 succeeded
ok "its forecast is judged" eventually judged 5
call /v1/jobs/5
json '.target | [.top1, .met_step, .step.value, .seconds, .within_run] | tojson' '[0.01,8,null,null,null]' "the first evaluation met it"
json '[(.forecast.target | type), .forecast.time_left[].share] | tojson' '["array",0.25,0.5,0.75]' "its estimates are judged"
echo "# time left with images that grow: $(jq -c '.forecast.time_left | map([.share, .value, .actual])' <<<"$body")"
# Against what the speed of the last step, of small images, would say alone: 16 of 18 steps take nine times as long, and there are evaluations.
# How long all of it took is another matter on a busy machine.
value=$(jq '.forecast.time_left[0].value' <<<"$body")
alone=$(get "/v1/jobs/5/metrics?names=images_per_sec&from=6&to=6" | jq '18 * 4 / .images_per_sec[0]')
is "$(jq -n "$value > 6 * $alone and $value < 20 * $alone")" true "a quarter through, when images are small, it counts the large ones ($value s, not $alone s)"

call -d "$(jq '. + {steps: 4000, data: {train: "synthetic", eval: "synthetic", train_images: 64}, eval: {every_epochs: 200, batch: 8, target_top1: 0.9}}' <<<"$quick")" /v1/jobs
ok "one with a target runs" eventually has_events 6 3
call /v1/jobs/6
json '.target | [.met_step, .step.value, .within_run] | tojson' '[null,null,null]' "without evaluations nothing is told"
like "$("$top_builddir/trainctl" --server "$url" show 6)" '^target 90.00 % +unknown: too few evaluations' "trainctl show says so"
# An error that falls as 2 / sqrt(step) is 10 % at step 400; steps are seen at the next evaluation.
for step in 16 36 64 100 144; do
    sql "insert into eval (job_id, step, top1, t) values (6, $step, 1 - 2 / sqrt($step), $(date +%s))"
done
call /v1/jobs/6
json '.target | .within_run and (.step | (.value | round) == 400 and .low < 400 and .high > 400) and .met_step == null' true "by its evaluations it is expected at step 400"
[ "$(jq -r .state <<<"$body")" != running ] ||
    json '.target.seconds | .low <= .value and .value <= .high' true "in so many seconds, with a band"
like "$("$top_builddir/trainctl" --server "$url" show 6)" '^target 90.00 % +expected at step 400 \([0-9]+ to [0-9]+\)' "trainctl show tells it"
# One that needs both slots waits behind it.
call -d "$(jq '.cluster.workers_per_node = 2' <<<"$document")" /v1/jobs
json '[.state, .time_left] | tojson' '["queued",null]' "a queued job has no time left"
json .forecast null "nor a forecast that was judged"
call -X POST /v1/jobs/7/cancel
call -X POST /v1/jobs/6/cancel
ok "it is cancelled" wait_state 6 cancelled

call /v1/forecasts
json '[.jobs, (.scores | map([.of, .share]))] | tojson' \
    '[3,[["ttt_seconds",null],["time_left",0.25],["time_left",0.5],["time_left",0.75],["target",0.25],["target",0.5],["target",0.75]]]' "all estimates are scored"
json '.scores[] | select(.of == "time_left" and .share == 0.5) | .jobs == 3 and .median_error >= 0 and .inside >= 0 and .inside <= 1' true "over the jobs"
json '.scores[-1] | [.jobs, .median_error] | tojson' '[0,null]' "but those that nobody made"
like "$("$top_builddir/trainctl" --server "$url" forecasts)" '^time left +50 % +3 +[0-9]+ % +[+-][0-9]+ % +[0-9]+ %$' "trainctl forecasts has the table"
ok "the daemon stops in order" stop_daemon
done_testing
