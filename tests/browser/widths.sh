#!/usr/bin/env bash
# Every page of the dashboard at the widths of phones, tablets and screens, in Debian's Chromium. Prints TAP (widths.mjs).
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/lib/daemon.sh.inc"
needs sqlite3
settings=("slots = 1" "node_check_seconds = 0")
story widths.mjs
