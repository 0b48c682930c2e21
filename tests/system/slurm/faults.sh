#!/usr/bin/env bash
# Slurm's controller is away for a while, and traind is killed while its jobs wait, run and are being submitted: nothing is lost,
# nothing is submitted twice, and no job fails.
# shellcheck source=tests/system/slurm/slurm.sh.inc
. "${top_srcdir:?run it by make check}/tests/system/slurm/slurm.sh.inc"
worker=tests/api/fixture_worker
start_cluster 2
start_slurm_daemon

steps_once() { # ID COUNT NAME
    is "$(sql "select count(*), count(distinct json_extract(body, '\$.step')) from job_event where job_id = $1 and type = 'step'")" "$2|$2" \
        "$3"
}

# ---------------------------------------------------------------- the controller is away
answers_again() { sinfo -h -t idle,alloc -o %D | grep -qx 2; }
# It ends when the controller is back: if a job ends while the controller is away, Slurm takes minutes to notice.
fixture_job "steps=42 step_ms=100 gate=42"
running=$id
ok "a job runs" eventually has_events "$running" 3
cluster end slurmctld
fixture_job "steps=3"
held=$id
says() { [[ $(job "$1" reason) == *"$2"* ]]; }
ok "a job submitted while Slurm is away waits" eventually says "$held" "Slurm does not answer"
ok "steps go on meanwhile" eventually has_events "$running" 40
is "$(job "$running" state)" running "the one that runs is not called failed"
cluster revive slurmctld
eventually answers_again
touch "$state/jobs/$running/attempt-1/go"
ok "it ends well" ends "$running" succeeded
ok "and so does the one that waited" ends "$held" succeeded
is "$(job "$running" '| "\(.restarts) \(.failure.reason // "")"') $(job "$held" restarts)" "0  0" "without a restart"
steps_once "$running" 42 "every step once"
is "$(squeue -h -t all -o %j | sort | uniq -d)" "" "no job was submitted twice"

# ---------------------------------------------------------------- traind is killed
fixture_job "steps=60 step_ms=100 gate=30"
running=$id
fixture_job "steps=5"
behind=$id
ok "a job runs" eventually has_events "$running" 3
kill_daemon
sleep 1
restart_runs
is "$(job "$running" state) $(job "$behind" state)" "running queued" "a new daemon finds one running and one that waits"
touch "$state/jobs/$running/attempt-1/go"
ok "the first ends well" ends "$running" succeeded
ok "and the other" ends "$behind" succeeded
steps_once "$running" 60 "every step once"
is "$(job "$running" attempt) $(job "$behind" attempt)" "1 1" "in one attempt each"

# It ends, and Slurm forgets it, while traind is away: the run directory decides.
fixture_job "steps=10 step_ms=100"
ok "another one runs" eventually has_events "$id" 1
kill_daemon
has_exit() { [ -e "$state/jobs/$id/attempt-1/exit" ]; }
ok "it ends while traind is away" eventually has_exit
gone() {
    local left
    left=$(squeue -h -o %A) && [ -z "$left" ]
}
ok "Slurm has done with it" eventually gone
cluster end slurmctld
rm -rf "$work/cluster/state"/* # a controller that has lost all it knew
cluster revive slurmctld
restart_runs
ok "a new daemon knows from the run directory that it succeeded" ends "$id" succeeded
steps_once "$id" 10 "every step once"
ok "the nodes are back" eventually answers_again

# Killed at any moment of a submission
ids=
for delay in 0 0.02 0.05 0.1; do
    fixture_job "steps=2"
    ids="$ids $id"
    sleep "$delay"
    kill_daemon
    restart_runs
done
for id in $ids; do
    ok "killed around its submission, job $id succeeds" ends "$id" succeeded
    # A number whose attempt was prepared, but not yet handed to Slurm, is not used again.
    is "$(find "$state/jobs/$id" -name events.jsonl | wc -l)" 1 "in one attempt"
done
is "$(squeue -h -t all -o %j | sort | uniq -d)" "" "no job was submitted twice"
ok "the daemon stops" stop_daemon
done_testing
