#!/usr/bin/env bash
# The section Provenance of the job page in Debian's Chromium, against a real daemon and real trainings. Prints TAP (provenance.mjs).
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/lib/daemon.sh.inc"
export TRAINCOMM_HOST_RANKS=1 # each rank sums gradients as if it were on a machine of its own
story provenance.mjs
