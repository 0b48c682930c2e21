#!/usr/bin/env bash
# Starting and stopping: what the daemon refuses to start with, and what a killed one leaves behind.
. "$(dirname "$0")/../lib.sh"

# Runs traind, which must refuse: STATUS, words it says, NAME, ARGUMENT...
refuses() {
    local status=$1 words=$2 name=$3 result=0
    shift 3
    timeout 60 "$traind" "$@" >"$work/out" 2>&1 || result=$?
    is "$result" "$status" "$name: its exit code"
    like "$(cat "$work/out")" "$words" "$name: its words"
}
other=(--state "$work/other" --listen 127.0.0.1:0)

# ------------------------------------------------------------------ command line and settings

refuses 2 'unexpected argument "now"' "an argument" "${other[@]}" now
refuses 2 'HOST:PORT' "an address without a port" --state "$work/other" --listen localhost
refuses 2 'HOST:PORT' "port 65536" --state "$work/other" --listen 127.0.0.1:65536
refuses 2 'loopback' "an address that others can reach" --state "$work/other" --listen 0.0.0.0:0
refuses 3 'cannot read the configuration .*/none.conf' "a settings file that is missing" "${other[@]}" --config "$work/none.conf"
settings() {
    printf '%s\n' "$@" >"$work/bad.conf"
}
settings '# a comment' 'listn = 127.0.0.1:0'
refuses 2 'line 2 of .*unknown key "listn"; did you mean "listen"' "a misspelt key" "${other[@]}" --config "$work/bad.conf"
settings 'slots = many'
refuses 2 'line 1 of .*slots must be a whole number from 0 to 4096' "a key with a wrong value" "${other[@]}" --config "$work/bad.conf"
settings 'slots = 5000'
refuses 2 'from 0 to 4096' "a key out of range" "${other[@]}" --config "$work/bad.conf"
settings 'slots = 1' 'slots = 2'
refuses 2 'duplicate key "slots"' "a key twice" "${other[@]}" --config "$work/bad.conf"
settings '[daemon]' 'slots = 1'
refuses 2 'sections are not used' "a section" "${other[@]}" --config "$work/bad.conf"
settings 'slots'
refuses 2 'not "key = value"' "a line without a value" "${other[@]}" --config "$work/bad.conf"
settings 'log_level = loud'
refuses 2 'error, warning, info or debug' "a wrong log level" "${other[@]}" --config "$work/bad.conf"
settings 'listen = nonsense'
refuses 2 'loopback' "the command line wins over the file" --state "$work/other" --listen 0.0.0.0:0 --config "$work/bad.conf"
touch "$work/file"
refuses 2 'not a folder' "a state folder that is a file" --state "$work/file" --listen 127.0.0.1:0
long=$work/$(printf 'a%.0s' $(seq 120)).sock
refuses 2 'longer than the 107 bytes' "a socket path that is too long" "${other[@]}" --socket "$long"
refuses 1 'is not a socket' "a socket path that is a file" "${other[@]}" --socket "$work/file"

# ------------------------------------------------------------------ one daemon a folder, one program a port

start_daemon
ok "the log says where it listens" eventually grep -q "listening on $url and on $socket" "$work/daemon.log"
is "$(cat "$state/lock")" "$daemon" "the lock holds its pid"
refuses 1 "another traind \(pid $daemon\) uses $state" "a second daemon on the folder" --state "$state" --listen 127.0.0.1:0
refuses 1 "${url#http://} is in use by another traind.*--listen" "a port in use" --state "$work/other" --listen "${url#http://}"
refuses 1 "another daemon listens on $socket" "a socket in use" "${other[@]}" --socket "$socket"
call /healthz
want 200 "the first daemon was not disturbed"

# ------------------------------------------------------------------ stopping

ok "SIGTERM ends it in order" stop_daemon
ok "its socket is gone" test ! -e "$socket"
ok "its address file is gone" test ! -e "$state/listen"
ok "the write-ahead log was folded into the database" test ! -s "$state/traind.db-wal"
start_daemon
kill -INT "$daemon"
wait "$daemon"
is "$?" 0 "SIGINT ends it in order"
daemon=
# As an impatient user does, up to the last moment, when what a signal stops is freed already.
for signal in TERM INT HUP; do
    start_daemon
    kill -TERM "$daemon"
    while kill "-$signal" "$daemon"; do :; done 2>/dev/null
    wait "$daemon"
    is "$?" 0 "SIG$signal again and again while it stops"
    daemon=
