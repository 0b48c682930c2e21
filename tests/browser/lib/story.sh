#!/usr/bin/env bash
# story.sh STORY.mjs: plays a story in Debian's Chromium against the real daemon; prints TAP. Lines of the story's head say what it needs:
#   // traind.conf: KEY = VALUE      a setting of the daemon, whose worker sleeps after each step (tests/paced)
#   // environment: NAME=VALUE
# The story's arguments: http://HOST:PORT SOCKET PID TRAIND STATE CONFIG.
# shellcheck source=tests/browser/lib/daemon.sh.inc
. "$(dirname "$0")/daemon.sh.inc"
needs sqlite3
mapfile -t settings < <(sed -n 's|^// traind.conf: ||p' "$1")
while read -r variable; do
    export "${variable?}"
done < <(sed -n 's|^// environment: ||p' "$1")
story "${1##*/}"
