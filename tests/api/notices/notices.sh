#!/usr/bin/env bash
# Notices from the job's document and the administrator's rules to real receivers: what is sent for each kind, its shapes, its signature
# (checked by openssl), who sees it, trainctl notify, what is refused.
# shellcheck source=tests/api/notices/notices.sh.inc
. "$(dirname "$0")/notices.sh.inc"
trainctl=${TRAINCTL:-$top_builddir/trainctl}
receive hook
receive admin
printf '%s\n' '# of the receivers' "127.0.0.1 correct-horse" >"$work/secrets"
jq -n --arg to "http://127.0.0.1:$admin/rule" '[{to: $to, on: ["failed", "node_drained", "sweep_done"], secret: "of the rule"},
    {to: $to, on: ["succeeded"], by: "nobody", format: "text"}]' >"$work/rules.json"
chmod 600 "$work/secrets" "$work/rules.json"
printf '%s\n' "exit-nine notify=http://127.0.0.1:$admin/label exit code 9" "exit-eight notify-text=http://127.0.0.1:$admin/chat,no-restart exit code 8" >"$work/failures"
start_runs "failure_rules = $work/failures" "notify_allow = 127.0.0.0/8" "notify_secret_file = $work/secrets" "notify_rules = $work/rules.json" "node_drain_command = /bin/true" "public_url = https://t.example/base/"

# ------------------------------------------------------------------ a job that succeeds: JSON, signature, text

here=http://127.0.0.1:$hook
submit_noted "fixture steps=4 eval=1" "$(jq -n --arg here "$here" '[{to: ($here + "/json")}, {to: ($here + "/text"), on: ["succeeded", "target_met"], format: "text"},
    {to: ($here + "/never"), on: ["failed"]}]')" '{"data": {"train": "synthetic", "eval": "synthetic", "train_images": 64, "eval_images": 8}, "eval": {"target_top1": 0.2}}'
want 201 "a job with notify is taken"
first=$id
ok "it succeeds" wait_state "$first" succeeded
ok "its notices arrive" eventually has_got hook 3
ok "and wait no more" eventually settled
is "$(got hook | sort | tr '\n' ' ')" "/json /text /text " "what its rules name, and nothing else"
is "$(count admin)" 0 "rules that do not name it, or not its owner, send nothing"
sent=$(got hook . | jq -c 'select(.path == "/json")')
is "$(jq -c '.body | fromjson | [.kind, .to, .url, .job.id, .job.state, .job.step, .job.train_steps, .job.ttt_seconds, .job.images_per_sec, .sweep, .node]' <<<"$sent")" \
    "[\"succeeded\",\"$here/json\",\"https://t.example/base/#/jobs/$first\",$first,\"succeeded\",4,4,1.5,123.25,null,null]" "the body tells the job's result and its page"
is "$(jq -c '.body | fromjson | [.job.top1, .evals[0].top1, (.t > 1e9)]' <<<"$sent")" "[$(job "$first" top1),$(job "$first" top1),true]" "with its accuracy"
is "$(jq -r '.headers["Traind-Notice-Id"]' <<<"$sent")" "$(jq -r '.body | fromjson | .notice' <<<"$sent")" "header and body name the notice"
is "$(jq -r '.headers | [.["Content-Type"], .["User-Agent"]] | join(" ")' <<<"$sent")" "application/json traind/$("$traind" --version | cut -d' ' -f2)" "with its usual headers"

# As doc/notices.md says it.
signature() { # SECRET of $sent
    printf '%s.%s' "$(jq -r '.headers["Traind-Timestamp"]' <<<"$sent")" "$(jq -r .body <<<"$sent")" | openssl dgst -sha256 -hmac "$1" -r | cut -d' ' -f1
}
is "$(jq -r '.headers["Traind-Signature"]' <<<"$sent")" "v1=$(signature correct-horse)" "its signature is openssl's"
ok "which another secret does not make" test "$(jq -r '.headers["Traind-Signature"]' <<<"$sent")" != "v1=$(signature wrong-horse)"
is "$(jq '.headers["Traind-Timestamp"] | now - tonumber | . >= -1 and . < 600' <<<"$sent")" true "with the time of the attempt"

