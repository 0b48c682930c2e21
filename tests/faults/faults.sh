#!/usr/bin/env bash
# Faults drawn from a seed against running daemons with real training jobs (faults.py).
#   FAULTS=1000 SEED=7 make faults     FAULT=17 SEED=7 make faults (that one again)     FAULTS_SECONDS: the time after which none is drawn
#   FAULTS_ONLY='killed|disk'          kinds, by a regular expression                   FAULTS_KEEP: a folder for what findings left
#   FAULTS_ON=hosts, FAULTS_ON=slurm   on two hosts in network namespaces, or on a Slurm cluster of three nodes (cluster.py)
# shellcheck source=tests/faults/lib.sh.inc
. "${top_srcdir:?run it by make check}/tests/faults/lib.sh.inc"
work=$(mktemp -d /tmp/faults.XXXXXX)
trap 'umount -l "$work" 2>/dev/null; rm -rf "$work"' EXIT
mount -t tmpfs none "$work"
# shellcheck source=tests/system/idx.sh.inc
. "$top_srcdir/tests/system/idx.sh.inc"
small_data || skip_all "the data could not be converted"
export XDG_CACHE_HOME=$work/cache TRAIND_PRESETS=$top_srcdir/etc/presets
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY TRAIND_STATE
campaign faults.py --data "$work/data" --faults "${FAULTS:-12}" --lanes "${FAULTS_LANES:-4}"
