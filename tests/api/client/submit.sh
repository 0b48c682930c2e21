#!/usr/bin/env bash
# Submitting a job: what the answer begins with, and the receipt that is answered instead.
. "$(dirname "$0")/../lib.sh"

# A job ends as soon as it starts: none of them is to train.
printf '%s\n' "worker = /bin/false" "restart_delay_seconds = 0" "node_check_seconds = 0" >"$work/traind.conf"
start_daemon --config "$work/traind.conf"

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
for prefer in return=representation return=minimalist x-return=minimal; do
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

ok "all have ended" eventually no_job_left
ok "the daemon stops in order" stop_daemon
done_testing
