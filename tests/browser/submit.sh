#!/usr/bin/env bash
# Jobs submitted by the dashboard's form, in Debian's Chromium against a real daemon that really trains. Prints TAP (submit.mjs).
# shellcheck source=tests/browser/daemon.sh.inc
. "$(dirname "$0")/daemon.sh.inc"
story submit.mjs
