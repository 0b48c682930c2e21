#!/usr/bin/env bash
# A job that has ended is exported as one file and imported by another daemon, which shows it as its own: once, by whoever may, and
# nothing else than such a file. Jobs are run by the fixture.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
trainctl() { "$top_builddir/trainctl" --server "unix:$socket" "$@"; }
start_runs "max_body_bytes = 65536" # an archive is no body

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
trainctl export --weights 2 "$work/two-weights.tar.gz" >"$work/out"
is "$? $(tar -tzf "$work/two-weights.tar.gz" | grep -c '^checkpoints/step-00000004/')" "0 1" "one that has a checkpoint is exported with it"
series=$(get "/v1/jobs/1/metrics?names=loss,lr")
evals=$(get "/v1/jobs/1/evals")
log=$(curl -sS "$url/v1/jobs/1/log")
there=$(get "/v1/jobs/1")
first_uuid=$(sql 'select uuid from identity')
stop_daemon

# ------------------------------------------------------------------ another daemon

state=$work/other socket=$work/other/traind.sock
mkdir "$state"
restart_runs --socket "$socket"
submit "own steps=2"
ok "a job of its own ends" wait_state 1 succeeded
speeds=$(sql 'select count(*) from speed')
trainctl import - <&- >"$work/out" 2>&1
is "$? $(cat "$work/out")" "1 trainctl: standard input is closed, so nothing can be read from it" "trainctl import - without standard input says so"
# shellcheck disable=SC2002 # a pipe has no size
cat "$work/one.tar.gz" | trainctl import - >"$work/out" 2>&1
is "$? $(cat "$work/out")" "0 job 2 is job 1 of the daemon with the database $first_uuid: succeeded" "trainctl import shows it there"
here=$(get "/v1/jobs/2")
same() { # JQ NAME
    is "$(jq -c "$1" <<<"$here")" "$(jq -c "$1" <<<"$there")" "$2"
}
same '[.name, .state, .step, .train_steps, .loss, .lr, .attempt, .tags, .note]' "with its name, state, numbers and labels"
same '[.created_at, .started_at, .finished_at]' "and times"
same '.spec' "its document"
same '.plan | del(.predicted)' "and its plan"
is "$(jq -c '[.slots, .imported_from.job, .imported_from.store]' <<<"$here")" "[0,1,\"$first_uuid\"]" "marked as imported"
is "$(get "/v1/jobs/2/metrics?names=loss,lr" | jq -c 'del(.t)')" "$(jq -c 'del(.t) | .job = 2' <<<"$series")" "its series"
is "$(get "/v1/jobs/2/evals" | jq -c .evals)" "$(jq -c .evals <<<"$evals")" "its evaluations"
is "$(curl -sS "$url/v1/jobs/2/log")" "$log" "its log"
is "$(get "/v1/jobs/2/provenance" | jq -c '[.attempts[0].attempt, .submitted_by]')" \
    "[1,$(jq -c .submitted_by <<<"$here")]" "its provenance, and who imported it"
is "$(get "/v1/compare?ids=1,2" | jq '.jobs | length')" 2 "it is compared with others"
is "$(sql 'select count(*) from speed')" "$speeds" "no speed of this machine comes of it"
is "$(sql "select action || ' ' || target from audit order by id desc limit 1")" "job.import 2" "the audit log has it"
trainctl import "$work/one.tar.gz" >"$work/out" 2>&1
is "$? $(grep -c '^job 2 ' "$work/out") $(sql 'select count(*) from job')" "0 1 2" "imported again it is the same job"
mine() { call --unix-socket "$socket" "$@"; }
mine -X POST /v1/jobs/2/resume
want 409 "a job that has succeeded is not resumed"

# ------------------------------------------------------------------ after a restart; removed

is "$(find "$state/jobs" -maxdepth 1 -name '.removed-*' | wc -l)" 0 "nothing is left over"
mkdir "$state/jobs/.removed-import.abcdef"
kill_daemon
restart_runs --socket "$socket"
is "$(get "/v1/jobs/2" | jq -c 'del(.time_left)')" "$(jq -c 'del(.time_left)' <<<"$here")" "it is there after a restart"
ok "what a killed daemon left of an import is removed" eventually test ! -e "$state/jobs/.removed-import.abcdef"

