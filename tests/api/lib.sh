# Shared by the tests below tests/api/ and others that need a daemon: the checks of tests/tap.sh, and the real traind with a state folder of its
# own. Source it, call the checks, and end with done_testing.
#
#   start_daemon [ARGUMENT...]   on a free port; sets $url, $state, $socket, $daemon (its pid). Without tokens over TCP, unless the
#                                settings given with --config say require_token
#   stop_daemon                  SIGTERM, waits; fails if it does not end in order
#   kill_daemon                  SIGKILL, waits
#   call [CURL ARGUMENT...] PATH  one request; sets $status, $body and $headers
#   no_job_left                   all have ended
#   get PATH                      prints the answer to a GET, without a process; fails unless it is 2xx
#   ok NAME COMMAND...           is GOT EXPECTED NAME     like GOT REGEX NAME
#   want STATUS NAME             the last call's status   json JQ EXPECTED NAME   of the last call's body
# shellcheck shell=bash
set -u

top_builddir=${top_builddir:-$(pwd)}
top_srcdir=${top_srcdir:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"
traind=${TRAIND:-$top_builddir/traind}
export TRAIND_PRESETS=${TRAIND_PRESETS:-$top_srcdir/etc/presets}
unset TRAIND_STATE TRAINCTL_CONTEXT
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY

daemon=
work=$(mktemp -d "${TMPDIR:-/tmp}/traind-api.XXXXXX")
export XDG_CONFIG_HOME=$work/config # not the user's own contexts and token
state=$work/state
export socket=$state/traind.sock

clean_up() {
    [ -z "$daemon" ] || { kill -KILL "$daemon" && wait "$daemon"; } 2>/dev/null
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

# ------------------------------------------------------------------ the daemon

answers() {
    local url
    kill -0 "$daemon" 2>/dev/null || return 0 # it died: no use in waiting
    read -r url 2>/dev/null <"$state/listen" && get /healthz >/dev/null
}

# Tests that are not about tokens speak to an open loopback. Sets $config: the settings among ARGUMENTS, or new ones.
open_loopback() { # ARGUMENT...
    config=$work/open.conf
    while [ $# -gt 1 ] && [ "$1" != --config ]; do shift; done
    [ "${1-}" != --config ] || config=$2
    case $config in "$work"/*) grep -qs '^require_token' "$config" || echo 'require_token = no' >>"$config" ;; esac
}

start_daemon() {
    local config
    rm -f "$state/listen"
    open_loopback "$@"
    "$traind" --config "$config" --state "$state" --listen 127.0.0.1:0 "$@" >>"$work/daemon.log" 2>&1 &
    daemon=$!
    if ! eventually answers || ! kill -0 "$daemon" 2>/dev/null; then
        echo "Bail out! traind did not start"
        sed 's/^/# /' "$work/daemon.log"
        exit 1
    fi
    url=$(cat "$state/listen")
}

stop_daemon() {
    local result=0
    kill -TERM "$daemon"
    wait "$daemon" || result=$?
    daemon=
    [ "$result" = 0 ] || sed 's/^/# /' "$work/daemon.log"
    return "$result"
}

kill_daemon() {
    kill -KILL "$daemon"
    wait "$daemon" 2>/dev/null
    daemon=
}

# ------------------------------------------------------------------ requests

# What a plain GET is answered with, as by `curl -sf "$url$1"`, of whose start's fifteen milliseconds it needs one.
get() { # PATH
    local tap_web tap_answer address=${url#http://}
    [[ $url == http://127.* ]] || {
        curl -sf "$url$1"
        return
    }
    { exec {tap_web}<>"/dev/tcp/${address/://}"; } 2>/dev/null || return
    printf 'GET %s HTTP/1.0\r\nHost: %s\r\n\r\n' "$1" "$address" >&"$tap_web"
    IFS= read -rN 100000000 -t 60 -u "$tap_web" tap_answer # to its end
    exec {tap_web}>&-
    printf %s "${tap_answer#*$'\r\n\r\n'}"
    [[ $tap_answer == HTTP/1.?' 2'* ]]
}

no_job_left() { # queued or under way: without jq, as it is asked again and again
    [[ $(get "/v1/jobs?state=queued,starting,running,evaluating") =~ \"jobs\":\ *\[\] ]]
}

call() {
    local path=${!#}
    status=$(curl -sS --path-as-is -o "$work/body" -D "$work/headers" -w '%{http_code}' "${@:1:$#-1}" "$url$path" 2>"$work/curl")
    { body=$(<"$work/body"); } 2>/dev/null # which leaves out the bytes that are 0
    { headers=$(<"$work/headers"); } 2>/dev/null
    headers=${headers//$'\r'/}
}

want() {
    local differs=0
    [ "$status" = "$1" ] || differs=1
    report $differs "$2" "status:   $status" "expected: $1" "body:     $body" "curl:     $(cat "$work/curl")"
}

json() {
    is "$(jq -cr "$1" <<<"$body" 2>&1)" "$2" "$3"
}

# The last call was refused: STATUS, problem type, words in its detail or its errors.
refused() {
    want "$1" "$4"
    like "$headers" '^Content-Type: application/problem\+json' "$4: as problem+json"
    is "$(jq -r '"\(.status) \(.type | sub(".*:"; ""))"' <<<"$body" 2>&1)" "$1 $2" "$4: its type"
    like "$(jq -r '.detail, (.errors[]? | .pointer, .message, .suggestion)' <<<"$body" 2>&1)" "$3" "$4: its words"
}
