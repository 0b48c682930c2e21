#!/usr/bin/env bash
# Limits of one user, and use that counts in the order of the queue.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
start_runs "max_slots_per_user = 1"
one='{"workers_per_node": 1, "threads_per_worker": 1}'
both='{"workers_per_node": 2, "threads_per_worker": 1}'
queued() { [ "$(job "$1" reason)" != "just submitted" ]; }
by() { # TOKEN: submit as that token from now on; "": as the socket's user
    auth=(-H "Authorization: Bearer $1")
}
secret() { "$top_builddir/trainctl" --server "unix:$state/traind.sock" --json token create --role submit "$1" | jq -r .token; }
send() { # NAME [CLUSTER]: as the token
    jq -n --arg name "$1" --argjson cluster "${2:-$one}" '{name: $name, cluster: $cluster, data: {train: "synthetic", train_images: 64},
        batch_per_worker: 4, steps: 4, restart: {max: 0}, model: {image_size: 32, classes: 10, width: 0.0625}}' >"$work/job.json"
    call "${auth[@]}" -H 'Content-Type: application/json' --data-binary "@$work/job.json" /v1/jobs
    id=$(jq -r '.id // 0' <<<"$body")
}
stop() { # ID TOKEN
    curl -sS -o /dev/null -X POST -H "Authorization: Bearer $2" "$url/v1/jobs/$1/cancel"
}
eve=$(secret eve)
bob=$(secret bob)
by "$eve"
send "steps=100000 step_ms=20"
first=$id
ok "eve's first job runs" wait_state "$first" running
send "steps=100000 step_ms=20"
second=$id
ok "her second one is looked at" eventually queued "$second"
is "$(job "$second" reason)" "waiting for 1 slots of token:eve, who uses 1 of 1 (max_slots_per_user)" "and waits for her limit"
is "$(get "/v1/jobs/$second" | jq -c '[.queue_position, .queue_length]')" '[1,1]' "first in the queue"
trainctl="$top_builddir/trainctl --server $url"
like "$($trainctl show "$second")" "in the queue +1 of 1" "as trainctl shows it"
by "$bob"
send "steps=100000 step_ms=20"
third=$id
ok "bob's job overtakes it" wait_state "$third" running
send "steps=4" "$both"
want 422 "a job beyond the limit"
like "$body" "takes 2 slots, and one user may take 1 at the same time" "is refused, with the numbers"
usage() { get "/v1/usage" | jq -c ".users[] | select(.user == \"$1\") | $2"; }
is "$(usage token:eve '[.running, .slots, .queued]')" "[1,1,1]" "usage tells of eve"
is "$(usage token:bob '[.running, .slots, .queued]')" "[1,1,0]" "and of bob"
like "$($trainctl usage)" "token:eve +[0-9]+ % .* 1 +1 +1" "trainctl usage"
metrics=$(get "/metrics")
is "$(grep -E '^traind_user_(jobs_running|slots_used|jobs_queued)\{user="token:eve"\}' <<<"$metrics" | cut -d' ' -f2 | tr '\n' ' ')" "1 1 1 " "Prometheus tells of eve"
is "$(grep -cE '^traind_user_(share|slot_seconds)\{user="token:bob"\} [0-9.e+-]+$' <<<"$metrics")" 2 "and of what bob used"
! command -v promtool >/dev/null || is "$(promtool check metrics <<<"$metrics" 2>&1)" "" "promtool has nothing to say"
like "$($trainctl usage)" "max_slots_per_user: 1" "with the limits"
stop "$first" "$eve"
ok "when eve's first job ends, her second starts" wait_state "$second" running

