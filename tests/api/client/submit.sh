#!/usr/bin/env bash
# Submitting a job: what the answer begins with, and the question before one that is predicted to take more than a day.
. "$(dirname "$0")/../lib.sh"

# A job ends as soon as it starts: none of them is to train.
printf '%s\n' "worker = /bin/false" "restart_delay_seconds = 0" "node_check_seconds = 0" >"$work/traind.conf"
start_daemon --config "$work/traind.conf"
trainctl() {
    HOME=$work XDG_CACHE_HOME=$work XDG_CONFIG_HOME=$work "$top_builddir/trainctl" --server "$url" "$@"
}
on_terminal() { # INPUT ARGUMENT...
    HOME=$work XDG_CACHE_HOME=$work XDG_CONFIG_HOME=$work INPUT=$1 \
        /usr/bin/python3 "$top_srcdir/tests/api/client/terminal.py" 80 "$top_builddir/trainctl" --server "$url" "${@:2}"
}
jobs() { get /v1/jobs | jq .total; }

jq -n '{data: {train: "synthetic", train_images: 1000}, batch_per_worker: 4, cluster: {workers_per_node: 1, threads_per_worker: 1}, epochs: 100,
    model: {arch: "resnet18", image_size: 32, classes: 10}, lr: {warmup_epochs: 0}, restart: {max: 0}}' >"$work/short.json"

# ------------------------------------------------------------------ Prefer: return=minimal

call -d "@$work/short.json" /v1/jobs
want 201 "a job is taken"
like "$body" '^\{"warnings":\[' "its answer begins with the warnings"
json '.warnings == .plan.warnings' true "those of its plan"
is "$(grep -ci '^Preference-Applied' "$work/headers")" 0 "no preference was stated"
for prefer in return=minimal 'Return=Minimal' 'respond-async, return=minimal; x=y'; do
    call -d "@$work/short.json" -H "Prefer: $prefer" /v1/jobs
    want 201 "one with Prefer: $prefer"
    json keys '["id","state","url","warnings"]' "its answer has just these members"
    is "$(jq -r .url <<<"$body")" "$(sed -n 's/^[Ll]ocation: //p' <<<"$headers")" "its URL is that of the header"
    like "$headers" '^Preference-Applied: return=minimal$' "the preference was applied"
    ok "it is that job" get "$(jq -r .url <<<"$body")"
done
for prefer in return=representation respond-async; do
    call -d "@$work/short.json" -H "Prefer: $prefer" /v1/jobs
    json '.spec | type' object "Prefer: $prefer gets the job itself"
done
for times in 1 2; do
    call -d "@$work/short.json" -H 'Prefer: return=minimal' -H 'Idempotency-Key: twice' /v1/jobs
    want $((times == 1 ? 201 : 200)) "a repeated request, $times"
    json 'keys | length' 4 "it is answered as the first one"
done
call -d '{"data": {}}' -H 'Prefer: return=minimal' /v1/jobs
refused 422 invalid '/data/train' "a wrong document"

# ------------------------------------------------------------------ more than a day

call "/v1/speeds?key=resnet18-imagenet-32-fp32-t1"
cpu=$(jq -r .cpu <<<"$body")
call -d "$(jq -n --arg cpu "$cpu" '{key: "resnet18-imagenet-32-fp32-t1", cpu: $cpu, image_seconds: 2, update_seconds: 0, exchange_seconds: 0, workers: 1, batch: 4}')" /v1/speeds
want 201 "each image takes two seconds"
call -d "@$work/short.json" /v1/plan
json '.predicted.ttt_seconds.value > 86400' true "100,000 of them take more than a day"
like "$(jq -r .warnings[0] <<<"$body")" '^the job is predicted to take 2\.3[0-9]* days \(.* to .*\)' "the first warning says how long"
call -d "$(jq '.epochs = 1' "$work/short.json")" /v1/plan
json '.warnings | map(select(contains("days"))) | length' 0 "a shorter one has no such warning"

before=$(jobs)
out=$(trainctl submit "$work/short.json" 2>"$work/err" </dev/null)
is $? 0 "without a terminal it is submitted"
like "$out" '^job [0-9]+ ' "its id is printed"
like "$(cat "$work/err")" '^warning: the job is predicted to take 2\.3' "the warning goes to standard error"
out=$(on_terminal $'n\n' submit "$work/short.json")
is $? 1 "on a terminal the answer n ends it"
like "$out" 'predicted to take' "after the warning"
like "$out" 'Submit it\? \[y/N\]' "and the question"
is "$(jobs)" $((before + 1)) "it was not submitted"
on_terminal $'y\n' submit "$work/short.json" >"$work/out"
is $? 0 "the answer y submits it"
is "$(jobs)" $((before + 2)) "it is there"
on_terminal '' submit --yes "$work/short.json" >"$work/out"
is "$? $(grep -c 'y/N' "$work/out")" "0 0" "--yes asks nothing"
on_terminal $'n\n' submit --set epochs=1 "$work/short.json" >"$work/out"
is "$? $(grep -c 'y/N' "$work/out")" "0 0" "nor does a job of less than a day"
on_terminal $'n\n' clone --submit "$(get /v1/jobs | jq '.jobs[1].id')" >"$work/out"
is "$? $(grep -c 'y/N' "$work/out")" "1 1" "clone --submit asks as well"

ok "all have ended" eventually no_job_left
ok "the daemon stops in order" stop_daemon
done_testing
