#!/usr/bin/env bash
# The API's contract: schema/openapi.json is what the daemon serves, and every example in it, sent to the real daemon, gives what
# it says. tests/api/http/contract.py does the work; here is the world that the examples live in:
#   job 1 finished (profiled, two checkpoints)   job 2 was cancelled and has a checkpoint   job 3 runs, to be cancelled
#   job 4 ended, evaluated on ten images, was to reproduce job 1, to be removed   job 5 waits   sweep 1 runs, its first job is 6   token 1   node n1 has reported
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
/usr/bin/python3 -W ignore -c 'import jsonschema' 2>/dev/null || skip_all "python3-jsonschema is not installed"
export OMP_NUM_THREADS=1

ok "schema/openapi.json is up to date (make update-docs)" diff "$top_srcdir/schema/openapi.json" <("$traind" --openapi)

ok "the routes of man/traind.8 are up to date (make update-docs)" diff <(sed -e '1,/begin routes$/d' -e '/end routes$/,$d' "$top_srcdir/man/traind.8") \
    <(sh "$top_srcdir/schema/api/routes-man.sh" <"$top_srcdir/schema/openapi.json")

ok "the roles of doc/security.md are up to date (make update-docs)" diff <(sed -e '1,/begin roles -->$/d' -e '/end roles -->$/,$d' "$top_srcdir/doc/security.md") \
    <(sh "$top_srcdir/schema/api/roles-md.sh" <"$top_srcdir/schema/openapi.json")

# Jobs that only have to last train nothing: they would take the cores from all other tests.
write_script "$work/worker" <<'END'
#!/bin/sh
program=train-worker
for word; do
    [ "$before" != --job ] || ! grep -q '"name": *"lasting' "$word" || program=tests/api/fixture_worker
    before=$word
done
exec "$top_builddir/$program" "$@"
END
printf '%s\n' "worker = $work/worker" "slots = 3" "cancel_grace_seconds = 60" "require_token = yes" "max_body_bytes = 10000" \
    "web_dir = $top_srcdir/web" "heartbeat_seconds = 1" "requests_per_second = 0" >"$work/traind.conf"
start_daemon --config "$work/traind.conf"
local_call() { call --unix-socket "$socket" "$@"; }
job() { # over the socket: this daemon wants tokens
    curl -sS --unix-socket "$socket" "$url/v1/jobs/$1" | jq -r ".$2"
}
start() { # JQ: changes of a small job
    jq -n "{name: \"small\", cluster: {workers_per_node: 1, threads_per_worker: 1}, data: {train: \"synthetic\", eval: \"synthetic\",
        train_images: 64}, batch_per_worker: 4, steps: 8, model: {arch: \"resnet18\", width: 0.0625, image_size: 32, classes: 10},
        checkpoint: {every_steps: 4}, eval: {batch: 8}, restart: {max: 0}} | $1" >"$work/job.json"
    local_call -d "@$work/job.json" /v1/jobs
    want 201 "a job is taken ($1)"
}
start '.cluster.workers_per_node = 2 | .cluster.mpi_args = ["-x", "TRAINCOMM_HOST_RANKS=1"] | .comm.overlap = false | .profile.steps = [2, 3] | .eval.predictions = true | .eval.target_top1 = 0.0001'
ok "job 1 succeeds" wait_state 1 succeeded
start '.steps = 100000'
ok "job 2 runs" eventually has_events 2 5
local_call -X POST /v1/jobs/2/cancel
ok "job 2 is cancelled" wait_state 2 cancelled
lasting='.name = "lasting steps=100000 step_ms=20" | .steps = 100000'
start "$lasting | .cluster.workers_per_node = 2"
ok "job 3 runs" eventually has_events 3 1
for ((i = 0; i < 10; i++)); do # all taken for the same class
    mkdir -p "$work/images/$i"
    base64 -d <<<"iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAALElEQVR42u3NQREAMAgAIF0G49j/jLUS+oMC5HTFpRfHBAKBQCAQCAQCwZYP0nYBWMwf34EAAAAASUVORK5CYII=" >"$work/images/$i/red.png"
