#!/usr/bin/env bash
# What the dashboard's charts are drawn from, of a real training on two ranks: each rank's times, a window of the series,
# the events that are no steps, and what all jobs together trained.
. "$(dirname "$0")/../lib.sh"

printf 'worker = %s\nslots = 2\n' "$top_builddir/tests/bin/train-worker" >"$work/traind.conf"
start_daemon --config "$work/traind.conf"
ended() { [[ $(get "/v1/jobs/$1" | jq -r .state) =~ ^(succeeded|failed)$ ]]; }

call /v1/throughput
want 200 "the throughput of a daemon that never ran a job"
json '[.images_per_sec[]] | add' 0 "it is 0 all along"

call -d '{"model": {"arch": "resnet18", "width": 0.0625, "classes": 10, "image_size": 32}, "data": {"train": "synthetic", "train_images": 64},
    "cluster": {"workers_per_node": 2, "threads_per_worker": 1}, "batch_per_worker": 2, "steps": 40, "lr": {"warmup_epochs": 0},
    "checkpoint": {"every_epochs": 0, "every_steps": 20}}' /v1/jobs
want 201 "a job of two ranks"
eventually ended 1
call /v1/jobs/1
json .state succeeded "it trains to its end"

# Each rank's times
call '/v1/jobs/1/ranks?points=1000'
want 200 "the times of the ranks"
json '[.world, (.step | length), .step[0], .step[-1]]' '[2,40,1,40]' "every step of a short run, of both ranks"
is "$(jq -c .rank_busy_ms <<<"$body")" \
    "$(get "/v1/jobs/1/events" | jq -c '[.events[] | select(.type == "step") | .rank_busy_ms]')" "they are those of the events"
call '/v1/jobs/1/ranks?points=5'
json '[(.step | length), .step[0], .step == (.step | sort | unique)]' '[5,1,true]' "as many steps as asked for, spread, none twice"
for points in 0 1001 x; do
    call "/v1/jobs/1/ranks?points=$points"
    refused 400 usage 'points must be' "points=$points"
done

# A window of a series
call '/v1/jobs/1/metrics?names=loss&from=11&to=20'
json '[.step[0], .step[-1], .rows, .downsampled]' '[11,20,10,false]' "steps 11 to 20 alone"
call '/v1/jobs/1/metrics?names=loss&from=11&to=30&points=4'
json '[.step, .rows]' '[[13,18,23,28],20]' "down-sampled, from the first to the last"
call '/v1/jobs/1/metrics?names=loss&from=50&to=60'
json '.step | length' 0 "a window in which nothing is"

# Events by their type
call '/v1/jobs/1/events?types=checkpoint,run_start'
json '[.events[].type] | sort | group_by(.) | map("\(.[0]) \(length)") | join(", ")' 'checkpoint 2, run_start 1' "events of these types alone"
call '/v1/jobs/1/events?types=run'
refused 400 usage 'types must be some of state, resume, labels, .*, not .*run' "a part of a type's name is none"
call -H 'Accept: text/event-stream' '/v1/jobs/1/events?types=checkpoint'
refused 400 usage 'types apply to JSON pages' "types of a stream"

# All jobs together: 40 steps of 4 images, however they are cut into bins. One that has only begun is not told: hence short
# ones, which are older than the jobs' last step.
for points in 200 600 1000; do
    call "/v1/throughput?seconds=600&points=$points"
    want 200 "the throughput in $points bins"
    is "$(jq '. as $a | [range(.t | length) | $a.images_per_sec[.] * ($a.t[.] - $a.from - . * $a.bin_seconds)] | add | round' <<<"$body")" \
        160 "its bins hold every image that was trained, at $points points"
done
call '/v1/throughput?seconds=59'
refused 400 usage 'seconds must be' "less than a minute"

ok "the daemon stops in order" stop_daemon
done_testing
