#!/usr/bin/env bash
# The charts of the dashboard in Debian's Chromium: axis titles, cursor, smoothing, log scales, full screen, paper. Prints TAP (charts.mjs).
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/lib/daemon.sh.inc"
settings=("slots = 2" "node_check_seconds = 0")
story charts.mjs
