#!/usr/bin/env bash
# Machines that train: reports, who may send them, verdicts by peers and history, draining, this machine among them, trainctl nodes.
. "$(dirname "$0")/../lib.sh"

trainctl=$top_builddir/trainctl
write_script "$work/drain" <<END
#!/bin/sh
printf '%s|%s\n' "\$1" "\$2" >>"$work/drained"
END
cat >"$work/traind.conf" <<END
node_drain_command = $work/drain
node_check_seconds = 0
worker = $top_builddir/tests/bin/train-worker
END
start_daemon --config "$work/traind.conf"
export TRAINCTL_SERVER=$url
now=$(date +%s)
own=$(hostname -s)

send() { # NAME GFLOPS [JQ]: a prolog's report
    call --unix-socket "$socket" -d "$(jq -nc --argjson g "$2" --argjson now "$now" \
        "{kind: \"CPU X\", cores: 4, phase: \"prolog\", outcome: \"fine\", t: \$now, gflops: \$g, memory_gb_per_sec: 20, clock_ghz: 3} | ${3:-.}")" \
        "/v1/nodes/$1/report"
}

# ------------------------------------------------------------------ this machine

call /v1/nodes
want 200 "the nodes of a daemon that has none but its own machine"
json '[.nodes[] | [.name, .local, .verdict, .slots_used, .jobs, .history, .checked]]' "[[\"$own\",true,\"unknown\",0,[],[],null]]" "it is listed, unchecked"
json '.nodes[0].slots > 0 and (.nodes[0].kind | length > 0)' true "with its slots and processor"
call "/v1/nodes/$own"
json .reason 'was not checked yet' "and says that it was not checked"

# ------------------------------------------------------------------ reports and verdicts

for n in 1 2 3; do send n$n $((100 + n)); done
want 200 "a report is taken"
json '[.name, .verdict, .reason]' '["n3","fine",null]' "and judged"
send n4 80
json .verdict 'slow' "a node that is 20 % slower is slow"
like "$body" 'SGEMM is 22 % slower than the median of 3 others of its kind \(CPU X\): 80.0, not 102.0 GFLOP/s' "with figures"
ok "nobody is drained for that" test ! -e "$work/drained"
send n5 50 '.load = 3 | .t -= 1'
json '[.verdict, .reason]' '["unknown","its speed was not judged: 3 other threads computed when it was checked"]' "half as fast while others compute: not judged"
ok "nor drained" test ! -e "$work/drained"
send n5 50
json .verdict 'drain' "half as fast by itself: drained"
like "$(cat "$work/drained")" '^n5\|SGEMM is 51 % slower' "the cluster is told with the reason"
send n6 100 '.outcome = "scratch" | .checks = [{check: "scratch", ok: false, found: "cannot write in /s; $(x) \"q\"", advice: "a"}]'
json .verdict 'drain' "a node whose scratch is broken is drained"
is "$(tail -1 "$work/drained")" 'n6|scratch: cannot write in /s; $(x) "q"' "with the words of the check, unharmed"
send n1 100 '.outcome = "data" | .job = 12 | .data = [{path: "/d", ok: false}] | .reason = "no data set at /d"'
json .verdict 'fine' "data that nobody sees drain nobody"
like "$body" 'job 12 was rejected; no data set at /d' "the rejection is told"
send n2 100 '.phase = "epilog" | del(.gflops)'
json .verdict 'fine' "an epilog"

call /v1/nodes
json '[.nodes[] | select(.local | not) | "\(.name) \(.verdict)"] | join(", ")' 'n1 fine, n2 fine, n3 fine, n4 slow, n5 drain, n6 drain' "all of them"
call /v1/nodes/n2
json '[.history[] | [.phase, .gflops, .verdict]]' '[["epilog",null,"fine"],["prolog",102,"fine"]]' "a node's history, the newest first"
call /v1/nodes/n5
json '[.load, [.history[] | [.load, .verdict]]]' '[0,[[0,"drain"],[3,"unknown"]]]' "a check under load is marked"
call /v1/nodes/n2
json '[.gflops, .slots, .slots_used, .report.phase]' '[102,4,0,"prolog"]' "figures, cores and the report with them stay"

