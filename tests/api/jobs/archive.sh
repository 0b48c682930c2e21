#!/usr/bin/env bash
# A job that has ended is exported as one file, and those that an older version imported from such files are jobs as others are. Jobs are
# run by the fixture.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
trainctl() { "$top_builddir/trainctl" --server "unix:$socket" "$@"; }
start_runs

submit "counted steps=6" '' '{"steps": 6, "tags": ["kept"], "note": "from here"}'
ok "a job ends well" wait_state 1 succeeded
submit "breaks steps=6 rank=0 at=5 exit=3 every=2 first=1" '' '{"steps": 6}'
ok "another one fails" wait_state 2 failed
printf '{"format": 1, "attempts": [{"attempt": 1, "winograd": "", "result": null}]}' >"$state/jobs/1/provenance.json"
trainctl export 1 "$work/one.tar.gz" >"$work/out" 2>&1
is "$?" 0 "trainctl export writes it to a file"
trainctl export 1 "$work/one.tar.gz" >"$work/out" 2>&1
is "$? $(grep -c 'exists; --force' "$work/out")" "1 1" "and replaces none without --force"
trainctl export 1 "$work/again.tar.gz" >"$work/out" 2>&1
ok "the same job gives the same bytes" cmp "$work/one.tar.gz" "$work/again.tar.gz"
is "$(tar -tzf "$work/one.tar.gz" | tr '\n' ' ')" \
    "manifest.json job.json plan.json events.jsonl provenance.json $([ ! -e "$state/jobs/1/result.json" ] || echo 'result.json ')attempt-1/stdout.log " "it holds the manifest and what the job has"
trainctl export 1 - 2>"$work/err" | cmp - "$work/one.tar.gz" >"$work/out" 2>&1
is "$? $(cat "$work/err" "$work/out")" "0 " "- is standard output"
mkfifo "$work/pipe"
trainctl export --force 1 "$work/pipe" >"$work/out" 2>&1
is "$? $(cat "$work/out")" "2 trainctl: $work/pipe is a named pipe, not a regular file" "--force replaces no pipe or device"
ok "which stays" test -p "$work/pipe"
trainctl export --weights 1 "$work/none.tar.gz" >"$work/out" 2>&1
is "$? $(grep -c 'no checkpoint' "$work/out")" "3 1" "weights that are not there are told"
call /v1/jobs/1/archive?weights=maybe
refused 400 usage 'true or false' "what weights takes"
trainctl export 2 "$work/two.tar.gz" >/dev/null
echo statistics >"$state/jobs/2/checkpoints/step-00000004/statistics-2.safetensors" # of a second machine
trainctl export --weights 2 "$work/two-weights.tar.gz" >"$work/out"
is "$? $(tar -tzf "$work/two-weights.tar.gz" | grep '^checkpoints/step-00000004/' | paste -sd ' ')" \
    "0 checkpoints/step-00000004/state.json checkpoints/step-00000004/statistics-2.safetensors" "one that has a checkpoint is exported with it, whole"

# ------------------------------------------------------------------ many files

sql "update job set attempt = 300 where id = 1"
for i in {1..300}; do
    mkdir -p "$state/jobs/1/attempt-$i"
    echo "$i" >"$state/jobs/1/attempt-$i/stdout.log"
done
prlimit --pid "$daemon" --nofile=200
ok "an export holds few files open at a time" curl -sSf -o "$work/many.tar.gz" "$url/v1/jobs/1/archive"
is "$(tar -xzOf "$work/many.tar.gz" --wildcards '*/stdout.log' | paste -sd' ')" "$(seq -s' ' 300)" "and has them all"
stop_daemon

# ------------------------------------------------------------------ what an older version has imported

# The state of a daemon with a database of version 32: jobs 4 and 5 are imported ones, of which the first has succeeded and the second failed.
state=$work/older socket=$work/older/traind.sock
mkdir "$state"
tar -xzf "$(dirname "$0")/version-32.tar.gz" -C "$state" --no-same-owner
restart_runs --socket "$socket"
is "$(get /v1/jobs | jq -c '[.jobs[] | [.id, .state, .imported_from.job]]')" \
    '[[5,"failed",2],[4,"succeeded",1],[3,"succeeded",null],[2,"succeeded",null],[1,"succeeded",null]]' "imported jobs are listed and marked"
like "$(trainctl list)" '4 .*counted steps=6 +succeeded' "by trainctl list too"
like "$(trainctl show 4 | tr -s ' ')" 'imported job 1 of the database' "trainctl show says where it is from"
is "$(get /v1/jobs/4 | jq -c '[.name, .step, .loss, .note, .tags, .slots]')" '["counted steps=6",6,0.333333333,"from here",["kept","starred"],0]' "it has its numbers and labels"
is "$(trainctl metrics 4 --csv | wc -l)" 7 "its series"
like "$(trainctl logs 4)" 'rank 0 is process 6066' "its log"
is "$(get /v1/jobs/4/provenance | jq '.attempts[0].attempt')" 1 "its provenance"
is "$(get '/v1/compare?ids=3,4' | jq '.jobs | length')" 2 "it is compared with others"
is "$(trainctl audit --action job.import --json | jq -c '[(.audit // .lines // .)[].target]')" '[5,4]' "and the audit log still tells who imported it"
trainctl export 4 "$work/older.tar.gz" >/dev/null
is "$(tar -xzOf "$work/older.tar.gz" events.jsonl | jq -r 'select(.type == "state").body.state' | tail -n 1) $(tar -xzOf "$work/older.tar.gz" manifest.json | jq .imported_from.job)" "succeeded 1" "it is exported"
is "$(trainctl list --tag starred --json | jq -c '[.jobs[] | [.id, (.tags | length)]]')" '[[4,2],[2,2],[1,17]]' "what had a star has the tag starred"
is "$(get /v1/jobs/1 | jq -c '[.tags[16], .spec.tags == .tags]')" '["starred",true]' "also where there were 16 tags, and in the document"
call -X PATCH --unix-socket "$socket" -d '{"note": "again"}' /v1/jobs/1
want 200 "which can be labelled"
trainctl clone 1 --submit >"$work/out" 2>&1
is "$?" 0 "and copied"
call -X POST --unix-socket "$socket" /v1/jobs/5/resume
refused 409 conflict 'imported without its weights.*clone --submit' "without its weights it is not resumed"
trainctl clone 5 --submit >"$work/out" 2>&1
is "$?" 0 "but begins anew as a copy"
call -X DELETE --unix-socket "$socket" /v1/jobs/4
want 200 "an imported job is removed"
ok "with its files" eventually test ! -e "$state/jobs/4"
call -X POST --data-binary "@$work/one.tar.gz" --unix-socket "$socket" /v1/jobs/import
refused 405 method-not-allowed 'GET' "no further ones are taken"
ok "the daemon stops in order" stop_daemon
done_testing