text=$(got hook . | jq -r 'select(.path == "/text") | .body' | grep succeeded)
is "$(jq -c keys <<<"$text")" '["text"]' "a chat service gets a text and nothing else"
like "$(jq -r .text <<<"$text")" "^Job $first \(fixture steps=4 eval=1\) has succeeded" "it says what became of the job"
like "$(jq -r .text <<<"$text")" "top-1 [0-9.]+ %.*, 123.25 images/s, time to train 1.5 s, step 4 of 4" "its result"
like "$(jq -r .text <<<"$text")" "https://t.example/base/#/jobs/$first$" "and its page"
met=$(got hook . | jq -r 'select(.path == "/text") | .body' | grep target)
like "$(jq -r .text <<<"$met")" "has met its target" "another told that the target was met"

# ------------------------------------------------------------------ a job that fails, and the administrator's rule

submit_noted "fixture steps=4 rank=0 at=2 exit=3" "$(jq -n --arg here "$here" '[{to: ($here + "/json"), on: ["failed"]}]')"
ok "a job fails" wait_state "$id" failed
ok "its rule and the administrator's are told" eventually has_got admin 1
ok "both" eventually has_got hook 4
sent=$(got admin . | head -n 1)
is "$(jq -r '.headers["Traind-Signature"]' <<<"$sent")" "v1=$(signature 'of the rule')" "a rule has a secret of its own"
is "$(jq -r '.body | fromjson | .reason == .job.reason and .job.state == "failed"' <<<"$sent")" true "with the reason"
is "$(jq -r '.body | fromjson | .job.reason' <<<"$sent")" "$(job "$id" reason)" "as the job has it"

submit_noted "fixture steps=4 rank=0 at=2 exit=3" '[]' '{"restart": {"max": 1}}'
ok "a job without notify fails after a restart" wait_state "$id" failed
ok "the administrator is told" eventually has_got admin 2
ok "nothing waits" eventually settled
is "$(count admin) $(count hook)" "2 4" "once, not for the attempt that was restarted, and nobody else"

# ------------------------------------------------------------------ failed attempts: for who wants to know, and by a failure rule

submit_noted "fixture steps=4 rank=0 at=2 exit=9 first=1" "$(jq -n --arg here "$here" '[{to: ($here + "/attempt"), on: ["attempt_failed"]}]')" '{"restart": {"max": 1}}'
ok "a job succeeds after a restart" wait_state "$id" succeeded
ok "nothing waits" eventually settled
is "$(got admin .path | tail -n +3) $(got hook .path | tail -n +5)" "/label /attempt" "the target of the rule that labels the failure is told of the attempt, and so is the one of the job"
sent=$(got admin . | tail -n 1)
is "$(jq -c '.body | fromjson | [.kind, .job.id, .job.state, .event.label, .event.attempt, .event.exit_code]' <<<"$sent")" \
    "[\"attempt_failed\",$id,\"queued\",\"exit-nine\",1,9]" "with the label, and that it is queued again"
is "$(jq -r '.headers["Traind-Signature"]' <<<"$sent")" "v1=$(signature correct-horse)" "signed as others to this host"
submit_noted "fixture steps=4 rank=0 at=2 exit=8" '[]'
ok "a job fails" wait_state "$id" failed
ok "nothing waits" eventually settled
is "$(got admin .path | tail -n +4 | sort | tr '\n' ' ')" "/chat /rule " "the rule's target and that of all failed jobs are told"
like "$(got admin . | jq -r 'select(.path == "/chat") | .body | fromjson | .text' | head -n 1)" "^Job $id \(.*\): attempt 1 has failed \(exit-eight\): (rank 0|mpirun) ended with exit code 8" "in words for a chat"
call /v1/failures
json '[.rules[] | select(.notify) | .label] | join(" ")' "exit-nine exit-eight" "GET /v1/failures says which rules tell somebody"
like "$body" '^[^@]*$' "and not whom"
is "$(grep -c 127.0.0.1 <<<"$body")" 0 "of their targets"
like "$("$trainctl" --server "$url" failures)" 'exit-eight +1 +no +no +yes' "trainctl failures too"
call "/v1/notices?job=$id"
json '.notices | length' 0 "notices of such rules are for administrators"

# ------------------------------------------------------------------ cancelled, straggler, stalled, sweep, node

