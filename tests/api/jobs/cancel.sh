#!/usr/bin/env bash
# Cancelling in every state, and that nothing of the job is left over.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
start_runs

cancel() {
    call -X POST "/v1/jobs/$1/cancel"
}

submit "steps=10000 step_ms=20"
running=$id
ok "a job runs" wait_state "$running" running
submit "steps=1"
cancel "$id"
is "$(job "$id" state)" cancelled "a queued job is cancelled at once"
like "$(job "$id" reason)" "before it started" "... and says so"
is "$(job "$id" attempt)" 0 "... and was never launched"
is "$(processes "$running")" 3 "mpirun and two workers are there"
cancel "$running"
like "$status" "^20[02]$" "a running job's cancelling is taken"
like "$(job "$running" reason)" "being cancelled|cancelled on request" "... which its reason says meanwhile"
ok "it is cancelled" wait_state "$running" cancelled
is "$(processes "$running")" 0 "no process is left"
like "$(job "$running" reason)" "^cancelled on request after step [0-9]+$" "... after a whole step"
cancel "$running"
want 409 "it cannot be cancelled twice"
cancel 999
want 404 "what is not there cannot be cancelled"

change cancel_grace_seconds 2 # which is waited out from here on
submit "steps=10000 step_ms=20 deaf=1"
ok "a job that is deaf to signals runs" wait_state "$id" running
cancel "$id"
ok "it is cancelled all the same" wait_state "$id" cancelled
is "$(processes "$id")" 0 "no process is left of it"

submit "steps=10000 step_ms=20 deaf=1"
ok "another deaf job runs" wait_state "$id" running
mpirun=$(sql "select launcher_pid from job where id = $id")
kill -STOP "$mpirun"
cancel "$id"
ok "a stopped mpirun does not hinder it" wait_state "$id" cancelled
is "$(processes "$id")" 0 "no process is left of that"

submit "steps=10000 step_ms=20"
eventually in_state "$id" 'starting|running'
cancel "$id"
ok "a job is cancelled while it starts" wait_state "$id" cancelled
is "$(processes "$id")" 0 "no process is left of this"

submit "steps=10000 step_ms=20 deaf=1"
ok "one more runs" wait_state "$id" running
cancel "$id"
kill_daemon
restart_runs
ok "a killed daemon goes on with the cancelling" wait_state "$id" cancelled
is "$(processes "$id")" 0 "nothing is left then either"

# Each rank has a child and a grandchild in a session of their own, deaf to signals and without the environment by
# which an attempt's processes are known.
submit "steps=10000 step_ms=20 deaf=1 children=1"
ok "a job with deaf children runs" wait_state "$id" running
descendants() { # PID
    local child
    for child in $(pgrep -P "$1"); do
        echo "$child"
        descendants "$child"
    done
}
has_tree() {
    tree=$(descendants "$(sql "select launcher_pid from job where id = $id")" | tr '\n' ,)
    [ "$(ps -o pid= -p "${tree%,}" | wc -l)" = 6 ]
}
ok "two ranks, two children and two grandchildren are there" eventually has_tree
cancel "$id"
ok "it is cancelled" wait_state "$id" cancelled
is "$(ps -o pid=,args= -p "${tree%,}" | grep -v "<defunct>")" "" "none of them is left"

submit "steps=3"
ok "the slots are free again" wait_state "$id" succeeded
ok "the daemon stops in order" stop_daemon
done_testing
