#!/usr/bin/env bash
# How many threads the workers of a Slurm job get that does not say so: a share of a node's cores as Slurm or slurm.node_cores names them,
# never of this machine's; where nobody knows, the error names the keys. The real sinfo: tests/system/slurm/nodes.sh.
# shellcheck source=tests/api/runs.sh.inc
. "${top_srcdir:?run it by make check}/tests/api/runs.sh.inc"
trainctl=$top_builddir/trainctl

# A cluster of 256 nodes of 48 cores, of which Slurm has 96 CPUs, and some others whose memory is small or not configured; as sinfo prints them, for the --partition given.
mkdir -p "$work/bin"
cat >"$work/bin/sinfo" <<'END'
#!/bin/sh
case $* in *'--format=%N|%X|%Y|%c|%m|%f|%P'*) ;; *) exit 1 ;; esac
{
    for i in $(seq 256); do echo "n$i|2|24|96|190000|skylake,ib|big"; done
    echo 'old1|2|8|16|4500|haswell,ib|big'
    echo 'd1|1|16|16|1|(null)|short*'
    echo 'd2|1|4|2|1|(null)|short*'
} | case $* in *--partition*) grep "|${*##*--partition }\*\?\$" || true ;; *) cat ;; esac
END
printf '#!/bin/sh\necho 5\n' >"$work/bin/sbatch"
printf '#!/bin/sh\necho "{\\"jobs\\": []}"\n' >"$work/bin/squeue"
cp "$work/bin/squeue" "$work/bin/scancel"
chmod +x "$work"/bin/*
export PATH=$work/bin:$PATH

document() { # CLUSTER
    jq -n "{preset: \"surfsara-24k\", data: {train: \"/scratch/imagenet/train\", eval: \"/scratch/imagenet/validation\", locality: \"node\",
        train_images: 1281167, eval_images: 50000}, cluster: ({launcher: \"slurm\", nodes: 256} + $1)}" >"$work/job.json"
}
plan() { # CLUSTER: sets $body
    document "$1"
    call --data-binary "@$work/job.json" /v1/plan
}
cpus() {
    jq -r '.sbatch // "none"' <<<"$body" | sed -n 's/.*--cpus-per-task=//p'
}
threads() {
    jq -r '.explain.threads_per_worker | "\(.value) \(.source)"' <<<"$body"
}

start_runs
plan '{partition: "big", constraint: "skylake"}'
want 200 "a job of 256 nodes that does not say how many threads"
is "$(cpus)" 24 "two workers share the 48 cores of a node, and not its hardware threads"
is "$(threads)" "24 sinfo: the fewest of the 256 nodes of partition big with skylake" "the plan says where that is from"
like "$(jq -r .sbatch <<<"$body")" '^# 24 threads per worker, from the cores of a node \(sinfo: the fewest of the 256 nodes' "so does the script"
like "$(jq -r .sbatch <<<"$body")" '^#SBATCH --threads-per-core=1$' "which are cores"
plan '{partition: "big", constraint: "skylake", smt: true}'
is "$(cpus)" 48 "with cluster.smt they share the 96 hardware threads"
is "$(jq -c '.explain.threads_per_worker | [.formula, .inputs.node_hardware_threads]' <<<"$body")" '["node_hardware_threads / workers_per_node",96]' "the plan says so"
is "$(jq -r .sbatch <<<"$body" | grep -c -- --threads-per-core)" 0 "and Slurm may give both of a core"
plan '{partition: "big"}'
is "$(cpus) $(threads)" "8 8 sinfo: the fewest of the 257 nodes of partition big" "the smallest of the nodes decides"
plan '{workers_per_node: 1}'
is "$(cpus) $(threads)" "2 2 sinfo: the fewest of the 2 nodes of the default partition" "without a partition it is the default one's; no more than Slurm's CPUs"
plan '{partition: "big", constraint: "skylake", workers_per_node: 0}'
is "$(jq -c '[.explain.workers_per_node.value, .explain.threads_per_worker.value, .world_size]' <<<"$body")" '[2,24,512]' \
    "workers_per_node 0: a worker for each socket, with all its cores"
like "$(jq -r .explain.workers_per_node.note <<<"$body")" "a worker stays within 24 cores of one NUMA domain or socket" "the plan says why"
is "$(cpus)" 24 "the script has them"
is "$(jq .explain.workers_per_node.inputs.node_memory_bytes <<<"$body")" $((190000 * 1024 * 1024)) "and how much memory Slurm has of a node"
plan '{partition: "big", constraint: "haswell", workers_per_node: 0}'
like "$(jq -r '.explain.workers_per_node | "\(.value) \(.note)"' <<<"$body")" "^1 .*choices? would need more than the node's 4.72 GB of memory" \
    "fewer workers where the memory of the smallest node does not suffice for more"
plan '{workers_per_node: 0}'
is "$(jq .explain.workers_per_node.inputs.node_memory_bytes <<<"$body")" null "a memory that Slurm's settings leave out is not known"
plan '{partition: "big", threads_per_worker: 3}'
is "$(cpus) $(threads)" "3 3 the job document" "a number that is stated stays"
plan '{workers_per_node: 4}'
want 422 "more workers than a node has cores"
like "$body" 'workers_per_node.*are 4, but a node has 2 cores \(sinfo: the fewest' "are refused with both numbers"

document '{partition: "big", constraint: "skylake"}'
call --data-binary "@$work/job.json" /v1/jobs
want 201 "the job is taken"
id=$(jq .id <<<"$body")
is "$(job "$id" spec.cluster.threads_per_worker)" 24 "its document has the number"
ok "its script is written" eventually test -s "$state/jobs/$id/attempt-1/sbatch"
like "$(cat "$state/jobs/$id/attempt-1/sbatch")" '^#SBATCH --nodes=256 --ntasks-per-node=2 --cpus-per-task=24$' "and has it"
like "$(cat "$state/jobs/$id/attempt-1/sbatch")" '^# 24 threads per worker, .*\(sinfo: the fewest of the 256 nodes of partition big with skylake\)$' \
    "with where it is from"

"$trainctl" --server "$url" submit --print-sbatch --set data.train_images=null --train-images 1281167 "$work/job.json" >"$work/script" 2>&1
is "$?" 0 "submit --print-sbatch"
like "$(cat "$work/script")" 'cpus-per-task=24' "has the same"
"$trainctl" --server http://127.0.0.1:1 plan "$work/job.json" >"$work/plan" 2>&1
is "$?" 0 "trainctl plan needs neither a daemon nor Slurm"
like "$(cat "$work/plan")" '^threads_per_worker +by Slurm +a node.s cores / workers_per_node' "and guesses no number"

# ------------------------------------------------------------------ nobody knows

plan '{partition: "nowhere"}'
want 200 "a partition that Slurm does not know can be planned"
is "$(cpus) $(threads | cut -d' ' -f1)" " null" "without threads and without a script"
like "$(jq -r '.warnings[-1]' <<<"$body")" 'unknown: sinfo knows no nodes of partition nowhere; set cluster.threads_per_worker, or have slurm.node_cores' \
    "with a warning that names the keys"
call --data-binary "@$work/job.json" /v1/jobs
refused 422 invalid 'sinfo knows no nodes of partition nowhere; set cluster.threads_per_worker, or have slurm.node_cores' "but not run"
write_script "$work/bin/sinfo" <<'END'
#!/bin/sh
echo "slurm_load_node error: Unable to contact slurm controller" >&2
exit 1
END
document '{partition: "big"}'
call --data-binary "@$work/job.json" /v1/jobs
refused 422 invalid 'unknown: slurm_load_node error: Unable to contact slurm controller; set cluster.threads_per_worker' "nor is one while Slurm is away"
"$trainctl" --server "$url" submit --print-sbatch "$work/job.json" >"$work/script" 2>&1
isnt=$?
ok "submit --print-sbatch prints none" test $isnt != 0
like "$(cat "$work/script")" 'no batch script: .*Unable to contact slurm controller; set cluster.threads_per_worker' "and says why"

# ------------------------------------------------------------------ the administrator knows

stop_daemon
start_runs "slurm.node_cores = 40"
plan '{partition: "big"}'
is "$(cpus) $(threads)" "20 20 slurm.node_cores of traind.conf" "slurm.node_cores goes before what Slurm says"
plan '{partition: "big", workers_per_node: 0}'
is "$(jq -c '.explain.workers_per_node | [.source, .inputs.node_memory_bytes]' <<<"$body")" '["slurm.node_cores of traind.conf",null]' \
    "and suffices to choose workers while Slurm is away"
ok "the daemon stops" stop_daemon
done_testing
