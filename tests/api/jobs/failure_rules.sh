#!/usr/bin/env bash
# Failure rules: labels, no restart, nodes that are drained and nodes that are not, and a reload with a bad file.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
host=$(hostname)
host=${host%%.*}

printf '#!/bin/sh\nprintf "%%s|%%s\\n" "$1" "$2" >>%s\n' "$work/drained" >"$work/drain"
chmod +x "$work/drain"
touch "$work/drained"
cat >"$work/rules" <<'EOF'
# the site's own
exit-seven     no-restart            exit code 7
crash          drain-unverified      signal 4 \(
killed         drain                 signal 9 \(
EOF
start_runs "failure_rules = $work/rules" "node_drain_command = $work/drain"

ends() { # HOW LABEL RESTARTS NAME
    submit "steps=50 rank=0 $1" '' '{"restart": {"max": 1}}'
    ok "$4: the job fails" wait_state "$id" failed
    is "$(job "$id" failure_label)" "$2" "$4: its label"
    is "$(job "$id" failure.label)" "$2" "$4: also in its failure"
    is "$(job "$id" restarts)" "$3" "$4: its restarts"
}
ends "at=2 exit=7" exit-seven 0 "a rule that forbids restarts"
ends "at=2 exit=6" null 1 "no rule"
ends "at=2 signal=7" bus-error 1 "a rule of traind's own"
is "$(cat "$work/drained")" "" "nothing is drained so far"

ends "at=2 signal=9" killed 1 "a rule that drains what is known for certain"
is "$(cat "$work/drained")" "" "the job's output alone drains no node"
submit "steps=50 rank=0 at=2 forge=1 signal=6"
ok "a job whose log names another node fails" wait_state "$id" failed
like "$(job "$id" reason)" "on elsewhere was ended by signal 4" "and its reason names that node"
is "$(job "$id" failure_label)" crash "its rule fits"
submit "steps=50 rank=0 at=2 signal=4"
ok "a job whose log names its own node fails" wait_state "$id" failed
drained() { [ -s "$work/drained" ]; }
ok "which is drained, as the rule says" eventually drained
like "$(cat "$work/drained")" "^$host\|job $id, crash: rank 0 on [^ ]* was ended by signal 4" "with job, label and reason, and no other node"
is "$(wc -l <"$work/drained")" 1 "once"
like "$(sql "select body from job_event where job_id = $id and type = 'warning'")" "node $host is drained: job $id" "an event says so"

is "$(get "/v1/jobs?label=killed" | jq -c '[.total, (.jobs | length), .jobs[0].failure_label]')" '[1,1,"killed"]' "a list by label"
is "$(get "/v1/jobs?label=killed&sort=name" | jq .total)" 1 "also of a sorted one"
is "$(get "/v1/jobs?label=nothing" | jq .total)" 0 "of which there may be none"
count() { get "/v1/failures" | jq ".rules[] | select(.label == \"$1\").count"; }
is "$(count exit-seven) $(count bus-error) $(count disk-full)" "1 2 0" "failures are counted by attempt"
is "$(get "/v1/failures" | jq .unlabelled)" 2 "and so are those without a label"
is "$(get "/metrics" | grep -c '^traind_failures_total{label="crash"} 2$')" 1 "Prometheus counts them"
is "$(get "/metrics" | grep -c '^traind_failures_total{label="none"} 2$')" 1 "all of them"
is "$(get "/v1/failures" | jq -c '.rules[0] | [.label, .restart, .drain, .shipped]')" '["exit-seven",false,"no",false]' "the rules are told in order"
trainctl="$top_builddir/trainctl --server $url"
like "$($trainctl failures)" "crash +2 +- +unverified +- +failure_rules +signal 4" "trainctl failures"
like "$($trainctl list --label killed)" "failed" "trainctl list --label"
like "$($trainctl show "$id")" "failure label +crash" "trainctl show"

# A reload.
reloaded() { grep -q "$1" "$work/daemon.log"; }
printf 'exit-seven restrat exit code 7\n' >"$work/rules"
kill -HUP "$daemon"
ok "a bad file is refused" eventually reloaded 'the settings stay as they were: failure_rules: .*line 1: there is no action "restrat"; did you mean "restart"'
is "$(count crash)" 2 "and the old rules stay"
printf 'exit-eight no-restart exit code 8\n' >"$work/rules"
kill -HUP "$daemon"
known() { [ "$(count exit-eight)" = 0 ]; }
ok "a good one is taken, though no setting has changed" eventually known
is "$(get "/v1/failures" | jq .unlabelled)" 7 "what had a label that is gone counts without one"
ends "at=2 exit=8" exit-eight 0 "a new rule"
like "$("$top_builddir/traind" --config "$work/traind.conf" --check-config)" "failures are labelled exit-eight \(by failure_rules\), disk-full," "--check-config tells the labels"
printf 'x - (\n' >"$work/rules"
like "$("$top_builddir/traind" --config "$work/traind.conf" --check-config 2>&1)" "failure_rules: $work/rules, line 1: .* is no POSIX extended" "and refuses a bad file"
ok "the daemon stops in order" stop_daemon
done_testing
