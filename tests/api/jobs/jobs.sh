#!/usr/bin/env bash
# Jobs over HTTP: submission, idempotency, listing, cancelling, and the series of a job, by curl.
. "$(dirname "$0")/../lib.sh"
write_script "$work/mpirun" <<'END'
#!/bin/sh
exec sleep 3000
END
printf '%s\n' "mpirun = $work/mpirun" "worker = $work/mpirun" 'slots = 1' >"$work/traind.conf"
start_daemon --config "$work/traind.conf"

submit() { # [CURL ARGUMENT...] NAME
    call "${@:1:$#-1}" -d "{\"name\": \"${!#}\", \"data\": {\"train\": \"synthetic\"}, \"steps\": 4, \"batch_per_worker\": 2,
        \"cluster\": {\"workers_per_node\": 1, \"threads_per_worker\": 1}}" /v1/jobs
}

# ------------------------------------------------------------------ submission

submit first
want 201 "a submission"
json .id 1 "its id"
like "$headers" '^Location: /v1/jobs/1$' "its Location"
json .spec.epochs 90 "the document comes back with every default"
json .plan.train_steps 4 "and with its plan"
json '[.loss, .ttt_seconds, .top1] | tostring' '[null,null,null]' "what is not known yet is null"
submit -H 'Idempotency-Key: k1' second
want 201 "a submission with an Idempotency-Key"
submit -H 'Idempotency-Key: k1' second
want 200 "the same again"
json .id 2 "gives the same job"
submit -H 'Idempotency-Key: k1' other
refused 409 conflict 'k1.*job 2' "the key with another body"
mkdir -p "$work/data/class"
touch "$work/data/class/a.jpg"
gone="{\"data\": {\"train\": \"$work/data\", \"train_images\": 1000}, \"cluster\": {\"workers_per_node\": 1, \"threads_per_worker\": 1}}"
call -H 'Idempotency-Key: k2' -d "$gone" /v1/jobs
want 201 "a submission whose data vanishes then"
rm -r "$work/data"
call -H 'Idempotency-Key: k2' -d "$gone" /v1/jobs
want 200 "its repetition is still answered with the job"
call -d "$gone" /v1/jobs
refused 422 invalid 'cannot open the folder' "a new one is refused"
submit -H "Idempotency-Key: $(printf 'k%.0s' $(seq 201))" long
refused 400 usage '200 characters' "a key that is too long"
submit -H 'Idempotency-Key;' empty
refused 400 usage '200 characters' "an empty key"
for n in $(seq 20); do
    submit -H 'Idempotency-Key: race' race >/dev/null &
done
while read -r client; do wait "$client"; done < <(jobs -p | grep -vx "$daemon")
submit -H 'Idempotency-Key: race' race
want 200 "one key from twenty clients at once"
call /v1/jobs
json '[.jobs[] | select(.name == "race")] | length' 1 "makes one job"
three='{"data": {"train": "/nope", "eval": "/nor"}, "epohcs": 3, "precision": "int8"}'
for route in /v1/plan /v1/jobs; do
    call -d "$three" $route
    want 422 "$route: a document with a typo, an unknown precision and two bad paths"
    json '[.errors[].pointer] | sort | join(" ")' '/data/eval /data/train /epohcs /precision' "$route: all of it in one answer"
    json '.errors[] | select(.pointer == "/epohcs") | .suggestion' /epochs "$route: with the nearest key"
    call -d '{"data": {"train": "/nope", "eval": "/nor"}}' $route
    json '[.errors[].pointer] | sort | join(" ")' '/data/eval /data/train' "$route: both paths at once"
    like "$(jq -r '.errors[0].message' <<<"$body")" '^(cannot|there is)' "$route: the key is not said twice"
