#!/usr/bin/env bash
# Jobs submitted by the dashboard's form, in Debian's Chromium against a real daemon that really trains. Prints TAP (submit.mjs).
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/lib/daemon.sh.inc"
story submit.mjs