submit_noted "fixture steps=100000 step_ms=20" "$(jq -n --arg here "$here" '[{to: ($here + "/cancelled"), on: ["cancelled", "stalled", "straggler"]}]')"
ok "a job runs" eventually has_events "$id" 1
events=$state/jobs/$id/attempt-1/events.jsonl
for n in 1 2; do # as the workers' watchers write them, behind the fixture's own
    printf '{"seq": %d, "t": 1789.5, "type": "straggler", "step": 1, "rank": 1, "host": "n1", "phase": "forward", "busy_ms": 200, "median_ms": 100, "steps": 5, "message": "rank 1 is slower than the others"}\n' $((900000 + 2 * n)) >>"$events"
    printf '{"seq": %d, "t": 1789.5, "type": "warning", "message": "no step for 300 s", "stalled_seconds": 300}\n' $((900001 + 2 * n)) >>"$events"
done
ok "straggler and stall are told" eventually has_got hook 7
is "$(got hook . | jq -r 'select(.path == "/cancelled") | .body | fromjson | select(.kind == "straggler") | .reason')" "rank 1 is slower than the others" "with the worker's words"
like "$("$trainctl" --server "$url" show "$id")" '^straggler +rank 1 is slower than the others' "which trainctl show tells too"
call -X POST "/v1/jobs/$id/cancel"
ok "it is cancelled" wait_state "$id" cancelled
ok "which is told too" eventually has_got hook 8
ok "nothing waits" eventually settled
is "$(got hook | grep -c cancelled)" 3 "each once in an attempt"
is "$(got hook . | jq -r 'select(.path == "/cancelled") | .body | fromjson | .kind' | tr '\n' ' ')" "straggler stalled cancelled " "in their order"
is "$(got hook . | jq -r 'select(.path == "/cancelled") | .body | fromjson | select(.kind == "stalled") | .reason')" "no step for 300 s" "with the words of the warning"

call -d "$(jq --arg here "$here" '{name: "<!channel> a&b <https://evil.example|x> @all [x](https://evil.example)", base: (.name = "fixture steps=2" | .notify = [{to: ($here + "/sweep"), on: ["sweep_done"], format: "text"}]), parameters: {"/seed": [1, 2]}, metric: "loss"}' "$work/job.json")" /v1/sweeps
want 201 "a sweep"
ok "its end is told" eventually has_got hook 9
like "$(got hook . | tail -n 1 | jq -r '.body | fromjson | .text' | tr '\n' ' ')" "^Sweep 1 \(&lt;!channel&gt; a&amp;b &lt;https://evil.example\|x&gt; @"$'\u200b'"all \[x\]"$'\u200b'"\(https://evil.example\)\) has ended: succeeded, 2 of 2 trials succeeded.*sweeps/1 $" "with its result, and no commands of chat services"
ok "to the administrator too" eventually has_got admin 6
like "$(got admin .body | tail -n 1)" '"sweep":\{"id":1,' "as JSON"

node() {
    call --unix-socket "$socket" -d "$(jq -nc '{kind: "CPU X", cores: 4, phase: "prolog", outcome: "scratch", t: now, gflops: 100, memory_gb_per_sec: 20, clock_ghz: 3,
        checks: [{check: "scratch", ok: false, found: "the disk is full", advice: "a"}]}')" /v1/nodes/n7/report
}
node
json .verdict drain "a node is drained"
ok "which the administrator is told" eventually has_got admin 7
like "$(got admin .body | tail -n 1)" '"kind":"node_drained".*"node":\{"name":"n7"' "by its name"
node
ok "nothing waits" eventually settled
is "$(count admin)" 7 "a node that stays drained is told once"

# ------------------------------------------------------------------ who sees it

call "/v1/notices?job=$first"
json '[.notices[] | "\(.kind) \(.state) \(.attempts) \(.rule)"] | sort | join(", ")' \
    "succeeded delivered 1 false, succeeded delivered 1 false, target_met delivered 1 false" "GET /v1/notices tells what became of them"
json '.notices | map(.done_at > 1e9 and .next_at == null and .error == null) | all' true "and when"
call '/v1/notices?limit=2'
next=$(jq .next <<<"$body")
call "/v1/notices?limit=2&after=$next"
json ".notices | map(.id < $next) | length, all" "2
true" "in pages"
call '/v1/notices?limit=1000'
json '.notices | map(.rule) | any' false "rules of the administrator are not for others"
call --unix-socket "$socket" '/v1/notices?limit=1000'
json '.notices | map(select(.rule)) | length' 7 "but for administrators"
call '/v1/notices?state=gone'
refused 400 usage "waiting, delivered or failed" "another state"

call /metrics
is "$(sed -n 's/^traind_notices_total{state="delivered"} //p' <<<"$body") $(sed -n 's/^traind_notices_waiting //p' <<<"$body")" \
    "$(sql "select count(*) from notice") 0" "Prometheus counts them"

