#!/usr/bin/env bash
# The dashboard of a daemon that wants tokens and is killed and started again while one looks, in Debian's Chromium. Prints TAP
# (token.mjs).
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/lib/daemon.sh.inc"
settings=("require_token = yes")
story token.mjs
