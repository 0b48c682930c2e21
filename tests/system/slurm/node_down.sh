#!/usr/bin/env bash
# A node dies under a training run, with its slurmd and its ranks: the job goes on from its checkpoint on the nodes that are left, and
# ends with the weights of an undisturbed run, bit by bit. Failure rules drain dead nodes.
# shellcheck source=tests/system/slurm/slurm.sh.inc
. "${top_srcdir:?run it by make check}/tests/system/slurm/slurm.sh.inc"
echo SlurmdTimeout=25 >"$work/slurm.conf" # a dead node is noticed so soon
SLURM_CLUSTER_CONF=$work/slurm.conf start_cluster 3
printf '%s\n' 'unreachable drain-unverified no longer answers' 'node-fail drain NODE_FAIL' >"$work/rules"
install -m 755 "$top_srcdir/etc/slurm/drain-node.in" "$work/drain-node"
worker=tests/paced/train-worker start_slurm_daemon "slurm.options = --no-requeue" "failure_rules = $work/rules" "node_drain_command = $work/drain-node"
real_images

often='.checkpoint.every_steps = 2 | .data.eval = null'
slurm_job "undisturbed" 16 "$often"
whole=$id
ok "an undisturbed run" ends "$whole" succeeded
ranks_on() { # NODE ID
    local pid
    for pid in $(rank_process "$2" '[0-9]*'); do
        grep -qzx "SLURMD_NODENAME=$1" "/proc/$pid/environ" && echo "$pid"
    done 2>/dev/null
}
has_checkpoint() {
    [ "$(sql "select count(*) from job_event where job_id = $1 and type = 'checkpoint'")" -ge 1 ]
}
# The ranks on n2 are stopped until it dies, as the run may end sooner on a busy machine: then the next one is tried.
disturbed() {
    local ranks status # call sets it, and ok has one
    slurm_job "disturbed" 16 "$often"
    hit=$id
    eventually has_checkpoint "$hit"
    ranks=$(ranks_on n2 "$hit")
    [ -z "$ranks" ] || kill -STOP $ranks
    [ -n "$ranks" ] && [ "$(grep -c '"type": *"step"' "$state/jobs/$hit/attempt-1/events.jsonl")" -lt 14 ] && return
    [ -z "$ranks" ] || kill -CONT $ranks
    ends "$hit" succeeded
    return 1
}
ok "another one has done some steps" eventually disturbed
runs_on() { # ID NODES: Slurm may say it after the first steps
    [[ $(slurm "$1" nodes) =~ ^$2$ ]]
}
ok "on the first two nodes" eventually runs_on "$hit" 'n\[1-2\]'
cluster kill n2
ok "with a node dead it restarts and succeeds" ends "$hit" succeeded
is "$(slurm "$hit" nodes)" "n[1,3]" "on the other two"
is "$(job "$hit" restarts)" 1 "after one restart"
like "$(job "$hit" 'failure.reason')" "n2|lost|ended" "the failure's cause is kept: $(job "$hit" 'failure.reason')"
like "$(jq -r 'select(.type == "run_start") | .resumed_step // .resumed_from' "$state/jobs/$hit/attempt-2/events.jsonl")" "[1-9]" \
    "from a checkpoint"
is "$(weights "$hit" 16)" "$(weights "$whole" 16)" "with the weights and momenta of the undisturbed run, bit by bit"
drained() { # NODE LABEL ID
    [[ $(sinfo -h -n "$1" -o '%300E') =~ ^traind:\ job\ $3,\ $2: ]]
}
ok "a rule has drained the node that mpirun named" eventually drained n2 unreachable "$hit"

# ---- what Slurm reports about the only node of a job
slurm_job "alone" 100000 "$often | .cluster.nodes = 1"
alone=$id
ok "a job on one node has done some steps" eventually has_events "$alone" 3
ok "Slurm has named them" eventually runs_on "$alone" 'n[13]'
node=$(slurm "$alone" nodes)
cluster kill "$node"
ok "when the node dies, a rule drains it on Slurm's word" eventually drained "$node" node-fail "$alone"
call -X POST "/v1/jobs/$alone/cancel"
ok "the job is cancelled" ends "$alone" cancelled
ok "the daemon stops" stop_daemon
done_testing