# ------------------------------------------------------------------ a job's events, and its prediction

call -d '{"data": {"train": "synthetic", "train_images": 64}, "model": {"arch": "resnet50", "image_size": 32}, "cluster": {"workers_per_node": 1, "threads_per_worker": 1},
    "batch_per_worker": 8, "steps": 2, "checkpoint": {"disable": true}}' /v1/jobs
job=$(jq .id <<<"$body")
send n4 80 ".job = $job"
send n4 80 ".job = $job | .phase = \"epilog\" | del(.gflops)"
call "/v1/jobs/$job/events"
like "$(jq -r '.events[] | select(.type == "warning") | .message' <<<"$body")" '^node n4 \(slow\): SGEMM is 2[12] % slower' "the job tells what was wrong with its node"
is "$(jq '[.events[] | select(.type == "warning")] | length' <<<"$body")" 1 "once"

call -X POST "/v1/jobs/$job/cancel" # this machine is to be idle in the end
over() { get "/v1/jobs/$job" | jq -e '.state | IN("succeeded", "failed", "cancelled")' >/dev/null; }
ok "the job is over" eventually over

# ------------------------------------------------------------------ what is refused

call --unix-socket "$socket" -d '{"phase": "x"}' /v1/nodes/n1/report
refused 422 invalid '/(kind|phase|outcome|t)' "a report that is none"
send 'a%20b' 1
refused 400 usage 'letters, digits, dots' "a name that could be more than a name"
send ALL 1 '.outcome = "node"'
refused 400 usage 'ALL is every node' "all nodes at once"
call --unix-socket "$socket" -X POST /v1/nodes/n1/report
refused 400 usage 'self-check --json' "no body"
call /v1/nodes/none
refused 404 not-found 'no node none' "a node that is not known"

# ------------------------------------------------------------------ pages

pages() { # LIMIT: the names, a line a page
    local after=
    while call "/v1/nodes?limit=$1$after" && [ "$status" = 200 ]; do
        jq -r '[.nodes[].name] | join(" ")' <<<"$body"
        after="&after=$(jq -r .next <<<"$body")"
        [ "$after" != '&after=null' ] || break
    done
}
call '/v1/nodes?limit=1000'
all=$(jq -c '[.nodes[].name]' <<<"$body") rest=$(jq -c 'del(.nodes, .next)' <<<"$body")
is "$(jq -c sort <<<"$all")" "$all" "nodes are in order by name, this machine among them"
json '[.next, .total, .slow, .drained, .slots == ([.nodes[].slots] | add), .slots_used]' '[null,7,1,2,true,0]' "with what they are together"
for limit in 1 2 6 7 8; do
    pages $limit >"$work/pages"
    is "$(jq -Rsc 'split("\n") | map(select(. != "") | split(" ")) | add' "$work/pages")" "$all" "pages of $limit have each of them once"
    is "$(wc -l <"$work/pages") $(jq -c 'del(.nodes, .next)' <<<"$body")" "$(((6 + limit) / limit)) $rest" "$limit on each but the last, and the same of all"
done
call '/v1/nodes?after=zzzz'
json '[.nodes, .next]' '[[],null]' "nothing is behind the last"
call '/v1/nodes?after=a%20b'
refused 400 usage 'next on the previous page' "a page that begins nowhere"
call '/v1/nodes?limit=0'
refused 400 usage 'limit' "no nodes at all"

# ------------------------------------------------------------------ metrics and trainctl

