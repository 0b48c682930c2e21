#!/usr/bin/env bash
# A job on three hosts (network namespaces) that loses one, continues on two, and with restart.grow grows to three again when the host is
# back and no job before it waits: without counting a restart, although the daemon is killed meanwhile, and with the weights of a user's
# resumes on the same hosts from the same checkpoints.
# shellcheck source=tests/system/hosts/hosts.sh.inc
. "$(dirname "$0")/hosts.sh.inc"
hosts_up 3
small_data
worker=tests/paced/train-worker
start_hosts "slots = 4" "stall_seconds = 20"
change cancel_grace_seconds 60
three=$(jq -nc --arg a "$h1" --arg b "$h2" --arg c "$h3" '{nodes: 3, hosts: [$a, $b, $c], interface: "eth0", workers_per_node: 1}')
two=$(jq -c '.nodes = 2 | del(.hosts[2])' <<<"$three")
document() { # RESTART
    jq -nc "{steps: 100, checkpoint: {every_steps: 1, keep: 10000}, restart: $1}"
}
is_above() { # ID STEP
    [ "$(job "$1" step)" -gt "$2" ]
}
has_nodes() { # ID "NODES GROWS_TO"
    [ "$(job "$1" '| "\(.spec.cluster.nodes) \(.grows_to // "-")"')" = "$2" ]
}
replans() { # ID
    sql "select json_extract(body, '\$.step'), json_extract(body, '\$.before.world_size'), json_extract(body, '\$.after.world_size')
        from job_event where job_id = $1 and type = 'resume' order by id"
}
reasons() { # ID
    sql "select json_extract(body, '\$.reason') from job_event where job_id = $1 and type = 'state' order by id"
}
host_has_answered() { # ID: to the job's question whether it can grow
    jq -e --arg host "$h3" '.asked and any(.hosts[]; .name == $host and (has("problem") | not))' \
        "$state/jobs/$1/attempt-$(job "$1" attempt)/hosts-to-grow/hosts.json" >/dev/null
}
is_asked_to_stop() { # ID
    compgen -G "$state/jobs/$1/attempt-*/grow-requested" >/dev/null
}

train "$three" "$(document '{grow: true, grow_seconds: 0, max: 2}')"
want 201 "a job that may grow is taken"
first=$id
ok "it trains on three hosts" eventually is_above "$first" 3
"$net" link "$lab" "$h3" down
ok "without the third it has two" eventually has_nodes "$first" "2 3"
like "$(reasons "$first")" "^continues with 2 workers on 2 hosts and grows again when more answer: host $h3 does not answer" "as an event says"
lost=$(replans "$first" | cut -d'|' -f1)
ok "it trains on" eventually is_above "$first" $((lost + 2))
like "$(reasons "$first")" "^continues with 2 workers on 2 of 2 hosts; grows to 3$" "it says to how many it grows"
like "$("$top_builddir/trainctl" --server "unix:$socket" show "$first")" "nodes +2 of 3; grows when more of its hosts answer and are free" \
    "so does trainctl show"

train "$two" '{"priority": 9}'
waiting=$id
is "$(job "$waiting" state)" queued "a job of higher priority waits for its hosts"
"$net" link "$lab" "$h3" up
ok "the third host answers again" eventually host_has_answered "$first"
ok "the job does not grow before the other" has_nodes "$first" "2 3"
call -X POST "/v1/jobs/$waiting/cancel"
ok "when no other waits, it is asked to stop" eventually is_asked_to_stop "$first"
kill_daemon
start_hosts "slots = 4" "stall_seconds = 20"
change cancel_grace_seconds 60
ok "though the daemon was killed, it has three" eventually has_nodes "$first" "3 -"
grown=$(replans "$first" | cut -d'|' -f1 | tail -n 1)
is "$(replans "$first")" "$lost|3|2"$'\n'"$grown|2|3" "events have the numbers"
like "$(reasons "$first")" "^stopped to go on with more hosts after step $grown; continues from its checkpoint of step $grown$" "and the reason"
ok "it succeeds" wait_state "$first" succeeded
is "$(job "$first" '| "\(.restarts) \(.attempt)"')" "2 4" "the growth is an attempt, and no restart"
is "$(job "$first" '| "\(.spec.steps) \(.plan.global_batch)"')" "100 12" "with the batch and the steps of its document"

# ---- the same by hand, without lost hosts
cut_after() { # STEP: nothing remains of later steps
    local folder
    for folder in "$state/jobs/$id/checkpoints"/step-*; do
        [ "$((10#${folder##*-}))" -le "$1" ] || rm -r "$folder"
    done
}
stopped() { # STEP: the job has a checkpoint of it, and has ended
    eventually is_above "$id" "$1"
    call -X POST "/v1/jobs/$id/cancel"
    wait_state "$id" cancelled && cut_after "$1"
}
resume() { # CLUSTER
    call -H 'Content-Type: application/json' -d "{\"cluster\": $1}" "/v1/jobs/$id/resume"
}
train "$three" "$(document '{max: 0}')"
ok "a job on three hosts is cancelled" stopped "$lost"
resume "$(jq -c '{nodes, hosts}' <<<"$two")"
want 202 "resumed on two"
ok "and cancelled" stopped "$grown"
resume "$(jq -c '{nodes, hosts}' <<<"$three")"
want 202 "resumed on three"
ok "it succeeds" wait_state "$id" succeeded
is "$(replans "$id")" "$(replans "$first")" "at the same steps"
is "$(weights "$id")" "$(weights "$first")" "with the same weights, bit by bit"
done_testing
