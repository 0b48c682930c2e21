#!/usr/bin/env bash
# README.md, command by command: its fenced blocks are run as they stand, by one shell, in a folder as ./quickstart leaves it. So that it is
# quick, the data are the first images of Fashion-MNIST, jobs have two steps, and the port is a free one.
set -u
# shellcheck source=tests/tap.sh
. "${top_srcdir:?is set by make check}/tests/tap.sh"
for tool in jq curl sqlite3 mpirun; do
    command -v $tool >/dev/null || skip_all "needs $tool"
done
# shellcheck source=tests/system/lib.sh
. "$top_srcdir/tests/system/lib.sh"
daemon=
clean_up() {
    [ -z "$daemon" ] || { kill "$daemon" && wait "$daemon"; } 2>/dev/null
    rm -rf "$work"
}
trap clean_up EXIT
page=$top_srcdir/README.md
here=$work/here
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 XDG_CACHE_HOME=$work/cache TRAIND_PRESETS=$top_srcdir/etc/presets
unset TRAINCTL_SERVER TRAINCTL_TOKEN http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY

# What ./quickstart leaves: the programs, the data, the daemon with a token's header, and its job.
mkdir -p "$work/idx" "$here/_install/bin" "$here/_state"
idx 64 train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz
idx 32 t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz
for program in traind trainctl train-prep train-worker; do
    printf '#!/bin/sh\nexec %s "$@"\n' "$top_builddir/$program" >"$here/_install/bin/$program"
    chmod +x "$here/_install/bin/$program"
done
bin=$here/_install/bin
"$bin/train-prep" convert --from idx --in "$work/idx" --out "$here/_data/fashion-mnist" --shards 2 --eval-shards 1 --pad 2 >/dev/null 2>&1
printf '%s\n' "worker = $top_builddir/tests/bin/train-worker" "slots = 2" "node_check_seconds = 0" >"$work/traind.conf"
"$bin/traind" --config "$work/traind.conf" --state "$here/_state" --listen 127.0.0.1:0 >"$work/daemon.log" 2>&1 &
daemon=$!
listens() { [ -s "$here/_state/listen" ] && curl -sf -o /dev/null "$(cat "$here/_state/listen")/healthz"; }
for _ in $(seq 600); do
    listens && break
    tap_sleep 0.1
done
ok "the daemon listens" listens
port=$(sed 's/.*://' "$here/_state/listen")
socket=unix:$here/_state/traind.sock
echo "Authorization: Bearer $("$bin/trainctl" --server "$socket" token create --role operator quickstart 2>/dev/null)" >"$here/_state/authorization"
jq ".steps = 2 | .batch_per_worker = 4 | .model.arch = \"resnet18\" | .data.train = \"$here/_data/fashion-mnist/train\" | .data.eval = \"$here/_data/fashion-mnist/validation\"" \
    "$top_srcdir/etc/examples/resnet50.json" >"$work/quickstart.json"
ok "quickstart's job has trained" "$bin/trainctl" --server "$socket" submit --wait "$work/quickstart.json"

# The blocks; each is announced by its line, so that a failure is found.
awk '/^```sh$/ {code = 1; print "echo \"@ line " NR + 1 "\""; next} /^```$/ {code = 0} code' "$page" |
    sed -e "s|127.0.0.1:7077|127.0.0.1:$port|g; s|\"batch_per_worker\": 128, \"epochs\": 2,|\"batch_per_worker\": 4, \"steps\": 2,|; s|--batch 128|--batch 4 --steps 1|; s|trainctl scale|trainctl scale --steps 1|" \
        >"$work/commands.sh"
blocks=$(grep -c '^echo "@ line' "$work/commands.sh")
ok "README has commands" test "$blocks" -ge 4
(cd "$here" && bash -eu -o pipefail "$work/commands.sh") >"$work/out" 2>&1
status=$?
tail -c 20000 "$work/out" | sed 's/^/# /'
echo
is $status 0 "all of README's commands succeed (else the last line shown here is of the one that failed)"
is "$(grep -c '^@ line' "$work/out")" "$blocks" "none is left out"
ended() { [ "$("$bin/trainctl" --server "$socket" --json list --state queued,starting,running,evaluating | jq '.jobs | length')" = 0 ]; }
for _ in $(seq 1200); do
    ended && break
    tap_sleep 0.1
done
db=$here/_state/traind.db
is "$(sqlite3 "$db" 'select group_concat(distinct state) from job')" succeeded "every job has trained"
is "$(sqlite3 "$db" 'select state from sweep')" succeeded "and the sweep"
for file in attempt-1/events.jsonl result.json checkpoints/step-00000002/model.safetensors; do
    ok "the run without the daemon has $file" test -s "$here/run/$file"
done

# Fragments of a job are JSON, and of keys that there are.
awk '/^```json$/ {code = 1; next} /^```$/ {code = 0} code' "$page" >"$work/fragments"
ok "README has fragments of jobs" test -s "$work/fragments"
while IFS= read -r fragment; do
    ok "it is a job's: $fragment" "$bin/trainctl" plan - <<<"$(jq '{data: {train: "synthetic"}} * .' <<<"$fragment")"
done <"$work/fragments"
# Files and pages it names are there.
for file in $(grep -oE '\]\((doc/[^)#]+|CONTRIBUTING.md)\)' "$page" | tr -d '])('); do
    ok "there is $file" test -e "$top_srcdir/$file"
done
done_testing