done
sent='{"data": {"train": "synthetic"}, "cluster": {"nodes": 3, "workers_per_node": 99, "threads_per_worker": 1}}'
call -d "$sent" /v1/jobs
want 422 "machines that are not named, and more workers than slots"
json '[.errors[].pointer] | join(" ")' '/cluster/nodes /cluster/workers_per_node' "both in one answer"
refused=$(jq -r '.errors[] | "\(.pointer[1:] | gsub("/"; ".")): \(.message)"' <<<"$body")
call -d "$sent" /v1/plan
want 200 "the plan of such a job"
is "$(jq -r '.warnings[] | select(startswith("cluster."))' <<<"$body")" "$refused" "warns of what its submission is refused for"
call -d '{"data": {"train": "synthetic", "preprocess": "whole"}, "model": {"arch": "cnn"}, "precision": "bf16"}' /v1/jobs
want 422 "a network that bf16 is not built for"
json '.errors[].pointer' /precision "is refused by name"
call -d '{"data": {"train": "synthetic"}, "precision": "bf16"}' /v1/plan
want 200 "the plan of bf16"
emulated=0
grep -qw avx512_bf16 /proc/cpuinfo || emulated=1
json '[.warnings[] | select(test("bf16. is emulated: no faster than fp32"))] | length' $emulated "says where it is emulated"

# ------------------------------------------------------------------ listing

for n in 5 6; do submit "more $n"; done
call '/v1/jobs?limit=2'
json '[.jobs[].id] | join(",")' '6,5' "the newest first"
json .next 5 "with the place to go on"
call '/v1/jobs?limit=4&after=5'
json '[.jobs[].id] | join(",")' '4,3,2,1' "and the rest"
call '/v1/jobs?limit=5&after=5'
json .next null "which is the end"
json '.jobs[0] | has("spec")' false "listings leave the documents out"
call -X POST /v1/jobs/6/cancel
want 200 "a queued job is cancelled at once"
json .state cancelled "its state"
call -X POST /v1/jobs/6/cancel
refused 409 conflict 'cancelled' "it cannot be cancelled twice"
call '/v1/jobs?state=cancelled'
json '[.jobs[].id] | join(",")' '6' "filtered by state"
call '/v1/jobs?state=queued,cancelled&limit=2'
json '[.jobs[].id] | join(",")' '6,5' "and by two states"

call -d '{"data": {"train": "synthetic"}, "cluster": {"workers_per_node": 1, "threads_per_worker": 1}}' /v1/jobs
want 201 "a document without a name"
json '[.id, .name] | tostring' '[7,null]' "it has no name"
call -X POST /v1/jobs/7/cancel
want 200 "and can be cancelled"

# ------------------------------------------------------------------ events

call '/v1/jobs/6/events'
want 200 "events"
json '[.events[] | select(.type == "state") | .state] | [first, last] | join(",")' 'queued,cancelled' "tell the states it had"
call "/v1/jobs/6/events?limit=1"
after=$(jq .next <<<"$body")
json '.events | length' 1 "events by pages"
call "/v1/jobs/6/events?limit=5&after=$after"
json '.events[-1].state' cancelled "go on behind the last id"
json ".events[0].id > $after" true "without the one seen"
call "/v1/events?limit=10000"
json '[.events[] | select(.job == 6 and .type == "state") | .state] | last' cancelled "events of all jobs"

# ------------------------------------------------------------------ series: rows as a finished run leaves them

sqlite3 "$state/traind.db" "pragma busy_timeout = 5000;
    with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000)
    insert into step_metric (job_id, step, epoch, t, loss, lr, step_ms)
        select 6, i, i / 100.0, 1000 + i, 1000 - i, 0.1, case when i = 7 then null else i end from n;
    insert into eval (job_id, step, epoch, top1, top5, loss, images, t) values (6, 1000, 10, 0.5, 0.9, 1.5, 10000, 2001);" >/dev/null
call '/v1/jobs/6/metrics?names=loss,step_ms'
want 200 "metrics"
json '[.rows, .points, .downsampled, (.step | length), (.loss | length), has("lr")] | tostring' \
    '[1000,1000,false,1000,1000,false]' "every step, and only the names asked for"
