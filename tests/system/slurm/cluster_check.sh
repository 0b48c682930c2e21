#!/usr/bin/env bash
# The Slurm cluster that other tests use: it starts, runs a program on both nodes, survives the death of a node, and leaves nothing running.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"

work=$(mktemp -d)
cluster() { "$top_srcdir/tests/system/slurm/cluster.sh" "$1" "$work/cluster" "${@:2}"; }
trap 'cluster stop; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# Any process that was started with this cluster's configuration, or that names its folder
left() {
    local process
    for process in /proc/[0-9]*; do
        grep -qzxF "SLURM_CONF=$work/cluster/etc/slurm.conf" "$process/environ" 2>/dev/null ||
            grep -qF "$work/cluster/" "$process/cmdline" 2>/dev/null || continue
        echo "${process#/proc/}"
    done
}
nothing_left() { [ -z "$(left)" ]; }
said=$(cluster start 2 2>&1)
status=$?
[ $status != 77 ] || skip_all "${said#skip: }"
is $status 0 "a cluster of two nodes starts"
# shellcheck source=/dev/null
. "$work/cluster/env.sh"
is "$(srun --nodes=2 hostname | sort | tr '\n' ' ')" "n1 n2 " "a program runs on both, each with its hostname"

# mpirun in a batch job, and srun with PMIx, as jobs of traind are started
cat >"$work/batch" <<'END'
#!/bin/sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl_tcp_if_include=lo
mpirun --map-by ppr:2:node sh -c 'echo mpirun $(hostname) $OMPI_COMM_WORLD_SIZE' | sort
srun --mpi=pmix sh -c 'echo srun $(hostname) ${PMIX_RANK:+a rank}' | sort
echo end
END
sbatch --quiet --nodes=2 --ntasks-per-node=2 --output="$work/out" "$work/batch"
ok "a batch job ends" eventually grep -qsx end "$work/out"
# A step may have to wait a moment until mpirun's is over, of which srun tells.
is "$(grep -v '^srun: .*\(disabled\|retrying\|created\)' "$work/out" | sort | uniq -c | tr -s ' ' | tr '\n' ',')" \
    " 1 end, 2 mpirun n1 4, 2 mpirun n2 4, 2 srun n1 a rank, 2 srun n2 a rank," "mpirun and srun start two ranks on each node"

is "$(cluster start 2 2>&1 | grep -c 'in use')" 1 "a folder in use is refused"
cluster kill n2
cluster status >/dev/null
is $? 2 "a killed node is seen to be down"
cluster revive n2
ok "it comes back" eventually srun --immediate=1 --nodes=2 true
is "$(cluster stop 2>&1)" "" "the cluster stops"
ok "no process is left" eventually nothing_left

echo 'SelectType=select/there-is-none' >"$work/bad.conf"
said=$(SLURM_CLUSTER_CONF=$work/bad.conf cluster start 2 2>&1)
is $? 1 "a bad configuration does not start"
like "$said" "there-is-none" "Slurm's words are shown"
ok "and leaves no process" eventually nothing_left

done_testing
