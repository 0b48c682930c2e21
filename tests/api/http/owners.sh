#!/usr/bin/env bash
# Whose a job is: who may cancel, resume and remove it, and where it stands who did.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
trainctl=$top_builddir/trainctl
unset TRAINCTL_SERVER TRAINCTL_TOKEN
me=$(id -un)

grace=2 # for a job that is cancelled before it listens
start_runs 'require_token = yes'
local_call() { call --unix-socket "$socket" "$@"; }
job() {
    curl -sS --unix-socket "$socket" "http://localhost/v1/jobs/$1" | jq -r ".$2"
}
declare -A token
for who in alice bob op "$me"; do
    role=submit
    [ "$who" != op ] || role=operator
    token[$who]=$("$trainctl" --server "unix:$socket" token create --role $role "$who" 2>/dev/null)
    like "${token[$who]}" '^traind-' "a token for $who, $role"
done
with() { # NAME [CURL ARGUMENT...] PATH
    call -H "Authorization: Bearer ${token[$1]}" "${@:2}"
}
submit_as() { # NAME, "" over the socket; JOB'S NAME [MORE]: sets $id
    local none='{}'
    jq -n --arg name "$2" --argjson more "${3:-$none}" '{name: $name, cluster: {workers_per_node: 1, threads_per_worker: 1},
        data: {train: "synthetic", train_images: 64}, batch_per_worker: 4, steps: 4, restart: {max: 0},
        model: {image_size: 32, classes: 10}} + $more' >"$work/job.json"
    if [ -n "$1" ]; then with "$1" -d "@$work/job.json" /v1/jobs; else local_call -d "@$work/job.json" /v1/jobs; fi
    id=$(jq -r '.id // 0' <<<"$body")
}
asked() { # ID: of its events those that somebody asked for, as state=who
    curl -sS --unix-socket "$socket" "http://localhost/v1/jobs/$1/events?types=state" |
        jq -r '[.events[] | select(.by) | "\(.state)=\(.by)"] | join(" ")'
}
logged() { grep -qE "$1" "$work/daemon.log"; }

# ------------------------------------------------------------------ cancelling

submit_as alice 'steps=100000 step_ms=20'
first=$id
json .submitted_by token:alice "a job belongs to the token that submitted it"
ok "it runs" eventually has_events "$first" 1
with bob -X POST "/v1/jobs/$first/cancel"
refused 403 not-allowed "job $first belongs to token:alice, but you are token:bob.*role operator" "another submitter cancels it"
is "$(job "$first" state)" running "it goes on"
with alice -X POST "/v1/jobs/$first/cancel"
want 202 "its owner cancels it"
ok "it ends" wait_state "$first" cancelled
is "$(asked "$first")" "queued=token:alice running=token:alice cancelled=token:alice" "its events say who"
ok "so does the log" logged "job $first: its cancelling was requested by token:alice"

submit_as alice 'steps=100000 step_ms=20'
ok "another job of hers runs" eventually has_events "$id" 1
with op -X POST "/v1/jobs/$id/cancel"
want 202 "an operator cancels the job of another"
ok "it ends" wait_state "$id" cancelled
is "$(asked "$id" | sed 's/.* //')" "cancelled=token:op" "and the end says that it was the operator"

# ------------------------------------------------------------------ a token and a user of one name are two owners

submit_as "" 'steps=100000 step_ms=20'
json .submitted_by "user:$me" "over the unix socket a job belongs to the user"
users=$id
ok "it runs" eventually has_events "$users" 1
with "$me" -X POST "/v1/jobs/$users/cancel"
refused 403 not-allowed "job $users belongs to user:$me, but you are token:$me" "a token that is named like the user"
submit_as "$me" 'steps=4'
json .submitted_by "token:$me" "the token's own jobs are told from the user's"
local_call -X POST "/v1/jobs/$users/cancel"
want 202 "the user himself"
ok "it ends" wait_state "$users" cancelled

# ------------------------------------------------------------------ jobs of earlier versions, or of an open loopback

sql "update job set submitted_by = 'alice' where id = $users"
with alice -X DELETE "/v1/jobs/$users"
refused 403 not-allowed "job $users belongs to alice" "a name without its kind is nobody's who can ask"
sql "update job set submitted_by = null where id = $users"
with bob -X DELETE "/v1/jobs/$users"
want 200 "a job without an owner: everybody who may submit"
ok "its removal is logged" logged "job $users: removed by token:bob"

# ------------------------------------------------------------------ resuming and removing

mkdir -p "$state/jobs/$first/checkpoints/step-00000003"
with bob -X POST "/v1/jobs/$first/resume"
refused 403 not-allowed 'belongs to token:alice' "another submitter resumes a job"
with bob -d '{"priority": 10}' "/v1/jobs/$first/resume"
refused 403 not-allowed 'belongs to token:alice' "or changes its priority"
with bob -X DELETE "/v1/jobs/$first"
refused 403 not-allowed 'belongs to token:alice' "or removes it"
with bob -X DELETE /v1/jobs/999
refused 404 not-found 'no job 999' "a job that is not there"
for change in hold release priority; do
    with bob -d '{"priority": 10}' "/v1/jobs/$first/$change"
    refused 403 not-allowed 'belongs to token:alice' "or does it $change"
