#!/usr/bin/env bash
# The dashboard in Debian's Chromium against a real daemon and a real short training. Prints TAP (page.mjs).
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/lib/daemon.sh.inc"
story page.mjs