json '.step_ms[5:8] | tostring' '[6,null,8]' "null where a step had no such number"
call '/v1/jobs/6/metrics?names=loss&points=10'
json '[.rows, .points, .downsampled] | tostring' '[1000,10,true]' "down-sampled to 10 points"
json '[.max.loss, .min.loss] | transpose | map(.[0] - .[1]) | unique | tostring' '[99]' "of as many steps each, the first and the last too"
json '[.min.loss[0], .max.loss[0]] | tostring' '[900,999]' "minimum and maximum of the first bucket"
json '[.loss[0], .loss[9]] | tostring' '[949.5,49.5]' "and the means of the first and the last"
json '[.step, (.epoch | map(. * 100 | round)), (.t | map(. - 1000 | round))] | unique | tojson' "[[$(seq -s , 50 100 950)]]" \
    "each at the middle of its steps, with the epoch and time of it"
json '([.max.loss[]] | max) == 999 and ([.min.loss[]] | min) == 0' true "no extreme is lost"
call '/v1/jobs/6/metrics?names=loss&points=7&from=101&to=200'
json '[.rows, .points, ([.step, .loss] | transpose | map(.[0] + .[1] - 1000 | fabs <= 0.5) | all)] | tostring' '[100,7,true]' "whatever their number is"
call '/v1/jobs/6/metrics?names=loss&points=10&format=csv'
like "$headers" '^Content-Type: text/csv' "as CSV"
is "$(tr -d '\r' <<<"$body" | sed -n '1,3p;$p')" $'step,epoch,t,loss,loss_min,loss_max\n50,0.5,1050.000000,949.5,900,999\n150,1.5,1150.000000,849.5,800,899\n950,9.5,1950.000000,49.5,0,99' \
    "with the same numbers"
call -H 'Accept: text/csv' '/v1/jobs/6/metrics?names=loss&from=999'
is "$(tr -d '\r' <<<"$body")" $'step,epoch,t,loss\n999,9.99,1999.000000,1\n1000,10,2000.000000,0' "or by Accept"
call '/v1/jobs/6/metrics?format=xml'
refused 400 usage 'format must be json or csv' "another format"
call '/v1/jobs/6/metrics?from=999'
json '.step | tostring' '[999,1000]' "from a step on"
json 'has("grad_norm") and has("slowest_rank")' true "all metrics where none is named"
call '/v1/jobs/6/metrics?points=2&names=lr'
json '[.step, .lr] | tostring' '[[250,750],[0.1,0.1]]' "two points are the halves"
call '/v1/jobs/5/metrics'
json '[.rows, .step] | tostring' '[0,[]]' "no steps yet"
call '/v1/jobs/6/metrics?names=loss,speed'
refused 400 usage 'unknown metric "speed".*images_per_sec' "an unknown metric"
call '/v1/jobs/6/metrics?points=1'
refused 400 usage 'from 2' "one point"
call /v1/jobs/6/evals
json '.evals[0] | [.step, .top1, .images] | tostring' '[1000,0.5,10000]' "evaluations"

# ------------------------------------------------------------------ the log

call /v1/jobs/6/log
want 200 "the log of a job that never ran"
is "$body" "" "is empty"
like "$headers" '^X-Log-Next: 0$' "and to be read from 0"
call '/v1/jobs/6/log?attempt=1'
refused 404 not-found '0 attempts' "the log of an attempt that was not made"
run=$state/$(sqlite3 "$state/traind.db" 'select run_dir from job where id = 1')
has_started() { [ -e "$run/attempt-1/stdout.log" ]; }
ok "the first job has a log" eventually has_started
printf 'one\ntwo\n' >"$run/attempt-1/stdout.log"
call /v1/jobs/1/log
is "$body" $'one\ntwo' "the log"
like "$headers" '^Content-Type: text/plain; charset=utf-8$' "its type"
like "$headers" '^X-Log-Next: 8$' "its end"
printf 'three\n' >>"$run/attempt-1/stdout.log"
call '/v1/jobs/1/log?from=8&attempt=1'
is "$body" three "what came since"
call '/v1/jobs/1/log?tail=6'
is "$body $(grep -io 'x-log-next: 14' <<<"$headers")" "three X-Log-Next: 14" "its last bytes, and where it goes on"
call '/v1/jobs/1/log?from=11&tail=6'
is "$body" ee "no more than what came since"
call '/v1/jobs/1/log?tail=-1'
refused 400 usage 'from 0' "less than no bytes"
call '/v1/jobs/1/log?attempt=2'
is "$status $(jq -r .detail <<<"$body")" "404 job 1 has had 1 attempt so far" "an attempt that there was not"
call '/v1/jobs/1/log?from=100'
is "$body" "" "nothing behind the end"
call '/v1/jobs/1/log?from=-1'
refused 400 usage 'from 0' "a negative byte"