done
# Nothing that it opens takes the place of a standard stream.
rm -f "$state/listen"
"$traind" --state "$state" --listen 127.0.0.1:0 <&- >&- 2>&- &
daemon=$!
ok "it starts without standard streams" eventually answers
is "$(readlink "/proc/$daemon/fd/0" "/proc/$daemon/fd/1" "/proc/$daemon/fd/2" | sort -u)" /dev/null "and opens others"
ok "and ends in order" stop_daemon

# ------------------------------------------------------------------ killed

write_script "$work/mpirun" <<'END'
#!/bin/sh
exec sleep 3000
END
settings "mpirun = $work/mpirun" "worker = $work/mpirun" 'slots = 2'
start_daemon --config "$work/bad.conf"
for n in 1 2 3 4 5; do
    call -d "{\"name\": \"job $n\", \"data\": {\"train\": \"synthetic\"}, \"steps\": 4}" /v1/jobs
    want 201 "job $n submitted"
done
kill_daemon
ok "a killed daemon leaves its socket" test -S "$socket"
start_daemon --config "$work/bad.conf"
call /v1/jobs
json '[.jobs[].name] | join(",")' 'job 5,job 4,job 3,job 2,job 1' "a restarted one has all jobs"
call -d '{"name": "job 6", "data": {"train": "synthetic"}, "steps": 4}' /v1/jobs
json .id 6 "and goes on counting"
# Killed at any moment of a stream of submissions: what was answered with 201 is there.
submissions() {
    while answer=$(curl -sf -d '{"data": {"train": "synthetic"}, "steps": 4}' "$url/v1/jobs"); do
        jq .id <<<"$answer"
    done >>"$work/promised" 2>/dev/null
}
touch "$work/promised"
promised() { [ "$(wc -l <"$work/promised")" -gt "$1" ]; }
for pause in 0.05 0.13 0.21 0.34; do
    before=$(wc -l <"$work/promised")
    submissions &
    client=$!
    eventually promised "$before"
    sleep "$pause"
    kill_daemon
    wait "$client"
    start_daemon --config "$work/bad.conf"
done
sort -n "$work/promised" >"$work/promised.sorted"
ok "jobs were promised" test -s "$work/promised.sorted"
is "$(uniq -d "$work/promised.sorted")" "" "no id was given twice"
sqlite3 "$state/traind.db" 'select id from job' | sort >"$work/kept"
is "$(sort "$work/promised" | comm -23 - "$work/kept")" "" "none of them was lost by four kills"
for id in $(sort -rn "$work/kept"); do
    curl -s -o /dev/null -X POST "$url/v1/jobs/$id/cancel"
done
ok "all can be cancelled" eventually no_job_left
is "$(sqlite3 "$state/traind.db" 'select count(*) from job where state <> (select json_extract(body, "$.state")
    from job_event where job_id = job.id and type = "state" order by job_event.id desc limit 1)')" 0 \
    "every job's state is that of its last event"
stop_daemon

# ------------------------------------------------------------------ databases

sqlite3 "$state/traind.db" 'pragma user_version = 99' >/dev/null
sum=$(sha256sum "$state/traind.db")
refuses 1 'schema version 99.*versions up to [1-9]' "a database of a newer version" --state "$state" --listen 127.0.0.1:0
is "$(sha256sum "$state/traind.db")" "$sum" "it is left as it was"
ok "nothing was put beside it" test ! -e "$state/traind.db-wal" -a ! -e "$state/traind.db-journal"
mkdir "$work/foreign" "$work/damaged"
sqlite3 "$work/foreign/traind.db" 'create table t (x)'
refuses 1 'another program' "a database of another program" --state "$work/foreign" --listen 127.0.0.1:0
head -c 8192 /dev/urandom >"$work/damaged/traind.db"
refuses 1 'damaged.*backup' "a damaged database" --state "$work/damaged" --listen 127.0.0.1:0

is "$(grep -c 'runtime error\|AddressSanitizer\|LeakSanitizer' "$work/daemon.log")" 0 "no sanitizer complaint"
done_testing
