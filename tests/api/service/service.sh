#!/usr/bin/env bash
# The systemd unit is one that systemd takes, and the daemon tells systemd what it waits for.
. "$(dirname "$0")/../lib.sh"

if command -v systemd-analyze >/dev/null; then
    mkdir "$work/unit"
    sed "s|@bindir@/traind|$(readlink -f "$traind")|; s|@sysconfdir@|$work|" "$top_srcdir/etc/traind.service.in" >"$work/unit/traind.service"
    cp "$top_srcdir/etc/traind.socket.in" "$work/unit/traind.socket"
    for unit in traind.service traind.socket; do
        out=$(systemd-analyze verify --man=no "$work/unit/$unit" 2>&1)
        is "$(grep "$unit" <<<"$out")" "" "systemd-analyze verify finds nothing in $unit"
    done
    ok "systemd-analyze security: an exposure of 1.9 at most" systemd-analyze security --offline=true --no-pager --threshold=19 "$work/unit/traind.service"
else
    skip "systemd-analyze verify" "not installed"
fi

# Says what comes on a datagram socket, as systemd would read it.
cat >"$work/listen.py" <<'E2'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(600)
while True:
    text = s.recv(4096).decode()
    print(text, flush=True)
    if "STOPPING=1" in text:
        break
E2
/usr/bin/python3 "$work/listen.py" "$work/notify" >"$work/told" 2>&1 &
listener=$!
ok "a socket to notify" eventually test -S "$work/notify"
export NOTIFY_SOCKET=$work/notify WATCHDOG_USEC=600000
start_daemon
told() { grep -q "$1" "$work/told"; }
ok "READY=1 once it listens" eventually told '^READY=1'
like "$(cat "$work/told")" "STATUS=listening on $url" "with the address"
beats() { [ "$(grep -c '^WATCHDOG=1' "$work/told")" -ge 3 ]; }
ok "WATCHDOG=1 again and again" eventually beats
kill -HUP "$daemon"
ok "RELOADING=1 at SIGHUP" eventually told '^RELOADING=1'
ok "stop" stop_daemon
wait "$listener"
is "$?" 0 "STOPPING=1 at the end"
unset NOTIFY_SOCKET WATCHDOG_USEC

# ------------------------------------------------------------------ sockets from systemd

free_port() {
    /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
port=$(free_port)
activated=$work/activated.sock
activate() { # SOCKET... -- TRAIND-ARGUMENT...
    local places=()
    while [ "$1" != -- ]; do
        places+=(--listen="$1")
        shift
    done
    rm -f "$work/activated.log" # that of another may say the same
    systemd-socket-activate "${places[@]}" "$traind" --state "$state" "${@:2}" >"$work/activated.log" 2>&1 &
    daemon=$!
    says() { grep -qs "$1" "$work/activated.log"; }
    eventually says "Listening on ${places[-1]#*=}"
}
rm -f "$state/listen"
ok "systemd opens the sockets" activate "127.0.0.1:$port" "$activated" -- --listen 127.0.0.1:1
ok "the daemon does not run yet" test ! -e "$state/listen"
is "$(curl -sS --unix-socket "$activated" http://localhost/healthz | jq -r .status)" ok "the first request starts it, and is answered"
url=$(cat "$state/listen")
is "$url" "http://127.0.0.1:$port" "it listens on systemd's address, not on its own"
call /v1/jobs
want 401 "over TCP, where it needs a token, for no settings say otherwise"
call --unix-socket "$activated" /v1/tokens
want 200 "and over the unix socket, with its user's rights"
ok "it made no socket of its own" test ! -e "$socket"
ok "it stops in order" stop_daemon
ok "systemd's socket stays for the next one" test -S "$activated"
rm -f "$activated"
activate "127.0.0.1:$port" -- 
is "$(curl -sS "http://127.0.0.1:$port/healthz" | jq -r .status)" ok "with a TCP socket alone"
is "$(curl -sS --unix-socket "$socket" http://localhost/healthz | jq -r .status)" ok "the unix socket is its own"
ok "it stops in order" stop_daemon
fails() { # WORDS NAME
    curl -sS -m 5 -o /dev/null "http://127.0.0.1:$port/healthz" 2>/dev/null
    wait "$daemon"
    is "$?" 2 "$2"
    daemon=
    like "$(cat "$work/activated.log")" "$1" "$2: its words"
}
activate "0.0.0.0:$port" --
fails 'can be reached from other machines, which needs tokens and TLS' "an address beyond the loopback without tokens"
activate "127.0.0.1:$(free_port)" "127.0.0.1:$port" --
fails 'passed two TCP sockets' "two TCP sockets"

# ------------------------------------------------------------------ the check of this machine, once no job has run for a second

printf '%s\n' 'node_check_seconds = 1' "worker = $top_builddir/tests/bin/train-worker" >"$work/traind.conf"
checked() {
    get "/v1/nodes/$(hostname -s)" | jq -e '.gflops > 0' >/dev/null
}
checks_itself() { # a busy machine's check may take longer than it may, and the next one comes in an hour: then by another daemon
    local began
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        began=$SECONDS
        start_daemon --config "$work/traind.conf"
        until checked || [ $((SECONDS - began)) -ge 90 ]; do tap_sleep 0.1; done
        ! checked || return 0
        stop_daemon
    done
    return 1
}
ok "the daemon checks its machine when it is idle" checks_itself
call "/v1/nodes/$(hostname -s)"
json '[.history[].phase] | unique' '["self"]' "the check is its own"
json '.verdict == (if .load > 0 then "unknown" else "fine" end) and .memory_gb_per_sec > 0 and .report.host != null' true \
    "the machine is fine, unless others computed meanwhile"
ok "stop" stop_daemon
done_testing
