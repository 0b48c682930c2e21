#!/usr/bin/env bash
# The systemd unit is one that systemd takes, and the daemon tells systemd what it waits for.
. "$(dirname "$0")/lib.sh"

if command -v systemd-analyze >/dev/null; then
    mkdir "$work/unit"
    sed "s|@bindir@/traind|$(readlink -f "$traind")|; s|@sysconfdir@|$work|" "$top_srcdir/etc/traind.service.in" >"$work/unit/traind.service"
    out=$(systemd-analyze verify --man=no "$work/unit/traind.service" 2>&1)
    is "$(grep traind.service <<<"$out")" "" "systemd-analyze verify finds nothing"
else
    skip "systemd-analyze verify" "not installed"
fi

# Says what comes on a datagram socket, as systemd would read it.
cat >"$work/listen.py" <<'E2'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(20)
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

done_testing
