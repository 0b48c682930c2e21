#!/usr/bin/env bash
# A link so slow that a step takes longer than stall_seconds: it is said, and the job goes on for as long as its gradients move. Prints
# TAP.
# shellcheck disable=SC2154,SC2317
# shellcheck source=tests/system/hosts/hosts.sh.inc
. "$(dirname "$0")/hosts.sh.inc"
hosts_up 2
small_data
start_hosts "slots = 4" "stall_seconds = 8"
train "$(jq -nc --arg a "$h1" --arg b "$h2" '{nodes: 2, hosts: [$a, $b], interface: "eth0"}')" '{"steps": 300, "restart": {"max": 0},
    "checkpoint": {"disable": true}, "data": {"train": "synthetic", "train_images": 96}}'
ok "a job trains" eventually has_events "$id" 2
# 2.8 MB of gradients go over it both ways in a step: more than 20 s.
"$net" rate "$lab" "$h2" 1mbit
said() { # SECONDS, a regular expression
    grep -qE "no step for ($1) s on .*: its ranks still exchange gradients: the network is slow" "$state/jobs/$id/attempt-1/stdout.log"
}
ok "its watchers say that the network is slow" eventually said '[0-9]+'
# traind would have ended it 4 s after stall_seconds.
ok "twice as long without a step" eventually said '1[6-9]|[2-9][0-9]'
is "$(job "$id" state)" running "it still runs"
"$net" rate "$lab" "$h2" off
ok "it succeeds" wait_state "$id" succeeded
is "$(job "$id" attempt)" 1 "in its first attempt"
like "$(curl -sS "$url/v1/jobs/$id/events?limit=1000" | jq -r '.events[] | select(.type == "warning") | .cause + ": " + .message')" \
    "all_reduce: no step for [0-9]+ s on .*the network is slow" "an event has it, with the cause"
ok "the daemon stops in order" stop_daemon
done_testing
