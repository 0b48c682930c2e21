#!/usr/bin/env bash
# Jobs in groups and the shares of users in Debian's Chromium, against a real daemon and real trainings. Prints TAP (groups.mjs).
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/lib/daemon.sh.inc"
settings=("slots = 2" "max_slots_per_user = 2" "fair_share_weight = 10")
story groups.mjs
