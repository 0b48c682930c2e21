#!/usr/bin/env bash
# Allocations that are shorter than the job: it writes a checkpoint before the end of each and goes on in the next, until it is
# done. A preempted job writes one too, and goes on.
# shellcheck source=tests/system/slurm/slurm.sh.inc
. "${top_srcdir:?run it by make check}/tests/system/slurm/slurm.sh.inc"
worker=tests/api/fixture_worker
cat >"$work/preempt.conf" <<'END'
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=120
PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
END
SLURM_CLUSTER_CONF=$work/preempt.conf start_cluster 2
start_slurm_daemon

steps_of() { # ID
    sql "select count(distinct json_extract(body, '\$.step')) from job_event where job_id = $1 and type = 'step'"
}

# The workers get a signal when half of such a short limit is over. Until then they have to start and to write their first checkpoint, so
# that half is a multiple of what a whole job takes here. From a limit of 600 s on, Slurm would send it.
began=$SECONDS
fixture_job "steps=1"
ok "a short job succeeds" ends "$id" succeeded
half=$((15 + 2 * (SECONDS - began)))
[ $half -lt 295 ] || half=295
limit=$(printf %d:%02d $((2 * half / 60)) $((2 * half % 60)))
ok "the daemon stops" stop_daemon
grace=$half start_slurm_daemon

# It waits before step 10 until the test creates the file.
fixture_job "steps=60 step_ms=100 every=3 gate=10" '.cluster.time_limit = "'$limit'" | .steps = 60 | .data.train_images = 10000 | .batch_per_worker = '$((2 * half))
long=$id
script=$state/jobs/$long/attempt-1/sbatch
ok "a job of which an allocation does a part runs" eventually has_events "$long" 9
like "$(cat "$script")" "^#SBATCH --time=\"$limit\"\$" "Slurm gets its limit"
left=$(get "/v1/jobs/$long" | jq '.time_left.value')
is "$(jq -n "$left > 2 * $half")" true "its time left is that of all links ($left s)"
ok "it succeeds" ends "$long" succeeded
like "$(job "$long" attempt)" "^[2-9]$" "in several allocations"
is "$(job "$long" restarts)" 0 "none of which counts as a restart"
is "$(steps_of "$long")" 60 "all its steps were done"
like "$(sql "select json_extract(body, '\$.reason') from job_event where job_id = $long and type = 'state' and json_extract(body, '\$.state') = 'queued'")" \
    "^Slurm's job [0-9]+ reached its time limit after step [0-9]+; continues in another allocation, from its checkpoint of step [0-9]+$" "with the reason"
is "$(sql "select count(*) from job_event where job_id = $long and type = 'failed'")" 0 "and without a failure"

# The script watches the time by itself: traind is away when it is over.
fixture_job "steps=30 step_ms=100 every=2 gate=6" '.cluster.time_limit = "'$limit'"'
alone=$id
ok "another one runs" eventually has_events "$alone" 1
kill_daemon
has_exit() { [ -e "$state/jobs/$alone/attempt-1/exit" ]; }
ok "it stops in time while traind is away" eventually has_exit
restart_runs
ok "and goes on to its end when traind is back" ends "$alone" succeeded
is "$(steps_of "$alone") $(job "$alone" restarts)" "30 0" "with all its steps, and no restart"

# No checkpoint in time: it would go on for ever.
fixture_job "steps=1000 step_ms=200" '.cluster.time_limit = "0:06"'
ok "a job whose time is over before its first checkpoint fails" ends "$id" failed
like "$(job "$id" reason)" "reached its time limit before it had written a checkpoint: increase cluster.time_limit" "and names the remedy"

# ---------------------------------------------------------------- preempted
fixture_job "steps=80 step_ms=100 every=1000 gate=40"
low=$id
ok "a job that can be preempted runs" eventually has_events "$low" 5
slurm_id=$(slurm "$low" job_id)
high=$(sbatch --parsable --partition=high --nodes=2 --output=/dev/null --wrap 'sleep 1')
put_back() { [ "$(job "$low" attempt)" = 2 ]; }
ok "preempted by another it is put back" eventually put_back
is "$(test -s "$state/jobs/$low/attempt-1/slurm-signal" && echo yes)" yes "it got a signal"
like "$(job "$low" checkpoint_step)" "^[1-9]" "and wrote a checkpoint"
hurry() {
    scontrol update jobid="$slurm_id" StartTime=now 2>/dev/null
    in_state "$low" 'running|succeeded'
}
ok "it starts again" eventually hurry
touch "$state/jobs/$low/attempt-2/go" # in case it was told before step 40
ok "and succeeds" ends "$low" succeeded
is "$(steps_of "$low")" 80 "all its steps were done"
is "$(scontrol show job "$high" -o | grep -c JobState=COMPLETED)" 1 "as did the other"
ok "the daemon stops" stop_daemon
done_testing