# Keys of one user say nothing to another.
auth_of() { auth=(-H "Authorization: Bearer $1" -H 'Idempotency-Key: nightly'); }
for user in "$eve" "$bob"; do
    auth_of "$user"
    send "steps=4 later"
    want 201 "a job with a key that another user has too"
    keyed+=("$id")
    send "steps=4 later"
    want 200 "the key again, from the same user"
    is "$id" "${keyed[-1]}" "gives the job of that user"
    call "${auth[@]}" -d "$(jq -n '{metric: "loss", parameters: {"/steps": [4]}, base: {data: {train: "synthetic"}}}')" /v1/sweeps
    want 201 "and a sweep with it"
    sweeps+=("$(jq .id <<<"$body")")
done
ok "each has a job and a sweep of their own" test "${keyed[0]}" != "${keyed[1]}" -a "${sweeps[0]}" != "${sweeps[1]}"
for n in 0 1; do
    who=$eve
    [ $n = 0 ] || who=$bob
    curl -sS -o /dev/null -X POST -H "Authorization: Bearer $who" "$url/v1/sweeps/${sweeps[n]}/cancel"
    stop "${keyed[n]}" "$who"
done

# A limit of what may wait.
sed -i 's/^max_slots_per_user.*/max_queued_per_user = 1/' "$work/traind.conf"
kill -HUP "$daemon"
limited() { [ "$(get "/v1/usage" | jq .max_queued_per_user)" = 1 ]; }
ok "the settings are read again" eventually limited
by "$bob"
send "steps=4" "$both"
want 201 "a job may wait"
fourth=$id
send "steps=4" "$both"
want 429 "another one may not"
like "$body" "token:bob has 1 queued job, and max_queued_per_user of traind.conf is 1: wait until one has started, or cancel one" "as it says"
stop "$fourth" "$bob"

# Use: bob has used more than eve, so her job comes first, though it came later.
sql "insert into usage (user, bin, slot_seconds) values ('token:bob', cast(strftime('%s') as integer) / 21600, 9000000) on conflict do update set slot_seconds = 9000000"
sed -i 's/^max_queued_per_user.*/fair_share_weight = 10/' "$work/traind.conf"
kill -HUP "$daemon"
weighed() { [ "$(get "/v1/usage" | jq '.fair_share_weight == 10 and .max_queued_per_user == 0')" = true ]; }
ok "use counts from now on" eventually weighed
send "steps=4 step_ms=5" "$both"
late=$id
by "$eve"
send "steps=4 step_ms=5" "$both"
early=$id
placed() { [ "$(get "/v1/jobs/$1" | jq .queue_position)" = "$2" ]; }
ok "eve's job is placed before bob's" eventually placed "$early" 1
ok "whose comes second" eventually placed "$late" 2
stop "$second" "$eve"
stop "$third" "$bob"
ok "hers ends" wait_state "$early" succeeded
ok "and then his" wait_state "$late" succeeded
ok "in this order" jq -e -n --argjson a "$(job "$early" started_at)" --argjson b "$(job "$late" started_at)" '$a < $b'
ok "use is recorded when an attempt ends" [ "$(sql "select count(*) from usage where user = 'token:eve' and slot_seconds > 0")" -ge 1 ]
before=$(usage token:eve .slot_hours)
kill_daemon
restart_runs
ok "and survives the daemon" jq -e -n --argjson a "$before" --argjson b "$(usage token:eve .slot_hours)" '$b > 0.9 * $a and $b < 1.1 * $a + 0.01'

# A sweep's jobs are its owner's.
send "steps=4 step_ms=5"
swept=$(jq '{base: . | del(.seed), parameters: {"/seed": [1]}, metric: "loss"}' "$work/job.json")
call "${auth[@]}" -H 'Content-Type: application/json' --data-binary "$swept" /v1/sweeps
want 201 "eve's sweep is taken"
sweep=$(jq .id <<<"$body")
sweep_is_over() { [ "$(get "/v1/sweeps/$sweep" | jq -r .state)" != running ]; }
ok "it ends" eventually sweep_is_over
is "$(sql "select count(*) from job where submitted_by glob 'sweep *'")" 1 "its job is the sweep's"
is "$(sql "select count(*) from usage where user = ''")" 0 "and the use is not nobody's"
ok "the daemon stops in order" stop_daemon
done_testing