done
with bob -X PATCH -d '{"add_tags": ["a"]}' "/v1/jobs/$first"
refused 403 not-allowed 'belongs to token:alice' "or labels it"
with alice -X PATCH -d '{"add_tags": ["a"]}' "/v1/jobs/$first"
want 200 "its owner labels it"
with op -X DELETE "/v1/jobs/$first"
want 200 "an operator removes it"
ok "the log says who" logged "job $first: removed by token:op"
ok "and who submitted it" grep -q "job [0-9]*: submitted by token:alice" "$work/daemon.log"
ok "and who made tokens" grep -qE "token [0-9]+ \(alice, role submit\): made by (user:|token:)" "$work/daemon.log"

# ------------------------------------------------------------------ sweeps

jq '{base: (. + {name: "steps=100000 step_ms=20"}), parameters: {"/seed": [1, 2]}, metric: "loss", concurrency: 1}' "$work/job.json" >"$work/sweep.json"
with alice -d "@$work/sweep.json" /v1/sweeps
want 201 "a sweep"
json .submitted_by token:alice "which belongs to its submitter"
sweep=$(jq .id <<<"$body")
trial() { [ "$(sql "select count(*) from sweep_trial where sweep_id = $sweep and state = 'submitted'")" -gt 0 ]; }
ok "its first job is submitted" eventually trial
trial=$(sql "select job_id from sweep_trial where sweep_id = $sweep and state = 'submitted'")
is "$(job "$trial" submitted_by)" "sweep $sweep" "the job says whose it is"
with bob -X POST "/v1/jobs/$trial/cancel"
refused 403 not-allowed "job $trial belongs to token:alice" "another submitter cancels a sweep's job"
with bob -X POST "/v1/sweeps/$sweep/cancel"
refused 403 not-allowed "sweep $sweep belongs to token:alice" "or the sweep"
with op -X POST "/v1/sweeps/$sweep/cancel"
want 200 "an operator cancels it"
ok "the log says who" logged "sweep $sweep: cancelled by token:op"
ok "its job ends" wait_state "$trial" cancelled
is "$(asked "$trial" | sed 's/.* //')" "cancelled=token:op" "and says who asked"

# ------------------------------------------------------------------ speeds

call --unix-socket "$socket" "/v1/speeds?key=resnet18-imagenet-32-fp32-t1"
cpu=$(jq -r .cpu <<<"$body")
speed_as() { # NAME SECONDS-OF-AN-IMAGE
    with "$1" -d "$(jq -n --arg cpu "$cpu" "{key: \"resnet18-imagenet-32-fp32-t1\", cpu: \$cpu, image_seconds: 1, update_seconds: 0,
        exchange_seconds: 0, workers: 1, batch: 4}" | sed "s/\"image_seconds\": 1/\"image_seconds\": $2/")" /v1/speeds
}
document='{"cluster": {"workers_per_node": 1, "threads_per_worker": 1}, "data": {"train": "synthetic", "train_images": 64}, "batch_per_worker": 4,
    "model": {"arch": "resnet18", "image_size": 32, "classes": 10}}'
rate_of() { # NAME: images per second that a plan of this user has
    with "$1" -d "$document" /v1/plan
    jq '.predicted.images_per_sec.value' <<<"$body"
}
previewed() { # WHAT
    with bob -d "{\"base\": $document, \"metric\": \"loss\", \"parameters\": {\"seed\": [1, 2, 3]}}" /v1/sweeps/plan
    want 200 "$1"
}
is "$(rate_of bob)" null "no speed is known"
for wrong in 1e308 1e-320 86401 1e-10; do
    speed_as alice "$wrong"
    refused 422 invalid 'image_seconds must be a number from 1e-9 to 86400' "a speed of $wrong s an image"
done
speed_as alice 0.5
want 201 "a submitter adds a speed"
is "$(rate_of alice) $(rate_of bob)" '2 null' "it is for her own plans alone"
with alice "/v1/speeds?key=resnet18-imagenet-32-fp32-t1"
json '.speeds | length' 1 "she sees it"
with bob "/v1/speeds?key=resnet18-imagenet-32-fp32-t1"
json '.speeds | length' 0 "another does not"
previewed "a sweep is previewed without it"
json '[.jobs_without_speed, .seconds.value] | tojson' '[3,null]' "no time is known"
speed_as op 0.25
is "$(rate_of bob)" 4 "what an operator adds is for all"
local_call '/v1/audit?action=speed.add'
json '[.lines[] | "\(.by): \(.detail | sub(" on .*:"; ""))"] | join(", ")' \
    "token:op: resnet18-imagenet-32-fp32-t1 0.25 s an image, for all users, token:alice: resnet18-imagenet-32-fp32-t1 0.5 s an image" "the audit log has both"