call /metrics
is "$(promtool check metrics <<<"$body" 2>&1)" "" "promtool has nothing to say"
like "$body" '^traind_node_flops\{node="n4"\} 80000000000$' "metrics: speed"
like "$body" '^traind_node_memory_bytes_per_second\{node="n4"\} 20000000000$' "metrics: memory"
like "$body" '^traind_node_verdict\{node="n5",verdict="drain"\} 1$' "metrics: verdict"
like "$body" '^traind_node_verdict\{node="n5",verdict="fine"\} 0$' "metrics: and what it is not"
like "$body" "^traind_node_checked_timestamp_seconds\{node=\"n4\"\} $now" "metrics: when it was checked"
out=$("$trainctl" nodes)
is "$?" 0 "trainctl nodes"
like "$out" '^n4 +slow +80\.0 +20\.0 +0/4' "a line each"
like "$out" "^$own +unknown" "this machine too"
out=$("$trainctl" nodes n5)
like "$out" 'SGEMM is 51 % slower than the median' "trainctl nodes NAME: the reason in full"
like "$out" 'prolog +- +50\.0 +20\.0 +3\.?0* +0 +drain' "and the history"
like "$out" 'prolog +- +50\.0 +20\.0 +3\.?0* +3 +unknown' "with what else computed"
is "$("$trainctl" nodes --json | jq '.nodes | length')" 7 "trainctl nodes --json"
"$trainctl" nodes none >"$work/out" 2>&1
is "$?" 3 "trainctl nodes of an unknown node: 3"
"$trainctl" nodes 'a b' >"$work/out" 2>&1
is "$?" 2 "trainctl nodes with a wrong name: 2"

# ------------------------------------------------------------------ a job that starts on 1,024 nodes

jq -nc --argjson now "$now" '{kind: "CPU Y", cores: 64, phase: "prolog", outcome: "fine", t: $now, gflops: 100, memory_gb_per_sec: 20, clock_ghz: 3, data: [{path: "/d", ok: true}],
    checks: [range(20) | {check: "check \(.)", ok: true, found: "what was found, in words", advice: ""}]}' >"$work/report"
for n in {1..1024}; do
    [ "$n" = 1 ] || echo next
    printf '%s\n' "url = \"http://traind/v1/nodes/big$n/report\"" "unix-socket = \"$socket\"" "data-binary = \"@$work/report\"" \
        'header = "Content-Type: application/json"' 'write-out = "%{http_code}\n"' 'output = "/dev/null"'
done >"$work/reports"
curl -sS --parallel --parallel-immediate --parallel-max 300 --config "$work/reports" >"$work/statuses" 2>"$work/progress"
is "$(sort "$work/statuses" | uniq -c | xargs)" '1024 200' "all of 1,024 reports at once are taken"
call '/v1/nodes?limit=1000&after=big'
json '[(.nodes | length), .total, (.next | type), (.nodes | map(.history | length) | unique)]' '[1000,1031,"string",[1]]' "1,000 of them are the most on a page, with their checks"
is "$("$trainctl" nodes | grep -c '^big')" 1024 "trainctl nodes lists those of all pages"
"$trainctl" nodes --json >"$work/out"
is "$(jq -c '[(.nodes | map(.name) | unique | length), .next, .total]' "$work/out")" '[1031,null,1031]' "trainctl nodes --json too"

# ------------------------------------------------------------------ kept, and limits reloaded

stop_daemon
sed -i 's/node_check_seconds = 0/node_check_seconds = 1\nnode_slow_percent = 50\nnode_drain_percent = 0/' "$work/traind.conf"
start_daemon --config "$work/traind.conf"
call /v1/nodes/n5
json .verdict 'drain' "verdicts outlive a restart"
send n5 51
json .verdict 'fine' "other limits, another verdict"

# this machine is checked once no job has run for a second
checked() { # without call, whose status would become ok's
    get "/v1/nodes/$own" | jq -e '.gflops > 0' >/dev/null
}
checks_itself() {
    local began
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        began=$SECONDS
        until checked || [ $((SECONDS - began)) -ge 90 ]; do sleep 0.1; done
        ! checked || return 0
        stop_daemon # a busy machine's check took longer than it may, and the next one comes in an hour
        start_daemon --config "$work/traind.conf"
    done
    return 1
}
ok "this machine checks itself when it is idle" checks_itself
call "/v1/nodes/$own"
json '[.history[] | .phase] | unique' '["self"]' "it alone"
json '.verdict == (if .load > 0 then "unknown" else "fine" end) and .memory_gb_per_sec > 0 and .report.host != null' true "and is fine, unless others computed meanwhile"
ok "stop" stop_daemon

done_testing
