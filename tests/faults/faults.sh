#!/usr/bin/env bash
# Faults drawn from a seed against running daemons with real training jobs (faults.py): a dozen here, in shared memory and a temporary folder of its own.
#   FAULTS=1000 SEED=7 make faults       FAULT=17 SEED=7 make faults (that one again)      FAULTS_SECONDS: stop then      FAULTS_KEEP: a folder for what findings left
#   FAULTS_ON=hosts, FAULTS_ON=slurm     on two hosts in network namespaces, or on a Slurm cluster of three nodes (cluster.py)
if [ -z "${TRAIND_TEST_NAMESPACE-}" ]; then
    if unshare -m sh -c 'mount -t tmpfs none /mnt' 2>/dev/null; then
        TRAIND_TEST_NAMESPACE=1 exec unshare -m "$BASH" "$0"
    fi
    echo "1..0 # SKIP needs mounts (root)"
    exit 0
fi
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
work=$(mktemp -d /tmp/faults.XXXXXX)
trap 'umount -l "$work" 2>/dev/null; rm -rf "$work"' EXIT
mount -t tmpfs none /dev/shm
mount -t tmpfs none "$work"
# shellcheck source=tests/system/idx.sh.inc
. "$top_srcdir/tests/system/idx.sh.inc"
small_data || skip_all "the data could not be converted"
mkdir "$work/tmp"
export TMPDIR=$work/tmp XDG_CACHE_HOME=$work/cache OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TRAIND_PRESETS=$top_srcdir/etc/presets
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY TRAIND_STATE
ulimit -c 0
/usr/bin/python3 "$top_srcdir/tests/faults/faults.py" --build "$top_builddir" --work "$work" --data "$work/data" --faults "${FAULTS:-12}" --seed "${SEED:-1}" \
    --lanes "${FAULTS_LANES:-4}" --seconds "${FAULTS_SECONDS:-1000000}" ${FAULT:+--fault "$FAULT"}
