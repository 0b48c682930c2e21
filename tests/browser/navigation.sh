#!/usr/bin/env bash
# The pages that the dashboard's head names, its keys, and addresses of what does not exist, in Debian's Chromium. Prints TAP (navigation.mjs).
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/lib/daemon.sh.inc"
settings=("slots = 1" "node_check_seconds = 0")
story navigation.mjs
