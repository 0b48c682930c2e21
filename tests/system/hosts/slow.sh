#!/usr/bin/env bash
# A link so slow that a step takes longer than stall_seconds: it is said, and the job goes on for as long as its gradients move.
# shellcheck source=tests/system/hosts/hosts.sh.inc
. "$(dirname "$0")/hosts.sh.inc"
hosts_up 2
worker=tests/paced/train-worker
small_data
start_patient 20 "slots = 4"
train "$two" '{"steps": 1000000, "restart": {"max": 0}, "checkpoint": {"disable": true}, "data": {"train": "synthetic", "train_images": 96}}'
ok "a job trains" eventually has_events "$id" 2
# 2.8 MB of gradients go over it both ways in a step: more than two and a half times stall_seconds.
"$net" rate "$lab" "$h2" $((8000 / stall_seconds))kbit
said() { # SECONDS: or more
    sed -nE 's/.*no step for ([0-9]+) s on .*: its ranks still exchange gradients: the network is slow.*/\1/p' "$state/jobs/$id/attempt-1/stdout.log" |
        awk -v least="$1" '$1 >= least { found = 1 } END { exit !found }'
}
ok "its watchers say that the network is slow" eventually said 0
# traind would have ended it 4 s after stall_seconds.
ok "twice as long without a step" eventually said $((2 * stall_seconds))
is "$(job "$id" state)" running "it still runs"
"$net" rate "$lab" "$h2" off
before=$(job "$id" step)
ok "it goes on" eventually has_events "$id" $((before + 5))
call -X POST "/v1/jobs/$id/cancel"
ok "and ends on request" wait_state "$id" cancelled
is "$(job "$id" attempt)" 1 "in its first attempt"
like "$(get "/v1/jobs/$id/events?limit=1000" | jq -r '.events[] | select(.type == "warning") | .cause + ": " + .message')" \
    "all_reduce: no step for [0-9]+ s on .*the network is slow" "an event has it, with the cause"
ok "the daemon stops in order" stop_daemon
done_testing
