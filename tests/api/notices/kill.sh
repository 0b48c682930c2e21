#!/usr/bin/env bash
# The daemon is killed at random moments while jobs end and their notices are sent, some to a receiver that refuses every third: none is
# lost, each target gets them in order, and what comes twice has the same id. TRAIND_TEST_KILLS rounds (10), from the seed TRAIND_TEST_SEED.
# shellcheck source=tests/api/notices/notices.sh.inc
. "$(dirname "$0")/notices.sh.inc"
# shellcheck source=tests/api/kill.sh.inc
. "$(dirname "$0")/../kill.sh.inc"
rounds=${TRAIND_TEST_KILLS:-10}
seed_kills "$rounds"
receive good
receive bad
start_runs "notify_allow = 127.0.0.1" "notify_retry_seconds = 100000"
rules=$(jq -n --arg good "http://127.0.0.1:$good/nap" --arg bad "http://127.0.0.1:$bad" '[{to: $good, on: ["succeeded", "target_met"]},
    {to: ($bad + "/third"), on: ["succeeded"], format: "text"}]')
jq -n --argjson rules "$rules" --argjson cluster "$one" '{name: "steps=4 eval=1", cluster: $cluster, batch_per_worker: 4, steps: 4, notify: $rules, eval: {target_top1: 0.5},
    data: {train: "synthetic", eval: "synthetic", train_images: 64, eval_images: 8}, model: {image_size: 32, classes: 10, width: 0.0625}}' >"$work/noted.json"
submit_and_kill "$rounds" 400 "$work/noted.json"
is "$(sql "select count(*) from job where state = 'succeeded'")" "$rounds" "all jobs have succeeded"
for _ in 1 2 3; do
    eventually settled && break
done
is "$(sql "select count(*), sum(state = 'delivered'), count(distinct kind || job_id || target) from notice")" "$((3 * rounds))|$((3 * rounds))|$((3 * rounds))" \
    "each job has made its three notices, once, and all are delivered"
ids() { # NAME KIND: the ids that a receiver got
    sort -u <(got "$1" '.headers["Traind-Notice-Id"]')
}
is "$(ids good)" "$(sql "select uid from notice where target glob '*/nap' and format = 'json'" | sort)" "the receiver got every one of them"
is "$(ids bad)" "$(sql "select uid from notice where format = 'text'" | sort)" "and so did the one that refused some"
first_seen() { # the ids in the order in which they came first
    got "$1" '.headers["Traind-Notice-Id"]' | awk '!seen[$0]++'
}
is "$(first_seen good)" "$(sql "select uid from notice where format = 'json' order by id")" "in order"
is "$(first_seen bad)" "$(sql "select uid from notice where format = 'text' order by id")" "to each"
echo "# $(count good) requests for $((2 * rounds)) notices, and $(count bad) for $rounds"
ok "what came twice is the exception" test "$(count good)" -le $((4 * rounds))
is "$(sql "pragma integrity_check")" ok "the database is whole"
ok "the daemon stops in order" stop_daemon
done_testing