# What an earlier version stored was any number above 0.
for bad in 1e308 1e-320 9e999; do
    sqlite3 "$state/traind.db" ".timeout 60000" "insert into speed (key, cpu, t, workers, batch, image_seconds, update_seconds, exchange_seconds)
        values ('resnet18-imagenet-32-fp32-t1', '${cpu//\'/\'\'}', 1, 1, 4, $bad, 0, 0)"
done
previewed "a sweep is previewed where the database has absurd speeds"
json '[.jobs_without_speed, .seconds.value > 0] | tojson' '[0,true]' "they are left out"
is "$(rate_of bob)" 4 "and of a plan"

# ------------------------------------------------------------------ the audit log

audit() { "$trainctl" --server "unix:$socket" --json audit "$@" | jq -r '[.lines[] | "\(.action)=\(.by)"] | reverse | join(" ")'; }
is "$(audit --target "$first" --action job.submit) $(audit --target "$first" --action job.cancel) $(audit --target "$first" --action job.remove)" \
    "job.submit=token:alice job.cancel=token:alice job.remove=token:op" "the audit log keeps who did what to a job that is gone"
is "$(audit --by alice --action sweep.submit)" "sweep.submit=token:alice" "who submitted a sweep"
is "$(audit --target "$sweep" --action sweep.cancel)" "sweep.cancel=token:op" "who cancelled it"
is "$(audit --action token.create | tr ' ' '\n' | sort -u)" "token.create=user:$me" "who made tokens"
like "$("$trainctl" --server "unix:$socket" audit --limit 3 2>"$work/err")" "token:op +job.cancel +$trial" "trainctl audit as a table"
like "$(cat "$work/err")" "next page: --after [0-9]+" "and how to see more"
with op /v1/audit
refused 403 not-allowed 'role admin' "an operator reads it"
call --unix-socket "$socket" '/v1/audit?action=job.wipe'
refused 400 usage 'action must be one of job.submit, ' "an action that there is not"

# ------------------------------------------------------------------ names are counted in characters

long=$(printf 'é%.0s' {1..200})
submit_as alice "$long"
want 201 "a name of 200 characters in 400 bytes"
json .name "$long" "is kept"
submit_as alice "${long}x"
refused 422 invalid 'a string of 1 to 200 printable' "one of 201"
with alice -d "{\"name\": \"$long\", \"base\": $document, \"metric\": \"loss\", \"parameters\": {\"seed\": [1]}}" /v1/sweeps/plan
want 200 "a sweep with such a name"
local_call -d "{\"name\": \"${long:0:60}\", \"role\": \"submit\"}" /v1/tokens
want 201 "a token with a name of 60 characters"
token[long]=$(jq -r .token <<<"$body")
submit_as long "by a long name"
json .submitted_by "token:${long:0:60}" "submits by its whole name"
local_call -d "{\"name\": \"${long:0:61}\", \"role\": \"submit\"}" /v1/tokens
refused 422 invalid '1 to 60 characters' "and one of 61"

# ------------------------------------------------------------------ the daemon is killed between the request and the end

submit_as alice 'steps=100000 step_ms=20 ignore_term'
ok "a job runs" eventually has_events "$id" 1
with alice -X POST "/v1/jobs/$id/cancel"
kill_daemon
restart_runs
ok "the next daemon goes on with the cancellation" wait_state "$id" cancelled
is "$(asked "$id" | sed 's/.* //')" "cancelled=token:alice" "and knows who asked"
ok "stop" stop_daemon

# ------------------------------------------------------------------ without tokens, and old lines of the audit log

sql "update audit set t = t - 40 * 86400 where action = 'sweep.submit'; update audit set t = t - 20 * 86400 where action = 'sweep.cancel'"
before=$(sql "select count(*) from audit where action <> 'sweep.submit'")
echo "keep_audit_days = 30" >>"$work/traind.conf"
sed -i 's/require_token = yes/require_token = no/' "$work/traind.conf"
restart_runs
trimmed() { [ "$(sql "select count(*) || ' ' || sum(action = 'sweep.submit') from audit")" = "$before 0" ]; }
ok "lines older than keep_audit_days are deleted, no others" eventually trimmed
submit 'steps=100000 step_ms=20' '{"workers_per_node": 1, "threads_per_worker": 1}'
json .submitted_by null "over an open loopback nobody is named"
call -X POST "/v1/jobs/$id/cancel"
ok "but may cancel what nobody owns" [ "$status" -lt 300 ]
ok "it ends" wait_state "$id" cancelled
is "$(asked "$id")" "" "its events name nobody"
submit_as alice 'steps=4'
call -X POST "/v1/jobs/$id/cancel"
refused 403 not-allowed "belongs to token:alice, but you are not known here" "what has an owner is the owner's"
call -d '{"kind": "x", "cores": 1, "phase": "prolog", "outcome": "fine", "t": 1}' /v1/nodes/n1/report
refused 403 not-allowed 'role node' "and nodes are reported with a token only"
ok "stop" stop_daemon

done_testing
