#!/usr/bin/env bash
# The dashboard in Debian's Chromium against a real daemon and a real short training. Prints TAP (page.mjs).
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/lib/daemon.sh.inc"
settings=("cancel_grace_seconds = 600") # however busy the machine is, a cancelled job ends by its checkpoint
story page.mjs
