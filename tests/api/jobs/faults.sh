#!/usr/bin/env bash
# The database locked, read-only, on a full disk, damaged; the clock set back. In a mount namespace of its own.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
own_mounts
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
one='{"workers_per_node": 1, "threads_per_worker": 1}'

# ------------------------------------------------------------------ locked

mkdir -p "$state"
mount -t tmpfs -o size=16m,mode=0700 none "$state"
start_runs
submit "steps=100 step_ms=20"
running=$id
ok "a job runs" eventually has_events "$running" 5
mkfifo "$work/lock"
sqlite3 "$state/traind.db" <"$work/lock" >/dev/null &
holder=$!
exec 9>"$work/lock"
printf '%s\n' 'begin immediate; create table held (x);' ".shell touch '$work/held'" >&9
eventually test -e "$work/held"
submit "steps=1" "$one"
refused 503 busy 'another program has locked the database. Try again' "a submission while another program holds the lock"
like "$headers" '^Retry-After: [0-9]' "it says when to come back"
call -X POST "/v1/jobs/$running/cancel"
refused 503 busy 'another program has locked the database' "a cancellation"
call "/v1/jobs/$running"
want 200 "reading goes on"
echo 'rollback;' >&9
exec 9>&-
wait "$holder"
submit "steps=2" "$one"
want 201 "then jobs are taken again"
ok "the job that ran meanwhile succeeds" wait_state "$running" succeeded
steps_are_complete "$running" 100 "a lock"
ok "the new one too" wait_state "$id" succeeded

# ------------------------------------------------------------------ full disk

head -c 20m /dev/zero >"$state/ballast" 2>/dev/null
taken=0
for _ in $(seq 40); do
    submit "steps=2" "$one"
    [ "$status" = 201 ] || break
    taken=$((taken + 1))
done
refused 507 no-space '[fF]ull|[sS]pace' "a submission to a full disk"
call /readyz
refused 503 no-space 'the disk of the state folder is full' "traind is not ready"
call /healthz
want 200 "but alive"
call /v1/jobs
want 200 "reading goes on"
rm "$state/ballast"
call /readyz
want 200 "with room again, traind is ready"
submit "steps=2" "$one"
want 201 "and jobs are taken"
ok "and run" wait_state "$id" succeeded
quiet() { [ "$(sql "select count(*) from job where state in ('queued', 'starting', 'running')")" = 0 ]; }
ok "none is left over" eventually quiet
is "$(sql "select count(*) from job where state not in ('succeeded', 'failed')")" 0 "each has ended, one way or the other"

# ------------------------------------------------------------------ what cannot be removed at the end of a run

