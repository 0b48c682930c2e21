#!/usr/bin/env bash
# Jobs are labelled, found by their labels and documents, and grouped; what people see of it is the same everywhere.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"

start_runs
one='{"workers_per_node": 1, "threads_per_worker": 1}'
patch() { # ID BODY
    call -X PATCH -H 'Content-Type: application/merge-patch+json' --data-binary "$2" "/v1/jobs/$1"
}
ids() { # QUERY: of the jobs, through all pages of two
    local next='' all=''
    while :; do
        call "/v1/jobs?limit=2&$1${next:+&after=$next}"
        all+=$(jq -r '"\([.jobs[].id | tostring + " "] | add // "")"' <<<"$body")
        next=$(jq -r '.next // empty | tostring | @uri' <<<"$body")
        [ -n "$next" ] || break
    done
    echo "${all% }"
}

# ------------------------------------------------------------------ a document's own labels

submit 'steps=4 eval=1' "$one" '{"tags": ["paper", "baseline"], "note": "two\nlines", "optimizer": {"name": "lars"}}'
want 201 "a job with tags and a note"
is "$(jq -c '[.tags, .note]' <<<"$body")" '[["baseline","paper"],"two\nlines"]' "has them"
is "$(jq -c '[.spec.tags, .spec.note]' <<<"$body")" '[["paper","baseline"],"two\nlines"]' "as its document"
ok "it is trained" wait_state 1 succeeded
is "$(jq -c '[.tags, .note]' "$state/jobs/1/job.json")" '[["paper","baseline"],"two\nlines"]' "the worker gets the document as it was"
is "$(job 1 best_top1) $(job 1 best_top1_step)" "0.75 4" "its best evaluation, and when it was"
submit bad "$one" '{"tags": ["a", "a", "-b"], "note": "a\u001b[1m", "tag": ["x"]}'
refused 422 invalid '/tags/1' "wrong labels"
is "$(jq -c '[.errors[] | [.pointer, .suggestion]]' <<<"$body")" '[["/tag","/tags"],["/tags/1",null],["/note",null]]' "all of them are told"
submit 'steps=4' "$one" '{"tags": ["baseline"]}'
submit 'steps=4' "$one"

# ------------------------------------------------------------------ changes

patch 1 '{"name": "lars run", "add_tags": ["x:1/y"], "remove_tags": ["paper"]}'
want 200 "a job that has ended is labelled"
is "$(jq -c '[.name, .tags, .note, .state]' <<<"$body")" '["lars run",["baseline","x:1/y"],"two\nlines","succeeded"]' \
    "what was named is changed, the rest is not"
is "$(jq -c '[.spec.name, .spec.tags]' <<<"$body")" '["lars run",["baseline","x:1/y"]]' "the stored document follows, for copies of the job"
is "$(jq -c '[.name, .tags]' "$state/jobs/1/job.json")" '["steps=4 eval=1",["paper","baseline"]]' "that of the run does not"
call "/v1/jobs/1/events?types=labels"
is "$(jq -c '[.events[] | del(.id, .t)]' <<<"$body")" \
    '[{"attempt":1,"job":1,"name":"lars run","tags":["baseline","x:1/y"],"type":"labels"}]' "an event tells what changed"
patch 1 '{"note": null}'
is "$(jq -c .note <<<"$body")" null "null removes"
patch 2 '{"note": "Diverges at step 100"}'
patch 3 '{"tag": ["a"], "tags": ["a b"], "note": "", "add_tags": ["+x"], "nme": "n"}'
refused 422 invalid 'letters, digits' "a wrong patch"
is "$(jq -c '[.errors[] | [.pointer, .suggestion]]' <<<"$body")" \
    '[["/tag","/tags"],["/tags/0",null],["/note",null],["/add_tags/0",null],["/nme","/name"]]' "all of it is told, with the right words"
is "$(job 3 'tags | length')" 0 "and nothing is changed"
patch 3 "$(jq -nc '{tags: [range(16) | "t\(.)"]}')"
want 200 "16 tags"
patch 3 '{"add_tags": ["a", "b"]}'
refused 422 invalid '18 tags, but at most 17 are allowed' "two more"
patch 3 '{"tags": null}'
is "$(jq -c .tags <<<"$body")" '[]' "null removes all tags"
patch 99 '{"note": null}'
refused 404 not-found 'no job 99' "a job that is not there"
patch 1 '[1]'
refused 422 invalid 'object' "a list"
call -X PUT -d '{}' /v1/jobs/1
like "$headers" '^Allow: GET, HEAD, DELETE, PATCH|^Allow: .*PATCH' "what may be sent is told"

