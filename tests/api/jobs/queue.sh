#!/usr/bin/env bash
# The queue: priorities, a small job before a big one, words and estimates of what a job waits for.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
one='{"workers_per_node": 1, "threads_per_worker": 1}'
two='{"workers_per_node": 2, "threads_per_worker": 1}'
start_runs "priority_seconds = 100" "max_queued_per_user = 0"

estimate_is_there() { [ "$(job "$1" estimated_start)" != null ]; }
started_in_order() { # ID...
    is "$(sql "select group_concat(id, ' ') from (select id from job where id in ($(tr ' ' , <<<"$*")) order by started_at)")" "$*" "... in this order"
}

submit "steps=20000 step_ms=10 gate=20" "$two" '{"steps": 20000}'
running=$id
ok "a job runs" eventually has_events "$running" 19
submit "steps=1" "$two"
last=$id
like "$(job "$last" reason)" "^waiting for 2 of 2 slots \((job $running should finish in .*|running: job $running)\)$" "one waits"
ok "its start is estimated" eventually estimate_is_there "$last"
like "$(job "$last" reason)" "^waiting for 2 of 2 slots \(job $running should finish in about [0-9]+ min\)$" "... and the words say whom it waits for"
is "$(job "$last" 'estimated_start | . > now and . < now + 3600')" true "... at a time of the near future"
is "$(job "$running" estimated_start)" null "a running job has none"
# Its speed changes, and the queue is not looked at before some seconds have passed.
sql "update job set images_per_sec = images_per_sec / 10 where id = $running"
told_alike() { # the time that is left, and the time until the next one starts; a look at the queue may come in between
    for _ in 1 2 3; do
        [ "$(get /v1/jobs | jq "(.jobs[] | select(.id == $running) | .time_left.value) as \$left |
            .jobs[] | select(.id == $last) | (.estimated_start - now) / \$left | . > 0.8 and . < 1.25")" = false ] || return 0
    done
    return 1
}
ok "... and its own time is that which the queue tells" told_alike
submit "steps=1" "$two" '{"priority": -1}'
low=$id
submit "steps=1" "$two" '{"priority": 5}'
high=$id
submit "steps=1" "$two" '{"priority": 5}'
high_too=$id
waits_behind() { [ "$(job "$1" reason)" = "waiting behind job $2" ]; }
ok "a job of a higher priority is waited for" eventually waits_behind "$last" "$high"
sql "update job set queued_at = queued_at - 10000 where id = $low" # it waited long: 100 points
call -X POST "/v1/jobs/$running/cancel"
ok "all run" wait_state "$low" succeeded
ok "..." wait_state "$last" succeeded
ok "..." wait_state "$high_too" succeeded
started_in_order "$low" "$high" "$high_too" "$last"

# One slot is free, a job wants both: only what is sure to have ended by then may go before it.
submit "steps=40000 step_ms=10" "$one" '{"steps": 40000}'
long=$id
ok "a job runs on one slot" eventually has_events "$long" 5
submit "steps=1" "$two"
big=$id
submit "steps=1" "$one" '{"steps": 100000}'
unbounded=$id
submit "steps=1" '{"workers_per_node": 1, "threads_per_worker": 1, "time_limit": "2:00"}'
short=$id
ok "a job that ends in time by its limit starts before it" wait_state "$short" succeeded
is "$(job "$big" state) $(job "$unbounded" state)" "queued queued" "the big one waits, and so does one that may take long"
is "$(job "$unbounded" reason)" "waiting behind job $big" "... and says so"
out=$("$top_builddir/trainctl" --server "$url" list)
like "$out" "$big .* in [0-9a-z ]+ .*waiting for 2 of 2 slots \(job $long should finish" "trainctl list tells it"
like "$("$top_builddir/trainctl" --server "$url" show "$big")" "starts +20.*\(in about " "trainctl show too"
call -X POST "/v1/jobs/$long/cancel"
ok "all run" wait_state "$big" succeeded
ok "..." wait_state "$unbounded" succeeded
started_in_order "$short" "$big" "$unbounded"

