#!/usr/bin/env bash
# Where mpirun puts the ranks for the options of common/system/placement.c, on machines simulated by hwloc.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
# shellcheck source=tests/system/placement/map.sh.inc
. "$top_srcdir/tests/system/placement/map.sh.inc"
unset HWLOC_COMPONENTS # it would leave out what HWLOC_SYNTHETIC makes up
private_folder
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
echo 'localhost slots=64' >"$work/hostfile"

cores() { # MACHINE RANKS WORDS [TO]: each rank's first and last core; "refused": Open MPI does not bind so
    HWLOC_SYNTHETIC=$1 mpirun --hostfile "$work/hostfile" --do-not-launch --display-map -np "$2" --map-by $3 --bind-to "${4:-core}" true >"$work/map" 2>&1
    ! grep -q 'CPUs in more than one' "$work/map" || echo refused
    bound_cores "${1##*pu:}" <"$work/map"
}
packed='0-15 16-31 32-47'
[ "$open_mpi" = 4 ] || packed=refused # and so placement.c does not ask it
is "$(cores 'socket:2 numa:1 core:24 pu:1' 3 slot:PE=16)" "$packed" "2 x 24: packed, the second rank would span the sockets"
is "$(cores 'socket:2 numa:1 core:24 pu:1' 2 numa:PE=22)" '0-21 24-45' "2 x 24: dealt out over NUMA domains, it does not"
is "$(cores 'socket:2 numa:1 core:32 pu:2' 2 numa:PE=32)" '0-31 32-63' "2 x 32 with hardware threads"
is "$(cores 'socket:2 numa:2 core:12 pu:1' 4 numa:PE=12)" '0-11 12-23 24-35 36-47' "four domains on two sockets"
is "$(cores 'socket:2 numa:2 core:12 pu:1' 2 socket:PE=22)" '0-21 24-45' "workers that fit a socket, but no domain of it"
is "$(cores 'socket:1 numa:1 core:2 pu:1' 2 slot:PE=1)" '0-0 1-1' "one socket"

# Two nodes with as many slots as workers each, as Slurm and the hostfile of named hosts give them.
printf '%s slots=2\n' n1 n2 >"$work/hostfile"
is "$(cores 'socket:2 numa:1 core:24 pu:1' 4 numa:PE=22)" '0-21 24-45 0-21 24-45' "the same on each of two nodes"
is "$(cores 'socket:2 numa:2 core:12 pu:1' 4 socket:PE=7)" '0-6 24-30 0-6 24-30' "over the sockets of each"

# Hardware threads as slots: 44 of them are 22 cores.
is "$(cores 'socket:2 numa:1 core:32 pu:2' 4 'numa:PE=44 --use-hwthread-cpus' hwthread)" '0-21 32-53 0-21 32-53' \
    "2 x 32: hardware threads of two domains"
is "$(cores 'socket:1 numa:1 core:2 pu:2' 4 'slot:PE=2 --use-hwthread-cpus' hwthread)" '0-0 1-1 0-0 1-1' \
    "two hardware threads of a core each"

done_testing
