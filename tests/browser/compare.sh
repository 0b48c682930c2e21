#!/usr/bin/env bash
# Runs and sweeps side by side on the dashboard, in Debian's Chromium against a real daemon that really trains. Prints TAP (compare.mjs).
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/lib/daemon.sh.inc"
settings=("slots = 2")
story compare.mjs
