#!/usr/bin/env bash
# The dashboard beside more jobs than it shows at a time, in Debian's Chromium against a real daemon. Prints TAP (many.mjs).
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/lib/daemon.sh.inc"
needs sqlite3
story many.mjs
