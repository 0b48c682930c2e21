#!/usr/bin/env bash
# What a job does in Slurm's queue: waits, with a readable reason; is cancelled there and while it runs; shares the nodes with
# another user's jobs; is put back by an administrator and goes on; and holds no job of this machine back.
# shellcheck source=tests/system/slurm/slurm.sh.inc
. "${top_srcdir:?run it by make check}/tests/system/slurm/slurm.sh.inc"
worker=tests/api/fixture_worker
start_cluster 2
grace=40 start_slurm_daemon # in which any job stops that can

fixture_job "steps=2000 step_ms=200 every=1"
long=$id
ok "a long job runs" eventually has_events "$long" 2
fixture_job "steps=3"
behind=$id
waits() { [[ $(job "$1" reason) == *"[$2]" ]]; }
ok "the next one waits" eventually waits "$behind" Resources
is "$(job "$behind" state)" queued "it is queued"
is "$(job "$behind" reason)" "in Slurm's queue as job $(slurm "$behind" job_id): waiting for nodes that are in use: it is next [Resources]" \
    "its reason names what it waits for"
# Another user's job comes between two of traind's.
chmod 755 "$work"
other=$(cd / && setpriv --reuid=nobody --regid=nogroup --clear-groups sbatch --parsable --nodes=2 --output=/dev/null --wrap true)
fixture_job "steps=3 step_ms=100"
third=$id
ok "the last one waits for its turn" eventually waits "$third" Priority
like "$(job "$third" reason)" "waiting for priority: 2 jobs ahead \[Priority\]$" "and counts the jobs ahead"

submit "steps=2" '{"workers_per_node": 2, "threads_per_worker": 1}'
ok "a job of this machine is not held back by those in Slurm" ends "$id" succeeded

call -X POST "/v1/jobs/$behind/cancel"
ok "one that waits is cancelled" ends "$behind" cancelled
is "$(squeue -h -t pending -o %A -j "$(slurm "$behind" job_id)" 2>/dev/null)" "" "also in Slurm"
call -X POST "/v1/jobs/$long/cancel"
ok "the one that runs is cancelled" ends "$long" cancelled
like "$(job "$long" reason)" "^cancelled on request after step [0-9]+$" "after a step"
is "$(job "$long" checkpoint_step)" "$(job "$long" step)" "with a checkpoint of it"
ok "the last one has its turn" ends "$third" succeeded
started() { scontrol show job "$1" -o | sed -n 's/.* StartTime=\([^ ]*\) .*/\1/p'; }
ok "after the other user's" [ ! "$(started "$(slurm "$third" job_id)")" '<' "$(started "$other")" ]

# A worker that does not stop is ended by Slurm.
sed -i 's/^cancel_grace_seconds.*/cancel_grace_seconds = 12/' "$work/traind.conf"
kill -HUP "$daemon"
ok "the daemon takes a shorter grace" eventually grep -q 'settings reloaded: cancel_grace_seconds' "$work/daemon.log"
fixture_job "steps=2000 step_ms=200 deaf=1"
ok "a deaf one runs" eventually has_events "$id" 1
call -X POST "/v1/jobs/$id/cancel"
ok "it is cancelled, too" ends "$id" cancelled

# Put back by an administrator: Slurm starts the script again, which goes on from the checkpoint as the next attempt.
fixture_job "steps=30 step_ms=100 every=2 gate=20"
again=$id
ok "a job with checkpoints runs" eventually has_events "$again" 5
slurm_id=$(slurm "$again" job_id)
scontrol requeue "$slurm_id"
ok "put back it waits again" wait_state "$again" queued
hurry() { # a job that was put back may start two minutes later
    scontrol update jobid="$slurm_id" StartTime=now 2>/dev/null
    sleep 0.3
    [ "$(job "$again" attempt)" = 2 ] && in_state "$again" 'running|succeeded'
}
ok "it starts again as another attempt" eventually hurry
touch "$state/jobs/$again/attempt-2/go"
ok "and succeeds" ends "$again" succeeded
is "$(slurm "$again" job_id)" "$slurm_id" "in the same job of Slurm's"
is "$(job "$again" restarts)" 1 "that was a restart"
like "$(job "$again" reason)" "^complete after 1 restart; the first failure: Slurm put its job $slurm_id back into the queue" \
    "with the reason"
like "$(sql "select min(json_extract(body, '\$.step')) from job_event where job_id = $again and attempt = 2 and type = 'step'")" "^[1-9][0-9]*$" \
    "steps of the second attempt are stored"
is "$(sql "select count(distinct json_extract(body, '\$.step')) from job_event where job_id = $again and type = 'step'")" 30 \
    "no step is missing"
is "$(sql "select json_extract(body, '\$.step') > 1 from job_event where job_id = $again and attempt = 2 and type = 'step' limit 1")" 1 \
    "it did not start from the beginning"

# Ended by another user: not a failure, so not restarted.
fixture_job "steps=2000 step_ms=200"
ok "another one runs" eventually has_events "$id" 1
scancel "$(slurm "$id" job_id)"
ok "ended by scancel it is cancelled" ends "$id" cancelled
like "$(job "$id" reason)" "it was cancelled in Slurm, not by traind \[CANCELLED\]" "and says that traind did not do it"
ok "the daemon stops" stop_daemon

# One that has begun since the daemon last looked at Slurm's queue, where it waited: it writes its checkpoint all the same.
sed -i 's/^cancel_grace_seconds.*/cancel_grace_seconds = 300/; s/^slurm.poll_seconds.*/slurm.poll_seconds = 600/' "$work/traind.conf"
restart_runs
scontrol update PartitionName=test State=DOWN
fixture_job "steps=2000 step_ms=200 every=1000"
ok "a job waits for its partition" eventually waits "$id" PartitionDown
scontrol update PartitionName=test State=UP
ok "it begins" eventually has_events "$id" 2
is "$(slurm "$id" state)" PENDING "which the daemon has not heard from Slurm"
slurm_id=$(slurm "$id" job_id)
call -X POST "/v1/jobs/$id/cancel"
written() { [ -s "$state/jobs/$id/attempt-1/exit" ]; }
ok "cancelled, its script ends" eventually written
is "$(job "$id" checkpoint_step)" "$(job "$id" step)" "with a checkpoint"
left() { [ -z "$(squeue -h -j "$slurm_id")" ]; }
ok "it leaves the queue" eventually left
like "$(scontrol show job "$slurm_id" -o)" 'JobState=(COMPLETED|FAILED) ' "as one that traind did not cancel"
ok "and the job is cancelled" ends "$id" cancelled
ok "the daemon stops" stop_daemon
done_testing