# ------------------------------------------------------------------ what is no such file

import() { mine --data-binary "@$1" /v1/jobs/import; }
# changed NAME COMMAND: the archive unpacked, changed by a command in it, and packed again as the manifest lists it
changed() {
    rm -rf "$work/in"
    mkdir "$work/in"
    tar -xzf "$work/one.tar.gz" -C "$work/in"
    (cd "$work/in" && eval "$1")
    # sizes and digests as they are now: what is refused is refused for its content
    (cd "$work/in" && /usr/bin/python3 - <<'END'
import ctypes, json
class Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]
xxh = ctypes.CDLL("libxxhash.so.0").XXH3_128bits
xxh.restype, xxh.argtypes = Hash, [ctypes.c_char_p, ctypes.c_size_t]
m = json.load(open("manifest.json"))
for f in m["files"]:
    data = open(f["name"], "rb").read()
    h = xxh(data, len(data))
    f["bytes"], f["xxh128"] = len(data), "%016x%016x" % (h.high, h.low)
json.dump(m, open("manifest.json", "w"))
END
    )
    (cd "$work/in" && { echo manifest.json && jq -r '.files[].name' manifest.json; } | tar -czf "$work/changed.tar.gz" -T -)
}
changed 'sed -i "s/\"steps\": *6/\"steps\": \"six\"/" job.json'
import "$work/changed.tar.gz"
refused 422 invalid 'job.json.*steps' "a document that is none"
changed 'sed -i "s/\"train_steps\": *6/\"train_steps\": 7/" plan.json'
import "$work/changed.tar.gz"
refused 422 invalid 'train_steps does not follow' "a plan that is not the document's"
changed 'sed -i "s/\"world_size\": *2/\"world_size\": \"<b>\"/" plan.json'
import "$work/changed.tar.gz"
refused 422 invalid 'plan.json.*world_size has another type' "a plan of other types"
changed 'echo "{\"attempt\": 9, \"t\": 1, \"type\": \"step\", \"body\": {}}" >>events.jsonl'
import "$work/changed.tar.gz"
refused 422 invalid 'line [0-9]* of events.jsonl' "an event of no attempt"
changed 'head -n 3 events.jsonl >e && mv e events.jsonl'
import "$work/changed.tar.gz"
refused 422 invalid 'events of the archive end with the state' "events that do not end as the job does"
changed 'jq ".state = \"running\"" manifest.json >m && mv m manifest.json'
import "$work/changed.tar.gz"
refused 422 invalid 'only jobs that have ended' "a job that runs"
changed 'jq ".format = 2" manifest.json >m && mv m manifest.json'
import "$work/changed.tar.gz"
refused 422 invalid 'format 2' "a format of another version"
changed 'mkdir attempt-2 && cp attempt-1/stdout.log attempt-2/x && jq ".files += [{name: \"attempt-2/x\", bytes: 1, xxh128: \"\"}]" manifest.json >m && mv m manifest.json'
import "$work/changed.tar.gz"
refused 422 invalid 'none of a job.s' "a file that is none of a job's"
head -c 900 "$work/one.tar.gz" >"$work/cut"
import "$work/cut"
refused 422 invalid 'no archive of a job, or it is damaged|cut off' "a file that is cut off"
printf 'hello' >"$work/text"
import "$work/text"
refused 422 invalid 'no archive of a job' "a text"
mkdir "$work/evil"
tar -xzf "$work/one.tar.gz" -C "$work/evil" manifest.json
echo x >"$work/evil/x"
tar -czf "$work/evil.tar.gz" -C "$work/evil" --transform 's|^x$|../../../x|' -P manifest.json x
import "$work/evil.tar.gz"
refused 422 invalid 'x", which its manifest does not list' "a name that leads out"
tar -xzf "$work/one.tar.gz" -C "$work/evil"
rm "$work/evil/job.json"
ln -s /etc/passwd "$work/evil/job.json"
tar -czf "$work/evil.tar.gz" -C "$work/evil" manifest.json job.json
import "$work/evil.tar.gz"
refused 422 invalid 'job.json.*no regular file' "a symbolic link"
call -X POST /v1/jobs/import
refused 400 usage 'send the archive' "nothing"
is "$(sql 'select count(*) from job') $(find "$state/jobs" -mindepth 1 -maxdepth 1 | wc -l)" "2 2" "none of them left anything"