# ------------------------------------------------------------------ trainctl notify

sql "insert into notice (uid, t, kind, target, format, by_rule, body, state, next_at)
    values ('one that waits', unixepoch(), 'failed', '$here/test', 'json', 1, '{}', 'waiting', unixepoch() + 3600)"
"$trainctl" --server "$url" notify test "$here/test" >"$work/out" 2>&1
is $? 0 "trainctl notify test ends well, though an older notice to that target waits"
sql "delete from notice where uid = 'one that waits'"
like "$(cat "$work/out")" "^delivered to $here/test" "and says so"
like "$(got hook . | tail -n 1 | jq -r .body)" '"kind":"test"' "the receiver got it"
"$trainctl" --server "$url" notify test --format text "$here/fail" >"$work/out" 2>&1
is $? 1 "a receiver that refuses it"
like "$(cat "$work/out")" "not delivered to $here/fail: the answer is 500" "is named with its answer"
ok "a test is not sent again" settled
like "$("$trainctl" --server "$url" notify list --state failed)" "test +- +failed .* $here/fail +the answer is 500" "trainctl notify list"
is "$("$trainctl" --server "$url" --json notify list --job "$first" | jq '.notices | length')" 3 "of a job"
like "$("$trainctl" --server "unix:$socket" audit --action notice.test)" "$here/test" "the audit log has the tests"

# ------------------------------------------------------------------ what is refused: all at once, in a plan too

call -d "$(jq '.notify = [{to: "ftp://x", on: ["succeded", "failed"], format: "xml"}, {on: [], colour: 1}, 5, {to: "https://eve:pw@example.org/"}, {to: "mailto:-oQ@x"}]' "$work/job.json")" /v1/plan
want 422 "a plan with wrong rules is refused"
json '[.errors[] | .pointer] | sort | join(" ")' "/notify/0/format /notify/0/on/0 /notify/0/to /notify/1/colour /notify/1/on /notify/1/to /notify/2 /notify/3/to /notify/4/to" "all at once"
json '.errors[] | select(.pointer == "/notify/0/on/0") | .suggestion' succeeded "with the nearest word"
like "$(jq -r '.errors[] | select(.pointer == "/notify/3/to") | .message' <<<"$body")" "user name or password" "a password is none for a document"
call -d "$(jq '.notify = [range(9) | {to: "https://example.org/"}]' "$work/job.json")" /v1/jobs
refused 422 invalid "at most 8 objects" "more rules than eight"
call -d '{"to": "https://example.org/#x", "on": ["failed"], "form": 1}' /v1/notices/test
want 422 "a wrong test is refused"
json '[.errors[] | .pointer] | sort | join(" ")' "/form /on /to" "all at once"

# The configuration: files are checked before they are used.
checked() {
    "$traind" --config "$work/traind.conf" --check-config 2>&1
}
like "$(checked)" "are valid" "the settings are right"
chmod 644 "$work/secrets"
like "$(checked)" "notify_secret_file: .*chmod 600" "a file of secrets that others may read is refused"
chmod 600 "$work/secrets"
echo '[{"to": "https://example.org", "on": ["fail"], "bye": "eve"}, {"to": 5}]' >"$work/rules.json"
like "$(checked | tr '\n' ' ')" 'notify_rules: .*rules.json: rule\[0\].bye: .* rule\[0\].on\[0\]: .*mean failed\? rule\[1\].to: is required' "wrong rules are named, all of them"
kill -HUP "$daemon"
ok "on SIGHUP they change nothing" eventually grep -q "keeping the previous settings: notify_rules" "$work/daemon.log"
echo '[]' >"$work/rules.json"
kill -HUP "$daemon"
ok "right ones are taken" eventually grep -q "settings reloaded" "$work/daemon.log"
submit_noted "fixture steps=4 rank=0 at=2 exit=3" '[]'
ok "a job fails" wait_state "$id" failed
ok "nothing waits" eventually settled
is "$(count admin)" 7 "and nobody is told any more"
sql "update notice set done_at = done_at - 40 * 86400 where kind = 'test'"
ok "the daemon stops in order" stop_daemon
restart_runs
trimmed() { [ "$(sql "select count(*) from notice where kind = 'test'")" = 0 ]; }
ok "old notices are deleted" eventually trimmed
ok "others are kept" test "$(sql "select count(*) from notice")" -gt 5
ok "and it stops again" stop_daemon
done_testing
