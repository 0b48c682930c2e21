#!/usr/bin/env bash
# Requests that are generated from the document that the daemon serves, good ones and bad ones, to every route of a running daemon. Prism's
# proxy judges requests and answers; tests/openapi/inputs/inputs.mjs describes what must hold, and how a failure is repeated.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../api/runs.sh.inc"
command -v npm >/dev/null || skip_all "npm was not found: apt-get install npm"
dir=$work/npm
mkdir "$dir"
cp "$top_srcdir"/tests/openapi/inputs/* "$dir" || exit
(cd "$dir" && npm ci --ignore-scripts --no-audit --no-fund --silent >/dev/null 2>&1)
ok "npm installs the tools" test -x "$dir/node_modules/.bin/prism"

# Nothing of what is generated may reach another machine: neither hosts, nor targets of notices, nor a Slurm of this machine.
mkdir "$work/bin"
for program in sbatch squeue scancel sinfo scontrol sacct srun; do
    write_script "$work/bin/$program" <<<'#!/bin/sh
echo "no cluster" >&2; exit 1'
done
PATH=$work/bin:$PATH
# What is generated and starts ends at once; other jobs train.
write_script "$work/worker" <<'END'
#!/bin/sh
for word; do
    [ "$before" != --job ] || ! grep -q '"name": *"ours"' "$word" || exec "$top_builddir/tests/paced/train-worker" "$@"
    before=$word
done
exit 1
END
export top_builddir
printf '%s\n' "worker = $work/worker" "slots = 2" "cancel_grace_seconds = 0" "restart_delay_seconds = 0" "node_check_seconds = 0" \
    "launch_agent = /bin/false" "notify_sendmail = /bin/false" "notify_proxy = http://127.0.0.1:9" >"$work/traind.conf"
restart_runs
ours='{"model": {"arch": "resnet18", "width": 0.0625, "image_size": 32, "classes": 10}, "checkpoint": {"every_steps": 2}, "eval": {"batch": 32}}'
train() { # STEPS [CHANGES]
    submit ours "" "$(jq ".steps = $1 ${2-}" <<<"$ours")"
}
train 4 '| .data = {train: "synthetic", eval: "synthetic", train_images: 64, eval_images: 64}'
ok "job 1 succeeds" wait_state 1 succeeded
train 100000
ok "job 2 runs" eventually has_events 2 2
kill -KILL "$(rank_process 2 1)"
ok "job 2 fails" wait_state 2 failed
train 100000
ok "job 3 runs" eventually has_events 3 1
train 4
call --json "$(jq '{base: (.name = "swept"), parameters: {"/seed": [1, 2]}, metric: "loss"}' "$work/job.json")" /v1/sweeps
want 201 "a sweep waits"
call --unix-socket "$socket" --json '{"name": "a node", "role": "node"}' /v1/tokens
NODE_TOKEN=$(jq -r .token <<<"$body")
export NODE_TOKEN
call -H "Authorization: Bearer $NODE_TOKEN" --json '{"kind": "AMD EPYC 9534", "cores": 64, "gflops": 102, "phase": "prolog", "outcome": "fine", "t": 1}' /v1/nodes/n1/report
want 200 "a node has reported"

get /openapi.json >"$work/openapi.json"
# Silent, as what it prints of a request with an odd name can end it.
for try in 1 2 3; do # another program may take the port first
    port=$((20000 + RANDOM % 10000))
    NODE_OPTIONS=--max-http-header-size=1048576 node "$dir/node_modules/.bin/prism" proxy --verboseLevel silent "$work/openapi.json" "$url" --port "$port" >"$work/prism.log" 2>&1 &
    prism=$!
    trap 'kill $prism 2>/dev/null; clean_up' EXIT
    listens() { curl -so /dev/null "http://127.0.0.1:$port/healthz" || ! kill -0 "$prism" 2>/dev/null; }
    eventually listens && kill -0 "$prism" 2>/dev/null && break
    echo "# try $try: $(tail -n 1 "$work/prism.log")"
done
node "$dir/inputs.mjs" "http://127.0.0.1:$port" "$work/openapi.json" >"$work/checks" 2>&1
while IFS= read -r line; do
    case $line in
    'ok '*) report 0 "${line#* - }" ;;
    'not ok '*) report 1 "${line#* - }" ;;
    *) echo "# $line" ;;
    esac
done <"$work/checks"
ok "every operation was checked" grep -qx "1\.\.$(jq '[.paths[] | keys[]] | length' "$work/openapi.json")" "$work/checks"
kill "$prism"
ok "the daemon lives" get /healthz
is "$(grep -i "internal error" "$work/daemon.log")" "" "and none of them was an internal error"

for id in $(sql "select id from job where state in ('queued', 'starting', 'running', 'evaluating') order by state desc"); do
    call -X POST "/v1/jobs/$id/cancel"
done
ok "no job is left" eventually no_job_left
ok "the daemon stops in order" stop_daemon
done_testing
