#!/usr/bin/env bash
# Where the keyboard is after a dialog, after what it was on went, and on a new page; and two tabs at once, in Debian's Chromium against
# a real daemon. Prints TAP (focus.mjs).
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/lib/daemon.sh.inc"
settings=("slots = 1" "cancel_grace_seconds = 600")
story focus.mjs
