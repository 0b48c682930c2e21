#!/usr/bin/env bash
# The notices of a job on its page and in the form, in Debian's Chromium against a real daemon and a real receiver. Prints TAP (notices.mjs).
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/lib/daemon.sh.inc"
settings=("notify_allow = 127.0.0.1" "notify_retry_seconds = 1000")
story notices.mjs