done
start '.mode = "train" | .reproduces = 1 | .steps = 1 | .checkpoint.disable = true | .data.eval = "'"$work"'/images"'
ok "job 4 ends" wait_state 4 succeeded
start '.steps = 2 | .cluster.workers_per_node = 3 | .priority = -100' # waits: all slots are never free
local_call -d "$(jq '{base: ('"$lasting"' | .priority = 0 | .cluster.workers_per_node = 1 | .checkpoint = {disable: true} | .lr = {base: 0.0001}), parameters: {"/seed": [1, 2]}, metric: "loss"}' "$work/job.json")" /v1/sweeps
want 201 "sweep 1 is taken"
ok "job 6, its first, runs" wait_state 6 running
local_call -d '{"name": "first", "role": "read"}' /v1/tokens
want 201 "token 1 is made"
local_call -d '{"kind": "AMD EPYC 9534", "cores": 64, "phase": "prolog", "outcome": "fine", "t": 1789.25, "late": true, "gflops": 102}' /v1/nodes/n1/report
want 200 "node n1 has reported"

gone() { [ "$(processes 3)$(processes 5)" = 00 ]; }

# ------------------------------------------------------------------ GET /v1/: each example is pasted into a shell

call /v1/
want 200 "the routes are listed"
cp "$work/body" "$work/routes.json"
is "$(jq -r '[.routes[] | "\(.method) \(.path)"] | sort | .[]' "$work/routes.json")" \
    "$(jq -r '[.paths | to_entries[] | .key as $p | .value | keys[] | "\(ascii_upcase) \($p)"] | sort | .[]' "$top_srcdir/schema/openapi.json")" \
    "all those of openapi.json"
local_call -d '{"name": "all", "role": "admin"}' /v1/tokens
TRAINCTL_TOKEN=$(jq -r .token <<<"$body")
export TRAINCTL_TOKEN
mkdir "$work/pasted"
while read -r path line; do
    is "$(cd "$work/pasted" && rm -f ./* && bash -c "${line/#curl/curl -sS -w '%{http_code}' -o answer}" 2>&1)" 200 "GET $path: $line"
done < <(jq -r '.routes[] | select(.method == "GET") | "\(.path) \(.example)"' "$work/routes.json")
is "$(jq -r '.routes[] | select(.method != "GET") | .example' "$work/routes.json" | bash -n 2>&1)" "" "the others are lines of a shell too"
is "$(jq -r '.routes[] | select(.path == "/v1/jobs/{id}" and .method == "PATCH") | .example' "$work/routes.json" | sed "s/^curl/curl -sS -o answer -w '%{http_code}'/" |
    (cd "$work/pasted" && bash))" 200 "one of them, which labels a job"
local_call /v1/
is "$(bash -c "$(jq -r '.routes[] | select(.path == "/v1/jobs" and .method == "GET") | .example' <<<"$body" | sed 's/^curl/curl -sS/')" | jq '.jobs | length > 4')" true \
    "over the unix socket they go there, without a token"
call -H 'Accept: text/html,application/xhtml+xml' /v1/
like "$headers" '^Content-Type: application/json' "a browser gets the same"

get "/openapi.json" >"$work/openapi.json"
ok "the daemon serves the same document" /usr/bin/python3 -c 'import json, sys; a, b = (json.load(open(f)) for f in sys.argv[1:]); sys.exit(a != b)' \
    "$top_srcdir/schema/openapi.json" "$work/openapi.json"
/usr/bin/python3 -W ignore "$top_srcdir/tests/api/http/contract.py" "$socket" "$work/openapi.json" >"$work/checks"
ended=$?
while IFS= read -r line; do
    case $line in
    'ok '*) report 0 "${line#* - }" ;;
    'not ok '*) report 1 "${line#* - }" ;;
    '#'*) echo "$line" ;;
    esac
done <"$work/checks"
ok "all of the contract was checked" grep -q '^1\.\.' "$work/checks"
is "$ended" "$(grep -q '^not ok' "$work/checks"; echo $((1 - $?)))" "and its verdict is that of its checks"
# The last of the statuses of every route: a token that asks too often.
token=$(local_call -d '{"name": "busy", "role": "read"}' /v1/tokens; jq -r .token <<<"$body")
sed -i 's/^requests_per_second = 0/requests_per_second = 1/' "$work/traind.conf"
kill -HUP "$daemon"
too_many() { # thirty at once over one connection, for a process each may take longer than the rate allows on a busy machine
    call -H "Authorization: Bearer $token" '/v1/jobs?limit=[1-30]'
    status=${status: -3} headers=${headers##*$'\n\n'}
    [ "$status" = 429 ]
}
eventually too_many
refused 429 too-many 'second' "a token that asks too often is refused"
like "$headers" '^Retry-After: [0-9]+$' "and told when to come back"
is "$(jq -r '.paths[][].responses | has("429")' "$work/openapi.json" | sort -u)" true "as every route says that it may be"

ok "no cancelled job leaves a process" eventually gone
ok "the daemon stops in order" stop_daemon
done_testing
