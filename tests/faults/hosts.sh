#!/usr/bin/env bash
# Faults of two hosts in network namespaces and of the link between them (cluster.py); the variables of faults.sh. Without FAULTS, one of
# each kind that is found in its own way: what is found in time, named, leaves nothing on either host, and the job goes on.
#   FAULTS_ON=hosts FAULTS=40 SEED=7 make faults
# shellcheck source=tests/faults/lib.sh.inc
. "${top_srcdir:?run it by make check}/tests/faults/lib.sh.inc"
# shellcheck source=tests/system/hosts/hosts.sh.inc
. "$top_srcdir/tests/system/hosts/hosts.sh.inc"
hosts_up 2
small_data
in_host=(ip netns exec "$h1")
[ "${FAULTS-}" ] || FAULTS_ONLY="${FAULTS_ONLY-for up to 3 s|cut for ever|daemon killed|rank (killed|stopped for ever)}"
campaign cluster.py --data "$work/data" --faults "${FAULTS:-6}" --lanes 1 --net "$net" --lab "$lab" --hosts "$h1" "$h2"
