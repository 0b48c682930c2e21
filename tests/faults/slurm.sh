#!/usr/bin/env bash
# Faults of Slurm on a cluster of three nodes (cluster.py); the variables of faults.sh.
#   FAULTS_ON=slurm FAULTS=40 SEED=7 make faults
# shellcheck source=tests/faults/lib.sh.inc
. "${top_srcdir:?run it by make check}/tests/faults/lib.sh.inc"
# shellcheck source=tests/system/slurm/slurm.sh.inc
. "$top_srcdir/tests/system/slurm/slurm.sh.inc"
echo SlurmdTimeout=25 >"$work/slurm.conf" # a dead node is noticed so soon
export SLURM_CLUSTER_CONF=$work/slurm.conf SLURM_CLUSTER_CPUS=2
start_cluster 3
real_images
campaign cluster.py --data "$data" --faults "${FAULTS:-12}" --lanes 1 --script "$top_srcdir/tests/system/slurm/cluster.sh" --lab "$work/cluster" \
    --setup "$work/setup.sh"
