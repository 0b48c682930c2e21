#!/usr/bin/env bash
# traind when any one call fails: each job that it has accepted exists once after a restart, and ends.
# shellcheck source=tests/api/runs.sh.inc
. "${top_srcdir:?is set by make check}/tests/api/runs.sh.inc"
# shellcheck source=tests/torture/lib.sh.inc
. "$top_srcdir/tests/torture/lib.sh.inc"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
torture_strace=(-f -b execve)

document() { # NAME
    jq -n --arg name "$1" '{name: $name, cluster: {workers_per_node: 1, threads_per_worker: 1}, data: {train: "synthetic", train_images: 64},
        batch_per_worker: 4, steps: 2, restart: {max: 0}, model: {image_size: 32, classes: 10, width: 0.0625}}'
}
printf '%s\n' "worker = $top_builddir/tests/api/fixture_worker" "slots = 2" "cancel_grace_seconds = 2" "restart_delay_seconds = 0" \
    "require_token = no" >"$work/traind.conf"
document one >"$work/one.json"
document two >"$work/two.json"

listening() { [ -s "$work/state/listen" ] || ! kill -0 "$daemon" 2>/dev/null; }
ended() { ! kill -0 "$daemon" 2>/dev/null; }
ask() { curl -s -m 20 -o "$work/answer" -w '%{http_code}' "$@"; }

# submit NAME: adds the job to $answered if the daemon answered for it
submit_one() {
    if [ "$(ask -H "Idempotency-Key: $1" --data-binary "@$work/$1.json" "$url/v1/jobs")" = 201 ]; then
        answered="$answered $1:$(jq .id "$work/answer")"
    fi
}

# until_idle SECONDS: no job is under way
until_idle() {
    local _
    for _ in $(seq $(($1 * 10))); do
        no_job_left && return
        kill -0 "$daemon" 2>/dev/null || return
        tap_sleep 0.1
    done
    return 1
}

start_once() { # COMMAND...: as its own process, so that the pid is the daemon's or strace's
    rm -f "$work/state/listen"
    "$@" "$traind" --config "$work/traind.conf" --state "$work/state" --listen 127.0.0.1:0 >>"$work/words" 2>&1 &
    daemon=$!
    eventually listening
    url=$(cat "$work/state/listen" 2>/dev/null)
}

# Behind timeout and strace the daemon is the process that holds the lock.
end_once() {
    ended || kill -TERM "$(cat "$work/state/lock")" 2>/dev/null
    eventually ended
    wait "$daemon"
    status=$?
    daemon=
}

scenario() {
    answered=
    rm -rf "$work/state"
    : >"$work/words"
    start_once failing
    if [ -n "$url" ]; then
        submit_one one
        submit_one two
        until_idle 3
        ask "$url/v1/jobs?limit=5" >/dev/null
    fi
    end_once
    local judged=$status job
    start_once
    if [ -z "$url" ]; then
        finding "does not start again: $(tail -n 1 "$work/words")"
    else
        until_idle 60 || finding "a job never ends: $(get "/v1/jobs" | jq -c '[.jobs[] | [.id, .state]]')"
        for job in $answered; do
            [ "$(get "/v1/jobs/${job#*:}" | jq -r .name)" = "${job%:*}" ] || finding "job $job was answered for and is gone"
        done
        [ "$(sqlite3 "$work/state/traind.db" 'select count(*) - count(distinct name) from job; pragma integrity_check' | tr '\n' ' ')" = "0 ok " ] ||
            finding "the database has a job twice, or is damaged"
    fi
    end_once
    status=$judged
}
for call in ${TORTURE_CALLS:-memory write,pwrite64:ENOSPC fsync,fdatasync:EIO openat:EMFILE accept,accept4:EMFILE clone,clone3,vfork:EAGAIN socket,pipe2:EMFILE mmap:ENOMEM \
    rename,unlink,mkdir:EACCES}; do
    torture traind traind "$call"
done
done_testing
