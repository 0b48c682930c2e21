#!/usr/bin/env bash
# Times on the dashboard: of a run of weeks, in zones of 45 minutes, over the end of summer time, and by a clock that is hours off. In Debian's
# Chromium against a real daemon. Prints TAP (clocks.mjs).
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/lib/daemon.sh.inc"
needs sqlite3
settings=("slots = 1")
story clocks.mjs
