#!/usr/bin/env bash
# Runs whose processes or folders somebody else ends: the job fails, and its reason names the cause. tests/api/cases/failures.cases has the rest.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
host=$(hostname)
start_runs

# The run directory, or the attempt's, removed under the run.
for folder in "" /attempt-1; do
    submit "steps=100000 step_ms=20"
    ok "a job runs" eventually has_events "$id" 3
    rm -rf "$state/jobs/$id$folder"
    kill -KILL "$(rank_process "$id" 1)"
    ok "with its folder removed it fails" wait_state "$id" failed
    is "$(job "$id" reason)" "the folder $state/jobs/$id$folder no longer exists: it was removed or renamed while the job ran" "the reason names the folder"
done

submit "steps=10000 step_ms=20"
ok "a job runs" eventually has_rank "$id" 1
kill -KILL "$(rank_pid "$id" 1)"
ok "a rank killed from outside fails it" wait_state "$id" failed
like "$(job "$id" reason)" "^rank 1 on $host was ended by signal 9" "with rank, host and signal"

submit "steps=10000 step_ms=20"
ok "a job runs again" wait_state "$id" running
kill -KILL "$(sql "select launcher_pid from job where id = $id")"
ok "a killed mpirun fails it" wait_state "$id" failed
like "$(job "$id" reason)" "^mpirun was ended by signal 9" "and is named"
is "$(processes "$id")" 0 "its workers are gone too"

ok "the daemon stops in order" stop_daemon
done_testing