submit "steps=3 gate=2" "$one"
ok "a job waits in its run" eventually has_events "$id" 1
checkpoints=$state/jobs/$id/checkpoints
mkdir -p "$checkpoints/.step-00000002.tmp"
mount --bind "$checkpoints" "$checkpoints"
mount -o remount,bind,ro "$checkpoints"
touch "$state/jobs/$id/attempt-1/go"
ok "it ends with its checkpoints on a read-only disk" wait_state "$id" succeeded
logs() { cat "$work"/*.log | grep -qE "$1"; }
ok "the log names the unfinished one that stays" eventually logs "cannot remove [^ ]*/.step-00000002.tmp: Read-only file system"
left_over() { [ "$(sql "select group_concat(job_id) from leftover")" = "$1" ]; }
ok "the store knows of it" eventually left_over "$id"
stop_daemon
restart_runs
ok "the next daemon says so" eventually logs "job $id: an unfinished checkpoint in [^ ]*/jobs/$id could not be removed before traind was started"
umount "$checkpoints"
is_gone() { [ ! -e "$checkpoints/.step-00000002.tmp" ]; }
ok "it is removed when that is possible again" eventually is_gone
ok "and the store forgets it" eventually left_over ""

# ------------------------------------------------------------------ a start that fails for what passes

stop_daemon
sed -i 's/^restart_delay_seconds.*/restart_delay_seconds = 1/' "$work/traind.conf"
restart_runs
mount -t tmpfs -o size=256k,mode=0700 none "$state/jobs"
head -c 1m /dev/zero >"$state/jobs/ballast" 2>/dev/null
submit "steps=2" "$one" '{"restart": {"max": 4}}'
tried_again() { [[ $(job "$id" 'state + " " + .reason') = "queued "*"$1; restart "[1-4]" of 4 follows in "*" s, from the beginning"* ]]; }
ok "a job whose start finds a full disk stays queued" eventually tried_again "No space left on device"
rm "$state/jobs/ballast"
ok "with room again it succeeds" wait_state "$id" succeeded
is "$(job "$id" 'restarts > 0') $(job "$id" failure.phase)" "true start" "the tries count as restarts"
steps_are_complete "$id" 2 "it"
# A disk on which the end of a job is still being written is busy.
make_read_only() { eventually mount -o remount,ro "$1" 2>/dev/null; }
make_read_only "$state/jobs"
submit "steps=2" "$one" '{"restart": {"max": 4}}'
ok "one whose start finds a read-only disk, too" eventually tried_again "Read-only file system"
mount -o remount,rw "$state/jobs"
ok "goes on" wait_state "$id" succeeded
make_read_only "$state/jobs"
submit "steps=2" "$one" '{"restart": {"max": 1}}'
ok "one that finds it again and again fails" wait_state "$id" failed
like "$(job "$id" reason)" "Read-only file system[^;]*; failed (in the same way after 1 restart$|again after 1 restart, the last time: .*Read-only file system)" "and says so"
mount -o remount,rw "$state/jobs"
call -X POST -d '{}' "/v1/jobs/$id/resume"
want 409 "it has no checkpoint"
umount "$state/jobs"

# ------------------------------------------------------------------ read-only

stop_daemon
make_read_only "$state"
timeout 60 "$traind" --state "$state" --listen 127.0.0.1:0 >"$work/out" 2>&1
like "$? $(cat "$work/out")" "^[14] .*(Read-only|readonly)" "traind does not start on a read-only disk, and says why"
mount -o remount,rw "$state"

# ------------------------------------------------------------------ damaged

cp "$state/traind.db" "$work/good.db"
page=$(sqlite3 "$state/traind.db" "select rootpage from sqlite_schema where name = 'job'")
dd if=/dev/urandom of="$state/traind.db" bs=4096 seek=$((page - 1)) count=1 conv=notrunc status=none
timeout 60 "$traind" --state "$state" --listen 127.0.0.1:0 >"$work/out" 2>&1
is $? 1 "traind does not start with a damaged page"
like "$(cat "$work/out")" "traind.db is damaged .*put a backup of traind.db in their place.*\.recover" "it says how to restore"
sum=$(sha256sum <"$state/traind.db")
timeout 60 "$traind" --state "$state" --listen 127.0.0.1:0 >"$work/out" 2>&1
is "$(sha256sum <"$state/traind.db")" "$sum" "it leaves the file as it is"
rm -f "$state"/traind.db*
cp "$work/good.db" "$state/traind.db"
restart_runs
submit "steps=2" "$one"
ok "with the backup in its place it works" wait_state "$id" succeeded
ok "the daemon stops in order" stop_daemon

# ------------------------------------------------------------------ the clock

faketime=$(find /usr/lib -name libfaketime.so.1 2>/dev/null | head -n 1)
if [ -n "$faketime" ]; then
    echo '+0' >"$work/clock"
    # Without the last, pthread_cond_timedwait of libfaketime returns at once, again and again.
    export FAKETIME_TIMESTAMP_FILE=$work/clock FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_FORCE_MONOTONIC_FIX=0
    sed -i 's/^restart_delay_seconds.*/restart_delay_seconds = 1/' "$work/traind.conf"
    export LD_PRELOAD=$faketime
    "$traind" --state "$state" --listen 127.0.0.1:0 --config "$work/traind.conf" >>"$work/daemon.log" 2>&1 &
    daemon=$!
    unset LD_PRELOAD
    eventually answers
    url=$(cat "$state/listen")
    two='{"workers_per_node": 2, "threads_per_worker": 1}'
    submit "steps=300 step_ms=10 every=10 rank=1 at=150 signal=9 first=1" '{"workers_per_node": 2, "threads_per_worker": 1, "time_limit": "10:00"}' '{"restart": {"max": 1}}'
    running=$id
    ok "a job runs" eventually has_events "$running" 5
    submit "steps=1" "$two"
    first=$id
    echo '-86400' >"$work/clock"
    submit "steps=1" "$two"
    second=$id
    ok "the clock set back a day: the job restarts and succeeds" wait_state "$running" succeeded
    is "$(job "$running" attempt)" 2 "in its second attempt"
    ok "those that wait run" wait_state "$second" succeeded
    is "$(sql "select group_concat(job_id, ' ') from (select job_id from job_event where type = 'run_start' and job_id >= $first order by id)")" \
        "$first $second" "in the order of their submission"
    submit "steps=400 step_ms=10" '{"workers_per_node": 2, "threads_per_worker": 1, "time_limit": "1:00:00"}'
    ok "one with a time limit runs" eventually has_events "$id" 5
    echo '+864000' >"$work/clock"
    ok "the clock set forward ten days: it is not ended by its limit" wait_state "$id" succeeded
    steps_are_complete "$id" 400 "a clock that jumps"
    submit "steps=3 step_ms=6000" "$two"
    ok "one with long steps runs" eventually has_events "$id" 2
    echo '+964000' >"$work/clock"
    ok "the clock set forward another day: it has not stalled" wait_state "$id" succeeded
    is "$(job "$id" attempt)" 1 "in its first attempt"
    ok "the daemon stops in order" stop_daemon
else
    skip "a clock that jumps" "faketime is not installed"
fi
umount -l "$state"
done_testing
