#!/usr/bin/env bash
# A job's way through the queue, mpirun and the store.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
start_runs

submit "steps=20 step_ms=10 gate=20 eval=1"
want 201 "a job is taken"
first=$id
submit "steps=5"
second=$id
submit "steps=5"
third=$id
has_reason() { grep -qE -- "$2" <<<"$(job "$1" reason)"; }
ok "the second says what it waits for" eventually has_reason "$second" "^waiting for 2 of 2 slots \((running: job $first|job $first should finish in .*)\)$"
ok "the third says whom it waits behind" eventually has_reason "$third" "^waiting behind job $second$"
: >"$state/jobs/$first/attempt-1/go"
ok "the first succeeds" wait_state "$first" succeeded
is "$(job "$first" step)" 20 "its progress"
is "$(job "$first" top1)" 0.75 "its top-1"
is "$(job "$first" ttt_seconds)" 1.5 "its time to train"
is "$(job "$first" exit_code)" 0 "mpirun's exit code"
is "$(job "$first" reason)" null "there is nothing to explain"
steps_are_complete "$first" 20 "the first"
is "$(sql "select group_concat(json_extract(body, '\$.state'), ' ') from (select body from job_event
           where job_id = $first and type = 'state' order by id)" | tr ' ' '\n' | uniq | tr '\n' ' ')" \
    "queued starting running evaluating succeeded " "the states it went through"
ok "the second succeeds" wait_state "$second" succeeded
ok "the third succeeds" wait_state "$third" succeeded
is "$(sql "select group_concat(id) from (select id from job order by started_at)")" "$first,$second,$third" "first come, first served"
is "$(sql "select count(*) from job a join job b on b.id = a.id + 1 and b.started_at < a.finished_at")" 0 "with all slots taken, one at a time"

run=$state/jobs/$first
like "$(cat "$run/attempt-1/command")" "^/.*mpirun .*-np 2 .*--hostfile $run/attempt-1/hostfile .*fixture_worker --job $run/job.json --run-dir $run --attempt 1 --stall-seconds 300$" "the command line can be read"
is "$(cat "$run/attempt-1/hostfile")" "localhost slots=2" "the hostfile"
like "$(cat "$run/attempt-1/stdout.log")" "rank 1 is process [0-9]+ with OMP_NUM_THREADS=1" "the workers' output is in the log"
is "$(jq -r .steps "$run/job.json") $(jq -r .train_steps "$run/plan.json")" "4 4" "job.json and plan.json"

one='{"workers_per_node": 1, "threads_per_worker": 1}'
submit "steps=100 step_ms=20 gate=90" "$one"
first=$id
submit "steps=100 step_ms=20 gate=90" "$one"
ok "a small job runs" wait_state "$first" running
ok "and another" wait_state "$id" running
is "$(job "$first" state)" running "... at the same time"
like "$(cat "$state/jobs/$id/attempt-1/command")" "--bind-to none" "... and are not bound to the same core"
for job in $first $id; do
    : >"$state/jobs/$job/attempt-1/go"
done
ok "they succeed" wait_state "$first" succeeded
ok "both" wait_state "$id" succeeded

submit "steps=4" '{"workers_per_node": 3, "threads_per_worker": 2}'
want 422 "what can never fit is refused"
like "$body" "3 x 2 = 6 slots.*this node has 2" "with the numbers"

submit "steps=4" '{"workers_per_node": 0}'
ok "a job that leaves its workers to the plan succeeds" wait_state "$id" succeeded
chosen=$(job "$id" 'plan.explain.workers_per_node | "\(.value)"')
like "$(job "$id" plan.explain.workers_per_node.note)" "^$chosen workers? of [12] threads? for 2 cores, [0-9]+ images each: " "its plan says what was chosen and why"
is "$(job "$id" 'spec.cluster | "\(.workers_per_node) \(.workers_per_node * .threads_per_worker)"')" "$chosen 2" "its document keeps the choice"
is "$(jq -r .cluster.workers_per_node "$state/jobs/$id/job.json")" "$chosen" "and the worker's, for attempts to come"
like "$(cat "$state/jobs/$id/attempt-1/command")" " -np $chosen " "so many were started"

submit "name with \$(touch $work/pwned) 'quotes' \`and\` ; rm -rf /tmp/none | more steps=3"
ok "a wild name does no harm" wait_state "$id" succeeded
ok "no shell saw it" test ! -e "$work/pwned"
is "$(processes "$id")" 0 "no process is left"

# What is lost with the power is made again, or was not promised: only the job, its launcher, its end and whose its folder is are waited for.
if strace -V >/dev/null 2>&1; then
    strace -f -b execve -qq -e signal=none -e trace=fsync,fdatasync -o "$work/syncs" -p "$daemon" 2>/dev/null &
    tracer=$!
    traced() { ! grep -q '^TracerPid:[[:space:]]*0$' "/proc/$daemon/status"; }
    if eventually traced; then
        for job in 1 2 3 4; do
            submit "steps=1" "$one"
            wait_state "$id" succeeded || echo "# job $job of 4"
        done
        kill "$tracer"
        wait "$tracer"
        ok "a job waits for the disk 8 times at most" test "$(grep -c sync "$work/syncs")" -le 32
        echo "# $(grep -c sync "$work/syncs") times for 4 jobs"
    else
        skip "a job waits for the disk 8 times at most" "strace may not look at another process"
    fi
else
    skip "a job waits for the disk 8 times at most" "needs strace"
fi

ok "the daemon stops in order" stop_daemon
done_testing
