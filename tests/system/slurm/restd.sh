#!/usr/bin/env bash
# The same through slurmrestd: submitted, shown with what it waits for, trained by two nodes, cancelled and deleted, refused with
# Slurm's words, and slurmrestd away for a while. traind and slurmrestd run as one user, as its local authentication asks.
# shellcheck source=tests/system/slurm/slurm.sh.inc
. "${top_srcdir:?run it by make check}/tests/system/slurm/slurm.sh.inc"
worker=tests/api/fixture_worker
chmod 755 "$work"
SLURM_CLUSTER_RESTD=nobody start_cluster 2
case $top_builddir in # nobody must be able to read the programs
/*) setpriv --reuid=nobody --regid=nogroup --clear-groups test -x "$top_builddir/tests/bin/train-worker" ||
    skip_all "the user nobody cannot run programs in $top_builddir" ;;
esac
mkdir "$state"
chown nobody "$state"
printf '#!/bin/sh\nexec setpriv --reuid=nobody --regid=nogroup --clear-groups env -u SLURM_CONF HOME=%q %q "$@"\n' "$state" "$traind" >"$work/traind-as-nobody"
chmod 755 "$work/traind-as-nobody"
traind=$work/traind-as-nobody
grace=40 start_slurm_daemon "slurm.via = slurmrestd" "slurm.restd_socket = $work/cluster/restd/socket"

# What slurmrestd and sinfo say of nodes of two CPUs: one worker gets both.
threads() { # PARTITION [WORKERS]
    jq -n --argjson partition "$1" '{data: {train: "synthetic", train_images: 64}, batch_per_worker: 4,
        cluster: {launcher: "slurm", nodes: 2, workers_per_node: '"${2:-1}"', partition: $partition}}' >"$work/plan.json"
    call --data-binary "@$work/plan.json" /v1/plan
    jq -r '.explain.threads_per_worker | "\(.value) \(.source)"' <<<"$body"
}
partition=$(sinfo -h -o %R | head -1)
is "$(threads null)" "2 slurmrestd: the fewest of the 2 nodes of the default partition" "slurmrestd says how many cores a node has"
is "$(threads "\"$partition\"")" "2 slurmrestd: the fewest of the 2 nodes of partition $partition" "of a partition too"
like "$(threads '"nowhere"'; echo "$body")" "slurmrestd knows no nodes of partition nowhere" "but of none that is not there"
threads null 0 >"$work/threads"
is "$(jq .explain.workers_per_node.inputs.node_memory_bytes <<<"$body") $(sinfo -h -o %m)" "$((4000 * 1024 * 1024)) 4000" \
    "how much memory a node has, in MiB as sinfo prints it"

fixture_job "steps=100000 step_ms=200 every=1" '.cluster.env = {OMP_WAIT_POLICY: "passive"}'
long=$id
ok "a job submitted through slurmrestd runs" eventually has_events "$long" 2
told=0
for pid in $(process_ids "$long"); do
    grep -qzs '^OMPI_COMM_WORLD_RANK=' "/proc/$pid/environ" && grep -qzsx OMP_WAIT_POLICY=passive "/proc/$pid/environ" && told=$((told + 1))
done
is "$told" 4 "each of its four ranks has the job's variables"
is "$(squeue -h -o '%u %D %C %j' -j "$(slurm "$long" job_id)")" "nobody 2 4 $(slurm "$long" name)" "as traind's user, on two nodes, with four CPUs"
fixture_job "steps=3"
behind=$id
waits() { [[ $(job "$1" reason) == *"[$2]" ]]; }
ok "one behind it waits" eventually waits "$behind" Resources
fixture_job "steps=3"
third=$id
ok "as does one more" eventually waits "$third" Priority
call -X POST "/v1/jobs/$third/cancel"
ok "one that waits is cancelled" ends "$third" cancelled
is "$(squeue -h -t pending -o %j | grep -c "^$(slurm "$third" name)$")" 0 "and deleted in Slurm"
cluster kill slurmrestd
call -X POST "/v1/jobs/$long/cancel"
stopped() { [ -e "$state/jobs/$long/attempt-1/exit" ]; }
ok "with slurmrestd away one that runs stops all the same" eventually stopped
is "$(job "$long" state)" running "no end is told before Slurm tells it"
cluster revive slurmrestd
ok "it is cancelled" ends "$long" cancelled
is "$(job "$long" checkpoint_step)" "$(job "$long" step)" "with a checkpoint of its last step"
ok "and the one behind has its turn" ends "$behind" succeeded

fixture_job "steps=3" '.cluster.partition = "nowhere"'
ok "a job for a partition that is not there fails" ends "$id" failed
like "$(job "$id" reason)" "^Slurm did not take the job: slurmrestd: .*[Ii]nvalid partition name" "with Slurm's words"
ok "the daemon stops" stop_daemon
done_testing