# What people change about jobs that wait.
submit "steps=20000 step_ms=10" "$two" '{"steps": 20000}'
long=$id
ok "a job runs" eventually has_events "$long" 1
submit "steps=1" "$two"
first=$id
submit "steps=1" "$two"
second=$id
submit "steps=1" "$two"
third=$id
ctl() { out=$("$top_builddir/trainctl" --server "$url" "$@" 2>&1); }
ctl hold "$first" "$second"
is "$?:$out" "0:Job $first held. Release it with: trainctl release $first
Job $second held. Release it with: trainctl release $second" "trainctl hold"
is "$(job "$first" '| "\(.state) \(.reason) \(.held_at > 0)"')" "queued held until it is released true" "it waits, and says why"
is "$(job "$first" '| has("held_by")')" "false" "nobody was named"
call --unix-socket "$socket" -X POST "/v1/jobs/$third/hold"
is "$(job "$third" held_by)" "user:$(id -un)" "who holds it"
call -X POST "/v1/jobs/$third/release"
is "$(job "$third" '| has("held_by")')" "false" "nobody holds it any more"
ctl priority "$second" --to -3
is "$?:$out" "0:Job $second now has priority -3." "trainctl priority"
is "$(job "$second" '| "\(.priority) \(.spec.priority)"')" "-3 -3" "in its document too"
call -X POST "/v1/jobs/$first/hold"
refused 409 conflict "job $first is held already" "held twice"
call -X POST "/v1/jobs/$third/release"
refused 409 conflict "job $third is not held" "released without being held"
for change in hold release priority; do
    call -X POST -d '{"priority": 1}' "/v1/jobs/$long/$change"
    refused 409 conflict "job $long is in state running: only queued jobs can be" "$change of a job that runs"
done
for wrong in '{"priority": 1001}' '{"priority": "1"}' '{}' '{"priority": 1, "name": "x"}'; do
    call -d "$wrong" "/v1/jobs/$first/priority"
    refused 422 invalid 'whole number from -1000 to 1000' "the priority $wrong"
done
ctl priority "$first"
like "$?:$out" "^2:.*missing --to N" "no priority"
call -X POST "/v1/jobs/$long/cancel"
ok "the job behind those that are held runs" wait_state "$third" succeeded
kill_daemon
restart_runs
is "$(job "$first" state)$(job "$second" state)" "queuedqueued" "they are held under another daemon too"
ctl release "$first" "$second"
is "$?" 0 "trainctl release"
ok "they run" wait_state "$second" succeeded
ok "..." wait_state "$first" succeeded
started_in_order "$third" "$first" "$second"
submit "steps=20000 step_ms=10" "$two" '{"steps": 20000}'
long=$id
submit "steps=1" "$two"
ctl hold "$id"
call -X POST "/v1/jobs/$id/cancel"
json '"\(.state) \(.held_at)"' "cancelled null" "a held job is cancelled"
call -X POST "/v1/jobs/$long/cancel"

submit "steps=1" "$two" '{"priority": 1001}'
want 422 "a priority out of range is refused"
submit "steps=1" '{"time_limit": "1h"}'
want 422 "a time limit that is none is refused"
like "$body" 'time_limit.*01:30:00' "with words"

# Whoever resumes jobs gets no more of them into the queue than who submits.
failed=()
for _ in 1 2; do
    submit "steps=30 every=5 rank=1 at=12 signal=9" "$two"
    failed+=("$id")
    ok "a job fails with a checkpoint" wait_state "$id" failed
done
submit "steps=20000 step_ms=10" "$two" '{"steps": 20000}'
long=$id
ok "another one takes all slots" wait_state "$long" running
change max_queued_per_user 1
resume() { # ID: as the user of the socket
    call --unix-socket "$state/traind.sock" -X POST "/v1/jobs/$1/resume"
}
resume "${failed[0]}"
want 202 "one job is resumed"
resume "${failed[1]}"
want 429 "another one is too many"
like "$body" "1 queued job, and max_queued_per_user of traind.conf is 1" "as it says"
is "$(job "${failed[1]}" state)" failed "and stays as it was"
call -X POST "/v1/jobs/$long/cancel"
ok "the daemon stops in order" stop_daemon
done_testing
