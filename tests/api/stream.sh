#!/usr/bin/env bash
# Live streams of events: every event once and in order, whoever else listens, stays silent, or goes away.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/runs.sh.inc"
start_runs "heartbeat_seconds = 1" "streams_per_client = 60"

stream() { # SECONDS [CURL ARGUMENT...] PATH: what comes in that time
    timeout "$1" curl -sSN -H 'Accept: text/event-stream' "${@:2:$#-2}" "$url${!#}" 2>/dev/null
}
ids() {
    sed -n 's/^id: //p' | tail -n +2 # behind the one of the greeting
}
stored() { # ID [AFTER]
    sql "select id from job_event where job_id = $1 and id > ${2:-0} order by id"
}

# ------------------------------------------------------------------ one stream

submit "steps=40 step_ms=20 eval=1" '{"workers_per_node": 1, "threads_per_worker": 1}'
one=$id
curl -sSN -H "Accept: text/event-stream" "$url/v1/jobs/$one/events" >"$work/one" &
reader=$!
wait_state "$one" succeeded
sleep 1.5
kill "$reader"
wait "$reader" 2>/dev/null
is "$(ids <"$work/one")" "$(stored "$one")" "a stream opened before the job ran has all its events, once, in order"
is "$(sed -n 's/^data: //p' "$work/one" | jq -c 'select(.type == "step") | [.job, .step, .loss]' | sed -n '1p;40p')" \
    "[$one,1,2]"$'\n'"[$one,40,0.05]" "the steps are among them, with their numbers"
is "$(grep -c '^event: step$' "$work/one")" 40 "named by their type"
is "$(sed -n 's/^data: //p' "$work/one" | jq -s -c 'map(select(.id))')" \
    "$(curl -sS "$url/v1/jobs/$one/events?limit=10000" | jq -c .events)" "they say the same as JSON"
like "$(cat "$work/one")" '^event: heartbeat$' "where nothing happens it says that it is alive"
like "$(head -n 1 "$work/one")" '^retry: 1000$' "it tells how soon to come again"

# ------------------------------------------------------------------ going on

middle=$(stored "$one" | sed -n 20p)
is "$(stream 0.4 -H "Last-Event-ID: $middle" "/v1/jobs/$one/events" | ids)" "$(stored "$one" "$middle")" "Last-Event-ID goes on behind it"
is "$(stream 0.4 "/v1/jobs/$one/events?after=$middle" | ids)" "$(stored "$one" "$middle")" "so does after"
is "$(stream 0.4 -H "Last-Event-ID: $middle" "/v1/jobs/$one/events?after=1" | ids)" "$(stored "$one" "$middle")" "of both the header counts"
is "$(stream 0.4 "/v1/events" | ids)" "" "the stream of all jobs begins with what is to come"
is "$(stream 0.4 "/v1/events?after=0" | ids)" "$(sql 'select id from job_event order by id')" "or where it is told to"
is "$(stream 0.4 --unix-socket "$socket" "/v1/jobs/$one/events?after=$middle" | ids)" "$(stored "$one" "$middle")" "over the unix socket too"

# ------------------------------------------------------------------ requests that are wrong

call -H 'Accept: text/event-stream' /v1/jobs/99/events
refused 404 not-found 'no job 99' "a stream of no job"
call -H 'Accept: text/event-stream' -H 'Last-Event-ID: x' "/v1/jobs/$one/events"
refused 400 usage 'Last-Event-ID must be .* whole number' "a wrong Last-Event-ID"
call -H 'Accept: text/event-stream' "/v1/jobs/$one/events?limit=4"
refused 400 usage 'limit and types are for pages' "a limit"
call -H 'Accept: text/event-stream' "/v1/events?after=-4"
refused 400 usage 'after must be' "a wrong place"

# ------------------------------------------------------------------ many, among them deaf ones and ones that go

port=${url##*:}
before=$(sql 'select max(id) from job_event')
"$top_builddir/tests/api/stream_client" "$port" "/v1/events?after=$before" 40 5 2.5 >"$work/many" &
many=$!
for _ in 1 2 3 4 5; do
    stream 0.7 "/v1/events?after=0" >/dev/null & # goes away in the middle
done
submit "steps=900 step_ms=1" '{"workers_per_node": 1, "threads_per_worker": 1}'
submit "steps=900 step_ms=1" '{"workers_per_node": 1, "threads_per_worker": 1}'
wait_state "$id" succeeded
wait "$many"
expected=$(sql "select count(*), sum(id) from job_event where id > $before" | tr '|' ' ')
is "$(cut -d' ' -f1-3 "$work/many" | sort | uniq -c | sed 's/^ *//')" "40 $expected 0" "40 streams have every event of two jobs once and in order"
is "$(grep -c open "$work/many")" 40 "none was cut off"

"$top_builddir/tests/api/stream_client" "$port" "/v1/events" 0 60 4 &
is_refused() {
    call --max-time 0.5 -H "Accept: text/event-stream" /v1/events
    [ "$status" = 429 ]
}
eventually is_refused
refused 429 too-many 'streams_per_client' "more streams than a client may have"
like "$headers" '^Retry-After: 10' "and when to come again"
wait $!
is_let_in() {
    stream 0.3 /v1/events | grep -q '^retry'
}
ok "those that went away count no more" eventually is_let_in

# ------------------------------------------------------------------ stopping

stream 20 "/v1/jobs/$one/events" >"$work/last" &
sleep 0.5
ok "the daemon stops at once while streams are open" timeout 5 bash -c "kill -TERM $daemon; while kill -0 $daemon 2>/dev/null; do sleep 0.05; done"
wait "$daemon"
is "$?" 0 "in order"
daemon=
is "$(ids <"$work/last")" "$(stored "$one")" "they had got what was there"
done_testing
