#!/usr/bin/env bash
# Faults of Slurm, drawn from a seed, on a cluster of three nodes (cluster.py); the variables of faults.sh.
#   FAULTS_ON=slurm FAULTS=40 SEED=7 make faults
if [ -z "${TRAIND_TEST_NAMESPACE-}" ] && unshare -m true 2>/dev/null; then
    TRAIND_TEST_NAMESPACE=1 exec unshare -m "$BASH" "$0"
fi
# shellcheck source=tests/system/slurm/slurm.sh.inc
. "${top_srcdir:?run it by make faults}/tests/system/slurm/slurm.sh.inc"
mount -t tmpfs none /dev/shm # of its own: nothing may be left there
echo SlurmdTimeout=25 >"$work/slurm.conf" # a dead node is noticed so soon
export SLURM_CLUSTER_CONF=$work/slurm.conf SLURM_CLUSTER_CPUS=2
start_cluster 3
real_images
mkdir "$work/tmp"
ulimit -c 0
TMPDIR=$work/tmp /usr/bin/python3 "$top_srcdir/tests/faults/cluster.py" --build "$top_builddir" --work "$work" --data "$data" \
    --faults "${FAULTS:-12}" --seed "${SEED:-1}" --lanes 1 --seconds "${FAULTS_SECONDS:-1000000}" ${FAULT:+--fault "$FAULT"} \
    --script "$top_srcdir/tests/system/slurm/cluster.sh" --lab "$work/cluster" --setup "$work/setup.sh"
