#!/usr/bin/env bash
# Live streams of events: every event once and in order, whoever else listens, stays silent, or goes away.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
start_runs "heartbeat_seconds = 1" "streams_per_client = 60"

stream() { # SECONDS [CURL ARGUMENT...] PATH: what comes in that time
    timeout "$1" curl -sSN -H 'Accept: text/event-stream' "${@:2:$#-2}" "$url${!#}" 2>/dev/null
}
stream_until() { # LINE [CURL ARGUMENT...] PATH: what comes up to that line and the empty one behind it, of an event
    stream 600 "${@:2}" | sed -u "/$1/,/^\$/{/^\$/q}"
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
last=$(stored "$one" | tail -n 1)
is_read() { # FILE: it has the job's last event, and a heartbeat behind it
    sed -n "/^id: $last\$/,\$p" "$1" | grep -q '^event: heartbeat'
}
ok "it ends with the job's last event" eventually is_read "$work/one"
kill "$reader"
wait "$reader" 2>/dev/null
is "$(ids <"$work/one")" "$(stored "$one")" "a stream opened before the job ran has all its events, once, in order"
is "$(sed -n 's/^data: //p' "$work/one" | jq -c 'select(.type == "step") | [.job, .step, .loss]' | sed -n '1p;40p')" \
    "[$one,1,2]"$'\n'"[$one,40,0.05]" "the steps are among them, with their numbers"
is "$(grep -c '^event: step$' "$work/one")" 40 "named by their type"
is "$(sed -n 's/^data: //p' "$work/one" | jq -s -c 'map(select(.id))')" \
    "$(get "/v1/jobs/$one/events?limit=10000" | jq -c .events)" "they say the same as JSON"
like "$(cat "$work/one")" '^event: heartbeat$' "where nothing happens it says that it is alive"
like "$(head -n 1 "$work/one")" '^retry: 1000$' "it tells how soon to come again"

# ------------------------------------------------------------------ going on

middle=$(stored "$one" | sed -n 20p)
is "$(stream_until "^id: $last\$" -H "Last-Event-ID: $middle" "/v1/jobs/$one/events" | ids)" "$(stored "$one" "$middle")" "Last-Event-ID goes on behind it"
is "$(stream_until "^id: $last\$" "/v1/jobs/$one/events?after=$middle" | ids)" "$(stored "$one" "$middle")" "so does after"
is "$(stream_until "^id: $last\$" -H "Last-Event-ID: $middle" "/v1/jobs/$one/events?after=1" | ids)" "$(stored "$one" "$middle")" "of both the header counts"
is "$(stream_until '^event: heartbeat' "/v1/events" | ids)" "" "the stream of all jobs begins with what is to come"
is "$(stream_until "^id: $last\$" "/v1/events?after=0" | ids)" "$(sql 'select id from job_event order by id')" "or where it is told to"
is "$(stream_until "^id: $last\$" --unix-socket "$socket" "/v1/jobs/$one/events?after=$middle" | ids)" "$(stored "$one" "$middle")" "over the unix socket too"

# ------------------------------------------------------------------ requests that are wrong

call -H 'Accept: text/event-stream' /v1/jobs/99/events
refused 404 not-found 'no job 99' "a stream of no job"
call -H 'Accept: text/event-stream' -H 'Last-Event-ID: x' "/v1/jobs/$one/events"
refused 400 usage 'Last-Event-ID must be .* whole number' "a wrong Last-Event-ID"
call -H 'Accept: text/event-stream' "/v1/jobs/$one/events?limit=4"
refused 400 usage 'limit and types apply to JSON pages' "a limit"
call -H 'Accept: text/event-stream' "/v1/events?after=-4"
refused 400 usage 'after must be' "a wrong place"

# ------------------------------------------------------------------ many, among them deaf ones and ones that go

port=${url##*:}
before=$(sql 'select max(id) from job_event')
"$top_builddir/tests/api/stream_client" "$port" "/v1/events?after=$before" 40 5 3600 >"$work/many" &
many=$!
for _ in 1 2 3 4 5; do
    stream 0.7 "/v1/events?after=0" >/dev/null & # goes away in the middle
done
submit "steps=900 step_ms=1" '{"workers_per_node": 1, "threads_per_worker": 1}'
first=$id
submit "steps=900 step_ms=1" '{"workers_per_node": 1, "threads_per_worker": 1}'
wait_state "$first" succeeded
wait_state "$id" succeeded
kill -USR1 "$many"
wait "$many"
expected=$(sql "select count(*), sum(id) from job_event where id > $before" | tr '|' ' ')
is "$(cut -d' ' -f1-3 "$work/many" | sort | uniq -c | sed 's/^ *//')" "40 $expected 0" "40 streams have every event of two jobs once and in order"
is "$(grep -c open "$work/many")" 40 "none was cut off"

# One more is held at each try: those of before may still count when the first sixty come.
full=()
hold() { # STREAMS
    "$top_builddir/tests/api/stream_client" "$port" "/v1/events" 0 "$1" 600 &
    full+=($!)
}
hold 60
is_refused() {
    call --max-time 2 -H "Accept: text/event-stream" /v1/events
    [ "$status" = 429 ] && return
    hold 1
    return 1
}
eventually is_refused
refused 429 too-many 'streams_per_client' "more streams than a client may have"
like "$headers" '^Retry-After: 10' "and when to come again"
kill "${full[@]}"
wait "${full[@]}" 2>/dev/null
is_let_in() {
    stream_until '^id: ' /v1/events | grep -q '^retry'
}
ok "those that went away count no more" eventually is_let_in

# ------------------------------------------------------------------ streams that are closed

# Their ends are noticed long before a heartbeat would be written into them.
stop_daemon
sed -i 's/^heartbeat_seconds.*/heartbeat_seconds = 15/' "$work/traind.conf"
restart_runs
cat >"$work/close.py" <<'E2'
import socket, sys, time
def open_stream(port):
    s = socket.create_connection(("127.0.0.1", port), timeout=30)
    s.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
    return s, s.recv(12).split()[1].decode()
port = int(sys.argv[1])
for round in range(3):
    streams = [open_stream(port) for _ in range(60)]
    print(*sorted({status for _, status in streams}))
    for s, _ in streams:
        s.close()
began = time.monotonic()
print(open_stream(port)[1], time.monotonic() - began < 15)
E2
is "$(/usr/bin/python3 "$work/close.py" "${url##*:}")" $'200\n200\n200\n200 True' "as many again as a client may have, at once after closing the others"
streams_are_gone() {
    [ "$(get /metrics | sed -n 's/^traind_event_streams //p')" = 0 ]
}
ok "none is left" timeout 300 bash -c "$(declare -f get streams_are_gone); url=$url; until streams_are_gone; do sleep 0.1; done"

# ------------------------------------------------------------------ stopping

stream 600 "/v1/jobs/$one/events" >"$work/last" &
ok "a stream that has been read" eventually is_read "$work/last"
ok "the daemon stops at once while streams are open" timeout 300 bash -c "kill -TERM $daemon; while kill -0 $daemon 2>/dev/null; do sleep 0.05; done"
wait "$daemon"
is "$?" 0 "in order"
daemon=
is "$(ids <"$work/last")" "$(stored "$one")" "they had got what was there"
done_testing
