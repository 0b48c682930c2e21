#!/usr/bin/env bash
# The daemon is killed at 20 random moments (make check-long: 300) while jobs are submitted, started, run and read, one of them writing a
# step a millisecond all the while: no job is lost, none is run twice, no event is lost or doubled. TRAIND_TEST_KILLS rounds, from the
# seed TRAIND_TEST_SEED.
# shellcheck source=tests/api/kill.sh.inc
. "$(dirname "$0")/../kill.sh.inc"
rounds=${TRAIND_TEST_KILLS:-20}
seed_kills "$rounds"
one='{"workers_per_node": 1, "threads_per_worker": 1}'

jq -n --argjson cluster "$one" '{name: "steps=12 step_ms=8 every=4", cluster: $cluster, batch_per_worker: 4, steps: 12,
    data: {train: "synthetic", train_images: 64}, model: {image_size: 32, classes: 10, width: 0.0625}}' >"$work/killed.json"

start_runs
steps=$((100 * rounds))
submit "steps=$steps step_ms=1" "$one"
submit_and_kill "$rounds" 250 "$work/killed.json"
wanted=$((rounds + 1))

is "$(cat "$work"/key-*.answer | jq -s 'map(.id) | unique | length')" "$rounds" "every client got a job of its own"
is "$(sql "select count(*), count(distinct idempotency_key) from job")" "$wanted|$rounds" "no job is lost, none is there twice"
is "$(sql "select count(*) from job where state = 'succeeded'")" "$wanted" "all have succeeded"
is "$(sql "select count(*), count(distinct job_id) from job_event where type = 'run_start'")" "$wanted|$wanted" "each was run once"
lines=$(cat "$state"/jobs/*/attempt-*/events.jsonl | wc -l)
is "$(sql "select count(*) from job_event where seq is not null")" "$lines" "as many events as lines"
is "$(sql "select count(*) from (select distinct job_id, attempt, seq from job_event where seq is not null)")" "$lines" "none is doubled"
is "$(sql "select count(*) from step_metric")" "$((12 * rounds + steps))" "every step is in the series"
is "$(sql "select count(*) from job j where state <> (select json_extract(body, '\$.state') from job_event
    where job_id = j.id and type = 'state' order by id desc limit 1)")" 0 "each state is what its last event says"
is "$(sql "pragma integrity_check")" ok "the database is whole"
is "$(processes '[0-9]*')" 0 "no process is left"
left=0
for folder in "$state"/jobs/*/attempt-*; do
    digest=$(printf %s "$folder" | xxh128sum | cut -c1-16)
    [ ! -e "/dev/shm/traind-$(id -u)-$digest" ] || left=$((left + 1))
done
is "$left" 0 "no memory that ranks shared is left"
ok "the daemon stops in order" stop_daemon
done_testing
