#!/usr/bin/env bash
# cluster.bind and cluster.smt on this machine and on named hosts: the options of mpirun, the cores of the ranks by run_start, and what cannot be
# is refused with the key and what would do.
# shellcheck source=tests/system/hosts/hosts.sh.inc
. "$(dirname "$0")/../hosts/hosts.sh.inc"
[ "$(nproc)" -ge 2 ] || skip_all "needs two cores"
hosts_up 2
small_data
start_hosts "slots = 8" # more than the cores of most machines, so that auto binds nothing
placed() { # ID: what mpirun was told
    grep -oE -- '--map-by [^ ]+ --bind-to [^ ]+( --use-hwthread-cpus)?' "$state/jobs/$1/attempt-1/command"
}
got() { # FILTER of run_start's binding
    jq -c "select(.type == \"run_start\") | .binding | $1" "$state/jobs/$id/attempt-1/events.jsonl"
}
for row in 'core|slot:PE=1 --bind-to core' 'socket|socket:PE=1 --bind-to core' 'numa|numa:PE=1 --bind-to core' 'none|slot:OVERSUBSCRIBE --bind-to none'; do
    train "{\"bind\": \"${row%%|*}\"}" '{"steps": 1}'
    ok "bind ${row%%|*}: the job succeeds" wait_state "$id" succeeded
    is "$(placed "$id")" "--map-by ${row#*|}" "mpirun gets that option"
    if [ "${row%%|*}" = none ]; then
        is "$(got 'map(.cpus) | unique | length')" 1 "both ranks may run on the same cores"
    else
        is "$(got 'map(.cpus) | unique | length')" 2 "each rank has its own core"
    fi
done
train '{"bind": "core", "smt": true}' '{"steps": 1}'
ok "hardware threads as slots: the job succeeds" wait_state "$id" succeeded
is "$(placed "$id")" "--map-by slot:PE=1 --bind-to hwthread --use-hwthread-cpus" "mpirun gets that option"
is "$(got 'map(.cpus | test("^[0-9]+$"))')" "[true,true]" "each rank has one hardware thread"
is "$(job "$id" spec.cluster.bind) $(job "$id" spec.cluster.smt)" "core true" "the document keeps both"

# ---- other hosts
two=$(jq -nc --arg a "$h1" --arg b "$h2" '{nodes: 2, hosts: [$a, $b], interface: "eth0"}')
train "$(jq -c '.bind = "socket"' <<<"$two")" '{"steps": 8, "comm": {"core": "none"}}'
ok "bind socket on two hosts: the job succeeds" wait_state "$id" succeeded
is "$(placed "$id")" "--map-by socket:PE=1 --bind-to core" "mpirun gets that option"
is "$(got 'group_by(.host) | map(map(.cpus) | unique | length)')" "[2,2]" "the ranks of each host have cores of their own"
is "$(get "/v1/jobs/$id" | jq -c '.gradients | [.step, .machines, .leaders, .exchanges]')" "[7,2,2,2]" \
    "what the first steps decide of their sums"
shown=$("$top_builddir/trainctl" --server "unix:$socket" show "$id" | tr -s ' \n' ' ')
like "$shown" " gradients gradients of 4 ranks are summed on each machine through shared memory, then .*: a step takes [0-9.e-]+ s \([0-9.e-]+ s (by calls|after backward)\) " \
    "is in trainctl show"
is "$("$top_builddir/trainctl" --server "unix:$socket" --json show "$id" | jq -r .gradients.message)" \
    "$("$top_builddir/trainctl" --server "unix:$socket" --json events "$id" | jq -r 'select(.type == "gradients") | .message')" "and in its events"
train "$(jq -c --arg b "$h2" '.bind = "numa" | .threads_per_worker = 1024 | .nodes = 1 | .hosts = [$b]' <<<"$two")" '{"restart": {"max": 0}}'
ok "workers that fit into no NUMA domain of the hosts fail the job" wait_state "$id" failed
like "$(job "$id" reason)" "host $h2 has [0-9]+ NUMA domains? of [0-9]+ cores, too few for 2 workers of 1024 threads: use fewer workers or threads, or another cluster.bind" \
    "with what the host has"

# ---- what is refused
train '{"bind": "sockets"}'
refused 422 invalid '/cluster/bind' "no such kind"
like "$body" 'one of ."auto.", ."core.", ."socket.", ."numa.", ."none.", not ."sockets.' "with those that there are"
train '{"smt": "yes"}'
refused 422 invalid '/cluster/smt' "smt is no word"
train '{"bind": "none", "mpi_args": ["--map-by", "slot"]}'
refused 422 invalid '/cluster/mpi_args/0' "arguments of mpirun that place ranks, too"
ok "the daemon stops" stop_daemon
start_hosts "slots = 4096"
train '{"bind": "socket", "workers_per_node": 4, "threads_per_worker": 1024}'
refused 422 invalid 'cluster.bind: this machine has [0-9]+ sockets? of [0-9]+ cores, too few for 4 workers of 1024 threads' "sockets that are too small"
train '{"bind": "none", "workers_per_node": 4, "threads_per_worker": 1}' '{"steps": 1}'
want 201 "more workers than cores are taken where nothing is bound"
ok "the daemon stops" stop_daemon
done_testing
