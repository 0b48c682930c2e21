#!/usr/bin/env bash
# Runs that go wrong: the job fails, at once, and its reason names the cause.
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
    is "$(job "$id" reason)" "the folder $state/jobs/$id$folder is not there any more: it was removed or renamed while the job ran" "the reason names the folder"
done


fails() { # HOW REGEX NAME
    submit "$1"
    ok "$3: the job fails" wait_state "$id" failed
    like "$(job "$id" reason)" "$2" "$3: its reason"
    is "$(job "$id" reason | wc -l)" 1 "$3: in one line"
    is "$(processes "$id")" 0 "$3: no process is left"
}
log='; .*last lines of the log: .*rank [01] is process'
fails "steps=50 step_ms=5 rank=1 at=3 signal=9" "^rank 1 on $host was ended by signal 9 \(SIGKILL, Killed\).*$log" "a killed rank"
is "$(job "$id" step)" 3 "its events were read to the end"
fails "steps=50 step_ms=5 rank=0 at=3 signal=11" "^rank 0 on $host was ended by signal 11 \(SIGSEGV, Segmentation fault\).*$log" "a crash"
fails "steps=50 rank=1 at=2 exit=7" "^rank 1 ended with exit code 7 in phase train; .*$log" "an exit code"
shown=$("$top_builddir/trainctl" --server "$url" show "$id" | xargs)
is "$(grep -oE 'rank 1 is process [0-9]+' <<<"$shown" | wc -l)" 1 "trainctl show has each line of the log once"
# Open MPI 4.1.4 now and then loses its words on an MPI_Abort ("Data unpack would read past end of buffer").
fails "steps=50 rank=1 at=2 abort=3" "^(rank 1 called MPI_Abort with|mpirun ended with) exit code 3" "MPI_Abort"
fails "steps=50 rank=0 at=2 fail=1" "^shard train-00003-of-00008 is damaged at byte 4711 \(rank 0 on testhost, phase data\)$" "a failed event"

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

submit "steps=6 rank=0 at=2 junk=1"
ok "junk in events.jsonl does not fail a job" wait_state "$id" succeeded
steps_are_complete "$id" 6 "beside the junk"
like "$(sql "select body from job_event where job_id = $id and type = 'warning'")" "3 bad lines, the first is .*this is not JSON|bad line" "the junk is a warning"
stop_daemon

# The launcher itself.
printf '%s\n' "mpirun = $work/none/mpirun" >>"$work/traind.conf"
restart_runs
fails "steps=1" "^mpirun cannot be run \($work/none/mpirun\): apt-get install openmpi-bin, or set mpirun= in traind.conf$" "mpirun missing"
stop_daemon
touch "$work/mpirun"
sed -i "s|^mpirun.*|mpirun = $work/mpirun|" "$work/traind.conf"
restart_runs
fails "steps=1" "^mpirun cannot be run .*openmpi-bin" "mpirun not executable"
stop_daemon
printf '#!/no/such/interpreter\n' >"$work/mpirun"
chmod +x "$work/mpirun"
restart_runs
fails "steps=1" "exit code 127; last lines of the log: traind: cannot run $work/mpirun: No such file" "mpirun that the kernel cannot run"
stop_daemon
sed -i "/^mpirun/d; s|^worker.*|worker = $work/none/train-worker|" "$work/traind.conf"
restart_runs
fails "steps=1" "^the worker program $work/none/train-worker cannot be run: .*worker= in traind.conf$" "the worker missing"
ok "the daemon stops in order" stop_daemon
done_testing