# ------------------------------------------------------------------ searching

submit "Findme %_' the needle"
needle=$(jq .id <<<"$body")
finds() { # QUERY IDS NAME
    call "/v1/jobs?$1"
    json '"\([.jobs[].id | tostring] | join(",")) of \(.total)"' "$2" "$3"
}
finds 'q=FINDME%20%25_%27' "$needle of 1" "words are found in any case, and no sign of theirs is a wildcard"
finds 'q=nosuchword' " of 0" "words that stand nowhere"
# With a name, as the number may stand in the words of others: in a reason, or in the path of data.
finds "q=$needle&state=queued&name=needle" "$needle of 1" "an id is found"
finds 'name=needle' "$needle of 1" "a part of a name"
finds 'user=nobody' " of 0" "nobody's jobs"
finds 'sweep=7' " of 0" "those of no sweep"
call '/v1/jobs?sort=name&limit=3'
json '[.jobs[].name | ascii_downcase] == ([.jobs[].name | ascii_downcase] | sort)' true "sorted by name"
call '/v1/jobs?limit=2&after=3'
json '"\(.jobs | length) \(.next)"' "2 null" "a full page that is the last one says so"
call '/v1/jobs?limit=2&after=4'
json '"\(.jobs | length) \(.next)"' "2 2" "the one before says where it begins"
call '/v1/jobs?sort=size'
refused 400 usage 'sort must be one of newest, name' "an order that there is not"
# The second job has a name in capitals and one that a cursor must not be confused by; two share theirs, most have no result.
sqlite3 -cmd '.timeout 5000' "$state/traind.db" "update job set name = 'B,1%' where id = 2; update job set top1 = 0.1 + 0.2, loss = id where id in (2, 3);
    update job set top1 = 0.25 where id = 4"
for sort in newest name priority top1 loss images_per_sec ttt_seconds finished_at; do
    call "/v1/jobs?sort=$sort&limit=1000"
    all=$(jq -c '[.jobs[].id]' <<<"$body") paged='' after=''
    for _ in $(seq 20); do
        call "/v1/jobs?sort=$sort&limit=2$after"
        paged+=$(jq -r '.jobs[].id' <<<"$body")$'\n'
        after=$(jq -r '.next // empty | @uri "&after=\(.)"' <<<"$body")
        [ -n "$after" ] || break
    done
    is "$(jq -cn '[inputs]' <<<"$paged")" "$all" "two jobs at a time are all of them once, by $sort"
done
call '/v1/jobs?sort=top1&limit=3'
json '"\([.jobs[].id]) \(.next)"' '[3,2,4] 4,-0.25' "what a page ends with is told"
sqlite3 -cmd '.timeout 5000' "$state/traind.db" "update job set top1 = 0.9 where id = 4"
call '/v1/jobs?sort=top1&limit=1000&after=4,-0.25'
json '[.jobs[].top1] | unique' '[null]' "the next one begins there, though that job has another result now"
call '/v1/jobs?q=findme&sort=name&limit=1&after=99999,a'
json '"\(.jobs[0].id) \(.total)"' "$needle 1" "pages of what was searched"
for after in x 0 -1 1x '' 9999999999999999999; do
    call "/v1/jobs?sort=name&after=$after"
    refused 400 usage 'after must be' "a page after \"$after\""
done
call '/v1/jobs?after=3,a'
refused 400 usage 'next on the previous page, a whole number from 1' "with what the newest are not sorted by"
call -X POST "/v1/jobs/$needle/cancel"

# ------------------------------------------------------------------ the end

for id in 5 4 3 2 1; do
    call -X POST "/v1/jobs/$id/cancel"
    like "$status" '^20[02]$' "job $id cancelled"
done
ok "all have ended" eventually no_job_left
ok "the daemon stops in order" stop_daemon
is "$(grep -c 'runtime error\|AddressSanitizer\|LeakSanitizer' "$work/daemon.log")" 0 "no sanitizer complaint"
done_testing
