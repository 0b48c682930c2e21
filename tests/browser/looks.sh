#!/usr/bin/env bash
# The pages that show results, from phones to wide screens, dark and light, in Debian's Chromium: axe, whole words, nothing out of
# sight. Prints TAP (looks.mjs).
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/lib/daemon.sh.inc"
settings=("slots = 2" "node_check_seconds = 0")
story looks.mjs
