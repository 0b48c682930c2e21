#!/usr/bin/env bash
# The daemon is killed at random moments (TRAIND_TEST_KILLS: 20, in the nightly run 300; seed: TRAIND_TEST_SEED) while jobs are submitted,
# run and read, one of them writing a step a millisecond, and while notices are sent, some to a receiver that refuses every third. No job
# is lost or run twice, no event or notice is lost, no event doubled; each target gets its notices in order, and a repeated one has the
# same id.
# shellcheck source=tests/api/notices/notices.sh.inc
. "$(dirname "$0")/../notices/notices.sh.inc"
# shellcheck source=tests/api/kill.sh.inc
. "$(dirname "$0")/../kill.sh.inc"
rounds=${TRAIND_TEST_KILLS:-20}
seed_kills "$rounds"
receive good
receive bad
start_runs "notify_allow = 127.0.0.1" "notify_retry_seconds = 100000"
rules=$(jq -n --arg good "http://127.0.0.1:$good/nap" --arg bad "http://127.0.0.1:$bad" '[{to: $good, on: ["succeeded", "target_met"]},
    {to: ($bad + "/third"), on: ["succeeded"], format: "text"}]')
jq -n --argjson rules "$rules" --argjson cluster "$one" '{name: "steps=12 step_ms=8 every=4 eval=1", cluster: $cluster, batch_per_worker: 4,
    steps: 12, notify: $rules, eval: {target_top1: 0.5}, model: {image_size: 32, classes: 10, width: 0.0625},
    data: {train: "synthetic", eval: "synthetic", train_images: 64, eval_images: 8}}' >"$work/killed.json"
steps=$((100 * rounds))
submit "steps=$steps step_ms=1" "$one"
submit_and_kill "$rounds" 300 "$work/killed.json"
wanted=$((rounds + 1))

# ------------------------------------------------------------------ jobs and events

is "$(cat "$work"/key-*.answer | jq -s 'map(.id) | unique | length')" "$rounds" "every client got a job of its own"
is "$(sql "select count(*), count(distinct idempotency_key) from job")" "$wanted|$rounds" "no job is lost, none is there twice"
is "$(sql "select count(*) from job where state = 'succeeded'")" "$wanted" "all have succeeded"
is "$(sql "select count(*), count(distinct job_id) from job_event where type = 'run_start'")" "$wanted|$wanted" "each was run once"
lines=$(cat "$state"/jobs/*/attempt-*/events.jsonl | wc -l)
is "$(sql "select count(*) from job_event where seq is not null")" "$lines" "there are as many events as lines"
is "$(sql "select count(*) from (select distinct job_id, attempt, seq from job_event where seq is not null)")" "$lines" "no event is doubled"
is "$(sql "select count(*) from step_metric")" "$((12 * rounds + steps))" "every step is in the series"
is "$(sql "select count(*) from job j where state <> (select json_extract(body, '\$.state') from job_event
    where job_id = j.id and type = 'state' order by id desc limit 1)")" 0 "each state is that of the job's last event"

# ------------------------------------------------------------------ notices

for _ in 1 2 3; do
    eventually settled && break
done
is "$(sql "select count(*), sum(state = 'delivered'), count(distinct kind || job_id || target) from notice")" \
    "$((3 * rounds))|$((3 * rounds))|$((3 * rounds))" "each job has made its three notices, once, and all are delivered"
# first_seen NAME: the ids that a receiver got, in the order in which they came first
first_seen() {
    got "$1" '.headers["Traind-Notice-Id"]' | awk '!seen[$0]++'
}
is "$(first_seen good)" "$(sql "select uid from notice where format = 'json' order by id")" "the receiver got every one of them, in order"
is "$(first_seen bad)" "$(sql "select uid from notice where format = 'text' order by id")" "and so did the one that refused some"
echo "# $(count good) requests for $((2 * rounds)) notices, and $(count bad) for $rounds"
ok "few notices came twice" test "$(count good)" -le $((4 * rounds))

# ------------------------------------------------------------------ what is left

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
