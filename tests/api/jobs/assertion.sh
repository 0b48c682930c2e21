#!/usr/bin/env bash
# A failed assertion ends the daemon while a job runs. It says where and what to do, and nothing that was stored is lost.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
ulimit -c 0
start_runs
is_writable() { : >>"/proc/$daemon/mem"; } 2>/dev/null
is_writable || skip_all "the memory of another process cannot be written here"
heap=$(sed -n 's/^\([0-9a-f]*\)-\([0-9a-f]*\) .*\[heap\]$/0x\1 0x\2/p' "/proc/$daemon/maps")
[ -n "$heap" ] || skip_all "this build's allocator has no [heap]"

submit "steps=200 step_ms=10 gate=100"
first=$id
submit "steps=3"
second=$id
ok "a job runs" eventually has_events "$first" 5
like "$(job "$second" reason)" '^waiting for' "another one waits"

# The magic number of its struct active_job is overwritten, as a write beyond some other object would do it.
magic=$(sed -n 's/^#define ACTIVE_JOB_MAGIC *0x\([0-9a-f]*\)u$/\1/p' "$top_srcdir/daemon/job/job_manager_internal.h")
little_endian=$(sed 's/\(..\)\(..\)\(..\)\(..\)/\\x\4\\x\3\\x\2\\x\1/' <<<"$magic")
overwrite() {
    local from=$((${heap% *})) to=$((${heap#* })) at
    for at in $(dd if="/proc/$daemon/mem" bs=4096 skip=$((from / 4096)) count=$(((to - from) / 4096)) 2>/dev/null |
        LC_ALL=C grep -aboP "$little_endian" | cut -d: -f1); do
        printf 'oops' | dd of="/proc/$daemon/mem" bs=1 seek=$((from + at)) conv=notrunc 2>/dev/null
        echo "# overwritten at $((from + at))"
    done
}
heap=$(sed -n 's/^\([0-9a-f]*\)-\([0-9a-f]*\) .*\[heap\]$/0x\1 0x\2/p' "/proc/$daemon/maps")
like "$(overwrite)" overwritten "the daemon's memory is damaged"
wait "$daemon" 2>/dev/null
is $? 134 "it ends itself by SIGABRT"
daemon=
like "$(grep 'internal error' "$work/daemon.log")" \
    'error: internal error at daemon/job/[a-z_]*\.c:[0-9]*, [a-z_]*: a->magic == ACTIVE_JOB_MAGIC is false \(traind [0-9.]*, errno [0-9]*\); this is a bug: please report this line\. Nothing that was stored is lost: start traind again$' \
    "one line in its log says where, and what to do"
is "$(processes "$first")" 3 "the training continues without it"

before=$(sql "select id, state, attempt, spec from job")
restart_runs
is "$(sql "select id, state, attempt, spec from job")" "$before" "after a restart all jobs are there, as they were"
: >"$state/jobs/$first/attempt-1/go"
ok "the running one succeeds" wait_state "$first" succeeded
is "$(job "$first" attempt)" 1 "in its first attempt"
steps_are_complete "$first" 200 "an aborted daemon"
ok "the waiting one succeeds" wait_state "$second" succeeded
is "$(sql 'pragma integrity_check')" ok "the database is whole"
ok "the daemon stops in order" stop_daemon
done_testing
