#!/usr/bin/env bash
# Connections: one address does not shut the others out, and those beyond the limit of all wait for their turn.
# shellcheck source=tests/api/lib.sh
. "$(dirname "$0")/../lib.sh"

cat >"$work/connect.py" <<'E2'
import select, socket, sys
port = int(sys.argv[1])
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
def connect(source="127.0.0.1"):
    s = socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(source, 0))
    try:
        s.sendall(GET)
    except OSError:
        pass # it was closed
    return s
def status(s, seconds=60): # of an answer; "closed"; "waits"
    if not select.select([s], [], [], seconds)[0]:
        return "waits"
    try:
        text = s.recv(4096)
    except ConnectionError:
        return "closed"
    return text.split()[1].decode() if text else "closed"
def count(connections):
    found = [status(s) for s in connections]
    return " ".join(f"{found.count(w)} {w}" for w in sorted(set(found)))
E2
ask() { # the rest of a program, from stdin
    /usr/bin/python3 <(cat "$work/connect.py" -) "${url##*:}" 2>&1
}

# ------------------------------------------------------------------ of one address

printf '%s\n' 'max_connections = 400' 'connections_per_address = 20' 'http_threads = 2' >"$work/traind.conf"
start_daemon --config "$work/traind.conf"
is "$(
    ask <<'E2'
taken = [connect() for _ in range(50)]
print(count(taken))
print(count([connect("127.0.0.2") for _ in range(10)]))
for s in taken:
    s.close()
again = "closed"
for _ in range(300):
    again = status(connect())
    if again == "200":
        break
    select.select([], [], [], 0.1)
print(again)
E2
)" "20 200 30 closed"$'\n'"10 200"$'\n'200 "50 connections of one address: 20 are taken, others' are not held up, and it may come again"
call --unix-socket "$socket" /healthz
want 200 "the unix socket has no such limit"
ok "stop" stop_daemon

sed -i 's/^connections_per_address.*/connections_per_address = 0/' "$work/traind.conf"
start_daemon --config "$work/traind.conf"
is "$(ask <<<'print(count([connect() for _ in range(50)]))')" "50 200" "0 is any number"
ok "stop" stop_daemon

# ------------------------------------------------------------------ of all

printf '%s\n' 'max_connections = 8' 'connections_per_address = 0' 'http_threads = 1' >"$work/traind.conf"
start_daemon --config "$work/traind.conf"
is "$(
    ask <<'E2'
taken = []
while True:
    s = connect()
    if status(s, 60 if len(taken) < 8 else 3) != "200":
        break
    taken.append(s)
print(len(taken))
for t in taken:
    t.close()
print(status(s))
E2
)" $'8\n200' "max_connections: the next one waits, and is answered when others have ended"
ok "stop" stop_daemon
done_testing