changed 'tail -n 1 events.jsonl >e && yes "{\"attempt\": 1, \"t\": 1, \"type\": \"step\", \"body\": {}}" | head -n 500000 | cat - e >events.jsonl'
import "$work/changed.tar.gz"
refused 413 too-large 'has 500001 events; 500000 are imported at most' "more events than are stored at once"
is "$(sql 'select count(*) from job')" 2 "and is not stored"

# ------------------------------------------------------------------ events that mislead

changed 'tail -n 1 events.jsonl >last && sed -i "\$d" events.jsonl && cat >>events.jsonl <<END && cat last >>events.jsonl
{"attempt": 1, "t": 1, "type": "state", "body": {"state": "cancelled", "by": "token:t4"}}
{"attempt": 1, "t": 1, "type": "state", "body": {"state": 7}}
{"attempt": 1, "t": 1, "type": "eval", "body": {"step": 5, "top1": 0.99}}
{"attempt": 1, "t": 1, "type": "eval", "body": {"step": 5, "top1": 0.5}}
{"attempt": 1, "t": 1, "type": "straggler", "body": {"rank": 1}}
{"attempt": 1, "t": 1, "type": "warning", "body": {"stalled_seconds": 5, "message": "stalled"}}
{"attempt": 1, "t": 1, "type": "run_stop", "body": {"status": 1}}
END
jq ".notify = [{to: \"http://127.0.0.1:9/\", on: [\"straggler\", \"stalled\", \"target_met\"]}] | .eval.target_top1 = 0.2" job.json >j && mv j job.json'
import "$work/changed.tar.gz"
want 201 "a job with events that mislead is imported"
misled=$(jq .id <<<"$body")
is "$(sql "select count(*) from job_event where job_id = $misled and body like '%token:t4%'")" 0 "they name nobody here"
is "$(sql 'select count(*) from notice')" 0 "no notice is sent of what was long ago"
is "$(sql "select best_top1 < 0.99 from job where id = $misled")" 1 "an evaluation that was done again counts once"
call "/v1/jobs/$misled/mllog"
want 200 "a status that is no text is in the MLPerf log"
like "$body" '"status": "aborted"' "as no success"
mine -X DELETE "/v1/jobs/$misled"
mine -X DELETE /v1/jobs/2
want 200 "an imported job is removed"
ok "with its files" test ! -e "$state/jobs/2"
import "$work/one.tar.gz"
want 201 "and may be imported again"
json '.id' 4 "as a new job"
stop_daemon

# ------------------------------------------------------------------ one that failed

restart_runs --socket "$socket"
import "$work/two.tar.gz"
want 201 "a job that failed is imported"
failed=$(jq .id <<<"$body")
mine -X POST "/v1/jobs/$failed/resume"
refused 409 conflict 'imported without its weights.*export --weights' "without its weights it is not resumed"
import "$work/two-weights.tar.gz"
want 201 "with its weights it is another job"
failed=$(jq .id <<<"$body")
mine -X POST "/v1/jobs/$failed/resume"
want 202 "which is resumed"
ok "and goes on to its end" wait_state "$failed" succeeded
is "$(get "/v1/jobs/$failed" | jq -c '[.attempt, .step, .imported_from.job]')" "[2,6,2]" "from where it was"
stop_daemon

# ------------------------------------------------------------------ limits

printf 'max_import_bytes = 1024\n' >>"$work/traind.conf"
restart_runs --socket "$socket"
import "$work/one.tar.gz"
refused 413 too-large 'larger than the 1024 bytes' "an archive over max_import_bytes"

# ------------------------------------------------------------------ many files

sql "update job set attempt = 300 where id = 1"
for i in {1..300}; do
    mkdir -p "$state/jobs/1/attempt-$i"
    echo "$i" >"$state/jobs/1/attempt-$i/stdout.log"
done
prlimit --pid "$daemon" --nofile=200
ok "an export holds few files open at a time" curl -sSf -o "$work/many.tar.gz" "$url/v1/jobs/1/archive"
is "$(tar -xzOf "$work/many.tar.gz" --wildcards '*/stdout.log' | paste -sd' ')" "$(seq -s' ' 300)" "and has them all"
ok "the daemon stops in order" stop_daemon
done_testing
