#!/usr/bin/env bash
# Workers in Slurm go to the NUMA domains of their node: the script asks the node itself, and the real mpirun takes what it says, on this
# machine and on machines simulated for both (a copy of /sys, HWLOC_SYNTHETIC). srun binds, too.
# shellcheck source=tests/system/slurm/slurm.sh.inc
. "${top_srcdir:?run it by make check}/tests/system/slurm/slurm.sh.inc"
# shellcheck source=tests/system/placement/map.sh.inc
. "$top_srcdir/tests/system/placement/map.sh.inc"
unset HWLOC_COMPONENTS # it would leave out what HWLOC_SYNTHETIC makes up
[ "$(nproc)" -ge 2 ] || skip_all "needs two cores"
echo "TaskPlugin=task/affinity" >"$work/slurm.conf"
export SLURM_CLUSTER_CONF=$work/slurm.conf SLURM_CLUSTER_CPUS=64
start_cluster 2
cp "$work/setup.sh" "$work/plain.sh"
# The worker, on the machine that $work/sys describes where there is one.
write_script "$work/worker" <<END
#!/bin/sh
[ "\$1" = --placement ] && [ -e "$work/sys" ] && set -- "\$@" --sys "$work/sys"
exec "$top_builddir/tests/bin/train-worker" "\$@"
END
start_placed() { # SETTING...
    printf '%s\n' "worker = $work/worker" "slots = 2" "slurm.poll_seconds = 1" "slurm.setup = $work/setup.sh" "$@" >"$work/traind.conf"
    restart_runs
}
# machine SOCKETS DOMAINS CORES THREADS: numbers of each inside the next; the second threads are numbered after all cores
machine() {
    local all=$(($1 * $2 * $3)) cpu core d list
    siblings=$4
    rm -rf "$work/sys"
    for ((cpu = 0; cpu < all * $4; cpu++)); do
        core=$((cpu % all)) list=$((cpu % all))
        [ "$4" = 1 ] || list=$core,$((core + all))
        mkdir -p "$work/sys/devices/system/cpu/cpu$cpu/topology"
        echo $((core / ($2 * $3))) >"$work/sys/devices/system/cpu/cpu$cpu/topology/physical_package_id"
        echo "$list" >"$work/sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list"
    done
    for ((d = 0; d < $1 * $2; d++)); do
        mkdir -p "$work/sys/devices/system/node/node$d"
        echo "$((d * $3))-$(((d + 1) * $3 - 1))$([ "$4" = 1 ] || echo ",$((all + d * $3))-$((all + (d + 1) * $3 - 1))")" >"$work/sys/devices/system/node/node$d/cpulist"
    done
    { cat "$work/plain.sh" && echo "export HWLOC_SYNTHETIC='socket:$1 numa:$2 core:$3 pu:$4'"; } >"$work/setup.sh"
}
placed() { # of the last job
    sed -n "s/^traind: on [^ ]*: mpirun //p" "$state/jobs/$id/attempt-1/stdout.log"
}
got() { # FILTER of run_start's binding
    jq -c "select(.type == \"run_start\") | .binding | $1" "$state/jobs/$id/attempt-1/events.jsonl"
}

# ---- this machine
start_placed
slurm_job "here" 2 '.cluster.nodes = 1 | .cluster.bind = "core"'
ok "a job on this machine succeeds" ends "$id" succeeded
is "$(placed)" "--map-by slot:PE=1 --bind-to core" "mpirun takes the node's answer"
is "$(got 'map(.cpus) | unique | length')" 2 "each rank has its own core"
slurm_job "none" 2 '.cluster.nodes = 1 | .cluster.bind = "none"'
ok "a job that binds nothing succeeds" ends "$id" succeeded
is "$(got 'map(.cpus) | unique | length')" 1 "its ranks may run on the same cores"

# ---- made up: mpirun shows where it would put the ranks, and ends
# maps NODES WORKERS THREADS CHANGES: sets $map to the first and last core of each rank
maps() {
    fixture_job "maps" ".cluster += {nodes: $1, workers_per_node: $2, threads_per_worker: $3} | .restart = {max: 0} | .cluster.mpi_args = [\"--do-not-launch\", \"--display-map\"] | ${4:-.}"
    call --unix-socket "$socket" -H 'Content-Type: application/json' --data-binary "@$work/job.json" /v1/jobs # root may give any argument
    id=$(jq -r '.id // 0' <<<"$body")
    eventually in_state "$id" 'failed|succeeded'
    map=$(bound_cores "$siblings" <"$state/jobs/$id/attempt-1/stdout.log")
}
machine 2 1 24 1
maps 2 2 22
is "$map" "0-21 24-45 0-21 24-45" "2 x 24 cores: two workers of 22 threads lie in a domain each, on both nodes"
is "$(placed)" "--map-by numa:PE=22 --bind-to core" "by NUMA domain"
maps 2 2 22 '.cluster.bind = "core"'
packed="0-21 22-43"
[ "$open_mpi" = 4 ] || packed="0-21 24-45" # which binds no rank to cores of two sockets
is "$map" "$packed $packed" "packed if the document asks for it"
machine 2 2 12 1
maps 1 2 22
is "$map" "0-21 24-45" "four domains of 12: they lie in a socket each"
is "$(placed)" "--map-by socket:PE=22 --bind-to core" "by socket"
maps 1 2 22 '.cluster.bind = "numa"'
is "$map" "" "into no domain, where the document wants that"
like "$(job "$id" reason)" "cluster.bind: n1 has 4 NUMA domains of 12 cores, too few for 2 workers of 22 threads: use fewer" \
    "the job fails with what the node has"
machine 2 1 32 2
maps 1 2 32
is "$map" "0-31 32-63" "2 x 32 cores with hardware threads"
maps 1 2 32 '.cluster.smt = true'
is "$map" "0-15 32-47" "32 hardware threads are 16 cores"
is "$(placed)" "--map-by numa:PE=32 --bind-to hwthread --use-hwthread-cpus" "by NUMA domain"

# ---- srun
stop_daemon
rm -rf "$work/sys"
cp "$work/plain.sh" "$work/setup.sh"
start_placed "slurm.start = srun"
slurm_job "by srun" 2 '.cluster.nodes = 1 | .cluster.bind = "core"'
ok "ranks that srun starts succeed" ends "$id" succeeded
is "$(got 'map(.cpus) | unique | length')" 2 "each has its own core"
ok "the daemon stops" stop_daemon
done_testing
