#!/usr/bin/env bash
# Text from elsewhere (file names, node reports, the workers' log) commands no terminal and forges no line of the daemon's log.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
export OMP_NUM_THREADS=1 HOME=$work
trainctl() {
    "$top_builddir/trainctl" --server "$url" "$@"
}
start() {
    printf '%s\n' "worker = $top_builddir/tests/bin/train-worker" "slots = 2" "restart_delay_seconds = 0" "node_check_seconds = 0" "$@" >"$work/traind.conf"
    start_daemon --config "$work/traind.conf"
}
start

# Escape sequences, a forged line, C1, a right-to-left override, half a character.
esc=$'\033]0;owned\007\033[31m' rtl=$'\u202e' c1=$'\u009b31m'
forged=$'\n2026-01-01T00:00:00.000Z error: forged'
unsafe=$'[\x01-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]'
clean() { # FILE NAME
    is "$(LC_ALL=C grep -acP "$unsafe" "$1")" 0 "$2: a terminal would obey nothing in it"
    is "$(iconv -f UTF-8 -t UTF-8 "$1" 2>&1 >"$work/same" | head -c 100)" "" "$2: it is UTF-8"
}

# ------------------------------------------------------------------ a file's name, by way of a job's reason

mkdir -p "$work/data/a$esc" "$work/data/b"
for i in 1 2 3 4; do
    echo "no JPEG" >"$work/data/a$esc/$i$rtl$c1$forged.jpg"
    echo "no JPEG" >"$work/data/b/$i$esc$forged.jpg"
done
jq -n --arg data "$work/data" '{data: {train: $data}, steps: 1, batch_per_worker: 4, model: {arch: "resnet18", image_size: 32, classes: 10, stem: "small"},
    cluster: {workers_per_node: 1, threads_per_worker: 1}, restart: {max: 0}, checkpoint: {disable: true}}' >"$work/job.json"
call -d "@$work/job.json" /v1/jobs
id=$(jq -r '.id // 0' <<<"$body")
want 201 "a job with such data"
trainctl wait "$id" >"$work/wait" 2>&1
like "$(job "$id" 'reason | contains("\u001b")')" true "its reason has the name of a file as it is"
clean "$work/wait" "trainctl wait"
like "$(cat "$work/wait")" 'u001b|u202e' "the name is told, escaped"
is "$(wc -l <"$work/wait")" 1 "in one line"
for command in show list "list --json" "show --json" metrics events "events --json"; do
    # shellcheck disable=SC2086
    case $command in show* | metrics | events*) trainctl $command "$id" >"$work/out" 2>&1 ;; *) trainctl $command >"$work/out" 2>&1 ;; esac
    clean "$work/out" "trainctl $command"
done
trainctl show --json "$id" >"$work/out"
is "$(jq .reason "$work/out")" "$(get "/v1/jobs/$id" | jq .reason)" "as JSON it is the same reason"

# ------------------------------------------------------------------ the workers' log

printf 'red \033[31m %s %s\377 tab\there\r\nsplit \303\n' "$rtl" "$c1" >>"$state/jobs/$id/attempt-1/stdout.log"
printf 'Größe %.0s' $(seq 20000) >>"$state/jobs/$id/attempt-1/stdout.log"
trainctl logs "$id" >"$work/logs"
clean "$work/logs" "trainctl logs"
like "$(tail -n 3 "$work/logs" | head -n 1)" 'red .u001b\[31m .u202e .u009b31m.ufffd tab	here.r$' "it is told, escaped; tabs and lines stay"
is "$(tail -n 1 "$work/logs" | grep -o 'Größe ' | wc -l)" 20000 "characters that two answers share are whole"

for more in "" "--tail 2" --follow; do
    # shellcheck disable=SC2086
    trainctl logs --json $more "$id" >"$work/logs.json"
    clean "$work/logs.json" "trainctl logs --json $more"
    is "$(tail -n 1 "$work/logs.json" | jq -r .line | grep -o 'Größe ' | wc -l)" 20000 "it ends with the same line"
    is "$(tail -n 2 "$work/logs.json" | head -n 1 | jq -r .line)" 'split \ufffd' "what is no UTF-8 is told"
    [ "$more" = "--tail 2" ] || is "$(jq -r .line "$work/logs.json" | head -n -3)" "$(head -n -3 "$work/logs")" "and has the same lines before"
done
is "$(tail -n 3 "$work/logs.json" | head -n 1 | jq -r .line)" "$(tail -n 3 "$work/logs" | head -n 1)" "control characters beside it are escaped"

# ------------------------------------------------------------------ a node's report, an error's words

call --unix-socket "$socket" -d "$(jq -nc --arg x "$esc$rtl$forged" --argjson now "$(date +%s)" '{kind: ("CPU" + $x), cores: 4, phase: "prolog", outcome: "data", reason: ("bad" + $x), t: $now, gflops: 10, memory_gb_per_sec: 20, clock_ghz: 3}')" /v1/nodes/n1/report
sed 's/^/# /' <<<"$status ${body:0:200}"
for command in "nodes n1" nodes "nodes --json"; do
    # shellcheck disable=SC2086
    trainctl $command >"$work/out" 2>&1
    clean "$work/out" "trainctl $command"
done
jq -n --arg x "key$esc$rtl$forged" '{data: {train: "synthetic"}} | .[$x] = 1 | .name = $x' >"$work/job.json"
for command in submit "submit --json" plan "plan --json"; do
    # shellcheck disable=SC2086
    trainctl $command "$work/job.json" >"$work/out" 2>&1
    is $? 2 "trainctl $command: a key that is not there is refused"
    like "$(cat "$work/out")" 'u001[bB]' "and told"
    clean "$work/out" "trainctl $command"
done
call -d "@$work/job.json" /v1/jobs
want 422 "the document is refused"
json '[.errors[].pointer | test("^(/([^/~]|~[01])*)*$")] | unique | tojson' '[true]' "its pointers are of the form that openapi.json tells"

# ------------------------------------------------------------------ the daemon's log

clean "$work/daemon.log" "the daemon's log"
is "$(grep -c '^2026-01-01T00' "$work/daemon.log")" 0 "no line of it is forged"
like "$(cat "$work/daemon.log")" "job $id: failed: .*u001b" "though it tells the reason"
ok "the daemon stops in order" stop_daemon
: >"$work/daemon.log"
sql "update job set state = 'queued' where id = $id"
start "log_format = json"
wait_state "$id" failed
clean "$work/daemon.log" "the log as JSON"
is "$(jq -r 'select(.message | startswith("job")) | .level' "$work/daemon.log" | sort -u | tr '\n' ' ')" "info " "is JSON"
ok "it stops in order" stop_daemon
done_testing
