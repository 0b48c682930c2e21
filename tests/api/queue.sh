#!/usr/bin/env bash
# The queue: priorities, a small job before a big one, words and estimates of what a job waits for.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/runs.sh.inc"
one='{"workers_per_node": 1, "threads_per_worker": 1}'
two='{"workers_per_node": 2, "threads_per_worker": 1}'
start_runs "priority_seconds = 100"

estimate_is_there() { [ "$(job "$1" estimated_start)" != null ]; }
started_in_order() { # ID...
    is "$(sql "select group_concat(id, ' ') from (select id from job where id in ($(tr ' ' , <<<"$*")) order by started_at)")" "$*" "... in this order"
}

submit "steps=2000 step_ms=10" "$two" '{"steps": 2000}'
running=$id
ok "a job runs" eventually has_events "$running" 5
submit "steps=1" "$two"
last=$id
like "$(job "$last" reason)" "^waits for 2 of 2 slots; (job $running ends in .*|running: job $running)$" "one waits"
ok "its start is estimated" eventually estimate_is_there "$last"
like "$(job "$last" reason)" "^waits for 2 of 2 slots; job $running ends in about [0-9]+ min$" "... and the words say whom it waits for"
is "$(job "$last" 'estimated_start | . > now and . < now + 3600')" true "... at a time of the near future"
is "$(job "$running" estimated_start)" null "a running job has none"
submit "steps=1" "$two" '{"priority": -1}'
low=$id
submit "steps=1" "$two" '{"priority": 5}'
high=$id
submit "steps=1" "$two" '{"priority": 5}'
high_too=$id
waits_behind() { [ "$(job "$1" reason)" = "waits behind job $2" ]; }
ok "a job of a higher priority is waited for" eventually waits_behind "$last" "$high"
sql "update job set queued_at = queued_at - 10000 where id = $low" # it waited long: 100 points
call -X POST "/v1/jobs/$running/cancel"
ok "all run" wait_state "$low" succeeded
ok "..." wait_state "$last" succeeded
ok "..." wait_state "$high_too" succeeded
started_in_order "$low" "$high" "$high_too" "$last"

# One slot is free, a job wants both: only what is sure to have ended by then may go before it.
submit "steps=3000 step_ms=10" "$one" '{"steps": 3000}'
long=$id
ok "a job runs on one slot" eventually has_events "$long" 5
submit "steps=1" "$two"
big=$id
submit "steps=1" "$one" '{"steps": 100000}'
unbounded=$id
submit "steps=1" '{"workers_per_node": 1, "threads_per_worker": 1, "time_limit": "0:05"}'
short=$id
ok "a job that ends in time by its limit starts before it" wait_state "$short" succeeded
is "$(job "$big" state) $(job "$unbounded" state)" "queued queued" "the big one waits, and so does one that may take long"
is "$(job "$unbounded" reason)" "waits behind job $big" "... and says so"
out=$("$top_builddir/trainctl" --server "$url" list)
like "$out" "$big .* in [0-9a-z ]+ .*waits for 2 of 2 slots; job $long ends" "trainctl list tells it"
like "$("$top_builddir/trainctl" --server "$url" show "$big")" "starts +20.*\(in about " "trainctl show too"
call -X POST "/v1/jobs/$long/cancel"
ok "all run" wait_state "$big" succeeded
ok "..." wait_state "$unbounded" succeeded
started_in_order "$short" "$big" "$unbounded"

submit "steps=1" "$two" '{"priority": 1001}'
want 422 "a priority out of range is refused"
submit "steps=1" '{"time_limit": "1h"}'
want 422 "a time limit that is none is refused"
like "$body" 'time_limit.*01:30:00' "with words"
ok "the daemon stops in order" stop_daemon
done_testing
