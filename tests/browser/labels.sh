#!/usr/bin/env bash
# Jobs are labelled, found and changed several at a time in Debian's Chromium. Prints TAP (labels.mjs).
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/lib/daemon.sh.inc"
story labels.mjs "${SCREENSHOTS:-}"