# ------------------------------------------------------------------ two people at a time

for n in 1 2 3 4 5 6; do
    curl -sS -o /dev/null -X PATCH -d "{\"add_tags\": [\"at-once-$n\"]}" "$url/v1/jobs/3" &
    writers[n]=$!
done
wait "${writers[@]}"
is "$(job 3 'tags | length')" 6 "tags that several add at a time are all there"

# ------------------------------------------------------------------ finding

is "$(ids 'tag=baseline')" "2 1" "jobs with a tag"
is "$(ids 'tag=baseline,x:1/y')" "1" "with two tags"
is "$(ids 'q=diverges')" "2" "with a word of their note"
is "$(ids 'q=AT-ONCE')" "3" "or a part of a tag"
is "$(ids 'where=optimizer.name=lars')" "1" "with a value in their document"
is "$(ids 'where=batch_per_worker=4&sort=best_top1')" "1 3 2" "best evaluation first"
is "$(ids 'where=name=lars%20run')" "1" "by the name as it is now"
is "$(ids 'tag=baseline&q=lars')" "1" "all together"
call '/v1/jobs?tag=a%20b'
refused 400 usage 'letters, digits' "what is no tag"
call '/v1/jobs?tag=a,'
refused 400 usage 'commas between' "a comma too many"
ended=$(sql 'select cast(finished_at as integer) from job where id = 1')
is "$(ids "finished_after=$((ended - 1))&state=succeeded&tag=baseline") $(ids "finished_after=$((ended + 86400))")" "2 1 " "by the time of their end"
call '/v1/jobs?finished_after=yesterday'
refused 400 usage 'finished_after must be a whole number from 1' "no time"
call '/v1/jobs?where=optimizer.nam=lars'
refused 400 usage 'did you mean optimizer.name' "a key that there is not"
call '/v1/jobs?where=lars'
refused 400 usage 'KEY=VALUE' "no key"

# ------------------------------------------------------------------ groups

ok "the others have ended" wait_state 2 succeeded
ok "..." wait_state 3 succeeded
call '/v1/jobs?group=tag&tag=baseline'
is "$(jq -c '[.total, .group_count, (.groups[] | [.value, .jobs, .states, .best.id, .best.top1])]' <<<"$body")" \
    '[2,2,["baseline",2,{"succeeded":2},1,0.75],["x:1/y",1,{"succeeded":1},1,0.75]]' "groups by tag"
call '/v1/jobs?group=optimizer.name&sort=best_top1'
is "$(jq -c '[.groups[] | [.value, .jobs, .best.name, .best.step, .images, (.mean_ttt_seconds | type)]]' <<<"$body")" \
    '[["lars",1,"lars run",4,16,"number"],["sgd",2,null,null,32,"number"]]' "by a key of the document"
call '/v1/jobs?group=batch_per_worker&limit=1'
is "$(jq -c '[.groups[].value]' <<<"$body")" '[4]' "by a number"
call '/v1/jobs?group=optimizer.momentun'
refused 400 usage 'did you mean optimizer.momentum' "by a key that there is not"
call '/v1/jobs?group=optimizer'
refused 400 usage 'unknown job key optimizer' "by a group of keys"
call '/v1/jobs?group=tag&sort=loss'
refused 400 usage 'best_top1 or ttt_seconds' "sorted by what a group has not"
call '/v1/jobs?group=tag&after=3'
refused 400 usage 'no pages' "a page of groups"

# ------------------------------------------------------------------ kept

stop_daemon
restart_runs
is "$(ids 'tag=baseline') $(job 1 name)" "2 1 lars run" "a restart changes nothing"
like "$(grep -c 'labelled by' "$work/daemon.log")" '^[1-9]' "the log says who"
is "$(sql "select count(*) from audit where action = 'job.label' and detail = 'name,tags'")" 1 "so does the audit log, with the names of what changed"
call -X DELETE /v1/jobs/3
is "$(sql 'select count(*) from job_tag where job_id = 3')" 0 "with a job go its tags"

done_testing
