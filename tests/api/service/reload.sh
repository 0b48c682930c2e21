#!/usr/bin/env bash
# SIGHUP: settings are read again as often as wanted while requests are answered, each by one set of settings.
# shellcheck source=tests/api/lib.sh
. "$(dirname "$0")/../lib.sh"

mkdir "$work/odd" "$work/even"
settings() { # LINE...: the file, renamed into its place
    printf '%s\n' "worker = $(type -P true)" "require_token = no" "$@" >"$work/new.conf"
    mv "$work/new.conf" "$work/traind.conf"
}
logged() { # COUNT WORDS
    [ "$(grep -c -- "$2" "$work/daemon.log")" -ge "$1" ]
}
reread='settings reloaded'
settings "data_roots = $work/even" "stall_seconds = 1000" "max_body_bytes = 4096"
start_daemon --config "$work/traind.conf"

# ------------------------------------------------------------------ a hundred times, under load

# Each answer fits one of the two files as a whole: stall_seconds stands in the batch script, which needs the folder to be permitted.
cat >"$work/ask.py" <<'E2'
import http.client, json, os, re, sys, threading
port, work = int(sys.argv[1]), sys.argv[2]
answers, wrong, lock, done = {}, [], threading.Lock(), threading.Event()
def ask(parity):
    folder = f"{work}/{parity}"
    document = json.dumps({"data": {"train": folder, "train_images": 100}, "model": {"arch": "resnet18"},
                           "cluster": {"launcher": "slurm", "threads_per_worker": 1}})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    while not done.is_set():
        connection.request("POST", "/v1/plan", document, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        text = reply.read().decode()
        with lock:
            answers[reply.status] = answers.get(reply.status, 0) + 1
            if reply.status not in (200, 422) or reply.status == 422 and "is not in a folder" not in text:
                wrong.append(f"{reply.status} {text[:300]}")
            if reply.status == 200:
                stalls = re.findall(r"--stall[a-z-]* (\d+)", text)
                if not stalls or any(s not in ("1000", "1001") for s in stalls):
                    wrong.append(f"stalls {stalls}")
threads = [threading.Thread(target=ask, args=(p,)) for p in ("odd", "even") * 2]
for t in threads:
    t.start()
sys.stdin.read()
done.set()
for t in threads:
    t.join()
print(" ".join(map(str, sorted(answers))), len(wrong), *wrong[:3])
E2
mkfifo "$work/hold"
/usr/bin/python3 "$work/ask.py" "${url##*:}" "$work" <"$work/hold" >"$work/answers" 2>&1 &
asking=$!
exec 5>"$work/hold"
missed=
for i in $(seq 100); do
    [ $((i % 2)) = 0 ] && parity=even || parity=odd
    settings "data_roots = $work/$parity" "stall_seconds = $((1000 + i % 2))" "max_body_bytes = $((4096 + i))"
    kill -HUP "$daemon"
    eventually logged 1 "$reread: .*max_body_bytes = $((4096 + i)) (was" || missed="$missed $i"
done
exec 5>&-
wait "$asking"
is "$missed" "" "SIGHUP 100 times: each is taken"
is "$(cat "$work/answers")" "200 422 0" "requests meanwhile are all answered, by one file or the other"

call -d "$(printf '%5000s' '')" /v1/plan
refused 413 too-large '4196 bytes' "the last one is in effect"
is "$(curl -sS "$url/v1/plan" -d "$(printf '%4190s' '')" -o /dev/null -w '%{http_code}')" 400 "up to its limit"

# ------------------------------------------------------------------ what it says

settings "keep_runs = 5" "log_format = text" "max_body_bytes = 4196" "data_roots = $work/even" "stall_seconds = 1000"
kill -HUP "$daemon"
ok "what has changed, and from what" eventually logged 1 "$reread: keep_runs = 5 (was 0)\$"
kill -HUP "$daemon"
ok "that nothing has" eventually logged 1 "$reread; nothing has changed\$"
settings "keep_runs = 6" "http_threads = 9" "max_body_bytes = 4196" "data_roots = $work/even" "stall_seconds = 1000"
kill -HUP "$daemon"
ok "what a restart would change" eventually logged 1 "$reread: keep_runs = 6 (was 5); restart traind to change http_threads\$"

# ------------------------------------------------------------------ all or nothing

refused_reload() { # WORDS NAME LINE...
    local before
    before=$(grep -c 'keeping the previous settings' "$work/daemon.log")
    settings "max_body_bytes = 2048" "${@:3}"
    kill -HUP "$daemon"
    ok "$2" eventually logged $((before + 1)) 'keeping the previous settings'
    like "$(grep 'keeping the previous settings' "$work/daemon.log" | tail -n 1)" "$1" "$2: its words"
    call -d "$(printf '%4000s' '')" /v1/plan
    want 400 "$2: nothing of the file is taken"
}
refused_reload 'unknown key "nothing"' "a file with an unknown key" "nothing = 1"
refused_reload 'data_roots: folder .* does not exist' "a folder that is not there" "data_roots = $work/none"
refused_reload 'TLS needs both' "half of TLS, though that needs a restart" "tls_key = $work/key.pem"
refused_reload 'no group "no-such-group"' "a group that is not there, though that needs a restart" "socket_group = no-such-group"
rm "$work/traind.conf"
kill -HUP "$daemon"
ok "a file that is gone" eventually logged 1 "keeping the previous settings: cannot read the configuration"
ok "it stops in order" stop_daemon
done_testing
