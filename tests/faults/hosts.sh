#!/usr/bin/env bash
# Faults of hosts and the links between them, drawn from a seed, on two hosts in network namespaces (cluster.py); the variables of faults.sh.
#   FAULTS_ON=hosts FAULTS=40 SEED=7 make faults
if [ -z "${TRAIND_TEST_NAMESPACE-}" ] && unshare -m true 2>/dev/null; then
    TRAIND_TEST_NAMESPACE=1 exec unshare -m "$BASH" "$0"
fi
# shellcheck source=tests/system/hosts/hosts.sh.inc
. "${top_srcdir:?run it by make faults}/tests/system/hosts/hosts.sh.inc"
mount -t tmpfs none /dev/shm # of its own: nothing may be left there
hosts_up 2
small_data
mkdir "$work/tmp"
ulimit -c 0
TMPDIR=$work/tmp OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ip netns exec "$h1" \
    /usr/bin/python3 "$top_srcdir/tests/faults/cluster.py" --build "$top_builddir" --work "$work" --data "$work/data" \
    --faults "${FAULTS:-12}" --seed "${SEED:-1}" --lanes 1 --seconds "${FAULTS_SECONDS:-1000000}" ${FAULT:+--fault "$FAULT"} \
    --net "$net" --lab "$lab" --hosts "$h1" "$h2"
