#!/usr/bin/env bash
# A node dies under a training run, with its slurmd and its ranks: the job goes on from its checkpoint on the nodes that are left, and
# ends with the weights of an undisturbed run, bit by bit. Failure rules drain dead nodes.
# shellcheck source=tests/system/slurm/slurm.sh.inc
. "${top_srcdir:?run it by make check}/tests/system/slurm/slurm.sh.inc"
echo SlurmdTimeout=10 >"$work/slurm.conf" # a dead node is noticed so soon
SLURM_CLUSTER_CONF=$work/slurm.conf start_cluster 3
printf '%s\n' 'unreachable drain-unverified does not answer' 'node-fail drain NODE_FAIL' >"$work/rules"
install -m 755 "$top_srcdir/etc/slurm/drain-node.in" "$work/drain-node"
start_slurm_daemon "slurm.options = --no-requeue" "failure_rules = $work/rules" "node_drain_command = $work/drain-node"
real_images

slow='.checkpoint.every_steps = 2 | .data.eval = null | .model.stem = "small" | .batch_per_worker = 8' # so that it runs when the node dies
slurm_job "undisturbed" 8 "$slow"
whole=$id
ok "a run that nobody disturbs" ends "$whole" succeeded
slurm_job "disturbed" 8 "$slow"
hit=$id
ok "another one has done some steps" eventually has_events "$hit" 3
is "$(slurm "$hit" nodes)" "n[1-2]" "on the first two nodes"
cluster kill n2
ok "with a node dead it restarts and succeeds" ends "$hit" succeeded
is "$(slurm "$hit" nodes)" "n[1,3]" "on the other two"
is "$(job "$hit" restarts)" 1 "after one restart"
like "$(job "$hit" 'failure.reason')" "n2|lost|ended" "the failure's cause is kept: $(job "$hit" 'failure.reason')"
like "$(jq -r 'select(.type == "run_start") | .resumed_step // .resumed_from' "$state/jobs/$hit/attempt-2/events.jsonl")" "[1-9]" "from a checkpoint"
is "$(weights "$hit" 8)" "$(weights "$whole" 8)" "with the weights and momenta of the undisturbed run, bit by bit"
drained() { # NODE LABEL ID
    [[ $(sinfo -h -n "$1" -o '%300E') =~ ^traind:\ job\ $3,\ $2: ]]
}
ok "a rule has drained the node that mpirun named" eventually drained n2 unreachable "$hit"

# ---- what Slurm itself says of the only node of a job
slurm_job "alone" 200 "$slow | .cluster.nodes = 1"
alone=$id
ok "a job on one node has done some steps" eventually has_events "$alone" 3
node=$(slurm "$alone" nodes)
cluster kill "$node"
ok "when the node dies, a rule drains it on Slurm's word" eventually drained "$node" node-fail "$alone"
call -X POST "/v1/jobs/$alone/cancel"
ok "the job is cancelled" ends "$alone" cancelled
ok "the daemon stops" stop_daemon
done_testing
