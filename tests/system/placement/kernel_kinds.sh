#!/usr/bin/env bash
# Two hosts, one of which computes with other kernels of OpenBLAS: run_start has both kinds, and a warning names the hosts. What traind's
# own environment says of kernels reaches the ranks of all hosts.
# shellcheck source=tests/system/hosts/hosts.sh.inc
. "$(dirname "$0")/../hosts/hosts.sh.inc"
hosts_up 2
small_data
# Set for the worker of one host only: traind's environment reaches all ranks.
write_script "$work/worker" <<END
#!/bin/sh
[ "\$(hostname)" != "$h2" ] || [ ! -e "$work/differ" ] || export OPENBLAS_CORETYPE=Prescott
exec "$top_builddir/tests/bin/train-worker" "\$@"
END
two=$(jq -nc --arg a "$h1" --arg b "$h2" '{nodes: 2, hosts: [$a, $b], interface: "eth0", workers_per_node: 1}')
start_two() { # [NAME=VALUE...]: a daemon with these in its environment
    cat >"$work/traind" <<END
#!/bin/sh
exec "$net" run "$lab" "$h1" env $* "$top_builddir/traind" "\$@"
END
    printf '%s\n' "worker = $work/worker" "launch_agent = $lab/ssh" "slots = 4" >"$work/traind.conf"
    start_daemon --config "$work/traind.conf"
}
started() { # FILTER: of run_start of the last job
    jq -c "select(.type == \"run_start\") | $1" "$state/jobs/$id/attempt-1/events.jsonl"
}
warned() {
    jq -r 'select(.type == "warning") | .message' "$state/jobs/$id/attempt-1/events.jsonl"
}

start_two
train "$two" '{"steps": 1}'
ok "a job on two hosts of one kind succeeds" wait_state "$id" succeeded
like "$(started .openblas)" '^"[0-9.]+ [A-Za-z]+"$' "run_start has OpenBLAS's version and processor"
is "$(started '[(.binding | map(.openblas) | unique | length), has("kernel_kinds")]')" '[1,false]' "the same for all ranks"
is "$(warned | grep -c 'kernels differ')" 0 "which is not warned of"

touch "$work/differ"
train "$two" '{"steps": 1}'
ok "a job on two kinds of hosts succeeds" wait_state "$id" succeeded
is "$(started '.kernel_kinds | map([.hosts[0], (.openblas | test("Prescott"))])')" "[[\"$h1\",false],[\"$h2\",true]]" \
    "run_start names the kernels of each host"
like "$(warned)" "kernels differ between hosts.* on $h1; .* Prescott on $h2: use machines of one kind" "a warning names the hosts"
ok "the daemon stops" stop_daemon

rm "$work/differ"
start_two OPENBLAS_CORETYPE=Prescott GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F
train "$two" '{"steps": 1}'
ok "a job of a daemon with fixed kernels succeeds" wait_state "$id" succeeded
is "$(started '.binding | map([.host, (.openblas | sub(".* "; ""))])')" "[[\"$h1\",\"Prescott\"],[\"$h2\",\"Prescott\"]]" \
    "they are those of the ranks on both hosts"
is "$(tr '\0' '\n' <"$state/jobs/$id/attempt-1/command" | grep -c -- '-x GLIBC_TUNABLES -x OPENBLAS_CORETYPE')" 1 \
    "and the choice of the engine goes to them too"
ok "the daemon stops" stop_daemon
done_testing
