#!/usr/bin/env bash
# Clients that harm: slow ones, deaf ones, too many, and ones that go away. Others must be answered meanwhile.
. "$(dirname "$0")/../lib.sh"
trap '' PIPE # some clients end before they are told to
ulimit -n 8192 2>/dev/null || ulimit -n "$(ulimit -Hn)"
echo 'mpirun = /bin/true' >"$work/traind.conf"
start_daemon --config "$work/traind.conf"
for n in 1 2 3; do
    call -d "{\"name\": \"$n\", \"data\": {\"train\": \"synthetic\"}, \"steps\": 4}" /v1/jobs
done

cat >"$work/clients.py" <<'END'
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
kind, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
request = b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n"
held = []
def connect():
    s = socket.socket()
    s.settimeout(2)
    if kind == "idle":      # those beyond the limit wait in the kernel
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", port))
    else:
        s.connect(("127.0.0.1", port))
    return s
def quietly(what, *arguments):
    try: return what(*arguments)
    except OSError: return None
for i in range(count):
    s = quietly(connect)
    if s is None: continue
    held.append(s)
    if kind == "deaf":      # asks for more than the buffers hold, and reads nothing
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        s.setblocking(False)
        quietly(s.send, request * 500)
    elif kind == "gone":    # hangs up in the middle
        quietly(s.send, b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{" if i % 2 else request * 20)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        s.close()
print("connected", len(held), flush=True)
end = time.time() + 3
while time.time() < end and kind == "slow":
    for i, s in enumerate(held):
        quietly(s.send, request[int(3 - (end - time.time())):][:1] or b" ")
    time.sleep(1)
while kind != "gone" and sys.stdin.readline().strip() != "end": pass
END

# Runs COUNT clients of a KIND, and asks the daemon meanwhile and afterwards.
besiege() { # KIND COUNT meanwhile-over-TCP?
    coproc clients { /usr/bin/python3 "$work/clients.py" "$1" "${url##*:}" "$2" 2>"$work/err"; }
    local pid=$clients_PID line=
    read -r -t 300 line <&"${clients[0]}" || true
    like "$line" 'connected [1-9]' "$2 $1 clients"
    if [ "$3" = yes ]; then
        call -m 60 /v1/jobs
        want 200 "others are answered beside $2 $1 clients"
    fi
    call -m 60 --unix-socket "$socket" /v1/jobs
    want 200 "and so is the unix socket"
    [ -z "${clients[1]-}" ] || { echo end >&"${clients[1]}"; } 2>/dev/null
    wait "$pid" 2>/dev/null
    answered() { call -m 2 /healthz && [ "$status" = 200 ]; }
    eventually answered
    call /v1/jobs
    want 200 "all is well after them"
}
besiege slow 100 yes
besiege deaf 50 yes
besiege gone 500 no
besiege idle 2000 no
memory=$(awk '/VmHWM/ { print $2 }' "/proc/$daemon/status")
if [ -z "${ASAN_OPTIONS+x}" ] && ! grep -q asan "/proc/$daemon/maps"; then
    ok "the daemon took less than 64 MB ($memory kB)" test "$memory" -lt 65536
else
    skip "memory" "sanitizers take more"
fi
call /v1/jobs
json '.jobs | length' 3 "no half request became a job"

# ------------------------------------------------------------------ the same key, another body; compressed and known answers

call -H 'Idempotency-Key: k' -d '{"data": {"train": "synthetic"}, "steps": 4}' /v1/jobs
want 201 "a submission with a key"
call -H 'Idempotency-Key: k' -d '{"data": {"train": "synthetic"}, "steps": 4}' /v1/jobs
want 200 "again: the same job"
call -H 'Idempotency-Key: k' -d '{"data": {"train": "synthetic"}, "steps": 5}' /v1/jobs
refused 409 conflict 'was used with another document' "with another body"
call /v1/presets
tag=$(sed -n 's/^ETag: //p' <<<"$headers")
like "$tag" '^W/"[0-9a-f]{32}"$' "an answer has an entity tag"
call -H "If-None-Match: $tag" /v1/presets
want 304 "which answers 304"
call -H 'If-None-Match: "other"' /v1/presets
want 200 "another tag does not"
get "/v1/schema/job" >"$work/plain"
curl -s -H 'Accept-Encoding: br, gzip;q=0.5' -D "$work/headers" "$url/v1/schema/job" >"$work/packed"
like "$(cat "$work/headers")" 'Content-Encoding: gzip' "gzip for those who take it"
ok "it is the same once unpacked" cmp -s <(gzip -dc "$work/packed") "$work/plain"
ok "and smaller" test "$(wc -c <"$work/packed")" -lt $(($(wc -c <"$work/plain") / 2))
call -H 'Accept-Encoding: gzip;q=0' -I /v1/schema/job
is "$(grep -ci '^content-encoding' <<<"$headers")" 0 "not for those who refuse it"
ok "stop" stop_daemon

done_testing
